"""Matrices: questions against answers, small ones in the summary and large ones when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.reporting.blocks.model import Table
from harness.reporting.blocks.number import Score
from harness.reporting.documents import markdown_text, terminal_text
from harness.reporting.overview.matrix import LEAST_OBSERVATIONS, Matrix, matrices
from harness.reporting.overview.paper_tables import matrix_format, matrix_report, matrix_rows
from harness.reporting.overview.summary import summarise
from harness.running.manifest import published_documents
from harness.running.session import open_session
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


def _micro(matrix: Matrix) -> list[tuple[str, float]]:
    return [(name, round(100 * micro, 1)) for name, micro, _ in matrix.averages]


def _only(run: Run) -> Matrix:
    [matrix] = matrices(run)
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
    assert dict(_micro(matrix)) == {"all": 73.5, "same language": 90.0, "across languages": 0.0}
    assert matrix.notes[1] == "Blank: fewer than 10 queries."


def test_the_averages_weigh_as_they_say(make_run: MakeRun) -> None:
    cells = [_cell("la", {"la": (1.0, 30), "lb": (0.6, 10)}), _cell("lb", {"lb": (0.5, 10), "la": (0.2, 30)})]
    matrix = _only(make_run(*cells))
    assert dict(_micro(matrix)) == {"all": 58.8, "same language": 87.5, "across languages": 30.0}
    assert [macro for _, _, macro in matrix.averages] == pytest.approx([0.575, 0.75, 0.4])


@pytest.mark.parametrize(
    ("same", "other", "whole"),
    [(58.2, 12.1, 16.3), (57.1, 28.7, 31.3)],  # XTREME-R, Table 14, LAReQA: mBERT and XLM-R Large
)
def test_the_mean_of_all_queries_is_that_of_table_14(
    make_run: MakeRun, same: float, other: float, whole: float
) -> None:
    codes = CODES[:11]
    cells = [
        _cell(code, {target: ((same if target == code else other) / 100, 1190) for target in codes})
        for code in codes
    ]
    assert _micro(_only(make_run(*cells)))[0] == ("all", whole)


def test_the_longer_side_goes_down_the_page_where_it_does_not_fit(make_run: MakeRun) -> None:
    groups = {code: (number / 20, 50) for number, code in enumerate(CODES)}
    matrix = _only(make_run(_cell("lb", groups)))
    assert (matrix.corner, matrix.columns) == ("target \\ query language", ("lb",))
    assert [row for row, _ in matrix.rows] == list(CODES)
    assert _fields(matrix)["lc", "lb"] == Score(value=0.1)
    assert not matrix.is_small
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
    [note] = summary.notes
    assert note.endswith("Every pair has fewer than 10 queries, so there is no matrix.")
    for form in ("latex", "markdown"):
        assert "Every pair has fewer than 10 queries" in matrix_format(form, markdown_text)([run])
    assert [(row["row"], row["column"], row["value"], row["n"]) for row in matrix_rows([run])] == [
        ("la", "la", None, 9),
        ("la", "lb", None, 2),
    ]
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
    found = {matrix.title: _fields(matrix)["la", "la"].value for matrix in matrices(run)}
    assert found == {
        "seek mAP, one target (frozen)": 0.9,
        "seek mAP, one target (frozen variant=v)": 0.1,
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
    given = ("--tasks", "lareqa:en+de", "--model", "baseline:char-ngram", "--data", "sample")
    assert cli("eval", *given, "--protocol", "frozen", "--out", "run")[0] == 0
    status, out, _ = cli("report", "run", "--matrices")
    assert status == 0
    assert "query \\ target language" in out  # eight languages of sentences, two of questions
    assert "Over all queries (micro): all" in out
    assert cli("report", "run", "--matrices", "--format", "svg", "--out", "figures")[0] == 0
    [figure] = Path("figures").glob("matrix-*.svg")
    assert "query \\ target language" in figure.read_text(encoding="utf-8")
    assert cli("report", "run", "--matrices", "--format", "html")[0] == 2


def test_queries_by_pair_have_totals(make_run: MakeRun) -> None:
    run = make_run(
        _cell("la", {"la": (0.9, 30), "lb": (0.0, 9)}), _cell("lb", {"lb": (0.9, 10), "la": (0.4, 1)})
    )
    counts = matrix_report([run])[-1]
    assert isinstance(counts, Table)
    assert counts.heads == ("la", "lb", "Total")
    assert [[row.label, *map(str, row.fields)] for row in counts.rows] == [
        ["la", "30", "9", "39"],
        ["lb", "1", "10", "11"],
        ["Total", "31", "19", "50"],
    ]
    assert r"\caption{" in matrix_format("latex", markdown_text)([run])
    assert len(matrix_format("csv", markdown_text)([run]).splitlines()) == 5


def test_an_average_over_fewer_tests_is_marked(tmp_path: Path) -> None:
    metrics = ["case_error", "case_floor"]
    asked = {"protocol": "prompted", "method": "generate", "fit": "none"}

    def cell(language: str, errors: dict[str, float]) -> dict[str, Any]:
        groups = {test: {"value": value, "n": 10} for test, value in errors.items()}
        scores = {name: {"value": 0.5, "ci": None, "groups": groups} for name in metrics}
        return make_shown_cell("checks", language, scores, **asked)

    languages = {code: ["x", "Latn"] for code in CODES}
    spec = {"kind": "k", "metrics": metrics, "headline": metrics[:1], "languages": languages}
    cells = [cell("la", {"b": 0.1, "a": 0.3}), cell("lb", {"a": 0.5})]
    for number, declared in enumerate(([], ["a", "b", "c"])):
        manifest = {"published": [], "specs": {"checks": {"groups": declared}}}
        run = write_run(tmp_path / f"run-{number}", cells, {"checks": spec}, manifest=manifest)
        [matrix] = matrices(run)
        marks = {pair: score.mark for pair, score in _fields(matrix).items() if pair[1] == "avg"}
        assert marks == {("la", "avg"): "~" if declared else "", ("lb", "avg"): "~", ("Avg", "avg"): "~"}
        assert _fields(matrix)["Avg", "a"] == Score(value=0.4)
        assert _fields(matrix)["Avg", "b"] == Score(value=0.1, mark="~")
    assert matrix.columns == ("a", "b", "c", "avg")


# Published rows ------------------------------------------------------------------------------------------

CATALOG = open_session().catalog


def _published(folder: Path, task: str, metric: str, *cells: dict[str, Any], **spec: Any) -> Matrix:
    """Return the matrix of a run next to all that was published on its task."""
    entry = CATALOG.task(task).spec
    about = {"kind": entry.kind, "metrics": [metric], "headline": [metric], "source": "en", **spec}
    about |= {"languages": {code: ["x", "Latn"] for code in entry.languages}}
    about |= {"published_languages": list(entry.languages)}
    published = published_documents(CATALOG, [], [task])
    run = write_run(folder / "run", cells, {task: about}, manifest={"published": published})
    return matrices(run)[0]


@pytest.mark.parametrize("codes", [("hi",), ("ta",), ("hi", "ta")])
def test_treebanks_stand_over_the_published_layers(codes: tuple[str, ...], tmp_path: Path) -> None:
    cells = [
        make_shown_cell(
            "vyakarana_pos",
            code,
            {"weighted_f1": {"value": 0.5, "ci": None}},
            view={"treebank": kind},
            protocol="frozen",
            method="probe",
        )
        for code in codes
        for kind in ("cg", "cscg")
    ]
    matrix = _published(tmp_path, "vyakarana_pos", "weighted_f1", *cells, axes=["treebank"])
    systems = CATALOG.published("vyakarana_layers").systems
    rows = dict(matrix.rows)
    assert len(rows) == len(codes) + 10
    for which in ("last", "best"):
        scores = rows[f"published mBERT, {which} layer"]
        for kind, score in zip(matrix.columns, scores, strict=True):
            table = systems[f"mBERT {which} {kind}"].languages["vyakarana_pos"]["weighted_f1"]
            assert score.mark == ""
            assert score.value == pytest.approx(
                sum(table[code] for code in codes) / len(codes) / 100, abs=1e-4
            )


def test_a_checklist_stands_over_the_published_error_rates(tmp_path: Path) -> None:
    names = ("comparisons", "properties")
    groups = {name: {"value": 0.5, "n": 10} for name in names}
    cells = [
        make_shown_cell(
            "multichecklist",
            code,
            {name: {"value": 0.5, "ci": None, "groups": groups} for name in ("case_error", "case_floor")},
            protocol="zero_shot_transfer",
            method="head",
        )
        for code in ("de", "sw")
    ]
    metrics = ["case_error", "case_floor"]
    matrix = _published(tmp_path, "multichecklist", metrics[0], *cells, metrics=metrics, headline=metrics)
    printed = CATALOG.published("multichecklist").systems["XLM-R Large"]
    tests, means = (
        printed.groups["multichecklist"]["case_error"],
        printed.languages["multichecklist"]["case_error"],
    )
    expected = [(tests["de"][name] + tests["sw"][name]) / 200 for name in names]
    row = dict(matrix.rows)["published XLM-R Large"]
    assert [score.value for score in row] == pytest.approx([*expected, (means["de"] + means["sw"]) / 200])
