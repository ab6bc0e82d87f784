"""Files that appear whole or not at all, the error where they cannot be written, and digests of files."""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from functools import lru_cache
from pathlib import Path

from harness.errors import StorageError
from harness.storage.clean_text import redact

__all__ = ["FileNotWrittenError", "cache_folder", "file_digest", "is_full", "publish", "write_atomically"]

_WHOLE = 65_536
"""Bytes up to which a file is read at once."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class FileNotWrittenError(StorageError, OSError):
    """A file cannot be written; also an `OSError` with its number, so that a caller can see the reason."""

    def __init__(self, path: Path, error: OSError) -> None:
        reason = error.strerror or str(error)
        super().__init__(
            f"The file {str(path)!r} cannot be written: {reason}.",
            hint="Make room there." if is_full(error) else None,
        )
        self.errno, self.strerror, self.filename = error.errno, reason, str(path)


def cache_folder() -> Path:
    """Return where fitted models and downloads are kept: ``$HARNESS_CACHE``, else the user's cache folder."""
    given = os.environ.get("HARNESS_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "harness"


def is_full(error: BaseException) -> bool:
    """Return whether an error says that a disk, or what a user may have of it, is full."""
    if isinstance(error, OSError):
        return error.errno in _FULL
    # What writes files in other languages, such as safetensors, passes on the words alone.
    return any(os.strerror(number) in str(error) for number in _FULL)


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file so that a reader sees the old content or the new one, never a part; a text without secrets.

    Raises `StorageError`, which is an `OSError` too, where it cannot be written.
    """
    data = redact(content).encode() if isinstance(content, str) else content
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            publish(Path(temporary), path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise FileNotWrittenError(path, error) from error


def publish(temporary: Path, path: Path) -> None:
    """Give a finished file its name, in the place of an older one; raises `OSError`."""
    temporary.chmod(0o644)
    temporary.replace(path)


def file_digest(path: Path) -> str:
    """Return the SHA-256 (hexadecimal) of a file, which is read again only after a change; raises `OSError`."""
    status = path.stat()
    return _digest(path, (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))


@lru_cache(maxsize=32_768)
def _digest(path: Path, identity: tuple[int, ...]) -> str:
    # The identity, which follows links and changes with the content, is part of the cache's key only.
    with path.open("rb", buffering=0) as file:
        # hashlib.file_digest fills a buffer of 256 KiB, also for a file of one line.
        whole = identity[2] <= _WHOLE
        return (hashlib.sha256(file.read()) if whole else hashlib.file_digest(file, "sha256")).hexdigest()
