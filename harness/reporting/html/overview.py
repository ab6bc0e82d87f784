"""The first sections: what was run, suites, scores, matrices, notes, and what was skipped or failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.metrics.aggregation import cells_of_row
from harness.reporting.console import SAMPLE_WARNING
from harness.reporting.html.heatmap import (
    LEGEND,
    error_heatmap,
    score_legend,
    score_table,
    script_sections,
)
from harness.reporting.html.layout import fold, notes, section, table
from harness.reporting.html.material import Material
from harness.reporting.item_origin import ADDED, PROVENANCE_MARKS
from harness.reporting.markup.element import Child, Element, element
from harness.reporting.mean_row import MeanRow, mean_notes
from harness.reporting.number import interval_text, percent
from harness.reporting.score import Score
from harness.reporting.summary import SkippedGroup, Summary, summarise
from harness.storage.run_folder import Run

__all__ = ["overview_section", "score_section"]

SKIPPED_SHOWN = 6
"""Groups of skipped cells that are not folded."""


def overview_section(material: Material) -> Element:
    """Return what was run and how it scored as a whole."""
    summary = material.summary
    return section(
        "overview",
        "Overview",
        element("p", element("strong", SAMPLE_WARNING), class_="warning", role="note")
        if summary.sample
        else None,
        _means(material),
        [
            [table(suite.title, ("model", *suite.heads), _score_rows(suite.rows)), notes(suite.notes)]
            for suite in summary.suites
        ],
        notes(summary.notes),
        _skipped(summary.skipped),
        [_further_failures(material, run) for run in material.runs[1:]],
    )


def score_section(material: Material) -> Element:
    """Return languages against tasks of every given run, by family and by script, and the matrices."""
    parts: list[Child] = []
    for number, run in enumerate(material.runs):
        summary = material.summary if number == 0 else summarise([run])
        by_family = score_table(material, run, summary, summary.sections, "family")
        scripts = script_sections(run, summary)
        by_script = score_table(material, run, summary, scripts, "script")
        inside: list[Child] = [by_family, fold("The same by script", by_script), _matrices(summary)]
        parts += inside if number == 0 else [fold(f"Scores of {material.name(run)}", inside)]
    legend = (
        f"{LEGEND} * scored on another split than test, ! the cell failed, - no score: the reason is its title."
        f"{_origin_legend(material.summary)}"
    )
    return section("scores", "Scores by language", element("p", legend, class_="note"), score_legend(), parts)


def _origin_legend(summary: Summary) -> str:
    """Return what the marks of items mean that are not the benchmark's own text, as far as a table has them."""
    marks = {
        mark
        for part in summary.sections
        for _, _, scores in part.rows
        for score in scores
        for mark in score.mark
    }
    meanings = {
        **{mark: made for made, mark in PROVENANCE_MARKS.items()},
        ADDED: "added to the task by others, not in the mean without ⁺",
    }
    shown = [f"{mark} {meaning}" for mark, meaning in meanings.items() if mark in marks]
    return f" {', '.join(shown)}." if shown else ""


def _means(material: Material) -> list[Element | None]:
    rows: list[tuple[Child, ...]] = []
    found: list[tuple[str, list[MeanRow]]] = []
    for column in material.columns:
        for run in material.every:
            mean = material.mean(run, column)
            found.append((material.name(run), [mean]))
            if mean.row is not None:
                cells = [cell for cells in cells_of_row(mean.row, run.cells).values() for cell in cells[:1]]
                rows.append(
                    (
                        column.title.replace("\n", " "),
                        material.name(run),
                        _score_text(mean.marked(Score(value=mean.row["value"]))),
                        interval_text(mean.row.get("ci")),
                        str(mean.row["languages"]),
                        f"{sum(cell['n'] for cell in cells):,}",
                        percent(mean.row.get("transfer_gap")),
                    )
                )
    heads = ("task", "system", "mean", "95 % interval", "languages", "items", "transfer gap")
    caption = "Unweighted means over languages, times 100"
    if not rows:
        return [element("p", "Nothing was scored.")]
    return [table(caption, heads, rows, texts={1}), notes(mean_notes(found))]


def _score_rows(rows: Sequence[tuple[str, Sequence[Score]]]) -> Iterator[tuple[str, ...]]:
    for label, scores in rows:
        yield (label, *(_score_text(score) for score in scores))


def _score_text(score: Score) -> str:
    return score.mark.strip() or "-" if score.value is None else f"{percent(score.value)}{score.mark}"


def _matrices(summary: Summary) -> list[Element | None]:
    return [
        fold(
            matrix.title,
            error_heatmap(matrix)
            if matrix.heat
            else table(matrix.title, (matrix.corner, *matrix.columns), _score_rows(matrix.rows)),
            notes(matrix.notes),
            is_open=matrix.is_small,
        )
        for matrix in summary.matrices
    ]


def _skipped(groups: Sequence[SkippedGroup]) -> list[Element]:
    parts = []
    for status, title in (("failed", "Failed"), ("skipped", "Skipped")):
        own = [group for group in groups if group.status == status]
        count = sum(group.cells for group in own)
        if own:
            rows = [
                (
                    group.task,
                    group.protocol or "-",
                    " ".join(group.languages),
                    group.reason,
                )
                for group in own
            ]
            caption = f"{title}: {count} {'cell' if count == 1 else 'cells'}"
            shown = table(caption, ("task", "protocol", "languages", "reason"), rows, texts={1, 2, 3})
            folded = status == "skipped" and len(own) > SKIPPED_SHOWN
            parts.append(fold(caption, shown) if folded else shown)
    return parts


def _further_failures(material: Material, run: Run) -> Element | None:
    found = _skipped([group for group in summarise([run]).skipped if group.status == "failed"])
    return element("div", element("h3", material.name(run)), found) if found else None
