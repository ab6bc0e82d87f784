"""The worst items, side by side for the systems of the given runs: inputs, gold answers, answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis.systems import System, SystemGroup, group_systems
from harness.errors import HarnessError
from harness.reporting.material import Material
from harness.reporting.model import Block, Field, ItemText, Notes, Table, TableRow, anchor
from harness.reporting.number import percent
from harness.reporting.severity import CLASSIFYING, confidence_of, first_rank, worst
from harness.storage.records import ItemRecord

__all__ = ["LONGEST", "WorstItem", "item_blocks", "item_table", "item_text", "worst_items"]

ITEMS = 3
"""Items of a task and language."""
SYSTEMS = 4
"""Systems of a task that are shown side by side."""
LONGEST = 2_000
"""Characters of a text that the page holds; the records hold all."""
CANDIDATES = 5
ORDER = ("premise", "hypothesis", "sentence1", "sentence2", "question", "query", "text", "context")
"""The fields that are read first."""
CAPTION = "The worst items of the first run in each task and language; the pages of languages show them"
Parts = tuple[str | ItemText, ...]


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

    @property
    def anchor(self) -> str:
        """Its place in the page."""
        return anchor("item", self.title, self.language, self.record.id)


def worst_items(material: Material) -> tuple[dict[str, list[WorstItem]], list[str]]:
    """Return the worst items by language, and one sentence for what could not be read."""
    try:
        groups = group_systems(material.runs, least=1)
    except HarnessError as error:
        return {}, [str(error)]
    found: dict[str, list[WorstItem]] = {}
    faults: list[str] = []
    for group in groups:
        for code in dict.fromkeys(code for system in group.systems for code in system.cells):
            try:
                own = list(_of_language(group, code, material))
            except HarnessError as error:
                faults.append(str(error))
                continue
            found.setdefault(code, []).extend(own)
    return found, faults


def _of_language(group: SystemGroup, code: str, material: Material) -> Iterator[WorstItem]:
    systems = [system for system in group.systems if code in system.cells][:SYSTEMS]
    first = systems[0]
    kind, headline = first.spec.kind, first.spec.headline
    chosen = worst(first.run.records(first.cells[code]), kind, headline, ITEMS)
    wanted = {record.id for record in chosen}
    further = [
        (_name(system, group, material), _records(system, code, wanted)) for system in systems[1:] if wanted
    ]
    for record in chosen:
        others = [(name, _same(record, records.get(record.id))) for name, records in further]
        yield WorstItem(
            title=group.title,
            kind=kind,
            language=code,
            record=record,
            answers=((_name(first, group, material), record), *others),
        )


def _name(system: System, group: SystemGroup, material: Material) -> str:
    """Return what the report calls a run, and the system's own name where the run has several in this task."""
    same = [other for other in group.systems if other.run is system.run]
    return material.name(system.run) if len(same) == 1 else system.name


def _records(system: System, code: str, wanted: set[str]) -> dict[str, ItemRecord]:
    return {record.id: record for record in system.run.records(system.cells[code]) if record.id in wanted}


def _same(record: ItemRecord, other: ItemRecord | None) -> ItemRecord | None:
    """Return the other record where it is of the same item: an id alone may name another one in another release."""
    return other if other is not None and other.inputs_digest == record.inputs_digest else None


def item_table(item: WorstItem) -> Table:
    """Return the item as a table: a row for each field, the gold answer, and each system."""
    rows = [*_fields(item), TableRow(label="gold", fields=(Field(parts=_gold(item)),))]
    for name, answer in item.answers:
        shown = Field(parts=_answer(item, answer)) if answer is not None else "does not have this item"
        rows.append(TableRow(label=name, fields=(shown,)))
        if answer is not None and item.kind == "token_tagging":
            rows[-1] = TableRow(label=name, fields=(Field(parts=_wrong_tags(item, answer), listed=True),))
    return Table(
        title=f"{item.title}, {item.language}, item {item.record.id[:200]}",
        rows=tuple(rows),
        words=frozenset({0}),
        style="item",
        anchor=item.anchor,
    )


def item_text(text: str, language: str | None) -> Parts:
    """Return a text of a data set or model, cut where it is very long."""
    if len(text) <= LONGEST:
        return (ItemText(text, language),)
    left = f" {len(text) - LONGEST:,} more characters are in the records."
    return (ItemText(text[:LONGEST], language), left)


def _fields(item: WorstItem) -> Iterator[TableRow]:
    """Yield the fields of the example in the order in which they are read; nothing for runs that kept none."""
    fields = dict(item.record.fields)
    fields.pop("id", None)
    inner = fields.pop("inputs", None)
    if isinstance(inner, Mapping):
        fields = {**inner, **fields}
    if "tokens" in fields and "text" in fields:
        fields.pop("text")
    ranked = sorted(fields, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))
    for name in ranked:
        value = " ".join(map(str, fields[name])) if name == "tokens" else fields[name]
        listed = isinstance(value, list) and all(isinstance(part, str) for part in value)
        if value not in (None, ""):
            texts = value if listed else [value if isinstance(value, str) else _json(value)]
            parts = tuple(part for text in texts for part in item_text(text, item.language))
            yield TableRow(label=name, fields=(Field(parts=parts, listed=listed),))


