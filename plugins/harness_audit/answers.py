"""Answers of known worth: gold, constants, nothing and shuffled gold, what each may score, and what it scores.

What a constant may score is counted on the references alone, without the metric that is tried: a label is right as
often as it is gold. A micro-averaged F1 of an answer that is right for a share s of what it says is at most
2s / (1 + s), that of precision s and recall 1.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import sqrt
from typing import Any

import numpy as np

from harness import HarnessError
from harness.checks import Finding
from harness.metrics import CUT_OFF, Metric, MetricContext, MetricResult
from harness_audit.split import AuditedSplit, named_ids

SEED = 0
ROUNDING = 1e-9
SURE = 4.0
"""Standard errors by which an answer drawn by chance may be better than its expectation."""
OVERLAP = 0.15
"""Score that a wrong text may have from words in common with the answer."""
REJECTIONS = (ArithmeticError, HarnessError, LookupError, TypeError, ValueError)
"""Errors that a metric raises for answers that it rejects."""

Examples = Sequence[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One answer per item, and the most that it may score."""

    name: str
    """``gold``, ``the constant 'neutral'``, ``empty answers``."""
    check: str
    """``gold``, ``constant``, ``empty``, ``all labels`` or ``shuffled``."""
    outputs: Sequence[Any]
    ceiling: float
    """As a fraction; for gold, what is expected exactly."""

    def is_expected(self, value: float) -> bool:
        """Return whether a score is one that the answer may have; NaN never is."""
        if self.check == "gold":
            return abs(value - self.ceiling) <= ROUNDING
        return value <= self.ceiling + ROUNDING


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """The score of a trial by one metric, and the items behind it."""

    goodness: float | None
    """As a fraction, 1 being best; None where the metric rejects the answers."""
    at_fault: Sequence[str] = ()
    """Ids of the items that lower the score of gold or raise that of another answer; empty where they are not known."""

    @classmethod
    def of(
        cls,
        metric: Metric,
        trial: Trial,
        examples: Examples,
        references: Sequence[Any],
        context: MetricContext,
    ) -> Scored:
        """Return the score of a trial, with the items at fault where it is not one that the trial may have."""
        item_context = replace(
            context,
            clusters=[example.cluster for example in examples],
            groups=[example.group for example in examples],
            tags=[example.meta for example in examples],
        )
        try:
            result = metric.compute(list(trial.outputs), list(references), item_context)
        except REJECTIONS:
            return cls(goodness=None)
        value = result.value if metric.higher_is_better else 1 - result.value
        if trial.is_expected(value):
            return cls(goodness=value)
        positions = _items_at_fault(metric, result, best=float(trial.check == "gold"))
        return cls(goodness=value, at_fault=[examples[position].id for position in positions])


def _items_at_fault(metric: Metric, result: MetricResult, *, best: float) -> list[int]:
    """Return the items that are not scored `best`, or, of sums, those without which the value is nearer to it."""
    goal = best if metric.higher_is_better else 1 - best
    if result.items is not None:
        return [int(position) for position in np.flatnonzero(~(np.abs(result.items - goal) <= ROUNDING))]
    if result.counts is None or metric.from_counts is None:
        return []
    total = result.counts.sum(axis=0)
    away = abs(result.value - goal)
    try:
        with np.errstate(divide="ignore", invalid="ignore"):
            values = [metric.from_counts(total - row) for row in result.counts]
    except REJECTIONS:
        return []
    return [position for position, value in enumerate(values) if abs(value - goal) < away - ROUNDING]


# What is reported ---------------------------------------------------------------------------------------


