"""Translators' sheets: the way out and back, variants, and sheets with faults."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from harness.errors import SpecError, UsageError
from harness_checklist.commands.sheet import sheet
from harness_checklist.released.importer import read_released
from harness_checklist.sheets.reading import read_sheet
from harness_checklist.sheets.row import condition_text, listed, quoted, read_condition, read_listed, unquoted
from harness_checklist.sheets.sheet import GUIDELINES, import_sheet, write_sheet
from harness_checklist.shipped import find_suite
from harness_checklist.suites.loading import load_suite
from harness_checklist.suites.suite import LanguageSuite, Suite
from tests.builders import released_data

BASICS = find_suite("basics")
Rows = list[list[str]]
FILE = "sheet.tsv"


def without_places(value: Any) -> Any:
    """Return a suite without the places of its texts, which a sheet has elsewhere."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: without_places(getattr(value, field.name))
            for field in fields(value)
            if field.name != "place"
        }
    if isinstance(value, Mapping):
        return {key: without_places(item) for key, item in value.items()}
    return tuple(without_places(item) for item in value) if isinstance(value, tuple) else value


def rows_of(text: str) -> Rows:
    return list(csv.reader(io.StringIO(text), delimiter="\t"))


def written(folder: Path, rows: Rows, name: str = FILE) -> Path:
    path = folder / name
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows(rows)
    return path


def row_at(rows: Rows, test: str, part: str, id_: str, form: str = "") -> int:
    return next(number for number, row in enumerate(rows) if row[:4] == [test, part, id_, form])


# Out and back ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", sorted(BASICS.languages))
def test_every_shipped_language_comes_back_as_it_was(code: str, tmp_path: Path) -> None:
    for suffix, delimiter in ((".tsv", "\t"), (".csv", ",")):
        path = tmp_path / f"sheet{suffix}"
        path.write_text(write_sheet(BASICS, code, delimiter=delimiter), encoding="utf-8")
        assert without_places(read_sheet(path, BASICS)) == without_places(BASICS.languages[code])


def test_every_released_language_comes_back_as_it_was(tmp_path: Path) -> None:
    root = released_data()
    suite = read_released(root / "multichecklist" / "checklist_templates.tsv").suite
    for code in ("ar", "de", "mr", "pl", "qu", "ru", "tr", "yo"):
        path = tmp_path / f"{code}.tsv"
        path.write_text(write_sheet(suite, code), encoding="utf-8")
        assert without_places(read_sheet(path, suite)) == without_places(suite.languages[code])


def test_a_new_sheet_has_the_guidelines_all_source_texts_and_no_translation() -> None:
    rows = rows_of(write_sheet(BASICS, "sv"))
    top = [row[0] for row in rows if row[0].startswith("#")]
    assert [f"# {line}" for line in GUIDELINES] == top[1:6]
    head = next(number for number, row in enumerate(rows) if row[0] == "test")
    assert rows[head][4:9] == ["source", "translation", "when", "variant 2", "when 2"]
    texts = [
        row for row in rows[head + 1 :] if row[1].split()[0] in {"context", "question", "answer", "fill"}
    ]
    assert texts
    assert all(row[4] and not any(row[5:]) for row in texts)
    english = BASICS.languages["en"].tests
    for test_id, test in english.items():
        own = {row[4] for row in texts if row[0] == test_id}
        wanted = {context.text for context in test.contexts}
        wanted |= {text for question in test.questions for text in (question.ask, question.answer)}
        assert wanted <= own


def filled(translate: Callable[[str], str]) -> Rows:
    """Return a sheet for Swedish in which every text is translated by a function."""
    rows = rows_of(write_sheet(BASICS, "sv"))
    for row in rows:
        if len(row) > 5 and row[1].split(" ")[0] in {"context", "question", "answer", "fill"}:
            row[5] = translate(row[4])
        elif len(row) > 5 and row[1] == "names" and row[2] in {"male", "female", "last"}:
            row[5] = {"male": "Nils; Sven; Olof", "female": "Elsa; Maja; Siri", "last": "Ek"}[row[2]]
    return rows


def test_a_filled_in_sheet_becomes_a_language_with_its_variants(tmp_path: Path) -> None:
    rows = filled(lambda text: text)
    context = row_at(rows, "comparisons", "context", "1")
    rows[context][5:9] = [rows[context][4], "adj=strong,tall", "VARIANT " + rows[context][4], "adj=fast"]
    language = read_sheet(written(tmp_path, rows), BASICS)
    first, second = language.tests["comparisons"].contexts
    assert (first.when, second.when) == (
        {"adj": frozenset({"strong", "tall"})},
        {"adj": frozenset({"fast"})},
    )
    assert second.text.startswith("VARIANT ")
    assert str(second.place) == f"{tmp_path / FILE}:{context + 1}:8"
    assert language.names.male == ("Nils", "Sven", "Olof")
    assert language.language == "sv"


