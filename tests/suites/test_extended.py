"""Languages that others add: in the extended view of a suite, marked everywhere, and in no published average."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from harness.api import evaluate
from harness.reporting.blocks.words import sentences
from harness.reporting.documents import html_text, latex_text, markdown_text, terminal_text
from harness.reporting.overview.means import origin_mark, published_means
from harness.reporting.overview.run_remarks import origin_remarks
from harness.reporting.render.text import cell_rows
from harness.storage.results import CellResult, TaskScore, TaskSummary
from harness.storage.run_folder import Run
from harness_board.document import board_rows, language_marks
from harness_board.gathering import gather
from harness_board.rendering import board_page, standing

SUITE = """\
suite: mine
description: One task.
citation: someone
protocol: zero_shot_transfer
tasks: [xnli]
categories: {inference: [xnli]}
"""
FRAGMENT = """\
extends: xnli
languages:
  yo: {provenance: human-translated}
  qpf: {name: Palatine German, script: Latn, family: Indo-European, provenance: machine-translated}
"""
LABELS = ("entailment", "neutral", "contradiction")
RIGHT = {"en": 5, "sw": 2, "yo": 6, "qpf": 0}
"""Of six items, how many have the label that is most frequent in training."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run of the suite in English, Swahili and two added languages."""
    folder = tmp_path_factory.mktemp("extended")
    (folder / "specs").mkdir()
    (folder / "specs/mine.yaml").write_text(SUITE, encoding="utf-8")
    (folder / "specs/more.yaml").write_text(FRAGMENT, encoding="utf-8")
    (folder / "data/xnli").mkdir(parents=True)
    files = {"train-en": ["neutral"] * 3}
    for code, right in RIGHT.items():
        files[f"test-{code}"] = ["neutral"] * right + ["entailment"] * (6 - right)
    for name, labels in files.items():
        rows = [f"A premise {number}.\tA hypothesis.\t{label}\n" for number, label in enumerate(labels)]
        (folder / f"data/xnli/{name}.tsv").write_text("".join(rows), encoding="utf-8")
    yield evaluate(
        "mine",
        "baseline:majority",
        data=folder / "data",
        tasks_from=(folder / "specs",),
        recipe="quick",
        output=folder / "run",
    )


def _scores(*codes: str) -> float:
    return fmean(RIGHT[code] / 6 for code in codes)


def test_the_average_of_the_suite_stays_on_the_published_list(run: Run) -> None:
    [row] = run.results.suites
    assert row.paper.value == pytest.approx(_scores("en", "sw"))
    assert row.tasks == {"xnli": {"languages": 2, "of": 15}}
    assert row.extended is not None
    assert row.extended.paper.value == pytest.approx(_scores(*RIGHT))
    assert row.extended.categories == {"inference": pytest.approx(_scores(*RIGHT))}
    assert row.extended.languages == {"xnli": ["qpf", "yo"]}


def test_cells_say_how_their_items_were_made(run: Run) -> None:
    found = {cell.language: cell.provenance for cell in run.cells if cell.status == "ok"}
    assert found == {
        "en": "native",
        "sw": "human-translated",
        "yo": "human-translated",
        "qpf": "machine-translated",
    }
    spec = run.manifest.tasks["xnli"]
    assert spec.names == {"qpf": "Palatine German"}
    assert {code: Path(origin).name for code, origin in spec.added.items()} == {
        "yo": "specs",
        "qpf": "specs",
    }
    rows = {row["language"]: row["provenance"] for row in cell_rows([run]) if row["status"] == "ok"}
    assert rows == found


def test_the_console_shows_both_and_marks_them(run: Run) -> None:
    text = " ".join(terminal_text([run], width=100).split())
    assert "qpf Palatine German 0.0†⁺" in text
    assert "yo Yoruba 100.0⁺" in text
    assert "sw Swahili 33.3 (" in text
    assert "mean without ⁺ 58.3" in text
    assert "majority 58.3~ 58.3~ 58.3~ majority ⁺ 54.2⁺ 54.2⁺ 54.2⁺" in text
    assert "† machine-translated, ⁺ added to the task by others" in text
    machine, added = sentences(origin_remarks(run))
    assert machine == "† machine-translated test items: xnli:qpf"
    assert added.startswith(
        "⁺ added to the task by another package or file, not in the mean without ⁺: xnli:"
    )
    assert "xnli:yo (human-" in added
    assert "not comparable with published scores: xnli qpf yo." in text


