"""``harness submit`` and its commands: what they write, run, merge and run again."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Run, TrainingError
from harness_fleet.folder import Fleet
from harness_fleet.state import job_states

Cli = Callable[..., tuple[int, str, str]]
SAMPLE = ("--data", "sample", "--recipe", "quick", "--limit", "4", "--train-limit", "20")
TASKS = ("--tasks", "xnli,udpos", "--languages", "en,hi,zh")
NGRAM = "baseline:char-ngram"
FLEET = Path("fleet")


def _submit(cli: Cli, *further: object) -> tuple[int, str, str]:
    return cli("submit", "--model", NGRAM, *TASKS, *SAMPLE, "--output", FLEET, *further)


def test_a_job_with_cut_results_is_not_done(cli: Cli, here: Any, tmp_path: Path) -> None:
    assert (
        cli("submit", "--model", "baseline:majority", *TASKS, *SAMPLE, "--output", FLEET, "--jobs", 2)[0] == 0
    )
    fleet = Fleet(FLEET)
    assert {str(state) for state in job_states(fleet).values()} == {"done"}
    job = fleet.jobs_of(fleet.file.models[0])[0].name
    file = fleet.run(job) / "results.json"
    whole = file.read_text(encoding="utf-8")
    for text in (whole[: len(whole) // 2], "", "{}", whole.replace('"value": 0.', '"value": 10.')):
        file.write_text(text, encoding="utf-8")
        assert [name for name, state in job_states(fleet).items() if state == "lost"] == [job]
    cli("submit", "retry", FLEET)
    assert {str(state) for state in job_states(fleet).values()} == {"done"}
    assert json.loads(file.read_text(encoding="utf-8"))["cells"] == json.loads(whole)["cells"]


def _trainings() -> Counter[str]:
    """Return how often each stage was trained, by its digest, in all runs of the fleet."""
    runs = [Run(path) for path in sorted((FLEET / "runs").iterdir())]
    return Counter(
        stage["digest"]
        for run in runs
        for fit in run.results.fits.values()
        for stage in fit.stages
        if not stage["reused"]
    )


@pytest.mark.thorough
def test_several_jobs_have_the_scores_of_one_run(
    cli: Cli, here: Any, scores: Callable[[Path], Any], answers: Callable[[Path], int], tmp_path: Path
) -> None:
    status, out, err = _submit(cli, "--jobs", 4)
    assert status == 0, err
    assert "char-ngram" in out
    assert list(_trainings().values()) == [1, 1]
    fleet = Fleet(FLEET)
    [model] = fleet.file.models
    assert model.shards == 4
    fits = [job for job in fleet.file.jobs if job.fits_only]
    assert fits
    assert {name for job in fleet.jobs_of(model) for name in job.after} == {job.name for job in fits}
    single, merged = tmp_path / "single", fleet.result(model)
    assert cli("eval", "--model", NGRAM, *TASKS, *SAMPLE, "--output", single)[0] == 0
    assert scores(merged) == scores(single)
    assert sum(answers(fleet.run(job.name)) for job in fleet.jobs_of(model)) == answers(single)
    before = (merged / "results.json").stat().st_mtime_ns
    assert cli("submit", "collect", FLEET)[0] == 0
    assert (merged / "results.json").stat().st_mtime_ns == before
    part = fleet.run(fleet.jobs_of(model)[0].name) / "results.json"
    os.utime(part, ns=(2 * before, 2 * before))
    assert cli("submit", "collect", FLEET)[0] == 0
    assert (merged / "results.json").stat().st_mtime_ns == before, "another host's clock is ahead"
    part.write_bytes(part.read_bytes() + b"\n")
    os.utime(part, ns=(1, 1))
    assert cli("submit", "collect", FLEET)[0] == 0
    assert (merged / "results.json").stat().st_mtime_ns != before, "other contents under an old time"
    assert cli("submit", "collect", FLEET, "--check")[0] == 0
    started = len(here.jobs)
    assert cli("submit", "retry", FLEET)[0] == 0
    assert len(here.jobs) == started


@pytest.mark.thorough
def test_one_job_is_the_result_itself(cli: Cli, here: Any) -> None:
    status, out, _ = _submit(cli, "--model", "baseline:majority")
    assert status == 0
    assert "majority" in out
    assert here.jobs == ["001-baseline-char-ngram", "002-baseline-majority"]
    assert not (FLEET / "merged").exists()
    fleet = Fleet(FLEET)
    assert [Run(fleet.result(model)).manifest.model for model in fleet.file.models] == [
        NGRAM,
        "baseline:majority",
    ]
    status, _, _ = cli("submit", "status", FLEET, "--json", "rows.json")
    row, _ = json.loads(Path("rows.json").read_text(encoding="utf-8"))
    assert status == 0
    assert row == {
        "model": NGRAM,
        "name": "001-baseline-char-ngram",
        "planned": 6,
        "done": 6,
        "failed": 0,
        "jobs": {"001-baseline-char-ngram": "done"},
    }


@pytest.mark.thorough
def test_a_fit_that_fails_cancels_what_needs_it_until_a_retry(
    cli: Cli, here: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:

        def fail(*_: object) -> None:
            raise TrainingError("the loss is not a number")

        patch.setattr("harness_baseline.model.Baseline.fit", fail)
        status, _, _ = _submit(cli, "--jobs", 4)
    assert status == 1
    fleet = Fleet(FLEET)
    needing = {job.name for job in fleet.file.jobs if job.after}
    fits = {job.name for job in fleet.file.jobs if job.fits_only}
    assert needing
    assert fits
    assert not needing & set(here.jobs)
    status, out, _ = cli("submit", "collect", FLEET, "--check")
    assert status == 1
    assert "the loss is not a number" in out
    rows = _status(cli)
    assert {rows["jobs"][name] for name in needing | fits} == {"failed"}
    assert rows["done"] == 0
    assert cli("submit", "retry", FLEET)[0] == 0
    assert set(_trainings().values()) == {1}
    assert cli("submit", "collect", FLEET, "--check")[0] == 0
    assert _status(cli)["failed"] == 0


def _status(cli: Cli) -> dict[str, Any]:
    assert cli("submit", "status", FLEET, "--json", "rows.json")[0] == 0
    [row] = json.loads(Path("rows.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = row
    return found


def test_fits_only_trains_and_the_same_run_scores_afterwards(
    cli: Cli, scores: Callable[[Path], Any], answers: Callable[[Path], int]
) -> None:
    run = ("eval", "--model", NGRAM, *TASKS, *SAMPLE)
    status, out, _ = cli(*run, "--fits-only", "--output", "run")
    assert status == 0
    assert "harness eval --resume run" in out
    results = Run("run").results
    assert len(results.fits) == 2
    assert all(cell.is_stopped for cell in results.cells if cell.digest)
    assert answers(Path("run")) == 0
    assert cli("eval", "--resume", "run")[0] == 0
    stages = [stage for fit in Run("run").results.fits.values() for stage in fit.stages]
    assert all(stage["reused"] for stage in stages)
    assert cli(*run, "--output", "whole")[0] == 0
    assert scores(Path("run")) == scores(Path("whole"))


@pytest.mark.parametrize(
    ("further", "message"),
    [
        (("--model", "baseline:none"), "1 of 2 models"),
        (("--model", NGRAM), "given twice"),
        (("--tasks", "nothing"), "nothing"),
        (("--backend", "cloud"), "cloud"),
        (("-b", "worker=2"), "workers"),
        (("-b", "workers=0"), "workers"),
        (("--gpus", "1000"), "1000 GPUs"),
    ],
)
def test_faulty_requests_start_nothing(cli: Cli, further: tuple[str, ...], message: str) -> None:
    status, _, err = _submit(cli, *further)
    assert status == 2
    assert message in err
    assert not list(FLEET.glob("runs/*"))


def test_a_folder_is_used_once_and_names_no_path_outside(cli: Cli, here: Any) -> None:
    assert cli("submit", "status", FLEET)[0] == 2
    assert _submit(cli)[0] == 0
    status, _, err = _submit(cli)
    assert status == 2
    assert "harness submit retry fleet" in err
    Path("other").mkdir()
    Path("other/file").touch()
    assert cli("submit", "--model", NGRAM, *TASKS, *SAMPLE, "--output", "other")[0] == 2
    file = FLEET / "fleet.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    content["jobs"][0]["name"] = "../../elsewhere"
    file.write_text(json.dumps(content), encoding="utf-8")
    status, _, err = cli("submit", "retry", FLEET)
    assert status == 1
    assert "jobs.0.name" in err
