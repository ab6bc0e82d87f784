"""A lock between real processes: one holder, freed by whatever ends it."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.errors import StorageError
from harness.storage.file_lock import FileLock

pytestmark = pytest.mark.thorough

HOLD = """
import errno, fcntl, os, sys
from pathlib import Path
from harness.storage.file_lock import FileLock

def reject(*_):
    raise OSError(errno.ENOLCK, "No locks available")

if "NO_LOCKS" in os.environ:
    fcntl.flock = reject
lock = FileLock(Path(sys.argv[1]))
assert lock.acquire()
print("held", flush=True)
sys.stdin.readline()
lock.release()
print("released", flush=True)
sys.stdin.readline()
"""
TURNS = """
import os, sys, time
from pathlib import Path
from harness.storage import file_lock

file_lock.PAUSE = 0.001
path, inside = Path(sys.argv[1]), Path(sys.argv[2])
for _ in range(40):
    lock = file_lock.FileLock(path)
    assert lock.acquire(patience=60)
    os.close(os.open(inside, os.O_CREAT | os.O_EXCL))  # fails where another one is inside
    time.sleep(0.0005)
    inside.unlink()
    lock.release()
"""
Holder = subprocess.Popen[str]


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[Callable[[], Holder]]:
    """Start a process that holds the lock ``tmp_path/lock`` until it gets a line on stdin."""
    started: list[Holder] = []

    def start() -> Holder:
        command = [sys.executable, "-c", HOLD, str(tmp_path / "lock")]
        holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(holder)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        return holder

    yield start
    for holder in started:
        holder.kill()
        holder.communicate()


def _release(holder: Holder) -> None:
    assert holder.stdin is not None
    assert holder.stdout is not None
    holder.stdin.write("\n")
    holder.stdin.flush()
    assert holder.stdout.readline() == "released\n"


def test_a_second_process_is_rejected_until_the_first_releases(
    tmp_path: Path, hold: Callable[[], Holder]
) -> None:
    holder, lock = hold(), FileLock(tmp_path / "lock")
    assert not lock.acquire()
    assert lock.is_held()
    assert lock.holder().startswith(f"process {holder.pid} on host {socket.gethostname()}, since 20")
    _release(holder)
    assert not (tmp_path / "lock").exists()
    assert not lock.is_held()
    assert lock.acquire()
    assert FileLock(tmp_path / "lock").is_held()
    lock.release()
    lock.release()
    assert not (tmp_path / "lock").exists()


def test_a_killed_process_holds_nothing(tmp_path: Path, hold: Callable[[], Holder]) -> None:
    holder, lock = hold(), FileLock(tmp_path / "lock")
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (tmp_path / "lock").exists()
    assert not lock.is_held()
    assert lock.acquire()
    assert f"process {os.getpid()} on" in lock.holder()
    lock.release()


def test_a_waiting_process_is_notified_once_and_gets_the_lock(
    tmp_path: Path, hold: Callable[[], Holder], monkeypatch: pytest.MonkeyPatch
) -> None:
    holder, notices = hold(), list[str]()

    def sleep(seconds: float) -> None:
        if len(slept) == 3:
            _release(holder)
        slept.append(seconds)

    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", sleep)
    lock = FileLock(tmp_path / "lock")
    assert lock.acquire(patience=60, waiting=notices.append)
    assert len(notices) == 1
    assert f"process {holder.pid} on host" in notices[0]
    lock.release()


def test_who_waits_gives_up(tmp_path: Path, hold: Callable[[], Holder]) -> None:
    hold()
    lock = FileLock(tmp_path / "lock")
    started = time.monotonic()
    assert not lock.acquire(patience=0.5)
    assert time.monotonic() - started >= 0.5
    wishes = iter([False, True])  # a third question would be an error
    assert not lock.acquire(patience=60, stopping=lambda: next(wishes))


def test_many_take_turns_and_never_two_are_inside(tmp_path: Path) -> None:
    """Each removes the file that others wait for."""
    command = [sys.executable, "-c", TURNS, str(tmp_path / "lock"), str(tmp_path / "inside")]
    started = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    assert [(process.communicate(timeout=120)[1], process.returncode) for process in started] == [("", 0)] * 4
    assert list(tmp_path.iterdir()) == []


def test_a_lock_dies_with_its_process_and_not_with_a_child(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    assert lock.acquire()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True) as child:
        lock.release()
        assert FileLock(tmp_path / "lock").acquire(), "a child does not inherit it"
        child.communicate("\n")


@pytest.mark.parametrize("content", ["", "{", "[1]", "\xff"])
def test_a_file_that_says_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "lock").write_bytes(content.encode("latin-1"))
    lock = FileLock(tmp_path / "lock")
    assert lock.holder() == "another process"
    assert not lock.is_held()
    assert lock.acquire()
    lock.release()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "nowhere" / "lock")
    assert not lock.is_held()
    assert not (tmp_path / "nowhere").exists()
    (tmp_path / "file").touch()
    with pytest.raises(StorageError) as caught:
        FileLock(tmp_path / "file" / "lock").acquire()
    assert caught.value.__cause__ is not None


@pytest.fixture
def unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without locks."""

    def reject(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", reject)
    monkeypatch.setenv("NO_LOCKS", "1")


@pytest.mark.usefixtures("unsupported")
def test_without_locks_the_content_decides(tmp_path: Path, hold: Callable[[], Holder]) -> None:
    holder, lock = hold(), FileLock(tmp_path / "lock")
    assert not lock.acquire()
    assert lock.is_held()
    holder.kill()
    holder.wait()
    assert not lock.is_held()
    assert lock.acquire()
    assert not FileLock(tmp_path / "lock").acquire()
    lock.release()
    assert not (tmp_path / "lock").exists()


def test_another_fault_of_the_file_system_is_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(*_: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fcntl, "flock", reject)
    with pytest.raises(StorageError, match=r"lock' cannot be locked: Input/output error\."):
        FileLock(tmp_path / "lock").acquire()
