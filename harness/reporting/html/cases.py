"""Test cases of checklists that the first run fails: their wrong examples, by language and test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.errors import HarnessError
from harness.reporting.html.items import text_element
from harness.reporting.html.layout import fold, notes, section
from harness.reporting.html.material import Material
from harness.reporting.markup.element import Element, element
from harness.storage.records import ItemRecord
from harness.storage.run_folder import Run

__all__ = ["CASES_TOLD", "case_folds", "case_section", "failing_cases"]

CASES = 2
"""Cases of a test and language that are shown."""
EXAMPLES = 3
"""Wrong examples of a case that are shown."""
CASES_TOLD = f"Of every language and test, up to {CASES} cases with up to {EXAMPLES} of their wrong examples."


def failing_cases(run: Run, cell: Mapping[str, Any], most: int) -> dict[str, dict[str, list[ItemRecord]]]:
    """Return the wrong examples of failing cases, by test and case, of at most `most` cases a test.

    Those that nobody can pass (the tag ``defect``) come last. Raises `DataError` where the records cannot be read.
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


def case_section(material: Material) -> Element | None:
    """Return what failed in the checklists of the first run; None where it has none."""
    parts, faults = case_folds(material.runs[0])
    if not parts and not faults:
        return None
    return section(
        "cases", "Failing test cases", element("p", CASES_TOLD, class_="soft"), parts, notes(faults)
    )


def case_folds(run: Run, task: str | None = None) -> tuple[list[Element], list[str]]:
    """Return what failed in a run's checklists, or in one, by language and test, and what could not be read."""
    parts: list[Element] = []
    faults: list[str] = []
    for cell in run.cells:
        metrics = run.manifest["tasks"].get(cell["task"], {}).get("metrics", ())
        if cell["status"] != "ok" or "example_error" not in metrics or task not in (None, cell["task"]):
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
    caption = f"case {name}" + (f", which nobody can pass: {defect}" if defect else "")
    return element("table", element("caption", caption), element("tbody", rows), class_="item")
