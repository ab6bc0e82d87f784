"""Files that appear whole or not at all, the error where they cannot be written, digests, and files of models."""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from functools import lru_cache
from pathlib import Path, PurePath

from harness.errors import StorageError
from harness.storage.redaction import redact

WEIGHT_SUFFIXES = frozenset(
    {".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".onnx", ".ot", ".gguf"}
)
_DOCUMENT_SUFFIXES = frozenset({".md", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".pyc"})
_DOCUMENTS = ("README", "LICENSE", "LICENCE", "NOTICE", "USE_POLICY", "CITATION")
_OTHER_MODELS = frozenset({"onnx", "openvino", "coreml", "original", "runs"})
"""Folders of other formats and of training logs."""

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
    folder = os.environ.get("HARNESS_CACHE")
    if folder:
        return Path(folder)
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
    """Return the SHA-256 (hexadecimal) of a file, which is read again only after a change; raises `OSError`.

    The time of the last change of its state counts too: any program can set the other time back, as copies do.
    """
    status = path.stat()
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return _digest(path, (status.st_dev, status.st_ino, status.st_size, *times))


@lru_cache(maxsize=32_768)
def _digest(path: Path, identity: tuple[int, ...]) -> str:
    # The identity, which follows links and changes with the content, is part of the cache's key only.
    with path.open("rb", buffering=0) as file:
        # hashlib.file_digest fills a buffer of 256 KiB, also for a file of one line.
        is_small = identity[2] <= _WHOLE
        return (hashlib.sha256(file.read()) if is_small else hashlib.file_digest(file, "sha256")).hexdigest()


def configuration_files(folder: Path) -> list[str]:
    """Return the relative names of a model folder's files that a library may read, but its weights; sorted.

    Everything counts that is not known to change no answer: a name that is missing from a list of files would give
    one model the stored answers of another. Left out are documents, hidden files and folders, checkpoints of a
    training, and weights, whose digests are an identity's other half.
    """
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(file.as_posix() for file in files if not _is_ignored(file))


def _is_ignored(file: PurePath) -> bool:
    folders = file.parts[:-1]
    return (
        file.suffix.lower() in WEIGHT_SUFFIXES | _DOCUMENT_SUFFIXES
        or (file.suffix in {"", ".txt"} and file.name.upper().startswith(_DOCUMENTS))
        or any(name.startswith(".") for name in file.parts)
        or any(name in _OTHER_MODELS or name.startswith("checkpoint-") for name in folders)
    )
