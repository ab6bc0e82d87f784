"""Ctrl-C once ends in order, twice at once; two commands on one folder do not meet."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from .command import Commands
from .evaluation import Evaluation, answers, assert_whole

pytestmark = pytest.mark.thorough


def test_once_at_inference(prompted: Evaluation, commands: Commands, tmp_path: Path) -> None:
    run = tmp_path / "run"
    attempt = prompted.start(commands, run)
    attempt.until(lambda: answers(run) > 0, "first answer")
    attempt.send(signal.SIGINT)
    assert attempt.wait() == 130
    assert f"harness eval --resume {run}" in attempt.err.splitlines()[-1]
    assert 0 < answers(run) < answers(prompted.reference)
    prompted.finish(commands, run)
    assert_whole(run, prompted.reference)


def test_once_at_fine_tuning(trained: Evaluation, commands: Commands, tmp_path: Path) -> None:
    run = tmp_path / "run"
    attempt = trained.start(commands, run)
    fits = commands.cache / "fits"
    attempt.until(lambda: any(fits.glob(".*.partial/checkpoints/step-*")), "first checkpoint")
    attempt.send(signal.SIGINT)
    assert attempt.wait() == 130
    assert f"harness eval --resume {run}" in attempt.err.splitlines()[-1]
    assert answers(run) == 0
    trained.finish(commands, run)
    assert_whole(run, trained.reference)


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


def test_a_second_command_on_the_folder(prompted: Evaluation, commands: Commands, tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = prompted.start(commands, run, faults={"pace": 0.1})
    first.until(lambda: answers(run) > 0, "first answer")
    second = prompted.start(commands, run)
    assert second.wait() == 2
    printed = second.err.splitlines()[-1]
    assert (
        f"The run folder {str(run)!r} is in use by process {first.pid} on host {os.uname().nodename}"
        in printed
    )
    assert first.status() is None
    first.kill()
    prompted.finish(commands, run)
    assert_whole(run, prompted.reference)
