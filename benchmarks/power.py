"""Power of planned comparisons by simulation: python -m benchmarks.power [--draws N].

Each row draws data sets in which two systems differ by the difference that ``harness plan --power`` prints for them,
and counts how many tests find it: 80 % should. The seeds are fixed.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.measuring import record
from harness.statistics import (
    Codes,
    detectable_difference,
    needed_groups,
    paired_difference,
    paired_sd,
    sign_flip_p,
)
from harness.statistics.significance import mean_sd

Floats = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, float, tuple[int, ...]], Floats]
"""Draws the difference of two systems on each of so many items, with a true difference."""
NOMINAL, TOLERANCE, ALPHA = 0.8, 0.03, 0.05
FLIPS = 999
"""Random signs of a permutation test: a tenth of those of ``harness compare``."""
SPREAD = 0.2
"""Of continuous differences."""
ICC, SIZE = 0.3, 5
"""Of the items of a cluster."""
APART = "for comparison:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Two systems on the items of some languages, and the difference that is planned for."""

    sizes: tuple[int, ...]
    """Independent draws in each language; those of a parallel task once."""
    difference: float
    draw: Draw
    languages: int = 1
    """That share the draws of a parallel task."""
    members: int = 1
    """Items of a draw."""


def _binary(score: float, correlation: float) -> Draw:
    """Return how two systems around a score differ on items, whose answers have the correlation that is possible."""

    def draw(random: np.random.Generator, difference: float, shape: tuple[int, ...]) -> Floats:
        low, high = score - difference / 2, score + difference / 2
        both = low * high + correlation * math.sqrt(low * (1 - low) * high * (1 - high))
        both = min(both, low)
        place = random.random(shape)
        # Both right; only the second right; only the first right; both wrong.
        return ((place >= both) & (place < high)).astype(np.float64) - (
            (place >= high) & (place < high + low - both)
        )

    return draw


def _continuous(sd: float) -> Draw:
    def draw(random: np.random.Generator, difference: float, shape: tuple[int, ...]) -> Floats:
        return random.normal(difference, sd, shape)

    return draw


def _alike(sd: float, correlation: float) -> Draw:
    """Return differences of which those of the same draw, the last dimension, have a correlation."""

    def draw(random: np.random.Generator, difference: float, shape: tuple[int, ...]) -> Floats:
        shared = random.normal(0, math.sqrt(correlation), (*shape[:-1], 1))
        return difference + sd * (shared + random.normal(0, math.sqrt(1 - correlation), shape))

    return draw


def _alike_binary(random: np.random.Generator, difference: float, shape: tuple[int, ...]) -> Floats:
    """Return answers of which a share is those of the whole cluster: the correlation of its items."""
    own = _binary(0.5, 0.5)
    whole = own(random, difference, (*shape[:-1], 1))
    return np.where(random.random(shape) < math.sqrt(ICC), whole, own(random, difference, shape))


def _one(items: int, sd: float, draw: Draw, members: int = 1) -> Study:
    found = detectable_difference(sd, items)
    assert found is not None
    return Study(sizes=(items,), difference=found, draw=draw, members=members)


def _apart(sizes: tuple[int, ...], sd: float, draw: Draw) -> Study:
    found = detectable_difference(mean_sd([sd] * len(sizes), sizes), sum(sizes))
    assert found is not None
    return Study(sizes=sizes, difference=found, draw=draw)


def _needed_items(difference: float, sd: float, draw: Draw) -> Study:
    return Study(sizes=(needed_groups(sd, difference),), difference=difference, draw=draw)


def _needed_languages(difference: float, items: int, sd: float, draw: Draw) -> Study:
    languages = needed_groups(sd / math.sqrt(items), difference, draws=items)
    return Study(sizes=(items,) * languages, difference=difference, draw=draw)


def _parallel(items: int, languages: int, sd: float, correlation: float) -> Study:
    found = detectable_difference(sd, items)
    assert found is not None
    return Study(sizes=(items,), difference=found, draw=_alike(sd, correlation), languages=languages)


