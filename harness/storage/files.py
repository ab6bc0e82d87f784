"""Files that appear whole or not at all, and the error where they cannot be written."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from harness.errors import StorageError
from harness.storage.clean_text import redact

__all__ = ["FileNotWrittenError", "cache_folder", "is_full", "publish", "write_atomically"]

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
