"""Which cells of two runs answer the same question, and why others cannot be compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from harness import Run
from harness.analysis import System, SystemGroup, group_systems
from harness.storage import CellResult

Key = tuple[str, str | None, int | None, str]
"""Task, protocol, seed, and the whole view as JSON: the same in both runs where cells are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One task under one protocol, seed and view, in two runs."""

    task: str
    title: str
    """The task with what distinguishes it from the other pairs of the gate."""
    group: SystemGroup | None
    """The systems of the base run and of the new one; None where one of them finished nothing of it."""
    languages: tuple[str, ...]
    """All that one of the runs finished or the base run planned, as far as its data are there."""
    reasons: Mapping[str, str]
    """By language: why it cannot be compared."""


@dataclass(frozen=True, slots=True)
class _Side:
    cells: Mapping[Key, Mapping[str, CellResult]]
    systems: Mapping[Key, tuple[SystemGroup, System]]


def find_pairs(base: Run, new: Run) -> tuple[list[Pair], list[str]]:
    """Return every task of the base run with its counterpart, and notes on what only the new run has.

    Raises:
        DataError: Where nothing distinguishes two cells of a run.
    """
    old, other = _read(base), _read(new)
    keys = [
        key for key, cells in old.cells.items() if any(cell.status != "skipped" for cell in cells.values())
    ]
    extra = sorted({key[0] for key in other.systems} - {key[0] for key in keys})
    notes = [f"Not compared, as the base run does not have them: {', '.join(extra)}."] if extra else []
    return [_pair(key, keys, old, other) for key in keys], notes


def _read(run: Run) -> _Side:
    cells: dict[Key, dict[str, CellResult]] = {}
    for cell in run.cells:
        cells.setdefault(_key(cell), {})[cell.language] = cell
    has_any = any(cell.status == "ok" for cell in run.cells)
    systems = {
        _key(next(iter(system.cells.values()))): (group, system)
        for group in (group_systems([run], least=1) if has_any else [])
        for system in group.systems
    }
    return _Side(cells, systems)


def _key(cell: CellResult) -> Key:
    return cell.task, cell.protocol, cell.seed, json.dumps(cell.view, sort_keys=True)


def _pair(key: Key, keys: list[Key], old: _Side, other: _Side) -> Pair:
    ours, theirs = old.cells[key], other.cells.get(key, {})
    languages = [
        code
        for code in dict.fromkeys([*ours, *theirs])
        if any(code in side and side[code].status != "skipped" for side in (ours, theirs))
    ]
    reasons = {code: reason for code in languages if (reason := _reason(ours.get(code), theirs.get(code)))}
    others = [", ".join(_conditions(own)) for own in other.cells if own[0] == key[0]]
    if not theirs and others:
        reasons = dict.fromkeys(languages, f"the new run has it only with {' and with '.join(others)}")
    group = None
    if key in old.systems and key in other.systems:
        declared, first = old.systems[key]
        systems = (first, other.systems[key][1])
        group = SystemGroup(task=declared.task, view=declared.view, systems=systems)
    title = _title(key, keys)
    return Pair(task=key[0], title=title, group=group, languages=tuple(languages), reasons=reasons)


def _title(key: Key, keys: list[Key]) -> str:
    """Return ``xnli (seed=2)``: the task with the conditions that differ among the pairs of this task."""
    others = [set(_conditions(other)) for other in keys if other[0] == key[0]]
    parts = [part for part in _conditions(key) if any(part not in other for other in others)]
    return f"{key[0]} ({', '.join(parts)})" if parts else key[0]


def _conditions(key: Key) -> list[str]:
    view = [f"{name}={value}" for name, value in json.loads(key[3]).items()]
    return [str(key[1]), f"seed={key[2]}", *view]


def _reason(old: CellResult | None, new: CellResult | None) -> str:
    """Return why two cells cannot be compared; empty where they can."""
    for cell, where in ((old, "base run"), (new, "new run")):
        if cell is None:
            return f"the {where} does not have it"
        if cell.status != "ok":
            return f"{cell.status} in the {where}: {cell.reason or 'no reason was recorded'}"
    assert old is not None
    assert new is not None
    if old.version != new.version:
        return f"the task has version {old.version} in the base run and {new.version} in the new one"
    if (old.split, old.stands_in) != (new.split, new.stands_in):
        return f"the base run has the split {old.split!r}, the new one {new.split!r}"
    if old.pool and new.pool and old.pool.get("digest") != new.pool.get("digest"):
        return "the candidates that were searched are not the same"
    return ""
