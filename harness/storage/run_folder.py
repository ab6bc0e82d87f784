"""The run folder: one class that writes it while a run is executed, and reads it afterwards."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from harness.errors import DataError, UnknownNameError, UsageError
from harness.storage.file_lock import FileLock
from harness.storage.files import FileNotWrittenError, write_atomically
from harness.storage.records import ItemRecord, RecordWriter, read_records, read_table
from harness.storage.results import (
    SCHEMA,
    CellResult,
    DamagedRunError,
    Entry,
    Manifest,
    RunResults,
)

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import pyarrow as pa

    from harness.storage.journal import Journal

RESULTS = "results.json"
MANIFEST = "manifest.json"
BY_LANGUAGE = frozenset({"languages", "added", "names", "unpaired"})
"""What a manifest says of a task's languages: runs of other languages, or with other fragments, differ in it."""
LOCK = "run.lock"
"""Held in a run folder by the command that is writing it."""
LEFT_BY_A_START = frozenset({LOCK, ".writable"})
"""Files of a run folder in which a run ended before it wrote its manifest."""
STARTED = ".begun"
"""Suffix of the empty file in ``cells`` of a cell whose items a model was asked."""
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]*")


class FittedModel(Entry):
    """A fine-tuned model of a run, as its cells keep it."""

    key: str
    """`FitPlan.key`: what was asked for."""
    digest: str
    """What the model is: its fit in the cache, and the ``fit`` of its cells."""
    title: str
    stages: list[dict[str, Any]]


class FinishedCell(Entry):
    """``cells/<digest>.json``: a cell whose records are written."""

    result: CellResult
    requests: dict[str, int]
    fit: FittedModel | None
    records: str | None = None
    """SHA-256 of the file of its records."""


