"""Fits by 1, 2 and 3 processes, replicated and sharded, killed and resumed: the same but for rounding."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import T5Config, T5ForConditionalGeneration

pytestmark = pytest.mark.thorough

Job = dict[str, Any]
Launch = Callable[..., list[list[Job]]]
Alone = Callable[[Job], Job]
Weights = Mapping[str, torch.Tensor]

HEADS = ("classification", "tagging", "span_extraction", "dual_encoder", "text_to_text")
TOLERANCE = 1e-3
"""Of the largest change of any weight."""
LOSS = 1e-4
ASKED = 200
"""Items that a fitted classifier is asked about."""


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory, folders: dict[str, Path]) -> dict[str, str]:
    """Folders of models with dropout by head."""
    folder = tmp_path_factory.mktemp("models") / "t5"
    maker = runpy.run_path(str(Path(__file__).parents[1] / "seq2seq" / "conftest.py"))
    maker["save_t5"](folder, T5Config, T5ForConditionalGeneration)
    return {head: str(folder if head == "text_to_text" else folders["bert"]) for head in HEADS}


@pytest.fixture(scope="session")
def job(models: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Job]:
    """A function that makes a job: five steps, the last of each epoch with fewer examples."""

    def make(head: str = "classification", directory: str | None = None, **changes: Any) -> Job:
        # A larger epsilon than usual: Adam would make steps of full size of gradients that are rounding alone.
        settings = {"learning_rate": 1e-2, "epochs": 2, "batch_size": 8, "max_length": 32}
        settings |= {"adam_epsilon": 1e-3, "weight_decay": 0.01, "warmup_steps": 1, "eval_steps": 2}
        # The vectors of so small a dual encoder lie so close that rounding says which is nearest.
        settings["select_best"] = head != "dual_encoder"
        return {
            "head": head,
            "model": models[head],
            "directory": directory or str(tmp_path_factory.mktemp("fit") / "fit"),
            "settings": settings | changes.pop("settings", {}),
            "train": 21,
            "dev": 37,
            "asked": ASKED,
            **changes,
        }

    return make


@pytest.fixture(scope="session")
def alone(job: Callable[..., Job], fit_alone: Alone) -> dict[str, tuple[Job, Job]]:
    """What one process found, by head, and its job."""
    jobs = {head: job(head) for head in HEADS}
    return {head: (one, fit_alone(one)) for head, one in jobs.items()}


def weights(job: Job) -> Weights:
    folder = Path(job["directory"])
    scale = folder / "dual_encoder.safetensors"
    return {**load_file(folder / "model.safetensors"), **(load_file(scale) if scale.exists() else {})}


def difference(job: Job, other: Job) -> float:
    """Return the largest difference of two fits' weights, relative to the largest change of any weight."""
    found, expected = weights(job), weights(other)
    before = load_file(Path(job["model"]) / "model.safetensors")
    assert found.keys() == expected.keys()
    moved = max(
        float((expected[name] - before[bare]).abs().max())
        for name in expected
        if (bare := name.removeprefix("bert.")) in before
    )
    assert moved > 1e-4
    return max(float((found[name] - expected[name]).abs().max()) for name in found) / moved


def assert_alike(found: list[Job], expected: Job) -> None:
    """Every process took the same steps and saw the same scores."""
    for one in found:
        assert "error" not in one, one["error"]
        assert one["steps"] == expected["steps"]
        assert one["losses"] == pytest.approx(expected["losses"], abs=LOSS)
        assert one.get("answers") == expected.get("answers")
        for field in ("steps", "best_score", "micro_batch", "digest"):
            assert one["record"][field] == expected["record"][field], field


def assert_bare(job: Job) -> None:
    folder = Path(job["directory"])
    assert not (folder / "checkpoints").exists()
    assert (folder / "harness_fit.json").exists()


