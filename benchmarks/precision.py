"""Requests that a smaller sample saves at the same half-width: python -m benchmarks.precision [RUN ...] [--cheap RUN].

For every task of finished runs, three ways to evaluate a part of the items are compared. `plain`: items in random order
until the half-width is reached. `source`: the scores of the source language, of which more items are evaluated, as a
control variate of each other language. `cheap`: those of a cheap model, which answers all items (prediction-powered
inference: Angelopoulos et al. 2023, arXiv 2301.09633; with the tuned weight of PPI++, arXiv 2311.01453, which is the
regression coefficient where the sampled items are among all). The real items with their clusters are the population,
from which each draw takes a test set of the same size with replacement; so the truth is known. Without runs, the
population is simulated. The seeds are fixed.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from scipy.special import stdtrit

from harness.statistics import mean_of_codes
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
NORMAL = 1.959963984540054
LOOKS = [math.ceil(100 * 1.5**step) for step in range(24)]
"""Sizes of the sample at which the half-width is looked at."""
SEED = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """The item scores of a language with the same items' scores that may serve as a covariate."""

    code: str
    scores: Floats
    codes: Codes
    covariates: Mapping[str, Floats]
    """`source` and `cheap`, where they are known."""


def regression_interval(
    scores: Floats, covariate: Floats, codes: Codes, size: int
) -> tuple[float, float, float]:
    """Return the mean score and the ends of its 95 % interval, from the first `size` items and the covariate of all.

    With the least-squares slope b of the sampled items, the estimate is mean_n(y) + b (mean_N(x) - mean_n(x)). An item
    adds (y - mean_n(y) - b (x - mean_n(x))) / n where it is sampled, and b (x - mean_N(x)) / N in any case; SE^2 is
    the sum of the squares of its clusters' sums (double sampling: Cochran 1977, "Sampling Techniques", section 12.6).

    Args:
        scores: Shape (N,); those after the first `size` are not used.
        covariate: Shape (N,).
        codes: Shape (N,): the cluster of each item.
        size: n, the number of sampled items.
    """
    own, other = scores[:size], covariate[:size]
    deviations = other - other.mean()
    spread = float(deviations @ deviations)
    slope = float(deviations @ own) / spread if spread else 0.0
    value = float(own.mean() + slope * (covariate.mean() - other.mean()))
    parts = slope * (covariate - covariate.mean()) / len(covariate)
    parts[:size] += (own - own.mean() - slope * deviations) / size
    sampled = np.unique(codes[:size])
    groups = len(sampled)
    sums = np.bincount(codes, weights=parts)
    reach = float(stdtrit(groups - 2, 0.975)) * math.sqrt(
        groups / (groups - 2) * float(np.square(sums).sum())
    )
    return value, value - reach, value + reach


# Populations ------------------------------------------------------------------------------------------


def languages_of(run: Run, task: str, cheap: Run | None) -> list[Language]:
    """Return the languages of a task whose items have one score each, and the source's and the cheap model's scores."""
    [metric, *_] = run.manifest.tasks[task].headline
    tables = {cell.language: _scores(run, cell, metric) for cell in run.cells if _is_of(cell, task)}
    cheaper = (
        {}
        if cheap is None
        else {cell.language: _scores(cheap, cell, metric) for cell in cheap.cells if _is_of(cell, task)}
    )
    source = tables.get(run.manifest.tasks[task].source or "en")
    found = []
    for code, table in tables.items():
        ids = list(table)
        others = {"source": source if source is not tables[code] else None, "cheap": cheaper.get(code)}
        _, codes = np.unique([table[one][1] for one in ids], return_inverse=True)
        covariates = {
            name: np.array([other[one][0] for one in ids])
            for name, other in others.items()
            if other is not None and set(ids) <= set(other)
        }
        scores = np.array([table[one][0] for one in ids])
        found.append(Language(code=code, scores=scores, codes=codes, covariates=covariates))
    return found


def _is_of(cell: CellResult, task: str) -> bool:
    return cell.task == task and cell.is_scored


def _scores(run: Run, cell: CellResult, metric: str) -> dict[str, tuple[float, str]]:
    """Return the score and the cluster of every item by id; nothing for scores that are counts of a whole set."""
    found = {}
    for record in run.records(cell):
        value = record.scores.get(metric)
        if not isinstance(value, int | float):
            return {}
        found[record.id] = (float(value), record.cluster or record.id)
    return found


def simulated() -> list[Language]:
    """Return six languages of 2,000 items that share what makes them hard, and a cheap model that shares half of it."""
    random = np.random.default_rng(SEED)
    hardness = random.normal(0, 1.5, 2_000)
    cheap = (random.random(2_000) < _logistic(0.2 + hardness)).astype(np.float64)
    source = (random.random(2_000) < _logistic(1 + hardness)).astype(np.float64)
    own = [
        (random.random(2_000) < _logistic(ease + hardness)).astype(np.float64)
        for ease in (1, 0.5, 0, 0, -0.5)
    ]
    codes = np.arange(2_000)
    first = Language(code="en", scores=source, codes=codes, covariates={"cheap": cheap})
    return [
        first,
        *(
            Language(
                code=f"l{number}", scores=scores, codes=codes, covariates={"source": source, "cheap": cheap}
            )
            for number, scores in enumerate(own)
        ),
    ]


def _logistic(values: Floats) -> Floats:
    found: Floats = 1 / (1 + np.exp(-values))
    return found


# Requests ---------------------------------------------------------------------------------------------


