"""Figures: charts on one white sheet with their title, notes and legend, as SVG, PDF and PNG."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from harness.errors import UsageError, require_extra
from harness.reporting.blocks.chart import Chart
from harness.reporting.blocks.forest import ForestChart
from harness.reporting.blocks.model import TileMap
from harness.reporting.render.console import SAMPLE_WARNING
from harness.reporting.render.page import style, template

FIGURE_FORMATS = ("svg", "pdf", "png")
"""Formats of `Figure.save`, which are the suffixes of their files."""
PNG_SCALE = 3
"""Dots of a PNG for every pixel of the figure."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Figure:
    """Charts on one sheet in the light colours of pages; a notebook shows it, and `save` writes it.

    Their entries of the legend are shown once, over all charts.
    """

    title: str
    rows: Sequence[str | Sequence[Chart | ForestChart | TileMap]]
    """Charts side by side, or the heading of the rows after it; a chart with the figure's title has none of its own."""
    notes: Sequence[str] = ()
    sample: bool = False
    """Whether it warns of the sample data."""

    def __repr__(self) -> str:
        return f"<Figure: {self.title}>"

    def _repr_svg_(self) -> str:
        return self.svg

    @property
    def charts(self) -> list[Chart | ForestChart | TileMap]:
        """All charts, in the order of the rows."""
        return [chart for row in self.rows if not isinstance(row, str) for chart in row]

    @property
    def svg(self) -> str:
        """The figure as the text of an SVG file."""
        notes = [*self.notes, *([SAMPLE_WARNING] if self.sample else [])]
        keys = list(dict.fromkeys(key for chart in self.charts for key in chart.keys))
        return template("figure.svg.j2", figure=self, keys=keys, notes=notes, sheet=_sheet()).strip()

    def save(self, path: str | Path, format_name: str = "") -> None:
        """Write the figure as ``svg``, ``pdf`` or ``png`` and make its folder; without a format, the suffix says which.

        Raises:
            MissingExtraError: vl-convert, which makes PDF and PNG of SVG, is not installed.
            UsageError: The suffix is another one, or the file cannot be written.
        """
        path = Path(path)
        format_name = format_name or path.suffix.lower().removeprefix(".")
        if format_name not in FIGURE_FORMATS:
            raise UsageError(
                f"A figure cannot be written as {path.name!r}.",
                hint="Give it a name that ends with .svg, .pdf or .png.",
            )
        content = self.svg.encode()
        if format_name != "svg":
            with require_extra(f"A figure as {format_name}", "plots", f"{__name__}:Figure"):
                import vl_convert
            pdf, png = vl_convert.svg_to_pdf, partial(vl_convert.svg_to_png, scale=PNG_SCALE)
            content = (pdf if format_name == "pdf" else png)(self.svg)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError as error:
            raise UsageError(f"The file {str(path)!r} cannot be written: {error.strerror}.") from error


@cache
def _sheet() -> str:
    """Return the rules of charts, below the class of figures and with plain colours.

    A notebook may put a figure into its own page, and programs that show SVG know neither variables nor the dark theme.
    """
    light = style().partition("@media")[0]
    colours = dict(re.findall(r"--(\w+): (#\w+)", light))
    rules = re.sub(r"var\(--(\w+)\)", lambda found: colours[found[1]], style("charts") + style("figure"))
    return rules.replace("svg", ".harness-figure")
