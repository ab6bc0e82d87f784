"""Languages against tasks as a coloured table: by family and by script, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from harness.reporting.column import Column
from harness.reporting.html.layout import anchor
from harness.reporting.html.material import Material, cells_of, script_of
from harness.reporting.markup.element import Child, Element, element
from harness.reporting.markup.heatmap import HeatRow, heat_class, heat_legend, heatmap, levels
from harness.reporting.matrix import Matrix
from harness.reporting.number import INTERVAL_LEGEND, interval_text, percent, uncertainty
from harness.reporting.score import Score
from harness.reporting.summary import Section, Summary
from harness.reporting.unreadable import unreadable_notes
from harness.storage.run_folder import Run

__all__ = ["error_heatmap", "score_legend", "score_table", "script_sections"]

Fields = Mapping[tuple[str, int], str]
"""Language and place of the column -> the class of the field."""
LEGEND = (
    "Colours go from chance (0 where it is not known) to 100 in every column. From the best language down, those that "
    "do not differ measurably from the first of their colour have the same one; the number says how much."
)


def score_legend() -> Element:
    """Return the colours of `score_table`."""
    return heat_legend("chance, or 0 where it is not known", "100")


def score_table(
    material: Material, run: Run, summary: Summary, sections: Sequence[Section], by: str
) -> Element:
    """Return the scores of a run, times 100: a row per language under its group, the means at the end.

    Args:
        material: For what the page has of each language.
        run: The run.
        summary: Its summary.
        sections: The groups of its languages.
        by: What the groups are: ``family`` or ``script``.
    """
    columns = summary.columns
    styles = _styles(run, sections, columns)
    pages = {code for code, _, _ in material.languages}
    caption = f"Scores of {material.name(run)} by {by}, times 100; {INTERVAL_LEGEND}"
    return element(
        "div",
        element(
            "table",
            element("caption", caption),
            element("thead", element("tr", element("th", "language", scope="col"), map(_head, columns))),
            [_group(run, part, columns, styles, pages) for part in sections],
            element("tbody", [_mean_row(label, scores) for label, scores in summary.means]),
            element("tbody", [_count_row(label, texts) for label, texts in summary.counts]),
            class_="heat scores",
        ),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label=caption,
    )


def script_sections(run: Run, summary: Summary) -> tuple[Section, ...]:
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
            means=means.get(script, _means_of([scores for _, _, scores in rows])),
        )
        for script, rows in ordered
    )


def _means_of(rows: Sequence[Sequence[Score]]) -> tuple[Score, ...]:
    found = []
    for column in zip(*rows, strict=True):
        values = [score.value for score in column if score.value is not None]
        found.append(Score(value=fmean(values)) if values else Score())
    return tuple(found)


def _head(column: Column) -> Element:
    lines: list[Child] = []
    for line in column.title.split("\n"):
        lines += [element("br"), line] if lines else [line]
    details = f"{column.task}, {column.protocol}, {column.method}, {column.metric}"
    return element("th", lines, scope="col", class_="n", title=details)


def _styles(run: Run, sections: Sequence[Section], columns: Sequence[Column]) -> Fields:
    rows = [(code, scores) for part in sections for code, _, scores in part.rows]
    found: dict[tuple[str, int], str] = {}
    for place, column in enumerate(columns):
        own = [scores[place] for _, scores in rows]
        low = _chance(run, column)
        shown = levels([score.value for score in own], [_reach(score) for score in own])
        for (code, _), level in zip(rows, shown, strict=True):
            found[code, place] = heat_class(level, low, 1.0)
    return found


def _chance(run: Run, column: Column) -> float:
    """Return where the colours of a column start: at chance where that is known of its metric, else at 0."""
    spec = run.manifest["tasks"].get(column.task, {})
    known = spec.get("chance") if column.metric in spec.get("headline", ())[:1] else None
    return 0.0 if known is None else float(known)


def _reach(score: Score) -> float | None:
    """Return half of a score's interval, the longer side of one that is not symmetric."""
    if score.value is None or score.interval is None:
        return None
    return max(score.value - score.interval[0], score.interval[1] - score.value)


