"""Gold answers and answers of models as a person reads them: texts instead of ids, and only what differs of tags."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.metrics.naming import metric_name
from harness.reporting.blocks.model import ItemText
from harness.reporting.blocks.number import percent
from harness.reporting.overview.unreadable import UNREADABLE
from harness.reporting.weakness.severity import confidence_of, first_rank
from harness.storage.records import ItemRecord

LONGEST = 600
"""Characters of a text that the page holds; the records hold all."""
MOST = 5
"""Answers of a list that are shown."""
MOST_TAGS = 12
"""Wrong tags of a sentence that are shown."""
Parts = tuple[str | ItemText, ...]
Texts = Mapping[str, str]
"""By id: the texts of candidates."""


def item_text(text: str, language: str | None) -> Parts:
    """Return a text of a data set or model, cut where it is very long."""
    if len(text) <= LONGEST:
        return (ItemText(text, language),)
    remainder = f" {len(text) - LONGEST:,} more characters are in the records."
    return (ItemText(text[:LONGEST], language), remainder)


def json_text(value: Any) -> str:
    """Return a value as JSON."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def gold_parts(record: ItemRecord, kind: str, language: str, texts: Texts) -> Parts:
    """Return the gold answer of an item."""
    gold = record.reference
    if kind == "token_tagging":
        return (f"{len(gold):,} tags; the wrong ones are below",)
    if kind == "text_marking":
        return (f"{len(gold):,} spans; the differences are below",)
    if isinstance(gold, Mapping) and "targets" in gold:
        targets = [str(name) for name in gold["targets"]]
        candidate = next((name for name in targets if name in texts), None)
        more = f" or {len(targets) - 1} more" if len(targets) > 1 else ""
        if candidate is not None:
            return (*item_text(texts[candidate], None), f" ({candidate}{more})")
        return item_text(" ".join(targets[:MOST]), None)
    if kind == "bitext_retrieval":
        target = record.fields.get("target")
        return item_text(target, language) if isinstance(target, str) else _candidate(str(gold), texts)
    return _with_choice(gold, record, language) or _plain(gold, language)


def answer_parts(record: ItemRecord, kind: str, language: str, texts: Texts) -> Parts:
    """Return the answer of a model to an item, with how sure it was and how it scored."""
    prediction = record.prediction
    segments: list[str | ItemText] = []
    if kind == "text_marking" and isinstance(prediction, Mapping):
        return tuple(_span_differences(record, prediction.get("spans") or ()))
    if isinstance(prediction, Mapping) and "candidates" in prediction:
        rank = first_rank(prediction, record.reference) or 0
        total = len(prediction["candidates"]) + len(prediction.get("further", ()))
        rank_text = f"the first right one has rank {rank}" if rank <= total else f"none right within {total}"
        first = next((str(name) for name in prediction["candidates"]), None)
        segments += ["no candidate" if first is None else "", *(_candidate(first, texts) if first else ())]
        segments.append(f"; {rank_text}")
    elif isinstance(prediction, Mapping) and kind == "bitext_retrieval":
        chosen = prediction.get("candidate")
        segments += ["no candidate"] if chosen is None else _candidate(str(chosen), texts)
    elif isinstance(prediction, Mapping):
        answer = next((prediction[name] for name in ("label", "text", "spans") if name in prediction), None)
        segments += (
            ["no answer"]
            if answer in (None, "")
            else _with_choice(answer, record, language) or _plain(answer, language)
        )
        sure = confidence_of(prediction)
        segments += [] if sure is None else [f"; confidence {percent(sure)} %"]
        if prediction.get("raw") is not None:
            segments += ["; written: ", *item_text(str(prediction["raw"]), language)]
    else:
        segments += _plain(prediction, language)
    return (*(segment for segment in segments if segment != ""), *_scores(record))


def _candidate(name: str, texts: Texts) -> Parts:
    """Return a candidate of a retrieval task; its id alone where the records do not hold its text."""
    if name in texts:
        return (*item_text(texts[name], None), f" ({name})")
    return (f"candidate {name}; its text is not in the records",)


def _with_choice(label: Any, record: ItemRecord, language: str) -> Parts:
    """Return the choice that a label names, with the label; nothing for tasks without choices."""
    names, choices = record.fields.get("names"), record.fields.get("choices")
    if not isinstance(names, list) or not isinstance(choices, list) or label not in names:
        return ()
    return (*item_text(str(choices[names.index(label)]), language), f" ({label})")


def _plain(value: Any, language: str) -> Parts:
    if isinstance(value, list) and value and all(isinstance(text, str) for text in value):
        segments = [segment for text in value[:MOST] for segment in ("; ", *item_text(text, language))]
        return tuple(segments[1:])
    return item_text(value, language) if isinstance(value, str) else item_text(json_text(value), None)


def _scores(answer: ItemRecord) -> Iterator[str]:
    """Yield the scores that are those of this item; sums of set-level metrics mean nothing to a reader."""
    scores = ", ".join(
        f"{metric_name(name)} {percent(value)}"
        for name, value in answer.scores.items()
        if isinstance(value, int | float) and name != "accuracy"
    )
    names = (name for name, held in answer.flags.items() if held)
    flags = ", ".join(UNREADABLE if name in {"unparsed", "unanswered"} else name for name in names)
    if scores or flags:
        yield f"; {scores}{f' ({flags})' if flags else ''}"


def wrong_tags(answer: ItemRecord, tokens: Sequence[str], language: str) -> Parts:
    """Return the words whose tags differ from gold, each with both tags."""
    tags = answer.prediction if isinstance(answer.prediction, list) else []
    wrong: list[str | ItemText] = []
    for number, (gold, predicted) in enumerate(zip(answer.reference, tags, strict=False)):
        if gold != predicted:
            token = tokens[number] if number < len(tokens) else f"token {number + 1}"
            wrong.append(ItemText(f"{token}: {predicted}, not {gold}", language))
    more = len(wrong) - MOST_TAGS
    wrong = [*wrong[:MOST_TAGS], *([f"{more:,} more wrong tags"] if more > 0 else [])]
    missing = len(answer.reference) - len(tags)
    wrong += [f"{missing} tags are missing"] if missing > 0 else []
    return tuple(wrong) or ("all tags right",)


def _span_differences(answer: ItemRecord, given: Sequence[Sequence[Any]]) -> Iterator[str | ItemText]:
    """Yield the marked stretches that only gold has, and those that only the model has."""
    text = str(answer.fields.get("text") or "")
    gold, predicted = (
        {(start, end, tag) for start, end, tag in spans} for spans in (answer.reference, given)
    )
    if gold == predicted:
        yield "all spans right"
    for words, only in (
        ("missed: ", sorted(gold - predicted)),
        ("wrongly marked: ", sorted(predicted - gold)),
    ):
        if only:
            listing = ", ".join(f"{text[start:end]} {tag}" for start, end, tag in only[:MOST_TAGS])
            more = f" and {len(only) - MOST_TAGS:,} more" if len(only) > MOST_TAGS else ""
            yield f"{words}"
            yield ItemText(f"{listing}{more}")
            yield ". "
