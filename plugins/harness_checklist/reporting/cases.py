"""Test cases of checklists that the first run fails: their wrong examples, by language and test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness import HarnessError, ItemRecord, Run, SectionReport
from harness.reporting.formats import TaskDetails
from harness.reporting.html.items import text_element
from harness.reporting.html.layout import fold, notes, section
from harness.reporting.markup.element import Element, element

__all__ = ["CaseReport", "failing_cases", "read_cases"]

TITLE = "Failing test cases"
CASES = 2
"""Cases of a test and language that are shown."""
EXAMPLES = 3
"""Wrong examples of a case that are shown."""
CASES_NOTE = f"Of every language and test, up to {CASES} cases with up to {EXAMPLES} of their wrong examples."


def failing_cases(run: Run, cell: Mapping[str, Any], most: int) -> dict[str, dict[str, list[ItemRecord]]]:
    """Return the wrong examples of failing cases, by test and case, of at most `most` cases per test.

    Cases that no system can pass (the tag ``defect``) come last. Raises `DataError` where the records cannot be read.
    """
    found: dict[str, dict[str, list[ItemRecord]]] = {}
    for record in run.records(cell):
        if record.group is not None and record.scores.get("example_error"):
            own = found.setdefault(record.group, {})
            case, slash, _ = record.id.rpartition("/")
            own.setdefault(case if slash else record.cluster or record.id, []).append(record)
    return {
        test: dict(sorted(own.items(), key=lambda item: bool(item[1][0].tags.get("defect")))[:most])
        for test, own in found.items()
    }


class CaseReport(SectionReport):
    """The failing test cases of the main run."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def render_page(self) -> Element | None:
        """Return the failing cases of all checklists; None where no case fails."""
        parts, problems = _case_folds(self._run)
        if not parts and not problems:
            return None
        return section("cases", TITLE, element("p", CASES_NOTE, class_="soft"), parts, notes(problems))

    def task_details(self, task: str) -> TaskDetails | None:
        """Return the failing cases of one checklist; None where no case fails."""
        parts, problems = _case_folds(self._run, task)
        if not parts and not problems:
            return None
        return TaskDetails(title=TITLE, note=CASES_NOTE, parts=tuple(parts), problems=tuple(problems))


def read_cases(runs: Sequence[Run]) -> CaseReport | None:
    """Return the section of the main run; None where it has no checklist."""
    return CaseReport(runs[0]) if any(_is_checklist(runs[0], cell) for cell in runs[0].cells) else None


def _is_checklist(run: Run, cell: Mapping[str, Any]) -> bool:
    metrics = run.manifest["tasks"].get(cell["task"], {}).get("metrics", ())
    return cell["status"] == "ok" and "example_error" in metrics


def _case_folds(run: Run, task: str | None = None) -> tuple[list[Element], list[str]]:
    """Return what failed in a run's checklists, or in one, by language and test, and what could not be read."""
    parts: list[Element] = []
    faults: list[str] = []
    for cell in run.cells:
        if task not in (None, cell["task"]) or not _is_checklist(run, cell):
            continue
        try:
            found = failing_cases(run, cell, CASES)
        except HarnessError as error:
            faults.append(str(error))
            continue
        for test, cases in found.items():
            shown = [_case(name, records, cell["language"]) for name, records in cases.items()]
            parts.append(fold(f"{cell['language']}: {test}", *shown))
    return parts, faults


def _case(name: str, records: list[ItemRecord], language: str) -> Element:
    rows: list[Element] = []
    for record in records[:EXAMPLES]:
        answer = record.prediction.get("text", "") if isinstance(record.prediction, Mapping) else ""
        for label, text in (
            ("context", str(record.fields.get("context", ""))),
            ("question", str(record.fields.get("question", ""))),
            ("expected", "; ".join(map(str, record.reference))),
            ("answered", str(answer) or "(nothing)"),
        ):
            rows.append(
                element("tr", element("th", label, scope="row"), element("td", text_element(text, language)))
            )
    defect = records[0].tags.get("defect")
    caption = f"case {name}" + (f", which no system can pass: {defect}" if defect else "")
    return element("table", element("caption", caption), element("tbody", rows), class_="item")
