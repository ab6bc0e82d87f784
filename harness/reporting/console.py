"""The summary for a terminal, made with rich; readable at 80 columns, light or dark, and when piped."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from harness.reporting.column import Column
from harness.reporting.formats import ReportSection
from harness.reporting.number import HALF_LEGEND, INTERVAL_LEGEND, percent, uncertainty
from harness.reporting.score import Score
from harness.reporting.sections import installed_sections
from harness.reporting.summary import Summary, summarise
from harness.storage.run_folder import Run

__all__ = ["render_matrices", "render_section", "render_summary", "render_text"]

LABEL_WIDTH = 22
WIDEST_LABEL = 30
"""In the small tables, whose rows may be paths of models."""
EDGES = "  "
"""What rich draws left and right of a table."""
NO_SCORE = "-"
MORE_TABLES = 1
"""Tables that intervals may add where a terminal is narrow; more of them would hide the scores."""
SAMPLE_WARNING = (
    "SAMPLE DATA: a few items written for this project. These scores show that the machinery works; "
    "they say nothing about the model."
)


def render_text(runs: Sequence[Run], *, width: int = 100) -> str:
    """Return the summary as plain text of a given width."""
    console = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False, emoji=False)
    console.print(render_summary(summarise(runs, sections=installed_sections()), width=width))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def render_summary(summary: Summary, *, width: int) -> RenderableType:
    """Return the summary as something rich can print at this width."""
    parts: list[RenderableType] = []
    if summary.sample:
        parts.append(Panel(Text(SAMPLE_WARNING, style="bold"), box=box.ASCII, expand=False))
    parts.append(Text(summary.title, style="bold"))
    shown = [column for column in summary.columns if column.key not in summary.covered]
    plain, chunks = (_chunks(summary, shown, width, intervals=intervals) for intervals in (False, True))
    intervals = bool(shown) and len(chunks) <= len(plain) + MORE_TABLES
    for columns in chunks if intervals else plain:
        parts.append(_table(summary, columns, intervals=intervals))
    parts += _matrices(summary)
    parts += _suites(summary)
    for report in summary.extra.values():
        parts += report.render_console(width)
    legend = "Scores x100."
    if intervals:
        legend += f" {INTERVAL_LEGEND if _shows_ends(summary, shown) else HALF_LEGEND}."
    if shown:
        legend += " In family rows: the mean."
    parts.append(Text(f"{legend} Mean: unweighted over languages. Transfer gap: source minus the others."))
    parts += [Padding(Text(note), (0, 0, 0, 2)) for note in summary.notes]
    parts += _skipped(summary)
    return Group(*parts)


def _shows_ends(summary: Summary, shown: Sequence[Column]) -> bool:
    """Whether some score has an interval that is printed by its ends."""
    rows = [scores for _, scores in summary.means]
    rows += [scores for section in summary.sections for _, _, scores in section.rows]
    places = [summary.columns.index(column) for column in shown]
    return any("–" in _text(scores[place], interval=True) for scores in rows for place in places)


def _chunks(
    summary: Summary, shown: Sequence[Column], width: int, *, intervals: bool
) -> list[tuple[Column, ...]]:
    """Return the columns of tables that are no wider than `width`, but for a single column that is."""
    chunks: list[tuple[Column, ...]] = []
    current: tuple[Column, ...] = ()
    for column in shown:
        if current and not _fits(summary, (*current, column), width, intervals=intervals):
            chunks.append(current)
            current = ()
        current = (*current, column)
    return [*chunks, current] if current else chunks


def _fits(summary: Summary, columns: Sequence[Column], width: int, *, intervals: bool) -> bool:
    indices = [summary.columns.index(column) for column in columns]
    used = LABEL_WIDTH + len(EDGES)
    for index, column in zip(indices, columns, strict=True):
        texts = [line for line in column.title.split("\n")]
        texts += [row[1][index] for row in summary.counts]
        texts += [_text(scores[index], interval=intervals) for _, scores in summary.means]
        for section in summary.sections:
            texts += [_text(scores[index], interval=intervals) for _, _, scores in section.rows]
        used += 2 + max(len(text) for text in texts)
    return used <= width


def _table(summary: Summary, columns: Sequence[Column], *, intervals: bool) -> Table:
    indices = [summary.columns.index(column) for column in columns]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("language", no_wrap=True, max_width=LABEL_WIDTH)
    for column in columns:
        table.add_column(Text(column.title), justify="right", no_wrap=True)
    for section in summary.sections:
        rows = [row for row in section.rows if any(row[2][index] != Score() for index in indices)]
        if not rows:
            continue
        means = [_text(section.means[index]) for index in indices] if section.means else []
        table.add_row(Text(section.family, style="bold"), *(Text(text, style="dim") for text in means))
        for code, name, scores in rows:
            fields = [_text(scores[index], interval=intervals) for index in indices]
            table.add_row(Text(f"  {code:<3} {name}", overflow="ellipsis"), *fields)
        table.add_section()
    table.add_section()
    if summary.scripts:
        table.add_row(Text("By script", style="bold"))
        for script, scores in summary.scripts:
            if any(scores[index] != Score() for index in indices):
                table.add_row(
                    Text(f"  {script}"), *(Text(_text(scores[index]), style="dim") for index in indices)
                )
        table.add_section()
    for label, scores in summary.means:
        if label.startswith("published ") and all(scores[index] == Score() for index in indices):
            continue
        style = "bold" if label == "mean" else ""
        # As Text, since a model's name may hold what rich would read as markup.
        fields = [_text(scores[index], interval=intervals) for index in indices]
        table.add_row(Text(label), *fields, style=style)
    for label, texts in summary.counts:
        table.add_row(label, *(texts[index] for index in indices), style="dim")
    return table


def _suites(summary: Summary) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for suite in summary.suites:
        table = _plain_table("", suite.heads)
        for label, scores in suite.rows:
            table.add_row(Text(label), *(_text(score) for score in scores))
        notes = [Padding(Text(note), (0, 0, 0, 2)) for note in suite.notes]
        parts += [Text(suite.title, style="bold"), table, *notes, Text("")]
    return parts


def _matrices(summary: Summary, *, large: bool = False) -> list[RenderableType]:
    parts: list[RenderableType] = []
    # A section that covers a task shows its axis too.
    covered = {task for task, _, _ in summary.covered}
    for matrix in summary.matrices:
        if matrix.task in covered and not large:
            continue
        if not matrix.is_small and not large:
            parts.append(
                Text(f"{matrix.title}: {matrix.notes[0]} The matrix: harness report RUN --matrices", "")
            )
            continue
        table = _plain_table(matrix.corner, matrix.columns)
        for label, scores in matrix.rows:
            table.add_row(Text(label), *(_text(score) for score in scores))
        notes = [Padding(Text(note), (0, 0, 0, 2)) for note in matrix.notes]
        parts += [Text(matrix.title, style="bold"), table, *notes, Text("")]
    return parts


def render_matrices(summary: Summary) -> RenderableType:
    """Return all matrices of a summary, large ones too."""
    return Group(*(_matrices(summary, large=True) or [Text("This run has no matrix.")]))


def render_section(summary: Summary, section: ReportSection, *, width: int) -> RenderableType:
    """Return one section of a plugin with all its tables."""
    warning = (
        [Panel(Text(SAMPLE_WARNING, style="bold"), box=box.ASCII, expand=False)] if summary.sample else []
    )
    report = summary.extra.get(section)
    whole = [] if report is None else report.render_console(width, whole=True)
    return Group(*warning, *(whole or [Text(section.empty)]))


def _plain_table(corner: str, heads: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(corner, no_wrap=True, max_width=WIDEST_LABEL)
    for head in heads:
        table.add_column(Text(head), justify="right")
    return table


def _text(score: Score, *, interval: bool = False) -> str:
    if score.value is None:
        return score.mark or NO_SCORE
    text = f"{percent(score.value)}{score.mark}"
    return f"{text} {uncertainty(score.value, score.interval)}".rstrip() if interval else text


def _skipped(summary: Summary) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for status, title in (("failed", "Failed"), ("skipped", "Skipped")):
        groups = [group for group in summary.skipped if group.status == status]
        if not groups:
            continue
        count = sum(group.cells for group in groups)
        parts.append(Text(f"{title}: {count} {'cell' if count == 1 else 'cells'}", style="bold"))
        for group in groups:
            named = group.task + (f" ({group.protocol})" if group.protocol else "")
            line = Text(f"{named} {' '.join(group.languages)}: {group.reason}")
            parts.append(Padding(line, (0, 0, 0, 2)))
    return parts
