"""Whether the items of a language are those of the same ids in the language that a parallel task is paired with.

What is paired by id (intervals of means, comparisons, gaps) would be a wrong number where the ids mean other items.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from harness.data.sources import DataFinder, FoundData, find_split
from harness.errors import HarnessError, MissingDataError
from harness.kinds.kind import ReadContext, TaskKind, iter_examples
from harness.registry.registry import Registry
from harness.specs.schema import Source, TaskSpec, source_language
from harness.specs.task_entry import TaskEntry

SHOWN = 3
"""Ids that a sentence names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemIds:
    """The ids of a split, in the order of its file."""

    ids: Sequence[str]
    numbered: bool
    """Whether the file has no ids, so that items are named by their number."""


def pairing_order(entry: TaskEntry) -> list[str]:
    """Return the languages that others of a task are compared with, the first found counts: the source first.

    Languages that fragments added come last, and those that pair with no other not at all.
    """
    spec = entry.spec
    source = source_language(spec)
    codes = [code for code in spec.languages if spec.pairs(code)]
    return sorted(codes, key=lambda code: (code != source, code in entry.added))


def is_numbered(found: FoundData, finder: DataFinder) -> bool:
    """Return whether the rows of a split have no ids, so that its items are named by their number."""
    first = next(iter(finder.rows(found)), None)
    return first is not None and "id" not in first.fields


def read_ids(found: FoundData, spec: TaskSpec, kind: TaskKind, finder: DataFinder, language: str) -> ItemIds:
    """Return the ids of a test split; raises `DataError` as reading its items does."""
    context = ReadContext.of_test(spec, language, found.label_map)
    plain = found.untranslated
    ids = [example.id for example in iter_examples(kind, partial(finder.rows, plain), context)]
    return ItemIds(ids=ids, numbered=is_numbered(plain, finder))


def stands_for_source(spec: TaskSpec, language: str) -> bool:
    """Return whether every item of a task is also in a language: in the source, or in any if the task has no source.

    Of two other languages each may have items that the other does not have, as in MLQA.
    """
    source = source_language(spec)
    return language == source or source not in spec.languages


def misalignment(own: ItemIds, other: ItemIds, other_language: str, *, whole: bool = True) -> str | None:
    """Return how ids fail to be those of another language's items, as a clause; None where they do not.

    A language may have fewer items than the other where its file has ids; where either file has no ids, a number means
    the same item only if both have as many.

    Args:
        own: The language's ids.
        other: Those of the language that it is compared with.
        other_language: The code of that language.
        whole: Whether that language has all items of the task (`stands_for_source`); else one common id is enough.
    """
    other_ids = set(other.ids)
    strange = [identifier for identifier in own.ids if identifier not in other_ids]
    if strange and (whole or len(strange) == len(own.ids)):
        return (
            f"{len(strange):,} of its {len(own.ids):,} ids are not among the {len(other_ids):,} of {other_language!r} "
            f"(first: {_named(strange)}; there: {_named(other.ids)})"
        )
    if (own.numbered or other.numbered) and len(own.ids) != len(other.ids):
        return (
            f"it has {len(own.ids):,} items and {other_language!r} {len(other.ids):,}, and without ids in the files a "
            "number names the same item only where both have as many"
        )
    return None


def _named(ids: Iterable[str]) -> str:
    first = list(ids)[:SHOWN]
    return ", ".join(map(repr, first))


class AlignmentCheck:
    """Finds, before a run, languages of fragments whose items are not those that they would be paired with."""

    def __init__(self, registry: Registry, finder: DataFinder) -> None:
        self._registry = registry
        self._finder = finder
        self._ids: dict[str, ItemIds | None] = {}

    def reason(
        self,
        entry: TaskEntry,
        code: str,
        *,
        variant: str | None = None,
        conditions: Mapping[str, str] | None = None,
    ) -> str | None:
        """Return why a language cannot be paired with the others, and what to do; None where it can.

        Only languages that fragments added are looked at: each is compared with the first of `pairing_order` whose
        items are found. Where those cannot be read, their own cells report it.
        """
        if code not in entry.added or not entry.spec.pairs(code):
            return None
        ours = self._read(entry, code, variant, conditions)
        for reference in pairing_order(entry) if ours is not None else ():
            theirs = None if reference == code else self._read(entry, reference, variant, conditions)
            if ours is None or theirs is None:
                continue
            fault = misalignment(ours, theirs, reference, whole=stands_for_source(entry.spec, reference))
            return (
                None
                if fault is None
                else f"{_opening(entry, code, reference)}: {fault}. {_advice(entry, code, reference)}"
            )
        return None

    def _read(
        self, entry: TaskEntry, code: str, variant: str | None, conditions: Mapping[str, str] | None
    ) -> ItemIds | None:
        spec = entry.spec
        source = _test_source(spec, code, variant)
        if source is None:
            return None
        language, folder = entry.languages.get(code), entry.folders.get(code)
        try:
            split = find_split(self._finder, source, spec.task, language, "test", folder, conditions or {})
            key = f"{spec.task}:{split.digest()}"
            if key not in self._ids:
                kind = self._registry.kinds.get(spec.kind)
                self._ids[key] = read_ids(split, spec, kind, self._finder, code)
        except MissingDataError:
            return None
        except HarnessError:
            self._ids[key] = None
        return self._ids[key]


def _test_source(spec: TaskSpec, code: str, variant: str | None) -> Source | None:
    original = spec.source(code, "test")
    version = None if variant is None else spec.variants.get(variant)
    return original if version is None else version.splits.get("test", original)


def _opening(entry: TaskEntry, code: str, other: str) -> str:
    document = entry.document_of(code)
    location = f"{document.source}:{document.line_of(['languages', code])}"
    return f"task {entry.spec.task!r} is parallel, and {code!r} ({location}) does not have the items of {other!r}"


def _advice(entry: TaskEntry, code: str, other: str) -> str:
    return (
        f"Give its items the ids of {other!r}, or write 'parallel: false' below {code!r} in "
        f"{entry.document_of(code).source}, which keeps it out of paired statistics"
    )
