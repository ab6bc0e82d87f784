"""Answers that say nothing, and the most that each may score: gold as prediction, constants, empty, cut, shuffled.

What a constant may score is counted on the references alone, without the metric that is tried: a label is right as
often as it is gold. A micro-averaged F1 of an answer that is right for a share s of what it says is at most
2s / (1 + s), that of precision s and recall 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import sqrt
from typing import Any

from harness_audit.ranking import ranking_trials
from harness_audit.trial import OVERLAP, SURE, Trial, shuffled

__all__ = ["kinds_with_answers", "largest_constant", "trials"]

PARTLY = 0.8
"""The most that half of every gold answer may score where a part of an answer counts."""

Examples = Sequence[Any]
RANKED = "ranked_retrieval"


def kinds_with_answers() -> tuple[str, ...]:
    """Return the kinds whose references can be turned into predictions."""
    return (*_TRIALS, RANKED)


def trials(
    kind: str,
    examples: Examples,
    references: Sequence[Any],
    labels: Sequence[str],
    candidates: Sequence[str] = (),
) -> list[Trial]:
    """Return the trials of a kind, gold first; empty for one whose references are no predictions.

    `candidates` are the ids of the pool, for kinds that rank one.
    """
    if kind == RANKED:
        return ranking_trials(references, candidates) if references else []
    make = _TRIALS.get(kind)
    return [] if make is None else make(examples, references, labels)


def largest_constant(tried: Sequence[Trial]) -> Trial | None:
    """Return the constant that is right most often; None where there is none."""
    constants = [trial for trial in tried if trial.check == "constant"]
    return max(constants, key=lambda trial: trial.ceiling, default=None)


def _guessed(values: Sequence[Any], observed: int) -> float:
    """Return what a draw from the gold values may score: how often two of them agree, and what chance may add."""
    counts = Counter(values)
    agree = sum((count / len(values)) ** 2 for count in counts.values())
    return min(1.0, agree + SURE * 0.5 / sqrt(max(1, observed)))


def _of_parts(share: float) -> float:
    return 2 * share / (1 + share)


# One label per item --------------------------------------------------------------------------------------


def _label_trials(examples: Examples, references: Sequence[str], labels: Sequence[str]) -> list[Trial]:
    def said(name: str, check: str, answers: Sequence[str | None], ceiling: float) -> Trial:
        return Trial(
            name=name, check=check, outputs=[{"label": answer} for answer in answers], ceiling=ceiling
        )

    size = len(references)
    counts = Counter(references)
    joined = list(labels) or [" ".join(dict.fromkeys(references))]
    found = [said("gold", "gold", references, 1.0)]
    found += [
        said(f"the constant {label!r}", "constant", [label] * size, counts[label] / size) for label in labels
    ]
    found += [
        said(f"{name} answers", "empty", [text] * size, 0.0) for name, text in (("no", None), ("empty", ""))
    ]
    for between in ("", " "):
        text = between.join(joined)
        if text not in counts:
            found.append(said(f"the answer {text[:60]!r}", "all labels", [text] * size, 0.0))
    cut = [label[: len(label) // 2] for label in references]
    if not {*cut} & {*labels, *references}:
        found.append(said("gold cut in half", "truncated", cut, 0.0))
    return [*found, said("shuffled gold", "shuffled", shuffled(references), _guessed(references, size))]


# Forms --------------------------------------------------------------------------------------------------


def _form_trials(examples: Examples, references: Sequence[str], labels: Sequence[str]) -> list[Trial]:
    def said(name: str, check: str, forms: Sequence[str | None], ceiling: float) -> Trial:
        return Trial(name=name, check=check, outputs=[{"label": form} for form in forms], ceiling=ceiling)

    size = len(references)
    [(often, count)] = Counter(references).most_common(1)
    wrong = [example.wrong[0] for example in examples]
    joined = [" ".join((example.right, *example.wrong)) for example in examples]
    return [
        said("gold", "gold", references, 1.0),
        said(f"the constant {often!r}", "constant", [often] * size, count / size),
        said("no answers", "empty", [None] * size, 0.0),
        said("empty answers", "empty", [""] * size, 0.0),
        said("all forms at once", "all labels", joined, 0.0),
        said("the wrong forms", "reversed", wrong, 0.0),
        said("gold cut in half", "truncated", [form[: len(form) // 2] for form in references], 0.0),
        said("shuffled gold", "shuffled", shuffled(references), _guessed(references, size)),
    ]


# A list of labels per item -------------------------------------------------------------------------------


def _list_trials(
    examples: Examples, references: Sequence[Sequence[str]], labels: Sequence[str]
) -> list[Trial]:
    flat = [label for tags in references for label in tags]
    counts = Counter(flat)
    sizes = [len(tags) for tags in references]
    single = Counter(_single_types(references))

    def constant(label: str) -> float:
        # One tag for all tokens is one chunk of its type, right where the sentence is one entity; a tag that begins a
        # chunk is one per token, right where an entity has one token, whatever tag the entity begins with.
        own = label.rsplit("-", maxsplit=1)[-1]
        whole = sum({tag.rsplit("-", maxsplit=1)[-1] for tag in tags} == {own} for tags in references) / len(
            references
        )
        return max(_of_parts(max(counts[label], single[own]) / len(flat)), _of_parts(whole))

    def filled(name: str, check: str, label: str, ceiling: float) -> Trial:
        return Trial(name=name, check=check, outputs=[[label] * size for size in sizes], ceiling=ceiling)

    found = [Trial(name="gold", check="gold", outputs=[list(tags) for tags in references], ceiling=1.0)]
    found += [filled(f"the constant {label!r}", "constant", label, constant(label)) for label in labels]
    found.append(Trial(name="empty answers", check="empty", outputs=[[] for _ in sizes], ceiling=0.0))
    most = max((constant(label) for label in labels), default=0.0)
    found.append(filled("all labels at once", "all labels", " ".join(labels), most))
    longer = [row for row, size in enumerate(sizes) if size > 1]
    if longer:
        found.append(
            Trial(
                name="the first tag of every sentence",
                check="truncated",
                outputs=[list(references[row][:1]) for row in longer],
                ceiling=_of_parts(len(longer) / sum(sizes[row] for row in longer)),
                rows=longer,
            )
        )
    mixed = iter(shuffled(flat))
    outputs = [[next(mixed) for _ in tags] for tags in references]
    ceiling = max(_guessed(flat, len(references)), _of_parts(_guessed(flat, len(flat))))
    return [*found, Trial(name="shuffled gold", check="shuffled", outputs=outputs, ceiling=ceiling)]


def _single_types(references: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the type of every token that is a chunk of its own."""
    for tags in references:
        types = [tag.rsplit("-", maxsplit=1)[-1] for tag in tags]
        for before, own, after in zip([None, *types], types, [*types[1:], None], strict=False):
            if own not in (before, after):
                yield own


