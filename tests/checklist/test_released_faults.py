"""Faults of a released sheet: all of a file at once, with line and column."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.errors import DataError, MissingDataError, SpecError
from harness_checklist.released.importer import read_released

from .released_sheet_text import ANIMALS, ANIMALS_2, INTENSIFIERS, NAMES, SheetText, at


def faults(folder: Path, sheet: SheetText) -> list[str]:
    with pytest.raises(SpecError) as caught:
        read_released(sheet.write(folder))
    return [str(problem) for problem in caught.value.problems]


def test_a_language_column_without_its_placeholders(tmp_path: Path) -> None:
    sheet = SheetText().language("de", {}, {})
    sheet.header[5] = "note"
    reported = faults(tmp_path, sheet)
    assert reported == [
        "line 1: column 5: 'de' has several columns, but no 'de-placeholders' follows this one"
    ]


def test_placeholders_without_their_language_column(tmp_path: Path) -> None:
    sheet = SheetText().language("de")
    sheet.header[2] = "fr"
    assert faults(tmp_path, sheet) == ["line 1: column 4: 'de-placeholders' has no column 'de' before it"]


def test_no_field_and_no_english(tmp_path: Path) -> None:
    sheet = SheetText()
    sheet.header = ["Kind", "eng-1"]
    assert faults(tmp_path, sheet) == [
        "line 1: column 1: is named 'Kind', but the first column has to be 'Field'",
        "line 1: column 1: there is no column 'en', which every other language translates",
        "line 1: column 2: 'eng-1' is no language code",
    ]


def test_rows_of_unequal_length(tmp_path: Path) -> None:
    sheet = SheetText().language("de")
    sheet.rows[5].append("more")
    del sheet.rows[7][-1]
    assert faults(tmp_path, sheet) == [
        "line 7: has 5 cells, but the first line has 4",
        "line 9: has 3 cells, but the first line has 4",
    ]


def test_a_broken_separator(tmp_path: Path) -> None:
    older, bed = at("adj", "older, old"), at("obj", "a bed, the bed")
    sheet = SheetText().language(
        "ar", {older: ("أكبر, كبير", ""), bed: ("سرير، سرير", "")}, placeholders=False
    )
    reported = faults(tmp_path, sheet)
    # A language whose cells have other numbers of forms than its templates name.
    assert any(
        line.startswith(f"line {older}: column 3: ") or "'adj' has 1 form" in line for line in reported
    )
    assert any("aligned forms" in line for line in reported)


def test_questions_and_answers_go_together(tmp_path: Path) -> None:
    sheet = SheetText()
    ask = at("Question", "Who is {adj[0]}?")
    del sheet.rows[ask - 1]
    answer = sheet.line("Answer", "{profession}")
    del sheet.rows[answer - 3]
    assert faults(tmp_path, sheet) == [
        f"line {ask}: the question has no 'Answer' below it",
        f"line {answer - 1}: the answer has no 'Question' above it",
    ]


def test_an_answer_that_is_missing_in_one_language(tmp_path: Path) -> None:
    answer = at("Answer", "{vehicle}")
    sheet = SheetText().language("sw", {answer: ("", "")}, placeholders=False)
    assert faults(tmp_path, sheet) == [f"line {answer}: column 3: 'Answer' is empty in 'sw'"]


def test_unknown_fields_and_tests(tmp_path: Path) -> None:
    sheet = SheetText()
    sheet.rows[7][0] = "adjective"
    sheet.rows[8][0] = "Qestion"
    name = at("Name", ANIMALS)
    sheet.rows[name - 2][1] = "Animal vs Vehicles"
    reported = faults(tmp_path, sheet)
    assert reported[0] == "line 9: 'adjective' is no field of this test"
    assert reported[1] == "line 10: 'Qestion' is no field of this test; did you mean 'Question'?"
    released = "'Animal vs Vehicles' is no test that was released; did you mean 'Animal vs Vehicle'"
    assert any(line.startswith(f"line {name}: {released}") for line in reported)


def test_the_second_test_of_animals_needs_the_first(tmp_path: Path) -> None:
    sheet = SheetText()
    first, second = at("Name", ANIMALS), at("Name", ANIMALS_2)
    del sheet.rows[first - 2 : second - 2]
    assert "which is missing" in faults(tmp_path, sheet)[0]


def test_an_empty_test_and_one_that_begins_twice(tmp_path: Path) -> None:
    sheet = SheetText()
    end = next(index for index, row in enumerate(sheet.rows) if row[0] == "")
    again = [list(row) for row in sheet.rows[:end]]
    del sheet.rows[1:end]
    sheet.rows += [["", ""], *again]
    reported = faults(tmp_path, sheet)
    assert "line 2: the test 'A is COMP than B. Who is more / less COMP?' has no 'Context'" in reported
    assert "line 2: the test 'A is COMP than B. Who is more / less COMP?' has no 'Question'" in reported
    assert "line 2: the test 'A is COMP than B. Who is more / less COMP?' has no 'Capability'" in reported
    assert "line 2: the test 'A is COMP than B. Who is more / less COMP?' has no 'adj'" in reported
    assert any("has begun in line 2 before" in line for line in reported)


def test_templates_that_name_nothing(tmp_path: Path) -> None:
    sheet = SheetText()
    context = at("Context", "{first_name} is {nationality} and {profession}.")
    sheet.rows[context - 2][1] = "{frist_name} is {nationality and {profession}."
    ask = at("Question", "What {p.p1} has {obj[1]}?")
    sheet.rows[ask - 2][1] = "What {p.q1} has {obj.v1}?"
    reported = faults(tmp_path, sheet)
    assert [line.split(": ")[:2] for line in reported] == [
        [f"line {ask}", "column 2"],
        [f"line {ask}", "column 2"],
        [f"line {context}", "column 2"],
    ]
    assert ["{p.q1}" in reported[0], "{obj.v1}" in reported[1], "is not closed" in reported[2]] == [True] * 3


def test_faults_of_all_kinds_are_reported_together(tmp_path: Path) -> None:
    answer = at("Answer", "{vehicle}")
    sheet = SheetText().language("sw", {answer: ("", "")}, placeholders=False)
    sheet.rows[5].append("more")
    reported = faults(tmp_path, sheet)
    assert [line.split(":")[0] for line in reported] == ["line 7", f"line {answer}"]


def test_names_that_are_missing_or_malformed(tmp_path: Path) -> None:
    path = SheetText().write(tmp_path)
    names = tmp_path / "names_by_language.json"
    names.write_text(json.dumps({"de": {"male": ["Hans"], "female": "Anna", "last": []}, "fr": []}))
    with pytest.raises(SpecError) as caught:
        read_released(path)
    assert [problem.key for problem in caught.value.problems] == ["languages.fr"]
    names.write_text(json.dumps({"de": {"male": ["Hans"], "female": ["Anna"], "last": []}}))
    with pytest.raises(SpecError) as caught:
        read_released(path)
    assert [str(problem) for problem in caught.value.problems] == [
        "de.last: there is no name",
        "there are no names of 'en', which other languages borrow",
    ]
    names.write_text("{")
    with pytest.raises(DataError, match="cannot be read as JSON"):
        read_released(path)
    names.unlink()
    with pytest.raises(MissingDataError, match="--names FILE"):
        read_released(path)
    elsewhere = tmp_path / "people.json"
    elsewhere.write_text(json.dumps(NAMES))
    assert read_released(path, elsewhere).languages["en"].names.male == ("Ben", "Tom")


def test_files_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="There is no file"):
        read_released(tmp_path / "none.tsv")
    path = tmp_path / "latin.tsv"
    path.write_bytes("Field\ten\tde\nName\tx\tgrün".encode("latin-1"))
    with pytest.raises(DataError, match="is not UTF-8 at byte 21"):
        read_released(path)
    path.write_text("")
    with pytest.raises(SpecError, match="'Field'"):
        read_released(path)
    path.write_text("Field\ten\n")
    with pytest.raises(SpecError, match="there is no test"):
        read_released(path)


def test_a_language_whose_templates_name_nothing(tmp_path: Path) -> None:
    ask = at("Question", "Who is not so {adj[1]}?")
    lines = range(at("Name", INTENSIFIERS), at("state", "glad"))
    bare = {
        line: (row[1], "")
        for line, row in enumerate(SheetText().rows, 2)
        if line == ask or (line in lines and row[0] in ("Context", "Question"))
    }
    assert faults(tmp_path, SheetText().language("ru", bare)) == [
        "line 2: ru: the test has no contexts",
        "line 2: ru: the test has no questions",
        "line 13: ru: the test has no contexts",
        "line 13: ru: the test has no questions",
    ]
