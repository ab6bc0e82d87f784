"""kill -9 at random moments: nothing that was answered is lost, asked for again, or another number in the end."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from .command import Attempt, Commands
from .evaluation import Evaluation, answers, assert_whole, keys, repeated

pytestmark = pytest.mark.thorough


@dataclass(slots=True)
class Tally:
    """What the kills of one evaluation hit, and what they cost."""

    name: str
    kills: int = 0
    attempts: int = 0
    runs: int = 0
    hits: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    again: int = 0

    def row(self) -> str:
        numbers = (
            self.kills,
            self.attempts,
            self.runs,
            *map(self.hits.__getitem__, PHASES),
            self.lost,
            self.again,
        )
        return "".join([f"{self.name:<8}", *(f"{number:>13}" for number in numbers)])


PHASES = ("start-up", "fit", "inference")
COLUMNS = ("kills", "attempts", "runs", *PHASES, "lost", "asked twice")
HEAD = "".join(["run     ", *(f"{name:>13}" for name in COLUMNS)])


def kill_often(
    evaluation: Evaluation, commands: Commands, folder: Path, kills: int, *, cold: bool, seconds: float
) -> Tally:
    """Kill a run at random moments, go on each time, and begin another run when one got to its end."""
    tally, moments = Tally(evaluation.name), random.Random(5)
    while tally.kills < kills:
        run, known = folder / f"run-{tally.runs}", set[bytes]()
        shutil.rmtree(commands.cache, ignore_errors=True)
        while True:
            attempt = evaluation.start(commands, run, cold=cold)
            tally.attempts += 1
            killed = tally.kills < kills and _killed(attempt, moments.uniform(0, seconds))
            found = set(keys(run))
            tally.lost += len(known - found)
            tally.again += repeated(run)
            if not killed:
                break
            tally.kills += 1
            tally.hits[_hit(attempt, commands.cache / "fits", len(found) > len(known))] += 1
            known = found
        assert attempt.wait() == 0, attempt.err
        assert_whole(run, evaluation.reference)
        tally.runs += 1
    return tally


def _killed(attempt: Attempt, moment: float) -> bool:
    """Return whether the command was killed at a moment of its life, rather than at its end before."""
    while attempt.status() is None and time.monotonic() - attempt.began < moment:
        time.sleep(0.002)
    attempt.kill()
    return attempt.wait() == -9


def _hit(attempt: Attempt, fits: Path, answered: bool) -> str:
    """Return what a command was doing when it was killed, as far as its output and its files show."""
    printed = [line for line in attempt.err.splitlines() if line.startswith(("Fine-tuning", "Reusing", "x"))]
    if printed and printed[-1].startswith("Fine-tuning") and any(fits.glob(".*.partial")):
        return "fit"
    return "inference" if printed or answered else "start-up"


@pytest.mark.parametrize("evaluation", ["trained", "prompted", "sampled"], indirect=True)
def test_a_run_that_is_killed_three_times(evaluation: Evaluation, commands: Commands, tmp_path: Path) -> None:
    tally = kill_often(evaluation, commands, tmp_path, 3, cold=False, seconds=evaluation.seconds)
    assert (tally.kills, tally.lost, tally.again) == (3, 0, 0)


@pytest.mark.slow
def test_runs_that_are_killed_at_twenty_random_moments_each(
    trained: Evaluation, prompted: Evaluation, commands: Commands, tmp_path: Path
) -> None:
    """Real commands, their imports included."""
    rows = []
    for evaluation in (trained, prompted):
        whole = evaluation.start(commands, tmp_path / f"{evaluation.name}-alone", cold=True)
        began = time.monotonic()
        assert whole.wait() == 0, whole.err
        seconds = time.monotonic() - began
        tally = kill_often(evaluation, commands, tmp_path / evaluation.name, 20, cold=True, seconds=seconds)
        rows.append(tally.row())
        assert (tally.kills, tally.lost, tally.again) == (20, 0, 0)
        assert answers(evaluation.reference) > 50
    print("\n".join(["", HEAD, *rows]))  # noqa: T201  shown with -s
