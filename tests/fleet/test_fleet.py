"""Fleets: models, jobs and their order."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Run, TrainingError
from harness.planning.plan import Plan
from harness.planning.run_config import RunConfig
from harness.planning.shards import Shard, parse_shard, shard_sizes, shared_fits, take_shard
from harness.running import Session
from harness.running.session import prepare
from harness_fleet.folder import Consent, Fleet, FleetFile, FleetModel, PlannedJob, Resources, safe_name
from harness_fleet.state import job_states
from harness_fleet.submission import divide, plan_models

Cli = Callable[..., tuple[int, str, str]]
SAMPLE = ("--data", "sample", "--recipe", "quick", "--limit", "4", "--train-limit", "20")
TASKS = ("--tasks", "xnli,udpos", "--languages", "en,hi,zh")
NGRAM = "baseline:char-ngram"
FLEET = Path("fleet")


def _submit(cli: Cli, *further: object) -> tuple[int, str, str]:
    return cli("submit", "--model", NGRAM, *TASKS, *SAMPLE, "--output", FLEET, *further)


def test_a_job_with_cut_results_is_not_done(cli: Cli, here: Any, tmp_path: Path) -> None:
    command = ("submit", "--model", "baseline:majority", *TASKS, *SAMPLE, "--output", FLEET, "--jobs", 2)
    assert cli(*command)[0] == 0
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
    models = [Run(fleet.result(model)).manifest.model for model in fleet.file.models]
    assert models == [NGRAM, "baseline:majority"]
    status, _, _ = cli("submit", "status", FLEET, "--json", "rows.json")
    row, _ = json.loads(Path("rows.json").read_text(encoding="utf-8"))
    assert status == 0
    name = "001-baseline-char-ngram"
    counts = {"planned": 6, "done": 6, "failed": 0}
    assert row == {"model": NGRAM, "name": name, **counts, "jobs": {name: "done"}}


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


def _config(tasks: str = "xnli,udpos", model: str = "baseline:char-ngram") -> RunConfig:
    return RunConfig.read({"tasks": tasks, "model": model, "data": "sample", "seeds": "1,2"})


@pytest.fixture(scope="module")
def plan() -> Plan:
    """36 cells of four fits: two tasks in nine languages each, with two seeds."""
    return prepare(_config()).plan


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7, 36])
def test_shared_fits_are_those_that_several_shards_need(plan: Plan, count: int) -> None:
    shards = [take_shard(plan, Shard(index=number, count=count)) for number in range(1, count + 1)]
    assert [len(shard.cells) for shard in shards] == shard_sizes(plan, count)
    needed = Counter(fit.key for shard in shards for fit in shard.fits)
    shared = shared_fits(plan, count)
    assert {one.fit.key for one in shared} == {key for key, number in needed.items() if number > 1}
    for one in shared:
        users = [
            number for number, shard in enumerate(shards, 1) if one.fit.key in {f.key for f in shard.fits}
        ]
        assert list(one.shards) == users
        [cell] = take_shard(plan, one.alone).cells
        assert cell.fit is not None
        assert cell.fit.key == one.fit.key
    assert shared_fits(plan, len(plan.fits)) == [], "as many jobs as fits share none"


@pytest.mark.parametrize("jobs", [1, 3, 4, 100])
def test_every_cell_is_in_one_job(plan: Plan, jobs: int) -> None:
    group = divide(plan, _config(), "001-x", jobs)
    scoring = [one for one in group.jobs if not one.job.fits_only]
    assert group.model.shards == len(scoring) == min(jobs, len(plan.cells))
    digests = []
    for one in scoring:
        shard = plan if one.config.shard is None else take_shard(plan, parse_shard(one.config.shard))
        digests += [cell.digest for cell in shard.cells]
    assert sorted(digests) == sorted(cell.digest for cell in plan.cells)
    assert sum(one.job.cells for one in scoring) == len(plan.cells)


def test_jobs_wait_for_the_fits_that_they_share_alone(plan: Plan) -> None:
    group = divide(plan, _config(), "001-x", 5)
    trained = {one.job.name: one.config for one in group.jobs if one.job.fits_only}
    assert trained
    assert all(config.fits_only for config in trained.values())
    for one in group.jobs:
        if one.job.fits_only:
            assert one.job.after == ()
            continue
        assert one.config.shard is not None
        own = {fit.key for fit in take_shard(plan, parse_shard(one.config.shard)).fits}
        fits = {
            name: take_shard(plan, parse_shard(config.shard or "")).fits[0].key
            for name, config in trained.items()
        }
        assert set(one.job.after) == {name for name, key in fits.items() if key in own}


def test_models_that_cannot_be_evaluated_are_named_together(session: Session) -> None:
    configs = [_config(model=model) for model in ("baseline:majority", "baseline:none", "nothing:x")]
    groups, errors = plan_models(configs, session, 1)
    assert [group.model.model for group in groups] == ["baseline:majority"]
    assert list(errors) == ["baseline:none", "nothing:x"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("hf:intfloat/multilingual-e5-small", "007-multilingual-e5-small"),
        ("hf:../../etc/passwd", "007-passwd"),
        ("hf:/models/x/..", "007-model"),
        ("vllm:http://a:8000/v1,http://b/v1", "007-v1"),
        ("hf:模型", "007-hf"),
        ("hf:" + "x" * 300, "007-hf-" + "x" * 37),
    ],
)
def test_names_of_models_become_safe_names(text: str, name: str) -> None:
    assert safe_name(7, text) == name


def test_whether_foreign_code_may_run_is_in_no_file(tmp_path: Path) -> None:
    options = {"dtype": "float32", "trust_remote_code": "true"}
    config = RunConfig.read({"tasks": "xnli:de", "model": "hf:m", "data": "sample", "options": options})
    job = PlannedJob(name="001-m", model="001-m", cells=1)
    model = FleetModel(name="001-m", model="hf:m", cells=1, fits=0, skipped=0, shards=1)
    file = FleetFile(
        created="", harness=None, command=(), backend="local", backend_options={}, resources=Resources(),
        models=(model,), jobs=(job,),
    )  # fmt: skip
    fleet = Fleet.create(tmp_path / "fleet", file, [config])
    written = "".join(path.read_text(encoding="utf-8") for path in fleet.path.rglob("*") if path.is_file())
    assert "float32" in written
    assert "trust_remote_code" not in written
    [given] = fleet.jobs(Consent(trust_remote_code="true"))
    assert given.command[-2:] == ("--trust-remote-code", "true")
    assert given.options == options
