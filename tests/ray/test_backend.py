"""Jobs on a real Ray with two CPUs: order, failures, deaths, limits and interruption."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness import HarnessError, UsageError
from harness.registry import FleetJob
from harness_ray.backend import RayRunner
from harness_ray.options import RayOptions
from tests.ray.conftest import Diary, MakeJob, runs

pytestmark = pytest.mark.thorough

Run = Callable[..., None]
KILL_WORKER = "kill -9 $(ps -o ppid= -p $PPID)"
"""A job's parent is the watcher, whose parent is the worker of Ray."""


@pytest.fixture(scope="module")
def address(start_cluster: Callable[[Sequence[int]], Any]) -> str:
    return str(start_cluster([2]).address)


@pytest.fixture
def run(address: str, diary: Diary) -> Run:
    def run_(
        *jobs: FleetJob, stopping: Callable[[], bool] = lambda: False, retries: int = 3, to: str = address
    ) -> None:
        RayRunner(RayOptions(address=to, retries=retries)).run(jobs, diary, stopping)

    return run_


def test_jobs_come_after_those_that_they_need(run: Run, make_job: MakeJob, diary: Diary) -> None:
    first = make_job("first", "sleep 0.5; echo one > made")
    second = make_job("second", f"cat '{first.folder}/made'; echo complaint >&2", after=("first",))
    third = make_job("third", "exit 0", after=("second", "in-another-submission"))
    run(third, second, first)
    assert [name for name, state in diary.entries if state == "done"] == ["first", "second", "third"]
    assert {tuple(diary.of(job.name)) for job in (first, second, third)} == {("running", "done")}
    assert (second.folder / "log.txt").read_text() == "one\ncomplaint\n"


def test_a_failed_job_stops_those_that_need_it_alone(run: Run, make_job: MakeJob, diary: Diary) -> None:
    bad = make_job("bad", "exit 3")
    needs = make_job("needs", "echo ran > ran", after=("bad",))
    needs_too = make_job("needs-too", "echo ran > ran", after=("needs",))
    missing = make_job("missing", "no-such-program")
    run(bad, needs, needs_too, missing, make_job("good", "exit 0"))
    assert diary.of("bad") == diary.of("missing") == ["running", "failed"]
    assert diary.of("needs") == diary.of("needs-too") == ["failed"]
    assert diary.of("good")[-1] == "done"
    assert not (needs.folder / "ran").exists()
    assert "no-such-program" in (missing.folder / "log.txt").read_text()


def test_no_more_jobs_run_at_once_than_there_are_cpus(run: Run, make_job: MakeJob, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    begin, end = f"touch {shared}/$$", f"ls {shared} | wc -l > seen; sleep 0.7; rm {shared}/$$"
    # On a busy machine the second job starts late: the first waits for it.
    wait = f"n=0; until [ $(ls {shared} | wc -l) -ge 2 ] || [ $n -ge 100 ]; do sleep 0.1; n=$((n + 1)); done"
    jobs = [make_job(f"job-{number}", f"{begin}; {wait}; {end}") for number in range(4)]
    wide = make_job("wide", f"{begin}; {end}", processes=2)
    run(*jobs, wide)
    seen = [int((job.folder / "seen").read_text()) for job in jobs]
    assert max(seen) == 2
    assert int((wide.folder / "seen").read_text()) == 1


@pytest.mark.parametrize(
    "fields",
    [{"gpus": 2}, {"processes": 3}, {"memory_gib": 1e6}],
    ids=lambda fields: next(iter(fields)),
)
def test_a_job_without_room_stops_all_before_any_starts(
    run: Run, make_job: MakeJob, diary: Diary, fields: dict[str, Any]
) -> None:
    good, large = make_job("good", "touch ran"), make_job("large", "exit 0", **fields)
    with pytest.raises(UsageError, match=r"'large' asks for .*no node .*2 CPUs, 0 GPUs"):
        run(good, large)
    assert diary.entries == []
    assert not (good.folder / "ran").exists()


def test_a_killed_command_is_started_again(run: Run, make_job: MakeJob, diary: Diary) -> None:
    job = make_job("mortal", "echo x >> tries; [ $(wc -l < tries) = 3 ] || kill -9 $$")
    run(job)
    assert diary.of("mortal") == [*["running", "lost", "waiting"] * 2, "running", "done"]


def test_a_command_that_is_killed_too_often_is_lost(run: Run, make_job: MakeJob, diary: Diary) -> None:
    job = make_job("mortal", "echo x >> tries; kill -9 $$")
    needs = make_job("needs", "touch ran", after=("mortal",))
    run(job, needs, retries=1)
    assert diary.of("mortal") == ["running", "lost", "waiting", "running", "lost"]
    assert (job.folder / "tries").read_text() == "x\nx\n"
    assert diary.of("needs") == []


def test_a_job_dies_with_its_worker_and_is_started_again(run: Run, make_job: MakeJob, diary: Diary) -> None:
    script = f"if [ -e pid ]; then exit 0; fi; echo $$ > pid; {KILL_WORKER}; sleep 60"
    job = make_job("orphan", script)
    run(job)
    assert diary.of("orphan") == ["running", "lost", "waiting", "running", "done"]
    assert not runs(int((job.folder / "pid").read_text()))
    assert (job.folder / "log.txt").read_text().startswith("Ray: ")


def test_a_job_may_run_only_so_long(run: Run, make_job: MakeJob, diary: Diary) -> None:
    run(make_job("long", "exec sleep 60", minutes=0))
    assert diary.of("long") == ["running", "lost"], "time was up, which a second attempt would not change"


def test_interrupted_jobs_end_in_order_and_no_other_starts(run: Run, make_job: MakeJob, diary: Diary) -> None:
    script = "trap 'echo in order > ended; exit 130' TERM; touch begun; while :; do sleep 0.1; done"
    jobs = [make_job(f"job-{number}", script) for number in range(3)]

    def begun() -> list[FleetJob]:
        return [job for job in jobs if (job.folder / "begun").exists()]

    run(*jobs, stopping=lambda: len(begun()) == 2)
    assert len(begun()) == 2
    for job in jobs:
        assert diary.of(job.name) == (["running", "lost"] if job in begun() else [])
        assert (job.folder / "ended").exists() == (job in begun())


def test_an_address_where_nothing_is(run: Run, make_job: MakeJob) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        closed = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(HarnessError, match=f"No Ray cluster accepts connections at {closed}"):
            run(make_job("job", "exit 0"), to=closed)


@pytest.mark.parametrize("address", ["head-node", "ray://127.0.0.1:10001", "127.0.0.1:http"])
def test_an_address_of_another_form(run: Run, make_job: MakeJob, address: str) -> None:
    with pytest.raises(UsageError, match="not of the form HOST:PORT"):
        run(make_job("job", "exit 0"), to=address)
