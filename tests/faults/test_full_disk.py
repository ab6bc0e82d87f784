"""Full disks and folders that cannot be written: a run stops with a sentence, and has lost nothing."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.storage.files import FileNotWrittenError
from harness.storage.run_folder import Run

from ..conftest import Cli
from .command import Commands
from .evaluation import Evaluation, answers, assert_whole, requests

pytestmark = pytest.mark.thorough


RUN = Path("run")
RESUME = "Resume it with: harness eval --resume run\n"
# The limit on the size of files is a full disk that needs no rights.
FULL = """
import resource, sys
from harness.cli.main import run_command

_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), hard))
sys.exit(run_command(sys.argv[2:]))
"""


@pytest.mark.parametrize("largest", ["manifest", "journal"])
@pytest.mark.parametrize("share", [0.5, 0.99])
def test_the_disk_is_full(done: Any, cli: Cli, largest: str, share: float) -> None:
    """First the manifest, then the journal is too large."""
    log, manifest = ((done.path / name).stat().st_size for name in ("journal/0.log", "manifest.json"))
    assert manifest < log, "the journal is the largest file"
    shutil.rmtree(RUN)
    room = int(share * manifest if largest == "manifest" else manifest + share * (log - manifest))
    command = [sys.executable, "-c", FULL, str(room), *done.command, "--output", "run"]
    stopped = subprocess.run(command, capture_output=True, text=True, check=False)
    assert stopped.returncode == 1, stopped.stderr
    assert "Traceback" not in stopped.stderr
    error = next(line for line in stopped.stderr.splitlines() if line.startswith("Error: "))
    assert ("harness eval --resume run" in error) == (largest == "journal")
    if largest == "manifest":
        assert "manifest.json' cannot be written: File too large." in error
        return
    assert "run/journal/0.log' cannot be written: File too large." in error
    assert {cell.status for cell in Run(RUN).cells} <= {"ok", "skipped"}
    kept = answers(RUN)
    assert 0 < kept < done.planned
    status, _, err = cli("eval", "--resume", "run")
    assert status == 0, err
    done.assert_equal(RUN)
    assert requests(RUN)["asked"] == answers(done.path) - kept


@pytest.mark.parametrize("name", ["records", "cells"])
def test_a_file_in_the_way_of_what_is_kept(done: Any, cli: Cli, name: str) -> None:
    for folder in {name, "cells"}:
        shutil.rmtree(RUN / folder)
    (RUN / name).write_text("", encoding="utf-8")
    status, out, err = cli("eval", "--resume", "run")
    assert (status, out) == (1, "")
    assert f"Error: The file 'run/{name}/" in err
    assert " cannot be written: " in err
    assert err.endswith(f"All answers so far are kept. {RESUME}")
    assert {cell.status for cell in Run(RUN).cells} == {"skipped"}
    (RUN / name).unlink()
    assert cli("eval", "--resume", "run")[0] == 0
    done.assert_equal(RUN)
    assert requests(RUN)["asked"] == 0


def test_a_file_in_the_way_of_a_traceback(cli: Cli, flaky: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAKY", "1")
    command = ("eval", "--tasks", "xnli:de+hi", "--model", "flaky:it", "--data", "sample", "--limit", "4")
    assert cli(*command, "--output", "run")[0] == 1
    shutil.rmtree(RUN / "failures")
    (RUN / "failures").write_text("", encoding="utf-8")
    status, _, err = cli("eval", "--resume", "run")
    assert status == 1
    assert "Error: The file 'run/failures/" in err
    assert err.endswith(f"All answers so far are kept. {RESUME}")


@pytest.mark.parametrize("name", ["write_results", "write_manifest"])
def test_no_space_is_left(done: Any, cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def full(self: Run, content: Any) -> None:
        raise FileNotWrittenError(self.path / "x.json", OSError(errno.ENOSPC, "No space left on device"))

    shutil.rmtree(RUN / "cells")
    with monkeypatch.context() as patch:
        patch.setattr(Run, name, full)
        status, _, err = cli("eval", "--resume", "run")
    assert status == 1
    assert "Error: The file 'run/x.json' cannot be written: No space left on device. Make room there." in err
    assert err.endswith(RESUME)
    assert cli("eval", "--resume", "run")[0] == 0
    done.assert_equal(RUN)


def test_the_cache_cannot_be_written(done: Any, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("file").write_text("", encoding="utf-8")
    monkeypatch.setenv("HARNESS_CACHE", "file")
    status, _, err = cli(*done.command, "--output", "second")
    assert status == 1
    assert "Error: The cache folder 'file/fits' cannot be written: " in err
    assert err.endswith("harness eval --resume second\n")
    monkeypatch.setenv("HARNESS_CACHE", str(done.cache))
    assert cli("eval", "--resume", "second")[0] == 0
    done.assert_equal(Path("second"))


# Root may write everywhere, unless it gives that right (CAP_DAC_OVERRIDE) up for what it executes.
BOUND = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def _bound(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python without the right to write where the permissions forbid it."""
    return subprocess.run(
        [sys.executable, "-c", BOUND, *arguments],
        cwd=folder,
        env={**os.environ, "HARNESS_CACHE": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_folder_that_may_only_be_read(done: Any) -> None:
    folder = Path.cwd()
    shutil.copytree(done.cache, "cache")
    paths = [folder, *folder.rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        if _bound(folder, "-c", "open('file', 'w')").returncode == 0:
            pytest.skip("this user may write everywhere")
        resumed = _bound(folder, "-m", "harness", "eval", "--resume", "run")
        first = _bound(folder, "-m", "harness", *done.command, "--output", "other")
    finally:
        for path in paths:
            path.chmod(path.stat().st_mode | stat.S_IWUSR)
    assert resumed.returncode == 1
    assert "Error: The file 'run/run.lock' cannot be written: Permission denied." in resumed.stderr
    assert first.returncode == 2
    assert "Error: The output folder 'other' cannot be written: Permission denied." in first.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 700 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=700k", "none", str(folder)]
    mounted = subprocess.run(command, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.decode(errors='replace').strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_the_disk_of_the_cache_is_full(
    trained: Evaluation, commands: Commands, small_disk: Path, tmp_path: Path
) -> None:
    run, commands.cache = tmp_path / "run", small_disk
    attempt = trained.start(commands, run, faults={})
    assert attempt.wait() == 1
    last = attempt.err.splitlines()[-1]
    assert last.startswith("Error: ")
    for part in ("No space left on device", str(commands.cache), f"harness eval --resume {run}"):
        assert part in last
    assert "Traceback" not in attempt.err
    assert answers(run) == 0

    subprocess.run(["mount", "-o", "remount,size=40m", str(commands.cache)], check=True)
    trained.finish(commands, run)
    assert_whole(run, trained.reference)
