"""Fingerprints of models: digests of their files, or what their server reports about them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from harness_vllm.connection import ServedModel

__all__ = ["folder_fingerprint", "served_fingerprint"]

MODEL_FILES = (
    "*.safetensors",
    "*.bin",
    "*.pt",
    "*.pth",
    "*.gguf",
    "*.json",
    "*.jinja",
    "*.model",
    "*.txt",
    "1_Pooling/config.json",
)

_digests: dict[tuple[str, int, int], str] = {}
"""Digests by (path, size, time of change), so that a model's weights are read once per process."""


def folder_fingerprint(folder: Path) -> dict[str, str]:
    """Return the SHA-256 digest of the names and contents of a model's files; raises `OSError`."""
    files = sorted({file for pattern in MODEL_FILES for file in folder.glob(pattern)})
    if not files:
        raise FileNotFoundError(str(folder))
    whole = hashlib.sha256()
    for file in files:
        whole.update(f"{file.relative_to(folder).as_posix()}={_digest(file)}\n".encode())
    return {"files": whole.hexdigest()}


def served_fingerprint(served: ServedModel, *, local: bool) -> dict[str, str]:
    """Return the digest of the folder that a server on this machine names, else what the server reports.

    A path on another machine gives no digest, but it distinguishes two models of one name.
    """
    reported = {"server.parent": served.parent, "server.root": served.root}
    found = {name: value for name, value in reported.items() if value is not None}
    if not local or served.root is None:
        return found
    try:
        folder = Path(served.root).expanduser()
        files = folder_fingerprint(folder) if folder.is_dir() else {}
    except (OSError, RuntimeError):
        return found
    if files:
        del found["server.root"]
    return {**found, **files}


def _digest(file: Path) -> str:
    status = file.stat()
    key = (str(file.resolve()), status.st_size, status.st_mtime_ns)
    if key not in _digests:
        with file.open("rb") as stream:
            _digests[key] = hashlib.file_digest(stream, "sha256").hexdigest()
    return _digests[key]
