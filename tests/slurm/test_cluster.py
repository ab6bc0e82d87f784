"""A fleet from end to end: submitted, run by a cluster, out of time, cancelled, submitted again, collected."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.registry import FleetJob, JobState
from tests.faults.evaluation import answers, assert_same, repeated, requests

from .test_scripts import Cli, make_job, numbers

pytest.importorskip("submitit")
from harness_slurm.options import SlurmOptions
from harness_slurm.runner import SlurmRunner

pytestmark = pytest.mark.thorough

SLOW = Path(__file__).parents[1] / "cli" / "slow_adapter.py"
PATIENCE = 120.0
CELLS = ("--tasks", "xnli,xquad", "--languages", "en,de,sw", "--data", "sample", "--recipe", "quick")
ENDED = {JobState.DONE, JobState.FAILED, JobState.LOST}


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait for what a cluster does in its own time."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"waited {PATIENCE:.0f} s for {what}"
        time.sleep(0.1)


def job_states(jobs: Sequence[FleetJob]) -> dict[str, JobState]:
    """Return what the backend knows, once all jobs have ended."""
    runner = SlurmRunner(SlurmOptions())
    until(lambda: set(runner.states(jobs).values()) <= ENDED, "the end of all jobs")
    return dict(runner.states(jobs))


def ended_fleet(folder: Path) -> list[FleetJob]:
    """Return the jobs of a fleet, once all have ended."""
    jobs = [make_job(folder / "jobs", file.parent.name) for file in sorted(folder.glob("jobs/*/slurm.json"))]
    job_states(jobs)
    return jobs


def test_the_order_and_the_ends_of_jobs(cluster: str, tmp_path: Path) -> None:
    def job(name: str, script: str, *after: str) -> FleetJob:
        made = make_job(tmp_path / "jobs", name, *after, memory_gib=0.1)
        return FleetJob(
            name=name, command=("sh", "-c", f"echo {name} >> {tmp_path}/order; {script}"), folder=made.folder,
            model="m", after=after, minutes=2,
        )  # fmt: skip

    jobs = [
        *(job(f"part-{number}", "sleep 0.2", "fit") for number in range(3)),
        job("fit", "sleep 0.5; echo trained"),
        job("bad", "exit 3"),
        job("killed", "kill -9 $$"),
        job("never", ":", "fit", "bad"),
        job("last", ":", "part-0", "part-2"),
    ]
    SlurmRunner(SlurmOptions(cpus=1, parallel=2)).run(jobs, lambda *_: None, lambda: False)
    assert job_states(jobs) == {
        **dict.fromkeys(("fit", "part-0", "part-1", "part-2", "last"), JobState.DONE),
        "bad": JobState.FAILED,
        "never": JobState.FAILED,
        "killed": JobState.LOST,
    }
    order = (tmp_path / "order").read_text().split()
    assert sorted(order) == sorted(job.name for job in jobs if job.name != "never")
    assert order.index("fit") < min(order.index(f"part-{number}") for number in range(3))
    assert order.index("last") > max(order.index("part-0"), order.index("part-2"))
    assert (jobs[3].folder / "log.txt").read_text() == "trained\n"


def test_a_fleet(cluster: str, cli: Cli, tmp_path: Path) -> None:
    words = ("--model", "baseline:char-ngram", *CELLS)
    own = ("--backend", "slurm", "-b", "cpus=1", "--minutes", 5, "--jobs", 2)
    status, out, err = cli("submit", *own, *words, "--output", tmp_path / "fleet")
    assert status == 0, err
    assert "harness submit status" in out
    jobs = ended_fleet(tmp_path / "fleet")
    assert len(jobs) > 1 + sum("fit" in job.name for job in jobs) > 1
    status, out, err = cli("submit", "status", tmp_path / "fleet")
    assert status == 0, err
    assert f"Jobs: {len(jobs)} done" in out
    status, out, err = cli("submit", "collect", tmp_path / "fleet")
    assert status == 0, err
    assert cli("eval", *words, "--output", tmp_path / "whole")[0] == 0
    [merged] = (tmp_path / "fleet" / "merged").iterdir()
    assert_same(merged, tmp_path / "whole")


def slow_fleet(
    cli: Cli, install: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, folder: Path, seconds: str
) -> Path:
    """Submit a model that takes its time, and return its run folder, once a few questions are answered."""
    source = SLOW.read_text(encoding="utf-8")
    assert "sleep(0.01 *" in source
    site = install("slow_adapter", source.replace("sleep(0.01 *", f"sleep({seconds} *"))
    monkeypatch.setenv("PYTHONPATH", str(site))
    status, _, err = cli(
        "submit", "--backend", "slurm", "-b", "cpus=1", "--minutes", 5, "--model", "slow:model",
        "--tasks", "xnli:en+de+hi+sw+tr", "--data", "sample", "--output", folder,
    )  # fmt: skip
    assert status == 0, err
    run = folder / "runs" / "001-slow-model"
    until(lambda: answers(run) > 0, "the first answer")
    return run


def test_what_is_stopped_continues(
    cluster: str,
    cli: Cli,
    install_plugin: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    fleet = tmp_path / "fleet"
    run = slow_fleet(cli, install_plugin, monkeypatch, fleet, "0.04")
    job = make_job(fleet / "jobs", run.name)
    number = numbers([job])[job.name]
    subprocess.run(["scancel", number, "--signal", "USR2"], check=True)
    until(lambda: "Requeued job" in slurm_log(fleet, number), "requeueing")
    if cluster == "real":  # which waits for two minutes before it starts a job again
        until(lambda: SlurmRunner(SlurmOptions()).states([job])[job.name] is JobState.WAITING, "the queue")
        _, out, _ = cli("submit", "status", fleet)
        assert "Jobs: 1 waiting" in out
        subprocess.run(["scontrol", "update", f"JobId={number}", "StartTime=now"], check=True)
    known = answers(run)
    until(lambda: answers(run) > known, "more answers")

    subprocess.run(["scancel", number], check=True)
    assert job_states([job]) == {job.name: JobState.LOST}
    _, out, _ = cli("submit", "status", fleet)
    assert "Jobs: 1 lost" in out
    assert cli("submit", "retry", fleet)[0] == 0
    assert job_states([job]) == {job.name: JobState.DONE}

    assert len(json.loads((run / "manifest.json").read_text())["resumed"]) == 2
    assert repeated(run) == 0
    counts = requests(run)
    assert known < counts["reused"] < counts["planned"] == counts["reused"] + counts["asked"]
    words = ("--model", "slow:model", "--tasks", "xnli:en+de+hi+sw+tr", "--data", "sample")
    monkeypatch.setattr("slow_adapter.time", SimpleNamespace(sleep=lambda _: None))
    assert cli("eval", *words, "--output", tmp_path / "whole")[0] == 0
    assert_same(run, tmp_path / "whole")


def slurm_log(fleet: Path, number: str) -> str:
    """Return what submitit printed."""
    path = fleet / "jobs" / "_slurm" / f"{number}_0_log.out"
    return path.read_text() if path.exists() else ""
