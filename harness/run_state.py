"""What a run keeps besides its results so that it can be gone on with: finished cells, and which model it is of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.processes import Crew
from harness.results import RunFolder
from harness.storage import FileNotWrittenError, write_atomically

__all__ = ["BEGUN", "RunState", "begun_cells", "mendable_cells", "reuse_hint"]

BEGUN = ".begun"
"""Suffix of the empty file in ``cells`` of a cell whose items a model was asked."""


def reuse_hint(path: Path) -> str:
    """Return what to do where the run in `path` cannot be gone on with."""
    return f"Begin a new run with --reuse {path}: it takes over the answers that are still valid."


def begun_cells(path: Path) -> set[str]:
    """Return the digests of the cells of a run that have an answer or a score."""
    return {file.stem for file in (path / "cells").glob("*") if file.suffix in {BEGUN, ".json"}}


def mendable_cells(path: Path) -> set[str]:
    """Return the digests of the cells of a run that failed before a model was asked, as for a fault of their spec."""
    return {file.stem for file in (path / "failures").glob("*.txt")} - begun_cells(path)


class RunState:
    """The state of a run folder; ``cells/<digest>.json`` stands for a cell whose records are written."""

    def __init__(
        self,
        folder: RunFolder,
        manifest: dict[str, Any],
        check_model: Callable[[Mapping[str, str]], None] = lambda _: None,
    ) -> None:
        """Take the manifest, which is changed; `check_model` is called with the identity of the opened model."""
        self._folder = folder
        self._manifest = manifest
        self._check_model = check_model
        self._begun = begun_cells(folder.path)

    @property
    def identity(self) -> Mapping[str, str]:
        """What makes the model's answers what they are; empty before it was opened."""
        return dict(self._manifest.get("identity", {}))

    def keep_identity(self, identity: dict[str, str], crew: Crew) -> None:
        """Write down which model the run is of.

        Raises `UsageError` where it is another one than when the run began, or than in the leading process.
        """
        leading = crew.share(identity)
        if leading != identity:
            name = _first_difference(leading, identity)
            raise UsageError(
                f"Process {crew.rank} opened another model than process 0: {name} is "
                f"{identity.get(name)!r}, not {leading.get(name)!r}."
            )
        self._check_model(identity)
        known = self._manifest.get("identity")
        if known is not None and known != identity:
            name = _first_difference(known, identity)
            raise UsageError(
                f"The model is not the one that the run {str(self._folder.path)!r} began with: {name} was "
                f"{known.get(name)!r}, now it is {identity.get(name)!r}.",
                hint=reuse_hint(self._folder.path),
            )
        if known is None:
            self._manifest["identity"] = identity
            if crew.leads:
                self._folder.write_manifest(self._manifest)

    def keep_translators(self, engines: Mapping[str, Mapping[str, Any]], crew: Crew) -> None:
        """Write down what translated the run's texts; raises `UsageError` where it is not what the run began with."""
        known = self._manifest.setdefault("translators", {})
        for name, engine in engines.items():
            before = known.get(name, engine)
            if before["fingerprint"] != engine["fingerprint"]:
                raise UsageError(
                    f"The translator {name} is not the one that the run {str(self._folder.path)!r} began with: "
                    f"its fingerprint was {before['fingerprint']}, now it is {engine['fingerprint']}.",
                    hint=reuse_hint(self._folder.path),
                )
        if set(engines) - set(known):
            self._manifest["translators"] = {**known, **engines}
            if crew.leads:
                self._folder.write_manifest(self._manifest)

    def begin_cell(self, digest: str) -> None:
        """Write down that a model is asked the items of a cell, so that its data may not change any more."""
        if digest not in self._begun:
            self.write(self._folder.path / "cells" / f"{digest}{BEGUN}", "")
            self._begun.add(digest)

    def keep_cell(self, digest: str, content: Mapping[str, Any], records: Path) -> None:
        """Write down that a cell is finished; its records are on disk."""
        cell = {**content, "records": _digest(records)}
        text = _compact({"cell": cell, "checksum": _checksum(cell)})
        self.write(self._folder.path / "cells" / f"{digest}.json", text)

    def finished_cells(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the digest and content of every cell that is finished and whose records are as they were written."""
        known = {cell["digest"] for cell in self._manifest["cells"]}
        for file in sorted((self._folder.path / "cells").glob("*.json")):
            content = _read(file)
            if file.stem not in known or content is None:
                continue
            result = content["result"]
            records = self._folder.records_path(result["task"], result["language"], file.stem)
            if _digest(records) == content["records"]:
                yield file.stem, content

    def write(self, path: Path, text: str) -> None:
        """Write a file of the run, its folder too where that is missing; raises `StorageError`."""
        try:
            path.parent.mkdir(exist_ok=True)
        except OSError as error:
            raise FileNotWrittenError(path, error) from error
        write_atomically(path, text)


def _digest(file: Path) -> str | None:
    """Return the SHA-256 of a file, None where it cannot be read."""
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None


def _compact(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _checksum(cell: Mapping[str, Any]) -> str:
    return hashlib.sha256(_compact(cell).encode()).hexdigest()


def _first_difference(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    return next(name for name in sorted({*one, *other}) if one.get(name) != other.get(name))


def _read(file: Path) -> dict[str, Any] | None:
    """Return the content of a file; None where it is broken: then the cell is scored again from the journal."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        cell = content["cell"]
        return cell if content["checksum"] == _checksum(cell) else None
    except (OSError, ValueError, LookupError, TypeError):
        return None