def test_forms_of_a_fill_in_may_have_variants_too(tmp_path: Path) -> None:
    rows = filled(lambda text: text)
    for number, texts in enumerate(
        (["äldre", "adj=tall", "ELDRE", ""], ["gammal", "", "GAMMAL", ""]), start=1
    ):
        rows[row_at(rows, "comparisons", "fill adj", "tall", str(number))][5:9] = texts
    rows[row_at(rows, "comparisons", "fill adj", "tall", "1")][6] = "first_name.gender=male"
    fill = read_sheet(written(tmp_path, rows), BASICS).tests["comparisons"].fills["adj"]
    entry = next(entry for entry in fill.entries if entry.id == "tall")  # type: ignore[union-attr]
    assert [(form.texts, dict(form.when)) for form in entry.forms] == [
        (("äldre", "gammal"), {"first_name.gender": frozenset({"male"})}),
        (("ELDRE", "GAMMAL"), {}),
    ]


def test_skipped_rows_stay_skipped_and_an_untouched_test_is_missing(tmp_path: Path) -> None:
    rows = filled(lambda text: text)
    for row in rows:
        if row[0] == "intensifiers" and row[1].split(" ")[0] in {"context", "question", "answer", "fill"}:
            row[5] = ""
    rows[row_at(rows, "comparisons", "fill adj", "tall", "1")][5] = "-"
    rows[row_at(rows, "comparisons", "fill adj", "tall", "2")][5] = "-"
    language = read_sheet(written(tmp_path, rows), BASICS)
    assert "intensifiers" not in language.tests
    assert "tall" not in {entry.id for entry in language.tests["comparisons"].fills["adj"].entries}  # type: ignore[union-attr]


def test_an_imported_sheet_is_written_and_linted(tmp_path: Path) -> None:
    rows = filled(lambda text: text.replace("Who", "Vem"))
    question = row_at(rows, "comparisons", "question", "2")
    rows[question][5] = rows[row_at(rows, "comparisons", "question", "1")][5]
    made = import_sheet(written(tmp_path, rows), "basics", tmp_path / "suite")
    assert made.language == "sv"
    again = load_suite(tmp_path / "suite")
    assert again.languages.keys() == BASICS.languages.keys() | {"sv"}
    assert without_places(again.languages["sv"]) == without_places(made.suite.languages["sv"])
    assert {floor.language for floor in made.report.floors} == {"sv"}
    assert {"contradictory", "same-question"} <= {finding.kind for finding in made.report.findings}


# Faults ---------------------------------------------------------------------------------------------------


def faults(path: Path, suite: Suite = BASICS) -> list[str]:
    with pytest.raises(SpecError) as caught:
        read_sheet(path, suite)
    return [str(problem) for problem in caught.value.problems]


def test_all_faults_are_reported_with_line_and_column(tmp_path: Path) -> None:
    rows = filled(lambda text: text)
    missing = row_at(rows, "comparisons", "question", "1")
    rows[missing][5] = ""
    condition = row_at(rows, "comparisons", "context", "1")
    rows[condition][6] = "older"
    lonely = row_at(rows, "comparisons", "answer", "2")
    rows[lonely][2] = "3"
    part = row_at(rows, "intensifiers", "context", "1")
    rows[part][1] = "contxt"
    match = row_at(rows, "", "normalise", "match")
    rows[match][5] = "words"
    reported = faults(written(tmp_path, rows))
    assert reported == [
        f"line {match + 1}: column 6: expected word, start, anywhere, found 'words'",
        f"line {condition + 1}: column 7: 'older' is no condition: expected slot=fill-in,fill-in",
        f"line {missing + 1}: column 6: the question '1' is not translated: {rows[missing][4]!r}",
        f"line {lonely}: the question '2' has no row 'answer' with this id",
        f"line {lonely + 1}: the answer '3' has no row 'question' with this id",
        f"line {part + 1}: unknown part 'contxt'; did you mean 'context'?".replace(
            ": unknown", ": column 2: unknown"
        ),
    ]