def _group(run: Run, part: Section, columns: Sequence[Column], styles: Fields, pages: set[str]) -> Element:
    means = part.means or (Score(mark=" "),) * len(columns)
    head = element("tr", element("th", part.family, scope="rowgroup"), map(_plain, means), class_="group")
    rows = []
    for code, name, scores in part.rows:
        label: Child = f"{name} ({code})"
        label = element("a", label, href=f"#{anchor('language', code)}") if code in pages else label
        fields = [
            _field(score, run, column, code, name, styles[code, place])
            for place, (score, column) in enumerate(zip(scores, columns, strict=True))
        ]
        rows.append(element("tr", element("th", label, scope="row"), fields))
    return element("tbody", head, rows)


def _field(score: Score, run: Run, column: Column, code: str, name: str, style: str) -> Element:
    cells = cells_of(run, column, code)
    if score.value is None:
        reasons = [cell["reason"] for cell in cells if cell["reason"]] or unreadable_notes(cells)
        reason = next(iter(reasons), "") or _skipped(run, column, code)
        return element("td", score.mark.strip() or "-", class_="n absent", title=reason or "no score")
    details = "; ".join(_details(column, cells))
    return element(
        "td",
        f"{percent(score.value)}{score.mark}",
        _uncertainty(score.value, score.interval),
        class_=f"n {style}",
        title=f"{column.task} {name}: {details}",
    )


def _details(column: Column, cells: Sequence[Mapping[str, object]]) -> Iterator[str]:
    for cell in cells:
        metrics = cell["metrics"]
        entry = metrics.get(column.metric) if isinstance(metrics, Mapping) else None
        if entry is not None:
            seed = f"seed {cell['seed']}: " if len(cells) > 1 else ""
            details = "no interval"
            if entry["ci"] is not None:
                details = f"95 % interval {interval_text(entry['ci'])} ({entry['ci_method']})"
            yield f"{seed}{percent(entry['value'])}, {details}, {cell['n']:,} items"


def _skipped(run: Run, column: Column, code: str) -> str:
    return next(
        (
            str(cell["reason"])
            for cell in run.cells
            if (cell["task"], cell["language"]) == (column.task, code) and cell["status"] != "ok"
        ),
        "",
    )


def _plain(score: Score) -> Element:
    if score.value is None:
        return element("td", score.mark.strip() or None, class_="n")
    details = _uncertainty(score.value, score.interval)
    return element("td", f"{percent(score.value)}{score.mark}", details, class_="n")


def _uncertainty(value: float, interval: tuple[float, float] | None) -> Element | None:
    details = uncertainty(value, interval)
    return element("small", f" {details}") if details else None


def _mean_row(label: str, scores: Sequence[Score]) -> Element:
    fields = [element("td", "-", class_="n") if score == Score() else _plain(score) for score in scores]
    return element("tr", element("th", label, scope="row"), fields, class_="mean")


def _count_row(label: str, texts: Sequence[str]) -> Element:
    fields = [element("td", text, class_="n soft") for text in texts]
    return element("tr", element("th", label, scope="row"), fields)


def error_heatmap(matrix: Matrix) -> Element:
    """Return the error rates of a matrix as a coloured table, from 0 to 100, in the colours of errors."""
    rows = [
        HeatRow(
            label=label,
            values=tuple(None if score.value is None else score.value * 100 for score in scores),
            marks=tuple(score.mark for score in scores),
            reaches=tuple(None if (reach := _reach(score)) is None else reach * 100 for score in scores),
        )
        for label, scores in matrix.rows
    ]
    return heatmap(matrix.title, matrix.columns, rows, corner=matrix.corner, ramp="error")
