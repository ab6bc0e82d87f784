"""Divides the cells of a plan over machines: ``--shard 2/4`` takes the second of four parts.

Cells that share a fit stay together where the parts remain balanced, so that few models are trained twice.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections import Counter
from dataclasses import dataclass, replace

from harness.errors import UsageError
from harness.planning.plan import Cell, FitPlan, Plan

_FORM = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")
LEEWAY = 4
"""A cut moves by at most this fraction of a part (a quarter) to spare a fit from being trained on two machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """One of `count` parts of a plan, counted from 1."""

    index: int
    count: int

    def __str__(self) -> str:
        """Return ``2/4``."""
        return f"{self.index}/{self.count}"


def parse_shard(text: str) -> Shard:
    """Return the shard that a ``--shard`` value names; raises `UsageError` for anything but I/N with I from 1 to N."""
    match = _FORM.fullmatch(text.strip())
    index, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= index <= count:
        raise UsageError(
            f"--shard {text} names no part; expected I/N with I from 1 to N, such as 2/4 for the second of four."
        )
    return Shard(index=index, count=count)


def plan_digest(plan: Plan) -> str:
    """Return the SHA-256 (hexadecimal) of the identities of all cells, in the plan's order."""
    identities = [cell.identity() for cell in plan.cells]
    text = json.dumps(identities, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def take_shard(plan: Plan, shard: Shard, *, may_be_empty: bool = False) -> Plan:
    """Return a plan with the cells of one shard, in their order; skipped cells and notes stay whole.

    Its `shard` says which cells the whole plan has, so that the runs of all shards can be merged; every cell
    is in exactly one shard. Raises `UsageError` where there are more shards than cells, unless `may_be_empty`: a
    baseline can have fewer cells than the model.
    """
    if shard.count > len(plan.cells) and not may_be_empty:
        raise UsageError(
            f"--shard {shard} divides {len(plan.cells)} cells into {shard.count} parts, so that some are empty.",
            hint=f"Use at most {len(plan.cells)} parts.",
        )
    shard_of = _parts(plan, shard.count)
    record = {
        "shard": str(shard),
        "plan": plan_digest(plan),
        "plan_cells": [
            {**cell.identity(), "digest": cell.digest, "shard": shard_of[cell.digest]} for cell in plan.cells
        ],
    }
    cells = tuple(cell for cell in plan.cells if shard_of[cell.digest] == shard.index)
    return replace(plan, cells=cells, shard=record)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFit:
    """A fit that several shards of a plan need."""

    fit: FitPlan
    shards: tuple[int, ...]
    """Counted from 1."""
    alone: Shard
    """The shard of the plan, divided into single cells, that needs this fit and no other."""


def shared_fits(plan: Plan, count: int) -> list[SharedFit]:
    """Return the fits that several of `count` shards need: at most one fewer than there are shards."""
    shard_of = _parts(plan, count)
    shared, before = [], 0
    for fit, cells in plan.groups():
        shards = tuple(sorted({shard_of[cell.digest] for cell in cells}))
        if fit is not None and len(shards) > 1:
            alone = Shard(index=before + 1, count=len(plan.cells))
            shared.append(SharedFit(fit=fit, shards=shards, alone=alone))
        before += len(cells)
    return shared


def shard_sizes(plan: Plan, count: int) -> list[int]:
    """Return how many cells each of `count` shards has."""
    sizes = Counter(_parts(plan, count).values())
    return [sizes[number] for number in range(1, count + 1)]


def _parts(plan: Plan, count: int) -> dict[str, int]:
    """Return the shard (from 1) of every cell, by the cell's digest."""
    ordered: list[Cell] = []
    ends: list[int] = []
    free = 0
    for fit, cells in plan.groups():
        ordered += cells
        ends.append(len(ordered))
        if fit is None:
            free = len(ordered)
    cuts = [_cut(number, count, ends, free) for number in range(count + 1)]
    return {
        cell.digest: number
        for number, (start, stop) in enumerate(itertools.pairwise(cuts), start=1)
        for cell in ordered[start:stop]
    }


def _cut(number: int, count: int, ends: list[int], free: int) -> int:
    """Return how many cells lie before the end of a shard; the first `free` cells need no fit and divide anywhere."""
    total = ends[-1] if ends else 0
    even = number * total // count
    reach = total // (count * LEEWAY)
    near = [end for end in ends if abs(end - even) <= reach]
    if number in (0, count) or even <= free or not near:
        return even
    return min(near, key=lambda end: (abs(end - even), end))