def _gold(item: WorstItem) -> Parts:
    gold = item.record.reference
    if item.kind == "token_tagging":
        return (f"{len(gold):,} tags; those that a system has wrong stand below",)
    if isinstance(gold, Mapping) and "targets" in gold:
        return item_text(" ".join(map(str, gold["targets"])), None)
    return _plain(gold, item.language)


def _plain(value: Any, language: str) -> Parts:
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        parts = [part for text in value[:CANDIDATES] for part in ("; ", *item_text(text, language))]
        return tuple(parts[1:])
    return item_text(value, language) if isinstance(value, str) else item_text(_json(value), None)


def _answer(item: WorstItem, answer: ItemRecord) -> Parts:
    prediction = answer.prediction
    parts: list[str | ItemText] = []
    if isinstance(prediction, Mapping) and "candidates" in prediction:
        rank = first_rank(prediction, answer.reference) or 0
        whole = len(prediction["candidates"]) + len(prediction.get("further", ()))
        place = f"the first right one has rank {rank}" if rank <= whole else f"none right within {whole}"
        names = " ".join(map(str, prediction["candidates"][:CANDIDATES]))
        parts += [f"{place}; first: ", *item_text(names, None)]
    elif isinstance(prediction, Mapping):
        answers = ("label", "text", "candidate", "spans")
        shown = next((prediction[name] for name in answers if name in prediction), None)
        parts += ["no answer"] if shown in (None, "") else _plain(shown, item.language)
        sure = confidence_of(prediction)
        parts += [] if sure is None else [f" confidence {percent(sure)} %"]
        if prediction.get("raw") is not None:
            parts += [" written: ", *item_text(str(prediction["raw"]), item.language)]
    else:
        parts += _plain(prediction, item.language)
    return (*parts, *_scores(answer))


def _scores(answer: ItemRecord) -> Iterator[str]:
    """Yield the scores that are those of this item; sums of set-level metrics mean nothing to a reader."""
    scores = " ".join(
        f"{name} {percent(value)}"
        for name, value in answer.scores.items()
        if isinstance(value, int | float) and name != "accuracy"
    )
    flags = ", ".join(name for name, held in answer.flags.items() if held)
    if scores or flags:
        yield f" {scores}{f' ({flags})' if flags else ''}"


def _wrong_tags(item: WorstItem, answer: ItemRecord) -> Parts:
    tokens = item.record.fields.get("tokens") or []
    tags = answer.prediction if isinstance(answer.prediction, list) else []
    wrong: list[str | ItemText] = []
    for number, (gold, given) in enumerate(zip(answer.reference, tags, strict=False)):
        if gold != given:
            token = tokens[number] if number < len(tokens) else f"token {number + 1}"
            wrong.append(ItemText(f"{token}: {given}, not {gold}", item.language))
    missing = len(answer.reference) - len(tags)
    wrong += [f"{missing} tags are missing"] if missing > 0 else []
    return tuple(wrong) or ("all tags right",)


def item_blocks(
    items: Mapping[str, Sequence[WorstItem]], names: Mapping[str, str], faults: Sequence[str]
) -> list[Block]:
    """Return the worst items of the languages that have a page as a table that leads to them.

    Args:
        items: By language.
        names: Of the languages that have a page.
        faults: What could not be read.
    """
    rows = [
        TableRow(
            label=Field(text=item.record.id[:60], href=f"#{item.anchor}"),
            fields=(item.title, names[code], _fault_text(item)),
        )
        for code, own in items.items()
        for item in own
        if code in names
    ]
    rows.sort(key=lambda row: str(row.fields[0]))
    heads = ("task", "language", "how wrong")
    table = Table(title=CAPTION, corner="item", heads=heads, rows=tuple(rows), words=frozenset({0, 1, 2}))
    return [*([table] if rows else []), *([Notes(faults)] if faults else [])]


def _fault_text(item: WorstItem) -> str:
    record = item.record
    sure, rank = confidence_of(record.prediction), first_rank(record.prediction, record.reference)
    if rank is not None:
        return f"first right candidate at rank {rank} or later"
    if item.kind == "token_tagging":
        wrong = sum(gold != given for gold, given in zip(record.reference, record.prediction, strict=False))
        return f"{wrong} of {len(record.reference)} tags wrong"
    if item.kind in CLASSIFYING:
        return "wrong" if sure is None else f"wrong with confidence {sure * 100:.0f} %"
    scores = [
        f"{name} {percent(value)}" for name, value in record.scores.items() if isinstance(value, int | float)
    ]
    return " ".join(scores) or "wrong"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
