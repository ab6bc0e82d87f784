"""Finds logged items among those of our specs: by id, else by text."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from harness import MissingDataError, UnknownNameError, UsageError
from harness.data import DataFinder, Example, FoundData, find_split
from harness.kinds import ReadContext, TaskKind, read_examples
from harness.registry import Registry
from harness.specs import Catalog, TaskEntry
from harness_import.logged import LoggedCell, LoggedItem, texts_of

LABELS: Final = frozenset({"sequence_classification", "multiple_choice"})
SPANS: Final = "span_extraction"
NUMBERS: Final = "numeric_answer"
_AGREEING: Final = 0.9
"""Share of the items whose logged right answer must mean the same label: releases differ in a few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecItems:
    """The test items of one of our tasks in a language."""

    entry: TaskEntry
    kind: TaskKind
    data: FoundData
    examples: Sequence[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedItem:
    """A logged item that is one of ours, with its answers in our form."""

    item: LoggedItem
    example: Any
    prediction: Mapping[str, Any]
    """The answer as metrics of the kind read it: ``label``, ``text`` or ``value``."""
    reference: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class CellMatch:
    """The items of a logged cell that are ours, and the others."""

    spec_items: SpecItems | None
    matched: Sequence[MatchedItem]
    others: Sequence[LoggedItem]
    note: str
    """What is to be said of this cell alone; nothing where all items are ours."""


class ItemMatcher:
    """Matches logged cells with our tasks, whose test data a finder reads once.

    Args:
        catalog: Has the specs.
        registry: Has the kinds.
        finder: Finds the data; without one nothing is matched.
        names: A log's name of a task, with or without its language, -> ours.
    """

    def __init__(
        self, catalog: Catalog, registry: Registry, finder: DataFinder | None, names: Mapping[str, str]
    ) -> None:
        for task in names.values():
            if task not in catalog.names("task"):
                raise UnknownNameError("task", task, catalog.names("task"))
        self._catalog, self._registry, self._finder, self._names = catalog, registry, finder, names
        self._items: dict[tuple[str, str], SpecItems | str] = {}

    def check_names(self, cells: Sequence[LoggedCell]) -> None:
        """Raise `UnknownNameError` for a name that no cell has."""
        existing = {name for cell in cells for name in (cell.task, cell.logged_name) if name}
        for name in self._names:
            if name not in existing:
                raise UnknownNameError("task of these logs", name, existing)

    def match(self, cell: LoggedCell) -> CellMatch:
        """Return which items of a cell are ours.

        None are where the answers do not become ours without doubt: the right answers must mean the same labels, and
        an answer be right exactly where the log says so.
        """
        name = self._names.get(cell.logged_name) or self._names.get(cell.task, cell.task)
        if self._finder is None or name not in self._catalog.names("task"):
            return _apart(cell, "")
        key = (name, cell.language)
        if key not in self._items:
            self._items[key] = self._read(*key)
        ours = self._items[key]
        if isinstance(ours, str):
            return _apart(cell, f"{cell.title}: {ours}.")
        pairs = _pairs(cell.items, ours)
        matched = _translated(pairs, ours)
        if isinstance(matched, str) or not matched:
            reason = matched or f"no item has the id and texts of an item of {name!r}"
            return _apart(cell, f"{cell.title}: {reason}: kept apart.")
        ids = {each.item.id for each in matched}
        others = [item for item in cell.items if item.id not in ids]
        rest = f"{cell.title}: {len(matched)} of {len(cell.items)} items are those of {name!r}; others are kept apart."
        return CellMatch(spec_items=ours, matched=matched, others=others, note=rest if others else "")

    def _read(self, name: str, language: str) -> SpecItems | str:
        entry = self._catalog.task(name)
        spec = entry.spec
        source = spec.source(language, "test") if language in spec.languages else None
        if spec.kind not in {*LABELS, SPANS, NUMBERS} or spec.axes or source is None:
            return f"items of {name!r} cannot be matched in this language or kind"
        assert self._finder is not None
        folder = entry.folders.get(language)
        try:
            data = find_split(self._finder, source, name, entry.languages.get(language), "test", folder, {})
        except MissingDataError as error:
            return f"the data of {name!r} are not at hand ({error})"
        kind = self._registry.kinds.get(spec.kind)
        context = ReadContext.of_test(spec, language, data.label_map)
        return SpecItems(
            entry=entry, kind=kind, data=data, examples=read_examples(kind, self._finder.rows(data), context)
        )


def _apart(cell: LoggedCell, note: str) -> CellMatch:
    return CellMatch(spec_items=None, matched=(), others=cell.items, note=note)


def task_names(pairs: Sequence[str]) -> dict[str, str]:
    """Return the names of tasks of ``NAME=TASK``; raises `UsageError` for anything else."""
    names = dict(pair.partition("=")[::2] for pair in pairs)
    for name, task in names.items():
        if not name or not task:
            raise UsageError(f"--as {name!r} is not of the form NAME=TASK, such as --as xnli_sw=xnli.")
    return names


def _normal(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _pairs(items: Sequence[LoggedItem], ours: SpecItems) -> list[tuple[LoggedItem, Example]]:
    """Return every logged item with the item of ours that has all its texts, each of ours once.

    An equal id decides between several; it is enough where the log has no texts at all.
    """
    texts_of_kind = ours.kind.texts
    assert texts_of_kind is not None
    wanted = [
        frozenset(map(_normal, filter(None, texts_of_kind(example, ours.entry.spec))))
        for example in ours.examples
    ]
    by_text: dict[str, list[int]] = defaultdict(list)
    for place, texts in enumerate(wanted):
        by_text[max(texts, key=len, default="")].append(place)
    by_id = {example.id: place for place, example in enumerate(ours.examples)}
    left = set(range(len(wanted)))
    pairs = []
    for item in items:
        logged = set(map(_normal, texts_of([dict(item.fields), list(item.choices)])))
        same_id = by_id.get(str(item.fields.get("id", item.id)))
        if not logged:
            places = [same_id] if same_id is not None else []
        else:
            places = [place for text in logged for place in by_text.get(text, ()) if wanted[place] <= logged]
            places = places or _contained(logged, wanted)
            places.sort(key=lambda place: (place != same_id, place))
        free = next((place for place in places if place in left), None)
        if free is not None:
            left.remove(free)
            pairs.append((item, ours.examples[free]))
    return pairs


def _contained(logged: set[str], wanted: Sequence[frozenset[str]]) -> list[int]:
    """Return the one item whose texts are all in the longest logged text, a prompt; none where several are."""
    prompt = max(logged, key=len)
    places = [place for place, texts in enumerate(wanted) if texts and all(text in prompt for text in texts)]
    return places if len({wanted[place] for place in places}) == 1 else []


def _translated(pairs: Sequence[tuple[LoggedItem, Any]], ours: SpecItems) -> list[MatchedItem] | str:
    """Return the items with answers in our form, or why that cannot be known."""
    reference_of, kind = ours.kind.reference, ours.entry.spec.kind
    triples = [(item, example, reference_of(example)) for item, example in pairs]
    meaning = _meaning(triples) if kind in LABELS else {}
    if meaning is None:
        return "its right answers are not those of our labels, one for one"
    agreeing = sum(_has_gold(item.gold, reference) for item, _, reference in triples)
    if kind not in LABELS and agreeing < _AGREEING * len(triples):
        return "its right answers are not ours"
    matched = []
    for item, example, own_reference in triples:
        answer, reference = item.answer, own_reference
        prediction: dict[str, Any] = {"text": item.answer or ""}
        if kind in LABELS:
            answer, reference = (_label(value, example, meaning) for value in (item.answer, item.gold))
            if reference is None or (answer is None and item.answer is not None):
                return f"the answer {item.answer!r} is none of our labels by what the right answers show"
            prediction = {"label": answer}
        elif kind == NUMBERS:
            answer = prediction["value"] = None if item.answer is None else _number(item.answer)
        if kind != SPANS and (answer == reference) != (next(iter(item.scores.values())) == 1.0):
            return f"the score of the item {item.id!r} is not whether its answer is the right one"
        matched.append(MatchedItem(item=item, example=example, prediction=prediction, reference=reference))
    return matched


def _has_gold(gold: str | None, reference: Any) -> bool:
    """Return whether a logged right answer is our number, or holds one of our right texts."""
    if gold is None or reference is None:
        return False
    if isinstance(reference, list):
        return any(_normal(text) in _normal(gold) for text in reference)
    return bool(_number(gold) == reference)


def _number(text: str) -> str | None:
    """Return a number in plain digits; None for a text that is none."""
    digits = text.strip().rstrip(".").replace(",", "")
    if not re.fullmatch(r"[-+]?\d+(\.\d+)?", digits):
        return None
    return f"{Decimal(digits):f}".rstrip("0").rstrip(".") if "." in digits else str(int(digits))


def _meaning(triples: Sequence[tuple[LoggedItem, Any, Any]]) -> dict[str, str] | None:
    """Return from a logged right answer to our label; None where that is not one for one."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for item, _, reference in triples:
        if item.gold is None or reference is None:
            return None
        counts[item.gold][str(reference)] += 1
    meaning = {value: labels.most_common(1)[0][0] for value, labels in counts.items()}
    agreeing = sum(counts[value][label] for value, label in meaning.items())
    is_one_for_one = len(set(meaning.values())) == len(meaning)
    return meaning if is_one_for_one and agreeing >= _AGREEING * len(triples) else None


def _label(value: str | None, example: Any, meaning: Mapping[str, str]) -> str | None:
    """Return the label of a logged answer by the right answers, or the answer itself where it is a label."""
    if value is None:
        return None
    if value in meaning:
        return meaning[value]
    labels = tuple(getattr(example, "labels", ())) or tuple(getattr(example, "names", ()))
    return value if value in labels else None