HALF = paired_sd(0.5, 0.5)
CLUSTERED = math.sqrt((1 + (SIZE - 1) * ICC) / SIZE)
"""Deviation of the mean of a cluster, in that of an item."""
ROWS: Mapping[str, Study] = {
    **{f"{n} items, continuous": _one(n, SPREAD, _continuous(SPREAD)) for n in (8, 16, 32, 100, 500)},
    **{f"{n} items, 0/1": _one(n, HALF, _binary(0.5, 0.5)) for n in (100, 500)},
    "40 clusters of 5": _one(40, SPREAD * CLUSTERED, _alike(SPREAD, ICC), SIZE),
    "8 clusters of 5": _one(8, SPREAD * CLUSTERED, _alike(SPREAD, ICC), SIZE),
    "40 clusters of 5, 0/1": _one(40, HALF * CLUSTERED, _alike_binary, SIZE),
    "4 languages of 50 items": _apart((50,) * 4, SPREAD, _continuous(SPREAD)),
    "4 languages of 50 items, 0/1": _apart((50,) * 4, HALF, _binary(0.5, 0.5)),
    "4 languages of 20, 50, 100 and 400 items": _apart((20, 50, 100, 400), SPREAD, _continuous(SPREAD)),
    "4 parallel languages, 50 items, all alike": _parallel(50, 4, SPREAD, 1.0),
    "needed items, 0/1": _needed_items(0.05, HALF, _binary(0.5, 0.5)),
    "needed items, continuous": _needed_items(0.2, SPREAD, _continuous(SPREAD)),
    "needed languages of 50 items, 0/1": _needed_languages(0.05, 50, HALF, _binary(0.5, 0.5)),
    "needed languages of 50 items, continuous": _needed_languages(0.02, 50, SPREAD, _continuous(SPREAD)),
    **{f"{APART} {n} items, 0/1": _one(n, HALF, _binary(0.5, 0.5)) for n in (8, 16, 32)},
    f"{APART} 60 items, 85 % right": _one(60, paired_sd(0.85, 0.5), _binary(0.85, 0.5)),
    f"{APART} 4 languages of 4, 8, 12 and 16 items": _apart((4, 8, 12, 16), SPREAD, _continuous(SPREAD)),
    f"{APART} needed languages of 5 items": _needed_languages(0.05, 5, SPREAD, _continuous(SPREAD)),
    f"{APART} 40 clusters of 5, assumed all alike": _one(40, SPREAD, _alike(SPREAD, ICC), SIZE),
    f"{APART} 4 parallel languages, correlation 0.5": _parallel(50, 4, SPREAD, 0.5),
}


def seen(study: Study, draws: int, seed: int = 25) -> tuple[float, float]:
    """Return how often the interval is above 0, and how often the permutation test finds the difference."""
    random, found = np.random.default_rng(seed), np.zeros(2)
    total, members = sum(study.sizes), study.languages * study.members
    strata: Codes = np.repeat(np.arange(len(study.sizes), dtype=np.int64), study.sizes).repeat(members)
    codes: Codes = np.repeat(np.arange(total, dtype=np.int64), members)
    if study.languages > 1:
        strata = np.tile(np.arange(study.languages, dtype=np.int64), total)
    weights = (1 / np.bincount(strata))[strata]
    for turn in range(draws):
        differences = study.draw(random, study.difference, (total, members)).ravel()
        interval = paired_difference(differences, strata, codes)
        weighted = differences * weights
        if weighted.sum() > 0:
            found[0] += interval.low is not None and interval.low > 0
            found[1] += sign_flip_p(weighted, codes, draws=FLIPS, seed=turn) < ALPHA
    interval_share, permutation_share = (found / draws).tolist()
    return interval_share, permutation_share


def main(arguments: list[str] | None = None) -> None:
    """Print a row for each plan; end with status 1 where one is more than 3 points from 80 %."""
    parser = argparse.ArgumentParser(description="Power of planned comparisons.")
    parser.add_argument("--draws", type=int, default=2_000, help="simulated data sets for each row")
    given = parser.parse_args(arguments)
    started, outside = time.perf_counter(), []
    print(
        f"| plan | difference | interval above 0, of {given.draws:,} | permutation p < 0.05 |\n|---|---|---|---|"
    )
    for name, study in ROWS.items():
        interval, permutation = seen(study, given.draws)
        print(f"| {name} | {study.difference * 100:.1f} | {interval:.1%} | {permutation:.1%} |", flush=True)
        if abs(interval - NOMINAL) > TOLERANCE and not name.startswith(APART):
            outside.append(name)
    print(f"\n{time.perf_counter() - started:.0f} s")
    record("plans whose power is outside of 77 to 83 %", len(outside), 0)
    if outside:
        raise SystemExit(f"Outside of 77 to 83 %: {'; '.join(outside)}.")


if __name__ == "__main__":
    main()