def judged(split: AuditedSplit, metric: Metric, trial: Trial, scored: Scored) -> Iterator[Finding]:
    """Yield a trial whose score is not the expected one; a rejected answer scores nothing."""
    value = scored.goodness
    is_gold = trial.check == "gold"
    if value is None and is_gold:
        score = "an error: its references cannot be predicted"
    elif value is None or trial.is_expected(value):
        return
    else:
        items = f" ({named_ids(scored.at_fault)})" if scored.at_fault else ""
        score = f"{value * 100:.{2 if is_gold else 1}f}{items}"
    most = "100" if is_gold else f"at most {trial.ceiling * 100:.1f}"
    name = "gold as prediction" if is_gold else trial.name
    yield split.finding(trial.check, f"{most} ({metric.name}, {split.title}) for {name}", score)


# The answers --------------------------------------------------------------------------------------------


def kinds_with_answers() -> tuple[str, ...]:
    """Return the kinds whose references can be turned into predictions."""
    return tuple(_TRIALS)


def trials(
    kind: str,
    examples: Examples,
    references: Sequence[Any],
    labels: Sequence[str],
) -> list[Trial]:
    """Return the trials of a kind, gold first; empty for one whose references are no predictions."""
    return _TRIALS[kind](examples, references, labels) if kind in _TRIALS and references else []


def _shuffled(values: Sequence[Any]) -> list[Any]:
    """Return values in another order, always the same one."""
    mixed = list(values)
    random.Random(SEED).shuffle(mixed)  # noqa: S311
    return mixed


def _guessed(values: Sequence[Any], observed: int) -> float:
    """Return the highest score of a draw from the gold values: how often two of them agree, and a margin for chance."""
    counts = Counter(values)
    agree = sum((count / len(values)) ** 2 for count in counts.values())
    return min(1.0, agree + SURE * 0.5 / sqrt(max(1, observed)))


def _of_parts(share: float) -> float:
    return 2 * share / (1 + share)


def _named(
    key: str, references: Sequence[str], constants: Sequence[str], joined: Mapping[str, Sequence[str]]
) -> list[Trial]:
    """Return the trials of kinds with one name per item: a label, a form, a candidate."""
    size, counts = len(references), Counter(references)

    def said(name: str, check: str, answers: Sequence[str | None], ceiling: float) -> Trial:
        return Trial(name=name, check=check, outputs=[{key: answer} for answer in answers], ceiling=ceiling)

    return [
        said("gold", "gold", references, 1.0),
        *(
            said(f"the constant {name!r}", "constant", [name] * size, counts[name] / size)
            for name in constants
        ),
        said("no answers", "empty", [None] * size, 0.0),
        said("empty answers", "empty", [""] * size, 0.0),
        *(said(name, "all labels", answers, 0.0) for name, answers in joined.items()),
        said("shuffled gold", "shuffled", _shuffled(references), _guessed(references, size)),
    ]


def _label_trials(examples: Examples, references: Sequence[str], labels: Sequence[str]) -> list[Trial]:
    texts = [between.join(labels or dict.fromkeys(references)) for between in ("", " ")]
    joined = {
        f"the answer {text[:60]!r}": [text] * len(references) for text in texts if text not in references
    }
    return _named("label", references, labels, joined)


def _form_trials(examples: Examples, references: Sequence[str], labels: Sequence[str]) -> list[Trial]:
    joined = [" ".join((example.right, *example.wrong)) for example in examples]
    return _named("label", references, _most_common(references, 1), {"all forms at once": joined})


def _bitext_trials(examples: Examples, references: Sequence[str], labels: Sequence[str]) -> list[Trial]:
    return _named("candidate", references, references[:1], {})


def _most_common(values: Sequence[str], count: int) -> list[str]:
    return [value for value, _ in Counter(values).most_common(count)]


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
        chunk_type = _type(label)
        one_chunk = sum(set(map(_type, tags)) == {chunk_type} for tags in references) / len(references)
        return max(_of_parts(max(counts[label], single[chunk_type]) / len(flat)), _of_parts(one_chunk))

    tag_trials = [Trial(name="gold", check="gold", outputs=[list(tags) for tags in references], ceiling=1.0)]
    for label in labels:
        outputs = [[label] * size for size in sizes]
        name = f"the constant {label!r}"
        tag_trials.append(Trial(name=name, check="constant", outputs=outputs, ceiling=constant(label)))
    tag_trials.append(Trial(name="empty answers", check="empty", outputs=[[] for _ in sizes], ceiling=0.0))
    mixed = iter(_shuffled(flat))
    outputs = [[next(mixed) for _ in tags] for tags in references]
    ceiling = max(_guessed(flat, len(references)), _of_parts(_guessed(flat, len(flat))))
    return [*tag_trials, Trial(name="shuffled gold", check="shuffled", outputs=outputs, ceiling=ceiling)]