def test_markdown_html_and_latex_show_both_and_mark_them(run: Run) -> None:
    markdown = markdown_text([run])
    assert "| Palatine German (qpf) | 0.0†⁺" in markdown
    assert "| mean without ⁺ | 58.3 |" in markdown
    assert "| majority ⁺ | 54.2⁺ | 54.2⁺ | 54.2⁺ |" in markdown
    page = html_text([run])
    assert "0.0†⁺" in page
    assert "Marks: † machine-translated, ⁺ added to the task by others" in page
    assert "majority ⁺" in page
    assert "human-translated: xnli (added by others)" in page
    assert page.count("texts machine-translated, from local<") == 1  # in the table of data
    assert r"0.0\dag{}$^{+}$" in latex_text([run])


def test_the_board_shows_both_and_marks_them(run: Run) -> None:
    board = gather(runs=[run])
    content = board.content()
    [task] = content["tasks"]
    assert (len(task["languages"]), task["added"]) == (15, ("yo", "qpf"))
    assert task["marks"] == {"qpf": "†⁺", "yo": "⁺"}
    names = {item["code"]: item["name"] for item in content["languages"]}
    assert names["qpf"] == "Palatine German"
    [row] = standing(board).rows
    assert row[2] == "58.3"
    shown = standing(board, task="xnli")
    assert shown.heads[-2:] == ("yo⁺", "qpf†⁺")
    assert shown.rows[0][-2:] == ("100.0", "0.0")
    [row] = standing(board, language="yo").rows
    assert row[3:] == ("100.0",)
    page = board_page(board)
    assert "With added languages" in page
    assert ">yo qpf<" in page
    assert "† machine-translated test items, ⁺ added to the task by others" in page
    whole = {row["language"]: row["value"] for row in board_rows(board)}
    assert whole == {
        "": pytest.approx(3.5 / 6),
        **{code: pytest.approx(right / 6) for code, right in RIGHT.items()},
    }
    # The error of the mean over all languages is not that of the published mean.
    assert board.systems[0].scores[0].se is None


def test_variants_that_a_translator_made_do_not_hide_the_provenance(run: Run, tmp_path: Path) -> None:
    results = run.results.to_json()
    for cell in [cell for cell in run.cells if cell.status == "ok"]:
        made = {"view": {"variant": "tt", "translator": "t"}, "provenance": "machine-translated"}
        results["cells"].append({**cell.to_json(), **made, "data": {**cell.data, "translated": {}}})
    (tmp_path / "results.json").write_text(json.dumps(results), encoding="utf-8")
    (tmp_path / "manifest.json").write_text(json.dumps(run.manifest.to_json()), encoding="utf-8")
    translated = Run(tmp_path)
    assert sentences(origin_remarks(translated)) == sentences(origin_remarks(run))
    assert language_marks(translated, "xnli") == {"qpf": "†⁺", "yo": "⁺"}


def _without_new_fields(run: Run, folder: Path) -> Run:
    """Return the run as an older version would have written it."""
    results, manifest = run.results.to_json(), run.manifest.to_json()
    for cell in results["cells"]:
        cell.pop("provenance", None)
    for name in ("added", "names", "unpaired"):
        manifest["tasks"]["xnli"].pop(name, None)
    del results["suites"][0]["extended"]["categories"], results["suites"][0]["extended"]["languages"]
    folder.mkdir()
    (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return Run(folder)


def test_older_runs_are_read(run: Run, tmp_path: Path) -> None:
    older = _without_new_fields(run, tmp_path / "older")
    text = terminal_text([older])
    assert "†" not in text
    assert "0.0⁺" in text
    assert "majority ⁺" in text
    assert "qpf qpf" in text
    assert ">yo qpf<" in board_page(gather(runs=[older]))
    assert {row["provenance"] for row in cell_rows([older])} == {None}
    assert html_text([older])


CELL: dict[str, Any] = {"task": "t", "language": "yo", "status": "ok", "data": {}, "metrics": {}}


@pytest.mark.parametrize(
    ("cell", "spec", "mark"),
    [
        ({"provenance": "native"}, {}, ""),
        ({"provenance": "machine-translated"}, {}, "†"),
        ({"provenance": "post-edited"}, {"published_languages": ["yo"]}, "‡"),
        ({"provenance": "post-edited"}, {"published_languages": ["sw"]}, "‡⁺"),
        ({"provenance": "machine-translated", "data": {"translated": {}}}, {}, ""),
        ({"provenance": None}, {}, ""),
        ({}, {}, ""),
    ],
)
def test_marks(cell: dict[str, Any], spec: dict[str, Any], mark: str) -> None:
    assert origin_mark(CellResult.model_validate({**CELL, **cell}), TaskSummary.model_validate(spec)) == mark


def test_a_run_without_added_languages_has_no_row_for_them(run: Run) -> None:
    row = TaskScore(task="xnli", metric="accuracy", by_language={"en": 0.5, "sw": 0.3}, value=0.4)
    assert published_means(run, [row, None], "mean") == []
    assert not [note for note in sentences(origin_remarks(run)) if "‡" in note]
