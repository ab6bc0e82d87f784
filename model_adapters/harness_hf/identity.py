"""The identity of a model: digests of its files, and versions of the libraries that run it."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version
from pathlib import Path

from harness.storage import configuration_files, file_digest
from harness_hf.fit_record import HEAD_NAME, RECORD_NAME, SCALE_NAME
from harness_hf.model_folder import (
    ADAPTER_CONFIG,
    adapter_base,
    sentence_module_files,
    weight_files,
)
from harness_hf.pickled_weights import conversion_identity

LIBRARIES = ("torch", "transformers", "tokenizers")
UNREAD = {
    RECORD_NAME: ("resumed_at", "first_loss", "last_loss"),
    ADAPTER_CONFIG: ("base_model_name_or_path", "revision"),
}
"""Entries of files that change no answer: interruptions, losses, and where an adapter's base is (its weights count)."""


def folder_identity(folder: Path) -> dict[str, str]:
    """Return SHA-256 digests of a model's weights, and of all other files that the library may read.

    A converted copy has the digest of its pickled source, too. The base of an adapter counts, and so do the small
    weights of heads and modules for sentences.
    """
    folders = [adapter_base(folder), folder] if (folder / ADAPTER_CONFIG).is_file() else [folder]
    read = ""
    for number, source in enumerate(folders):
        heads = [name for name in (SCALE_NAME, HEAD_NAME) if (source / name).is_file()]
        names = sorted({*configuration_files(source), *heads, *sentence_module_files(source)})
        read += "".join(f"{number}/{name}={_content_digest(source / name)}\n" for name in names)
    files = hashlib.sha256(read.encode()).hexdigest()
    return {"weights": weights_digest(folder), "files": files, **conversion_identity(folder)}


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
