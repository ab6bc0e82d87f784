"""Commands that are killed or interrupted at any moment, and what they leave: no answer is lost or wrong."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from .command import Attempt, Commands, descendants, wait_until
from .evaluation import Evaluation, answers, assert_same, assert_whole, keys, repeated

pytestmark = pytest.mark.thorough


@dataclass(slots=True)
class Tally:
    """Kills of one evaluation, the runs that survived them, and the answers that they cost."""

    kills: int = 0
    runs: int = 0
    lost: int = 0
    again: int = 0


def kill_often(
    evaluation: Evaluation, commands: Commands, folder: Path, kills: int, *, cold: bool, seconds: float
) -> None:
    """Kill a run at random moments, resume it each time, and begin another run when one got to its end."""
    tally, moments = Tally(), random.Random(5)
    while tally.kills < kills:
        run, known = folder / f"run-{tally.runs}", set[bytes]()
        shutil.rmtree(commands.cache, ignore_errors=True)
        while True:
            attempt = evaluation.start(commands, run, cold=cold)
            killed = tally.kills < kills and _killed(attempt, moments.uniform(0, seconds))
            written = set(keys(run))
            tally.lost += len(known - written)
            tally.again += repeated(run)
            if not killed:
                break
            tally.kills += 1
            known = written
        assert attempt.wait() == 0, attempt.err
        assert_whole(run, evaluation.reference)
        tally.runs += 1
    assert (tally.kills, tally.lost, tally.again) == (kills, 0, 0)


def _killed(attempt: Attempt, moment: float) -> bool:
    """Return whether the command was killed at a moment of its life, rather than at its end before."""
    while attempt.status() is None and time.monotonic() - attempt.began < moment:
        time.sleep(0.002)
    attempt.kill()
    return attempt.wait() == -9


@pytest.mark.parametrize("evaluation", ["trained", "prompted", "sampled"], indirect=True)
def test_a_run_that_is_killed_three_times(evaluation: Evaluation, commands: Commands, tmp_path: Path) -> None:
    kill_often(evaluation, commands, tmp_path, 3, cold=False, seconds=evaluation.seconds)


@pytest.mark.slow
@pytest.mark.parametrize("evaluation", ["trained", "prompted"], indirect=True)
def test_runs_that_are_killed_at_twenty_random_moments_each(
    evaluation: Evaluation, commands: Commands, tmp_path: Path
) -> None:
    """Real commands, their imports included."""
    began = time.monotonic()
    whole = evaluation.start(commands, tmp_path / "alone", cold=True)
    assert whole.wait() == 0, whole.err
    assert answers(evaluation.reference) > 50
    kill_often(evaluation, commands, tmp_path, 20, cold=True, seconds=time.monotonic() - began)


def _has_checkpoint(commands: Commands) -> bool:
    return any((commands.cache / "fits").glob(".*.partial/checkpoints/step-*"))


@pytest.mark.parametrize("evaluation", ["trained", "prompted"], indirect=True)
def test_one_ctrl_c_at_fine_tuning_or_inference(
    evaluation: Evaluation, commands: Commands, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    attempt = evaluation.start(commands, run)
    attempt.until(lambda: answers(run) > 0 or _has_checkpoint(commands), "first answer or checkpoint")
    attempt.send(signal.SIGINT)
    assert attempt.wait() == 130
    assert f"harness eval --resume {run}" in attempt.err.splitlines()[-1]
    assert (answers(run) > 0) == (evaluation.name == "prompted")
    assert answers(run) < answers(evaluation.reference)
    evaluation.finish(commands, run)
    assert_whole(run, evaluation.reference)


def test_twice(prompted: Evaluation, commands: Commands, tmp_path: Path) -> None:
    """The pace is so slow that the batch which is under way would have come to an end much later."""
    run = tmp_path / "run"
    attempt = prompted.start(commands, run, faults={"pace": 1.0})
    attempt.until(lambda: answers(run) > 0, "first answer")
    attempt.send(signal.SIGINT)
    attempt.until(lambda: "Press Ctrl-C again" in attempt.err, "answer to the first")
    before = answers(run)
    attempt.send(signal.SIGINT)
    assert attempt.wait() == 130
    assert answers(run) == before, "the batch under way was awaited"
    prompted.finish(commands, run)
    assert_whole(run, prompted.reference)


def of_rank(attempt: Attempt, rank: int) -> int | None:
    """Return the process of a rank; None before it is there."""
    for pid in descendants(attempt.pid):
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"RANK=%d" % rank in environment and b"harness" in command:
            return pid
    return None


def lose_one(attempt: Attempt) -> None:
    """Kill the second process alone: all others are gone within a minute, and the status shows it."""
    others = [attempt.pid, *descendants(attempt.pid)]
    lost = of_rank(attempt, 1)
    assert lost is not None
    os.kill(lost, signal.SIGKILL)
    wait_until(lambda: attempt.status() is not None, "end of the command", patience=60.0)
    assert attempt.status() not in (0, None)
    wait_until(lambda: not any(_runs(pid) for pid in others), "end of all processes", patience=60.0)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2])
def test_two_processes_resume_fine_tuning_whose_process_was_killed(
    trained: Evaluation, commands: Commands, tmp_path: Path, count: int
) -> None:
    run = tmp_path / "run"
    attempt = trained.start(commands, run, "--num-processes", count, cold=count > 1)
    attempt.until(lambda: _has_checkpoint(commands), "first checkpoint")
    if count == 1:
        attempt.kill()
    else:
        lose_one(attempt)
    assert answers(run) == 0
    trained.finish(commands, run, "--num-processes", 2, cold=True)
    assert repeated(run) == 0
    # The gradients of two processes are summed in another order: scores may differ by rounding.
    assert_same(run, trained.reference, tolerance=1e-3)


def test_what_an_interrupted_fit_left_is_torn(
    trained: Evaluation, commands: Commands, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    attempt = trained.start(commands, run)
    attempt.until(lambda: _has_checkpoint(commands), "first checkpoint")
    attempt.kill()
    (partial,) = (commands.cache / "fits").glob(".*.partial")
    torn = [path for path in partial.rglob("*") if path.is_file()]
    assert torn
    for path in torn:
        os.truncate(path, path.stat().st_size // 2)
    (partial / "checkpoints" / "step-99999999").mkdir()
    (partial / "checkpoints" / "step-99999999" / "state.json").write_bytes(b"\xff\0")
    (partial / "checkpoints" / "step-x").write_text("no folder", encoding="utf-8")
    (partial / "model.safetensors").write_bytes(b"garbage")
    (partial / ".harness_fit.json.partial").write_bytes(b'{"version": 1, "he')
    trained.finish(commands, run)
    assert_whole(run, trained.reference)
