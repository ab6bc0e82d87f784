"""``harness checklist generate``: files, counts, notes, and errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.specs.loading import read_yaml
from harness_checklist.generation.case import read_cases
from harness_checklist.generation.drawing import draw_cases
from harness_checklist.suites.loading import load_suite

Cli = Callable[..., tuple[int, str, str]]

SUITE = """\
suite: Tiny
version: 1
description: "Two tests: small ones."
license: CC0-1.0
citation: anonymous2026
tests:
  choice: {name: Choice, capability: Vocabulary}
  lone: {name: Lone, capability: Taxonomy}
  moved: {name: Moved, capability: Robustness, type: INV}
"""
LANGUAGE = """\
language: CODE
normalise: {articles: [the]}
tests:
  choice:
    contexts: ["{x} and {x1}."]
    questions: [{ask: "First?", answer: "{x}"}, {ask: "Second?", answer: "{x1}"}]
    fill: {x: [a, b, c, d]}
"""
LONE = """\
  lone:
    contexts: [{text: "{y}", when: {y: e}}]
    questions: [{ask: a, answer: "{y}"}]
    fill: {y: [e, f]}
"""
MOVED = '  moved:\n    contexts: ["a"]\n    questions: [{ask: a, answer: a}]\n'


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "suite"
    (folder / "languages").mkdir(parents=True)
    (folder / "suite.yaml").write_text(SUITE, encoding="utf-8")
    for code, tests in {"de": LONE + MOVED, "sw": ""}.items():
        text = LANGUAGE.replace("CODE", code) + tests
        (folder / "languages" / f"{code}.yaml").write_text(text, encoding="utf-8")
    return folder


def generate(cli: Cli, *arguments: object) -> tuple[int, str, str]:
    return cli("checklist", "generate", *arguments)


def test_one_file_per_language_a_task_and_counts_are_written(cli: Cli, suite: Path, tmp_path: Path) -> None:
    out, counts = tmp_path / "out", tmp_path / "counts.json"
    status, reported, err = generate(
        cli, suite, "--cases", 10, "--seed", 3, "--output", out, "--json", counts
    )
    assert status == 0
    loaded = load_suite(suite)
    for code in ("de", "sw"):
        drawn = [
            draw_cases(loaded, test, code, 10, 3).cases
            for test in loaded.languages[code].tests
            if test != "moved"
        ]
        assert read_cases(out / f"{code}.jsonl") == [case for cases in drawn for case in cases]
    rows = {(row["test"], row["language"]): row for row in json.loads(counts.read_text())}
    assert rows["choice", "sw"] == {
        "language": "sw",
        "test": "choice",
        "cases": 10,
        "examples": 20,
        "empty": 0,
        "asked": 10,
        "possible": None,
        "note": None,
    }
    lone = rows["lone", "de"]
    assert (lone["cases"], lone["examples"], lone["empty"], lone["possible"]) == (2, 1, 1, 2)
    assert (
        "note: de lone: only 2 of the 10 cases exist: 2 draws (2 y); give more fill-ins or names, or --cases 2."
        in err
    )
    assert "note: de moved is a test of type INV; only tests of type MFT are generated so far." in err
    table = [line.split() for line in reported.splitlines()]
    assert ["choice", "2", "20", "40", "0"] in table
    assert ["lone", "1", "2", "1", "1"] in table
    assert (
        f"harness eval --tasks-from {out}/task.yaml --data {out} --tasks checklist_tiny"
        in reported.replace("\n", "")
    )


def test_the_task_names_the_files_and_what_was_made(cli: Cli, suite: Path, tmp_path: Path) -> None:
    generate(cli, suite, "--cases", 10, "--out", tmp_path, "--task", "mine")
    task = read_yaml((tmp_path / "task.yaml").read_text(encoding="utf-8"), "task.yaml").data
    assert task == {
        "task": "mine",
        "kind": "span_extraction",
        "version": 1,
        "description": "Two tests: small ones.",
        "citation": "anonymous2026",
        "license": "CC0-1.0",
        "metrics": ["pass_rate", "case_error", "case_floor", "corrected_error", "example_error"],
        "cluster": "case",
        "draw": "clusters",
        "transfer": {"source": "en", "stages": ["squad"], "recipe": "xtreme_r"},
        "splits": {"test": {"local": "{language}.jsonl", "reader": "checklist"}},
        "languages": {"de": {}, "sw": {}},
    }


def test_one_language_goes_to_stdout_and_its_profile_with_it(cli: Cli, suite: Path, tmp_path: Path) -> None:
    status, reported, err = generate(cli, suite, "-l", "de", "-t", "choice", "--cases", 3)
    assert status == 0
    (tmp_path / "de.jsonl").write_text(reported, encoding="utf-8")
    assert len(read_cases(tmp_path / "de.jsonl")) == 3
    assert json.loads(reported.splitlines()[0])["normalise"]["articles"] == ["the"]
    assert ["choice", "1", "3", "6", "0"] in [line.split() for line in err.splitlines()]


def test_languages_that_are_named_together_are_the_same_as_alone(
    cli: Cli, suite: Path, tmp_path: Path
) -> None:
    generate(
        cli, suite, "--languages", "sw,de", "--tests", "choice", "--cases", 5, "--output", tmp_path / "both"
    )
    generate(cli, suite, "--languages", "sw", "--cases", 5, "--output", tmp_path / "one")
    assert (tmp_path / "both" / "sw.jsonl").read_bytes() == (tmp_path / "one" / "sw.jsonl").read_bytes()


def test_a_test_that_is_missing_in_one_language_is_reported(cli: Cli, suite: Path, tmp_path: Path) -> None:
    status, _, err = generate(cli, suite, "--tests", "lone", "--output", tmp_path / "out")
    assert status == 0
    assert "note: sw has no test lone." in err
    assert not (tmp_path / "out" / "sw.jsonl").exists()


def test_nothing_at_all_is_a_failure(cli: Cli, suite: Path, tmp_path: Path) -> None:
    status, _, err = generate(cli, suite, "-l", "sw", "-t", "lone", "--output", tmp_path / "out")
    assert status == 1
    assert "No case of suite 'Tiny' could be made." in err
    assert not (tmp_path / "out" / "task.yaml").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-l", "dee"), "No language of suite 'Tiny' named 'dee'. Did you mean 'de'?"),
        (("-l", "de", "-t", "choise"), "No test of suite 'Tiny' named 'choise'. Did you mean 'choice'?"),
        (
            ("-l", "de", "-t", "moved"),
            "moved is a test of type INV; only tests of type MFT are generated so far.",
        ),
        ((), "Where shall the cases in 2 languages go? Give --output DIR"),
        (("-l", "de", "--task", "My Task"), "--task takes small letters, digits, _ and -; found 'My Task'."),
        (("-l", "de", "--json", "no/such/file"), "cannot be written: its folder is not there"),
        (("-l", "de", "--cases", "0"), "Invalid value for '--cases'"),
    ],
)
def test_an_impossible_request_is_one_sentence(
    cli: Cli, suite: Path, arguments: tuple[str, ...], message: str
) -> None:
    status, out, err = generate(cli, suite, *arguments)
    assert (status, out) == (2, "")
    assert message in " ".join(err.split())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no/such", "There is no suite folder 'no/such'."),
        ("nosuch", "No suite named 'nosuch'."),
        (".", "is no suite: it has no suite.yaml"),
        ("some.txt", "'some.txt' is no suite: expected a folder with suite.yaml, or a .tsv."),
    ],
)
def test_an_invalid_suite_is_rejected(cli: Cli, name: str, message: str) -> None:
    Path("some.txt").touch()
    status, _, err = generate(cli, name)
    assert status == 2
    assert message in err


def test_a_folder_that_is_a_file_is_rejected(cli: Cli, suite: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    status, _, err = generate(cli, suite, "--output", tmp_path / "taken")
    assert status == 2
    assert "File exists." in err
