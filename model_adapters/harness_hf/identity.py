"""The identity of a model: digests of its files, and versions of the libraries that run it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from harness.storage.files import file_digest
from harness_hf.fit_record import HEAD_NAME, RECORD_NAME, SCALE_NAME
from harness_hf.model_folder import (
    ADAPTER_CONFIG,
    SENTENCE_FILES,
    adapter_base,
    sentence_module_files,
    weight_files,
)

__all__ = ["LIBRARIES", "folder_identity", "library_versions", "weights_digest"]

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
    RECORD_NAME,
    SCALE_NAME,
    HEAD_NAME,
    ADAPTER_CONFIG,
)
"""Files besides the weights that change answers; a folder may hold others that do not."""

UNREAD = {RECORD_NAME: ("resumed_at",), ADAPTER_CONFIG: ("base_model_name_or_path", "revision")}
"""Entries of small files that change no answer: interruptions, and where an adapter's base is (its weights count)."""


def folder_identity(folder: Path, further: Sequence[str] = ()) -> dict[str, str]:
    """Return SHA-256 digests of a model's weights and of its small files (configuration, tokenizer).

    `further` names small files that change the answers of this kind of model only. An adapter's base counts, too.
    """
    folders = [adapter_base(folder), folder] if (folder / ADAPTER_CONFIG).is_file() else [folder]
    small = [
        (name, one / name) for one in folders for name in (*SMALL_FILES, *further) if (one / name).is_file()
    ]
    small += [(name, one / name) for one in folders for name in sentence_module_files(one)]
    named = "".join(f"{name}={_content_digest(file)}\n" for name, file in small)
    return {"weights": weights_digest(folder), "files": hashlib.sha256(named.encode()).hexdigest()}


def weights_digest(folder: Path) -> str:
    """Return the SHA-256 digest of a model's weights, those of an adapter's base included."""
    digests = "".join(file_digest(file) for file in weight_files(folder))
    return hashlib.sha256(digests.encode("ascii")).hexdigest()


def library_versions() -> dict[str, str]:
    """Return the installed versions of the libraries that compute the answers."""
    return {library: version(library) for library in LIBRARIES}


def _content_digest(file: Path) -> str:
    """Return the digest of a small file, without the entries that change no answer."""
    if file.name not in UNREAD:
        return file_digest(file)
    content = json.loads(file.read_text(encoding="utf-8"))
    lasting = {name: value for name, value in content.items() if name not in UNREAD[file.name]}
    return hashlib.sha256(json.dumps(lasting, sort_keys=True).encode()).hexdigest()
