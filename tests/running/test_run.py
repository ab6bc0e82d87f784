"""What a run writes: results, records, manifest; and that it is the same every time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import harness.running.run
import harness.storage.run_folder
from harness.storage.records import RECORD_COLUMNS
from harness.storage.results import RunResults
from harness.storage.run_folder import Run

from .conftest import Cli, RunTasks

CELL_KEYS = {
    *("task", "version", "language", "split", "protocol", "fit", "method", "view", "seed", "n", "status"),
    *("reason", "metrics", "truncated", "unparsed", "seconds"),
}


def _records(run: Run, **wanted: Any) -> dict[str, list[Any]]:
    """The predictions by language of the cells that have the wanted values."""
    cells = [cell for cell in run.cells if all(getattr(cell, key) == value for key, value in wanted.items())]
    return {cell.language: list(run.records(cell)) for cell in cells if cell.status == "ok"}


def _ids(run: Run, **wanted: Any) -> dict[str, list[str]]:
    return {code: [record.id for record in records] for code, records in _records(run, **wanted).items()}


def _without_times(results: RunResults) -> dict[str, Any]:
    copy = results.to_json()
    del copy["run"]["seconds"], copy["run"]["created"], copy["run"]["id"]
    for cell in copy["cells"]:
        del cell["seconds"]
    for fit in copy["fits"].values():
        for stage in fit["stages"]:
            del stage["seconds"], stage["reused"]
    return copy


def test_results_have_the_documented_shape(run: RunTasks) -> None:
    finished = run(["xnli:de+sw+th", "udpos:de", "tatoeba:de", "xquad:de"])
    results = finished.results.to_json()
    assert results["schema"] == 1
    assert results["run"].keys() >= {"id", "created", "harness", "data", "seconds", "requests"}
    assert (results["run"]["id"], results["run"]["data"]) == (finished.path.name, "sample")
    requests = results["run"]["requests"]
    # Tatoeba's queries are embedded, and all sentences of the other side.
    candidates = sum(cell["size"] for cell in results["cells"] if cell["task"] == "tatoeba")
    asked = candidates + sum(cell["n"] for cell in results["cells"])
    assert requests == {"planned": asked, "asked": asked, "reused": 0}
    assert results["model"].keys() >= {"adapter", "ref", "revision", "parameters", "metadata"}
    assert (results["model"]["adapter"], results["model"]["ref"]) == ("baseline", "char-ngram")
    for cell in results["cells"]:
        if cell["status"] == "skipped":
            assert (cell["language"], cell["metrics"]) == ("th", {})
            assert cell["reason"]
            continue
        assert cell.keys() >= CELL_KEYS
        assert (cell["status"], cell["split"], cell["n"], cell["reason"]) == ("ok", "test", 5, "")
        for score in cell["metrics"].values():
            assert {"value", "se", "ci", "ci_method"} <= score.keys()
            assert score.keys() <= {"value", "se", "ci", "ci_method", "clusters", "draws", "seed"}
            assert 0 <= score["value"] <= 1
            if score["ci"] is not None:
                assert 0 <= score["ci"][0] <= score["value"] <= score["ci"][1] <= 1
        if cell["task"] == "udpos":
            assert {score["ci_method"] for score in cell["metrics"].values()} == {"bootstrap"}
    for row in results["tasks"]:
        assert row.keys() >= {"task", "protocol", "fit", "method", "view", "metric", "value", "languages"}
        assert row.keys() >= {"by_family", "by_script", "transfer_gap", "se", "ci", "ci_method"}
        assert row["ci_method"] is not None
    assert isinstance(results["suites"], list)
    fits = {cell["fit"] for cell in results["cells"] if cell["status"] == "ok"}
    assert fits == {"none", *results["fits"]}
    for digest, fit in results["fits"].items():
        assert fit["stages"][-1]["digest"] == digest
        assert fit["stages"][-1]["train"]["examples"] == 30


def test_the_manifest_says_how_the_run_was_made(run: RunTasks) -> None:
    manifest = run("xnli:de", seeds=(7,)).manifest
    assert manifest.model == "baseline:char-ngram"
    assert manifest.config["seeds"] == [7]
    assert manifest.config["data"] == {"mode": "sample", "folders": []}
    assert manifest.tasks["xnli"].labels == ["contradiction", "entailment", "neutral"]
    assert [cell["language"] for cell in manifest.cells] == ["de"]
    assert manifest.plugins.keys() >= {"core", "baseline", "task_specs"}
    assert manifest.versions["multilingual-harness"]
    assert manifest.specs["xnli"]["task"] == "xnli"


def test_records_are_parquet_with_the_documented_columns(run: RunTasks) -> None:
    finished = run(["xnli:de", "udpos:de"])
    for cell in finished.cells:
        path = finished.path / "records" / cell.task / cell.language / f"{cell.digest}.parquet"
        table = pq.read_table(path)
        assert tuple(table.column_names) == RECORD_COLUMNS
        assert table.num_rows == cell.n
    [records] = _records(finished, task="xnli").values()
    for record in records:
        assert record.prediction["label"] in {"contradiction", "entailment", "neutral"}
        assert len(record.prediction["scores"]) == 3
        assert record.reference in {"contradiction", "entailment", "neutral"}
        assert record.scores == {"accuracy": float(record.prediction["label"] == record.reference)}
        assert record.cluster is not None
        assert record.flags == {"truncated": False, "unparsed": False}
    [records] = _records(finished, task="udpos").values()
    assert all(len(record.prediction) == len(record.reference) for record in records)
    assert all(record.cluster is None for record in records)
    assert all(len(record.inputs_digest) == 16 for record in records)


def test_the_value_of_a_cell_is_the_mean_of_its_items(run: RunTasks) -> None:
    finished = run(["xnli:de+sw", "xquad:de", "tatoeba:de"])
    for cell in finished.cells:
        records = list(finished.records(cell))
        for metric, score in cell.metrics.items():
            assert score.value == pytest.approx(sum(item.scores[metric] for item in records) / len(records))


def test_the_same_run_gives_the_same_predictions_and_results(
    run: RunTasks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = ["xnli:de+sw", "udpos:de", "tatoeba:de", "xquad:de"]
    first = run(tasks, seeds=(3,))
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "another-cache"))
    second = run(tasks, seeds=(3,))
    assert _without_times(first.results) == _without_times(second.results)
    for task in ("xnli", "udpos", "tatoeba", "xquad"):
        assert _records(first, task=task) == _records(second, task=task)


def test_predictions_do_not_depend_on_how_many_items_a_call_gets(
    run: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(["xnli:de+hi", "udpos:hi"], limit=None)
    monkeypatch.setattr("harness.running.cell_run.CHUNK", 5)
    chunked = run(["xnli:de+hi", "udpos:hi"], limit=None)
    assert _records(whole) == _records(chunked)


@pytest.mark.parametrize(("limit", "expected"), [(1, 1), (7, 7), (24, 24), (25, 24), (None, 24)])
def test_a_limit_takes_exactly_so_many_items(run: RunTasks, limit: int | None, expected: int) -> None:
    finished = run(["xnli:de+sw", "tatoeba:de"], limit=limit, protocols=("zero_shot_transfer",))
    assert [cell.n for cell in finished.cells] == [expected] * 3
    assert [len(ids) for ids in _ids(finished).values()] == [expected] * 2


def test_a_limit_keeps_the_items_of_parallel_tasks_paired(run: RunTasks) -> None:
    finished = run(["xnli:de+sw+hi", "xquad:de+hi+zh"], limit=6, seeds=(1, 2))
    for task in ("xnli", "xquad"):
        chosen = [_ids(finished, task=task, seed=seed) for seed in (1, 2)]
        assert chosen[0] == chosen[1]
        assert len({tuple(ids) for ids in chosen[0].values()}) == 1
    # A smaller limit takes some of the same items, in the same order.
    [smaller] = _ids(run("xnli:de", limit=3)).values()
    larger = _ids(finished, task="xnli", seed=1)["de"]
    assert [identifier for identifier in larger if identifier in smaller] == smaller


def test_a_limit_draws_anew_for_every_language_where_items_are_not_parallel(run: RunTasks) -> None:
    ids = _ids(run("udpos:de+sw+hi", "baseline:majority", limit=5), task="udpos")
    assert len({tuple(chosen) for chosen in ids.values()}) > 1


def test_the_candidates_of_retrieval_stay_whole(run: RunTasks) -> None:
    finished = run("tatoeba:de", limit=6, protocols=("frozen",))
    [records] = _records(finished).values()
    [full] = _records(run("tatoeba:de", limit=None, protocols=("frozen",))).values()
    answers = {record.id: record.prediction for record in full}
    assert {record.id: record.prediction for record in records} == {
        record.id: answers[record.id] for record in records
    }


def test_an_unlabelled_test_file_is_predicted_and_not_scored(
    run: RunTasks, data_folder: Callable[..., Path]
) -> None:
    row = {"premise": "Ein Mann schläft.", "hypothesis": "Er ist wach."}
    train = "".join(
        f"He sleeps {number}.\tHe is {word}.\t{label}\n"
        for number in range(9)
        for word, label in (("awake", "contradiction"), ("asleep", "entailment"))
    )
    folder = data_folder({"xnli/train-en.tsv": train, "mine/de.jsonl": json.dumps(row) + "\n"})
    (folder / "mine.yaml").write_text(
        "task: mine\nkind: sequence_classification\nversion: 1\ndescription: d\ncitation: c\nlicense: l\n"
        "inputs: [premise, hypothesis]\nlabels: [contradiction, entailment, neutral]\nmetrics: [accuracy]\n"
        "transfer: {stages: [mnli]}\nlanguages: {de: {test: {local: mine/de.jsonl, reader: jsonl}}}\n",
        encoding="utf-8",
    )
    finished = run("mine", data=folder, tasks_from=(folder / "mine.yaml",))
    [cell] = finished.cells
    assert (cell.status, cell.n, cell.metrics) == ("ok", 1, {})
    assert cell.reason == "the test file has no labels: predicted, not scored"
    assert finished.results.tasks == []
    assert [record.reference for record in finished.records(cell)] == [None]


def test_what_is_on_disk_between_two_cells_is_a_run(
    run: RunTasks, cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A run that is killed cannot write its end: what it wrote last must be readable."""
    monkeypatch.setattr(harness.running.run, "WRITE_EVERY", 0.0)
    written: list[dict[str, Any]] = []
    original = harness.storage.run_folder.Run.write_results

    def recorded(self: Any, results: RunResults) -> None:
        written.append(results.to_json())
        original(self, results)

    monkeypatch.setattr(harness.storage.run_folder.Run, "write_results", recorded)
    finished = run("xnli:de+sw")
    # After each cell, and at the end with the intervals of means, which are made from the records.
    assert len(written) == 3
    (finished.path / "results.json").write_text(json.dumps(written[0]), encoding="utf-8")
    assert [cell.status for cell in Run(finished.path).cells] == ["ok", "skipped"]
    status, out, _ = cli("report", finished.path)
    assert status == 0
    assert "SAMPLE DATA" in out
    assert "STOPPED: 1 cell not run. " in out