def _effective(scores: Floats, codes: Codes) -> float:
    """Return the variance of the mean of n items times n: that of the items times the design effect of clusters."""
    interval = mean_of_codes(scores, codes)
    return len(scores) * (interval.se or 0.0) ** 2


def needed(language: Language, covariate: str | None, variance: float, known: float) -> float:
    """Return the items that reach a variance of the mean, given a covariate that is known of `known` items.

    With the correlation r it is s^2 (1 - r^2) / (v - r^2 s^2 / N), at most all items; without a covariate s^2 / v.
    """
    spread, size = _effective(language.scores, language.codes), len(language.scores)
    shared = 0.0 if covariate is None else _correlation(language, covariate) ** 2
    left = variance - shared * spread / known
    wanted = spread * (1 - shared) / left if left > 0 else float(size)
    return min(wanted, spread / variance, float(size))


def _correlation(language: Language, covariate: str) -> float:
    other = language.covariates[covariate]
    if not language.scores.std() or not other.std():
        return 0.0
    return float(np.corrcoef(language.scores, other)[0, 1])


def total(languages: Sequence[Language], way: str, variance: float) -> float:
    """Return the requests to the model itself over all languages; with `source`, at the best size of its sample."""
    if way != "source":
        return sum(
            needed(one, way if way in one.covariates else None, variance, len(one.scores))
            for one in languages
        )
    others = [language for language in languages if "source" in language.covariates]
    sources = [language for language in languages if "source" not in language.covariates]
    if len(sources) != 1:
        return math.nan
    least, most = needed(sources[0], None, variance, 1.0), len(sources[0].scores)
    sizes: list[float] = np.linspace(least, most, 50).tolist()
    return min(
        known + sum(needed(language, "source", variance, known) for language in others) for known in sizes
    )


# Draws ------------------------------------------------------------------------------------------------


def stopped(language: Language, way: str, half: float, random: np.random.Generator) -> tuple[int, bool]:
    """Return at how many items a drawn test set stopped, and whether its interval then held the truth."""
    groups = int(language.codes.max()) + 1
    members = np.argsort(language.codes, kind="stable")
    starts = np.searchsorted(language.codes[members], np.arange(groups + 1))
    chosen = random.integers(0, groups, groups)
    items = np.concatenate([members[starts[one] : starts[one + 1]] for one in chosen])
    codes = np.repeat(np.arange(groups), np.diff(starts)[chosen])
    order = random.permutation(len(items))
    scores, codes = language.scores[items][order], codes[order]
    covariate = language.covariates[way][items][order] if way in language.covariates else None
    truth = float(language.scores.mean())
    for look in [*(look for look in LOOKS if look < len(items)), len(items)]:
        if covariate is None or look == len(items):
            _, own = np.unique(codes[:look], return_inverse=True)
            found = mean_of_codes(scores[:look], own)
            low, high = found.low, found.high
        else:
            _, low, high = regression_interval(scores, covariate, codes, look)
        if low is not None and high is not None and ((high - low) / 2 <= half or look == len(items)):
            return look, low <= truth <= high
    return len(items), False


def rows(languages: Sequence[Language], half: float, draws: int) -> Iterator[list[str]]:
    """Yield a row per way: correlation, requests, what is saved of plain and of all items, stops, coverage."""
    variance = (half / NORMAL) ** 2
    every = sum(len(language.scores) for language in languages)
    plain = total(languages, "plain", variance)
    for way in ("plain", "source", "cheap"):
        own = [language for language in languages if way == "plain" or way in language.covariates]
        if not own:
            continue
        asked = total(languages, way, variance)
        random = np.random.default_rng(SEED)
        ends = [stopped(own[draw % len(own)], way, half, random) for draw in range(draws)]
        correlation = "" if way == "plain" else f"{fmean(_correlation(one, way) for one in own):.2f}"
        yield [
            *(way, correlation, f"{asked:,.0f} of {every:,}", f"{1 - asked / every:.0%}"),
            *(
                "" if way == "plain" else f"{1 - asked / plain:.0%}",
                f"{fmean(size for size, _ in ends):,.0f}",
            ),
            f"{fmean(held for _, held in ends):.1%}",
        ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table per half-width with a row per task and way."""
    parser = argparse.ArgumentParser(
        description="Requests that a smaller sample saves at the same half-width."
    )
    parser.add_argument(
        "runs", nargs="*", type=Path, help="finished runs; without them the population is simulated"
    )
    parser.add_argument("--cheap", type=Path, help="a run of a cheap model on the same items")
    parser.add_argument("--half-width", type=float, nargs="+", default=[2.0, 3.0, 5.0], help="in points")
    parser.add_argument(
        "--draws", type=int, default=2_000, help="drawn test sets per row, over the languages"
    )
    given = parser.parse_args(arguments)
    cheap = None if given.cheap is None else Run(given.cheap)
    found = [("simulated", simulated())] if not given.runs else []
    for path in given.runs:
        run = Run(path)
        for task in dict.fromkeys(cell.task for cell in run.cells if cell.is_scored):
            languages = languages_of(run, task, cheap)
            if languages and all(len(language.scores) for language in languages):
                found.append((f"{task}, {run.manifest.model}", languages))
    for half in given.half_width:
        table = Table("task", "way", "r", "requests", "saved", "of plain", "mean stop", "covered")
        table.title = f"half-width of {half:g} points in every language"
        for name, languages in found:
            for row in rows(languages, half / 100, given.draws):
                table.add_row(name, *row)
        Console(width=140).print(table)


if __name__ == "__main__":
    main()
