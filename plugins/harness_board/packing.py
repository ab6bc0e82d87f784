"""The rows of a diagnosis and their examples as a page holds them: names once, buckets as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

__all__ = ["packed"]

SHARED = ("kind", "task", "language", "system", "systems", "attribute", "metric")
OWN = ("bucket", "n", "value", "values", "ci", "difference", "p", "q", "examples")
DIGITS = 5
MOST_TEXT = 500_000
"""Characters of examples on a page. Every bucket gets its first example before any gets its second."""


def packed(rows: Sequence[Mapping[str, Any]], examples: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``diagnosis``, one entry per group of buckets, and ``examples``, which buckets name by their place."""
    places = {key: place for place, key in enumerate(_affordable(rows, examples))}
    groups = []
    for shared, found in groupby(rows, key=lambda row: [row.get(name) for name in SHARED]):
        own = list(found)
        columns = [name for name in OWN if any(row.get(name) is not None for row in own)]
        buckets = [[_short(_placed(row.get(name), places) if name == "examples" else row.get(name)) for name in columns]
                   for row in own]  # fmt: skip
        about = {name: value for name, value in zip(SHARED, shared, strict=True) if value is not None}
        groups.append({**about, "columns": columns, "buckets": buckets})
    return {"diagnosis": groups, "examples": [examples[key] for key in places]}


def _affordable(rows: Sequence[Mapping[str, Any]], examples: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the keys of the examples that are kept: the first ones of all buckets, then the second ones."""
    kept: dict[str, None] = {}
    left = MOST_TEXT
    named = [
        [key for key in row.get("examples") or () if isinstance(key, str) and key in examples] for row in rows
    ]
    for turn in range(max(map(len, named), default=0)):
        for keys in named:
            if turn >= len(keys) or keys[turn] in kept:
                continue
            left -= len(str(examples[keys[turn]]))
            if left < 0:
                return list(kept)
            kept[keys[turn]] = None
    return list(kept)


def _placed(names: Sequence[Any] | None, places: Mapping[str, int]) -> list[Any]:
    """Return the places of examples; one that a row holds itself stays as it is."""
    return [
        name if isinstance(name, dict) else places[name]
        for name in names or ()
        if isinstance(name, dict) or name in places
    ]


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DIGITS)
    return [_short(item) for item in value] if isinstance(value, list | tuple) else value