class Run:
    """A run folder: how the run was made, its scores and its items.

    ``Run(path)`` reads a run; raises `UsageError` where there is none, and `DataError` for a damaged one.
    """

    def __init__(self, path: Path | str) -> None:
        path = Path(path)
        if not path.is_dir():
            raise UsageError(f"The run folder {str(path)!r} does not exist.", hint="Look below 'runs'.")
        self._open(path)
        manifest, results = _read_json(path / MANIFEST), _read_json(path / RESULTS)
        if results.get("schema") != SCHEMA:
            raise DataError(
                f"{path / RESULTS}: expected schema {SCHEMA}, found {results.get('schema')!r}; "
                "it was written by another version of the harness."
            )
        self.manifest = Manifest.read(manifest, path / MANIFEST, _repair(path / MANIFEST))
        self.results = RunResults.read(results, path / RESULTS, _repair(path / RESULTS))

    @classmethod
    def at(cls, path: Path) -> Self:
        """Return the run of a folder without reading it, in order to write it; changes nothing."""
        run = cls.__new__(cls)
        run._open(path)
        return run

    def _open(self, path: Path) -> None:
        self.path = path
        self.manifest = Manifest()
        self.results = RunResults(cells=[])
        self._started: set[str] | None = None

    # Reading ------------------------------------------------------------------------------------------

    @staticmethod
    def read_manifest(path: Path) -> Manifest:
        """Return the manifest of a run, a finished one or not; raises `UsageError` where there is none."""
        return Manifest.read(_read_json(path / MANIFEST), path / MANIFEST, _repair(path / MANIFEST))

    @property
    def cells(self) -> list[CellResult]:
        """The cells of ``results.json``."""
        return list(self.results.cells)

    def records(self, cell: CellResult) -> Iterator[ItemRecord]:
        """Yield the items of a finished cell; raises `DataError` where its records are missing or broken."""
        return read_records(self.records_of(cell))

    def items(self, task: str | None = None, language: str | None = None) -> pa.Table:
        """Return an Arrow table with one row per item of the finished cells.

        Its columns: the ``model``; ``task``, ``language``, ``protocol``, ``method``, ``fit``, ``seed`` and ``view`` of
        the cell; and ``id``, ``inputs``, ``gold`` and ``answer`` of the item, whether it is ``correct``, one column of
        item scores per metric, ``cluster``, ``group``, ``tags``, ``truncated``, ``unparsed`` and ``tokens``.

        Args:
            task: Only items of this task.
            language: Only items in this language.

        Raises:
            UnknownNameError: Where no finished cell is of the task or the language.
            DataError: Where records are missing or broken.
        """
        import pyarrow as pa

        cells = [cell for cell in self.cells if cell.status == "ok"]
        for sort, name, existing in (
            ("finished task of this run", task, {cell.task for cell in cells}),
            ("finished language of this run", language, {cell.language for cell in cells}),
        ):
            if name is not None and name not in existing:
                raise UnknownNameError(sort, name, existing)
        chosen = [cell for cell in cells if task in {None, cell.task} and language in {None, cell.language}]
        if not chosen:
            raise UnknownNameError(
                f"language of {task!r} in this run",
                str(language),
                {cell.language for cell in cells if cell.task == task},
            )
        tables = []
        for cell in chosen:
            table = read_table(self.records_of(cell))
            view = _view_text(cell.view)
            names = ("task", "language", "protocol", "method", "fit", "seed")
            columns = {name: getattr(cell, name) for name in names}
            for position, (name, value) in enumerate(
                {"model": self.manifest.model_name, **columns, "view": view}.items()
            ):
                sort = pa.int64() if name == "seed" else pa.string()
                table = table.add_column(position, name, pa.array([value] * table.num_rows, sort))
            tables.append(table)
        return pa.concat_tables(tables, promote_options="permissive")

    def to_pandas(self, task: str | None = None, language: str | None = None) -> pd.DataFrame:
        """Return `items` as a pandas data frame; needs pandas, and raises what `items` does."""
        return self.items(task, language).to_pandas()

    # Paths --------------------------------------------------------------------------------------------

    def records_path(self, task: str, language: str, digest: str) -> Path:
        """Return the file of a cell's records; raises `UsageError` for names that are no safe file names."""
        task = task.replace(":", ".")  # a task that a source made, PREFIX:NAME; names in specs have neither
        for name in (task, language, digest):
            if not _SAFE_NAME.fullmatch(name):
                raise UsageError(f"The name {name!r} cannot be used in a file name.")
        return self.path / "records" / task / language / f"{digest}.parquet"

    def records_of(self, cell: CellResult) -> Path:
        """Return the file of the records of a finished cell."""
        return self.records_path(cell.task, cell.language, cell.digest)

    # Starting -----------------------------------------------------------------------------------------

    def check_new(self) -> None:
        """Raise `UsageError` where `check_usable` does, and for a folder that holds anything or is in use."""
        lock = FileLock(self.path / LOCK)
        if lock.is_held():
            raise self._in_use(lock)
        self.check_usable()
        if Path.cwd().is_relative_to(self.path.absolute().resolve()):
            raise UsageError(
                f"The folder {str(self.path)!r} cannot become a run folder: it is or holds the current folder.",
                hint="Give a folder of its own, such as runs/first, with --output.",
            )
        entries = sorted(self.path.iterdir()) if os.access(self.path, os.R_OK) else []
        unexpected = [entry.name for entry in entries if entry.name not in LEFT_BY_A_START]
        if unexpected:
            raise UsageError(
                f"The folder {str(self.path)!r} is not empty and holds no run; it has {unexpected[0]!r}.",
                hint="Give a new or an empty folder with --output.",
            )

    def check_usable(self) -> None:
        """Raise `UsageError` where a run is already there, or nothing can be written; changes nothing."""
        if any((self.path / name).exists() for name in (RESULTS, MANIFEST)):
            raise UsageError(
                f"The folder {str(self.path)!r} already holds a run.",
                hint=f"Resume it (harness eval --resume {self.path}), or give another folder with --output.",
            )
        outer = next(filter(_is_run, self.path.absolute().resolve().parents), None)
        if outer is not None and self.path.parent.name != "baselines":
            raise UsageError(
                f"The folder {str(self.path)!r} lies in the run {str(outer)!r}.",
                hint="Give a folder outside of it with --output.",
            )
        existing = next(path for path in (self.path, *self.path.absolute().parents) if path.exists())
        if not existing.is_dir():
            raise self._unwritable(os.strerror(errno.ENOTDIR))
        if not os.access(existing, os.W_OK | os.X_OK):
            read_only = os.statvfs(existing).f_flag & os.ST_RDONLY
            raise self._unwritable(os.strerror(errno.EROFS if read_only else errno.EACCES))

    def create(self) -> None:
        """Make the folder and check that it can be written, before any work starts; raises `UsageError`."""
        self.check_usable()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path / ".writable", "")
            (self.path / ".writable").unlink()
        except OSError as error:
            raise self._unwritable(error.strerror) from error

    @contextmanager
    def lock(self, patience: float) -> Iterator[None]:
        """Hold the folder, which no other command may write meanwhile.

        Raises `UsageError` where another one still does after so many seconds of patience.
        """
        lock = FileLock(self.path / LOCK)
        if not lock.acquire(patience=patience):
            raise self._in_use(lock)
        try:
            yield
        finally:
            lock.release()

    def open_journal(self, rank: int, reuse: Sequence[Path]) -> Journal:
        """Return the journal of this process, with the answers in the journals `reuse`; raises `StorageError`."""
        from harness.storage.journal import Journal  # which imports numpy

        return Journal.open(self.path / "journal", rank, reuse=reuse)

    def _in_use(self, lock: FileLock) -> UsageError:
        return UsageError(
            f"The run folder {str(self.path)!r} is in use by {lock.holder()}.",
            hint="Wait until that run ends, or give another folder with --output.",
        )

    def _unwritable(self, reason: str | None) -> UsageError:
        return UsageError(
            f"The output folder {str(self.path)!r} cannot be written: {reason}.",
            hint="Give another folder with --output.",
        )

    # Writing ------------------------------------------------------------------------------------------

    def write_manifest(self, manifest: Manifest | Mapping[str, Any]) -> None:
        """Write ``manifest.json``."""
        self.manifest = Manifest.model_validate(manifest)
        write_atomically(self.path / MANIFEST, _pretty(self.manifest))

    def write_results(self, results: RunResults | Mapping[str, Any]) -> None:
        """Write ``results.json``."""
        self.results = RunResults.model_validate(results)
        write_atomically(self.path / RESULTS, _pretty(self.results))

    def write_records(self, path: Path, records: Sequence[ItemRecord]) -> None:
        """Write the records of a finished cell, once; raises `StorageError`."""
        with RecordWriter(path) as writer:
            writer.add(records)
            writer.close()

    def keep_identity(self, identity: Mapping[str, str], *, write: bool) -> None:
        """Record which model the run is of; only the main process writes.

        Raises `UsageError` if the run started with another model.
        """
        recorded = self.manifest.identity
        if recorded and recorded != identity:
            name = first_difference(recorded, identity)
            raise UsageError(
                f"The model is not the one that the run {str(self.path)!r} began with: {name} was "
                f"{recorded.get(name)!r}, now it is {identity.get(name)!r}.",
                hint=reuse_hint(self.path),
            )
        if not recorded:
            self._change_manifest(write, identity=dict(identity))

    def keep_translators(self, engines: Mapping[str, Mapping[str, Any]], *, write: bool) -> None:
        """Write down what translated the run's texts; raises `UsageError` where it is not what the run began with."""
        recorded = self.manifest.translators
        for name, engine in engines.items():
            before = recorded.get(name, engine)
            if before["fingerprint"] != engine["fingerprint"]:
                raise UsageError(
                    f"The translator {name} is not the one that the run {str(self.path)!r} began with: "
                    f"its fingerprint was {before['fingerprint']}, now it is {engine['fingerprint']}.",
                    hint=reuse_hint(self.path),
                )
        self._change_manifest(
            write and bool(set(engines) - set(recorded)), translators={**recorded, **engines}
        )

    def keep_trackers(self, ids: Mapping[str, str], *, write: bool) -> None:
        """Write down under which ids trackers have the run, so that a resumed run continues there."""
        new = {**self.manifest.trackers, **ids}
        if new != self.manifest.trackers:
            self._change_manifest(write, trackers=new)

    def _change_manifest(self, write: bool, **values: Any) -> None:
        self.manifest = self.manifest.changed(**values)
        if write:
            self.write_manifest(self.manifest)

    def begin(self, digest: str) -> None:
        """Write down that a model is asked the items of a cell, so that its data may not change any more."""
        if self._started is None:
            self._started = started_cells(self.path)
        if digest not in self._started:
            self._write(self.path / "cells" / f"{digest}{STARTED}", "")
            self._started.add(digest)

    def keep(self, cell: FinishedCell) -> None:
        """Write down that a cell is finished; its records are on disk."""
        content = cell.changed(records=_digest(self.records_of(cell.result))).to_json()
        text = _compact({"cell": content, "checksum": _checksum(content)})
        self._write(self.path / "cells" / f"{cell.result.digest}.json", text)

    def keep_failure(self, name: str, text: str) -> str:
        """Write the traceback of a cell and return the file, as seen from the run folder."""
        self._write(self.path / "failures" / name, text)
        return f"failures/{name}"

    def finished_cells(self) -> dict[str, FinishedCell]:
        """Return by digest every cell that is finished and whose records are as they were written."""
        planned = {cell["digest"] for cell in self.manifest.cells}
        finished = {}
        for file in sorted((self.path / "cells").glob("*.json")):
            cell = _read_finished(file) if file.stem in planned else None
            if cell is not None and _digest(self.records_of(cell.result)) == cell.records:
                finished[file.stem] = cell
        return finished

    def _write(self, path: Path, text: str) -> None:
        """Write a file of the run, its folder too where that is missing; raises `StorageError`."""
        try:
            path.parent.mkdir(exist_ok=True)
        except OSError as error:
            raise FileNotWrittenError(path, error) from error
        write_atomically(path, text)


