"""Figures for papers as SVG, PDF and PNG files, made by altair: the charts of a run, and differences around 0."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.analysis.comparison import Comparison
from harness.errors import UsageError
from harness.reporting.console import SAMPLE_WARNING
from harness.reporting.explanation import effect_chart, explained
from harness.reporting.forest import ForestChart, ForestRow
from harness.reporting.glance import glance
from harness.reporting.model import Charts, anchor
from harness.reporting.plots import INK, OTHERS, SOFT, SOURCE, Plots, load_altair, styled
from harness.reporting.summary import summarise
from harness.reporting.system_name import system_names
from harness.reporting.verdict import forest_blocks, has_few_languages, language_forest
from harness.storage.run_folder import Run

__all__ = ["FIGURE_FORMATS", "forest_figure", "save_figure", "write_figures"]

FIGURE_FORMATS = {"svg": ".svg", "pdf": ".pdf", "png": ".png"}
"""Formats of `save_figure`, with the suffixes of their files."""
PNG_SCALE = 3
"""Dots of a PNG for every point of the figure."""
WIDTH = 420
LEGEND = "Coloured: p ≤ .05 after Holm. Grey: not distinguishable."
EFFECTS = "Coloured: the 95 % interval does not contain 0. Other properties are held equal."
COLOURS = {"up": OTHERS, "down": SOURCE, "even": SOFT}


def save_figure(chart: Any, path: Path, format_name: str) -> None:
    """Write a chart; raises `UsageError` where the file cannot be written."""
    try:
        chart.save(path, format=format_name, scale_factor=PNG_SCALE if format_name == "png" else 1)
    except OSError as error:
        raise UsageError(f"The file {str(path)!r} cannot be written: {error.strerror}.") from error


def forest_figure(compared: Comparison) -> Any:
    """Return the differences of a comparison as an altair chart: by task, and by language where there is one task.

    Raises:
        MissingExtraError: altair is not installed.
        UsageError: No difference can be drawn.
    """
    alt = load_altair("compare --format svg")
    blocks = forest_blocks(compared)
    if len(compared.tasks) == 1 and not has_few_languages(compared.tasks[0]):
        blocks += language_forest(compared.tasks[0])
    charts = [chart for block in blocks if isinstance(block, Charts) for chart in block.charts]
    found = [
        _forest(alt, chart, sample=compared.sample) for chart in charts if isinstance(chart, ForestChart)
    ]
    if not found:
        raise UsageError("These runs have no difference to draw.")
    return styled(alt.vconcat(*found, spacing=30))


def _forest(alt: Any, chart: ForestChart, *, sample: bool, legend: str = LEGEND) -> Any:
    """Return differences with their intervals as dots and lines, and as text at the right."""
    base = alt.Chart(alt.Data(values=[_values(row) for row in chart.rows])).encode(
        y=alt.Y("label:N", sort=None, title=None, axis=alt.Axis(domain=False, ticks=False, labelLimit=260)),
        color=alt.Color("colour:N", scale=None),
    )
    ends = alt.Scale(domain=[-chart.reach, chart.reach], nice=False)
    title = f"← {chart.left}  |  points, with 95 % intervals  |  {chart.right} →"
    zero = (
        alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(color=SOFT).encode(x=alt.X("zero:Q", scale=ends))
    )
    layers = [
        zero,
        base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", scale=ends, title=title), x2="high:Q"),
        base.mark_point(filled=True, size=60, opacity=1).encode(x=alt.X("value:Q", scale=ends)),
        base.mark_text(align="left").encode(x=alt.value(WIDTH + 12), text="text:N", color=alt.value(INK)),
    ]
    subtitle = [legend, *([SAMPLE_WARNING] if sample else [])]
    heading = alt.Title(chart.title, subtitle=subtitle, anchor="start")
    return alt.layer(*layers).properties(width=WIDTH, height=alt.Step(20), title=heading)


def _values(row: ForestRow) -> dict[str, Any]:
    return {
        "label": "\u00a0\u00a0" * row.depth + row.label,
        "value": row.value,
        "low": row.low,
        "high": row.high,
        "text": f"{row.text} ({row.ends})" if row.ends else row.text,
        "colour": COLOURS[row.direction],
    }


def write_figures(runs: Sequence[Run], folder: Path, format_name: str) -> list[Path]:
    """Write every heat map, and the gap and effects of properties of languages where a run has them; return the files.

    Raises:
        MissingExtraError: altair is not installed.
        UsageError: The folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"The folder {str(folder)!r} cannot be written: {error.strerror}.") from error
    written = []
    for run, name in zip(runs, system_names(runs), strict=True):
        plots = Plots(run, glance([run], summarise([run])))
        charts = {"heatmap": plots.heatmap()} | ({"gap": plots.gap()} if plots.has_gap else {})
        for effects in explained([run])[0][:1]:
            alt = load_altair("report --format svg")
            charts["effects"] = styled(_forest(alt, effect_chart(effects), sample=False, legend=EFFECTS))
        for kind, chart in charts.items():
            path = folder / f"{anchor(kind, name)}{FIGURE_FORMATS[format_name]}"
            save_figure(chart, path, format_name)
            written.append(path)
    return written
