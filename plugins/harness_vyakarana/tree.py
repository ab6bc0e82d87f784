"""Trees as lists of the heads of their words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = ["children_of", "depth", "tree_faults"]


def tree_faults(heads: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Yield (0-based position of a word, message) for faults of heads that are not one rooted tree.

    `heads[i]` is the id of the head of the word with id i + 1, 0 for the root, and at most len(heads).
    """
    roots = [position for position, head in enumerate(heads) if head == 0]
    if not roots:
        yield 0, "expected one root, found none"
    for position in roots[1:]:
        yield position, f"expected one root, found a second (the first is word {roots[0] + 1})"
    reached = [False] * (len(heads) + 1)
    reached[0] = True
    for start in range(1, len(heads) + 1):
        if reached[start]:
            continue
        path: list[int] = []
        on_path: set[int] = set()
        node = start
        while not reached[node] and node not in on_path:
            path.append(node)
            on_path.add(node)
            node = heads[node - 1]
        if node in on_path:
            cycle = path[path.index(node) :]
            yield cycle[0] - 1, "the heads form a cycle: " + " -> ".join(map(str, [*cycle, cycle[0]]))
        for passed in path:
            reached[passed] = True


def children_of(heads: Sequence[int]) -> list[list[int]]:
    """Return the ids of the dependents of every id, in their order; index 0 has the root."""
    children: list[list[int]] = [[] for _ in range(len(heads) + 1)]
    for identifier, head in enumerate(heads, start=1):
        children[head].append(identifier)
    return children


def depth(heads: Sequence[int]) -> int:
    """Return the number of edges on the longest path from the root word down to a leaf."""
    distances = [-1] * (len(heads) + 1)
    distances[0] = -1
    longest = 0
    for start in range(1, len(heads) + 1):
        path: list[int] = []
        node = start
        while node and distances[node] < 0:
            path.append(node)
            node = heads[node - 1]
        distance = distances[node] if node else -1
        for passed in reversed(path):
            distance += 1
            distances[passed] = distance
        longest = max(longest, distances[start])
    return longest
