"""Matrices: questions against answers, small ones in the summary and large ones when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.reporting.catalog import markdown_text, terminal_text
from harness.reporting.matrix import LEAST_OBSERVATIONS, Matrix, matrices
from harness.reporting.score import Score
from harness.reporting.summary import summarise
from harness.storage.run_folder import Run
from tests.builders import make_shown_cell, write_run

MakeRun = Callable[..., Run]
Cli = Callable[..., tuple[int, str, str]]

CODES = tuple(f"l{letter}" for letter in "abcdefghijklmnopqrst")


def _cell(language: str, groups: dict[str, tuple[float, int]], **fields: Any) -> dict[str, Any]:
    given = {code: {"value": value, "n": n} for code, (value, n) in groups.items()}
    usual = {"protocol": "frozen", "method": "embed", "fit": "none", "n": 100}
    score = {"value": 0.5, "ci": None, "groups": given}
    return make_shown_cell("seek", language, {"one_target_map_at_20": score}, **{**usual, **fields})


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    numbers = iter(range(10))

    def make(*cells: dict[str, Any]) -> Run:
        metrics = ["one_target_map_at_20"]
        languages = {code: ["x", "Latn"] for code in CODES}
        spec = {"kind": "k", "metrics": metrics, "headline": metrics, "source": "en", "languages": languages}
        folder = tmp_path / f"run-{next(numbers)}"
        return write_run(folder, cells, {"seek": spec}, manifest={"published": []})

    return make


def _fields(matrix: Matrix) -> dict[tuple[str, str], Score]:
    return {
        (row, column): score
        for row, scores in matrix.rows
        for column, score in zip(matrix.columns, scores, strict=True)
    }


def _only(run: Run) -> Matrix:
    [matrix] = matrices(run, {})
    return matrix


def test_rows_are_queries_and_columns_targets(make_run: MakeRun) -> None:
    matrix = _only(make_run(_cell("la", {"la": (0.9, 40), "lb": (0.2, 10)}), _cell("lb", {"lb": (0.8, 60)})))
    assert matrix.corner == "query \\ target language"
    assert (matrix.columns, [row for row, _ in matrix.rows]) == (("la", "lb"), ["la", "lb"])
    assert _fields(matrix)["la", "lb"] == Score(value=0.2)
    assert _fields(matrix)["lb", "la"] == Score()


def test_few_observations_stay_blank_but_count_in_the_averages(make_run: MakeRun) -> None:
    cells = [
        _cell("la", {"la": (0.9, 30), "lb": (0.0, LEAST_OBSERVATIONS - 1)}),
        _cell("lb", {"lb": (0.9, 10)}),
    ]
    matrix = _only(make_run(*cells))
    assert _fields(matrix)["la", "lb"] == Score(mark=" ")
    assert matrix.notes == (
        "Over all queries (micro): same language 90.0 (macro 90.0), across languages 0.0 (macro 0.0).",
        "Blank: fewer than 10 queries.",
    )


def test_the_averages_weigh_as_they_say(make_run: MakeRun) -> None:
    cells = [_cell("la", {"la": (1.0, 30), "lb": (0.6, 10)}), _cell("lb", {"lb": (0.5, 10), "la": (0.2, 30)})]
    [note, _] = _only(make_run(*cells)).notes
    assert note == (
        "Over all queries (micro): same language 87.5 (macro 75.0), across languages 30.0 (macro 40.0)."
    )


def test_the_longer_side_goes_down_the_page(make_run: MakeRun) -> None:
    groups = {code: (number / 20, 50) for number, code in enumerate(CODES)}
    matrix = _only(make_run(_cell("lb", groups)))
    assert (matrix.corner, matrix.columns) == ("target \\ query language", ("lb",))
    assert [row for row, _ in matrix.rows] == list(CODES)
    assert _fields(matrix)["lc", "lb"] == Score(value=0.1)
    assert not matrix.is_small


def test_one_query_language_stays_a_row_where_it_fits(make_run: MakeRun) -> None:
    matrix = _only(make_run(_cell("lb", {"la": (0.2, 50), "lb": (0.9, 50)})))
    assert (matrix.corner, [row for row, _ in matrix.rows]) == ("query \\ target language", ["lb"])


def test_rows_and_columns_have_one_order(make_run: MakeRun) -> None:
    groups = {"la": (0.5, 50), "lc": (0.5, 50), "lb": (0.5, 50)}
    matrix = _only(make_run(_cell("lc", groups), _cell("la", groups)))
    assert [row for row, _ in matrix.rows] == ["la", "lc"]
    assert matrix.columns == ("la", "lb", "lc")


def test_a_matrix_of_blanks_is_one_note(make_run: MakeRun) -> None:
    run = make_run(_cell("la", {"la": (0.9, 9), "lb": (0.0, 2)}))
    summary = summarise([run])
    assert summary.matrices == ()
    assert summary.notes == (
        "seek mAP, one target (frozen): Over all queries (micro): same language 90.0 (macro 90.0), across languages "
        "0.0 (macro 0.0). Every pair has fewer than 10 queries, so there is no matrix.",
    )
    assert "target language" not in terminal_text([run])
    assert "Every pair has fewer than 10 queries" in markdown_text([run])


def test_large_matrices_are_shown_when_they_are_asked_for(make_run: MakeRun) -> None:
    large = make_run(_cell("lb", {code: (0.5, 50) for code in CODES}))
    text = " ".join(terminal_text([large]).split())
    assert "The matrix: harness report RUN --matrices" in text
    assert "across languages 50.0" in text
    assert "target \\ query" not in text
    assert "target \\" in markdown_text([large]).replace("\\\\", "\\")
    small = make_run(_cell("lb", {code: (0.5, 50) for code in CODES[:12]}))
    text = terminal_text([small])
    assert "target \\ query" in text
    assert "--matrices" not in text


def test_every_view_has_its_own_matrix(make_run: MakeRun) -> None:
    groups = {"la": (0.9, 40)}
    run = make_run(_cell("la", groups), _cell("la", {"la": (0.1, 40)}, view={"variant": "v"}))
    found = {matrix.title: _fields(matrix)["la", "la"].value for matrix in matrices(run, {})}
    assert found == {
        "seek one_target_map_at_20 (frozen)": 0.9,
        "seek one_target_map_at_20 (frozen variant=v)": 0.1,
    }


def test_the_command_prints_only_the_matrices(cli: Cli, make_run: MakeRun) -> None:
    run = make_run(_cell("lb", {code: (0.5, 50) for code in CODES}))
    status, out, _ = cli("report", run.path, "--matrices")
    assert status == 0
    assert "target \\ query" in out
    assert all(f" {code} " in f" {out} ".replace("\n", " ") for code in CODES)
    assert "Transfer gap" not in out
    plain = make_run(_cell("lb", {}))
    status, out, _ = cli("report", plain.path, "--matrices")
    assert (status, out.strip()) == (0, "This run has no matrix.")


def test_the_command_shows_the_matrix_of_a_run(cli: Cli) -> None:
    given = (
        "--tasks",
        "lareqa:en+de",
        "--model",
        "baseline:char-ngram",
        "--data",
        "sample",
        "--protocol",
        "frozen",
    )
    assert cli("eval", *given, "--out", "run")[0] == 0
    status, out, _ = cli("report", "run", "--matrices")
    assert status == 0
    assert "query \\ target language" in out  # eight languages of sentences, two of questions
    assert "Over all queries (micro): same language" in out
