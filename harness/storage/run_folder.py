"""The run folder: what it keeps during a run, and the run that is read back."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import DataError, UsageError
from harness.storage.files import FileNotWrittenError, write_atomically
from harness.storage.records import ItemRecord, RecordWriter, read_records
from harness.storage.run_shape import Document, ManifestShape, ResultsShape, check_shape

__all__ = [
    "BY_LANGUAGE",
    "LOCK",
    "SCHEMA",
    "STARTED",
    "Run",
    "RunFolder",
    "RunState",
    "repairable_cells",
    "reuse_hint",
    "started_cells",
    "with_baselines",
]

SCHEMA = 1
RESULTS = "results.json"
MANIFEST = "manifest.json"
BY_LANGUAGE = frozenset({"languages", "added", "names", "unpaired"})
"""What a manifest says of a task's languages: runs of other languages, or with other fragments, differ in it."""
LOCK = "run.lock"
"""Held in a run folder by the command that is writing it."""
LEFT_BY_A_START = frozenset({LOCK, ".writable"})
"""Files of a run folder in which a run ended before it wrote its manifest."""
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]*")


class RunFolder:
    """A run on disk, while it is being written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def check_new(self) -> None:
        """Raise `UsageError` where `check_usable` does, and for a folder that holds anything; changes nothing."""
        self.check_usable()
        if Path.cwd().is_relative_to(self.path.absolute().resolve()):
            raise UsageError(
                f"The folder {str(self.path)!r} cannot become a run folder: it is or holds the current folder.",
                hint="Give a folder of its own, such as runs/first, with --output.",
            )
        found = sorted(self.path.iterdir()) if os.access(self.path, os.R_OK) else []
        others = [one.name for one in found if one.name not in LEFT_BY_A_START]
        if others:
            raise UsageError(
                f"The folder {str(self.path)!r} is not empty and holds no run; it has {others[0]!r}.",
                hint="Give a new or an empty folder with --output.",
            )

    def check_usable(self) -> None:
        """Raise `UsageError` where a run is already there, or nothing can be written; changes nothing."""
        if self.path.is_dir() and any(
            (self.path / name).exists() for name in ("results.json", "manifest.json")
        ):
            raise UsageError(
                f"The folder {str(self.path)!r} already holds a run.",
                hint=f"Resume it (harness eval --resume {self.path}), or give another folder with --output.",
            )
        existing = next(path for path in (self.path, *self.path.absolute().parents) if path.exists())
        if not existing.is_dir():
            raise self._unwritable(os.strerror(errno.ENOTDIR))
        if not os.access(existing, os.W_OK | os.X_OK):
            read_only = os.statvfs(existing).f_flag & os.ST_RDONLY
            raise self._unwritable(os.strerror(errno.EROFS if read_only else errno.EACCES))

    def _unwritable(self, reason: str | None) -> UsageError:
        return UsageError(
            f"The output folder {str(self.path)!r} cannot be written: {reason}.",
            hint="Give another folder with --output.",
        )

    def create(self) -> None:
        """Make the folder and check that it can be written, before any work starts; raises `UsageError`."""
        self.check_usable()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path / ".writable", "")
            (self.path / ".writable").unlink()
        except OSError as error:
            raise self._unwritable(error.strerror) from error

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write ``manifest.json``."""
        write_atomically(self.path / "manifest.json", _pretty(manifest))

    def write_results(self, results: Mapping[str, Any]) -> None:
        """Write ``results.json``."""
        write_atomically(self.path / "results.json", _pretty(results))

    def records_path(self, task: str, language: str, digest: str) -> Path:
        """Return the file of a cell's records; raises `UsageError` for names that are no safe file names."""
        task = task.replace(":", ".")  # a task that a source made, PREFIX:NAME; names in specs have neither
        for name in (task, language, digest):
            if not _SAFE_NAME.fullmatch(name):
                raise UsageError(f"The name {name!r} cannot be used in a file name.")
        return self.path / "records" / task / language / f"{digest}.parquet"

    def records_of(self, cell: Mapping[str, Any]) -> Path:
        """Return the file of the records of a finished cell of ``results.json``."""
        return self.records_path(cell["task"], cell["language"], cell["digest"])

    def write_records(self, path: Path, records: Sequence[ItemRecord]) -> None:
        """Write the records of a finished cell, once; raises `StorageError`."""
        with RecordWriter(path) as writer:
            writer.add(records)
            writer.close()


