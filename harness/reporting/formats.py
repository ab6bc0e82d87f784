"""The report formats and sections that the core brings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from harness.errors import UsageError
from harness.registry.declarations import ReportFormat, ReportSection
from harness.reporting.render.text import render_csv, render_json
from harness.storage.run_folder import Run


def _document(name: str) -> Callable[[Sequence[Run]], str]:
    """Return a function that makes a document; what reads a run is imported then, not to list formats."""

    def render(runs: Sequence[Run]) -> str:
        from harness.reporting import documents

        text: str = getattr(documents, name)(runs)
        return text

    return render


def _figures(format_name: str) -> ReportFormat:
    """Return a format that writes the charts of every run into a folder."""

    def render(runs: Sequence[Run]) -> str:
        raise UsageError(
            f"The format {format_name!r} writes figures into a folder.", hint="Name it with --output."
        )

    def write(runs: Sequence[Run], folder: Path) -> list[Path]:
        from harness.reporting.overview.figures import write_figures

        return write_figures(runs, folder, format_name)

    return ReportFormat(
        name=format_name,
        suffix=f".{format_name}",
        render=render,
        summary="heat map, gap and layer curves of runs as figures",
        write=write,
    )


FORMATS = (
    *(
        ReportFormat(name=name, suffix=suffix, render=_document(function), summary=summary)
        for name, suffix, function, summary in (
            ("console", ".txt", "terminal_text", "tables and summary for a terminal"),
            ("markdown", ".md", "markdown_text", "tables by language in Markdown"),
            ("html", ".html", "html_text", "one self-contained page"),
            ("latex", ".tex", "latex_text", "tables of the summary in LaTeX"),
        )
    ),
    ReportFormat(name="csv", suffix=".csv", render=render_csv, summary="one row per metric and cell"),
    ReportFormat(name="json", suffix=".json", render=render_json, summary="results.json, baselines included"),
    *map(_figures, ("svg", "pdf", "png")),
)

SECTIONS = (
    ReportSection(
        name="consistency",
        title="Consistency between languages",
        target="harness.reporting.languages.consistency:read_consistency",
        empty="This run has no parallel task in two languages.",
    ),
    ReportSection(
        name="knowledge",
        title="The same knowledge in all languages",
        target="harness.reporting.languages.consistency:read_knowledge",
        empty="This run has no parallel task with right and wrong answers in two languages.",
    ),
    ReportSection(
        name="explain",
        title="What goes with the scores of languages",
        target="harness.reporting.languages.explanation:read_explanation",
        in_terminal=False,
        empty="These runs have no task with scores in 10 languages of 4 families besides English, "
        "on data that are not the sample.",
    ),
    ReportSection(
        name="asked",
        title="How answers were asked for and read",
        target="harness.reporting.prompting:read_asked",
    ),
)
