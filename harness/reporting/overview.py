"""The first sections of the page: what was run, suites, scores, matrices, notes, and what was skipped or failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from harness.metrics.aggregation import cells_of_row
from harness.reporting.column import Column
from harness.reporting.console import SAMPLE_WARNING
from harness.reporting.heat import SCALES, heat_class, levels
from harness.reporting.item_origin import ADDED, PROVENANCE_MARKS
from harness.reporting.material import Material, cells_of, script_of
from harness.reporting.matrix import Matrix
from harness.reporting.mean_row import MeanRow, mean_notes
from harness.reporting.model import Block, Field, Fold, Note, Notes, Table, TableRow, anchor, rows_of
from harness.reporting.number import INTERVAL_LEGEND, interval_text, percent, score_field
from harness.reporting.score import Score, mean_score
from harness.reporting.summary import Section, SkippedGroup, Summary, summarise
from harness.reporting.summary_blocks import matrix_table, suite_table
from harness.reporting.unreadable import unreadable_notes
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

__all__ = ["error_table", "overview_blocks", "score_blocks"]

SKIPPED_SHOWN = 6
"""Groups of skipped cells that are not folded."""
LEGEND = (
    "Colours go from chance (0 where it is not known) to 100 in every column. From the best language down, those that "
    "do not differ measurably from the first of their colour have the same one; the number says how much. * scored on "
    "another split than test, ! the cell failed, - no score: the reason is its title."
)


def overview_blocks(material: Material) -> list[Block]:
    """Return what was run and how it scored as a whole."""
    summary = material.summary
    failures: list[Block] = []
    for run in material.runs[1:]:
        failed = [group for group in summarise([run]).skipped if group.status == "failed"]
        failures += [Note(material.name(run), "heading"), *_skipped(failed)] if failed else []
    return [
        *([Note(SAMPLE_WARNING, "warning")] if summary.sample else []),
        *_means(material),
        *map(suite_table, summary.suites),
        Notes(summary.notes),
        *_skipped(summary.skipped),
        *failures,
    ]


def _means(material: Material) -> list[Block]:
    rows: list[tuple[str | Field, ...]] = []
    found: list[tuple[str, list[MeanRow]]] = []
    for column in material.columns:
        for run in material.every:
            mean = material.mean(run, column)
            found.append((material.name(run), [mean]))
            if mean.row is not None:
                items = sum(cells[0].n for cells in cells_of_row(mean.row, run.cells).values() if cells)
                rows.append(
                    (
                        column.plain_title,
                        material.name(run),
                        score_field(mean.marked(Score(value=mean.row.value))),
                        interval_text(mean.row.ci),
                        str(mean.row.languages),
                        f"{items:,}",
                        percent(mean.row.transfer_gap),
                    )
                )
    if not rows:
        return [Note("Nothing was scored.")]
    heads = ("system", "mean", "95 % interval", "languages", "items", "transfer gap")
    title = "Unweighted means over languages, times 100"
    table = Table(title=title, corner="task", heads=heads, rows=rows_of(rows), words=frozenset({0}))
    return [replace(table, notes=tuple(mean_notes(found)))]


def _skipped(groups: Sequence[SkippedGroup]) -> Iterator[Block]:
    for status, title in (("failed", "Failed"), ("skipped", "Skipped")):
        own = [group for group in groups if group.status == status]
        count = sum(group.cells for group in own)
        table = Table(
            title=f"{title}: {count} {'cell' if count == 1 else 'cells'}",
            corner="task",
            heads=("protocol", "languages", "reason"),
            rows=rows_of(
                (group.task, group.protocol or "-", " ".join(group.languages), group.reason) for group in own
            ),
            words=frozenset({0, 1, 2}),
        )
        if own:
            is_long = status == "skipped" and len(own) > SKIPPED_SHOWN
            yield Fold(title=table.title, blocks=[table]) if is_long else table


def score_blocks(material: Material) -> list[Block]:
    """Return languages against tasks of every given run, by family and by script, and the matrices."""
    parts: list[Block] = [Note(LEGEND + _origin_legend(material.summary), "note")]
    for number, run in enumerate(material.runs):
        summary = material.summary if number == 0 else summarise([run])
        by_script = _score_table(material, run, summary, _script_sections(run, summary), "script")
        inside: list[Block] = [
            _score_table(material, run, summary, summary.sections, "family"),
            Fold(title="The same by script", blocks=[by_script]),
            *(
                Fold(title=matrix.title, blocks=[error_table(matrix)], is_open=matrix.is_small)
                for matrix in summary.matrices
            ),
        ]
        parts += inside if number == 0 else [Fold(title=f"Scores of {material.name(run)}", blocks=inside)]
    return parts


def _origin_legend(summary: Summary) -> str:
    """Return what the marks of items mean that are not the benchmark's own text, as far as a table has them."""
    scores = (score for part in summary.sections for _, _, scores in part.rows for score in scores)
    marks = {mark for score in scores for mark in score.mark}
    meanings = {
        **{mark: made for made, mark in PROVENANCE_MARKS.items()},
        ADDED: f"added to the task by others, not in the mean without {ADDED}",
    }
    shown = [f"{mark} {meaning}" for mark, meaning in meanings.items() if mark in marks]
    return f" {', '.join(shown)}." if shown else ""


