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
