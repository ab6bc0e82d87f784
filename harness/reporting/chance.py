"""Which cells are measurably above the score of guessing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.analysis.diagnosis import SIGNIFICANCE
from harness.reporting.column import cells_of
from harness.reporting.summary import Summary, chance_of
from harness.reporting.unreadable import is_unreadable
from harness.statistics import benjamini_hochberg
from harness.storage.results import MetricValue
from harness.storage.run_folder import Run

__all__ = ["AboveChance", "above_chance", "chance_p"]

BINOMIAL = "wilson"
"""How the interval of single right and wrong items was made: their number has a binomial distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AboveChance:
    """How many cells are measurably above chance."""

    above: int
    known: int
    """Cells with a score whose metric has a known chance."""


def above_chance(run: Run, summary: Summary) -> AboveChance:
    """Return how many cells of a run are above chance: Benjamini-Hochberg over the one-sided tests of all of them."""
    values = list(_tested(run, summary))
    rates = benjamini_hochberg(values).tolist() if values else []
    return AboveChance(above=sum(rate <= SIGNIFICANCE for rate in rates), known=len(values))


def _tested(run: Run, summary: Summary) -> Iterator[float]:
    for column in summary.columns:
        spec = run.manifest.tasks[column.task]
        chance = chance_of(spec, column.metric)
        if chance is None or column.key in summary.covered:
            continue
        for cell in cells_of(run, column):
            found = cell.metrics.get(column.metric)
            if found is not None and cell.status == "ok" and not is_unreadable(cell):
                yield chance_p(found, chance, cell.n)


def chance_p(score: MetricValue, chance: float, n: int) -> float:
    """Return the one-sided p of a score against that of guessing, from its own error.

    Single right and wrong items: the exact binomial test. Items that are all right: the chance of guessing every
    cluster. Others: t with one degree of freedom less than there are clusters. 1 where the error is not known.
    """
    from scipy.special import bdtrc, stdtr

    draws = score.clusters or n
    if score.value <= chance or draws < 2:
        return 1.0
    if score.ci_method == BINOMIAL:
        right = round(score.value * draws)
        return float(bdtrc(right - 1, draws, chance)) if right else 1.0
    if score.se == 0:
        return float(chance**draws) if score.value == 1.0 else 1.0
    if score.se is None:
        return 1.0
    return float(stdtr(draws - 1, (chance - score.value) / score.se))
