"""Shows the history of a model line: a table per series, and its scores over time as a figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness.analysis.history import Series
from harness.errors import UsageError
from harness.reporting.console import SAMPLE_WARNING
from harness.reporting.model import BLANK, Block, Field, Note, Table, rows_of
from harness.reporting.number import level_text, percent, signed, uncertainty
from harness.reporting.plots import OTHERS, SOFT, SOURCE, load_altair, styled
from harness.reporting.system_name import short_name

__all__ = ["history_blocks", "history_figure"]

LEGEND = (
    "Scores and differences in points, on the items that all runs answered, ± half the 95 % interval; differences are "
    "paired. A change point is the first run after a change, at p ≤ .05 for each part of the series."
)


def history_blocks(found: Sequence[Series], *, sample: bool = False) -> list[Block]:
    """Return a table and its reading for every series; `sample` warns of the sample data."""
    warning: list[Block] = [Note(SAMPLE_WARNING, "warning")] if sample else []
    return [*warning, *(_table(series) for series in found), Note(LEGEND, "soft")]


def _table(series: Series) -> Table:
    changes = {change.at for change in series.changes}
    rows = [
        (
            f"{at + 1} {step.run.name}",
            step.created[:16].replace("T", " "),
            short_name(str(step.model)),
            Field(text=percent(step.value), small=uncertainty(step.value, step.ci)),
            _difference(series, at - 1, at),
            _difference(series, 0, at),
            "change" if at in changes else "",
        )
        for at, step in enumerate(series.steps)
    ]
    conditions = ", ".join(series.conditions)
    return Table(
        title=f"{series.task}, {series.metric} ({conditions})",
        corner="run",
        heads=("made", "model", "score", "vs previous", "vs first", ""),
        rows=rows_of(rows),
        words=frozenset({0, 1, 5}),
        notes=tuple(_reading(series)),
        folding=True,
    )


def _difference(series: Series, first: int, at: int) -> Field | str:
    if not at:
        return BLANK
    half = series.half(first, at)
    text = signed(series.steps[at].value - series.steps[first].value)
    return Field(text=text, small="" if half is None else f"±{half * 100:.1f}")


def _reading(series: Series) -> Iterator[str]:
    """Yield what the series says: its changes, the noise band, and what it is of."""
    changes = [
        f"run {change.at + 1}, {series.steps[change.at].run.name} ({signed(change.step)} points, "
        f"{level_text('p', change.p)})"
        for change in series.changes
    ]
    if series.noise is None:
        yield f"Change points are not known: {series.metric} has no scores by item."
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


def history_figure(found: Sequence[Series], *, sample: bool = False) -> Any:
    """Return the scores over time as an altair chart, one panel per series.

    Grey is the noise band around the previous run's score; a point is coloured where the score changed.

    Raises:
        MissingExtraError: altair is not installed.
        UsageError: There is no series.
    """
    alt = load_altair("compare --history --format svg")
    if not found:
        raise UsageError("These runs have no series to draw.")
    return styled(alt.vconcat(*(_panel(alt, series, sample=sample) for series in found), spacing=30))


def _panel(alt: Any, series: Series, *, sample: bool) -> Any:
    points = _points(series)
    base = alt.Chart(alt.Data(values=points)).encode(
        x=alt.X(
            "run:N",
            sort=[point["run"] for point in points],
            title=None,
            axis=alt.Axis(labelAngle=-35, labelLimit=160),
        )
    )
    across = alt.Scale(zero=False)
    layers = [
        base.mark_bar(color=SOFT, opacity=0.2, size=26).encode(
            y=alt.Y("band_low:Q", scale=across, title="Score, 0 to 100"), y2="band_high:Q"
        ),
        base.mark_rule(color=OTHERS).encode(y=alt.Y("low:Q", scale=across), y2="high:Q"),
        base.mark_line(color=OTHERS).encode(y=alt.Y("score:Q", scale=across)),
        base.mark_point(filled=True, size=70, opacity=1).encode(
            y=alt.Y("score:Q", scale=across), color=alt.Color("colour:N", scale=None)
        ),
    ]
    lines = [
        "Bars: 95 % intervals. Grey: the previous score with the noise band of the paired difference.",
        "Orange: the first run after a change, p ≤ .05.",
        *([SAMPLE_WARNING] if sample else []),
    ]
    title = alt.Title(f"{series.task}, {series.metric}", subtitle=lines, anchor="start")
    return alt.layer(*layers).properties(width=alt.Step(52), height=180, title=title)


def _points(series: Series) -> list[dict[str, Any]]:
    changes = {change.at for change in series.changes}
    points = []
    for at, step in enumerate(series.steps):
        point: dict[str, Any] = {
            "run": f"{at + 1} {step.run.name}",
            "score": step.value * 100,
            "colour": SOURCE if at in changes else OTHERS,
        }
        if step.ci is not None:
            point |= {"low": step.ci[0] * 100, "high": step.ci[1] * 100}
        half = series.half(at - 1, at) if at else None
        if half is not None:
            before = series.steps[at - 1].value
            point |= {"band_low": (before - half) * 100, "band_high": (before + half) * 100}
        points.append(point)
    return points
