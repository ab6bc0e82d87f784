"""The released file itself: its cases, and what linting finds in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness_checklist.generation import draw_cases
from harness_checklist.lint import LintReport, lint_suite
from harness_checklist.released import read_released
from harness_checklist.suite import ListedFillIn, Suite
from tests.builders import released_data

from .inversion import Inversion

pytestmark = pytest.mark.thorough


LANGUAGES = ("ar", "de", "en", "es", "fi", "fr", "he", "hi", "ru", "sw", "ta", "zh")
WITHOUT_NAMES = "af eu gu ha ht jv ka kk ml mr pa qu sw te tl wo yo"
EMPTY = {("de", "intensifiers")}
"""Where upstream draws one case only of what has no templates, and we as many as of anything else."""


@pytest.fixture(scope="module")
def folder() -> Path:
    root = released_data()
    found = root / "multichecklist"
    if not (found / "checklist_templates.tsv").exists():
        pytest.skip(f"{found} holds no released templates")
    return found


@pytest.fixture(scope="module")
def imported(folder: Path) -> Suite:
    return read_released(folder / "checklist_templates.tsv")


def test_fifty_languages_and_six_tests(imported: Suite) -> None:
    assert len(imported.languages) == 50
    assert all(len(spoken.tests) == 6 for spoken in imported.languages.values())
    borrowing = [code for code, spoken in imported.languages.items() if spoken.names.borrowed == "en"]
    assert sorted(borrowing) == WITHOUT_NAMES.split()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_reference_case_is_a_draw(folder: Path, imported: Suite, language: str) -> None:
    ids = {test.name: test.id for test in imported.tests.values()}
    inversions = {name: Inversion(imported.languages[language], name) for name in ids.values()}
    missed: list[str] = []
    lines = (folder / "reference_suites" / f"{language}.jsonl").read_text(encoding="utf-8").splitlines()
    for line in lines:
        case: dict[str, Any] = json.loads(line)
        examples = [(item["context"], item["question"], item["answer"]) for item in case["examples"]]
        if inversions[ids[case["test"]]].find(examples) is None:
            missed.append(f"{case['test']} {case['case']}")
    assert len(lines) == 72
    assert missed == []


def test_a_wrong_case_is_no_draw(folder: Path, imported: Suite) -> None:
    """The search can fail: the examples of a reference case with two answers exchanged."""
    line = (folder / "reference_suites" / "de.jsonl").read_text(encoding="utf-8").splitlines()[0]
    case: dict[str, Any] = json.loads(line)
    first, second = case["examples"]
    examples = [(first["context"], first["question"], second["answer"])]
    examples.append((second["context"], second["question"], first["answer"]))
    assert Inversion(imported.languages["de"], "comparisons").find(examples) is None


def test_examples_per_case_agree_with_the_released_sizes(folder: Path, imported: Suite) -> None:
    sizes: dict[str, dict[str, list[int]]] = json.loads((folder / "reference_suite_sizes.json").read_text())
    apart = {}
    for language, tests in sizes.items():
        for test in imported.tests.values():
            cases, examples = tests[test.name]
            drawn = draw_cases(imported, test.id, language, 200, 0).cases
            assert len(drawn) == 200
            ratio = sum(len(case.examples) for case in drawn) / len(drawn)
            if abs(ratio - examples / cases) > 0.02 * examples / cases:
                apart[language, test.id] = round(ratio, 2), round(examples / cases, 2)
    assert set(apart) <= EMPTY, apart


def test_sizes_of_single_cases(imported: Suite) -> None:
    """Every cell has the sizes of English, unless its templates give others."""
    usual = {
        "comparisons": {2}, "intensifiers": {12}, "properties": {2}, "job_vs_nationality": {8},
        "animal_vs_vehicles": {4}, "animal_vs_vehicles_2": {4},
    }  # fmt: skip
    others = {
        ("de", "intensifiers"): {0, 12, 24},
        ("ru", "intensifiers"): {12, 24},
        ("ja", "intensifiers"): {12, 24},
        ("yo", "intensifiers"): {14},
        ("mr", "properties"): {0, 2, 4},
        ("qu", "animal_vs_vehicles"): {2},
    }
    for language in imported.languages:
        for test, sizes in usual.items():
            drawn = draw_cases(imported, test, language, 200, 1).cases
            assert {len(case.examples) for case in drawn} == others.get((language, test), sizes), (
                language,
                test,
            )
    drawn = draw_cases(imported, "intensifiers", "ru", 200, 0).cases
    doubled = [case for case in drawn if len(case.examples) == 24]
    assert {case.fills["s"] for case in doubled} == {"bullish"}
    for case in doubled:  # a state that is listed twice contradicts itself
        questions = {(item.context, item.question) for item in case.examples}
        assert len({(item.context, item.question, item.answer) for item in case.examples}) > len(questions)


def test_lists_are_as_long_as_the_released_generator_draws(imported: Suite) -> None:
    for language, sizes in {"ru": [22, 11], "tr": [12, 10]}.items():
        for test in ("animal_vs_vehicles", "animal_vs_vehicles_2"):
            fills = imported.languages[language].tests[test].fills
            listed = (fills["animal"], fills["vehicle"])
            assert [len(fill.entries) for fill in listed if isinstance(fill, ListedFillIn)] == sizes
    for spoken in imported.languages.values():
        fill = spoken.tests["job_vs_nationality"].fills["nationality"]
        assert isinstance(fill, ListedFillIn)
        # The Russian forms for men have no placeholders: they are used for women, too.
        assert len(fill.entries) == (20 if spoken.language == "ru" else 10), spoken.language


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


def test_floors_are_the_known_ones(report: LintReport) -> None:
    floors = {(floor.language, floor.test): 100 * floor.floor for floor in report.floors}
    assert len(floors) == len(report.floors) == 300
    assert all(0 <= floor.floor <= 1 and 0 < floor.cases <= 200 for floor in report.floors)
    assert {cell for cell, value in floors.items() if value} == KNOWN.keys() | {("de", "intensifiers")}
    for cell, (value, tolerance) in KNOWN.items():
        assert floors[cell] == pytest.approx(value, abs=tolerance + 1e-9), cell
    assert [finding for finding in report.findings if finding.language == "en"] == []


@pytest.mark.parametrize(("language", "test", "kind", "text"), FOUND, ids=lambda text: text[:16])
def test_faults_that_a_reader_sees_are_found(
    language: str, test: str, kind: str, text: str, report: LintReport
) -> None:
    found = [f for f in report.findings if (f.language, f.test, f.kind) == (language, test, kind)]
    assert any(text in finding.example for finding in found), [finding.example for finding in found]
