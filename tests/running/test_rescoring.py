from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.rescoring import rescore
from harness.errors import DataError, UnknownNameError, UsageError
from harness.registry.registry import Registry
from harness.storage.run_folder import Run

from .conftest import Cli, InstallPlugin, RunTasks

METRIC = """\
import numpy as np
from harness import hookimpl
from harness.metrics import Metric, MetricResult

def compute(predictions, references, context):
    if context.language == 'sw':
        raise ValueError('no Swahili')
    items = np.array([float(len(p['label']) > 8) for p in predictions])
    return MetricResult(value=float(items.mean()), items=items)

@hookimpl
def harness_register_metrics():
    kinds = frozenset({'sequence_classification'})
    return [Metric(name='long_words', compute=compute, kinds=kinds, description='d', source='s')]
"""


def _files(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def _spoiled(run: Run) -> None:
    """Take the scores out of the results, so that only the records know them."""
    results = json.loads((run.path / "results.json").read_text(encoding="utf-8"))
    for cell in results["cells"]:
        for score in cell["metrics"].values():
            score["value"] = 0.123
    results["tasks"] = []
    (run.path / "results.json").write_text(json.dumps(results), encoding="utf-8")


def test_metrics_come_back_from_the_records_alone(
    run: RunTasks, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = run(["xnli:de+sw+th", "udpos:de", "xquad:de", "tatoeba:de"], with_baselines=True, limit=8)
    before = [run.results for run in (finished, Run(finished.path / "baselines/majority"))]
    for spoiled in (finished, Run(finished.path / "baselines/majority")):
        _spoiled(spoiled)

    def nothing(*_: Any, **__: Any) -> None:
        raise AssertionError("neither model nor data are needed")

    monkeypatch.setattr("harness.models.adapters.AdapterEntry.load", nothing)
    monkeypatch.setattr("harness.data.sources.DataFinder.find", nothing)
    rescore(finished.path, registry)
    after = [Run(path).results for path in (finished.path, finished.path / "baselines/majority")]
    assert after == before


def test_a_further_metric_is_added_where_it_fits(run: RunTasks, registry: Registry) -> None:
    finished = run(["xquad:de", "xnli:de"])
    rescore(finished.path, registry, ["mlqa_f1", "mlqa_exact_match"])
    again = Run(finished.path)
    metrics = {cell.task: list(cell.metrics) for cell in again.cells}
    assert metrics == {"xquad": ["f1", "exact_match", "mlqa_f1", "mlqa_exact_match"], "xnli": ["accuracy"]}
    assert {row.metric for row in again.results.tasks if row.task == "xquad"} == set(metrics["xquad"])
    [xquad] = [cell for cell in again.cells if cell.task == "xquad"]
    assert all(record.scores.keys() == set(metrics["xquad"]) for record in again.records(xquad))
    # What was added stays when the run is scored again.
    rescore(finished.path, registry)
    assert Run(finished.path).results == again.results


def test_a_metric_of_a_plugin_is_computed_without_model_or_data(
    run: RunTasks, install_plugin: InstallPlugin, cli: Cli
) -> None:
    install_plugin("long_words", METRIC)
    finished = run("xnli:de", limit=None)
    status, _, err = cli("score", finished.path, "--metrics", "long_words", "--json", "rows.json")
    assert (status, err) == (0, "")
    again = Run(finished.path)
    expected = sum(len(record.prediction["label"]) > 8 for record in again.records(again.cells[0])) / 24
    rows = json.loads(Path("rows.json").read_text(encoding="utf-8"))
    assert {row["metric"]: row["value"] for row in rows}["long_words"] == pytest.approx(expected)


def test_what_cannot_be_scored_changes_nothing(run: RunTasks, registry: Registry) -> None:
    finished = run(["xnli:de+sw"])
    with pytest.raises(UnknownNameError, match=r"No metric named 'acuracy'\. Did you mean 'accuracy'"):
        rescore(finished.path, registry, ["acuracy"])
    with pytest.raises(
        UsageError, match=r"The metric 'mlqa_f1' scores span_extraction; this run has sequence"
    ):
        rescore(finished.path, registry, ["mlqa_f1"])
    *_, last = sorted(finished.path.glob("records/*/*/*.parquet"))
    last.write_bytes(last.read_bytes()[:-20])
    before = _files(finished.path)
    with pytest.raises(DataError, match=r"The records '.*parquet' cannot be read"):
        rescore(finished.path, registry)
    last.unlink()
    del before[str(last.relative_to(finished.path))]
    with pytest.raises(DataError, match=r"The records '.*parquet' cannot be read"):
        rescore(finished.path, registry)
    assert _files(finished.path) == before


def test_nothing_is_written_where_a_baseline_of_the_run_is_broken(run: RunTasks, registry: Registry) -> None:
    finished = run("xquad:de", with_baselines=True)
    [records] = finished.path.glob("baselines/majority/records/*/*/*.parquet")
    records.write_bytes(b"")
    before = _files(finished.path)
    with pytest.raises(DataError, match="cannot be read"):
        rescore(finished.path, registry, ["mlqa_f1"])
    assert _files(finished.path) == before


def test_records_of_cells_before_a_broken_one_stay_as_they_were(
    run: RunTasks, install_plugin: InstallPlugin
) -> None:
    from harness.running.session import open_session

    install_plugin("long_words", METRIC)
    finished = run(["xnli:de+sw"])
    before = _files(finished.path)
    with pytest.raises(Exception, match="'long_words' cannot score these predictions: no Swahili"):
        rescore(finished.path, open_session().registry, ["long_words"])
    assert _files(finished.path) == before


def test_a_resumed_run_keeps_what_was_added(run: RunTasks, registry: Registry, cli: Cli) -> None:
    finished = run(["xquad:de+en"])
    rescore(finished.path, registry, ["mlqa_f1"])
    scored = Run(finished.path)
    assert cli("eval", "--resume", finished.path)[0] == 0
    again = Run(finished.path)
    assert [cell.metrics for cell in again.cells] == [cell.metrics for cell in scored.cells]
    assert again.results.tasks == scored.results.tasks
    # A cell that is run later has no score by it, and a note says so.
    [lost, kept] = scored.cells
    (finished.path / "cells" / f"{lost.digest}.json").unlink()
    assert cli("eval", "--resume", finished.path)[0] == 0
    later = Run(finished.path)
    assert [set(cell.metrics) for cell in later.cells] == [set(lost.metrics) - {"mlqa_f1"}, set(kept.metrics)]
    [note] = [note for note in later.results.notes if "mlqa_f1" in note]
    assert "1 cell was" in note
    rescore(finished.path, registry)
    assert [cell.metrics for cell in Run(finished.path).cells] == [cell.metrics for cell in scored.cells]
