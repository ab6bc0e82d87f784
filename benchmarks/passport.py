"""Coverage of judged scores that a passport corrects: python -m benchmarks.passport [--draws N].

Populations are simulated: people say yes to an item with a chance of its own, and the judge agrees with them with the
chance in the first column, but says yes too often. 2,000 answers are judged and people label some of them. Three 95 %
intervals of the share of yes that people would give to all: the judge's own, that of the labelled answers alone, and
the corrected one. Shown are the share that holds the truth, and the mean width in points.
"""

from __future__ import annotations

import argparse

import numpy as np
import numpy.typing as npt

from harness.statistics import seed_of
from harness_judge.passport import PoweredEstimate, clustered_estimate, corrected_mean, moments

Floats = npt.NDArray[np.float64]
JUDGED = 2_000
SIZES = (30, 100, 300)
AGREEMENT = (0.95, 0.8, 0.6, 0.5)
LENIENT = 0.3
"""Share of wrong verdicts that would be no, and are yes."""
METHODS = ("judge", "people", "corrected")


def population(random: np.random.Generator, size: int, agreement: float) -> tuple[Floats, Floats]:
    """Return what people and the judge say of answers, as 0 and 1: two arrays of shape (size,)."""
    people = random.random(size) < random.beta(1.2, 1.8, size)
    judge = np.where(random.random(size) < agreement, people, ~people)
    judge |= (judge != people) & (random.random(size) < LENIENT)
    return people.astype(np.float64), judge.astype(np.float64)


def intervals(people: Floats, judge: Floats, labelled: int) -> dict[str, PoweredEstimate]:
    """Return the three estimates from the first answers' labels and the verdicts on all; items are no clusters."""
    codes = np.arange(len(people))
    first, others = codes[:labelled], codes[: len(people) - labelled]
    own = moments(people[:labelled], judge[:labelled], first)
    return {
        "judge": clustered_estimate(judge, codes),
        "people": clustered_estimate(people[:labelled], first),
        "corrected": corrected_mean(own, judge[labelled:], others)[0],
    }


def coverage(agreement: float, labelled: int, draws: int) -> dict[str, tuple[float, float]]:
    """Return by method the share of draws whose interval holds the truth, and the mean width.

    The truth is the expected share of yes; an estimate without an interval holds nothing and is left out of the width.
    """
    random = np.random.default_rng(seed_of("passport", str(agreement), str(labelled)))
    truth = 1.2 / 3.0
    hits: dict[str, list[bool]] = {name: [] for name in METHODS}
    widths: dict[str, list[float]] = {name: [] for name in METHODS}
    for _ in range(draws):
        for name, estimate in intervals(*population(random, JUDGED, agreement), labelled).items():
            ends = estimate.ci
            hits[name].append(ends is not None and ends[0] <= truth <= ends[1])
            widths[name] += [] if ends is None else [ends[1] - ends[0]]
    return {name: (float(np.mean(hits[name])), float(np.mean(widths[name]))) for name in METHODS}


def main(argv: list[str] | None = None) -> None:
    """Print the coverage and width of every interval."""
    parser = argparse.ArgumentParser(description="Coverage of corrected judged scores.")
    parser.add_argument("--draws", type=int, default=2_000)
    given = parser.parse_args(argv)
    print(
        f"Intervals that hold the truth, %, and their mean width in points; {given.draws} draws, {JUDGED:,} judged"
    )
    print(f"{'judge agrees':<14}{'labelled':>8}" + "".join(f"{name:>18}" for name in METHODS))
    for agreement in AGREEMENT:
        for labelled in SIZES:
            found = coverage(agreement, labelled, given.draws)
            cells = "".join(f"{100 * hit:>10.1f}{100 * width:>8.1f}" for hit, width in found.values())
            print(f"{100 * agreement:<14.0f}{labelled:>8}{cells}")


if __name__ == "__main__":
    main()
