"""A lock that dies with its process: who holds a folder, on which host, and since when."""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.errors import StorageError

__all__ = ["FileLock"]

UNSUPPORTED = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL})
"""What file systems without locks answer; then the content of the file decides."""
PAUSE = 0.2


class FileLock:
    """Held by at most one process.

    The operating system frees it when the process ends, however it ends. On a file system without locks the file's
    content decides: a holder on this host that no longer runs is ignored.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

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
        until = time.monotonic() + patience
        reported = False
        while not self._try():
            if not reported and patience:
                waiting(self.holder())
                reported = True
            if time.monotonic() >= until or stopping():
                return False
            time.sleep(PAUSE)
        return True

    def holder(self) -> str:
        """Return ``process 12 on host node3, since 2026-01-01 10:00:00``, as far as the file shows it."""
        content = self._content()
        if not content:
            return "another process"
        return f"process {content.get('pid')} on host {content.get('host')}, since {content.get('since')}"

    def is_held(self) -> bool:
        """Return whether some process has the lock; changes nothing."""
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError as error:
            return error.errno in UNSUPPORTED and self._is_alive()
        finally:
            os.close(handle)
        return False

    def release(self) -> None:
        """Let others have it; a second call does nothing."""
        handle, self._handle = self._handle, None
        if handle is not None:
            # Removed while it is held: who waits for it finds that the file has changed, and takes the new one.
            with contextlib.suppress(OSError):
                self.path.unlink()
            os.close(handle)

    def _try(self) -> bool:
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StorageError(f"The file {str(self.path)!r} cannot be written: {error.strerror}.") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                os.close(handle)
                raise StorageError(
                    f"The file {str(self.path)!r} cannot be locked: {error.strerror}."
                ) from error
            if self._is_alive():
                os.close(handle)
                return False
        if not self._is_current(handle):
            os.close(handle)
            return self._try()
        self._handle = handle
        self._write(handle)
        return True

    def _is_current(self, handle: int) -> bool:
        """Return whether the open file is still the one of that name: its last holder removed it."""
        try:
            return os.path.samestat(os.fstat(handle), self.path.stat())
        except FileNotFoundError:
            return False

    def _write(self, handle: int) -> None:
        since = datetime.datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
        content = {"pid": os.getpid(), "host": socket.gethostname(), "since": since}
        try:
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps(content).encode(), 0)
        except OSError as error:
            self.release()
            raise StorageError(f"The file {str(self.path)!r} cannot be written: {error.strerror}.") from error

    def _content(self) -> dict[str, Any]:
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def _is_alive(self) -> bool:
        content = self._content()
        if not content:
            return False
        if content.get("host") != socket.gethostname():
            return True
        try:
            os.kill(int(content["pid"]), 0)
        except ProcessLookupError:
            return False
        except (PermissionError, KeyError, ValueError):
            return True
        return True
