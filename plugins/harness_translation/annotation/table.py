"""The report of an annotation as tables for a terminal, as Markdown, and as rows of plain values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness_translation.annotation.agreement_report import AgreementReport, SheetAgreement

__all__ = ["ReportTable", "as_markdown", "as_rows", "final_lines", "notes", "tables"]

Interval = tuple[float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """One table with its fields as text."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(report: AgreementReport, *, items: int = 0) -> list[ReportTable]:
    """Return the tables of a report that have rows; `items` limits the items to fix."""
    found = [
        _agreement_table(report),
        _contrast_table(report),
        *(_confusion_table(sheet) for sheet in report.sheets),
        _precision_table(report),
        _item_table(report, items),
    ]
    return [table for table in found if table.rows]


def _agreement_table(report: AgreementReport) -> ReportTable:
    return ReportTable(
        title="Agreement of annotators with the inherited label",
        heads=(
            "language",
            "text",
            "n",
            "agreement",
            "95 % interval",
            "each",
            "kappa",
            "alpha",
            "95 % interval",
        ),
        rows=tuple(
            (
                _named(sheet.task, sheet.language),
                sheet.text,
                "-" if sheet.n is None else f"{sheet.n:,}",
                "open" if sheet.agreement is None else f"{100 * sheet.agreement:.1f}",
                _between(sheet.interval, 100, 1),
                " ".join(f"{100 * share:.1f}" for share in sheet.each.values()) or "-",
                " ".join(_number(kappa) for kappa in sheet.kappas.values()) or "-",
                _number(sheet.alpha),
                _between(sheet.alpha_interval, 1, 2),
            )
            for sheet in report.sheets
        ),
    )


def _contrast_table(report: AgreementReport) -> ReportTable:
    return ReportTable(
        title="Texts compared (two-proportion test)",
        heads=("compared", "first", "second", "difference", "p", "p (Holm)"),
        rows=tuple(
            (
                one.across,
                _named(one.task, one.first),
                _named(one.task, one.second),
                f"{100 * one.difference:+.1f}",
                _p(one.p),
                _p(one.p_holm),
            )
            for one in report.contrasts
        ),
    )


def _confusion_table(sheet: SheetAgreement) -> ReportTable:
    inherited = sorted({label for label, _ in sheet.confusion})
    final = sorted({label for pair in sheet.confusion for label in pair})
    rows = []
    for label in inherited:
        counts = [sheet.confusion.get((label, other), 0) for other in final]
        kept = sheet.confusion.get((label, label), 0)
        rows.append((label, *map(str, counts), f"{100 * kept / sum(counts):.1f}"))
    return ReportTable(
        title=f"{_named(sheet.task, sheet.language)}, {sheet.text}: inherited label (rows) and final label (columns)",
        heads=("inherited", *final, "kept"),
        rows=tuple(rows),
    )


def _precision_table(report: AgreementReport) -> ReportTable:
    return ReportTable(
        title="Suspects: wrong labels among the first k, and in the random control",
        heads=("text", "k", "wrong", "precision", "95 % interval", "control", "lift", "p"),
        rows=tuple(
            (
                f"{_named(one.task, one.language)} {one.text}",
                str(one.k),
                str(one.wrong),
                f"{100 * one.precision:.1f}",
                _between(one.interval, 100, 1),
                f"{100 * one.base_rate:.1f} of {one.control}",
                f"{one.precision / one.base_rate:.1f}" if one.base_rate else "-",
                _p(one.p),
            )
            for one in report.precisions
        ),
    )


def _item_table(report: AgreementReport, items: int) -> ReportTable:
    left = len(report.to_fix) - items
    return ReportTable(
        title=f"Items to fix{f' (the first {items} of {len(report.to_fix)})' if left > 0 else ''}",
        heads=("text", "id", "inherited", "final", "content"),
        rows=tuple(
            (
                " ".join([_named(row["task"], row["language"]), row.get("variant", "")]).strip(),
                row["id"],
                row["inherited"],
                row["label"],
                " | ".join(row["text"].values()),
            )
            for row in report.to_fix[:items]
        ),
    )


