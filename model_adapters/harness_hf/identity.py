"""The identity of a model: digests of its files, and versions of the libraries that run it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from harness_hf.fit_record import RECORD_NAME, SCALE_NAME
from harness_hf.model_folder import SENTENCE_FILES, weight_files

__all__ = ["LIBRARIES", "folder_identity", "library_versions"]

LIBRARIES = ("torch", "transformers", "tokenizers")
SMALL_FILES = (
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    *SENTENCE_FILES,
    "1_Pooling/config.json",
    RECORD_NAME,
    SCALE_NAME,
)
"""Files besides the weights that change answers; a folder may hold others that do not."""

_digests: dict[tuple[str, int, int], str] = {}
"""Digests by (path, size, time of change), so that a model's weights are read once per process."""


def folder_identity(folder: Path, further: Sequence[str] = ()) -> dict[str, str]:
    """Return SHA-256 digests of a model's weights and of its small files (configuration, tokenizer).

    `further` names small files that change the answers of this kind of model only.
    """
    small = [name for name in (*SMALL_FILES, *further) if (folder / name).is_file()]
    weights = hashlib.sha256("".join(_digest(file) for file in weight_files(folder)).encode("ascii"))
    named = "".join(
        f"{name}={_record_digest(folder / name) if name == RECORD_NAME else _digest(folder / name)}\n"
        for name in small
    )
    return {"weights": weights.hexdigest(), "files": hashlib.sha256(named.encode()).hexdigest()}


def library_versions() -> dict[str, str]:
    """Return the installed versions of the libraries that compute the answers."""
    return {library: version(library) for library in LIBRARIES}


def _record_digest(file: Path) -> str:
    """Return the digest of the record of a fit, without its interruptions, which change no answer."""
    content = json.loads(file.read_text(encoding="utf-8"))
    lasting = {name: value for name, value in content.items() if name != "resumed_at"}
    return hashlib.sha256(json.dumps(lasting, sort_keys=True).encode()).hexdigest()


def _digest(file: Path) -> str:
    """Return the SHA-256 digest of a file, remembered until the file changes."""
    status = file.stat()
    key = (str(file.resolve()), status.st_size, status.st_mtime_ns)
    if key not in _digests:
        with file.open("rb") as stream:
            _digests[key] = hashlib.file_digest(stream, "sha256").hexdigest()
    return _digests[key]
