"""The lint on the released templates: the known floors, and faults that were found by reading them."""

from __future__ import annotations

import pytest

from harness_checklist.lint.linter import LintReport, lint_suite
from harness_checklist.released.importer import read_released
from tests.builders import released_data

pytestmark = pytest.mark.thorough

KNOWN = {
    ("tr", "comparisons"): (100.0, 0.0),
    ("kk", "animal_vs_vehicles"): (100.0, 0.0),
    ("gu", "properties"): (100.0, 0.0),
    ("qu", "intensifiers"): (100.0, 0.0),
    ("gu", "intensifiers"): (99.5, 1.0),
    ("pt", "comparisons"): (50.0, 3.0),
    ("ta", "comparisons"): (25.0, 3.0),
    ("mr", "properties"): (13.0, 3.5),
    ("ru", "intensifiers"): (5.0, 2.0),
}
"""Language and test: the floor in percent and how far a draw may be off it."""
FOUND = [
    ("wo", "intensifiers", "inside-word", "dafa"),
    ("qu", "animal_vs_vehicles", "example-count", "yuqmi"),
]  # fmt: skip


@pytest.fixture(scope="module")
def report() -> LintReport:
    root = released_data()
    file = root / "multichecklist" / "checklist_templates.tsv"
    if not file.exists():
        pytest.skip(f"{file.name} is not in the test data")
    suite = read_released(file)
    return lint_suite(suite)


def test_there_is_a_floor_for_every_language_and_test(report: LintReport) -> None:
    cells = {(floor.language, floor.test): floor for floor in report.floors}
    assert len(cells) == len(report.floors) == 300
    assert all(0 <= floor.floor <= 1 and 0 < floor.cases <= 200 for floor in report.floors)


@pytest.mark.parametrize("cell", KNOWN, ids="-".join)
def test_known_floors_come_out(cell: tuple[str, str], report: LintReport) -> None:
    (floor,) = [floor for floor in report.floors if (floor.language, floor.test) == cell]
    value, tolerance = KNOWN[cell]
    assert 100 * floor.floor == pytest.approx(value, abs=tolerance + 1e-9)


def test_no_other_language_but_german_has_a_floor(report: LintReport) -> None:
    with_floor = {(floor.language, floor.test) for floor in report.floors if floor.floor}
    assert with_floor == KNOWN.keys() | {("de", "intensifiers")}


@pytest.mark.parametrize(("language", "test", "kind", "text"), FOUND, ids=lambda text: text[:16])
def test_faults_that_a_reader_sees_are_found(
    language: str, test: str, kind: str, text: str, report: LintReport
) -> None:
    found = [f for f in report.findings if (f.language, f.test, f.kind) == (language, test, kind)]
    assert any(text in finding.example for finding in found), [finding.example for finding in found]


def test_english_has_no_finding(report: LintReport) -> None:
    assert [finding for finding in report.findings if finding.language == "en"] == []
