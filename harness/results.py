"""The run folder: written atomically, read back by reports."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import DataError, UsageError
from harness.record import ItemRecord, RecordWriter, read_records
from harness.storage import write_atomically

__all__ = [
    "BY_LANGUAGE",
    "SCHEMA",
    "ItemRecord",
    "Run",
    "RunFolder",
    "with_baselines",
    "write_atomically",
]

SCHEMA = 1
RESULTS = "results.json"
MANIFEST = "manifest.json"
BY_LANGUAGE = frozenset({"languages", "added", "names", "unpaired"})
"""What a manifest says of a task's languages: runs of other languages, or with other fragments, differ in it."""
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]*")


class RunFolder:
    """A run on disk, while it is being written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def refuse_unusable(self) -> None:
        """Raise `UsageError` where a run is already there, or nothing can be written; changes nothing."""
        if self.path.is_dir() and any(
            (self.path / name).exists() for name in ("results.json", "manifest.json")
        ):
            raise UsageError(
                f"The folder {str(self.path)!r} already holds a run.",
                hint=f"Go on with it (harness eval --resume {self.path}), or give another folder with --output.",
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
        self.refuse_unusable()
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

    @staticmethod
    def read_manifest(path: Path) -> dict[str, Any]:
        """Return the manifest of a run, a finished one or not; raises `UsageError` where there is none."""
        return _read_json(path / "manifest.json")

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
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if path.name == RESULTS and (path.parent / MANIFEST).is_file():
            raise UsageError(
                f"The run {str(path.parent)!r} has no results yet: it was stopped before it wrote any.",
                hint=f"Go on with it: harness eval --resume {path.parent}",
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
        return f"Write it anew from what the run keeps: harness eval --resume {path.parent}"
    return f"Put the file back, or begin a new run with --reuse {path.parent}: it takes over the answers."


def with_baselines(run: Run) -> list[Run]:
    """Return a run followed by the runs of the baselines that were made beside it."""
    folder = run.path / "baselines"
    beside = (
        sorted(path for path in folder.iterdir() if (path / "results.json").is_file())
        if folder.is_dir()
        else []
    )
    return [run, *(Run(path) for path in beside)]
