"""harness checklist score: numbers against a count by hand, and prediction files with faults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scipy.stats import binomtest
from typer.testing import CliRunner

from harness.errors import SpecError, UsageError
from harness_checklist.case import case_lines
from harness_checklist.case_score import read_predictions, score_cases
from harness_checklist.command import app
from harness_checklist.suite import Profile

from .cases import case

ENGLISH = Profile(articles=("a", "an", "the"))


CASES = [
    case("p-1", ("Ann has a dog.", "Who?", "Ann"), ("Ann has a dog.", "What?", "a dog")),
    case("p-2", ("Bob has a cat.", "Who?", "Bob"), ("Bob has a cat.", "What?", "a cat")),
    case("p-3", ("Eve has a cow.", "What?", "Eve"), ("Eve has a cow.", "What?", "a cow")),
    case("p-4", ("Dan has a pig.", "Who?", "Tim")),
    case("p-5"),
    case("p-6", ("Sam has a hen.", "Who?", "Sam")),
]
ANSWERS = {
    "p-1/1": "Ann", "p-1/2": "dog.",
    "p-2/1": "Bob", "p-2/2": "cats",
    "p-3/1": "Eve", "p-3/2": "Eve",
    "p-4/1": "Tim",
    "p-6/1": "",
}  # fmt: skip


def predictions(folder: Path, text: str, name: str = "predictions.jsonl") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def as_json(answers: dict[str, str]) -> str:
    return "".join(json.dumps({"id": id_, "prediction": text}) + "\n" for id_, text in answers.items())


def test_scores_are_those_of_a_count_by_hand() -> None:
    (found,) = score_cases(CASES, {("en", id_): text for id_, text in ANSWERS.items()}, lambda _: ENGLISH)
    assert (found["cases"], found["failed"], found["error"]) == (6, 4, 4 / 6)  # p-2, p-3, p-5, p-6
    assert (found["examples"], found["failed_examples"], found["example_error"]) == (8, 3, 3 / 8)
    assert found["floor"] == 3 / 6  # p-3 contradictory, p-4 unanswerable, p-5 empty
    assert found["corrected_error"] == 2 / 3  # p-2 and p-6 of p-1, p-2, p-6
    wilson = binomtest(4, 6).proportion_ci(method="wilson")
    assert (found["error_low"], found["error_high"]) == pytest.approx((wilson.low, wilson.high))
    corrected = binomtest(2, 3).proportion_ci(method="wilson")
    assert (found["corrected_low"], found["corrected_high"]) == pytest.approx((corrected.low, corrected.high))


def test_nothing_is_corrected_where_nothing_can_be_passed() -> None:
    (found,) = score_cases([case("p-5")], {}, lambda _: ENGLISH)
    assert (found["error"], found["floor"]) == (1.0, 1.0)
    assert found["corrected_error"] is found["example_error"] is found["corrected_low"] is None


@pytest.mark.parametrize("name", ["predictions.jsonl", "predictions.tsv", "headed.tsv", "languages.tsv"])
def test_both_kinds_of_files_say_the_same(name: str, tmp_path: Path) -> None:
    text = {
        "predictions.jsonl": as_json(ANSWERS),
        "predictions.tsv": "".join(f"{id_}\t{answer}\n" for id_, answer in ANSWERS.items()),
        "headed.tsv": "id\tprediction\r\n" + "".join(f"{id_}\t{a}\r\n" for id_, a in ANSWERS.items()),
        "languages.tsv": "".join(f"en\t{id_}\t{answer}\n" for id_, answer in ANSWERS.items()),
    }[name]
    found = read_predictions(predictions(tmp_path, text, name), CASES)
    assert found == {("en", id_): answer for id_, answer in ANSWERS.items()}


def test_all_faults_of_a_file_are_reported_with_their_lines(tmp_path: Path) -> None:
    lines = [
        '{"id": "p-1/1", "prediction": "Ann"}',
        '{"id": "p-1/1", "prediction": "Bob"}',
        '{"id": "p-9/1", "prediction": "Bob"}',
        '{"id": "p-1/2", "predicton": "dog"}',
        '{"id": "p-2/1", "prediction": 3}',
        '{"id": "p-2/2"',
        "[]",
        '{"id": "p-4/1", "prediction": "x", "language": "de"}',
    ]
    with pytest.raises(SpecError) as caught:
        read_predictions(predictions(tmp_path, "\n".join(lines)), CASES)
    reported = [str(problem) for problem in caught.value.problems]
    assert reported[0].startswith("7 examples have no prediction: 'p-1/2' (en), 'p-2/1' (en)")
    assert reported[1:3] == [
        "line 2: the id 'p-1/1' is given twice: also on line 1",
        "line 3: no example has the id 'p-9/1'",
    ]
    assert reported[3:5] == ["line 4: the key 'prediction' is missing", "line 4: unknown key 'predicton'"]
    assert reported[5].startswith("line 5: prediction: ") and reported[5].endswith("found 3")
    assert reported[6].startswith("line 6: Invalid JSON: ")
    assert reported[7].startswith("line 7: ")
    assert reported[8] == "line 8: the example 'p-4/1' is in en, not in 'de'"


def test_rows_need_a_tab_and_an_id_of_two_languages_its_language(tmp_path: Path) -> None:
    cases = [case("p-1", ("Ann", "?", "Ann")), case("p-1", ("Ann", "?", "Ann"), language="de")]
    with pytest.raises(SpecError, match=r"'p-1/1' is in .*en.* de"):
        read_predictions(predictions(tmp_path, "p-1/1\tAnn\n", "p.tsv"), cases)
    with pytest.raises(SpecError, match="line 1: expected an id, a tab and a prediction"):
        read_predictions(predictions(tmp_path, "p-6/1 Sam\n", "p.tsv"), CASES[5:])
    with pytest.raises(UsageError, match=r"expected \.jsonl or \.tsv"):
        read_predictions(predictions(tmp_path, "", "p.csv"), CASES)
    found = read_predictions(predictions(tmp_path, "en\tp-1/1\tAnn\nde\tp-1/1\tBob\n", "p.tsv"), cases)
    assert found == {("en", "p-1/1"): "Ann", ("de", "p-1/1"): "Bob"}


def test_the_command_writes_what_it_shows(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text(case_lines(CASES), encoding="utf-8")
    given = predictions(tmp_path, as_json(ANSWERS), "answers.jsonl")
    rows = tmp_path / "rows.json"
    arguments = ["score", str(tmp_path / "cases.jsonl"), str(given), "--suite", "basics", "--json", str(rows)]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    (row,) = json.loads(rows.read_text())
    assert (row["failed"], row["floor"], row["corrected_error"]) == (4, 0.5, 2 / 3)
    assert "en        pets  6" in result.stdout
    assert "66.7" in result.stdout
    assert "50.0" in result.stdout
    # Nothing is scored while an id is missing; without a suite there are no profiles.
    partial, unwritten = predictions(tmp_path, "p-1/1\tAnn\n", "answers.tsv"), tmp_path / "none.json"
    arguments = ["score", str(tmp_path / "cases.jsonl"), str(partial), "--json", str(unwritten)]
    with pytest.raises(SpecError, match="7 examples have no prediction"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert not unwritten.exists()


def test_lint_reads_generated_cases_and_has_a_strict_mode(tmp_path: Path) -> None:
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "en.jsonl").write_text(case_lines(CASES), encoding="utf-8")
    rows, findings = tmp_path / "rows.json", tmp_path / "findings.json"
    arguments = ["lint", str(tmp_path / "cases"), "--json", str(rows), "--findings", str(findings)]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "contradictory" in result.stdout
    (row,) = json.loads(rows.read_text())
    assert list(row)[:5] == ["language", "test", "cases", "examples", "floor"]
    assert (row["cases"], row["examples"], row["floor"]) == (6, 8, 0.5)
    assert {"empty", "contradictory", "unanswerable"} <= {
        item["kind"] for item in json.loads(findings.read_text())
    }
    assert CliRunner().invoke(app, [*arguments, "--strict"]).exit_code == 1


def test_lint_of_a_clean_suite_is_clean_and_strict(tmp_path: Path) -> None:
    arguments = ["lint", "basics", "-l", "en,tr", "--cases", "20", "--strict"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "No floor" in result.stdout
    assert "No findings." in result.stdout
