"""Accuracies of ranked choices, added to a finished run without its model."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.analysis.comparison import compare
from harness.analysis.rescoring import rescore
from harness.errors import UsageError
from harness.registry.registry import Registry
from harness.storage.run_folder import Run

from .conftest import Cli, InstallPlugin, RunTasks


@pytest.fixture
def ranks(install_plugin: InstallPlugin) -> None:
    """Install the adapter ``ranks``."""
    source = Path(__file__).with_name("ranking_adapter.py").read_text(encoding="utf-8")
    install_plugin("ranking_adapter", source)


@pytest.mark.usefixtures("ranks")
def test_they_are_added_without_the_model(run: RunTasks, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    finished = run(["xnli:de+sw"], "ranks:it", prompt="lm_eval", limit=None, with_baselines=True)
    monkeypatch.setattr("harness.models.adapters.AdapterEntry.load", None)
    status, _, err = cli("score", finished.path, "--metric", "accuracy_byte,accuracy_char,accuracy_token")
    assert (status, err) == (0, "")
    again = Run(finished.path)
    for cell in again.cells:
        first, shortest = [], []
        labels = again.manifest.tasks[cell.task].labels
        for record in again.records(cell):
            lengths = record.prediction["bytes"]
            first.append(record.reference == labels[0])
            shortest.append(record.reference == labels[lengths.index(min(lengths))])
        assert cell.metrics["accuracy_byte"].value == pytest.approx(sum(first) / len(first))
        assert cell.metrics["accuracy_token"] == cell.metrics["accuracy_byte"]
        assert cell.metrics["accuracy"].value == pytest.approx(sum(shortest) / len(shortest))
    # The cells of a classifier baseline have no such numbers.
    baseline = Run(finished.path / "baselines" / "majority")
    assert all(list(cell.metrics) == ["accuracy"] for cell in baseline.cells if cell.status == "ok")
    status, out, _ = cli("compare", finished.path, baseline.path)
    assert status == 0
    assert "xnli: it and majority" in out


@pytest.mark.usefixtures("ranks")
def test_tokens_of_ranked_choices_are_counted(run: RunTasks, registry: Registry) -> None:
    runs = [run(["xnli:de"], "ranks:it", prompt="lm_eval"), run(["xnli:de"], "baseline:majority")]
    [task] = compare(runs, registry.metrics).tasks
    expected = sum(sum(record.prediction["tokens"]) for record in runs[0].records(runs[0].cells[0]))
    assert [cost.tokens for cost in task.costs] == [expected, None]


def test_a_run_of_a_classifier_has_none(run: RunTasks, registry: Registry) -> None:
    finished = run(["xnli:de"], "baseline:majority")
    with pytest.raises(
        UsageError,
        match="'accuracy_pmi' scores answers of the method rank; this run's are of head",
    ):
        rescore(finished.path, registry, ["accuracy_pmi"])


@pytest.mark.usefixtures("ranks")
@pytest.mark.parametrize("task", ["include", "belebele", "global_mmlu", "afrimmlu"])
def test_a_prompt_without_an_unconditional_context_goes_without_its_accuracy(
    run: RunTasks, registry: Registry, task: str
) -> None:
    language = "sw" if task == "afrimmlu" else "de"
    finished = run([f"{task}:{language}"], "ranks:it", prompt="letters", limit=None)
    [cell] = finished.cells
    assert (cell.status, list(cell.metrics)) == ("ok", ["accuracy"])
    rescore(finished.path, registry, [])
    assert list(Run(finished.path).cells[0].metrics) == ["accuracy"]