# Spans --------------------------------------------------------------------------------------------------


def _answer_trials(
    examples: Examples, references: Sequence[Sequence[str]], labels: Sequence[str]
) -> list[Trial]:
    def said(
        name: str, check: str, texts: Sequence[str], ceiling: float, rows: Sequence[int] | None = None
    ) -> Trial:
        return Trial(
            name=name, check=check, outputs=[{"text": text} for text in texts], ceiling=ceiling, rows=rows
        )

    size = len(references)
    first = [answers[0] for answers in references]
    shares = [
        max(2 * len(answer) / (len(answer) + len(example.context)) for answer in answers)
        for example, answers in zip(examples, references, strict=True)
    ]
    found = [
        said("gold", "gold", first, 1.0),
        said("empty answers", "empty", [""] * size, 0.0),
    ]
    longer = [row for row, example in enumerate(examples) if example.context.strip() not in references[row]]
    if longer:
        ceiling = min(1.0, sum(shares[row] for row in longer) / len(longer) + OVERLAP)
        contexts = [examples[row].context for row in longer]
        found.append(said("whole contexts", "all labels", contexts, ceiling, longer))
    halves = {row: text[: len(text) // 2] for row, text in enumerate(first)}
    rows = [row for row, half in halves.items() if half.strip() and half.strip() not in references[row]]
    if rows:
        found.append(said("gold cut in half", "truncated", [halves[row] for row in rows], PARTLY, rows))
    folded = [text.casefold() for text in first]
    often = Counter(first).most_common(1)[0][0]
    most = min(1.0, sum(often in answers for answers in references) / size + OVERLAP)
    found.append(said(f"the constant {often[:40]!r}", "constant", [often] * size, most))
    ceiling = min(1.0, _guessed(folded, size) + OVERLAP)
    return [*found, said("shuffled gold", "shuffled", shuffled(first), ceiling)]


def _marked_trials(examples: Examples, references: Sequence[Any], labels: Sequence[str]) -> list[Trial]:
    gold = [[list(span) for span in spans] for spans in references]
    total = sum(map(len, gold))
    tags = sorted({span[2] for spans in gold for span in spans})

    def marked(name: str, check: str, spans: Sequence[Any], ceiling: float) -> Trial:
        return Trial(name=name, check=check, outputs=[{"spans": own} for own in spans], ceiling=ceiling)

    found = [marked("gold", "gold", gold, 1.0)]
    whole = {tag: [[0, len(example.text), tag] for example in examples] for tag in tags}
    shares = {
        tag: _of_parts(sum(span in own for span, own in zip(spans, gold, strict=True)) / len(gold))
        for tag, spans in whole.items()
    }
    for tag, spans in whole.items():
        found.append(marked(f"whole texts as {tag!r}", "constant", [[span] for span in spans], shares[tag]))
    found.append(marked("empty answers", "empty", [[] for _ in gold], 0.0))
    together = [list(own) for own in zip(*whole.values(), strict=True)] if tags else []
    if together:
        found.append(marked("whole texts as every tag", "all labels", together, max(shares.values())))
    if total > len(gold):
        share = sum(map(bool, gold)) / total
        found.append(marked("the first span", "truncated", [own[:1] for own in gold], _of_parts(share)))
    found += _spans_changed(examples, gold, marked)
    if total:
        names = [span[2] for own in gold for span in own]
        mixed = iter(shuffled(names))
        spans = [[[start, end, next(mixed)] for start, end, _ in own] for own in gold]
        found.append(marked("shuffled tags", "shuffled", spans, _guessed(names, len(gold))))
    return found


Marked = Callable[..., Trial]


def _spans_changed(examples: Examples, gold: Sequence[list[list[Any]]], marked: Marked) -> Iterator[Trial]:
    """Yield gold spans cut in half, and every name once where it occurs several times."""
    halves = [
        [[start, (start + end) // 2, tag] for start, end, tag in own if end - start > 1] for own in gold
    ]
    if any(halves):
        yield marked("gold spans cut in half", "truncated", halves, PARTLY)
    rows, once, kept, size = [], [], 0, 0
    for row, own in enumerate(gold):
        names = {(examples[row].text[start:end], tag): [start, end, tag] for start, end, tag in own}
        if len(names) < len(own):
            rows.append(row)
            once.append(list(names.values()))
            kept, size = kept + len(names), size + len(own)
    if rows:
        yield replace(
            marked("every name once", "truncated", once, 2 * kept / (kept + size)),
            rows=rows,
        )


# Bitext -------------------------------------------------------------------------------------------------


def _bitext_trials(examples: Examples, references: Sequence[str], labels: Sequence[str]) -> list[Trial]:
    def found(name: str, check: str, ids: Sequence[str | None], ceiling: float) -> Trial:
        return Trial(name=name, check=check, outputs=[{"candidate": own} for own in ids], ceiling=ceiling)

    size = len(references)
    turned = [*references[1:], *references[:1]]
    return [
        found("gold", "gold", references, 1.0),
        found(f"the constant {references[0]!r}", "constant", [references[0]] * size, 1 / size),
        found("no candidates", "empty", [None] * size, 0.0),
        *([found("each next candidate", "shuffled", turned, 0.0)] if size > 1 else []),
    ]


_TRIALS: Mapping[str, Callable[[Examples, Sequence[Any], Sequence[str]], list[Trial]]] = {
    "sequence_classification": _label_trials,
    "multiple_choice": _label_trials,
    "form_preference": _form_trials,
    "token_tagging": _list_trials,
    "word_labelling": _list_trials,
    "span_extraction": _answer_trials,
    "text_marking": _marked_trials,
    "bitext_retrieval": _bitext_trials,
}
