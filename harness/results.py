"""The run folder: written atomically, read back by reports."""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import DataError, UsageError

__all__ = ["SCHEMA", "ItemRecord", "Run", "RunFolder", "with_baselines", "write_atomically"]

SCHEMA = 1
RECORD_COLUMNS = (
    "id",
    "inputs_digest",
    "prediction",
    "reference",
    "scores",
    "cluster",
    "group",
    "tags",
    "flags",
)
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]*")


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file so that a reader sees the old content or the new one, never a part."""
    data = content.encode() if isinstance(content, str) else content
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRecord:
    """One item of a finished cell, as it is stored."""

    id: str
    inputs_digest: str
    prediction: Any
    reference: Any
    scores: Mapping[str, Any]
    cluster: str | None
    group: str | None
    tags: Mapping[str, str]
    flags: Mapping[str, bool]
    """``truncated`` and ``unparsed``."""


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
        fault = errno.ENOTDIR if not existing.is_dir() else errno.EACCES
        if fault == errno.ENOTDIR or not os.access(existing, os.W_OK | os.X_OK):
            raise self._unwritable(os.strerror(fault))

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
        for name in (task, language, digest):
            if not _SAFE_NAME.fullmatch(name):
                raise UsageError(f"The name {name!r} cannot be used in a file name.")
        return self.path / "records" / task / language / f"{digest}.parquet"

    def write_records(self, path: Path, records: Sequence[ItemRecord]) -> None:
        """Write the records of a finished cell, once."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table(
            {
                "id": [record.id for record in records],
                "inputs_digest": [record.inputs_digest for record in records],
                "prediction": [_compact(record.prediction) for record in records],
                "reference": [_compact(record.reference) for record in records],
                "scores": [_compact(record.scores) for record in records],
                "cluster": pa.array([record.cluster for record in records], pa.string()),
                "group": pa.array([record.group for record in records], pa.string()),
                "tags": [_compact(record.tags) for record in records],
                "flags": [_compact(record.flags) for record in records],
            }
        )
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, sink.getvalue().to_pybytes())


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
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = RunFolder(self.path).records_path(cell["task"], cell["language"], cell["digest"])
        try:
            rows = pq.read_table(path, columns=list(RECORD_COLUMNS)).to_pylist()
        except (OSError, pa.ArrowInvalid) as error:
            raise DataError(f"The records {str(path)!r} cannot be read: {error}.") from error
        for row in rows:
            yield ItemRecord(
                id=row["id"],
                inputs_digest=row["inputs_digest"],
                cluster=row["cluster"],
                group=row["group"],
                **{
                    name: json.loads(row[name])
                    for name in ("prediction", "reference", "scores", "tags", "flags")
                },
            )


def _pretty(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=dict)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(
            f"The folder {str(path.parent)!r} is no run: it has no {path.name}.",
            hint="A run folder is what 'harness eval --output DIR' wrote.",
        ) from error
    except (ValueError, OSError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    if not isinstance(content, dict):
        raise DataError(f"{path}: expected a JSON object.")
    return content


def with_baselines(run: Run) -> list[Run]:
    """Return a run followed by the runs of the baselines that were made beside it."""
    folder = run.path / "baselines"
    beside = (
        sorted(path for path in folder.iterdir() if (path / "results.json").is_file())
        if folder.is_dir()
        else []
    )
    return [run, *(Run(path) for path in beside)]
