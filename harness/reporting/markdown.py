"""The summary as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from harness.reporting.console import SAMPLE_WARNING
from harness.reporting.equity.report import equity_report
from harness.reporting.equity.rows import equity_lines
from harness.reporting.number import INTERVAL_LEGEND, percent, uncertainty
from harness.reporting.probing.curve import Curve, sparkline
from harness.reporting.probing.report import ProbingSection
from harness.reporting.probing.table import ProbeTable
from harness.reporting.score import Score
from harness.reporting.summary import summarise
from harness.storage.run_folder import Run

__all__ = ["render_markdown"]


def render_markdown(runs: Sequence[Run]) -> str:
    """Return the summary of the first run, the others' means under it, as a Markdown document."""
    summary = summarise(runs)
    heads = [_escape(column.title.replace("\n", " ")) for column in summary.columns]
    lines = [f"# {_escape(summary.title)}", ""]
    lines += [f"> **{SAMPLE_WARNING}**", ""] if summary.sample else []
    lines += ["| language | " + " | ".join(heads) + " |", "| --- |" + " ---: |" * len(heads)]
    for section in summary.sections:
        means = [_score(score) for score in section.means] or [""] * len(heads)
        lines.append(f"| **{_escape(section.family)}** | " + " | ".join(means) + " |")
        for code, name, scores in section.rows:
            lines.append(
                f"| {code} {_escape(name)} | " + " | ".join(_score(score) for score in scores) + " |"
            )
    for label, scores in summary.scripts:
        lines.append(f"| script {label} | " + " | ".join(_score(score) for score in scores) + " |")
    for label, scores in summary.means:
        lines.append(f"| **{_escape(label)}** | " + " | ".join(_score(score) for score in scores) + " |")
    for label, texts in summary.counts:
        lines.append(f"| {label} | " + " | ".join(texts) + " |")
    for matrix in summary.matrices:
        lines += _small_table(matrix.title, matrix.corner, matrix.columns, matrix.rows, matrix.notes)
    for suite in summary.suites:
        lines += _small_table(suite.title, "model", suite.heads, suite.rows, suite.notes)
    for part in summary.probing.sections:
        lines += _probing(part)
    lines += [f"- {_escape(note)}" for note in summary.probing.notes]
    lines += equity_lines(equity_report(runs))
    lines += ["", f"Scores x100. {INTERVAL_LEGEND}. Mean: unweighted over languages.", ""]
    lines += [f"- {_escape(note)}" for note in summary.notes]
    for group in summary.skipped:
        languages = " ".join(group.languages)
        lines.append(f"- {group.status}: {group.task} {languages}: {_escape(group.reason)}")
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
        f"## {_escape(title)}",
        "",
        f"| {_escape(corner)} | " + " | ".join(map(_escape, heads)) + " |",
    ]
    lines.append("| --- |" + " ---: |" * len(heads))
    lines += [
        f"| {_escape(label)} | " + " | ".join(_score(score) for score in scores) + " |"
        for label, scores in rows
    ]
    return [*lines, "", *(f"- {_escape(note)}" for note in notes)]


def _probing(section: ProbingSection) -> list[str]:
    lines = ["", f"## {_escape(section.title)}"]
    for table in section.tables:
        lines += _probe_table(table)
    lines += ["", "### Layer curves", "", "| task | probe | control | random | low | high | best |"]
    lines.append("| --- | --- | --- | --- | ---: | ---: | ---: |")
    return [*lines, *(_curve_row(curve) for curve in section.curves)]


def _probe_table(table: ProbeTable) -> list[str]:
    heads = " | ".join(map(_escape, table.plain_heads))
    lines = ["", f"### {_escape(table.title)}", "", f"| {_escape(table.corner)} | {heads} |"]
    lines.append("| --- |" + " ---: |" * len(table.heads))
    for row in table.rows:
        if row.fields:
            lines.append(f"| {_escape(row.label)} | " + " | ".join(map(_escape, row.fields)) + " |")
        else:
            lines.append(f"| **{_escape(row.label)}** |" + " |" * len(table.heads))
    return [*lines, "", *(f"- {_escape(note)}" for note in table.notes)]


def _curve_row(curve: Curve) -> str:
    probe = curve.probe
    low, high = curve.limits
    lines = " | ".join(
        f"`{line}`" if (line := sparkline(own, curve.limits)) else "-" for own in curve.lines.values()
    )
    return f"| {_escape(probe.name)} | {lines} | {low * 100:.1f} | {high * 100:.1f} | {probe.best['layer']} |"


def _score(score: Score) -> str:
    if score.value is None:
        return score.mark or "-"
    return f"{percent(score.value)}{score.mark} {uncertainty(score.value, score.interval)}".rstrip()


def _escape(text: str) -> str:
    for character in "\\|<>*_`[]":
        text = text.replace(character, f"\\{character}")
    return text.replace("\n", " ")
