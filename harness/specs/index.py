"""The parsed documents of the last command, in the cache folder, by the digest of what was read.

The files themselves are read by every command, which takes microseconds each; what takes time is to parse YAML. So an
index entry cannot be out of date: it belongs to the very bytes that were parsed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from harness.specs import loading
from harness.storage.files import cache_folder, publish

FOLDER = "specs"
"""In the cache folder; has a file for every Python environment."""
FORMAT = 1


class SpecIndex:
    """Parsed documents by the digest of their bytes; those that were not asked for are not saved again."""

    def __init__(self) -> None:
        """Read the index of this environment; one that is missing, damaged or of another reader is an empty one."""
        self._path = cache_folder() / FOLDER / f"{_digest(os.fsencode(sys.prefix))}.json"
        self._known = _read(self._path)
        self._used: dict[str, dict[str, Any]] = {}
        self._is_new = False

    def get(self, content: bytes) -> dict[str, Any] | None:
        """Return the document that these bytes were parsed to, or None where they never were."""
        key = _digest(content)
        data = self._known.get(key)
        if data is not None:
            self._used[key] = data
        return data

    def put(self, content: bytes, data: dict[str, Any]) -> None:
        """Remember what bytes were parsed to."""
        self._used[_digest(content)] = data
        self._is_new = True

    def save(self) -> None:
        """Write the index if a document was new to it; where nothing can be written, the next command parses again."""
        if not self._is_new:
            return
        payload = json.dumps(self._used, separators=(",", ":")).encode()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self._path.parent, prefix=".")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_header(payload) + payload)
                # Not synced to the disk, which takes longer than parsing: the header shows what a crash has torn.
                publish(Path(temporary), self._path)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
        except OSError:
            return


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        content = path.read_bytes()
    except OSError:
        return {}
    header, _, payload = content.partition(b"\n")
    if header + b"\n" != _header(payload):
        return {}
    documents: dict[str, dict[str, Any]] = json.loads(payload)
    return documents


def _header(payload: bytes) -> bytes:
    """Return the first line: the format, the source of the reader that parsed, and the digest of the rest."""
    return f"harness-specs {FORMAT} {yaml.__version__} {_reader()} {_digest(payload)}\n".encode()


def _reader() -> str:
    """Return the digest of the module that parses: another version of it may read the same bytes otherwise."""
    loader: Any = getattr(loading.__spec__, "loader", None)
    source = loader.get_source(loading.__name__) if hasattr(loader, "get_source") else None
    return _digest((source or "").encode())


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=20).hexdigest()
