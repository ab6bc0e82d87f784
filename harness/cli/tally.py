"""Progress of a run: finished and current work, the time that the rest takes, and sentences about them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from harness.metrics.metric import metric_name
from harness.progress import CellOutcome, PlannedCell, PlannedFit
from harness.reporting.blocks.number import percent, uncertainty
from harness.reporting.blocks.words import counted

if TYPE_CHECKING:
    from harness.progress import CellOutcome, PlannedCell

MINUTE, HOUR = 60.0, 3600.0
_COARSE = 10 * HOUR
"""From so many seconds on, a duration has no minutes."""


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


def _task_mean(ended: Sequence[tuple[PlannedCell, CellOutcome]]) -> float | None:
    """Return a task's mean over its languages, seeds first; None where its cells are not of one condition."""
    scores: dict[str, list[float]] = {}
    for cell, outcome in ended:
        if outcome.value is not None:
            scores.setdefault(cell.language, []).append(outcome.value)
    if not scores or len({(cell.condition, outcome.metric) for cell, outcome in ended if outcome.metric}) > 1:
        return None
    return fmean(fmean(values) for values in scores.values())


def duration(seconds: float) -> str:
    """Return a rough duration, as an estimate has no more digits: ``5 s``, ``4 min``, ``2 h 10 min``, ``12 h``."""
    if seconds < MINUTE - 2.5:
        return f"{max(5, round(seconds / 5) * 5)} s" if seconds >= 2.5 else f"{max(1, round(seconds))} s"
    if seconds < HOUR - MINUTE / 2:
        return f"{max(1, round(seconds / MINUTE))} min"
    if seconds >= _COARSE:
        return f"{round(seconds / HOUR)} h"
    tens = round(seconds / (10 * MINUTE))
    hours, tens_left = divmod(tens, 6)
    return f"{hours} h {tens_left * 10} min" if tens_left else f"{hours} h"


def time_left_text(left: TimeLeft | None) -> str:
    """Return ``about 4 min``, with the trainings that nothing is known of; empty where nothing was measured."""
    if left is None:
        return ""
    fits = f" and {counted(left.fits, 'training')}" if left.fits else ""
    return f"about {duration(left.seconds)}{fits}"


def whole_text(tally: Tally) -> str:
    """Return how far a run is: ``cell 12 of 133, about 4 min left``, or ``11 of 133 cells done``; empty outside one."""
    if not tally.cells:
        return ""
    total, done = len(tally.cells), len(tally.outcomes)
    position = (
        f"cell {done + 1:,} of {total:,}" if tally.cell else f"{done:,} of {counted(total, 'cell')} done"
    )
    is_last = (
        done == total - 1 and tally.step is not None and tally.step.is_done
    )  # nothing is known of its rest
    time_left = "" if tally.is_over or is_last else time_left_text(tally.time_left())
    failed = f"{tally.failed:,} failed" if tally.failed else ""
    texts = (position, failed, f"{time_left} left" if time_left else "")
    return ", ".join(filter(None, texts))


def step_text(tally: Tally) -> str:
    """Return the current step, how far it is and how fast."""
    step, cell, now = tally.step, tally.cell, tally.clock()
    fit = "Fine-tuning on " if tally.fit else ""
    if step is None:
        title = f"{cell.task}:{cell.language}" if cell is not None else fit + tally.fit
        return title and f"{title}{_so_far(now - tally.began)}"
    if not step.unit:
        return f"{step.title}{_so_far(now - step.started)}"
    texts = [f"{step.done:,} of {step.total:,} {step.unit}" if step.total else f"{step.done:,} {step.unit}"]
    rate = step.rate(now)
    if step.is_done and now - step.moved >= 1:
        texts.append(f"what follows takes {_elapsed(now - step.moved)} so far")
    elif rate > 0:
        texts.append(_rate_text(rate, step.unit))
        if cell is None and step.total:  # the time of a cell is part of that of the run
            texts.append(_step_left(step, rate))
    return f"{fit}{step.title}: {', '.join(filter(None, texts))}"


def status_text(tally: Tally) -> str:
    """Return the status of the current work; with its duration, where nothing else has a number."""
    if not tally.status or tally.step is not None:
        return tally.status
    return f"{tally.status}{_so_far(tally.clock() - tally.status_since)}"


def _so_far(seconds: float) -> str:
    """Return ``, 25 s so far``, so that no minute is without a number; empty for less than a second."""
    return f", {_elapsed(seconds)} so far" if seconds >= 1 else ""


def _elapsed(seconds: float) -> str:
    """Return a time that grows with every line: in seconds below ten minutes."""
    return f"{seconds:.0f} s" if seconds < 10 * MINUTE else duration(seconds)


def _step_left(step: Step, rate: float) -> str:
    remaining = step.total - step.done
    return f"about {duration(remaining / rate)}" if remaining > 0 else ""


def _rate_text(rate: float, unit: str) -> str:
    if rate >= 1:
        return f"{rate:,.0f} {unit}/s" if rate >= 10 else f"{rate:.1f} {unit}/s"
    return f"{1 / rate:,.1f} s per {unit.removesuffix('s')}"


def score_text(outcome: CellOutcome) -> str:
    """Return ``acc 58.3 ±12.9``, or why there is none."""
    if outcome.failure:
        return "failed"
    if outcome.value is None:
        return "not scored"
    sure = uncertainty(outcome.value, outcome.interval)
    return f"{metric_name(outcome.metric)} {percent(outcome.value)}{f' {sure}' if sure else ''}"


def cell_text(cell: PlannedCell, outcome: CellOutcome) -> str:
    """Return one line about a finished cell."""
    condition = f" ({cell.condition})" if cell.condition else ""
    return f"{cell.task}:{cell.language}{condition}: {score_text(outcome)}, {counted(outcome.items, 'item')}"


def task_text(ended: Sequence[tuple[PlannedCell, CellOutcome]], seconds: float) -> str:
    """Return one line about a task whose cells all ended: its mean, and the ends of its range."""
    failed = sum(bool(outcome.failure) for _, outcome in ended)
    scored = [
        (outcome.value, cell.language, metric_name(outcome.metric))
        for cell, outcome in ended
        if outcome.value is not None
    ]
    texts = [f"{counted(len(ended), 'cell')} in {seconds:,.1f} s"]
    if failed:
        texts.append(f"{failed:,} failed")
    if len({metric for _, _, metric in scored}) == 1:
        mean = _task_mean(ended)
        (low, worst, metric), (high, best, _) = min(scored), max(scored)
        spread = f"{percent(low)} {worst} to {percent(high)} {best}" if percent(low) != percent(high) else ""
        if mean is None:
            texts.append(f"{metric} {spread or percent(low)}")
        else:
            texts.append(f"{metric} {percent(mean)}{spread and f' ({spread})'}")
    elif not scored and failed < len(ended):
        texts.append("not scored")
    return f"{ended[0][0].task}: {', '.join(texts)}"