def _type(tag: str) -> str:
    return tag.rsplit("-", maxsplit=1)[-1]


def _single_types(references: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the type of every token that is a chunk of its own."""
    for tags in references:
        types = [_type(tag) for tag in tags]
        for before, current, after in zip([None, *types], types, [*types[1:], None], strict=False):
            if current not in (before, after):
                yield current


def _answer_trials(
    examples: Examples, references: Sequence[Sequence[str]], labels: Sequence[str]
) -> list[Trial]:
    def said(name: str, check: str, texts: Sequence[str], ceiling: float) -> Trial:
        outputs = [{"text": text} for text in texts]
        return Trial(name=name, check=check, outputs=outputs, ceiling=min(1.0, ceiling))

    size = len(references)
    first = [answers[0] for answers in references]
    text_trials = [said("gold", "gold", first, 1.0), said("empty answers", "empty", [""] * size, 0.0)]
    [often] = _most_common(first, 1)
    most = sum(often in answers for answers in references) / size + OVERLAP
    text_trials.append(said(f"the constant {often[:40]!r}", "constant", [often] * size, most))
    most = _guessed([text.casefold() for text in first], size) + OVERLAP
    return [*text_trials, said("shuffled gold", "shuffled", _shuffled(first), most)]


def _number_trials(examples: Examples, references: Sequence[str], labels: Sequence[str]) -> list[Trial]:
    def said(name: str, check: str, values: Sequence[str | None], ceiling: float) -> Trial:
        outputs = [{"text": value or "", "value": value} for value in values]
        return Trial(name=name, check=check, outputs=outputs, ceiling=ceiling)

    size = len(references)
    [often] = _most_common(references, 1)
    return [
        said("gold", "gold", references, 1.0),
        said("empty answers", "empty", [None] * size, 0.0),
        said(f"the constant {often!r}", "constant", [often] * size, references.count(often) / size),
        said("shuffled gold", "shuffled", _shuffled(references), _guessed(references, size)),
    ]


def _written_trials(
    examples: Examples, references: Sequence[Sequence[str]], labels: Sequence[str]
) -> list[Trial]:
    """Return gold and empty texts: what else a text may share with its reference is not known."""
    texts = [("gold", "gold", [gold[0] for gold in references], 1.0)]
    texts.append(("empty answers", "empty", [""] * len(references), 0.0))
    return [
        Trial(
            name=name,
            check=check,
            outputs=[{"text": text, "copied": False} for text in answers],
            ceiling=ceiling,
        )
        for name, check, answers, ceiling in texts
    ]


def _marked_trials(examples: Examples, references: Sequence[Any], labels: Sequence[str]) -> list[Trial]:
    gold = [[list(span) for span in spans] for spans in references]

    def marked(name: str, check: str, spans: Sequence[Any], ceiling: float) -> Trial:
        outputs = [{"spans": item_spans} for item_spans in spans]
        return Trial(name=name, check=check, outputs=outputs, ceiling=ceiling)

    mark_trials = [
        marked("gold", "gold", gold, 1.0),
        marked("empty answers", "empty", [[] for _ in gold], 0.0),
    ]
    names = [span[2] for item_spans in gold for span in item_spans]
    for tag in sorted(set(names)):
        full_texts = [[[0, len(example.text), tag]] for example in examples]
        pairs = zip(full_texts, gold, strict=True)
        share = sum(span in item_spans for [span], item_spans in pairs) / len(gold)
        mark_trials.append(marked(f"whole texts as {tag!r}", "constant", full_texts, _of_parts(share)))
    if names:
        mixed = iter(_shuffled(names))
        spans = [[[start, end, next(mixed)] for start, end, _ in item_spans] for item_spans in gold]
        mark_trials.append(marked("shuffled tags", "shuffled", spans, _guessed(names, len(gold))))
    return mark_trials


def _ranking_trials(
    examples: Examples, references: Sequence[Mapping[str, Sequence[str]]], labels: Sequence[str]
) -> list[Trial]:
    """Return the trials of ranked retrieval.

    What a ranking may score is counted on the right candidates alone: precision, reciprocal rank and recall at a
    cut-off are each at most the share of queries with a right candidate up to it.
    """
    gold = [list(reference["targets"]) for reference in references]
    further = max(map(len, gold)) - 1
    size = len(gold)

    def ranked(name: str, check: str, rankings: Sequence[Sequence[str]], ceiling: float) -> Trial:
        outputs = [
            {"candidates": list(ranking[:CUT_OFF]), "further": list(ranking[CUT_OFF : CUT_OFF + further])}
            for ranking in rankings
        ]
        return Trial(name=name, check=check, outputs=outputs, ceiling=ceiling)

    def share(rankings: Sequence[Collection[str]]) -> float:
        pairs = zip(gold, rankings, strict=True)
        return sum(not set(targets).isdisjoint(ids) for targets, ids in pairs) / size

    often = _most_common(list(chain.from_iterable(gold)), CUT_OFF)
    single, several = [often[:1]] * size, [often] * size
    shuffled = _shuffled(gold)
    return [
        ranked("gold", "gold", gold, 1.0),
        ranked(f"the constant {often[0]!r}", "constant", single, share(single)),
        ranked(f"the same {len(often)} candidates for all queries", "constant", several, share(several)),
        ranked("empty rankings", "empty", [[]] * size, 0.0),
        ranked("the right candidates of other queries", "shuffled", shuffled, share(shuffled)),
    ]


def _set_trials(
    examples: Examples, references: Sequence[Mapping[str, Sequence[str]]], labels: Sequence[str]
) -> list[Trial]:
    """Return the trials of sets of labels; a constant has a share of them that the metric alone knows."""

    def said(name: str, check: str, sets: Sequence[Sequence[str]], ceiling: float) -> Trial:
        return Trial(
            name=name, check=check, outputs=[{"labels": list(each)} for each in sets], ceiling=ceiling
        )

    gold = [reference["labels"] for reference in references]
    return [said("gold", "gold", gold, 1.0), said("empty answers", "empty", [[] for _ in gold], 0.0)]


def _grade_trials(examples: Examples, references: Sequence[float], labels: Sequence[str]) -> list[Trial]:
    def said(name: str, check: str, grades: Sequence[float], ceiling: float) -> Trial:
        return Trial(name=name, check=check, outputs=[{"grade": grade} for grade in grades], ceiling=ceiling)

    constant = [references[0]] * len(references)
    return [said("gold", "gold", references, 1.0), said("one grade for all", "constant", constant, 0.0)]


_TRIALS: Mapping[str, Callable[[Examples, Sequence[Any], Sequence[str]], list[Trial]]] = {
    "sequence_classification": _label_trials,
    "multiple_choice": _label_trials,
    "form_preference": _form_trials,
    "token_tagging": _list_trials,
    "word_labelling": _list_trials,
    "numeric_answer": _number_trials,
    "span_extraction": _answer_trials,
    "summary": _written_trials,
    "translation": _written_trials,
    "text_marking": _marked_trials,
    "bitext_retrieval": _bitext_trials,
    "ranked_retrieval": _ranking_trials,
    "multilabel_classification": _set_trials,
    "text_pair_similarity": _grade_trials,
}
