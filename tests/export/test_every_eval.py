"""Records of Every Eval Ever: what its schema 0.3.0 asks for, and every number with what makes it.

`check_record` says in our words what the schema demands of the fields that we write.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from harness.storage.run_folder import Run
from harness_export.catalog import TARGETS
from harness_export.formats import _eee_result, clean_model_name, exported_cells
from tests.builders import make_shown_cell, write_run

from .conftest import SUMMARY

Cli = Callable[..., tuple[int, str, str]]
Texts = dict[str, str]
[EEE] = [target for target in TARGETS if target.name == "eee"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Origin(_Strict):
    source_name: str
    source_type: Literal["documentation", "evaluation_run"]
    source_organization_name: str
    evaluator_relationship: Literal["first_party", "third_party", "collaborative", "other"]


class _Library(_Strict):
    name: str
    version: str
    additional_details: Texts


class _ModelDetails(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)
    __pydantic_extra__: Texts
    deployment_type: Literal["self_deployed", "externally_managed", "unknown"]
    model_availability: Literal["open_weights", "closed_weights", "unknown"]


class _Model(_Strict):
    name: str
    id: str
    developer: str = ""
    additional_details: _ModelDetails


class _HubSource(_Strict):
    dataset_name: str
    source_type: Literal["hf_dataset"]
    hf_repo: str
    hf_split: Literal["train", "val", "test"]
    samples_number: int = 0
    additional_details: Texts


class _OtherSource(_Strict):
    dataset_name: str
    source_type: Literal["other"]
    additional_details: Texts


class _Metric(_Strict):
    evaluation_description: str
    metric_id: str
    metric_name: str
    metric_unit: Literal["proportion"]
    lower_is_better: bool
    score_type: Literal["continuous"]
    min_score: float
    max_score: float
    additional_details: Texts


class _Error(_Strict):
    value: float
    method: Literal["analytic", "bootstrap"]


class _Interval(_Strict):
    lower: float
    upper: float
    confidence_level: Annotated[float, Field(ge=0, le=1)]
    method: str


class _Uncertainty(_Strict):
    num_samples: int
    standard_error: _Error | None = None
    confidence_interval: _Interval | None = None
    num_bootstrap_samples: int = 0


class _Details(_Strict):
    score: Annotated[float, Field(ge=0, le=1)]
    uncertainty: _Uncertainty
    details: Texts


class _Generation(_Strict):
    additional_details: Texts


class _Result(_Strict):
    evaluation_result_id: str
    evaluation_name: str
    source_data: _HubSource | _OtherSource
    metric_config: _Metric
    score_details: _Details
    generation_config: _Generation | None = None


class _Record(_Strict):
    schema_version: Literal["0.3.0"]
    evaluation_id: str
    evaluation_timestamp: Annotated[str, Field(pattern=r"^\d+$")] = "0"
    retrieved_timestamp: Annotated[str, Field(pattern=r"^\d+$")]
    source_metadata: _Origin
    eval_library: _Library
    model_info: _Model
    evaluation_results: list[_Result]


def check_record(run: Run) -> dict[str, Any]:
    """Return the record of a run; raises where the schema would not take it."""
    record: dict[str, Any] = json.loads(EEE.text([run], allow_sample=True))
    _Record.model_validate(record)
    return record


@pytest.fixture
def prompted(tmp_path: Path) -> Run:
    """A run with prompts and shots."""
    prompt = {"name": "xnli/default", "words": "en", "shots": 2, "digest": "f0"}
    score = {"value": 0.5, "se": 0.1, "ci": [0.3, 0.7], "ci_method": "bootstrap", "draws": 1000}
    cell = make_shown_cell(
        "xnli",
        "sw",
        {"accuracy": score},
        protocol="prompted",
        method="rank",
        prompt=prompt,
        view={"shots": "2"},
    )
    return write_run(tmp_path / "prompted", [cell], {"xnli": SUMMARY})


def test_every_metric_of_every_finished_cell_is_there(sample_run: Run) -> None:
    record = check_record(sample_run)
    found = {own["evaluation_result_id"]: own for own in record["evaluation_results"]}
    cells = [cell for cell in sample_run.cells if cell.is_scored]
    assert record["evaluation_timestamp"] in record["evaluation_id"]
    assert len(found) == len(record["evaluation_results"]) == sum(len(cell.metrics) for cell in cells)
    for cell in cells:
        for name, value in cell.metrics.items():
            own = found[f"{cell.digest}.{name}"]
            shown = own["score_details"]
            assert shown["score"] == value.value
            assert shown["uncertainty"]["num_samples"] == cell.n
            interval = shown["uncertainty"].get("confidence_interval")
            assert (interval and (interval["lower"], interval["upper"])) == value.ci
            assert shown["uncertainty"].get("standard_error", {}).get("value") == value.se
            details = shown["details"]
            assert (details["language"], details["protocol"], details["split"]) == (
                cell.language,
                cell.protocol,
                cell.split,
            )
            assert details["sample_data"] == "true"
            assert own["source_data"]["additional_details"]["language"] == cell.language


def test_shots_are_part_of_a_number(prompted: Run) -> None:
    [own] = check_record(prompted)["evaluation_results"]
    assert own["generation_config"]["additional_details"]["num_fewshot"] == "2"
    assert own["score_details"]["details"]["num_fewshot"] == "2"
    assert "2-shot" in own["metric_config"]["evaluation_description"]


def test_hub_data_name_their_repository_and_parts_say_so(tmp_path: Path) -> None:
    hub = {"origin": "hub", "files": "facebook/xnli", "revision": "abc", "digest": "0" * 64}
    cell = make_shown_cell("xnli", "sw", {"accuracy": {"value": 0.5, "ci": [0.4, 0.6]}}, data=hub, size=5010)
    spec = {"splits": {"test": {"hub": {"path": "facebook/xnli", "split": "test", "config": "{language}"}}}}
    run = write_run(tmp_path / "run", [cell], {"xnli": SUMMARY}, manifest={"specs": {"xnli": spec}})
    [own] = check_record(run)["evaluation_results"]
    assert own["source_data"] | {"additional_details": {}} == {
        "dataset_name": "xnli",
        "source_type": "hf_dataset",
        "hf_repo": "facebook/xnli",
        "hf_split": "test",
        "samples_number": 5010,
        "additional_details": {},
    }
    assert own["source_data"]["additional_details"]["config"] == "sw"
    assert own["source_data"]["additional_details"]["revision"] == "abc"
    assert own["score_details"]["details"]["partial"] == "true"
    assert "sample_data" not in own["score_details"]["details"]


@pytest.mark.parametrize(
    ("adapter", "ref", "expected"),
    [
        ("hf-encoder", "/home/me/secret/e5-small", "e5-small"),
        ("hf-encoder", "./models/e5-small/", "e5-small"),
        ("hf-encoder", "intfloat/multilingual-e5-small", "intfloat/multilingual-e5-small"),
        ("baseline", "majority", "baseline/majority"),
        ("vllm", "http://10.0.0.7:8000", "served-model"),
    ],
)
def test_paths_and_addresses_of_a_machine_are_not_published(
    tmp_path: Path, adapter: str, ref: str, expected: str
) -> None:
    cell = make_shown_cell(
        "xnli", "sw", {"accuracy": 0.5}, data={"files": "x in /home/me/secret", "origin": "local"}
    )
    run = write_run(tmp_path / "run", [cell], {"xnli": SUMMARY}, model={"adapter": adapter, "ref": ref})
    assert clean_model_name(run) == expected
    text = json.dumps(check_record(run))
    assert "/home/me" not in text
    assert "10.0.0.7" not in text


def test_sample_data_are_rejected_but_for_trying_out(sample_run: Run, cli: Cli) -> None:
    for target in TARGETS:
        status, out, err = cli("export", str(sample_run.path), "--to", target.name, "--output", "x")
        if target.publishes:
            assert (status, out) == (2, "")
            assert "sample data" in err
            assert cli("report", str(sample_run.path), "--format", target.name)[0] == 2
    assert [target.name for target in TARGETS if target.publishes] == ["eee", "model-index", "eval-results"]
    status, out, _ = cli("export", str(sample_run.path), "--to", "eee", "--allow-sample")
    assert status == 0
    assert json.loads(out)["eval_library"]["additional_details"]["sample_data"] == "true"


def test_an_error_rate_is_exported_as_one(sample_run: Run) -> None:
    exported = next(iter(exported_cells(sample_run)))
    metric = next(iter(exported.cell.metrics))
    for is_lower_better in (True, False):
        config = _eee_result(exported, metric, is_lower_better=is_lower_better)["metric_config"]
        assert config["lower_is_better"] is is_lower_better
