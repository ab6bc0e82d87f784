"""Shows the history of a model line: a table per series, and its scores over time as a figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.analysis.history import Series
from harness.errors import UsageError
from harness.metrics.metric import metric_name
from harness.reporting.blocks.chart import CurveChart, Line
from harness.reporting.blocks.model import BLANK, Block, Field, Note, Table, make_table
from harness.reporting.blocks.number import level_text, percent, signed, uncertainty
from harness.reporting.blocks.words import legend
from harness.reporting.render.console import SAMPLE_WARNING
from harness.reporting.render.page import Figure


def history_blocks(found: Sequence[Series], *, sample: bool = False) -> list[Block]:
    """Return a table and its reading for every series; `sample` warns of the sample data."""
    warning = [Note(SAMPLE_WARNING, "warning")] if sample else []
    return [*warning, *map(_table, found), Note(legend("history"), "soft")]


def _table(series: Series) -> Table:
    changes = {change.at for change in series.changes}
    rows = [
        (
            *(f"{at + 1} {step.run.name}", step.created[:16].replace("T", " "), step.model),
            Field(text=percent(step.value), small=uncertainty(step.value, step.ci)),
            *(_difference(series, first, at) for first in (at - 1, 0)),
            "change" if at in changes else "",
        )
        for at, step in enumerate(series.steps)
    ]
    title = f"{series.task}, {metric_name(series.metric)} ({', '.join(series.conditions)})"
    heads = ("run", "made", "model", "score", "vs previous", "vs first", "")
    return make_table(title, heads, rows, words={0, 1, 5}, notes=tuple(_reading(series)), folding=True)


def _difference(series: Series, first: int, at: int) -> Field | str:
    if not at:
        return BLANK
    half = series.half(first, at)
    text = signed(series.steps[at].value - series.steps[first].value)
    return Field(text=text, small="" if half is None else f"±{half * 100:.1f}")


def _reading(series: Series) -> Iterator[str]:
    """Yield the sentences on a series: its changes, the noise band, and its subject."""
    changes = [
        f"run {change.at + 1}, {series.steps[change.at].run.name} "
        f"({signed(change.step)} points, {level_text('p', change.p)})"
        for change in series.changes
    ]
    if series.noise is None:
        yield f"Change points are not known: {metric_name(series.metric)} has no scores by item."
    else:
        yield f"Change points: {', '.join(changes) or 'none'}."
    if series.band is not None:
        yield (
            f"Noise band: ±{series.band * 100:.1f} points. "
            "A smaller difference between neighbouring runs may well be noise."
        )
    where = " ".join(["", "in", *series.languages]) if series.languages else ""
    yield f"{series.items:,} items{where}."
    yield from (f"{note[0].upper()}{note[1:]}." for note in series.notes)


def history_figure(found: Sequence[Series], *, sample: bool = False) -> Figure:
    """Return the scores over time, one panel per series.

    Grey is the noise band around the previous run's score; a point is coloured where the score changed.

    Raises `UsageError` where there is no series.
    """
    if not found:
        raise UsageError("These runs have no series to draw.")
    note = "Lines: 95 % intervals. Grey: the previous score with the noise band of the paired difference."
    rows = [[_panel(series)] for series in found]
    return Figure(title="Scores over time", rows=rows, notes=[note], sample=sample)


def _panel(series: Series) -> CurveChart:
    points = tuple((float(at), step.value * 100) for at, step in enumerate(series.steps))
    intervals = ((at, step.ci) for at, step in enumerate(series.steps))
    whiskers = tuple((at, 100 * ci[0], 100 * ci[1]) for at, ci in intervals if ci is not None)
    halves = ((at, series.half(at - 1, at)) for at in range(1, len(points)))
    bands = ((at, points[at - 1][1], 100 * half) for at, half in halves if half is not None)
    reach = tuple((at, before - half, before + half) for at, before, half in bands)
    scores = Line(label="score", points=points, whiskers=whiskers, bands=reach)
    changes = (Line(label="change", points=(points[change.at],), group=1) for change in series.changes)
    return CurveChart(
        title=f"{series.task}, {metric_name(series.metric)}",
        lines=(scores, *changes),
        groups=("score", "first run after a change, p ≤ .05"),
        x_label="",
        y_label="score, 0 to 100",
        x_names=tuple(f"{at} {step.run.name}" for at, step in enumerate(series.steps, 1)),
        width=max(460, 72 + 52 * len(points)),
    )
