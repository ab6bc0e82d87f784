"""Sentences about a run that is under way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.cli.tally import TimeLeft, task_mean
from harness.metrics.metric import metric_name
from harness.reporting.blocks.number import percent, uncertainty
from harness.reporting.blocks.remark import counted

if TYPE_CHECKING:
    from harness.cli.tally import Step, Tally
    from harness.progress import CellOutcome, PlannedCell

MINUTE, HOUR = 60.0, 3600.0
COARSE = 10 * HOUR
"""From so many seconds on, a duration has no minutes."""


def duration(seconds: float) -> str:
    """Return a rough duration, as an estimate has no more digits: ``5 s``, ``4 min``, ``2 h 10 min``, ``12 h``."""
    if seconds < MINUTE - 2.5:
        return f"{max(5, round(seconds / 5) * 5)} s" if seconds >= 2.5 else f"{max(1, round(seconds))} s"
    if seconds < HOUR - MINUTE / 2:
        return f"{max(1, round(seconds / MINUTE))} min"
    if seconds >= COARSE:
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
        mean = task_mean(ended)
        (low, worst, metric), (high, best, _) = min(scored), max(scored)
        spread = f"{percent(low)} {worst} to {percent(high)} {best}" if percent(low) != percent(high) else ""
        if mean is None:
            texts.append(f"{metric} {spread or percent(low)}")
        else:
            texts.append(f"{metric} {percent(mean)}{spread and f' ({spread})'}")
    elif not scored and failed < len(ended):
        texts.append("not scored")
    return f"{ended[0][0].task}: {', '.join(texts)}"
