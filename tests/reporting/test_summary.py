"""What the summary says about scores, seeds, failures, stand-ins and notes; on runs written by hand."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness.reporting.blocks.number import Score
from harness.reporting.documents import latex_text, markdown_text, terminal_text
from harness.reporting.overview.column import system_names
from harness.reporting.overview.run_remarks import unreadable_line
from harness.reporting.overview.summary import summarise
from harness.reporting.overview.summary_blocks import detail_blocks
from harness.reporting.render.console import render_blocks
from harness.reporting.render.text import cell_rows, render_csv, render_json
from harness.storage.run_folder import Run
from tests.builders import make_shown_cell, write_run

MakeRun = Callable[..., Run]

LANGUAGES = {code: ["Indo-European", "Latn"] for code in ("de", "en", "qpf")} | {
    "sw": ["Niger-Congo", "Latn"]
}


def _cell(language: str, value: float | None = 0.5, **fields: Any) -> dict[str, Any]:
    score = {"value": value, "se": 0.1, "ci": [0.4, 0.7], "ci_method": "t"}
    metrics = {} if value is None else {"accuracy": score}
    return make_shown_cell(
        "xnli", language, metrics, **{"fit": "f" * 16, "n": 1200, "seconds": 2.0, **fields}
    )


def _failed(language: str, reason: str, **fields: Any) -> dict[str, Any]:
    return _cell(language, None, status="failed", reason=reason, n=0, **fields)


def _skipped(language: str, reason: str) -> dict[str, Any]:
    skipped = _cell(language, None, status="skipped", reason=reason, n=0)
    return {key: skipped[key] for key in ("task", "language", "status", "reason", "n", "metrics", "seconds")}


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    numbers = iter(range(100))

    def make(
        *cells: dict[str, Any], model: str = "hf:models/mine", data: str = "local", **results: Any
    ) -> Run:
        spec = {
            "kind": "sequence_classification",
            "metrics": ["accuracy"],
            "headline": ["accuracy"],
            "source": "en",
            "chance": 1 / 3,
            "languages": LANGUAGES,
        }
        specs = {task: spec for task in dict.fromkeys(cell["task"] for cell in cells)}
        folder = tmp_path / f"run-{next(numbers)}"
        return write_run(folder, cells, specs, run={"data": data}, manifest={"model": model}, **results)

    return make


def test_languages_stand_by_family_the_largest_first(make_run: MakeRun) -> None:
    summary = summarise([make_run(_cell("sw"), _cell("en"), _cell("de"))])
    assert [section.family for section in summary.sections] == ["Indo-European", "Niger-Congo"]
    assert [row[:2] for row in summary.sections[0].rows] == [("de", "German"), ("en", "English")]


def test_a_name_that_is_too_long_ends_in_an_ellipsis(make_run: MakeRun) -> None:
    summary = summarise([make_run(_cell("de"))])
    (section,) = summary.sections
    rows = tuple(("pov", "Guinea-Bissau Creole", scores) for _, _, scores in section.rows)
    console = Console(width=100, file=(text := io.StringIO()))
    blocks = detail_blocks(replace(summary, sections=(replace(section, rows=rows),)), width=100)
    console.print(render_blocks(blocks, width=100))
    assert "pov Guinea-Bissau C…" in text.getvalue()


def test_a_mean_over_fewer_seeds_is_reported(make_run: MakeRun) -> None:
    cells = [_cell(code, 0.5, seed=seed) for code in ("de", "sw") for seed in (0, 1, 2)]
    assert not any("seeds" in note for note in summarise([make_run(*cells)]).notes)
    [note] = [note for note in summarise([make_run(*cells[:-1])]).notes if "seeds" in note]
    assert note.endswith(" sw: the mean of 2 of 3 seeds; the others have no score")


def test_a_score_has_its_interval_and_several_seeds_have_their_mean(make_run: MakeRun) -> None:
    [section] = summarise([make_run(_cell("de", 0.5))]).sections
    [score] = section.rows[0][2]
    assert (score.value, score.mark) == (0.5, "")
    assert score.interval == (0.4, 0.7)
    seeds = [_cell("de", value, seed=seed) for seed, value in enumerate((0.4, 0.6))]
    [section] = summarise([make_run(*seeds)]).sections
    [score] = section.rows[0][2]
    assert score.value == pytest.approx(0.5)
    assert score.interval is None


def test_means_chance_and_gap(make_run: MakeRun) -> None:
    run = make_run(_cell("en", 0.9), _cell("de", 0.6))
    other = make_run(_cell("en", 0.5), _cell("de", 0.3), model="baseline:majority")
    rows = {label: [score.value for score in scores] for label, scores in summarise([run, other]).means}
    assert rows == {
        "mean": [pytest.approx(0.75)],
        "mean majority": [pytest.approx(0.4)],
        "chance": [pytest.approx(1 / 3)],
        "transfer gap": [pytest.approx(0.3)],
    }


def _means(*runs: Run) -> dict[str, list[tuple[float | None, str]]]:
    return {
        label: [(score.value, score.mark) for score in scores]
        for label, scores in summarise(runs).means
        if label.startswith("mean")
    }


def test_means_over_the_same_cells_have_no_mark(make_run: MakeRun) -> None:
    run, other = (make_run(_cell("en", 0.5), _cell("de", 0.5), model=model) for model in ("hf:a", "hf:b"))
    assert _means(run, other) == {"mean": [(0.5, "")], "mean b": [(0.5, "")]}
    assert not summarise([run, other]).notes


@pytest.mark.parametrize(
    ("cells", "difference"),
    [
        ([_cell("en", 0.5)], "1 language, 1,200 items (first run: 2 languages, 2,400 items)"),
        (
            [_cell("en", 0.5), _cell("de", 0.5, n=6)],
            "2 languages, 1,206 items (first run: 2 languages, 2,400 items)",
        ),
        ([_cell("en", 0.5), _cell("sw", 0.5)], "2 languages, 2,400 items of other languages"),
        (
            [_cell("en", 0.5), _cell("de", 0.5, data={"pinned": True, "note": "", "digest": "e" * 64})],
            "2 languages, 2,400 items of other data",
        ),
    ],
    ids=["fewer languages", "fewer items", "other languages", "other data"],
)
def test_a_mean_over_other_cells_is_marked_in_every_format(
    make_run: MakeRun, cells: list[dict[str, Any]], difference: str
) -> None:
    runs = [make_run(_cell("en", 0.5), _cell("de", 0.5)), make_run(*cells, model="baseline:char-ngram")]
    assert _means(*runs) == {"mean": [(0.5, "")], "mean char-ngram": [(0.5, "~")]}
    note = f"~ over other cells than the first run's, not comparable with its mean: mean char-ngram, xnli {difference}"
    assert note in summarise(runs).notes
    assert "50.0~" in terminal_text(runs)
    assert "| mean char-ngram | 50.0~" in markdown_text(runs)
    assert f"% {note}" in latex_text(runs)
    assert r"mean char-ngram & 50.0\textasciitilde{}" in latex_text(runs)


def test_a_baseline_under_another_protocol_shows_its_mean(make_run: MakeRun) -> None:
    prompted = {"protocol": "prompted", "method": "rank", "view": {"prompt": "default"}}
    run = make_run(*(_cell(code, 0.75, **prompted) for code in ("en", "de")))
    other = make_run(_cell("en", 0.5), _cell("de", 0.5), model="baseline:char-ngram")
    assert _means(run, other) == {"mean": [(0.75, "")], "mean char-ngram": [(0.5, "§")]}
    [note] = summarise([run, other]).notes
    assert note.startswith("§ ")
    assert note.endswith(": mean char-ngram, xnli zero_shot_transfer")
    assert r"mean char-ngram & 50.0\S{}" in latex_text([run, other])
    assert "50.0§" in markdown_text([run, other])
    shorter = make_run(_cell("en", 0.5), model="baseline:char-ngram")
    assert _means(run, shorter)["mean char-ngram"] == [(0.5, "§~")]


def test_other_items_and_rows_of_another_column_take_no_place(make_run: MakeRun) -> None:
    run = make_run(_cell("en", 0.9), _cell("en", 0.8, protocol="translate_train"))
    other = make_run(_cell("en", 0.5), model="hf:b")
    assert _means(run, other)["mean b"] == [(0.5, ""), (None, "")]
    translated = make_run(_cell("en", 0.5, view={"variant": "translated"}), model="hf:b")
    assert _means(run, translated)["mean b"] == [(None, ""), (None, "")]


def test_rows_with_one_name_are_numbered(make_run: MakeRun) -> None:
    models = ("hf:a", "baseline:majority", "baseline:majority")
    runs = [make_run(_cell("en"), model=model) for model in models]
    summary = summarise(runs)
    assert [label for label, _ in summary.means][:3] == ["mean", "mean majority", "mean majority (2)"]
    assert f"mean majority (2): {runs[2].path}" in summary.notes


def test_rows_of_one_model_are_named_by_what_it_was_trained_on(make_run: MakeRun) -> None:
    def trained(variant: str, model: str = "hf:a") -> Run:
        view = {"train_variant": variant, "train_translator": "g", "train_pivot": "es"} if variant else {}
        return make_run(_cell("en", view=view), model=model)

    runs = [trained(""), trained("t-train"), trained("b-train"), trained("mt-hi", "hf:b")]
    labels = ["mean", "mean t-train", "mean b-train", "mean b"]
    assert [label for label, _ in summarise(runs).means][:4] == labels
    assert system_names(runs[:3]) == ["a (orig)", "a (t-train)", "a (b-train)"]
    same = [trained("t-train"), trained("t-train")]
    assert [label for label, _ in summarise(same).means][:2] == ["mean", "mean a (2)"]
    assert len(set(system_names(same))) == 2


def test_a_failed_cell_is_marked_and_never_counted(make_run: MakeRun) -> None:
    run = make_run(_cell("en", 0.9), _failed("de", "RuntimeError: out of memory"))
    summary = summarise([run])
    assert summary.sections[0].rows[0][2] == (Score(mark="!"),)
    assert summary.means[0] == ("mean", (Score(value=0.9, interval=(0.4, 0.7)),))
    assert dict(summary.counts)["languages"] == ("1/2",)
    text = terminal_text([run])
    assert "FAILED: 1 cell\n" in text
    assert "xnli de: RuntimeError: out of memory" in text
    one_seed = make_run(_cell("de", 0.5, seed=1), _failed("de", "broken", seed=2))
    assert summarise([one_seed]).sections[0].rows[0][2] == (Score(mark="!"),)


def test_another_split_than_test_is_marked_and_named(make_run: MakeRun) -> None:
    run = make_run(_cell("de", stands_in=True, split="validation"), _cell("sw"))
    assert "50.0*" in terminal_text([run])
    assert "* scored on another split than test, which was not found: xnli:de" in summarise([run]).notes


def test_notes_say_what_makes_scores_differ(make_run: MakeRun) -> None:
    first = {"stage": "mnli", "digest": "f" * 16, "reused": False, "seconds": 61.4}
    second = {"stage": "more", "digest": "e" * 16, "reused": True, "train": {"examples": 400}}
    stages = [{**first, "train": {"examples": 9888}}, second]
    run = make_run(
        _cell("de", data={"pinned": False, "note": "words are split there"}, truncated=1200, unparsed=3),
        _cell("sw", None, reason="the test file has no labels: predicted, not scored"),
        notes=["the plan said so"],
        fits={"f" * 16: {"title": "mnli (en), seed 42", "stages": stages}},
    )
    assert summarise([run]).notes == (
        "the plan said so",
        "fit ffffffff: stage mnli of mnli (en), seed 42, 9,888 examples, 61 s",
        "fit eeeeeeee: stage more of mnli (en), seed 42, 400 examples, reused",
        "Downloaded data of xnli is not pinned by a revision or checksum",
        "xnli: words are split there",
        "1,200 items were truncated",
        f"{unreadable_line(run)}; harness report RUN --unreadable lists them",
        "predicted but not scored, since the test file has no labels: xnli:sw",
    )


def test_languages_skipped_for_the_same_reason_share_a_line(make_run: MakeRun) -> None:
    run = make_run(
        _cell("en"),
        *(_skipped(code, f"No data of 'xnli' in {code!r} (test)") for code in ("de", "de", "sw")),
        _skipped("qpf", "task 'xnli' has no 'qpf'"),
    )
    groups = {group.languages: (group.cells, group.reason) for group in summarise([run]).skipped}
    assert groups == {
        ("de", "sw"): (3, "No data of 'xnli' in 'de' (test) (and likewise for the others)"),
        ("qpf",): (1, "task 'xnli' has no 'qpf'"),
    }
    assert "xnli de sw: No data of 'xnli' in 'de'" in markdown_text([run])
    assert "Skipped: 4 cells" in terminal_text([run])


def test_sample_data_are_labelled_everywhere(make_run: MakeRun) -> None:
    sample, local = make_run(_cell("de"), data="sample"), make_run(_cell("de"))
    for render in (terminal_text, markdown_text):
        assert "SAMPLE DATA" in render([sample])
        assert "SAMPLE DATA" not in render([local])
    assert {row["data"] for row in cell_rows([sample])} == {"sample"}
    assert json.loads(render_json([sample]))["run"]["data"] == "sample"


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_many_columns_are_split_into_tables_that_fit(make_run: MakeRun, width: int) -> None:
    cells = [_cell(code, task=f"task_{number}") for number in range(12) for code in ("de", "sw")]
    text = terminal_text([make_run(*cells)], width=width)
    assert max(len(line) for line in text.splitlines()) <= width
    heads = [line.split()[1:] if line.lstrip().startswith("language ") else [] for line in text.splitlines()]
    assert sum(head.count("acc") for head in heads) == 12
    assert all(f"task_{number}" in text for number in range(12))


def test_markup_in_names_is_text(make_run: MakeRun) -> None:
    run = make_run(_cell("de"), _failed("sw", "expected [/b] and [red]more[/red]"), model="hf:a[/b]*")
    other = make_run(_cell("de"), model="hf:[/x]")
    text = terminal_text([run, other], width=120)
    assert "a[/b]* on local data" in text
    assert "mean [/x]" in text
    assert "expected [/b] and [red]more[/red]" in text
    markdown = markdown_text([run, other])
    assert "# a\\[/b\\]\\* on local data" in markdown
    assert "expected \\[/b\\] and \\[red\\]more" in markdown


def test_markdown_has_equal_numbers_of_fields(make_run: MakeRun) -> None:
    cells = [_cell(code, task=task) for task in ("a|b", "c") for code in ("de", "sw")]
    lines = [line for line in markdown_text([make_run(*cells)]).splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in lines} == {4}


def test_csv_has_one_row_a_metric_and_no_formulas(make_run: MakeRun) -> None:
    run = make_run(_cell("de", 0.25), _failed("sw", "=HYPERLINK(1)"), _failed("en", "+1"), model="@sum")
    rows = list(csv.DictReader(io.StringIO(render_csv([run]))))
    assert [row["language"] for row in rows] == ["de", "sw", "en"]
    assert (rows[0]["metric"], rows[0]["value"], rows[0]["ci_low"], rows[0]["ci_high"]) == (
        *("accuracy", "0.25"),
        *("0.4", "0.7"),
    )
    assert [row["reason"] for row in rows] == ["", "'=HYPERLINK(1)", "'+1"]
    assert {row["model"] for row in rows} == {"'@sum"}
    assert (rows[1]["status"], rows[1]["value"]) == ("failed", "")


def test_json_holds_the_results_and_those_of_baselines(make_run: MakeRun) -> None:
    run, other = make_run(_cell("de", 0.25)), make_run(_cell("de", 0.5), model="baseline:majority")
    content = json.loads(render_json([run, other]))
    assert content["cells"] == [cell.to_json() for cell in run.cells]
    assert [item["cells"] for item in content["baselines"]] == [[cell.to_json() for cell in other.cells]]
