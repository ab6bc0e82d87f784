"""The table of scores: its rows against ``results.json``, and the same questions as the aggregates of the run."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import polars as pl
import pytest

from harness.api import evaluate
from harness.reporting.overview.overview import LoadedRun
from harness.reporting.render.text import cell_rows
from harness.scores.table import COLUMNS, read_scores
from harness.storage.run_folder import Run


def test_the_table_has_one_row_per_cell_and_metric(sample_run: Run) -> None:
    scores = LoadedRun(sample_run.path).scores()
    assert scores.columns == [column.name for column in COLUMNS]
    stored = json.loads((sample_run.path / "results.json").read_text(encoding="utf-8"))
    expected = [
        (cell["task"], cell["language"], cell["status"], name, metric["value"])
        for cell in stored["cells"]
        for name, metric in (cell["metrics"] or {None: {"value": None}}).items()
    ]
    assert scores.select("task", "language", "status", "metric", "value").rows() == expected
    assert scores.filter(pl.col("metric").is_null(), pl.col("reason") == "").is_empty()
    assert set(scores.filter(language="sw")["script"]) == {"Latn"}


def test_means_of_the_table_are_those_of_the_run(sample_run: Run) -> None:
    means = {
        (task, metric): value
        for task, metric, value in read_scores([sample_run])
        .filter("headline")
        .group_by("task", "metric")
        .agg(pl.col("value").mean())
        .iter_rows()
    }
    rows = [row for row in sample_run.results.tasks if row.headline]
    assert means == {(row.task, row.metric): pytest.approx(row.value) for row in rows}
    for row in rows:
        assert row.value == pytest.approx(fmean(row.by_language.values()))


def test_several_runs_are_one_table(sample_run: Run) -> None:
    once, twice = read_scores([sample_run]), read_scores([sample_run, sample_run])
    assert twice.equals(pl.concat([once, once]))
    assert read_scores([]).schema == once.schema


def test_rows_of_reports_are_those_of_the_table(sample_run: Run) -> None:
    rows, scores = cell_rows([sample_run]), read_scores([sample_run])
    assert [row["ci_low"] for row in rows] == scores["low"].to_list()
    assert [row["value"] for row in rows] == scores["value"].to_list()


def test_a_task_that_was_skipped_whole_has_rows_and_reports(tmp_path: Path) -> None:
    """The manifest has no summary of such a task."""
    run = evaluate(["xnli:en", "multiblimp:de"], "baseline:majority", data="sample", output=tmp_path / "run")
    assert "multiblimp" not in run.manifest.tasks
    scores = read_scores([run])
    assert scores.filter(task="multiblimp").select("status", "metric", "script").rows() == [
        ("skipped", None, "Latn")
    ]
    assert {row["task"] for row in cell_rows([run])} == {"xnli", "multiblimp"}
