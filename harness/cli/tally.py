"""Progress of a run: finished and current work, and the time that the rest takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from harness.progress import CellOutcome, PlannedCell, PlannedFit


@dataclass(slots=True, kw_only=True)
class Step:
    """A piece of work that advances by units."""

    title: str
    total: int
    unit: str
    first: int
    """Units that were done when it began."""
    done: int
    started: float
    moved: float = 0.0
    """When a unit was done last; 0 before the first one."""

    @property
    def is_done(self) -> bool:
        """Whether all units are done, while what follows them, such as scoring, may still take time."""
        return 0 < self.total <= self.done

    def advance(self, count: int, now: float) -> None:
        """Count units that are done."""
        self.done, self.moved = self.done + count, now

    @property
    def share(self) -> float:
        """The part of it that is done; 0 where its total is not known."""
        return min(1.0, self.done / self.total) if self.total else 0.0

    def rate(self, now: float) -> float:
        """Return units per second."""
        return (self.done - self.first) / max(now - self.started, 1e-6)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLeft:
    """How long the rest of a run takes."""

    seconds: float
    """Of the cells, and of the trainings where one was measured."""
    fits: int
    """Trainings that nothing is known of."""


class Tally:
    """Follows what a run reports.

    Another thread may read it while it changes: what changes is replaced, or copied in one step before it is read.
    """

    def __init__(
        self,
        model: str = "",
        cells: Sequence[PlannedCell] = (),
        fits: Sequence[PlannedFit] = (),
        done: Sequence[CellOutcome] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.model = model
        self.cells = {cell.digest: cell for cell in cells}
        self.outcomes = {outcome.digest: outcome for outcome in done}
        """By digest: the cells that ended, in this order; first those of an earlier attempt."""
        self.cell: PlannedCell | None = None
        self.fit = ""
        """Title of the training that is under way."""
        self.step: Step | None = None
        self.status = ""
        self.status_since = clock()
        self.clock = clock
        self._least_left: TimeLeft | None = None
        self._fits = {fit.digest: fit for fit in fits}
        self._fits_done: frozenset[str] = frozenset()
        self._fit: PlannedFit | None = None
        self._began = 0.0
        self._cells_measured: dict[str, tuple[float, float]] = {}
        """By task: items of finished cells, and the seconds that they took."""
        self._fits_measured = (0.0, 0.0)
        """Sizes of finished trainings, and the seconds that they took."""

    def fit_started(self, digest: str, title: str) -> None:
        """Begin a training."""
        self.fit, self._fit, self._began = title, self._fits.get(digest), self.clock()
        self.step, self.status = None, ""

    def fit_finished(self, digest: str, *, failed: bool) -> None:
        """End a training; also one that another run made meanwhile, or that cannot begin."""
        if not failed and self._fit is not None and self._fit.digest == digest:
            size, seconds = self._fits_measured
            self._fits_measured = (size + self._fit.size, seconds + self.clock() - self._began)
        self._fits_done |= {digest}
        self.fit, self._fit, self.step, self.status = "", None, None, ""

    def cell_started(self, digest: str) -> None:
        """Begin a cell."""
        self.cell, self._began = self.cells.get(digest), self.clock()
        self.step, self.status = None, ""

    def cell_finished(self, outcome: CellOutcome) -> None:
        """End a cell."""
        cell = self.cell
        if cell is not None and cell.digest == outcome.digest and not outcome.failure:
            items, seconds = self._cells_measured.get(cell.task, (0.0, 0.0))
            measured = (items + outcome.items, seconds + self.clock() - self._began)
            self._cells_measured = {**self._cells_measured, cell.task: measured}
        self.outcomes[outcome.digest] = outcome
        self.cell, self.step, self.status = None, None, ""

    def start(self, title: str, total: int, unit: str, done: int) -> None:
        """Begin a piece of work."""
        self.status = ""
        self.step = Step(title=title, total=total, unit=unit, first=done, done=done, started=self.clock())

    def ended(self) -> list[tuple[PlannedCell, CellOutcome]]:
        """Return the cells that ended, in this order."""
        outcomes = tuple(self.outcomes.values())
        return [(self.cells[outcome.digest], outcome) for outcome in outcomes if outcome.digest in self.cells]

    def of_task(self, task: str) -> list[tuple[PlannedCell, CellOutcome]] | None:
        """Return the cells of a task with how they ended; None while some have not."""
        cells = [cell for cell in self.cells.values() if cell.task == task]
        if any(cell.digest not in self.outcomes for cell in cells):
            return None
        return [(cell, self.outcomes[cell.digest]) for cell in cells]

    def seconds_of(self, task: str) -> float:
        """Return how long the cells of a task took that ended since the run was started or resumed."""
        return self._cells_measured.get(task, (0.0, 0.0))[1]

    @property
    def failed(self) -> int:
        """Cells that failed."""
        return sum(bool(outcome.failure) for outcome in tuple(self.outcomes.values()))

    @property
    def share(self) -> float:
        """The part of the cells that is done."""
        step, cell = self.step, self.cell
        current = step.share if step is not None and cell is not None and step.unit == "items" else 0.0
        return min(1.0, (len(self.outcomes) + current) / max(1, len(self.cells)))

    @property
    def is_over(self) -> bool:
        """Whether all cells of a run ended, while what follows them may still take time."""
        return bool(self.cells) and self.cells.keys() <= self.outcomes.keys()

    @property
    def began(self) -> float:
        """When the cell or training that is under way began."""
        return self._began

    def report_status(self, message: str) -> None:
        """Replace the status."""
        self.status, self.status_since = message, self.clock()

    def time_left(self) -> TimeLeft | None:
        """Return how long the rest takes; None while nothing of it was measured.

        It never rises, unless a training that nothing was known of is measured: a slower pace holds it where it is.
        """
        estimate, least = self._time_left(), self._least_left
        if (
            estimate is not None
            and least is not None
            and estimate.fits >= least.fits
            and estimate.seconds > least.seconds
        ):
            estimate = least
        self._least_left = estimate or least
        return estimate

    def _time_left(self) -> TimeLeft | None:
        """Return the estimate.

        A cell takes as long as its items take, at the pace of its task's cells so far; at that of all cells so far
        where its task has none. A training takes as long as its size says, at the pace of the trainings so far.
        """
        now = self.clock()
        seconds = self._cells_left(now)
        if seconds is None:
            return None
        fits, unknown = self._fits_left(now)
        return TimeLeft(seconds=seconds + self._preparation_left(now) + fits, fits=unknown)

    def _preparation_left(self, now: float) -> float:
        """Return the seconds of what is done before the items of a cell, such as the vectors of a pool."""
        step = self.step
        if self.cell is None or step is None or step.unit == "items" or step.done <= step.first:
            return 0.0
        return max(0, step.total - step.done) / step.rate(now)

    def _cells_left(self, now: float) -> float | None:
        measured, cell, step = self._cells_measured, self.cell, self.step
        counts = [(planned.task, outcome.items) for planned, outcome in self.ended()]
        if cell is not None and step is not None and step.unit == "items":
            counts.append((cell.task, step.total))
        sizes = _Sizes(counts)
        items_left: dict[str, float] = {}
        for planned in self.cells.values():
            if planned.digest not in self.outcomes:
                items_left[planned.task] = items_left.get(planned.task, 0.0) + sizes.of(planned)
        if not items_left:
            return 0.0
        if cell is not None and step is not None and step.unit == "items" and step.done:
            # The cell that is under way is a measurement too, of its task.
            items_left[cell.task] += step.total - step.done - sizes.of(cell)
            items, seconds = measured.get(cell.task, (0.0, 0.0))
            here = items + step.done - step.first, seconds + now - step.started
            measured = {**measured, cell.task: here}
        every_item, every_second = (sum(pair[index] for pair in measured.values()) for index in (0, 1))
        if not every_item:
            return None
        paces = {task: seconds / items for task, (items, seconds) in measured.items() if items}
        return sum(
            max(0.0, items) * paces.get(task, every_second / every_item) for task, items in items_left.items()
        )

    def _fits_left(self, now: float) -> tuple[float, int]:
        """Return the seconds of the trainings that are left, or how many there are where none was measured."""
        waiting = [fit for fit in self._fits.values() if fit.digest not in self._fits_done]
        size, seconds = self._fits_measured
        total, step, current = sum(fit.size for fit in waiting), self.step, self._fit
        if current is not None and step is not None and step.done > step.first:
            here = current.size * (step.done - step.first) / max(1, step.total)
            size, seconds = size + here, seconds + now - step.started
            total -= current.size * step.share
        if not waiting:
            return 0.0, 0
        return (total * seconds / size, 0) if size else (0.0, len(waiting))


class _Sizes:
    """The numbers of items of cells; of a cell where it is not known, the mean of its task's cells, or of all."""

    def __init__(self, found: Sequence[tuple[str, int]]) -> None:
        """Take what was found so far: tasks and numbers of items of their cells."""
        by_task: dict[str, list[int]] = {}
        for task, items in found:
            if items:
                by_task.setdefault(task, []).append(items)
        self._means = {task: fmean(sizes) for task, sizes in by_task.items()}
        every = [size for sizes in by_task.values() for size in sizes]
        self._mean = fmean(every) if every else 1.0

    def of(self, cell: PlannedCell) -> float:
        """Return the items of a cell."""
        return float(cell.items) if cell.items is not None else self._means.get(cell.task, self._mean)


def task_mean(ended: Sequence[tuple[PlannedCell, CellOutcome]]) -> float | None:
    """Return a task's mean over its languages, seeds first; None where its cells are not of one condition."""
    scores: dict[str, list[float]] = {}
    for cell, outcome in ended:
        if outcome.value is not None:
            scores.setdefault(cell.language, []).append(outcome.value)
    if not scores or len({(cell.condition, outcome.metric) for cell, outcome in ended if outcome.metric}) > 1:
        return None
    return fmean(fmean(values) for values in scores.values())