def _is_run(folder: Path) -> bool:
    return (folder / MANIFEST).is_file() and ((folder / RESULTS).is_file() or (folder / "journal").is_dir())


def _view_text(view: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in view.items())


def with_baselines(run: Run) -> list[Run]:
    """Return a run followed by the runs of the baselines that were made with it."""
    return [run, *(Run(path.parent) for path in sorted((run.path / "baselines").glob(f"*/{RESULTS}")))]


def run_folders(folders: Sequence[Path]) -> list[Path]:
    """Return run folders, each once; a folder that is no run but holds runs means these, sorted."""
    paths = [
        path
        for folder in folders
        for path in (
            []
            if (folder / MANIFEST).is_file()
            else sorted(manifest.parent for manifest in folder.glob(f"*/{MANIFEST}"))
        )
        or [folder]
    ]
    return list({path.resolve(): path for path in paths}.values())


def reuse_hint(path: Path) -> str:
    """Return the remedy where the run in `path` cannot be resumed."""
    return f"Start a new run with --reuse {path}, which reuses the answers that are still valid."


def started_cells(path: Path) -> set[str]:
    """Return the digests of the cells of a run that have an answer or a score."""
    return {file.stem for file in (path / "cells").glob("*") if file.suffix in {STARTED, ".json"}}