def _score_table(
    material: Material, run: Run, summary: Summary, sections: Sequence[Section], by: str
) -> Table:
    """Return the scores of a run as colours: a row per language under its group, the means at the end."""
    columns = summary.columns
    shades = _shades(run, sections, columns)
    pages = {code for code, _, _ in material.languages}
    rows: list[TableRow] = []
    for part in sections:
        means = part.means or (Score(mark=" "),) * len(columns)
        rows.append(TableRow(label=part.family, fields=tuple(map(score_field, means)), style="head"))
        for code, name, scores in part.rows:
            label = Field(
                text=f"{name} ({code})", href=f"#{anchor('language', code)}" if code in pages else ""
            )
            fields = (
                _field(score, run, column, code, name, shades[code, place])
                for place, (score, column) in enumerate(zip(scores, columns, strict=True))
            )
            rows.append(TableRow(label=label, fields=tuple(fields)))
    for title, scores in summary.means:
        rows.append(TableRow(label=title, fields=tuple(map(score_field, scores)), style="bold"))
    for title, texts in summary.counts:
        rows.append(TableRow(label=title, fields=texts, style="dim"))
    return Table(
        title=f"Scores of {material.name(run)} by {by}, times 100; {INTERVAL_LEGEND}",
        corner="language",
        heads=tuple(column.title for column in columns),
        head_titles=tuple(
            f"{column.task}, {column.protocol}, {column.method}, {column.metric}" for column in columns
        ),
        rows=tuple(rows),
        style="heat scores",
        ramp="score",
        ramp_low="chance, or 0 where it is not known",
    )


def _script_sections(run: Run, summary: Summary) -> tuple[Section, ...]:
    """Return the rows of a summary grouped by script, the script with most languages first."""
    groups: dict[str, list[tuple[str, str, tuple[Score, ...]]]] = {}
    for part in summary.sections:
        for row in part.rows:
            groups.setdefault(script_of(run, row[0]), []).append(row)
    means = dict(summary.scripts)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple(
        Section(
            family=script,
            rows=tuple(sorted(rows)),
            means=means.get(script)
            or tuple(mean_score(own) for own in zip(*(scores for *_, scores in rows), strict=True)),
        )
        for script, rows in ordered
    )


def _shades(
    run: Run, sections: Sequence[Section], columns: Sequence[Column]
) -> Mapping[tuple[str, int], str]:
    """Return the class of every field, by language and place of the column."""
    rows = [(code, scores) for part in sections for code, _, scores in part.rows]
    found: dict[tuple[str, int], str] = {}
    for place, column in enumerate(columns):
        own = [scores[place] for _, scores in rows]
        # Colours start at chance where that is known of the metric.
        spec = run.manifest.tasks.get(column.task)
        low = spec.chance if spec is not None and column.metric in spec.headline[:1] else None
        for (code, _), level in zip(rows, _levels(own), strict=True):
            found[code, place] = heat_class(level, float(low or 0.0), 1.0)
    return found


def _levels(scores: Sequence[Score]) -> list[float | None]:
    return levels([score.value for score in scores], [score.reach for score in scores])


def _field(score: Score, run: Run, column: Column, code: str, name: str, shade: str) -> Field:
    cells = cells_of(run, column, code)
    shown = score_field(score)
    if score.value is None:
        reasons = [cell.reason for cell in cells if cell.reason] or unreadable_notes(cells)
        title = next(iter(reasons), "") or _skip_reason(run, column, code) or "no score"
        return Field(text=shown.text.strip() or "-", title=title, shade="absent")
    details = "; ".join(_details(column, cells))
    return replace(shown, title=f"{column.task} {name}: {details}", shade=shade)


def _details(column: Column, cells: Sequence[CellResult]) -> Iterator[str]:
    for cell in cells:
        entry = cell.metrics.get(column.metric)
        if entry is not None:
            seed = f"seed {cell.seed}: " if len(cells) > 1 else ""
            details = "no interval"
            if entry.ci is not None:
                details = f"95 % interval {interval_text(entry.ci)} ({entry.ci_method})"
            yield f"{seed}{percent(entry.value)}, {details}, {cell.n:,} items"


def _skip_reason(run: Run, column: Column, code: str) -> str:
    found = (cell for cell in run.cells if (cell.task, cell.language) == (column.task, code))
    return next((str(cell.reason) for cell in found if cell.status != "ok"), "")


def error_table(matrix: Matrix) -> Table:
    """Return a matrix; one of error rates in the colours of errors, from 0 to 100."""
    table = matrix_table(matrix)
    if not matrix.heat:
        return table
    # The fields of all rows are compared with each other.
    found = iter(_levels([score for _, scores in matrix.rows for score in scores]))
    low, high = SCALES["error"]
    rows: list[tuple[str | Field, ...]] = [
        (
            label,
            *(
                replace(score_field(own), shade=heat_class(next(found), low, high, ramp="error"))
                for own in scores
            ),
        )
        for label, scores in matrix.rows
    ]
    return replace(table, rows=rows_of(rows), style="heat", ramp="error")
