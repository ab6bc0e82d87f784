"""Plans divided into jobs: every cell once, one opening a job, a shared fit trained by a job of its own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from harness.planning.plan import Plan
from harness.planning.run_config import RunConfig
from harness.planning.shards import Shard, parse_shard, shard_sizes, shared_fits, take_shard
from harness.running import Session
from harness.running.session import prepare
from harness_fleet.fleet_file import FleetFile, FleetModel, PlannedJob, Resources, safe_name
from harness_fleet.folder import Consent, Fleet
from harness_fleet.grouping import divide, plan_models


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


@pytest.mark.parametrize("jobs", [1, 3, 4, 100])
def test_every_cell_is_in_one_job(plan: Plan, jobs: int) -> None:
    group = divide(plan, _config(), "001-x", jobs)
    scoring = [one for one in group.jobs if not one.job.fits_only]
    assert group.model.shards == len(scoring) == min(jobs, len(plan.cells))
    found = [
        cell.digest
        for one in scoring
        for cell in (
            plan if one.config.shard is None else take_shard(plan, parse_shard(one.config.shard))
        ).cells
    ]
    assert sorted(found) == sorted(cell.digest for cell in plan.cells)
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


def test_as_many_jobs_as_fits_share_none(plan: Plan) -> None:
    assert len(plan.fits) == 4
    assert shared_fits(plan, 4) == []


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
