"""Declared things by name, each with the plugin that declared it; rows of tables, and values grouped by a key."""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from importlib import resources
from typing import Generic, TypeVar

from harness.errors import DuplicateNameError, UnknownNameError

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


def grouped(pairs: Iterable[tuple[Key, Item]]) -> dict[Key, list[Item]]:
    """Return the second ones of pairs by the first ones, in the order in which they come."""
    groups: dict[Key, list[Item]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return groups


def distinguishing(parts: Iterable[str], peers: Iterable[Collection[str]]) -> list[str]:
    """Return those of the parts of a description that some peer, of which it may be one, does not have."""
    descriptions = list(peers)
    return [part for part in parts if any(part not in peer for peer in descriptions)]


def table_rows(package: str, name: str) -> list[dict[str, str]]:
    """Return the rows of a file of tab-separated values in a package; lines that begin with ``#`` are comments."""
    text = resources.files(package).joinpath(name).read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


class NamedTable(Generic[Item]):
    """Declared things of one sort by name, each with the plugin it came from.

    A name that two strangers declared cannot be used: `get` raises and names both. Other names are not affected.
    """

    def __init__(
        self,
        sort: str,
        pairs: Iterable[tuple[str, str, Item]],
        *,
        families: Mapping[str, Callable[[str], Item]] | None = None,
    ) -> None:
        """Take (plugin, name, thing) triples; a family makes the things whose names begin with ``FAMILY:``."""
        self.sort = sort
        self._families = families or {}
        self._items: dict[str, tuple[str, Item]] = {}
        self.conflicts: dict[str, tuple[str, str]] = {}
        for plugin, name, item in pairs:
            if name in self._items:
                self.conflicts[name] = (self._items[name][0], plugin)
            else:
                self._items[name] = (plugin, item)

    def __iter__(self) -> Iterator[Item]:
        """Iterate over the things, by name."""
        return (self._items[name][1] for name in sorted(self._items))

    def __contains__(self, name: str) -> bool:
        return name in self._items or self._family(name) is not None

    def __len__(self) -> int:
        return len(self._items)

    @property
    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._items)

    def get(self, name: str) -> Item:
        """Return the thing of a name; raises `UnknownNameError` with near names, or `DuplicateNameError`."""
        family = self._family(name)
        if family is not None:
            return family(name)
        if name not in self._items:
            raise UnknownNameError(self.sort, name, self._items)
        if name in self.conflicts:
            raise DuplicateNameError(self.sort, name, *self.conflicts[name])
        return self._items[name][1]

    def _family(self, name: str) -> Callable[[str], Item] | None:
        prefix, colon, suffix = name.partition(":")
        return self._families.get(prefix) if colon and suffix else None

    def plugin_of(self, name: str) -> str:
        """Return the name of the plugin that declared it."""
        self.get(name)
        return self._items[name][0]
