"""A resumed run ends as if nothing had happened, whatever was lost meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.running.inference import CachedAdapter
from harness.storage.journal_log import Log
from harness.storage.run_folder import Run

from ..conftest import Cli
from .evaluation import answers, requests

RUN = Path("run")


def _resume(cli: Cli, *further: str) -> tuple[str, str]:
    status, out, err = cli("eval", "--resume", "run", *further)
    assert status == 0, err
    return out, err


def test_a_finished_run_is_not_touched(done: Any, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_model(*_: object) -> None:
        raise AssertionError("a model was opened")

    monkeypatch.setattr("harness.models.adapters.AdapterEntry.open", no_model)
    results = Run(RUN).results
    _, err = _resume(cli)
    assert "5 of 5 cells are done already." in err
    done.assert_equal(RUN)
    assert requests(RUN) == {"planned": done.planned, "asked": 0, "reused": done.planned}
    run = Run(RUN)
    for name in ("fits", "tasks", "suites", "model", "notes"):
        assert getattr(run.results, name) == getattr(results, name)
    assert len(run.manifest.resumed) == run.results.run.resumed == 1
    assert answers(RUN) == answers(done.path)
    _resume(cli)
    assert Run(RUN).results.run.resumed == 2


def _halved(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)


def _removed(path: Path) -> None:
    path.unlink()


def _other_score(path: Path) -> None:
    """Damage that leaves the file readable."""
    text = path.read_text(encoding="utf-8")
    head, value = text.split('"value":', 1)
    path.write_text(f'{head}"value":0.123{value[value.index(",") :]}', encoding="utf-8")


def _nothing(path: Path) -> None:
    path.write_bytes(b"")


def _list(path: Path) -> None:
    path.write_text("[]", encoding="utf-8")


DAMAGES = [
    *(("cells/*.json", damage, 0) for damage in (_halved, _flipped, _removed, _other_score, _nothing, _list)),
    *(("records/xnli/hi/*.parquet", damage, 4) for damage in (_halved, _flipped, _removed, _nothing)),
    *(("results.json", damage, 5) for damage in (_halved, _removed, _nothing)),
]
"""Files, their damage, and how many of five cells are still done."""


@pytest.mark.parametrize(("files", "damage", "cells"), DAMAGES)
def test_damaged_files_are_written_anew(
    done: Any, cli: Cli, files: str, damage: Callable[[Path], None], cells: int
) -> None:
    for file in RUN.glob(files):
        damage(file)
        (file.parent / f".{file.name}.k2jx9").write_bytes(b"\0garbage")  # of a write that was under way
    _, err = _resume(cli)
    assert (f"{cells} of 5 cells are done already." in err) == (cells > 0)
    done.assert_equal(RUN)
    assert requests(RUN) == {"planned": done.planned, "asked": 0, "reused": done.planned}
    assert answers(RUN) == answers(done.path)
    assert "5 of 5 cells are done already." in _resume(cli)[1]
    done.assert_equal(RUN)


@pytest.mark.thorough
@pytest.mark.parametrize("cut", [0, 10, 1_000, 5_001, 9_000])
@pytest.mark.parametrize("finished", [True, False])
def test_the_journal_is_cut_off(done: Any, cli: Cli, cut: int, finished: bool) -> None:
    log = RUN / "journal" / "0.log"
    log.write_bytes(log.read_bytes()[:cut])
    lost = answers(done.path) - answers(RUN)
    assert lost > 0
    if not finished:
        shutil.rmtree(RUN / "cells")
    _resume(cli)
    done.assert_equal(RUN)
    asked = 0 if finished else lost
    assert requests(RUN) == {"planned": done.planned, "asked": asked, "reused": done.planned - asked}


def test_a_byte_of_the_journal_is_flipped(done: Any, cli: Cli) -> None:
    log = RUN / "journal" / "0.log"
    *_, (position, size, _) = Log(log).records()
    content = bytearray(log.read_bytes())
    content[position + size // 2] ^= 1
    log.write_bytes(content)
    shutil.rmtree(RUN / "cells")
    _, err = _resume(cli)
    assert "1 place is damaged in the journal" in err
    done.assert_equal(RUN)
    assert requests(RUN)["asked"] == 1


def test_the_journal_is_lost_and_one_cell(done: Any, cli: Cli) -> None:
    shutil.rmtree(RUN / "journal")
    [cell] = [cell for cell in Run(RUN).cells if cell.language == "hi"]
    (RUN / "cells" / f"{cell.digest}.json").unlink()
    _resume(cli)
    done.assert_equal(RUN)
    assert requests(RUN)["asked"] == cell.n


def test_all_is_lost_but_the_manifest_and_the_journal(done: Any, cli: Cli) -> None:
    for name in ("cells", "records"):
        shutil.rmtree(RUN / name)
    (RUN / "results.json").unlink()
    shutil.rmtree(done.cache)
    _resume(cli)
    done.assert_equal(RUN)
    assert requests(RUN)["asked"] == 0, "what is fitted anew is the same model"


@pytest.mark.parametrize("stop", [1, 7, 20])
def test_a_run_that_was_stopped(done: Any, cli: Cli, monkeypatch: pytest.MonkeyPatch, stop: int) -> None:
    shutil.rmtree(RUN)
    monkeypatch.setattr("harness.running.inference.BLOCK_CHARACTERS", 1)
    write, written = CachedAdapter._write, [0]

    def stopping(self: CachedAdapter, *arguments: Any) -> None:
        write(self, *arguments)
        written[0] += 1
        if written[0] == stop:
            self.interruption._asked = time.monotonic()

    with monkeypatch.context() as patch:
        patch.setattr(CachedAdapter, "_write", stopping)
        status, _, err = cli(*done.command, "--output", "run")
    assert status == 130
    assert err.endswith("harness eval --resume run\n")
    assert answers(RUN) == stop
    assert {cell.status for cell in Run(RUN).cells} <= {"ok", "skipped"}
    _resume(cli)
    done.assert_equal(RUN)
    assert requests(RUN)["asked"] == answers(done.path) - stop
    assert answers(RUN) == answers(done.path), "nothing was asked twice"


@pytest.mark.parametrize("step", [-3600.0, 0.0])
def test_a_clock_that_goes_backwards(
    done: Any, cli: Cli, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    shutil.rmtree(RUN)
    now = [time.time()]

    def clock() -> float:
        now[0] += step
        return now[0]

    monkeypatch.setattr(time, "time", clock)
    monkeypatch.setattr(time, "time_ns", lambda: int(clock() * 1e9))
    assert cli(*done.command, "--output", "run")[0] == 0
    results = Run(RUN).results
    assert results.run.seconds >= 0
    assert all(cell.seconds >= 0 for cell in results.cells)
    shutil.rmtree(RUN / "cells")
    later = now[0] + 2 * 24 * 3600
    for path in RUN.rglob("*"):
        os.utime(path, (later, later))
    _resume(cli)
    done.assert_equal(RUN)
    assert requests(RUN)["asked"] == 0


def test_baselines_of_a_model_are_resumed(done: Any, cli: Cli) -> None:
    shutil.rmtree(RUN)
    status, _, err = cli(*done.command, "--with-baselines", "--output", "run")
    assert status == 0, err
    [baseline] = RUN.glob("baselines/*")
    before = [cell.metrics for cell in Run(baseline).cells]
    for lost, share in (("cells", 0), (".", 1)):
        shutil.rmtree(baseline / lost)
        _resume(cli)
        assert [cell.metrics for cell in Run(baseline).cells] == before
        assert requests(baseline)["asked"] == share * requests(baseline)["planned"]


def test_a_run_that_was_moved(done: Any, cli: Cli) -> None:
    RUN.rename("moved")
    shutil.rmtree("moved/cells")
    status, _, err = cli("eval", "--resume", "moved")
    assert status == 0, err
    done.assert_equal(Path("moved"))
    assert requests(Path("moved"))["asked"] == 0


def test_one_shard_stays_one_shard(done: Any, cli: Cli) -> None:
    shutil.rmtree(RUN)
    assert cli(*done.command, "--shard", "2/2", "--output", "run")[0] == 0
    cells = [cell.digest for cell in Run(RUN).cells]
    assert 0 < len(cells) < 5
    shutil.rmtree(RUN / "cells")
    _resume(cli)
    run = Run(RUN)
    assert [cell.digest for cell in run.cells] == cells
    assert run.manifest.shard == "2/2"
    assert requests(RUN)["asked"] == 0


@pytest.mark.usefixtures("flaky")
def test_a_cell_that_failed_is_tried_again_and_the_others_are_not(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLAKY", "1")
    command = ("eval", "--tasks", "xnli:de+hi+sw", "--model", "flaky:it", "--data", "sample", "--limit", "4")
    assert cli(*command, "--output", "run")[0] == 1
    run = Run(RUN)
    [failed] = [cell for cell in run.cells if cell.status == "failed"]
    assert failed.traceback == f"failures/{failed.digest}.txt"
    trace = (RUN / failed.traceback).read_text(encoding="utf-8")
    assert trace.startswith("xnli:hi\nTraceback (most recent call last):\n")
    assert trace.endswith("RuntimeError: out of order\n")
    assert "in classify" in trace
    assert len(list(RUN.glob("cells/*.json"))) == 2
    assert not list(RUN.glob("records/xnli/hi/*"))
    status, out, err = cli("eval", "--resume", "run")
    assert status == 1
    assert "2 of 3 cells are done already." in err
    assert "out of order" in out
    assert Run(RUN).results.run.requests == {"planned": 8, "asked": 0, "reused": 8}
    monkeypatch.delenv("FLAKY")
    _resume(cli)
    run = Run(RUN)
    assert {cell.status for cell in run.cells} == {"ok"}
    assert run.results.run.requests == {"planned": 12, "asked": 4, "reused": 8}


def test_the_journal_is_what_the_records_say(done: Any) -> None:
    """The test's own count of answers is right."""
    assert requests(RUN)["asked"] == answers(RUN)
    assert Log(RUN / "journal" / "0.log").bad == []
    assert json.loads((RUN / "manifest.json").read_text(encoding="utf-8"))["resumed"] == []
