"""The probing report for a terminal, made with rich."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.reporting.number import percent
from harness.reporting.text_table import TextTable
from harness_probing.reporting.curve import ASCII, BLOCKS, Curve, Point, sparkline
from harness_probing.reporting.report import ProbingReport, ProbingSection

__all__ = ["Sparkline", "render_probing"]

WIDEST_LABEL = 30
NUMBERS = 20
"""Width of the columns after the curves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparkline:
    """A curve of one line: blocks, or plain characters where the terminal cannot show these."""

    points: tuple[Point, ...]
    limits: tuple[float, float]

    @property
    def width(self) -> int:
        """How many characters it takes: one per layer, and at least one."""
        return max(1, len(sparkline(self.points, self.limits)))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the line in the characters of this console."""
        levels = ASCII if options.ascii_only else BLOCKS
        yield Text(sparkline(self.points, self.limits, levels), no_wrap=True, overflow="crop")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Return the width."""
        return Measurement(self.width, self.width)


def render_probing(report: ProbingReport, *, width: int, whole: bool = False) -> list[RenderableType]:
    """Return the report for this width, without the tables that need a page of their own unless it is `whole`."""
    parts: list[RenderableType] = []
    for section in report.sections:
        parts += _section(section, width, whole=whole)
    return [*parts, *(Text(note) for note in report.notes)]


def _section(section: ProbingSection, width: int, *, whole: bool) -> Iterator[RenderableType]:
    yield Text(section.title, style="bold")
    yield Text("")
    tables = section.tables if whole else section.scores
    for table in tables:
        yield _table(table)
    yield Text("Layer curves", style="bold")
    yield _curve_table(section.curves, width)
    yield _note(
        "One character per layer, from the embeddings; the curves of a row share their scale from low to high. "
        "Weighted F1 x100."
    )
    if not whole and section.further:
        names = ", ".join(table.title.rpartition(": ")[2] for table in section.further)
        yield _note(f"Also: {names}. All of it: harness report RUN --probing")
    yield Text("")


def _table(table: TextTable) -> RenderableType:
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    shown.add_column(table.corner, max_width=WIDEST_LABEL, overflow="fold")
    for head in table.heads:
        shown.add_column(Text(head), justify="right", no_wrap=True)
    for row in table.rows:
        style = "bold" if row.level == 0 else ""
        # As Text, since a model's name may hold what rich would read as markup.
        label = Text("  " * max(0, row.level - 1) + row.label)
        shown.add_row(label, *map(Text, row.fields), style=style)
    notes = [_note(note) for note in table.notes]
    return Group(Text(table.title, style="bold"), shown, *notes, Text(""))


def _curve_table(curves: Sequence[Curve], width: int) -> Table:
    """Return the curves, side by side where they fit, and else under each other."""
    lines = [[Sparkline(points=own, limits=curve.limits) for own in curve.lines.values()] for curve in curves]
    label = min(WIDEST_LABEL, max(len(curve.probe.title) for curve in curves))
    longest = max(sum(line.width + 1 for line in own) for own in lines)
    side_by_side = label + longest + NUMBERS <= width
    several = len({curve.probe.model for curve in curves}) > 1
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    shown.add_column("task", max_width=WIDEST_LABEL, overflow="fold")
    for head in curves[0].lines if side_by_side else ("layers", "of"):
        shown.add_column(head, no_wrap=True)
    for head in ("low", "high", "best"):
        shown.add_column(head, justify="right", no_wrap=True)
    last = ""
    for curve, own in zip(curves, lines, strict=True):
        probe = curve.probe
        head = f"{probe.model}\n{probe.title}" if several else probe.title
        if head != last and (probe.treebank or several):
            shown.add_row(Text(head))
        last = head
        name = Text(f"  {probe.treebank_name or probe.title}" if probe.treebank or several else head)
        numbers = (*map(percent, curve.limits), str(probe.best["layer"]))
        if side_by_side:
            shown.add_row(name, *own, *numbers)
            continue
        for of, line in zip(curve.lines, own, strict=True):
            if of == "probe":
                shown.add_row(name, line, of, *numbers)
            elif line.points:
                shown.add_row("", line, of)
    return shown


def _note(text: str) -> RenderableType:
    return Padding(Text(text), (0, 0, 0, 2))
