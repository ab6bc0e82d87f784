"""False and found change points of `harness compare --history`: python -m benchmarks.drift [--draws N].

Each series has 8 runs on the same 1,000 items. An item is right with a chance of its own, mostly near 0 or 1, so that
two runs differ in about one item of six. In a series that persists, an item is answered anew by a tenth of the runs
only. Five methods, of which all but the first shall find a change in at most 5 % of the constant series:

    neighbours    paired tests of neighbours, each at 5 %
    Holm          the same, corrected together
    Holm, first   paired tests of neighbours and of each run against the first, corrected together
    shuffling     binary segmentation, against shuffles of the runs of each item
    history       binary segmentation, against random signs of each item's departures: what the harness does
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from harness.statistics import change_points, holm, sign_flip_p

Floats = npt.NDArray[np.float64]
RUNS, ITEMS = 8, 1_000
SHUFFLES = 99
FLIPS = 999
LEVEL = 0.05
ANEW = 0.1
"""Chance of a new answer where answers persist."""
TRENDS = {
    "constant": np.zeros(RUNS),
    "constant, persists": np.zeros(RUNS),
    "step of 3 points at run 5": np.repeat([0.0, 0.03], 4),
    "step of 5 points at run 5": np.repeat([0.0, 0.05], 4),
    "drift of 0.7 points per run": np.arange(RUNS) * 0.007,
}
SENTENCES, CHUNKS, TASKS = 300, 3, 3
METHODS = ("neighbours", "Holm", "Holm, first", "shuffling", "history")


def main(argv: list[str] | None = None) -> None:
    """Print for every trend and method the share of series in which it finds a change."""
    parser = argparse.ArgumentParser(description="False and found change points.")
    parser.add_argument("--draws", type=int, default=2_000)
    given = parser.parse_args(argv)
    print(f"Series with a change, %, of {given.draws}; {RUNS} runs, {ITEMS:,} items")
    print(f"{'':<30}" + "".join(f"{name:>14}" for name in METHODS))
    for number, (name, trend) in enumerate(TRENDS.items()):
        random = np.random.default_rng([25, number])
        found = np.mean(
            [_found(random, trend, ANEW if "persists" in name else 1.0) for _ in range(given.draws)], axis=0
        )
        print(f"{name:<30}" + "".join(f"{share * 100:>14.1f}" for share in found))
    _further(given.draws)


def _further(draws: int) -> None:
    """Print in how many constant series of other scores the harness finds a change."""
    print(f"\nConstant series with a change by the harness, %, of {draws}")
    for number, (name, make) in enumerate(FURTHER.items()):
        random = np.random.default_rng([26, number])
        found = np.mean([bool(change_points(*make(random))) for _ in range(draws)])
        print(f"{name:<50}{found * 100:>6.1f}", flush=True)


def _chunk_f1(random: np.random.Generator, anew: float = 1.0) -> tuple[Floats, Floats]:
    """Return F1 of the chunks of sentences by run, and its replicates under random signs."""
    ease = random.beta(2, 1, SENTENCES)
    counts = np.empty((RUNS, SENTENCES, 3))
    for at in range(RUNS):
        right = random.binomial(CHUNKS, ease)
        own = np.stack([right, np.full_like(right, CHUNKS), right + random.poisson(1 - ease)], axis=1)
        counts[at] = own if at == 0 else np.where(random.random((SENTENCES, 1)) < anew, own, counts[at - 1])
    apart = (counts - counts.mean(axis=0)).transpose(1, 0, 2)
    signs = random.choice([-1.0, 1.0], size=(FLIPS, SENTENCES))
    drawn = (signs @ apart.reshape(SENTENCES, -1)).reshape(FLIPS, RUNS, 3) + counts.mean(axis=0).sum(axis=0)
    return _f1(counts.sum(axis=1)), _f1(drawn)


def _f1(sums: Floats) -> Floats:
    found: Floats = 2 * sums[..., 0] / (sums[..., 1] + sums[..., 2])
    return found


def _of_tasks(random: np.random.Generator, shared: bool) -> tuple[Floats, Floats]:
    """Return the mean of tasks by run, with the replicates of each task by signs of its own."""
    ease = random.beta(0.5, 0.3, ITEMS)
    luck = random.random((RUNS, ITEMS))
    found = []
    for _ in range(TASKS):
        own = luck if shared else random.random((RUNS, ITEMS))
        # Tasks with the same items are right on the same ones, but for a fifth.
        new = np.where(random.random((RUNS, ITEMS)) < 0.2, random.random((RUNS, ITEMS)), own)
        right = (new < ease).astype(np.float64)
        found.append((right.mean(axis=1), _signed(random, right)))
    return np.mean([own for own, _ in found], axis=0), np.mean([noise for _, noise in found], axis=0)


FURTHER: Mapping[str, Callable[[np.random.Generator], tuple[Floats, Floats]]] = {
    "chunk F1, 300 sentences": _chunk_f1,
    "chunk F1, 300 sentences, persists": lambda random: _chunk_f1(random, ANEW),
    "mean of 3 tasks": lambda random: _of_tasks(random, shared=False),
    "mean of 3 tasks with the same items": lambda random: _of_tasks(random, shared=True),
}


def _found(random: np.random.Generator, trend: Floats, anew: float) -> list[bool]:
    """Return by method whether it finds a change in one series."""
    ease = random.beta(0.5, 0.3, ITEMS)
    # A run that is better by x has each item right with the chance e + x (1 - e) / (1 - mean e).
    gain = (1 - ease) / (1 - ease.mean())
    right = (random.random((RUNS, ITEMS)) < ease + trend[:, None] * gain).astype(np.float64)
    for at in range(1, RUNS):
        right[at] = np.where(random.random(ITEMS) < anew, right[at], right[at - 1])
    codes = np.arange(ITEMS, dtype=np.int64)

    def p(first: int, second: int) -> float:
        return sign_flip_p(right[second] - right[first], codes, draws=FLIPS, seed=int(random.integers(2**31)))

    neighbours = [p(at - 1, at) for at in range(1, RUNS)]
    since_first = [p(0, at) for at in range(2, RUNS)]
    return [
        min(neighbours) <= LEVEL,
        float(holm(neighbours).min()) <= LEVEL,
        float(holm([*neighbours, *since_first]).min()) <= LEVEL,
        _has_split(right, _shuffled(random, right)),
        _has_split(right, _signed(random, right)),
    ]


def _has_split(right: Floats, noise: Floats) -> bool:
    return bool(change_points(right.mean(axis=1), noise))


def _shuffled(random: np.random.Generator, right: Floats) -> Floats:
    # Items that all runs answer alike add the same to every shuffle.
    mixed = right[:, (right.min(axis=0) != right.max(axis=0))]
    return np.stack([random.permuted(mixed, axis=0).sum(axis=1) / ITEMS for _ in range(SHUFFLES)])


def _signed(random: np.random.Generator, right: Floats) -> Floats:
    apart = right - right.mean(axis=0)
    signs = random.choice([-1.0, 1.0], size=(FLIPS, ITEMS))
    found: Floats = signs @ apart.T / ITEMS
    return found


if __name__ == "__main__":
    main()