def test_two_processes(
    job: Callable[..., Job],
    launch: Launch,
    fit_alone: Alone,
    alone: dict[str, tuple[Job, Job]],
) -> None:
    """All heads in one start, with one process failing, stopping or out of memory where the job says so."""
    jobs = [job(head) for head in HEADS]
    jobs += [job(head, sharded=True) for head in HEADS]
    adafactor = {"optimizer": "adafactor", "freeze_embeddings": True}
    checkpointing = {"FSDP_ACTIVATION_CHECKPOINTING": "true"}
    rows = job("text_to_text", settings=adafactor, sharded=True, environment=checkpointing)
    stopped = job(stop_at=3, rank=1)
    # The second process alone can take a single example; the job after a stopped one resumes from step 3, sharded.
    again = {key: value for key, value in stopped.items() if key not in ("stop_at", "rank")} | {
        "sharded": True
    }
    short, short_dual = job(rows=1, rank=1), job("dual_encoder", rows=1, rank=1)
    failing = job(fail_at=1, rank=1)
    results = launch([*jobs, rows, stopped, again, short, short_dual, failing], 2)
    assert len(results) == 2
    for number, one in enumerate(jobs):
        expected_job, expected = alone[one["head"]]
        found = [result[number] for result in results]
        assert_alike(found, expected)
        assert all(("FSDP" in each["engines"]) == (number >= len(HEADS)) for each in found)
        assert difference(one, expected_job) < TOLERANCE, one["head"]
        assert_bare(one)
    reference_job, reference = alone["classification"]
    assert sorted(index for step in reference["steps"][:3] for index in step) == list(range(21))
    special = [[result[len(jobs) + number] for result in results] for number in range(6)]
    rows_alone = fit_alone(
        {**rows, "directory": rows["directory"] + " alone", "sharded": False, "environment": {}}
    )
    assert_alike(special[0], rows_alone)
    assert [one["error"] for one in special[1]] == ["KeyboardInterrupt: "] * 2
    assert [one["steps"] for one in special[1]] == [reference["steps"][:3]] * 2
    assert [one["record"]["resumed_at"] for one in special[2]] == [[3]] * 2
    assert [one["steps"] for one in special[2]] == [reference["steps"][3:]] * 2
    assert difference(again, reference_job) < TOLERANCE
    for reports, tried in ((special[3], "4"), (special[4], "8")):
        numbers = [re.findall(r"\d+", notice) for one in reports for notice in one["notices"]]
        assert numbers == [[tried, "1", "8"]] * 2
        assert [one["record"]["micro_batch"] for one in reports] == [1] * 2
    assert special[5][0]["error"].startswith("TrainingError: ")
    assert special[5][1]["error"] == "RuntimeError: the cable was cut"


def test_three_processes_resume_what_two_were_killed_in(
    job: Callable[..., Job], launch: Launch, alone: dict[str, tuple[Job, Job]]
) -> None:
    """Also where micro-batches do not divide evenly: some processes repeat one without weight."""
    killed = job(kill_at=3, rank=1)
    assert not any("record" in one for found in launch([killed], 2) for one in found)
    again = {key: value for key, value in killed.items() if key not in ("kill_at", "rank")} | {
        "sharded": True
    }
    jobs = [job(), job(sharded=True), job("dual_encoder"), job("dual_encoder", sharded=True)]
    results = launch([*jobs, again], 3)
    assert len(results) == 3
    for number, one in enumerate(jobs):
        expected_job, expected = alone[one["head"]]
        assert_alike([result[number] for result in results], expected)
        assert difference(one, expected_job) < TOLERANCE, one["head"]
    reference_job, reference = alone["classification"]
    assert [result[-1]["record"]["resumed_at"] for result in results] == [[2]] * 3
    assert [result[-1]["steps"] for result in results] == [reference["steps"][2:]] * 3
    assert [result[-1]["answers"] for result in results] == [reference["answers"]] * 3
    assert difference(again, reference_job) < TOLERANCE


def test_one_process_resumes_what_two_with_shards_were_killed_in(
    job: Callable[..., Job], launch: Launch, fit_alone: Alone, alone: dict[str, tuple[Job, Job]]
) -> None:
    killed = job(kill_at=3, rank=1, sharded=True)
    assert not any("record" in one for found in launch([killed], 2) for one in found)
    reference_job, reference = alone["classification"]
    found = fit_alone(
        {key: value for key, value in killed.items() if key not in ("kill_at", "rank", "sharded")}
    )
    assert found["record"]["resumed_at"] == [2]
    assert found["steps"] == reference["steps"][2:]
    assert difference(killed, reference_job) < TOLERANCE


def test_one_process_is_killed_and_goes_on(
    job: Callable[..., Job], launch: Launch, fit_alone: Alone, alone: dict[str, tuple[Job, Job]]
) -> None:
    """To the bit what an undisturbed training gives, although a checkpoint is torn."""
    options = {"train_checkpoint_minutes": 0}
    killed = job(options=options, tear_at=5)
    assert launch([killed], 1) == []
    left = {path.name for path in (Path(killed["directory"]) / "checkpoints").iterdir()}
    assert "step-00000004" in left
    assert ".step-00000005.partial" in left
    reference_job, reference = alone["classification"]
    del killed["tear_at"]
    found = fit_alone(killed)
    assert found["record"]["resumed_at"] == [4]
    assert found["steps"] == reference["steps"][4:]
    assert difference(killed, reference_job) == 0.0
    assert found["record"]["best_score"] == reference["record"]["best_score"]
    assert_bare(killed)


def test_a_process_that_runs_out_of_memory_in_a_step_ends_and_is_resumed(
    job: Callable[..., Job], launch: Launch, fit_alone: Alone, alone: dict[str, tuple[Job, Job]]
) -> None:
    """Its shards are in every step of the others, so they end as well; the training resumes with fewer at once."""
    ending = job(rows=2, rank=1, sharded=True, ends=True)
    assert not any("record" in one for found in launch([ending], 2) for one in found)
    found = fit_alone({key: value for key, value in ending.items() if key not in ("rows", "rank", "sharded")})
    assert found["record"]["micro_batch"] == 2
    assert found["record"]["ran_out_at"] == 4
    assert found["steps"] == alone["classification"][1]["steps"]
