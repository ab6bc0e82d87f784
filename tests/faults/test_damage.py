"""Files that a crash, a disk or a person spoiled between two attempts: the good part is used, the rest made again."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from .command import Commands
from .evaluation import Evaluation, answers, assert_same, assert_whole, keys, requests

pytestmark = pytest.mark.thorough

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
