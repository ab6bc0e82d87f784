"""Full disks and folders that cannot be written: the run stops with one sentence and is resumed later."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .command import Attempt, Commands
from .evaluation import Evaluation, answers, assert_whole

pytestmark = pytest.mark.thorough

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
