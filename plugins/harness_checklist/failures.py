"""Test cases of checklists that the first run fails: their wrong examples, by language and test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness import HarnessError, Run
from harness.reporting import (
    Block,
    Field,
    Fold,
    Note,
    SectionReport,
    Table,
    TableRow,
    csv_text,
    item_text,
    render_latex,
    render_markdown,
    rows_of,
)
from harness.storage import CellResult, ItemRecord

CASES = 2
"""Cases of a test and language that are shown."""
EXAMPLES = 3
"""Wrong examples of a case that are shown."""
CASES_NOTE = f"Of every language and test, up to {CASES} cases with up to {EXAMPLES} of their wrong examples."


def failing_cases(run: Run, cell: CellResult, most: int) -> dict[str, dict[str, list[ItemRecord]]]:
    """Return the wrong examples of failing cases, by test and case, of at most `most` cases per test.

    Cases that no system can pass (the tag ``defect``) come last. Raises `DataError` where the records cannot be read.
    """
    by_test: dict[str, dict[str, list[ItemRecord]]] = {}
    for record in run.records(cell):
        if record.group is not None and record.scores.get("example_error"):
            by_case = by_test.setdefault(record.group, {})
            case, slash, _ = record.id.rpartition("/")
            by_case.setdefault(case if slash else record.cluster or record.id, []).append(record)
    return {
        test: dict(sorted(by_case.items(), key=lambda item: bool(item[1][0].tags.get("defect")))[:most])
        for test, by_case in by_test.items()
    }


def read_cases(runs: Sequence[Run]) -> SectionReport | None:
    """Return the failing cases of the main run's checklists for a page; None where no case fails."""
    return _report(runs[0])


def is_checklist(run: Run, cell: CellResult) -> bool:
    """Return whether a cell holds the scores of test cases."""
    return cell.status == "ok" and "example_error" in run.manifest.tasks[cell.task].metrics


def _report(run: Run, task: str | None = None) -> SectionReport | None:
    """Return the failing cases of a run's checklists, or of one, by language and test, and the errors of reading."""
    folds: list[Block] = []
    faults: list[str] = []
    for cell in run.cells:
        if task not in (None, cell.task) or not is_checklist(run, cell):
            continue
        try:
            by_test = failing_cases(run, cell, CASES)
        except HarnessError as error:
            faults.append(str(error))
            continue
        for test, cases in by_test.items():
            tables = [_case(name, records, cell.language) for name, records in cases.items()]
            folds.append(Fold(title=f"{cell.language}: {test}", blocks=tables))
    if not folds and not faults:
        return None
    return SectionReport(
        blocks=[Note(CASES_NOTE, "soft"), *folds] if folds else [],
        notes=faults,
        page_only=True,
        of_task=lambda name: _report(run, name),
    )


def answered(record: ItemRecord) -> str:
    """Return the answer that a model gave, to be shown."""
    answer = record.prediction.get("text", "") if isinstance(record.prediction, Mapping) else ""
    return str(answer) or "(nothing)"


def failure_table(rows: Sequence[Mapping[str, Any]], format_name: str) -> str:
    """Return wrong examples as a table with a row each, as XTREME-R's Table 12; by default as Markdown."""
    heads = ("test", "context", "question", "expected", "answered")
    if format_name == "csv":
        return csv_text(rows)
    table = Table(
        title="Examples that the model answers wrongly",
        corner="language",
        heads=heads,
        rows=rows_of((row["language"], *(str(row[name]) for name in heads)) for row in rows),
        words=frozenset(range(len(heads))),
    )
    return render_latex([table]) if format_name == "latex" else render_markdown([table])


def _case(name: str, records: list[ItemRecord], language: str) -> Table:
    rows: list[TableRow] = []
    for record in records[:EXAMPLES]:
        for label, text in (
            ("context", str(record.fields.get("context", ""))),
            ("question", str(record.fields.get("question", ""))),
            ("expected", "; ".join(map(str, record.reference))),
            ("answered", answered(record)),
        ):
            rows.append(TableRow(label=label, fields=(Field(parts=item_text(text, language)),)))
    defect = records[0].tags.get("defect")
    title = f"case {name}" + (f", which no system can pass: {defect}" if defect else "")
    return Table(title=title, rows=tuple(rows), words=frozenset({0}), style="item")
