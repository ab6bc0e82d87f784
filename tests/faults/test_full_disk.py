"""Full disks and folders that cannot be written: a run stops with a sentence, and has lost nothing."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.storage.files import FileNotWrittenError
from harness.storage.run_folder import Run

from ..conftest import Cli
from .command import Attempt, Commands
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


@pytest.mark.parametrize("room", [12_000, 24_000, 60_000])
def test_the_disk_is_full(done: Any, cli: Cli, room: int) -> None:
    """First the manifest, then the journal, then nothing is too large."""
    log, manifest = ((done.path / name).stat().st_size for name in ("journal/0.log", "manifest.json"))
    shutil.rmtree(RUN)
    sizes = sorted([manifest, log])
    room = {12_000: manifest // 2, 24_000: (manifest + log) // 2, 60_000: log - 40}[room]
    assert sizes == [manifest, log], "the journal is the largest file"
    command = [sys.executable, "-c", FULL, str(room), *done.command, "--output", "run"]
    stopped = subprocess.run(command, capture_output=True, text=True, check=False)
    assert stopped.returncode == 1, stopped.stderr
    assert "Traceback" not in stopped.stderr
    error = next(line for line in stopped.stderr.splitlines() if line.startswith("Error: "))
    if room < manifest:
        assert "manifest.json' cannot be written: File too large." in error
        assert "--resume" not in error
        return
    assert "run/journal/0.log' cannot be written: File too large." in error
    assert "harness eval --resume run" in error
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
    assert err.endswith(
        "Error: The file 'run/x.json' cannot be written: No space left on device. Make room there. "
        f"All answers so far are kept. {RESUME}"
    )
    assert cli("eval", "--resume", "run")[0] == 0
    done.assert_equal(RUN)


def test_the_cache_cannot_be_written(done: Any, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("file").write_text("", encoding="utf-8")
    monkeypatch.setenv("HARNESS_CACHE", "file")
    status, _, err = cli(*done.command, "--output", "second")
    assert status == 1
    assert "Error: The cache folder 'file/fits' cannot be written: " in err
    assert "Let HARNESS_CACHE name another one. All answers so far are kept. " in err
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


Mount = Callable[..., Path]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Mount]:
    """A function that mounts a disk of so many KiB."""
    mounted: list[Path] = []

    def mount(name: str, size: int) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}k", "none", str(folder)],
            capture_output=True,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"no disk can be mounted here: {done.stderr.decode(errors='replace').strip()}")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path, left: int) -> Path:
    """Fill a disk but for so many KiB, and return the file that does."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            size = file.tell()
        file.truncate(max(0, size - left * 1024))
    return filler


def assert_stopped(attempt: Attempt, *parts: str) -> None:
    """The command ended with one sentence that has these parts."""
    assert attempt.wait() == 1
    last = attempt.err.splitlines()[-1]
    assert last.startswith("Error: ")
    assert "Traceback" not in attempt.err
    for part in parts:
        assert part in last


def test_the_disk_of_the_run_is_full(prompted: Evaluation, commands: Commands, small_disk: Mount) -> None:
    run = small_disk("disk", 4096) / "run"
    attempt = prompted.start(commands, run)
    attempt.until(lambda: answers(run) > 0, "first answer")
    filler = fill(run.parent, 4)
    assert_stopped(attempt, "No space left on device", f"harness eval --resume {run}")
    assert answers(run) < answers(prompted.reference)

    again = prompted.start(commands, run)
    assert_stopped(again, "No space left on device", str(run))

    filler.unlink()
    prompted.finish(commands, run)
    assert_whole(run, prompted.reference)


def test_the_disk_of_the_cache_is_full(
    trained: Evaluation, commands: Commands, small_disk: Mount, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    commands.cache = small_disk("cache", 700)
    attempt = trained.start(commands, run, faults={})
    assert_stopped(attempt, "No space left on device", str(commands.cache), f"harness eval --resume {run}")
    assert answers(run) == 0

    subprocess.run(["mount", "-o", "remount,size=40m", str(commands.cache)], check=True)
    trained.finish(commands, run)
    assert_whole(run, trained.reference)


def test_a_folder_that_cannot_be_written(
    prompted: Evaluation, commands: Commands, small_disk: Mount, tmp_path: Path
) -> None:
    disk = small_disk("disk", 4096)
    run = disk / "run"
    attempt = prompted.start(commands, run)
    attempt.until(lambda: answers(run) > 0, "first answer")
    attempt.kill()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    rejected = prompted.start(commands, disk / "other", faults={})
    assert rejected.wait() == 2
    assert "cannot be written: Read-only file system." in rejected.err.splitlines()[-1]
    assert_stopped(prompted.start(commands, run, faults={}), str(run), "Read-only file system")

    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    prompted.finish(commands, run)
    assert_whole(run, prompted.reference)
