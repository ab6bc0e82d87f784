"""A lock that dies with its process: who holds a folder, on which host, and since when."""

from __future__ import annotations

import contextlib
import datetime
import errno
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import filelock

from harness.errors import StorageError

UNSUPPORTED = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL})
"""What file systems without locks answer."""
PAUSE = 0.2


class FileLock:
    """Held by at most one process.

    The operating system frees it when the process ends, however it ends. On a file system without locks a file
    ``*.soft`` next to it decides: a holder on this host that no longer runs is ignored.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: filelock.BaseFileLock = filelock.FileLock(
            path, thread_local=False, fallback_to_soft=False
        )

    def acquire(
        self,
        *,
        patience: float = 0.0,
        waiting: Callable[[str], None] = lambda _: None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Return whether the lock was acquired within `patience` seconds, before `stopping`; raises `StorageError`.

        `waiting` is called once, with the holder.
        """
        if self._try(0.0, stopping):
            return True
        if not patience:
            return False
        waiting(self.holder())
        return self._try(patience, stopping)

    def holder(self) -> str:
        """Return ``process 12 on host node3, since 2026-01-01 10:00:00``, as far as the file shows it."""
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            return f"process {content['pid']} on host {content['host']}, since {content['since']}"
        except (OSError, ValueError, TypeError, KeyError):
            return "another process"

    def is_held(self) -> bool:
        """Return whether some process has the lock."""
        if not self.path.is_file():
            return False
        probe = FileLock(self.path)
        try:
            return not probe._acquire(0.0, lambda: False)
        except OSError:
            return False
        finally:
            probe._lock.release()

    def release(self) -> None:
        """Let others have it; a second call does nothing."""
        if self._lock.is_locked:
            # Removed while it is held: who waits for it finds that the file has changed, and takes the new one.
            with contextlib.suppress(OSError):
                self.path.unlink()
            self._lock.release()

    def _try(self, patience: float, stopping: Callable[[], bool]) -> bool:
        try:
            if not self._acquire(patience, stopping):
                return False
            since = datetime.datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
            content = {"pid": os.getpid(), "host": socket.gethostname(), "since": since}
            self.path.write_text(json.dumps(content), encoding="utf-8")
        except OSError as error:
            self.release()
            done = "locked" if error.filename is None else "written"
            raise StorageError(f"The file {str(self.path)!r} cannot be {done}: {error.strerror}.") from error
        return True

    def _acquire(self, patience: float, stopping: Callable[[], bool]) -> bool:
        try:
            self._lock.acquire(timeout=patience, poll_interval=PAUSE, cancel_check=stopping)
        except filelock.Timeout:
            return False
        except OSError as error:
            if error.errno not in UNSUPPORTED or isinstance(self._lock, filelock.SoftFileLock):
                raise
            self._lock = filelock.SoftFileLock(f"{self.path}.soft", thread_local=False)
            return self._acquire(patience, stopping)
        return True
