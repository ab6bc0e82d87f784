"""What a run of a judge shows by language: verdicts that could be read, its metrics, and whether it is calibrated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness import Run, UsageError
from harness.reporting import percent, uncertainty
from harness.storage import CellResult, MetricValue

KAPPA = "judge_kappa"
Condition = tuple[str, str | None]
"""Language and method: a judge that ranks verdicts is not the one that writes them."""


def calibrations(runs: Sequence[Run], judged: Run) -> dict[Condition, MetricValue]:
    """Return the judge's kappa with gold by language and method, of its runs on tasks that have gold.

    One that several cells calibrate takes the lowest kappa.

    Raises:
        UsageError: Where a run is not by the same judge: adapter, model, revision and options.
    """
    found: dict[Condition, MetricValue] = {}
    for run in runs:
        if _judge(run) != _judge(judged):
            raise UsageError(
                f"The run {str(run.path)!r} is by another judge than {str(judged.path)!r}: the model, "
                "its revision or its options differ.",
                hint="Calibrate with the same --model and -o.",
            )
        for cell in _cells(run):
            kappa = cell.metrics.get(KAPPA)
            key = cell.language, cell.method
            if kappa and (key not in found or kappa.value < found[key].value):
                found[key] = kappa
    return found


def _judge(run: Run) -> tuple[Any, ...]:
    head = run.results.model
    return head.adapter, head.ref, head.revision, dict(run.manifest.config.get("options") or {})


def _cells(run: Run) -> list[CellResult]:
    cells = [
        cell
        for cell in run.cells
        if cell.status == "ok" and any(name.startswith("judge_") for name in cell.metrics)
    ]
    if not cells:
        raise UsageError(
            f"The run {str(run.path)!r} has no finished cells of a judge.",
            hint="Write a task with 'harness judge export', then evaluate it with the judge.",
        )
    return cells


def report_rows(run: Run, calibrated: Mapping[Condition, MetricValue]) -> list[dict[str, Any]]:
    """Return a row per cell; a language is calibrated where the interval of kappa is known and above 0."""
    rows = []
    for cell in _cells(run):
        kappa = calibrated.get((cell.language, cell.method))
        rows.append(
            {
                "task": cell.task,
                "language": cell.language,
                "method": cell.method,
                "view": cell.view,
                "items": cell.n,
                "unreadable": cell.unparsed + cell.unanswered,
                "metrics": {
                    name: {"value": value.value, "ci": value.ci} for name, value in cell.metrics.items()
                },
                "calibration": None if kappa is None else {"kappa": kappa.value, "ci": kappa.ci},
                "calibrated": kappa is not None and kappa.ci is not None and kappa.ci[0] > 0,
            }
        )
    return rows


def report_table(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the fields of the table of a task's rows."""
    names = list(dict.fromkeys(name for row in rows for name in row["metrics"]))
    heads = ["language", "verdicts", "unreadable", *(name.removeprefix("judge_") for name in names)]
    table = [
        [
            row["language"],
            str(row["items"]),
            str(row["unreadable"]),
            *(_number(row["metrics"].get(name)) for name in names),
            _calibration(row),
        ]
        for row in rows
    ]
    return [*heads, "calibrated"], table


def _number(metric: Mapping[str, Any] | None) -> str:
    if metric is None:
        return "-"
    return f"{percent(metric['value'])} {uncertainty(metric['value'], metric['ci'])}".strip()


def _calibration(row: Mapping[str, Any]) -> str:
    own = row["calibration"]
    if own is None:
        return "no: not judged on gold"
    if own["ci"] is None:
        return f"no: kappa {percent(own['kappa'])}, without an interval"
    return (
        f"{'yes' if row['calibrated'] else 'no'}: kappa {_number({'value': own['kappa'], 'ci': own['ci']})}"
    )
