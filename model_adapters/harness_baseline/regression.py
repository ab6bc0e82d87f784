"""Linear models over sparse features, trained by AdaGrad in seeded mini-batches.

Two losses: the multinomial logit, where one row belongs to one of several classes, and the conditional logit
(McFadden, 1974), where one row of a group of rows is the right one. AdaGrad (Duchi, Hazan and Singer, 2011,
"Adaptive Subgradient Methods for Online Learning and Stochastic Optimization") fits sparse features, because
a feature that is seen rarely keeps a large step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness import TrainingError, TrainingSettings

__all__ = ["BUCKETS", "Schedule", "SparseRows", "fit_conditional", "fit_multinomial", "group_starts", "score"]

BUCKETS = 1 << 18
"""Number of hash buckets of the fitted linear models."""

MAX_PASSES = 5

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseRows:
    """Rows of sparse features: row i has the features ``ids[starts[i]:starts[i + 1]]``; no row is empty."""

    ids: Integers
    """Shape (features of all rows,): buckets in [0, BUCKETS)."""
    values: Floats
    """Shape (features of all rows,)."""
    starts: Integers
    """Shape (rows + 1,)."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def of_table(cls, ids: Integers) -> SparseRows:
        """Return rows that have the same number of features each, all with the value 1; `ids` is (n, f)."""
        count, width = ids.shape
        return cls(
            ids=ids.reshape(-1),
            values=np.ones(count * width, dtype=np.float32),
            starts=np.arange(count + 1, dtype=np.int64) * width,
        )

    @classmethod
    def of_lists(cls, rows: Sequence[tuple[Integers, Floats]]) -> SparseRows:
        """Return rows given as pairs of (ids, values)."""
        sizes = [len(ids) for ids, _ in rows]
        return cls(
            ids=np.concatenate([ids for ids, _ in rows]) if rows else np.zeros(0, dtype=np.int64),
            values=np.concatenate([values for _, values in rows]) if rows else np.zeros(0, dtype=np.float32),
            starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        )

    def take(self, rows: Integers) -> SparseRows:
        """Return the rows with these indices, in this order."""
        sizes = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        where = np.arange(starts[-1]) + np.repeat(self.starts[:-1][rows] - starts[:-1], sizes)
        return SparseRows(ids=self.ids[where], values=self.values[where], starts=starts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How long and how fast a model is trained."""

    passes: int
    """Passes over the data; there are more of them where they would give fewer than `min_steps` steps."""
    seed: int
    batch: int
    """Rows (multinomial) or groups (conditional) per step."""
    rate: float
    decay: float = 0.0
    """L2 penalty, applied to the weights that a step touches."""
    min_steps: int = 150
    """A few dozen examples fit into one step: with fewer steps the model would learn almost nothing from them."""
    max_steps: int | None = None

    @classmethod
    def of_settings(
        cls, settings: TrainingSettings, seed: int, *, batch: int, rate: float, decay: float = 0.0
    ) -> Schedule:
        """Return the schedule that training settings ask for.

        The epochs are rounded up and held between 1 and `MAX_PASSES`, because these models have converged by
        then; `max_steps` is kept. The settings' learning rate and batch size are for neural networks and are
        not used.
        """
        passes = min(max(math.ceil(settings.epochs), 1), MAX_PASSES)
        return cls(
            passes=passes, seed=seed, batch=batch, rate=rate, decay=decay, max_steps=settings.max_steps
        )

    def steps(self, count: int) -> int:
        """Return the number of steps over `count` rows or groups."""
        wanted = max(self.passes * math.ceil(count / self.batch), self.min_steps)
        return wanted if self.max_steps is None else min(wanted, self.max_steps)


def score(rows: SparseRows, weights: Floats) -> Floats:
    """Return the scores of all rows, shape (rows, outputs), for weights of shape (BUCKETS, outputs)."""
    if not len(rows):
        return np.zeros((0, weights.shape[1]), dtype=np.float32)
    products = weights[rows.ids] * rows.values[:, None]
    sums: Floats = np.add.reduceat(products, rows.starts[:-1], axis=0)
    return sums


def group_starts(sizes: Sequence[int]) -> Integers:
    """Return where each group of rows begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def fit_multinomial(rows: SparseRows, classes: Integers, weights: Floats, schedule: Schedule) -> None:
    """Train `weights`, of shape (BUCKETS, number of classes), in place; `classes` holds one class per row."""

    def step(batch: Integers) -> tuple[SparseRows, Floats]:
        part = rows.take(batch)
        logits = score(part, weights)
        logits -= logits.max(axis=1, keepdims=True)
        slope = np.exp(logits)
        slope /= slope.sum(axis=1, keepdims=True)
        slope[np.arange(len(batch)), classes[batch]] -= 1
        return part, slope

    _descend(len(rows), step, weights, schedule)


def fit_conditional(
    rows: SparseRows, groups: Integers, right: Integers, weights: Floats, schedule: Schedule
) -> None:
    """Train `weights`, of shape (BUCKETS, 1), in place.

    `groups` says where each group of rows begins (`group_starts`), `right` which of its rows is the right
    one.
    """

    def step(batch: Integers) -> tuple[SparseRows, Floats]:
        sizes = np.diff(groups)[batch]
        begins = np.cumsum(sizes) - sizes
        members = np.arange(int(sizes.sum())) + np.repeat(groups[:-1][batch] - begins, sizes)
        part = rows.take(members)
        logits = score(part, weights)[:, 0]
        logits -= np.repeat(np.maximum.reduceat(logits, begins), sizes)
        slope = np.exp(logits)
        slope /= np.repeat(np.add.reduceat(slope, begins), sizes)
        slope[begins + right[batch]] -= 1
        return part, slope[:, None]

    _descend(len(groups) - 1, step, weights, schedule)


def _descend(
    count: int, step: Callable[[Integers], tuple[SparseRows, Floats]], weights: Floats, schedule: Schedule
) -> None:
    squares = np.zeros_like(weights)
    for batch in _batches(count, schedule):
        rows, slope = step(batch)
        ids, gradient = _gradient(rows, slope)
        gradient += np.float32(schedule.decay) * weights[ids]
        squares[ids] += gradient**2
        weights[ids] -= np.float32(schedule.rate) * gradient / (np.sqrt(squares[ids]) + np.float32(1e-6))
    if not np.isfinite(weights).all():
        raise TrainingError("The training of the baseline diverged: a weight is not finite.")


def _batches(count: int, schedule: Schedule) -> Iterator[Integers]:
    generator = np.random.Generator(np.random.PCG64(schedule.seed))
    steps = schedule.steps(count)
    while True:
        order = generator.permutation(count)
        for begin in range(0, count, schedule.batch):
            if steps == 0:
                return
            steps -= 1
            yield order[begin : begin + schedule.batch]


def _gradient(rows: SparseRows, slope: Floats) -> tuple[Integers, Floats]:
    """Return the touched buckets and the gradient of the summed loss there."""
    order = np.argsort(rows.ids, kind="stable")
    ids = rows.ids[order]
    sizes = np.diff(rows.starts)
    owner = np.repeat(np.arange(len(rows)), sizes)[order]
    terms = slope[owner] * rows.values[order, None]
    begins = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    sums: Floats = np.add.reduceat(terms, begins, axis=0)
    return ids[begins], sums