def notes(report: AgreementReport) -> Iterator[str]:
    """Yield notes that explain the tables."""
    yield (
        "In percent. Intervals: Wilson's; each: annotators by themselves, before adjudication; kappa: Cohen's, for "
        "each pair of them; alpha: Krippendorff's for nominal labels, its interval by resampling items."
    )
    for sheet in report.sheets:
        name = f"{_named(sheet.task, sheet.language)}, {sheet.text}"
        if sheet.design != "simple":
            yield f"{name}: the sample is {sheet.design}; strata are weighted by their size in the test set."
        if sheet.open:
            assert sheet.bounds is not None
            yield (
                f"{name}: annotators disagree on {sheet.open} undecided rows, so the agreement of the labelled "
                f"rows is in the range {_between(sheet.bounds, 100, 1)}. Decide them in the sheets for "
                "adjudication."
            )
        if sheet.unlabelled:
            yield f"{name}: {sheet.unlabelled} rows have no label and are not counted."
    if report.precisions:
        yield "Suspects are not a random sample: their precision is that of the ranking, not of the test set."


def as_markdown(report: AgreementReport, *, items: int) -> str:
    """Return the report as a Markdown document."""
    lines = ["# Labels checked by annotators", ""]
    for table in tables(report, items=items):
        lines += [f"## {_escape(table.title)}", "", f"| {' | '.join(map(_escape, table.heads))} |"]
        lines += ["|" + " --- |" * len(table.heads)]
        lines += [f"| {' | '.join(map(_escape, row))} |" for row in table.rows]
        lines += [""]
    return "\n".join([*lines, *(f"- {_escape(note)}" for note in notes(report))]) + "\n"


def as_rows(report: AgreementReport) -> list[dict[str, Any]]:
    """Return the whole report as rows of plain values; ``row`` names the kind of a row."""
    rows: list[dict[str, Any]] = [_sheet_row(sheet) for sheet in report.sheets]
    for one in report.contrasts:
        rows.append({"row": "contrast", **{name: getattr(one, name) for name in one.__slots__}})
    for each in report.precisions:
        found = {name: getattr(each, name) for name in each.__slots__}
        rows.append({"row": "suspects", **found, "interval": list(each.interval)})
    return [*rows, *({"row": "item to fix", **item} for item in report.to_fix)]


def _sheet_row(sheet: SheetAgreement) -> dict[str, Any]:
    plain = ("task", "language", "text", "n", "agree", "agreement", "open", "unlabelled", "design", "alpha")
    return {
        "row": "agreement",
        **{name: getattr(sheet, name) for name in plain},
        "ci": _listed(sheet.interval),
        "each": dict(sheet.each),
        "bounds": _listed(sheet.bounds),
        "alpha_ci": _listed(sheet.alpha_interval),
        "kappa": [{"annotators": list(pair), "value": value} for pair, value in sheet.kappas.items()],
        "confusion": [
            {"inherited": inherited, "final": final, "n": count}
            for (inherited, final), count in sorted(sheet.confusion.items())
        ],
    }


def _listed(interval: Interval) -> list[float] | None:
    return None if interval is None else list(interval)


def _named(task: str, name: str) -> str:
    return f"{task}:{name}" if task else name


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _between(interval: Interval, scale: float, digits: int) -> str:
    if interval is None:
        return "-"
    return f"{scale * interval[0]:.{digits}f} to {scale * interval[1]:.{digits}f}"


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _escape(text: str) -> str:
    for character in "\\|<>*_`[]":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())


def final_lines(labels: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a gold file: every final label with the identity of its item."""
    names = ("task", "language", "variant", "translator", "id", "label")
    for row in labels:
        yield {name: row[name] for name in names if name in row}
