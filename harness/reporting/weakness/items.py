"""The worst items, side by side for the systems of the given runs: inputs, gold answers, answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from harness.analysis.systems import System, SystemGroup, group_systems
from harness.errors import HarnessError
from harness.metrics.naming import metric_name
from harness.progress import show_step
from harness.reporting.blocks.model import (
    Block,
    Field,
    Fold,
    Note,
    Notes,
    Sentence,
    Sentences,
    Table,
    TableRow,
    anchor,
)
from harness.reporting.blocks.number import percent
from harness.reporting.blocks.remark import counted
from harness.reporting.overview.material import Material
from harness.reporting.weakness.answer_text import (
    LONGEST,
    Parts,
    answer_parts,
    gold_parts,
    item_text,
    json_text,
    wrong_tags,
)
from harness.reporting.weakness.severity import CLASSIFYING, confidence_of, first_rank, worst
from harness.storage.records import ItemRecord

ITEMS = 3
"""Items of a task and language."""
MOST = 150
"""Items of a page."""
SYSTEMS = 4
"""Systems of a task that are shown side by side."""
OPENING = 60
"""Characters of a text that name an item."""
AROUND = 120
"""Characters of a context before and after an answer."""
ORDER = ("premise", "hypothesis", "sentence1", "sentence2", "question", "query", "text", "context")
"""The fields that are read first."""
LEGEND = (
    f"The items that the first run has most wrong: at most {ITEMS} of a task and language, and {MOST} in all. Wrong "
    "labels count by their confidence, tags by their number, rankings by the rank of the first right candidate, "
    "other answers by what is missing from a full score. The records of the run hold all items."
)


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
    """By id: the texts of candidates that the answers name, as far as the records hold them."""

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
    rounds = [item for turn in zip_longest(*cells) for item in turn if item is not None]
    selected = {id(item) for item in rounds[:MOST]}
    by_language: dict[str, list[WorstItem]] = {}
    for cell in cells:
        for item in cell:
            if id(item) in selected:
                by_language.setdefault(item.language, []).append(item)
    return by_language, faults


def _of_language(group: SystemGroup, code: str, material: Material) -> Iterator[WorstItem]:
    systems = [system for system in group.systems if code in system.cells][:SYSTEMS]
    first = systems[0]
    kind, headline = first.spec.kind, first.spec.headline
    chosen = worst(first.run.records(first.cells[code]), kind, headline, ITEMS)
    identifiers = {record.id for record in chosen}
    further = [
        (_name(system, group, material), _records(system, code, identifiers))
        for system in systems[1:]
        if identifiers
    ]
    answers = {
        record.id: (
            (_name(first, group, material), record),
            *((name, _same(record, records.get(record.id))) for name, records in further),
        )
        for record in chosen
    }
    texts = _texts(first, code, kind, [answer for by_system in answers.values() for _, answer in by_system])
    for record in chosen:
        yield WorstItem(
            title=group.title,
            kind=kind,
            language=code,
            record=record,
            answers=answers[record.id],
            texts=texts,
        )


def _texts(system: System, code: str, kind: str, answers: Sequence[ItemRecord | None]) -> dict[str, str]:
    """Return the texts of the candidates that answers name: those that the answers hold, or else other records.

    Records of older versions hold no texts of candidates; a translation that is itself an item is in its record.
    """
    predictions = [answer.prediction for answer in answers if answer is not None]
    structured = [prediction for prediction in predictions if isinstance(prediction, Mapping)]
    texts = {
        name: str(text) for prediction in structured for name, text in (prediction.get("texts") or {}).items()
    }
    missing = {
        str(prediction["candidate"]) for prediction in structured if prediction.get("candidate") is not None
    } - set(texts)
    if kind == "bitext_retrieval" and missing:
        for record in system.run.records(system.cells[code]):
            if record.id in missing and isinstance(record.fields.get("target"), str):
                texts[record.id] = record.fields["target"]
    return texts


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
    return Table(
        title=f"{item.title}, {item.language}, item {item.record.id[:200]}",
        rows=tuple(rows),
        words=frozenset({0}),
        style="item",
        anchor=item.anchor,
    )


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
    return (
        *item_text(f"{edges[0]}{excerpt}{edges[1]}", item.language),
        f" (from {len(context):,} characters)",
    )


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
    tasks: dict[str, list[WorstItem]] = {}
    for code in names:
        for item in items.get(code, ()):
            tasks.setdefault(item.title, []).append(item)
    folds: list[Block] = []
    for title, task_items in tasks.items():
        inside: list[Block] = []
        for code in dict.fromkeys(item.language for item in task_items):
            inside.append(Note(f"{names[code]} ({code})", "subheading"))
            inside += [item_table(item) for item in task_items if item.language == code]
        count = counted(len(task_items), "item")
        folds.append(Fold(title=title, soft=count, blocks=inside, heading=True, is_open=not folds))
    blocks = [Note(LEGEND, "note"), *folds] if folds else []
    return [*blocks, *([Notes(faults)] if faults else [])]


def item_index(items: Sequence[WorstItem]) -> list[Block]:
    """Return a link to the worst item of each task with how wrong it is, for the page of a language."""
    first: dict[str, WorstItem] = {}
    for item in items:
        first.setdefault(item.title, item)
    links = [
        Sentence(
            before=f"Worst item of {item.title}: ",
            link=item.record.id[:60],
            after=f", {_fault_text(item)}.",
            href=f"#{item.anchor}",
        )
        for item in first.values()
    ]
    return [Sentences(links)] if links else []


def _opening(item: WorstItem) -> str:
    """Return how the first text of an item begins; its id where it has none."""
    fields = _shown_fields(item.record, item.kind)
    tokens = fields.get("tokens")
    texts = [fields[name] for name in ORDER if isinstance(fields.get(name), str)]
    text = " ".join(map(str, tokens)) if isinstance(tokens, list) else next(iter(texts), "")
    text = " ".join(text.split()) or item.record.id
    return text if len(text) <= OPENING else f"{text[:OPENING]}…"


def _fault_text(item: WorstItem) -> str:
    record = item.record
    sure, rank = confidence_of(record.prediction), first_rank(record.prediction, record.reference)
    if rank is not None:
        return f"first right candidate at rank {rank} or later"
    if item.kind == "token_tagging":
        wrong = sum(
            gold != predicted for gold, predicted in zip(record.reference, record.prediction, strict=False)
        )
        return f"{wrong} of {len(record.reference)} tags wrong"
    if item.kind in CLASSIFYING:
        return "wrong" if sure is None else f"wrong with confidence {sure * 100:.0f} %"
    scores = [
        f"{metric_name(name)} {percent(value)}"
        for name, value in record.scores.items()
        if isinstance(value, int | float)
    ]
    return ", ".join(scores) or "wrong"
