"""The summary as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from harness.reporting.console import SAMPLE_WARNING
from harness.reporting.equity.report import equity_report
from harness.reporting.equity.rows import equity_lines
from harness.reporting.number import INTERVAL_LEGEND, percent, uncertainty
from harness.reporting.score import Score
from harness.reporting.sections import installed_sections
from harness.reporting.summary import summarise
from harness.reporting.text_table import TextTable
from harness.storage.run_folder import Run

__all__ = ["escape_markdown", "render_markdown", "text_table_lines"]


def render_markdown(runs: Sequence[Run]) -> str:
    """Return the summary of the first run, the others' means under it, as a Markdown document."""
    summary = summarise(runs, sections=installed_sections())
    heads = [escape_markdown(column.title.replace("\n", " ")) for column in summary.columns]
    lines = [f"# {escape_markdown(summary.title)}", ""]
    lines += [f"> **{SAMPLE_WARNING}**", ""] if summary.sample else []
    lines += ["| language | " + " | ".join(heads) + " |", "| --- |" + " ---: |" * len(heads)]
    for section in summary.sections:
        means = [_score(score) for score in section.means] or [""] * len(heads)
        lines.append(f"| **{escape_markdown(section.family)}** | " + " | ".join(means) + " |")
        for code, name, scores in section.rows:
            lines.append(
                f"| {code} {escape_markdown(name)} | " + " | ".join(_score(score) for score in scores) + " |"
            )
    for label, scores in summary.scripts:
        lines.append(f"| script {label} | " + " | ".join(_score(score) for score in scores) + " |")
    for label, scores in summary.means:
        lines.append(
            f"| **{escape_markdown(label)}** | " + " | ".join(_score(score) for score in scores) + " |"
        )
    for label, texts in summary.counts:
        lines.append(f"| {label} | " + " | ".join(texts) + " |")
    for matrix in summary.matrices:
        lines += _small_table(matrix.title, matrix.corner, matrix.columns, matrix.rows, matrix.notes)
    for suite in summary.suites:
        lines += _small_table(suite.title, "model", suite.heads, suite.rows, suite.notes)
    for report in summary.extra.values():
        lines += report.render_markdown()
    lines += equity_lines(equity_report(runs))
    lines += ["", f"Scores x100. {INTERVAL_LEGEND}. Mean: unweighted over languages.", ""]
    lines += [f"- {escape_markdown(note)}" for note in summary.notes]
    for group in summary.skipped:
        languages = " ".join(group.languages)
        lines.append(f"- {group.status}: {group.task} {languages}: {escape_markdown(group.reason)}")
    return "\n".join(lines) + "\n"


def _small_table(
    title: str,
    corner: str,
    heads: Sequence[str],
    rows: Sequence[tuple[str, Sequence[Score]]],
    notes: Sequence[str],
) -> list[str]:
    lines = [
        "",
        f"## {escape_markdown(title)}",
        "",
        f"| {escape_markdown(corner)} | " + " | ".join(map(escape_markdown, heads)) + " |",
    ]
    lines.append("| --- |" + " ---: |" * len(heads))
    lines += [
        f"| {escape_markdown(label)} | " + " | ".join(_score(score) for score in scores) + " |"
        for label, scores in rows
    ]
    return [*lines, "", *(f"- {escape_markdown(note)}" for note in notes)]


def text_table_lines(table: TextTable) -> list[str]:
    """Return a table of words with its title and notes."""
    heads = " | ".join(map(escape_markdown, table.plain_heads))
    lines = ["", f"### {escape_markdown(table.title)}", "", f"| {escape_markdown(table.corner)} | {heads} |"]
    lines.append("| --- |" + " ---: |" * len(table.heads))
    for row in table.rows:
        if row.fields:
            lines.append(
                f"| {escape_markdown(row.label)} | " + " | ".join(map(escape_markdown, row.fields)) + " |"
            )
        else:
            lines.append(f"| **{escape_markdown(row.label)}** |" + " |" * len(table.heads))
    return [*lines, "", *(f"- {escape_markdown(note)}" for note in table.notes)]


def _score(score: Score) -> str:
    if score.value is None:
        return score.mark or "-"
    return f"{percent(score.value)}{score.mark} {uncertainty(score.value, score.interval)}".rstrip()


def escape_markdown(text: str) -> str:
    """Return a text in which no character is Markdown."""
    for character in "\\|<>*_`[]":
        text = text.replace(character, f"\\{character}")
    return text.replace("\n", " ")
