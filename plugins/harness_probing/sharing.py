"""The test items of several problems, sentence by sentence, so that a sentence that they share is read once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping

from harness_probing.conversion import ProbeItem, Words

__all__ = ["Block", "shared_blocks"]

BLOCK = 512
"""Sentences that are given to the model at a time."""
WINDOW = 4_096
"""Items of each problem that wait for another problem to come to the same sentence."""

Block = list[tuple[Words, list[tuple[str, ProbeItem]]]]
"""Sentences with the items of all problems that read them."""


class _Waiting:
    """The next items of one problem, by their sentence."""

    def __init__(self, items: Iterable[ProbeItem]) -> None:
        self._items = iter(items)
        self._held: dict[Words, list[ProbeItem]] = {}
        self._count = 0

    def fill(self) -> bool:
        """Read on until the window is full; return whether there is any item."""
        for item in itertools.islice(self._items, max(0, WINDOW - self._count)):
            self._held.setdefault(item.words, []).append(item)
            self._count += 1
        return bool(self._held)

    def first(self, count: int) -> list[Words]:
        """Return the sentences that come next."""
        return list(itertools.islice(self._held, count))

    def take(self, words: Words) -> list[ProbeItem]:
        """Return the items of a sentence, which wait no longer."""
        taken = self._held.pop(words, [])
        self._count -= len(taken)
        return taken


def shared_blocks(problems: Mapping[str, Iterable[ProbeItem]]) -> Iterator[Block]:
    """Yield all items of all problems once, those of the same sentence together where they are not far apart."""
    waiting = {name: _Waiting(items) for name, items in problems.items()}
    while True:
        leads = [own for own in waiting.values() if own.fill()]
        if not leads:
            return
        yield [
            (words, [(name, item) for name, own in waiting.items() for item in own.take(words)])
            for words in leads[0].first(BLOCK)
        ]
