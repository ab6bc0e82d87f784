"""The worst items, side by side for the systems of the given runs: inputs, gold answers, answers, for a reader.

Texts replace ids, and of tags only what differs. An item is found by how wrong its answer is.
"""

from __future__ import annotations

import heapq
import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.analysis.diagnosis import probabilities
from harness.analysis.systems import System, SystemGroup, group_systems
from harness.errors import HarnessError
from harness.metrics.metric import metric_name
from harness.progress import show_step
from harness.reporting.blocks.model import (
    Block,
    Field,
    Fold,
    ItemText,
    Note,
    Notes,
    Sentence,
    Sentences,
    Table,
    TableRow,
    anchor,
)
from harness.reporting.blocks.number import percent
from harness.reporting.blocks.words import counted, legend
from harness.reporting.overview.means import UNREADABLE
from harness.reporting.overview.summary import Material
from harness.storage.records import ItemRecord
from harness.table import grouped

ITEMS = 3
"""Items of a task and language."""
MOST = 150
"""Items of a page."""
SYSTEMS = 4
"""Systems of a task that are shown side by side."""
AROUND = 120
"""Characters of a context before and after an answer."""
ORDER = ("premise", "hypothesis", "sentence1", "sentence2", "question", "query", "text", "context")
"""The fields that are read first."""
LONGEST = 600
"""Characters of a text that the page holds; the records hold all."""
MOST_ANSWERS = 5
"""Answers of a list that are shown."""
MOST_TAGS = 12
"""Wrong tags of a sentence that are shown."""
Parts = tuple[str | ItemText, ...]
Texts = Mapping[str, str]
"""By id: the texts of candidates."""
CLASSIFYING = {"sequence_classification", "multiple_choice"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstItem:
    """A wrong item of the first system, and what all systems answered."""

    title: str
    """The task and its view."""
    kind: str
    language: str
    record: ItemRecord
    """That of the first system."""
    answers: tuple[tuple[str, ItemRecord | None], ...]
    """By system; None where it does not have the item."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """By id: the texts of candidates that the answers name."""

    @property
    def anchor(self) -> str:
        """Its place in the page."""
        return anchor("item", self.title, self.language, self.record.id)


def worst_items(material: Material) -> tuple[dict[str, list[WorstItem]], list[str]]:
    """Return the worst items by language, and one sentence for what could not be read.

    Where there are more than a page shows, every task and language keeps its worst ones.
    """
    try:
        groups = group_systems(material.runs, least=1)
    except HarnessError as error:
        return {}, [str(error)]
    cells: list[list[WorstItem]] = []
    faults: list[str] = []
    for group in groups:
        show_step(f"Worst items: {group.title}")
        for code in dict.fromkeys(code for system in group.systems for code in system.cells):
            try:
                cells.append(list(_of_language(group, code, material)))
            except HarnessError as error:
                faults.append(str(error))
    rounds = [item for turn in itertools.zip_longest(*cells) for item in turn if item is not None]
    selected = {id(item) for item in rounds[:MOST]}
    chosen = (item for cell in cells for item in cell if id(item) in selected)
    return grouped((item.language, item) for item in chosen), faults


def _of_language(group: SystemGroup, code: str, material: Material) -> Iterator[WorstItem]:
    systems = [system for system in group.systems if code in system.cells][:SYSTEMS]
    first = systems[0]
    kind, headline = first.spec.kind, first.spec.headline
    chosen = worst(first.run.records(first.cells[code]), kind, headline, ITEMS)
    identifiers = {record.id for record in chosen}
    names = [_name(system, group, material) for system in systems]
    further = [_records(system, code, identifiers) for system in systems[1:] if identifiers]
    answers: dict[str, tuple[tuple[str, ItemRecord | None], ...]] = {}
    for record in chosen:
        others = (_same(record, records.get(record.id)) for records in further)
        answers[record.id] = tuple(zip(names, (record, *others), strict=True))
    texts = _texts(answer for by_system in answers.values() for _, answer in by_system)
    for record in chosen:
        by_system = answers[record.id]
        yield WorstItem(
            title=group.title, kind=kind, language=code, record=record, answers=by_system, texts=texts
        )


def _texts(answers: Iterable[ItemRecord | None]) -> dict[str, str]:
    """Return the texts of the candidates that answers name and hold."""
    predictions = (answer.prediction for answer in answers if answer is not None)
    held = (prediction.get("texts") or {} for prediction in predictions if isinstance(prediction, Mapping))
    return {name: str(text) for texts in held for name, text in texts.items()}


def _name(system: System, group: SystemGroup, material: Material) -> str:
    """Return the name of a run in the report, with the system's conditions where the run has several in this task."""
    same = [candidate for candidate in group.systems if candidate.run is system.run]
    name = material.name(system.run)
    return name if len(same) == 1 else f"{name}{system.name.removeprefix(system.run.manifest.model_name)}"


def _records(system: System, code: str, wanted: set[str]) -> dict[str, ItemRecord]:
    return {record.id: record for record in system.run.records(system.cells[code]) if record.id in wanted}


def _same(record: ItemRecord, other: ItemRecord | None) -> ItemRecord | None:
    """Return the other record where it is of the same item: an id alone may name another one in another release."""
    return other if other is not None and other.inputs_digest == record.inputs_digest else None


def item_table(item: WorstItem) -> Table:
    """Return the item as a table: a row for each field, the gold answer, and each system."""
    gold = gold_parts(item.record, item.kind, item.language, item.texts)
    rows = [*field_rows(item), TableRow(label="gold", fields=(Field(parts=gold),))]
    for name, answer in item.answers:
        if answer is None:
            content: str | Field = "does not have this item"
        elif item.kind == "token_tagging":
            tokens = item.record.fields.get("tokens") or []
            content = Field(parts=wrong_tags(answer, tokens, item.language), listed=True)
        else:
            content = Field(parts=answer_parts(answer, item.kind, item.language, item.texts))
        rows.append(TableRow(label=name, fields=(content,)))
    title = f"{item.title}, {item.language}, item {item.record.id[:200]}"
    return Table(title=title, rows=tuple(rows), words=frozenset({0}), style="item", anchor=item.anchor)


def field_rows(item: WorstItem) -> Iterator[TableRow]:
    """Yield a row for each field of the example in the order in which they are read; none for runs that kept none."""
    for name, texts in named_fields(item.record, item.kind):
        segments = tuple(segment for text in texts for segment in item_text(text, item.language))
        if name == "context" and item.kind == "span_extraction":
            segments = _excerpt(texts[0], item)
        yield TableRow(label=name, fields=(Field(parts=segments, listed=len(texts) > 1),))
    if item.record.group:
        yield TableRow(label="test", fields=(item.record.group,))


def named_fields(record: ItemRecord, kind: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the fields of an item by name in the order in which they are read; a list has several texts."""
    fields = _shown_fields(record, kind)
    ranked = sorted(fields, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))
    for name in ranked:
        value = " ".join(map(str, fields[name])) if name == "tokens" else fields[name]
        if isinstance(value, list) and all(isinstance(text, str) for text in value):
            yield name, value
        elif value not in (None, ""):
            yield name, [value if isinstance(value, str) else json_text(value)]


def _shown_fields(record: ItemRecord, kind: str) -> dict[str, Any]:
    fields = dict(record.fields)
    fields.pop("id", None)
    inner = fields.pop("inputs", None)
    if "choices" in fields and "context" in fields:
        inner = None  # the context is made of these
    if isinstance(inner, Mapping):
        fields = {**inner, **fields}
    if "tokens" in fields and "text" in fields:
        fields.pop("text")
    if kind == "bitext_retrieval":
        fields.pop("target", None)  # the gold answer
    if {"before", "after", "right"} <= set(fields):
        # A sentence with a gap, and the forms that may fill it.
        forms = [fields.pop("right"), *(fields.pop("wrong", None) or [])]
        gap = f"{fields.pop('before')}[{' / '.join(map(str, forms))}]{fields.pop('after')}"
        fields = {"sentence": gap, **fields}
    fields.pop("names", None)
    return fields


def _excerpt(context: str, item: WorstItem) -> Parts:
    """Return a context, or of a long one the parts around the gold answer and the answers of the systems."""
    if len(context) <= LONGEST:
        return item_text(context, item.language)
    golds = item.record.reference if isinstance(item.record.reference, list) else []
    predictions = [answer.prediction for _, answer in item.answers if answer is not None]
    stretches = [(context.find(text), len(text)) for text in map(str, golds)]
    stretches += [
        (prediction["start"], len(str(prediction.get("text") or "")))
        for prediction in predictions
        if isinstance(prediction, Mapping) and isinstance(prediction.get("start"), int)
    ]
    spans: list[list[int]] = []
    for start, length in sorted(stretch for stretch in stretches if 0 <= stretch[0] < len(context)):
        low, high = _whole_words(context, start - AROUND, start + min(length, LONGEST) + AROUND)
        if spans and low <= spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], high)
        else:
            spans.append([low, high])
    if not spans:
        return item_text(context, item.language)
    excerpt = " … ".join(context[low:high] for low, high in spans)
    edges = ("… " if spans[0][0] else "", " …" if spans[-1][1] < len(context) else "")
    text = item_text(f"{edges[0]}{excerpt}{edges[1]}", item.language)
    return (*text, f" (from {len(context):,} characters)")


def _whole_words(text: str, low: int, high: int) -> tuple[int, int]:
    """Return a stretch of a text that cuts no word in two, where the text has spaces nearby."""
    if low > 0:
        space = text.find(" ", low, low + AROUND // 2)
        low = low if space < 0 else space + 1
    if high < len(text):
        space = text.rfind(" ", high - AROUND // 2, high)
        high = high if space < 0 else space
    return max(0, low), min(len(text), high)


def item_blocks(
    items: Mapping[str, Sequence[WorstItem]], names: Mapping[str, str], faults: Sequence[str]
) -> list[Block]:
    """Return the worst items by task and language, folded; the first task's are open.

    Args:
        items: By language.
        names: Of the languages that have a page.
        faults: What could not be read.
    """
    tasks = grouped((item.title, item) for code in names for item in items.get(code, ()))
    folds: list[Block] = []
    for title, task_items in tasks.items():
        inside: list[Block] = []
        for code, code_items in grouped((item.language, item) for item in task_items).items():
            inside += [Note(f"{names[code]} ({code})", "subheading"), *map(item_table, code_items)]
        count = counted(len(task_items), "item")
        folds.append(Fold(title=title, soft=count, blocks=inside, heading=True, is_open=not folds))
    blocks = [Note(legend("worst items", items=ITEMS, most=MOST), "note"), *folds] if folds else []
    return [*blocks, *([Notes(faults)] if faults else [])]


def item_index(items: Sequence[WorstItem]) -> list[Block]:
    """Return a link to the worst item of each task with how wrong it is, for the page of a language."""
    first: dict[str, WorstItem] = {}
    for item in items:
        first.setdefault(item.title, item)
    links = []
    for title, item in first.items():
        before, after = f"Worst item of {title}: ", f", {_fault_text(item)}."
        links.append(Sentence(before=before, link=item.record.id[:60], after=after, href=f"#{item.anchor}"))
    return [Sentences(links)] if links else []


def _fault_text(item: WorstItem) -> str:
    record = item.record
    sure, rank = confidence_of(record.prediction), first_rank(record.prediction, record.reference)
    if rank is not None:
        return f"first right candidate at rank {rank} or later"
    if item.kind == "token_tagging":
        return f"{differing_tags(record)} of {len(record.reference)} tags wrong"
    if item.kind in CLASSIFYING:
        return "wrong" if sure is None else f"wrong with confidence {sure * 100:.0f} %"
    return scores_text(record) or "wrong"


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
        return item_text(" ".join(targets[:MOST_ANSWERS]), None)
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
        text = _with_choice(answer, record, language) or _plain(answer, language)
        segments += ["no answer"] if answer in (None, "") else text
        sure = confidence_of(prediction)
        segments += [] if sure is None else [f"; confidence {percent(sure)} %"]
        if prediction.get("raw") is not None:
            segments += ["; written: ", *item_text(str(prediction["raw"]), language)]
    else:
        segments += _plain(prediction, language)
    return (*(segment for segment in segments if segment != ""), *_answer_scores(record))


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
        texts = (("; ", *item_text(text, language)) for text in value[:MOST_ANSWERS])
        return tuple(itertools.chain.from_iterable(texts))[1:]
    return item_text(value, language) if isinstance(value, str) else item_text(json_text(value), None)


def _answer_scores(answer: ItemRecord) -> Iterator[str]:
    """Yield the scores that are those of this item; sums of set-level metrics mean nothing to a reader."""
    scores = scores_text(answer, {"accuracy"})
    names = (name for name, held in answer.flags.items() if held)
    flags = ", ".join(UNREADABLE if name in {"unparsed", "unanswered"} else name for name in names)
    if scores or flags:
        yield f"; {scores}{f' ({flags})' if flags else ''}"


def scores_text(answer: ItemRecord, skipped: Collection[str] = ()) -> str:
    """Return the scores of one item; those of others are an item's part in a score of the whole set."""
    return ", ".join(
        f"{metric_name(name)} {percent(value)}"
        for name, value in answer.scores.items()
        if isinstance(value, int | float) and name not in skipped
    )


def differing_tags(answer: ItemRecord) -> int:
    """Return how many tags of an answer differ from gold; those that are missing do not count."""
    tags = answer.prediction if isinstance(answer.prediction, list) else []
    return sum(gold != predicted for gold, predicted in zip(answer.reference, tags, strict=False))


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
    gold, predicted = ({tuple(span) for span in spans} for spans in (answer.reference, given))
    if gold == predicted:
        yield "all spans right"
    for words, spans in (("missed: ", gold - predicted), ("wrongly marked: ", predicted - gold)):
        if only := sorted(spans):
            listing = ", ".join(f"{text[start:end]} {tag}" for start, end, tag in only[:MOST_TAGS])
            more = f" and {len(only) - MOST_TAGS:,} more" if len(only) > MOST_TAGS else ""
            yield from (words, ItemText(f"{listing}{more}"), ". ")


def worst(records: Iterable[ItemRecord], kind: str, headline: Sequence[str], most: int) -> list[ItemRecord]:
    """Return the items that are most wrong, worst first; equals in the order of the records.

    Only `most` records are held at a time.
    """
    judged = ((severity(record, kind, headline), record) for record in records)
    wrong = ((error_size, record) for error_size, record in judged if error_size is not None)
    return [record for _, record in heapq.nlargest(most, wrong, key=lambda pair: pair[0])]


def severity(record: ItemRecord, kind: str, headline: Sequence[str]) -> tuple[float, float] | None:
    """Return how wrong an answer is, larger is worse; None where it is right or has no gold answer.

    Classification: the confidence in the wrong label. Tagging: wrong tokens or spans. Ranked retrieval: the rank of the
    first right candidate. Others: what is missing from a full score, then the confidence.
    """
    prediction, gold = record.prediction, record.reference
    if gold is None:
        return None
    if kind in CLASSIFYING:
        if isinstance(prediction, Mapping) and prediction.get("label") == gold:
            return None
        return (confidence_of(prediction) or 0.0, 0.0)
    rank = first_rank(prediction, gold)
    if rank is not None:
        return None if rank == 1 else (float(rank), 0.0)
    if kind == "token_tagging":
        tags = prediction if isinstance(prediction, list) else []
        wrong = differing_tags(record) + abs(len(gold) - len(tags))
        return (float(wrong), wrong / max(1, len(gold))) if wrong else None
    return _lost(record, headline)


def _lost(record: ItemRecord, headline: Sequence[str]) -> tuple[float, float] | None:
    if isinstance(record.scores.get("example_error"), int | float):
        # The headline is a score of groups of examples, so it cannot rank single examples.
        scores = [1.0 - record.scores["example_error"]]
    else:
        scores = [record.scores[name] for name in headline if name in record.scores]
    if not scores:
        return None
    if isinstance(scores[0], int | float):
        lost = 1.0 - float(np.mean([score for score in scores if isinstance(score, int | float)]))
    else:
        # Right, predicted, gold; or right and all.
        right, *totals = scores[0]
        lost = sum(totals) - right * len(totals)
    sure = record.prediction.get("score", 0.0) if isinstance(record.prediction, Mapping) else 0.0
    return (lost, float(sure or 0.0)) if lost > 0 else None


def first_rank(prediction: Any, gold: Any) -> int | None:
    """Return the rank of the first right candidate, from 1; one more than the last where none is right.

    None for answers that are no ranking.
    """
    if not isinstance(prediction, Mapping) or not isinstance(gold, Mapping) or "candidates" not in prediction:
        return None
    ranking = [*prediction["candidates"], *prediction.get("further", ())]
    targets = set(gold.get("targets", ()))
    return next((rank for rank, name in enumerate(ranking, start=1) if name in targets), len(ranking) + 1)


def confidence_of(prediction: Any) -> float | None:
    """Return the probability of the label that was given; None where the answer has no scores of all labels."""
    scores = prediction.get("scores") if isinstance(prediction, Mapping) else None
    if not isinstance(scores, list) or len(scores) < 2 or not np.isfinite(scores).all():
        return None
    return float(probabilities(np.array([scores], dtype=np.float64)).max())
