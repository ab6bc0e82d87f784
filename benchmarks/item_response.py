"""Items that item response theory saves: python -m benchmarks.item_response [RUN ...] [--new RUN ...].

A 2PL model (Birnbaum 1968: the chance of a right answer is logistic(a (theta - b))) is fitted to the answers of
finished runs, by marginal maximum likelihood (the EM algorithm of Bock and Aitkin 1981). A new run answers n random
items. Its score on all items is estimated in three ways: `plain` is the mean of the n; `p-IRT` adds what the model
predicts for the other items; `gp-IRT` weighs both by their errors in the finished runs (Polo et al. 2024,
"tinyBenchmarks", arXiv 2402.14992). Each run is the new one in turn, or those of ``--new`` are, which may be of another
family. Without runs, answers are simulated. *saved*: the share of plain's items that are not needed for the same root
mean squared error. The seeds are fixed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from harness.storage.run_folder import Run

Floats = npt.NDArray[np.float64]
NODES: Floats = np.linspace(-4, 4, 41)
"""Abilities at which the standard normal distribution of runs is looked at."""
PRIOR: Floats = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum()
SLOPE_SD, HARDNESS_SD = 0.5, 2.0
"""Of the normal priors of log a and b: with few runs, an item that all get right has no maximum."""
ROUNDS, STEPS = 40, 3
NORMAL = 1.959963984540054
SEED = 25
WAYS = ("plain", "p-IRT", "gp-IRT")


@dataclass(frozen=True, slots=True)
class Items:
    """Items of the 2PL model: log slopes and hardnesses, each of shape (items,)."""

    log_slope: Floats
    hardness: Floats

    def chances(self, abilities: Floats) -> Floats:
        """Return the chance of a right answer, of shape (abilities, items)."""
        return _logistic(np.exp(self.log_slope) * (abilities[:, None] - self.hardness))


def _logistic(values: Floats) -> Floats:
    found: Floats = 1 / (1 + np.exp(-np.clip(values, -30, 30)))
    return found


def fit_items(answers: Floats) -> Items:
    """Return the items that fit answers of shape (runs, items), which are 0 or 1, by EM with Newton steps."""
    share = (answers.sum(axis=0) + 0.5) / (len(answers) + 1)
    items = Items(np.zeros(answers.shape[1]), np.log((1 - share) / share))
    for _ in range(ROUNDS):
        weights = _posteriors(items, answers)
        asked, right = weights.sum(axis=0)[:, None], weights.T @ answers
        for _ in range(STEPS):
            items = _newton(items, asked, right)
    return items


def _posteriors(items: Items, answers: Floats) -> Floats:
    """Return how likely each ability is for each run, of shape (runs, abilities)."""
    chances = np.clip(items.chances(NODES), 1e-9, 1 - 1e-9)
    logs = answers @ np.log(chances).T + (1 - answers) @ np.log1p(-chances).T + np.log(PRIOR)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    found: Floats = weights / weights.sum(axis=1, keepdims=True)
    return found


def _newton(items: Items, asked: Floats, right: Floats) -> Items:
    """Return the items after a Newton step (Fisher scoring) towards the maximum of the expected log posterior."""
    slope, chances = np.exp(items.log_slope), items.chances(NODES)
    far = NODES[:, None] - items.hardness
    rest, information = right - asked * chances, asked * chances * (1 - chances)
    gradient = np.stack(
        [
            (rest * slope * far).sum(axis=0) - items.log_slope / SLOPE_SD**2,
            -(rest * slope).sum(axis=0) - items.hardness / HARDNESS_SD**2,
        ]
    )
    first = (information * (slope * far) ** 2).sum(axis=0) + 1 / SLOPE_SD**2
    second = (information * slope**2).sum(axis=0) + 1 / HARDNESS_SD**2
    both = -(information * slope**2 * far).sum(axis=0)
    determinant = first * second - both**2
    step = np.stack(
        [(second * gradient[0] - both * gradient[1]), (first * gradient[1] - both * gradient[0])]
    ) / np.maximum(determinant, 1e-9)
    step = np.clip(step, -0.5, 0.5)
    return Items(items.log_slope + step[0], np.clip(items.hardness + step[1], -8, 8))


# A new run --------------------------------------------------------------------------------------------


def estimate(items: Items, answers: Floats, sampled: npt.NDArray[np.int64]) -> tuple[float, float]:
    """Return p-IRT's estimate of the mean of all answers from the sampled ones, and its standard error."""
    own = Items(items.log_slope[sampled], items.hardness[sampled])
    [weights] = _posteriors(own, answers[None, sampled])
    left = np.setdiff1d(np.arange(len(answers)), sampled)
    chances = Items(items.log_slope[left], items.hardness[left]).chances(NODES)
    sums, noise = chances.sum(axis=1), (chances * (1 - chances)).sum(axis=1)
    expected = float(weights @ sums)
    variance = float(weights @ (sums - expected) ** 2 + weights @ noise)
    return (float(answers[sampled].sum()) + expected) / len(answers), variance**0.5 / len(answers)


@dataclass(frozen=True, slots=True)
class Trial:
    """The errors of all ways in one draw, and whether the intervals of plain and p-IRT held the truth."""

    errors: tuple[float, float, float]
    held: tuple[bool, bool]


