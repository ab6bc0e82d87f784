"""Several processes: killed together, or one alone, and resumed by another number of them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from .command import Attempt, Commands, descendants, wait_until
from .evaluation import Evaluation, answers, assert_same, assert_whole, repeated

pytestmark = pytest.mark.thorough

MINUTE = 60.0


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
    wait_until(lambda: attempt.status() is not None, "end of the command", patience=MINUTE)
    assert attempt.status() not in (0, None)
    wait_until(lambda: not any(_runs(pid) for pid in others), "end of all processes", patience=MINUTE)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_two_processes_lose_one_at_inference_and_one_goes_on(
    prompted: Evaluation, commands: Commands, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    attempt = prompted.start(commands, run, "--num-processes", 2, cold=True)
    attempt.until(lambda: answers(run) >= 20, "first answers")
    lose_one(attempt)
    assert answers(run) < answers(prompted.reference)
    prompted.finish(commands, run)
    assert_whole(run, prompted.reference)


def test_one_process_is_killed_and_two_go_on(
    prompted: Evaluation, commands: Commands, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    attempt = prompted.start(commands, run)
    attempt.until(lambda: answers(run) >= 20, "first answers")
    attempt.kill()
    known = answers(run)
    assert known < answers(prompted.reference)
    prompted.finish(commands, run, "--num-processes", 2, cold=True)
    assert_whole(run, prompted.reference)
    assert (run / "journal" / "1.log").is_file()


@pytest.mark.slow
def test_two_processes_lose_one_at_fine_tuning_and_two_go_on(
    trained: Evaluation, commands: Commands, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    attempt = trained.start(commands, run, "--num-processes", 2, cold=True)
    fits = commands.cache / "fits"
    attempt.until(lambda: any(fits.glob(".*.partial/checkpoints/step-*")), "first checkpoint")
    lose_one(attempt)
    assert answers(run) == 0
    trained.finish(commands, run, "--num-processes", 2, cold=True)
    assert repeated(run) == 0
    # The gradients of two processes are summed in another order: scores may differ by rounding.
    assert_same(run, trained.reference, tolerance=1e-3)


@pytest.mark.slow
def test_two_processes_are_killed_after_fine_tuning_and_one_goes_on(
    trained: Evaluation, filled_cache: Commands, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    attempt = trained.start(filled_cache, run, "--num-processes", 2, cold=True)
    attempt.until(lambda: answers(run) >= 10, "first answers")
    attempt.kill()
    trained.finish(filled_cache, run)
    assert_whole(run, trained.reference)


@pytest.mark.slow
def test_one_process_is_killed_at_fine_tuning_and_two_go_on(
    trained: Evaluation, commands: Commands, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    attempt = trained.start(commands, run)
    fits = commands.cache / "fits"
    attempt.until(lambda: any(fits.glob(".*.partial/checkpoints/step-*")), "first checkpoint")
    attempt.kill()
    trained.finish(commands, run, "--num-processes", 2, cold=True)
    assert repeated(run) == 0
    assert_same(run, trained.reference, tolerance=1e-3)
