"""Files for the Hub, read back by huggingface_hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard, eval_result_entries_to_yaml, parse_eval_result_entries
from huggingface_hub.repocard_data import eval_results_to_model_index, model_index_to_eval_results

from harness.storage.run_folder import Run
from harness_export.formats import eval_results, model_index
from tests.builders import make_shown_cell, write_run

from .conftest import SUMMARY


def _document(files: Any) -> Any:
    [text] = files.values()
    return yaml.safe_load(text)


def test_the_model_index_survives_the_hubs_own_reader(sample_run: Run) -> None:
    index = _document(model_index([sample_run]))["model-index"]
    name, found = model_index_to_eval_results(index)
    assert name == "baseline/random"
    assert eval_results_to_model_index(name, found) == index
    cells = [cell for cell in sample_run.cells if cell.is_scored]
    assert len(index[0]["results"]) == len(cells)
    numbers = {}
    for own in found:
        assert own.dataset_args is not None
        assert own.metric_args is not None
        numbers[own.dataset_args["cell"], own.metric_type] = own.metric_value, own.metric_args
    for cell in cells:
        for metric, value in cell.metrics.items():
            shown, arguments = numbers[cell.digest, metric]
            assert shown == value.value
            assert arguments["n"] == cell.n
            assert (arguments.get("ci_low"), arguments.get("ci_high")) == (value.ci or (None, None))


def test_a_model_card_takes_the_metadata(sample_run: Run) -> None:
    [text] = model_index([sample_run]).values()
    card = ModelCard(f"---\n{text}---\n# A model\n")
    found = card.data.get("eval_results")
    assert found
    assert {own.task_type for own in found} == {
        "text-classification",
        "question-answering",
        "token-classification",
        "sentence-similarity",
    }


@pytest.fixture
def hub_run(tmp_path: Path) -> Run:
    """Two languages under two protocols, from the Hub, and a task without a data set there."""
    hub = {"origin": "hub", "revision": "abc", "digest": "1" * 64}
    metric = {"accuracy": {"value": 0.503, "ci": [0.4, 0.6], "ci_method": "wilson"}}
    cells = [
        make_shown_cell(
            "xnli", code, metric, data=hub, protocol=protocol, digest=f"{code}{protocol}", size=20
        )
        for code in ("de", "sw")
        for protocol in ("frozen", "zero_shot_transfer")
    ]
    cells.append(make_shown_cell("own", "de", {"accuracy": 0.5}, digest="own"))
    spec = {"splits": {"test": {"hub": {"path": "facebook/xnli", "split": "test", "config": "{language}"}}}}
    manifest = {"specs": {"xnli": spec}, "created": "2026-01-02T03:04:05+00:00"}
    return write_run(tmp_path / "run", cells, {"xnli": SUMMARY, "own": SUMMARY}, manifest=manifest)


def test_eval_results_are_entries_of_the_hub(hub_run: Run) -> None:
    files = eval_results([hub_run])
    assert list(files) == [".eval_results/xnli_frozen.yaml", ".eval_results/xnli_zero_shot_transfer.yaml"]
    for name, text in files.items():
        content = yaml.safe_load(text)
        entries = parse_eval_result_entries(content)
        assert eval_result_entries_to_yaml(entries) == content
        assert [(own.dataset_id, own.task_id, own.dataset_revision) for own in entries] == [
            ("facebook/xnli", "de", "abc"),
            ("facebook/xnli", "sw", "abc"),
        ]
        assert {own.value for own in entries} == {50.3}
        assert {own.date for own in entries} == {"2026-01-02T03:04:05+00:00"}
        for own in entries:
            assert own.notes is not None
            protocol = name.removeprefix(".eval_results/xnli_").removesuffix(".yaml")
            assert all(part in own.notes for part in (protocol, "40.0 to 60.0", "10 of 20 items", "accuracy"))


def test_cells_that_differ_in_a_protocol_alone_stay_apart_in_a_model_card(hub_run: Run) -> None:
    index = _document(model_index([hub_run]))["model-index"]
    _, found = model_index_to_eval_results(index)
    assert len({own.unique_identifier for own in found}) == len(hub_run.cells)
    assert [own.dataset_config for own in found][:2] == ["de (frozen)", "de (zero_shot_transfer)"]
    assert (found[-1].dataset_type, found[-1].dataset_config) == ("own", "de")
