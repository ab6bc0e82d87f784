"""Records that are written and read chunk by chunk, and the error where they cannot be written."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from harness.analysis.rescoring import rescore
from harness.cli.output import write_file
from harness.errors import DataError, HarnessError, StorageError, UsageError
from harness.registry.registry import Registry
from harness.storage import records as record
from harness.storage.files import write_atomically
from harness.storage.records import ItemRecord, RecordWriter, _column, read_records
from harness.storage.run_folder import Run

from .conftest import RunTasks


def _records(count: int) -> list[ItemRecord]:
    return [
        ItemRecord(
            id=f"i{number}",
            inputs_digest=f"{number * 7919:016x}",
            prediction={"label": "नहीं", "scores": [number / 7, 1e-7]},
            reference=None if number % 5 == 4 else "a",
            scores={} if number % 5 == 4 else {"accuracy": 1.0},
            cluster=None if number % 3 else str(number),
            group=None,
            tags={"genre": "fiction"},
            flags={"truncated": False, "unparsed": False},
        )
        for number in range(count)
    ]


def _names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@contextmanager
def _small_files(size: int) -> Iterator[None]:
    """Let the system write at most so many bytes into a file: a real fault of the disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [1, 3, 10, 1000])
def test_the_bytes_do_not_depend_on_the_chunks(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "ROW_GROUP", 10)
    monkeypatch.setattr(record, "READ_TOGETHER", 4)
    records = _records(37)
    path = tmp_path / "records" / "a.parquet"
    with RecordWriter(path) as writer:
        for start in range(0, 37, size):
            writer.add(records[start : start + size])
        assert not path.exists()
        writer.close()
    assert _names(tmp_path) == ["records/a.parquet"]
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(read_records(path)) == records
    metadata = pq.ParquetFile(path).metadata
    assert [metadata.row_group(number).num_rows for number in range(4)] == [10, 10, 10, 7]
    whole = tmp_path / "whole.parquet"
    Run.at(tmp_path).write_records(whole, records)
    assert whole.read_bytes() == path.read_bytes()


def test_scores_that_come_at_the_end_are_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "ROW_GROUP", 10)
    records = _records(23)
    labelled = [item for item in records if item.reference is not None]
    further = {"late": [float(number) for number in range(len(labelled))]}
    path = tmp_path / "a.parquet"
    with RecordWriter(path) as writer:
        writer.add(records)
        writer.close(further)
    late = iter(further["late"])
    expected = [
        item if item.reference is None else replace(item, scores={**item.scores, "late": next(late)})
        for item in records
    ]
    assert list(read_records(path)) == expected
    assert _names(tmp_path) == ["a.parquet"]


def test_what_is_not_closed_leaves_nothing_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    Run.at(tmp_path).write_records(path, _records(3))
    before = path.read_bytes()

    def interrupted(*, sealed: bool) -> None:
        with RecordWriter(path) as writer:
            writer.add(_records(5))
            if sealed:
                writer.seal()
            raise KeyboardInterrupt

    for sealed in (False, True):
        with pytest.raises(KeyboardInterrupt):
            interrupted(sealed=sealed)
        assert _names(tmp_path) == ["a.parquet"]
        assert path.read_bytes() == before


@pytest.mark.parametrize("size", [0, 100, 3_000])
def test_a_full_disk_is_reported_and_leaves_nothing(size: int, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    reason = rf"The file '{path}' cannot be written: {os.strerror(errno.EFBIG)}"
    for attempt in range(2):
        with _small_files(size), pytest.raises(StorageError, match=reason), RecordWriter(path) as writer:
            writer.add(_records(200))
            writer.close({} if attempt else {"late": [0.5] * 160})
        assert _names(tmp_path) == []


def test_errors_of_writing_are_both_ours_and_the_systems(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with _small_files(10), pytest.raises(StorageError, match="cannot be written") as caught:
        write_atomically(path, "x" * 100)
    error = caught.value
    assert isinstance(error, OSError)
    assert isinstance(error, HarnessError)
    assert (error.errno, error.strerror) == (errno.EFBIG, os.strerror(errno.EFBIG))
    assert error.exit_code == 1
    with _small_files(10), pytest.raises(UsageError, match=rf"{path}' cannot be written: File too large\."):
        write_file(path, "x" * 100)
    assert _names(tmp_path) == []


def test_a_full_disk_has_a_next_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match=r"No space left on device\. Make room there\."):
        write_atomically(tmp_path / "a.json", "x")
    with pytest.raises(StorageError, match=r"No space left on device\. Make room there"):
        Run.at(tmp_path).write_records(tmp_path / "a.parquet", _records(2))
    with pytest.raises(UsageError, match=r"The output folder '.*new' cannot be written: No space left"):
        Run.at(tmp_path / "new").create()
    assert _names(tmp_path) == []


def test_records_without_a_column_or_broken_ones_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    Run.at(tmp_path).write_records(path, _records(50))
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["scores", "flags"]), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"b\.parquet' cannot be read: scores, flags"):
        list(read_records(tmp_path / "b.parquet"))
    good = path.read_bytes()
    for broken in (good[:-20], b"", b"PAR1" + b"\0" * 1_000 + good[1_004:]):
        path.write_bytes(broken)
        with pytest.raises(DataError, match=r"The records '.*a\.parquet' cannot be read"):
            list(read_records(path))


# Scoring again --------------------------------------------------------------------------------------------


def _content(run: Run) -> list[list[ItemRecord]]:
    return [list(run.records(cell)) for cell in run.cells if cell.status == "ok"]


def test_a_run_is_scored_again_by_small_chunks(
    run: RunTasks, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = run(["xnli:de+sw", "udpos:de", "lareqa:de"], protocols=("frozen", "zero_shot_transfer"))
    methods = {cell.task for cell in finished.cells if cell.status == "ok"}
    assert methods == {"xnli", "udpos", "lareqa"}
    before, results = _content(finished), finished.results
    monkeypatch.setattr("harness.analysis.rescoring.CHUNK", 2)
    rescore(finished.path, registry)
    assert (_content(finished), Run(finished.path).results) == (before, results)


def test_scoring_again_onto_a_full_disk_changes_nothing(run: RunTasks, registry: Registry) -> None:
    finished = run(["xnli:de+sw"])
    before = {path: path.read_bytes() for path in finished.path.rglob("*") if path.is_file()}
    with _small_files(1_000), pytest.raises(StorageError, match="File too large"):
        rescore(finished.path, registry)
    assert {path: path.read_bytes() for path in finished.path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string(), st.none() | st.text(st.characters(exclude_categories=["Cs"]))),
        (pa.bool_(), st.none() | st.booleans()),
        (pa.int32(), st.none() | st.integers(-(2**31), 2**31 - 1)),
    ],
    ids=str,
)
@given(data=st.data())
def test_a_column_is_that_of_arrow(
    kind: pa.DataType, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    column = data.draw(st.lists(values, max_size=20))
    made = _column(column, kind)
    made.validate(full=True)
    assert made.equals(pa.array(column, kind))
    assert made.null_count == column.count(None)