def trials(known: Floats, new: Floats, size: int, draws: int, random: np.random.Generator) -> Iterator[Trial]:
    """Yield draws of `size` items of a new run, whose answers to all items are known here as the truth."""
    items, total = fit_items(known), len(new)
    bias = _squared_error(items, known, size, random)
    truth, rest = float(new.mean()), 1 - size / total
    for _ in range(draws):
        sampled = random.permutation(total)[:size]
        plain = float(new[sampled].mean())
        spread = float(new[sampled].var(ddof=1)) / size * rest
        modelled, se = estimate(items, new, sampled)
        weight = bias / (bias + spread) if bias + spread else 0.0
        found = (plain, modelled, weight * plain + (1 - weight) * modelled)
        far = (NORMAL * spread**0.5, NORMAL * se)
        errors = (found[0] - truth, found[1] - truth, found[2] - truth)
        yield Trial(errors, (abs(errors[0]) <= far[0], abs(errors[1]) <= far[1]))


def _squared_error(items: Items, known: Floats, size: int, random: np.random.Generator) -> float:
    """Return the mean squared error of p-IRT over the finished runs, which gp-IRT takes for that of a new one."""
    total = known.shape[1]
    found = [
        estimate(items, own, random.permutation(total)[:size])[0] - own.mean()
        for own in known
        for _ in range(5)
    ]
    return float(np.mean(np.square(found)))


# Populations ------------------------------------------------------------------------------------------


def simulated() -> Iterator[tuple[str, Floats, Floats]]:
    """Yield finished and new answers: of 12 and 60 runs, and of new ones, for some of which other items are hard."""
    random = np.random.default_rng(SEED)
    items = Items(random.normal(0, 0.4, 1_000), random.normal(0, 1.2, 1_000))
    for runs in (12, 60):
        known = (random.random((runs, 1_000)) < items.chances(random.normal(size=runs))).astype(np.float64)
        for name, sd in (("2PL", 0.0), ("another family", 1.0)):
            hard = Items(items.log_slope, items.hardness + random.normal(0, sd, 1_000))
            new = (random.random((20, 1_000)) < hard.chances(random.normal(size=20))).astype(np.float64)
            yield f"simulated {name}, {runs} runs", known, new


def populations(runs: Sequence[Run], new: Sequence[Run]) -> Iterator[tuple[str, str, Floats, Floats]]:
    """Yield task, language, answers of finished runs and of new ones, on the items of all."""
    tables = [_answers(run) for run in [*runs, *new]]
    for key in tables[0]:
        if not all(key in table for table in tables):
            continue
        ids = sorted(set.intersection(*(set(table[key]) for table in tables)))
        rows = np.array([[table[key][one] for one in ids] for table in tables])
        if set(np.unique(rows)) <= {0.0, 1.0}:
            yield *key, rows[: len(runs)], rows[len(runs) :]


def _answers(run: Run) -> dict[tuple[str, str], Mapping[str, float]]:
    found: dict[tuple[str, str], Mapping[str, float]] = {}
    for cell in run.cells:
        if cell.is_scored:
            [metric, *_] = run.manifest.tasks[cell.task].headline
            scores = {record.id: record.scores.get(metric) for record in run.records(cell)}
            if all(isinstance(score, int | float) for score in scores.values()):
                found[cell.task, cell.language] = {one: float(score or 0) for one, score in scores.items()}
    return found


def row(parts: Sequence[tuple[Floats, Floats]], size: int, draws: int) -> list[str]:
    """Return the errors of all ways and what they save, over pairs of finished and new answers."""
    random = np.random.default_rng(SEED)
    found: list[Trial] = []
    for known, new in parts:
        if len(new):
            found += [trial for own in new for trial in trials(known, own, size, draws, random)]
        else:
            for place, own in enumerate(known):
                found += trials(np.delete(known, place, axis=0), own, size, draws, random)
    squares = np.mean(np.square([trial.errors for trial in found]), axis=0)
    held = np.mean([trial.held for trial in found], axis=0)
    return [
        *(f"{100 * value**0.5:.2f}" for value in squares),
        *(f"{1 - value / squares[0]:.0%}" for value in squares[1:]),
        *(f"{share:.1%}" for share in held),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row per task and sample size."""
    parser = argparse.ArgumentParser(description="Items that item response theory saves.")
    parser.add_argument(
        "runs", nargs="*", type=Path, help="finished runs; without them answers are simulated"
    )
    parser.add_argument(
        "--new", nargs="*", type=Path, default=[], help="new runs; by default each run in turn"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 100, 200])
    parser.add_argument("--draws", type=int, default=50, help="drawn samples per new run and language")
    given = parser.parse_args(arguments)
    groups: dict[str, list[tuple[Floats, Floats]]] = {}
    if given.runs:
        for task, _, known, new in populations([*map(Run, given.runs)], [*map(Run, given.new)]):
            groups.setdefault(task, []).append((known, new))
    else:
        groups = {name: [(known, new)] for name, known, new in simulated()}
    heads = ["task", "items", *(f"{way} error" for way in WAYS), *(f"{way} saved" for way in WAYS[1:])]
    table = Table(*heads, "plain covered", "p-IRT covered", title="Root mean squared errors in points")
    for name, parts in groups.items():
        for size in given.sizes:
            table.add_row(name, str(size), *row(parts, size, given.draws))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
