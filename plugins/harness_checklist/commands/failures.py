"""``harness checklist failures``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.output import echo

if TYPE_CHECKING:
    from harness import ItemRecord

__all__ = ["failures"]


def failures(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    languages: Annotated[
        list[str] | None, typer.Option("--languages", "-l", help="Only these codes.")
    ] = None,
    tests: Annotated[list[str] | None, typer.Option("--tests", "-t", help="Only these tests.")] = None,
    cases: Annotated[int, typer.Option("--cases", min=1, help="Cases per language and test.")] = 1,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the wrong examples here, one row each.")
    ] = None,
) -> None:
    """Print test cases that a run failed: context, question, expected answer, given answer.

    Example: harness checklist failures runs/my-run --languages de --tests comparisons
    """
    from harness import Run, UsageError
    from harness.cli.output import check_output_file, write_rows
    from harness.specs.selection import split_names
    from harness_checklist.reporting.cases import failing_cases

    check_output_file(json_file)
    run = Run(folder)
    wanted, named = split_names(languages or []), split_names(tests or [])
    checklists = [
        cell
        for cell in run.cells
        if cell["status"] == "ok" and "example_error" in run.manifest["tasks"][cell["task"]]["metrics"]
    ]
    if not checklists:
        raise UsageError(
            f"The run {str(folder)!r} has no test cases.", hint="Run: harness eval --tasks multichecklist"
        )
    rows: list[dict[str, Any]] = []
    for cell in checklists:
        if wanted and cell["language"] not in wanted:
            continue
        for test, found in failing_cases(run, cell, cases).items():
            if named and test not in named:
                continue
            for case, records in found.items():
                rows += [_row(cell, test, case, record) for record in records]
    last = None
    for row in rows:
        heading = (row["language"], row["test"], row["case"])
        if heading != last:
            defect = f", which no model can pass ({row['defect']})" if row["defect"] else ""
            echo(f"{row['language']} {row['test']}, case {row['case']}{defect}")
            last = heading
        for name in ("context", "question", "expected", "answered"):
            echo(f"  {name:<9} {row[name]}")
        echo("")
    if not rows:
        echo("No test case failed.")
    if json_file is not None:
        write_rows(json_file, rows)


def _row(cell: Mapping[str, Any], test: str, case: str, record: ItemRecord) -> dict[str, Any]:
    answer = record.prediction.get("text", "") if isinstance(record.prediction, Mapping) else ""
    return {
        "task": cell["task"],
        "language": cell["language"],
        "test": test,
        "case": case,
        "id": record.id,
        "defect": record.tags.get("defect"),
        "context": record.fields.get("context", ""),
        "question": record.fields.get("question", ""),
        "expected": "; ".join(map(str, record.reference)),
        "answered": str(answer) or "(nothing)",
    }
