"""Declared things by name, each with the plugin that declared it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from harness.errors import DuplicateNameError, UnknownNameError

Item = TypeVar("Item")


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