class Run:
    """A run folder that is read: scores, records, and how it was made."""

    def __init__(self, path: Path | str) -> None:
        path = Path(path)
        if not path.is_dir():
            raise UsageError(f"The run folder {str(path)!r} does not exist.", hint="Look below 'runs'.")
        self.path = path
        self.manifest: dict[str, Any] = _read_json(path / "manifest.json")
        self.results: dict[str, Any] = _read_json(path / "results.json")
        if self.results.get("schema") != SCHEMA:
            raise DataError(
                f"{path / 'results.json'}: expected schema {SCHEMA}, found {self.results.get('schema')!r}; "
                "it was written by another version of the harness."
            )
        check_shape(ManifestShape, self.manifest, path / MANIFEST, _repair(path / MANIFEST))
        check_shape(ResultsShape, self.results, path / RESULTS, _repair(path / RESULTS))

    @staticmethod
    def read_manifest(path: Path) -> dict[str, Any]:
        """Return the manifest of a run, a finished one or not; raises `UsageError` where there is none."""
        manifest = _read_json(path / MANIFEST)
        check_shape(ManifestShape, manifest, path / MANIFEST, _repair(path / MANIFEST))
        return manifest

    @property
    def cells(self) -> list[dict[str, Any]]:
        """The cells of ``results.json``."""
        return list(self.results["cells"])

    def records(self, cell: Mapping[str, Any]) -> Iterator[ItemRecord]:
        """Yield the items of a finished cell; raises `DataError` where its records are missing or broken."""
        return read_records(RunFolder(self.path).records_of(cell))


def _pretty(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(
            path.read_text(encoding="utf-8"), object_hook=lambda own: Document(own, path, _repair(path))
        )
    except FileNotFoundError as error:
        if path.name == RESULTS and (path.parent / MANIFEST).is_file():
            raise UsageError(
                f"The run {str(path.parent)!r} has no results yet: it was stopped before it wrote any.",
                hint=f"Resume it: harness eval --resume {path.parent}",
            ) from error
        raise UsageError(
            f"The folder {str(path.parent)!r} is no run: it has no {path.name}.",
            hint="A run folder is what 'harness eval --output DIR' wrote.",
        ) from error
    except (ValueError, OSError) as error:
        raise DataError(f"{path} cannot be read: {error}.", hint=_repair(path)) from error
    if not isinstance(content, dict):
        raise DataError(f"{path}: expected a JSON object.", hint=_repair(path))
    return content


def _repair(path: Path) -> str:
    """Return how to come by a file of a run again."""
    if path.name == RESULTS:
        return f"Rewrite it from what the run keeps: harness eval --resume {path.parent}"
    return f"Put the file back, or start a new run with --reuse {path.parent}, which reuses the answers."


def with_baselines(run: Run) -> list[Run]:
    """Return a run followed by the runs of the baselines that were made with it."""
    folder = run.path / "baselines"
    baselines = (
        sorted(path for path in folder.iterdir() if (path / "results.json").is_file())
        if folder.is_dir()
        else []
    )
    return [run, *(Run(path) for path in baselines)]


STARTED = ".begun"
"""Suffix of the empty file in ``cells`` of a cell whose items a model was asked."""


def reuse_hint(path: Path) -> str:
    """Return what to do where the run in `path` cannot be resumed."""
    return f"Start a new run with --reuse {path}, which reuses the answers that are still valid."


def started_cells(path: Path) -> set[str]:
    """Return the digests of the cells of a run that have an answer or a score."""
    return {file.stem for file in (path / "cells").glob("*") if file.suffix in {STARTED, ".json"}}


def repairable_cells(path: Path) -> set[str]:
    """Return the digests of the cells of a run that failed before a model was asked, as for a fault of their spec."""
    return {file.stem for file in (path / "failures").glob("*.txt")} - started_cells(path)


class RunState:
    """The state of a run folder; ``cells/<digest>.json`` means a cell whose records are written."""

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
        self._started = started_cells(folder.path)

    @property
    def identity(self) -> Mapping[str, str]:
        """What makes the model's answers what they are; empty before it was opened."""
        return dict(self._manifest.get("identity", {}))

    def keep_identity(self, identity: dict[str, str], *, write: bool) -> None:
        """Record which model the run is of; only the main process writes.

        Raises `UsageError` if the run started with another model.
        """
        self._check_model(identity)
        known = self._manifest.get("identity")
        if known is not None and known != identity:
            name = first_difference(known, identity)
            raise UsageError(
                f"The model is not the one that the run {str(self._folder.path)!r} began with: {name} was "
                f"{known.get(name)!r}, now it is {identity.get(name)!r}.",
                hint=reuse_hint(self._folder.path),
            )
        if known is None:
            self._manifest["identity"] = identity
            if write:
                self._folder.write_manifest(self._manifest)

    def keep_translators(self, engines: Mapping[str, Mapping[str, Any]], *, write: bool) -> None:
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
            if write:
                self._folder.write_manifest(self._manifest)

    def begin_cell(self, digest: str) -> None:
        """Write down that a model is asked the items of a cell, so that its data may not change any more."""
        if digest not in self._started:
            self.write(self._folder.path / "cells" / f"{digest}{STARTED}", "")
            self._started.add(digest)

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


def first_difference(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """Return the first key, sorted, whose values differ or that one of the two is missing."""
    return next(name for name in sorted({*one, *other}) if one.get(name) != other.get(name))


def _read(file: Path) -> dict[str, Any] | None:
    """Return the content of a file; None where it is broken: then the cell is scored again from the journal."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        cell = content["cell"]
        return cell if content["checksum"] == _checksum(cell) else None
    except (OSError, ValueError, LookupError, TypeError):
        return None
