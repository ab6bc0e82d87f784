"""CheckList's cases as JSON lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harness.errors import DataError, MissingDataError, SpecError
from harness_checklist.case import read_cases
from harness_checklist.command import app
from harness_checklist.folder import load_suite
from harness_checklist.released import read_checklist_json, slug
from tests.builders import released_data

from .released_sheet_text import SheetText

EXAMPLE = {"context": "Ann is older than Eve.", "question": "Who is older?", "answer": "Ann"}


def line(**changed: Any) -> str:
    whole = {
        "test": "Basic coref, he / she",
        "capability": "Coref",
        "type": "MFT",
        "case": 3,
        "examples": [EXAMPLE],
    }
    return json.dumps({key: value for key, value in {**whole, **changed}.items() if value is not None})


def written(folder: Path, *lines: str) -> Path:
    path = folder / "suite.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_cases_of_an_english_suite(tmp_path: Path) -> None:
    (case,) = read_checklist_json(written(tmp_path, line()))
    assert (case.id, case.test, case.language) == ("basic_coref_he_she-3", "basic_coref_he_she", "en")
    assert (case.capability, case.type) == ("Coref", "MFT")
    (example,) = case.examples
    assert (example.id, example.answer) == ("basic_coref_he_she-3/1", "Ann")


def test_cases_of_a_reference_suite(tmp_path: Path) -> None:
    given = line(
        lang="sw", test="size, shape, age, color", capability=None, type=None, examples=[EXAMPLE, EXAMPLE]
    )
    (case,) = read_checklist_json(written(tmp_path, given, ""))
    assert (case.language, case.test, case.type) == ("sw", "properties", "MFT")
    assert [example.id for example in case.examples] == ["properties-3/1", "properties-3/2"]
    assert read_checklist_json(written(tmp_path, line(examples=[])))[0].examples == ()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Animal vs Vehicle v2", "animal_vs_vehicles_2"),
        ("Former / Latter", "former_latter"),
        ("Négation in question only.", "negation_in_question_only"),
    ],
)
def test_ids_of_tests(name: str, expected: str) -> None:
    assert slug(name) == expected


def test_all_faults_are_reported_with_their_lines(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        line(),
        line(),
        "{'test': 1}",
        "[]",
        line(test=None, exampels=[], case="x"),
        line(case=4, type="INV", lang="Deutsch"),
        line(case=5, examples=[{"context": "a", "question": " ", "label": "b"}, 7]),
        line(case=6, test="basic coref he she"),
        line(case=7, test="测试"),
        line(case=8, examples={}, capability=""),
    )
    with pytest.raises(SpecError) as caught:
        read_checklist_json(path)
    expected = [
        (2, "'basic_coref_he_she-3' in 'en'"),
        (3, "JSON"),
        (4, "object"),
        (5, "'test'"),
        (5, "case"),
        (5, "'exampels'"),
        (6, "lang"),
        (6, "type"),
        (7, "examples.0.question"),
        (7, "'examples.0.answer'"),
        (7, "'examples.0.label'"),
        (7, "examples.1"),
        (8, "'basic coref he she' and 'Basic coref, he / she'"),
        (9, "'测试'"),
        (10, "examples"),
        (10, "capability"),
    ]
    problems = caught.value.problems
    assert [problem.line for problem in problems] == [line for line, _ in expected]
    assert all(name in problem.message for problem, (_, name) in zip(problems, expected, strict=True))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="There is no file"):
        read_checklist_json(tmp_path / "none.jsonl")
    path = written(tmp_path)
    with pytest.raises(DataError, match="holds no test cases"):
        read_checklist_json(path)
    path.write_bytes(b'{"test": "\xff"}')
    with pytest.raises(DataError, match="is not UTF-8 at byte 10"):
        read_checklist_json(path)
    paragraph = {"context": "a", "qas": [{"question": "b", "id": "0"}]}
    path.write_text(json.dumps({"version": "fake", "data": [{"title": "", "paragraphs": [paragraph]}]}))
    with pytest.raises(DataError, match="holds neither answers nor tests"):
        read_checklist_json(path)


def test_the_published_sample(tmp_path: Path) -> None:
    root = released_data()
    cases = read_checklist_json(root / "checklist-squad" / "squad_suite.mft.sample.jsonl")
    assert len(cases) == 760
    assert len({case.test for case in cases}) == 19
    assert len({case.id for case in cases}) == 760
    assert all(case.examples for case in cases)
    reference = read_checklist_json(root / "multichecklist" / "reference_suites" / "ru.jsonl")
    assert len(reference) == 72
    assert {case.test for case in reference} < {case.test for case in cases} | {"animal_vs_vehicles_2"}


def test_import_of_cases(tmp_path: Path) -> None:
    source = written(tmp_path, line(), line(case=4), line(lang="sw"))
    result = CliRunner().invoke(app, ["import", str(source), "--output", str(tmp_path / "cases")])
    assert result.exit_code == 0, result.output
    assert "3 cases of 1 tests in 2 languages" in result.output
    assert [case.id for case in read_cases(tmp_path / "cases" / "en.jsonl")] == [
        "basic_coref_he_she-3",
        "basic_coref_he_she-4",
    ]
    assert len(read_cases(tmp_path / "cases" / "sw.jsonl")) == 1


def test_import_of_templates(tmp_path: Path) -> None:
    sheet = SheetText().language("he").language("sw", placeholders=False).write(tmp_path)
    names = tmp_path / "people.json"
    (tmp_path / "names_by_language.json").rename(names)
    arguments = ["import", str(sheet), "--output", str(tmp_path / "suite"), "--names", str(names)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "6 tests in 3 languages" in result.output
    assert "warning: no names, so English ones are drawn, in: he, sw." in result.stderr
    suite = load_suite(tmp_path / "suite")
    assert list(suite.languages) == ["en", "he", "sw"]
    assert suite.languages["sw"].names.borrowed == "en"


def test_import_of_anything_else(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["import", "suite.pkl", "--output", str(tmp_path)])
    assert "expected a .tsv of templates or a .jsonl of cases" in str(result.exception)
    result = CliRunner().invoke(app, ["import", "a.jsonl", "-o", str(tmp_path), "--names", "b.json"])
    assert "--names is for templates" in str(result.exception)
