"""Which cells can be evaluated on samples that grow, and what a plan says of such samples."""

from __future__ import annotations

import math
from collections.abc import Iterator

from harness.errors import UsageError
from harness.planning.plan import Cell, Plan
from harness.planning.run_config import RunConfig

FEWEST = 20
"""Items of a cell that a budget must have at least: fewer say nothing about where more are needed."""
NORMAL = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


def can_be_sampled(cell: Cell) -> bool:
    """Return whether a cell is asked item by item: a probe learns from a test set's neighbours as a whole."""
    return cell.learning is None


def items_needed(precision: float, score: float = 0.5) -> int:
    """Return how many independent right or wrong answers have this half-width, in points, around an expected score.

    n = z^2 p (1 - p) / d^2, of the normal approximation; a score of 0.5 needs the most.
    """
    return math.ceil(score * (1 - score) * (100 * NORMAL / precision) ** 2) if precision else 0


def sampling_notes(config: RunConfig) -> Iterator[str]:
    """Yield the sentences of a plan on its samples."""
    if config.precision:
        yield (
            f"--precision {config.precision:g}: items are drawn until the 95 % interval reaches at most "
            f"{config.precision:g} points from the score; about {items_needed(config.precision):,} independent items "
            "per language where half of the answers are right, fewer elsewhere"
        )
    if config.budget:
        yield f"--budget {config.budget}: at most so many items in all cells together, more where scores vary more"


def check_budget(config: RunConfig, plan: Plan) -> None:
    """Raise `UsageError` where a budget cannot be kept, or is too small for its cells."""
    if config.budget is None:
        return
    advice = "Use --precision POINTS, which looks at every cell alone."
    if config.shard is not None:
        raise UsageError("--budget is spread over all cells, and --shard runs a part of them.", hint=advice)
    for cell in plan.cells:
        if not can_be_sampled(cell) or cell.spec.draw == "clusters":
            extent = "by whole test cases" if can_be_sampled(cell) else "as a whole"
            raise UsageError(
                f"--budget counts items, and {cell.spec.task!r} is evaluated {extent}.", hint=advice
            )
    if config.budget < FEWEST * len(plan.cells):
        raise UsageError(
            f"--budget {config.budget} is too small for {len(plan.cells)} cells, which need {FEWEST} items each.",
            hint=f"Give at least {FEWEST * len(plan.cells)}, or fewer languages.",
        )