def repairable_cells(path: Path) -> set[str]:
    """Return the digests of the cells of a run that failed before a model was asked, as for a fault of their spec."""
    return {file.stem for file in (path / "failures").glob("*.txt")} - started_cells(path)


def first_difference(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """Return the first key, sorted, whose values differ or that one of the two is missing."""
    return next(name for name in sorted({*one, *other}) if one.get(name) != other.get(name))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
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
    key = next(_not_finite(content), None)
    if key is not None:
        raise DamagedRunError(f"{path} is damaged at {key!r}: expected a finite number.", hint=_repair(path))
    return content


def _not_finite(value: Any) -> Iterator[str]:
    """Yield the dotted keys of NaN and infinities, which JSON does not have and Python's parser accepts."""
    members = value.items() if isinstance(value, dict) else enumerate(value)
    for key, member in members:
        if isinstance(member, dict | list):
            yield from (f"{key}.{further}" for further in _not_finite(member))
        elif isinstance(member, float) and not math.isfinite(member):
            yield str(key)


def _read_finished(file: Path) -> FinishedCell | None:
    """Return the content of a file; None where it is broken: then the cell is scored again from the journal."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        is_intact = content["checksum"] == _checksum(content["cell"])
        return FinishedCell.model_validate(content["cell"]) if is_intact else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _repair(path: Path) -> str:
    """Return how to come by a file of a run again."""
    if path.name == RESULTS:
        return f"Rewrite it from what the run keeps: harness eval --resume {path.parent}"
    return f"Put the file back, or start a new run with --reuse {path.parent}, which reuses the answers."


def _digest(file: Path) -> str | None:
    """Return the SHA-256 of a file, None where it cannot be read."""
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None


def _checksum(cell: Mapping[str, Any]) -> str:
    return hashlib.sha256(_compact(cell).encode()).hexdigest()


def _compact(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _pretty(content: Entry) -> str:
    return json.dumps(content.to_json(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
