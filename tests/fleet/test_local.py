"""The backend of this machine: order, room, failures, interruption, with programs that take no time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import UsageError
from harness.registry import FleetJob, JobState
from harness_fleet.local import LocalOptions, LocalRunner, gpu_names

SAY = "import os, pathlib, sys; pathlib.Path(sys.argv[1]).write_text(os.environ.get('CUDA_VISIBLE_DEVICES', 'all'))"


@pytest.fixture
def make_job(tmp_path: Path) -> Callable[..., FleetJob]:
    """Return a job that runs a line of Python."""

    def make(name: str, program: str = "pass", **settings: object) -> FleetJob:
        folder = tmp_path / name
        folder.mkdir()
        command = (sys.executable, "-I", "-S", "-c", program, str(folder / "out"))
        return FleetJob(name=name, command=command, folder=folder, model="m", **settings)  # type: ignore[arg-type]

    return make


def _run(
    jobs: list[FleetJob], stopping: Callable[[], bool] = lambda: False, **options: int
) -> list[tuple[str, JobState]]:
    seen: list[tuple[str, JobState]] = []
    LocalRunner(LocalOptions(**options)).run(jobs, lambda *change: seen.append(change), stopping)
    return seen


def test_a_job_starts_once_those_that_it_needs_are_done(make_job: Callable[..., FleetJob]) -> None:
    jobs = [make_job("fit"), make_job("one", after=("fit",)), make_job("two", after=("fit", "elsewhere"))]
    seen = _run(jobs, workers=3)
    assert seen[:2] == [("fit", JobState.RUNNING), ("fit", JobState.DONE)]
    assert dict(seen) == dict.fromkeys(("fit", "one", "two"), JobState.DONE)


def test_a_failed_job_cancels_all_that_need_it(make_job: Callable[..., FleetJob]) -> None:
    jobs = [
        make_job("fit", "import sys; print('no memory'); sys.exit(2)"),
        make_job("one", after=("fit",)),
        make_job("two", after=("one",)),
        make_job("other"),
    ]
    seen = _run(jobs)
    failed = dict.fromkeys(("fit", "one", "two"), JobState.FAILED)
    assert dict(seen) == {**failed, "other": JobState.DONE}
    assert ("one", JobState.RUNNING) not in seen
    assert (jobs[0].folder / "log.txt").read_text(encoding="utf-8") == "no memory\n"
    killed = [make_job("killed", "import os; os.kill(os.getpid(), 9)"), make_job("waits", after=("killed",))]
    assert _run(killed) == [("killed", JobState.RUNNING), ("killed", JobState.LOST)]


def test_stopping_interrupts_what_runs_and_starts_no_other(make_job: Callable[..., FleetJob]) -> None:
    waits = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(130)); "
    waits += "open(sys.argv[1], 'w').close(); signal.pause()"
    jobs = [make_job("one", waits), make_job("two")]
    started = jobs[0].folder / "out"
    assert _run(jobs, started.exists) == [("one", JobState.RUNNING), ("one", JobState.LOST)]


def test_jobs_get_gpus_of_their_own(
    make_job: Callable[..., FleetJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,GPU-ab")
    jobs = [make_job(name, SAY, gpus=1) for name in ("one", "two", "three")]
    jobs += [make_job("both", SAY, gpus=2, after=("one", "two", "three")), make_job("none", SAY)]
    assert set(dict(_run(jobs)).values()) == {JobState.DONE}
    found = {job.name: (job.folder / "out").read_text(encoding="utf-8") for job in jobs}
    assert {found["one"], found["two"], found["three"]} <= {"4", "5", "GPU-ab"}
    assert len(found["both"].split(",")) == 2
    assert found["none"] == "4,5,GPU-ab"
    for hidden in ("", "-1"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        assert gpu_names() == []


def test_two_jobs_share_a_gpu(make_job: Callable[..., FleetJob], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    meet = "import pathlib, sys, time; me = pathlib.Path(sys.argv[1]); me.write_text('')\n"
    meet += "other = me.parents[1] / {'one': 'two', 'two': 'one'}[me.parent.name] / 'out'\n"
    meet += "while not other.exists(): time.sleep(0.01)"
    jobs = [make_job(name, meet, gpus=0.5) for name in ("one", "two")]
    assert set(dict(_run(jobs)).values()) == {JobState.DONE}


@pytest.mark.parametrize("asked", [{"gpus": 3.0}, {"memory_gib": 1e6}])
def test_a_job_without_room_starts_nothing(
    make_job: Callable[..., FleetJob], monkeypatch: pytest.MonkeyPatch, asked: dict[str, float]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    first = make_job("one", SAY)
    with pytest.raises(UsageError, match="'two' asks for"):
        _run([first, make_job("two", **asked)])
    assert not (first.folder / "out").exists()


@pytest.mark.parametrize(
    ("status", "state"),
    [(0, "done"), (1, "failed"), (3, "failed"), (130, "lost"), (-9, "lost"), (143, "lost")],
)
def test_what_an_exit_status_means(status: int, state: str) -> None:
    assert JobState.of_status(status) == state