def test_faults_inside_of_texts_are_reported_with_cell_and_position(tmp_path: Path) -> None:
    rows = filled(lambda text: text)
    context = row_at(rows, "comparisons", "context", "1")
    rows[context][5] = "{first_name} är {adj[0] än {first_name1}."
    answer = row_at(rows, "comparisons", "answer", "1")
    rows[answer][5] = "Hos {first_nam}"
    reported = faults(written(tmp_path, rows))
    assert any(
        one.startswith(f"line {context + 1}: column 6: ") and "at character 17" in one for one in reported
    )
    rows[context][5:9] = ["{first_name} är {adj[0]}.", "adj=dolt", "", ""]
    (unknown,) = [one for one in faults(written(tmp_path, rows)) if "dolt" in one]
    assert unknown.startswith(f"line {context + 1}: column 7: comparisons: when: adj has no 'dolt'")
    (wrong,) = [one for one in reported if "first_nam'" in one]
    assert wrong.startswith(f"line {answer + 1}: column 6: ")
    assert wrong.endswith("(at character 5 of the text)")


def test_columns_and_tests_that_are_unknown_missing_or_doubled(tmp_path: Path) -> None:
    rows = filled(lambda text: text)
    head = next(number for number, row in enumerate(rows) if row[0] == "test")
    doubled = [list(row) for row in rows]
    doubled[head][7] = "varient 2"
    assert faults(written(tmp_path, doubled))[0] == (
        f"line {head + 1}: column 8: unknown column 'varient 2'; did you mean 'variant 2'?"
    )
    partial = [list(row) for row in rows]
    partial[head][5] = "doubts"
    reported = faults(written(tmp_path, partial))
    assert f"line {head + 1}: the column 'translation' is missing" in reported[0]
    other = [*rows, ["comparson", "context", "1", "", "", "x"]]
    assert faults(written(tmp_path, other)) == [
        f"line {len(other)}: column 1: the suite has no test 'comparson'; did you mean 'comparisons'?"
    ]


def test_an_empty_sheet_is_rejected(tmp_path: Path) -> None:
    rows = rows_of(write_sheet(BASICS, "sv"))
    assert faults(written(tmp_path, rows)) == ["no test is translated: fill in the column 'translation'"]


def test_a_sheet_without_heading_or_language_is_rejected(tmp_path: Path) -> None:
    reported = faults(written(tmp_path, [["# nothing"]]))
    assert reported[0].startswith("the sheet has no heading")
    rows = filled(lambda text: text)
    rows[row_at(rows, "", "language", "")][5] = "Swedish!"
    assert "'Swedish!' is no language code" in faults(written(tmp_path, rows))[0]


def test_broken_quotation_marks_are_reported(tmp_path: Path) -> None:
    path = tmp_path / FILE
    text = write_sheet(BASICS, "sv")
    path.write_text(text + 'comparisons\tcontext\t9\t\t\t"never"ends\n', encoding="utf-8")
    assert any("quotation marks of this row are broken" in reported for reported in faults(path))


def test_a_file_of_another_kind_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"expected \.tsv or \.csv"):
        read_sheet(tmp_path / "sheet.xlsx", BASICS)


def test_the_command_writes_a_sheet(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(sheet)
    output = tmp_path / "sv.csv"
    result = CliRunner().invoke(app, ["basics", "--language", "sv", "--output", str(output)])
    assert result.exit_code == 0
    assert "to be filled in" in result.stdout
    assert output.read_text(encoding="utf-8") == write_sheet(BASICS, "sv", delimiter=",")
    assert CliRunner().invoke(app, ["basics", "--language", "sv"]).stdout == write_sheet(BASICS, "sv")
    with pytest.raises(UsageError, match="'Swedish!'"):
        CliRunner().invoke(app, ["basics", "--language", "Swedish!"], catch_exceptions=False)


# Cells ----------------------------------------------------------------------------------------------------

texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"), max_size=12)


@given(text=texts)
def test_any_text_fits_in_a_cell(text: str) -> None:
    cell = quoted(text)
    assert cell.strip()
    assert cell != "-"
    assert unquoted(cell) == text


@given(items=st.lists(texts.filter(bool), max_size=4).map(tuple))
def test_any_list_fits_in_a_cell(items: tuple[str, ...]) -> None:
    assert read_listed(listed(items)) == items


@given(
    when=st.dictionaries(
        st.from_regex(r"[a-z]{1,4}(\.p1)?", fullmatch=True),
        st.frozensets(texts.filter(bool), min_size=1, max_size=3),
        max_size=3,
    )
)
def test_any_condition_fits_in_a_cell(when: dict[str, frozenset[str]]) -> None:
    assert read_condition(condition_text(when)) == when


@pytest.mark.parametrize("cell", ["older", "=older", "adj=", "adj=a; adj=b", "adj=a; ; x"])
def test_an_invalid_condition_is_rejected(cell: str) -> None:
    with pytest.raises(ValueError, match=r"condition"):
        read_condition(cell)


def test_a_language_is_what_is_compared() -> None:
    one = BASICS.languages["en"]
    assert isinstance(one, LanguageSuite)
    assert without_places(one) != without_places(BASICS.languages["de"])
