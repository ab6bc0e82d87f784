"""The summary as LaTeX tables: languages by family against tasks, and suites."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.reporting.console import SAMPLE_WARNING
from harness.reporting.number import INTERVAL_LEGEND, percent, uncertainty
from harness.reporting.score import Score
from harness.reporting.sections import installed_sections
from harness.reporting.summary import Summary, summarise
from harness.reporting.text_table import TextTable
from harness.storage.run_folder import Run

__all__ = ["escape_latex", "render_latex"]

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # After the end of a row these would be its arguments.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "±": r"$\pm$",
    "–": "--",
    "°": r"\textdegree{}",
    "§": r"\S{}",
    "†": r"\dag{}",
    "‡": r"\ddag{}",
    "⁺": r"$^{+}$",
}
HEAD = "% Needs booktabs: \\usepackage{booktabs}. Names in other scripts need XeLaTeX or LuaLaTeX."


def render_latex(runs: Sequence[Run]) -> str:
    """Return the summary of the first run, the others' means under it, as LaTeX tables for the booktabs package."""
    summary = summarise(runs, sections=installed_sections())
    lines = [HEAD]
    lines += [f"% {SAMPLE_WARNING}"] if summary.sample else []
    lines += [f"% Scores x100. {INTERVAL_LEGEND}."]
    lines += _languages(summary)
    for suite in summary.suites:
        lines += _small(suite.title, "model", suite.heads, suite.rows)
        lines += [f"% {_one_line(note)}" for note in suite.notes]
    for matrix in summary.matrices:
        lines += _small(matrix.title, matrix.corner, matrix.columns, matrix.rows)
        lines += [f"% {_one_line(note)}" for note in matrix.notes]
    for report in summary.extra.values():
        for table in report.tables:
            lines += _text_table(table)
    notes = [note for report in summary.extra.values() for note in report.notes]
    lines += [f"% {_one_line(note)}" for note in (*summary.notes, *notes)]
    lines += [
        f"% {group.status}: {group.task} {' '.join(group.languages)}: {_one_line(group.reason)}"
        for group in summary.skipped
    ]
    return "\n".join(lines) + "\n"


def escape_latex(text: str) -> str:
    """Return a text in which no character is a command; line ends become spaces, control characters are replaced."""
    plain = "".join(character if character.isprintable() else " " for character in text)
    return "".join(_ESCAPES.get(character, character) for character in plain)


def _languages(summary: Summary) -> Iterator[str]:
    heads = [column.title.replace("\n", " ") for column in summary.columns]
    yield from _opened(summary.title, "language", heads)
    for number, part in enumerate(summary.sections):
        if number:
            yield r"\addlinespace"
        means = part.means or (Score(mark=" "),) * len(heads)
        yield _row(rf"\textit{{{escape_latex(part.family)}}}", means)
        for code, name, scores in part.rows:
            yield _row(rf"\quad {escape_latex(f'{name} ({code})')}", scores)
    if summary.scripts:
        yield r"\midrule"
        for script, scores in summary.scripts:
            yield _row(escape_latex(f"script {script}"), scores)
    yield r"\midrule"
    for label, scores in summary.means:
        yield _row(escape_latex(label), scores)
    for label, texts in summary.counts:
        yield " & ".join([escape_latex(label), *map(escape_latex, texts)]) + r" \\"
    yield from _closed()


def _small(
    title: str, corner: str, heads: Sequence[str], rows: Sequence[tuple[str, Sequence[Score]]]
) -> Iterator[str]:
    yield from _opened(title, corner, heads)
    for label, scores in rows:
        yield _row(escape_latex(label), scores)
    yield from _closed()


def _text_table(table: TextTable) -> Iterator[str]:
    yield from _opened(table.title, table.corner, table.plain_heads)
    for row in table.rows:
        indent = r"\quad " * max(0, row.level - 1)
        fields = row.fields or ("",) * len(table.heads)
        yield " & ".join([indent + escape_latex(row.label), *map(escape_latex, fields)]) + r" \\"
    yield from _closed()
    yield from (f"% {_one_line(note)}" for note in table.notes)


def _opened(title: str, corner: str, heads: Sequence[str]) -> Iterator[str]:
    yield ""
    yield r"\begin{table}"
    yield r"\centering"
    yield rf"\caption{{{escape_latex(title)}}}"
    yield rf"\begin{{tabular}}{{l{'r' * len(heads)}}}"
    yield r"\toprule"
    yield " & ".join(map(escape_latex, [corner, *heads])) + r" \\"
    yield r"\midrule"


def _closed() -> Iterator[str]:
    yield r"\bottomrule"
    yield r"\end{tabular}"
    yield r"\end{table}"


def _row(label: str, scores: Sequence[Score]) -> str:
    return " & ".join([label, *map(_score, scores)]) + r" \\"


def _score(score: Score) -> str:
    if score.value is None:
        return escape_latex(score.mark.strip()) or ("--" if not score.mark else "")
    ends = uncertainty(score.value, score.interval)
    small = rf" {{\small {escape_latex(ends)}}}" if ends else ""
    return f"{percent(score.value)}{escape_latex(score.mark)}{small}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
