"""What comes onto a board: published scores, score files, runs, metadata; and what raises."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from typer.testing import CliRunner

import harness
from harness.errors import DataError, SpecError, UnknownNameError, UsageError
from harness.reporting.render.text import csv_text
from harness.specs.catalog import Catalog
from harness.storage.run_folder import Run
from harness_board.command import app
from harness_board.document import (
    COLUMNS,
    MOST_TEXT,
    Board,
    Score,
    System,
    _true_protocol,
    board_rows,
    packed,
    run_systems,
    with_diagnosis,
)
from harness_board.gathering import _starred, _united_baselines, gather
from harness_board.published import read_metadata
from harness_board.rendering import board_page, standing

ZERO_SHOT = "zero shot transfer · published"
OVERALL = {("XLM-R Large", ZERO_SHOT): "65.3", ("mT5-XXL", ZERO_SHOT): "64.6°", ("mBERT", ZERO_SHOT): "54.1"}
"""Table 4 of Ruder et al. (2021)."""


def test_published_scores_give_the_published_averages(published: Board) -> None:
    assert (published.title, published.date) == ("XTREME-R", None)
    ranked = [row for row in standing(published).rows if row[2] != "-"]
    assert {row[:2]: row[2] for row in ranked} == OVERALL
    assert [row[0] for row in ranked] == ["XLM-R Large", "mBERT", "mT5-XXL"]


def test_what_is_stated_of_published_systems_is_on_the_board(published: Board) -> None:
    systems = {item.label: item for item in published.systems if item.protocol == "zero_shot_transfer"}
    assert systems["mT5-XXL"].metadata["monolingual"] == {"value": 1e12, "unit": "tokens"}
    notes = {score.task: score.note for score in systems["mBERT"].scores}
    assert notes["mewslix"].startswith("Not comparable")
    assert notes["xnli"].startswith("Erratum")
    row = next(row for row in board_rows(published) if row["system"] == "XLM-R Large")
    assert (row["parameters"], row["monolingual"], row["monolingual_unit"]) == (559_000_000, 6.3e12, "tokens")
    assert (row["year"], row["languages_seen"], row["licence"], row["parallel"]) == (2020, 100, "mit", None)


def test_the_star_of_the_paper_is_on_the_board(published: Board) -> None:
    """mT5-XXL was scored otherwise on three tasks; the Mewsli-X of the paper is one set for all its systems."""
    starred = {
        (system.label, score.task)
        for system in published.systems
        for score in system.scores
        if score.is_starred and system.protocol == "zero_shot_transfer"
    }
    assert starred == {("mT5-XXL", task) for task in ("tydiqa", "mewslix", "lareqa", "tatoeba")}
    rows = [row for row in board_rows(published) if row["system"] == "mT5-XXL" and row["task"] == "lareqa"]
    assert [row["comparable"] for row in rows] == [False]


REASONS = st.lists(st.sampled_from(["", "a", "b"]), min_size=1, max_size=6)


@given(REASONS)
def test_scores_of_one_reason_are_comparable_and_runs_before_them(reasons: list[str]) -> None:
    systems = [
        System(label=str(at), origin="run", scores=(Score(task="t", metric="m", mean=1.0, reason=reason),))
        for at, reason in enumerate(reasons)
    ]
    kept = {own.scores[0].reason for own in _starred(systems) if not own.scores[0].is_starred}
    assert len(kept) == 1
    assert kept == {""} or "" not in reasons
    assert all(reasons.count(own) <= reasons.count(*kept) for own in reasons) or kept == {""}


def test_a_suite_counts_with_its_own_metrics_and_languages(catalog: Catalog) -> None:
    board = gather(published="xtreme", catalog=catalog)
    assert {row[0]: row[2] for row in standing(board).rows} == {
        "mDistilBERT": "56.5", "mMiniLM": "67.0", "mmBERT-small": "68.7",
        "XLM-R base": "70.4", "mGTE base": "71.1", "mmBERT base": "72.8",
    }  # fmt: skip
    languages = {task.task: len(task.languages) for task in board.tasks}
    assert (languages["wikiann"], languages["udpos"]) == (40, 33)


def test_a_language_has_its_own_printed_scores(published: Board) -> None:
    shown = standing(published, language="sw")
    [row] = [row for row in shown.rows if row[:2] == ("mBERT", ZERO_SHOT)]
    known = dict(zip(shown.heads[2:], row[3:], strict=True))
    assert {task: text for task, text in known.items() if text != "-"} == {
        "xnli": "49.3", "xcopa": "52.2", "wikiann": "72.7", "tydiqa": "59.7",
    }  # fmt: skip


# Score files --------------------------------------------------------------------------------------------


def _write(folder: Path, name: str, *rows: str) -> Path:
    path = folder / name
    path.write_text("\n".join(row.replace("|", "\t") for row in rows) + "\n", encoding="utf-8")
    return path


def test_tables_of_tasks_and_of_languages(tmp_path: Path, catalog: Catalog) -> None:
    _write(tmp_path, "table4.tsv", "model|setting|avg|xnli|xquad_f1|xquad_em", "A|zero-shot|1|66.5|65.1|50.4",
           "A, multilingual|translate-train||70|NA|", "B|||1||")  # fmt: skip
    _write(tmp_path, "table15_xnli.tsv", "model|en|sw|avg_printed|note", "A small|80|50|65.4|misprint")
    _write(tmp_path, "table8.tsv", "index|value", "family|0.3")
    first, second, third = gather(scores=[tmp_path], renamed={"A small": "A"}, catalog=catalog).systems
    scores = {(score.task, score.metric): score for score in first.scores}
    assert scores["xquad", "f1"].mean == 65.1
    assert scores["xquad", "exact_match"].mean == 50.4
    assert scores["xnli", "accuracy"].mean == 66.5
    assert scores["xnli", "accuracy"].by_language == {"en": 80, "sw": 50}
    assert scores["xnli", "accuracy"].note == "misprint; another table prints 65.4"
    assert (second.label, second.protocol) == ("A", "translate_train_all")
    assert [(score.task, score.mean) for score in second.scores] == [("xnli", 70)]
    assert (third.label, third.protocol) == ("B", ""), "a protocol that a file does not state is not invented"


def test_one_score_per_row(tmp_path: Path, catalog: Catalog) -> None:
    rows = ("model|task|metric|language|score", "A|xnli|accuracy|en|90", "A|other|bleu||12.5")
    board = gather(scores=[_write(tmp_path, "s.tsv", *rows)], catalog=catalog)
    assert {task.task: task.headline for task in board.tasks} == {"xnli": ("accuracy",), "other": ("bleu",)}
    [xnli, other] = board.systems[0].scores
    assert (xnli.is_whole, other.mean) == (False, 12.5)


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        (["system|xnli", "A|1"], "s.tsv:1: .*'model'"),
        (["model", "A"], "s.tsv:1: "),
        (["model|task|score", "A|xnli|1"], "column metric"),
        (["model|xnli|xcopa", "A|1|x"], "s.tsv:2: .*'xcopa'.*'x'"),
        (["model|xnli", "A|101"], "s.tsv:2: .*percent.*'xnli'.*101"),
        (["model|xnli", "A|1|2"], "s.tsv:2: .*2 columns.*3"),
        (["model|xnli_bleu", "A|1"], "xnli_bleu.*accuracy"),
        (["model|xnli", "A|nan"], "percent"),
    ],
)
def test_faulty_score_files_raise(rows: list[str], fault: str, tmp_path: Path, catalog: Catalog) -> None:
    with pytest.raises(DataError, match=fault):
        gather(scores=[_write(tmp_path, "s.tsv", *rows)], catalog=catalog)


# Metadata -----------------------------------------------------------------------------------------------


def test_faults_of_metadata_name_their_lines(tmp_path: Path, catalog: Catalog) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(
        "name: A\nmonolingual:\n  value: 85\n  unit: GB\nparamters: {total: 5}\nyear: 1492\n"
        "url: javascript:alert(1)\npaper: example.org\n",
        encoding="utf-8",
    )
    with pytest.raises(SpecError) as error:
        read_metadata(path)
    for fault in (
        "line 4: monolingual.unit",
        "line 5: paramters: .*'parameters'",
        "line 6: year",
        "line 7: url",
    ):
        assert re.search(fault, str(error.value))
    path.write_text("name: mBERTT\n", encoding="utf-8")
    with pytest.raises(UnknownNameError, match="mBERT"):
        gather(published="xtreme_r", metadata=[read_metadata(path)], catalog=catalog)


def test_metadata_join_their_system(tmp_path: Path, catalog: Catalog) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(
        "name: mBERT\nlabel: Multilingual BERT\nparameters: {total: 200, active: 100}\nlanguages_seen: [en, de]\n",
        encoding="utf-8",
    )
    board = gather(published="xtreme_r", metadata=[read_metadata(path)], catalog=catalog)
    about = [item.metadata for item in board.systems if item.label == "Multilingual BERT"]
    assert len(about) == 3
    assert {(item["parameters"], item["active"], item["languages_seen"]) for item in about} == {(200, 100, 2)}


# Runs ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(folder / "cache"))
        return [
            harness.evaluate(
                "xnli", "baseline:majority", data="sample", languages=["en", "sw"], output=folder / "a"
            ),
            harness.evaluate(
                "xquad", "baseline:majority", data="sample", languages=["en", "de"], output=folder / "b"
            ),
        ]


def test_a_run_over_fewer_languages_is_ranked_on_them(runs: list[Run], catalog: Catalog) -> None:
    board = gather(runs=runs[:1], catalog=catalog)
    assert board.date is not None and board.date.isoformat() == runs[0].results.run.created[:10]
    [system] = board.systems
    assert (system.label, system.path, system.source) == ("majority", "baseline:majority", "baseline")
    [score] = system.scores
    assert not score.is_whole
    assert score.by_language.keys() == score.se_by_language.keys() == {"en", "sw"}
    for cell in runs[0].cells:
        low, high = cell.metrics["accuracy"].ci or (0.0, 0.0)
        assert score.interval_by_language[cell.language] == pytest.approx((low * 100, high * 100))
    [value] = [row.value for row in runs[0].results.tasks]
    assert score.mean == pytest.approx(value * 100)
    [row] = standing(board).rows
    assert row[2] == f"{value * 100:.1f}"
    for chosen in (runs, []):
        with pytest.raises(UsageError):
            gather(runs=chosen)


def test_a_baseline_of_several_runs_is_one_row(runs: list[Run]) -> None:
    assert [system.label for system in gather(runs=[*runs[:1], *runs[:1]]).systems] == ["majority"]
    [system] = run_systems(runs[0])
    [score] = system.scores
    less = replace(score, by_language={"sw": score.by_language["sw"]})
    smaller = replace(system, scores=(less, replace(score, task="xcopa")))
    for pair in ((system, smaller), (smaller, system)):
        [united] = _united_baselines(pair)
        assert {own.task: own.by_language for own in united.scores} == {
            "xnli": score.by_language,
            "xcopa": score.by_language,
        }
    assert len(_united_baselines([system, replace(system, run="another", year=2001)])) == 1
    apart = (
        replace(system, scores=(replace(score, by_language={"sw": 1.0}),)),
        replace(system, protocol="frozen"),
        replace(system, view="prompt=a"),
        replace(system, adapter="hf"),
    )
    assert all(len(_united_baselines([system, other])) == 2 for other in apart)
    assert len(_united_baselines([replace(system, adapter="hf")] * 2)) == 2


@pytest.mark.parametrize(
    ("languages", "protocol", "shown"),
    [
        (("en",), "zero_shot_transfer", "in_language"),
        (("en", "sw"), "zero_shot_transfer", "zero_shot_transfer"),
        (("sw",), "zero_shot_transfer", "zero_shot_transfer"),
        (("en",), "frozen", "frozen"),
    ],
)
def test_a_system_tested_in_its_training_language_alone_is_in_language(
    languages: tuple[str, ...], protocol: str, shown: str, runs: list[Run]
) -> None:
    rows = [row.changed(by_language=dict.fromkeys(languages, 0.5)) for row in runs[0].results.tasks]
    assert _true_protocol(protocol, rows, runs[0]) == shown


def test_a_run_of_the_tasks_of_a_suite_is_not_that_suite(catalog: Catalog, tmp_path: Path) -> None:
    """The tasks of `americas`, in another language."""
    run = harness.evaluate("xnli:en,sib200:en", "baseline:majority", data="sample", output=tmp_path / "run")
    board = gather(runs=[run], catalog=catalog)
    assert board.suite == ""
    assert {task.task for task in board.tasks} == {"xnli", "sib200"}


def test_another_split_than_test_is_marked(runs: list[Run], tmp_path: Path) -> None:
    copied = tmp_path / "stands-in"
    shutil.copytree(runs[0].path, copied)
    results = json.loads((copied / "results.json").read_text(encoding="utf-8"))
    [cell] = [cell for cell in results["cells"] if cell["language"] == "sw"]
    cell["stands_in"] = True
    (copied / "results.json").write_text(json.dumps(results), encoding="utf-8")
    board = gather(runs=[Run(copied)])
    assert [head for head in standing(board, task="xnli").heads if "*" in head] == ["sw*"]
    [score] = board.systems[0].scores
    assert score.note == "scored on another split than test: sw"
    assert "* scored on another split than test" in board_page(board)
    assert "another split than test" not in board_page(gather(runs=runs[:1]))


def test_rows_are_fractions_and_inert(runs: list[Run], hostile: Board) -> None:
    rows = board_rows(gather(runs=runs[:1]))
    [whole] = [row for row in rows if not row["language"]]
    assert whole["value"] == pytest.approx(runs[0].results.tasks[0].value)
    assert whole["complete"] is False
    assert csv_text(rows, COLUMNS).startswith(",".join(COLUMNS) + "\n")
    assert csv_text([{**whole, "system": "=1+1"}], COLUMNS).splitlines()[1].startswith("'=1+1,")


def test_a_diagnosis_brings_its_examples(runs: list[Run]) -> None:
    board = gather(runs=runs[:1])
    cell = next(cell for cell in runs[0].cells if cell.language == "sw")
    record = next(iter(runs[0].records(cell)))
    row = {
        **{"kind": "single", "task": "xnli", "language": "sw", "system": "baseline:majority", "n": 5},
        **{"attribute": "length", "bucket": "XS", "metric": "accuracy", "value": 0.5},
    }
    made = with_diagnosis(board, [{**row, "examples": [record.id, "unknown"]}], runs[:1])
    example: Any = next(iter(made.examples.values()))
    assert len(made.examples) == 1
    assert example["id"] == record.id
    assert example["predictions"] == {"majority": record.prediction["label"]}
    assert example["inputs"]


def test_distributions_become_buckets(runs: list[Run]) -> None:
    shared = {"kind": "data", "task": "xnli", "language": "sw", "view": {"variant": "x"}, "mean": None}
    rows: list[dict[str, Any]] = [
        {**shared, "attribute": "length", "n": 5, "histogram": [[1.0, 2.5, 3], [2.5, 2.5, 2]]},
        {**shared, "attribute": "word", "n": 27, "histogram": [[f"w{index}", 2] for index in range(13)]},
        {**shared, "kind": "confusion", "n": 1},
    ]
    made = with_diagnosis(gather(runs=runs[:1]), rows, runs[:1]).diagnosis
    found = [(row["attribute"], row["bucket"], row["n"]) for row in made]
    assert found[:2] == [("length (variant=x)", "1 to 2.5", 3), ("length (variant=x)", "2.5", 2)]
    assert found[-1] == ("word (variant=x)", "others", 2)
    assert len(found) == 15


# The command --------------------------------------------------------------------------------------------


def test_the_command_writes_all_its_files(tmp_path: Path) -> None:
    page, table, content, site = (str(tmp_path / name) for name in ("b.html", "b.csv", "b.json", "site"))
    options = ["--from-published", "xtreme_r", "-o", page, "--csv", table, "--json", content, "--site", site]
    done = CliRunner().invoke(app, options)
    assert done.exit_code == 0, done.output
    assert "7 systems, 10 tasks, 50 languages" in done.output
    assert len(list(Path(site).glob("*.html"))) == 61
    assert all(Path(path).stat().st_size > 5000 for path in (page, table, content))


@pytest.mark.parametrize(
    ("suite", "options", "error", "named"),
    [
        ("xtreme_r", [], UsageError, "go"),
        ("xtreme_r", ["-o", "no/b.html"], UsageError, "no/b.html"),
        ("xtreme_rr", ["-o", "b.html"], UnknownNameError, "xtreme_r"),
        ("xtreme_r", ["--rename", "a", "-o", "b.html"], UsageError, "OLD=NEW"),
    ],
)
def test_the_command_rejects_what_it_cannot_write(
    suite: str,
    options: list[str],
    error: type[Exception],
    named: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=named):
        CliRunner().invoke(app, ["--from-published", suite, *options], catch_exceptions=False)


# What a page holds --------------------------------------------------------------------------------------


def test_reasons_of_missing_scores_are_written_once(runs: list[Run]) -> None:
    system = replace(gather(runs=runs[:1]).systems[0], absences={"xnli:de": "no data", "xnli:fr": "no data"})
    content = replace(gather(runs=runs[:1]), systems=(system, system)).content()
    assert content["reasons"] == ["no data"]
    assert [own["absences"] for own in content["systems"]] == [{"xnli:de": 0, "xnli:fr": 0}] * 2


def test_a_diagnosis_is_packed_and_bounded() -> None:
    shared = {"kind": "single", "task": "xnli", "language": "sw", "system": "a", "attribute": "length"}
    value = {"n": 5, "value": 0.123456789}
    rows = [
        {**shared, **value, "bucket": str(at), "examples": [f"x/{at}", f"y/{at}", "gone"]} for at in range(4)
    ]
    examples = {f"{kind}/{at}": {"text": "w" * (MOST_TEXT // 6)} for kind in "xy" for at in range(4)}
    found = packed(rows, examples)
    [group] = found["diagnosis"]
    assert {name: group[name] for name in shared} == shared
    assert group["columns"] == ["bucket", "n", "value", "examples"]
    # Each bucket has its first example; the second ones did not all fit.
    assert group["buckets"][0] == ["0", 5, 0.12346, [0, 4]]
    assert group["buckets"][3] == ["3", 5, 0.12346, [3]]
    assert len(found["examples"]) == 5
    assert packed([], {}) == {"diagnosis": [], "examples": []}
