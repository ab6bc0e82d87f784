"""The worst items, side by side for the systems of the given runs: inputs, gold answers, answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.analysis.systems import System, SystemGroup, group_systems
from harness.errors import HarnessError
from harness.reporting.html.layout import anchor
from harness.reporting.html.material import Material
from harness.reporting.html.severity import confidence_of, first_rank, worst
from harness.reporting.markup.element import Child, Element, element
from harness.reporting.markup.text import model_text
from harness.reporting.number import percent
from harness.storage.records import ItemRecord

__all__ = ["WorstItem", "item_element", "worst_items"]

ITEMS = 3
"""Items of a task and language."""
SYSTEMS = 4
"""Systems of a task that are shown side by side."""
LONGEST = 2_000
"""Characters of a text that the page holds; the records hold all."""
CANDIDATES = 5


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
    kind, headline = first.spec["kind"], first.spec["headline"]
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


def item_element(item: WorstItem) -> Element:
    """Return the item as a table: a row for each field, the gold answer, and each system."""
    record, language = item.record, item.language
    rows = [_row(name, value) for name, value in _fields(item)]
    rows.append(_row("gold", _gold(item)))
    for name, answer in item.answers:
        rows.append(_row(name, "does not have this item" if answer is None else _answer(item, answer)))
    label = f"{item.title}, {language}, item "
    return element(
        "table",
        element("caption", label, element("bdi", record.id[:200])),
        element("tbody", rows),
        class_="item",
        id=item.anchor,
    )


def _row(name: str, value: Child) -> Element:
    return element("tr", element("th", name, scope="row"), element("td", value))


def text_element(text: str, language: str | None) -> Element:
    """Return a text of a data set or model, cut where it is very long."""
    if len(text) <= LONGEST:
        return model_text(text, language)
    left = f" {len(text) - LONGEST:,} more characters are in the records."
    return element("div", model_text(text[:LONGEST], language), element("span", left, class_="soft"))


def _fields(item: WorstItem) -> Iterator[tuple[str, Child]]:
    """Yield the fields of the example in the order in which they are read; nothing for runs that kept none."""
    fields = dict(item.record.fields)
    fields.pop("id", None)
    inner = fields.pop("inputs", None)
    if isinstance(inner, Mapping):
        fields = {**inner, **fields}
    if "tokens" in fields and "text" in fields:
        fields.pop("text")
    order = ("premise", "hypothesis", "sentence1", "sentence2", "question", "query", "text", "context")
    ranked = sorted(fields, key=lambda name: (order.index(name) if name in order else len(order), name))
    for name in ranked:
        value = fields[name]
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            if name == "tokens":
                value = " ".join(value)
            else:
                yield name, element("ol", [element("li", text_element(p, item.language)) for p in value])
                continue
        if value not in (None, ""):
            yield name, text_element(value if isinstance(value, str) else _json(value), item.language)


def _gold(item: WorstItem) -> Child:
    gold = item.record.reference
    if item.kind == "token_tagging":
        return f"{len(gold):,} tags; those that a system has wrong stand below"
    if isinstance(gold, Mapping) and "targets" in gold:
        return text_element(" ".join(map(str, gold["targets"])), None)
    return _plain(gold, item.language)


def _plain(value: Any, language: str) -> Child:
    if isinstance(value, str):
        return text_element(value, language)
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        parts: list[Child] = []
        for text in value[:CANDIDATES]:
            parts += ["; ", text_element(text, language)] if parts else [text_element(text, language)]
        return parts
    return text_element(_json(value), None)


def _answer(item: WorstItem, answer: ItemRecord) -> Child:
    prediction = answer.prediction
    parts: list[Child] = []
    if item.kind == "token_tagging":
        parts.append(_wrong_tags(item, answer))
    elif isinstance(prediction, Mapping) and "candidates" in prediction:
        rank = first_rank(prediction, answer.reference)
        whole = len(prediction["candidates"]) + len(prediction.get("further", ()))
        place = (
            f"the first right one has rank {rank}" if (rank or 0) <= whole else f"none right within {whole}"
        )
        names = " ".join(map(str, prediction["candidates"][:CANDIDATES]))
        parts += [f"{place}; first: ", text_element(names, None)]
    elif isinstance(prediction, Mapping):
        shown = next(
            (prediction[name] for name in ("label", "text", "candidate", "spans") if name in prediction), None
        )
        parts.append("no answer" if shown in (None, "") else _plain(shown, item.language))
        sure = confidence_of(prediction)
        parts.append(
            None if sure is None else element("span", f" confidence {percent(sure)} %", class_="soft")
        )
        if prediction.get("raw") is not None:
            parts += [element("div", "written: ", text_element(str(prediction["raw"]), item.language))]
    else:
        parts.append(_plain(prediction, item.language))
    scores = _scores(answer)
    flags = ", ".join(name for name, held in answer.flags.items() if held)
    parts.append(
        element("span", f" {scores}" if scores else "", f" ({flags})" if flags else "", class_="soft")
    )
    return parts


def _scores(answer: ItemRecord) -> str:
    """Return the scores that are those of this item; sums of set-level metrics mean nothing to a reader."""
    return " ".join(
        f"{name} {percent(value)}"
        for name, value in answer.scores.items()
        if isinstance(value, int | float) and name != "accuracy"
    )


def _wrong_tags(item: WorstItem, answer: ItemRecord) -> Child:
    tokens = item.record.fields.get("tokens") or []
    tags = answer.prediction if isinstance(answer.prediction, list) else []
    wrong: list[Child] = []
    for number, (gold, given) in enumerate(zip(answer.reference, tags, strict=False)):
        if gold != given:
            token = tokens[number] if number < len(tokens) else f"token {number + 1}"
            shown: list[Child] = [text_element(str(token), item.language), f" {given}, not {gold}"]
            wrong.append(element("li", shown))
    missing = len(answer.reference) - len(tags)
    wrong += [element("li", f"{missing} tags are missing")] if missing > 0 else []
    return element("ul", wrong, class_="tags") if wrong else "all tags right"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
