"""Commands that are killed or interrupted at any moment, and what they leave: no answer is lost or wrong."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from .command import Attempt, Commands, descendants, wait_until
from .evaluation import Evaluation, answers, assert_same, assert_whole, keys, repeated, requests

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


Damage = Callable[[Path, random.Random], None]


def truncate(log: Path, chance: random.Random) -> None:
    os.truncate(log, chance.randrange(log.stat().st_size))


def flip(log: Path, chance: random.Random) -> None:
    content = bytearray(log.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    log.write_bytes(content)


def delete(log: Path, chance: random.Random) -> None:
    log.unlink()


@pytest.mark.parametrize("damage", [truncate, flip, delete])
def test_a_damaged_journal(prompted: Evaluation, commands: Commands, tmp_path: Path, damage: Damage) -> None:
    run = tmp_path / "run"
    shutil.copytree(prompted.reference, run)
    for name in ("cells", "records"):
        shutil.rmtree(run / name)
    before = answers(run)
    damage(run / "journal" / "0.log", random.Random(damage.__name__))
    left = answers(run) if (run / "journal" / "0.log").exists() else 0
    assert left < before
    attempt = prompted.finish(commands, run)
    assert_same(run, prompted.reference)
    assert requests(run)["asked"] == before - left
    assert len(set(keys(run))) == before
    if damage is flip:
        assert "damaged in the journal" in attempt.err


def test_files_that_are_half_written(trained: Evaluation, filled_cache: Commands, tmp_path: Path) -> None:
    """Records, cells, results, and what writes that were under way left behind."""
    run = tmp_path / "run"
    shutil.copytree(trained.reference, run)
    records = sorted((run / "records").rglob("*.parquet"))
    cells = sorted((run / "cells").glob("*.json"))
    os.truncate(records[0], records[0].stat().st_size // 2)
    records[1].unlink()
    others = [path for path in cells if path.stem not in {records[0].stem, records[1].stem}]
    others[0].write_text('{"result": {"task": "xn', encoding="utf-8")
    others[1].write_text("[]", encoding="utf-8")
    for folder in (run, run / "cells", run / "journal", records[0].parent):
        (folder / f".{folder.name}.json.k2jx9").write_bytes(b"\0garbage")
    (run / "results.json").write_text("{", encoding="utf-8")
    trained.finish(filled_cache, run)
    assert requests(run)["asked"] == 0
    assert_whole(run, trained.reference)


def test_what_an_interrupted_fit_left_is_torn(
    trained: Evaluation, commands: Commands, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    attempt = trained.start(commands, run)
    fits = commands.cache / "fits"
    attempt.until(lambda: len(list(fits.glob(".*.partial/checkpoints/step-*"))) > 0, "first checkpoint")
    attempt.kill()
    (partial,) = fits.glob(".*.partial")
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


def test_a_clock_that_goes_backwards(prompted: Evaluation, commands: Commands, tmp_path: Path) -> None:
    """The second attempt believes that all files are of the day after tomorrow."""
    run, days = tmp_path / "run", 2 * 24 * 3600.0
    attempt = prompted.start(commands, run, faults={"pace": prompted.pace, "clock": days})
    attempt.until(lambda: answers(run) >= 20, "first answers")
    attempt.kill()
    later = time.time() + days
    for path in [run, *run.rglob("*")]:
        os.utime(path, (later, later))
    known = answers(run)
    prompted.finish(commands, run, faults={"clock": -days})
    assert requests(run)["reused"] >= known
    assert_whole(run, prompted.reference)
