"""The records of a cell: one a scored item, in a file that is written and read chunk by chunk."""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from harness.errors import DataError
from harness.storage.files import FileNotWrittenError, publish

if TYPE_CHECKING:
    import pyarrow as pa

RECORD_COLUMNS = (
    "model",
    "task",
    "language",
    "id",
    "inputs_digest",
    "prediction",
    "reference",
    "scores",
    "cluster",
    "group",
    "tags",
    "flags",
    "inputs",
    "tokens",
    "answer",
    "correct",
    "reasoning",
)
DERIVED_COLUMNS = frozenset({"model", "task", "language", "answer", "correct"})
"""Columns for readers of the files alone: an `ItemRecord` has the rest, or computes it from its other fields."""
LATER_COLUMNS = frozenset({"inputs", "tokens", "reasoning", *DERIVED_COLUMNS})
"""Columns that are missing in the files of older versions."""
_STORED = tuple(name for name in RECORD_COLUMNS if name not in DERIVED_COLUMNS)
ROW_GROUP = 16_384
"""Records that a file of records compresses together, and that are held while it is written or read."""
# json.dumps makes an encoder a call where it gets options.
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=dict)
READ_TOGETHER = 2_048
"""Records that are turned into Python objects at a time."""
REPEATS = "repeats"
"""The key of a prediction with all answers to its item, where there are several; its other keys are the majority's."""
_RIGHT = {"exact_value": 1.0, "exact_match": 1.0, "mlqa_exact_match": 1.0, "example_error": 0.0}
"""Metric of texts -> its score of a right item; the first that a record has decides."""


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
    """``truncated`` and ``unparsed``, and those of ``unfinished``, ``unanswered`` and ``replaced`` that are true."""
    inputs: str = "{}"
    """What the item is, without what would give its gold answer away, as JSON."""
    tokens: int | None = None
    """Sub-words of the item's own texts; None where the model counts none."""
    reasoning: str | None = None
    """What the model wrote before its answer; None where it did not reason."""

    @property
    def fields(self) -> Mapping[str, Any]:
        """The fields of the example: ``question`` and ``context``, ``tokens``, ``inputs``; empty in older runs."""
        fields: dict[str, Any] = json.loads(self.inputs)
        return fields

    @property
    def answer(self) -> str | None:
        """The answer as a person reads it: the label, the choice, the text, the tags; None where there is none."""
        return answer_text(self.prediction, self.inputs)

    @property
    def gold(self) -> str | None:
        """The gold answer as a person reads it; several right answers have ``|`` between them."""
        value = self.reference
        targets = value.get("targets", value) if isinstance(value, Mapping) else value
        if isinstance(targets, list) and not isinstance(self.prediction, list):
            if all(isinstance(target, str) for target in targets):
                return " | ".join(targets)
            return _marked(targets, self.inputs) if _are_spans(targets) else _compact(targets)
        return answer_text(value, self.inputs)

    @property
    def correct(self) -> bool | None:
        """Whether the answer is right; None without a gold answer, and where an item is only more or less right."""
        return is_correct(self.prediction, self.reference, self.scores)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemScores:
    """Contributions of a cell's labelled items to its metrics, without the rest of their records."""

    ids: Sequence[str]
    clusters: Sequence[str | None]
    scores: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemTokens:
    """How many sub-words the items of a cell have; None where that was not counted."""

    ids: Sequence[str]
    clusters: Sequence[str | None]
    tokens: Sequence[int | None]


class RecordWriter:
    """Writes the records of a cell chunk by chunk; they appear under their name all at once, by `close`.

    As a context manager it leaves nothing behind where it was not closed. All raise `StorageError` where the file
    cannot be written. The bytes of the file depend on the records alone, not on the chunks.

    Args:
        path: The file.
        model: What answered the items, for readers of the file alone.
        task: Whose items they are.
        language: Their language.
    """

    def __init__(
        self, path: Path, *, model: str | None = None, task: str | None = None, language: str | None = None
    ) -> None:
        self._path = path
        self._origin = {"model": model, "task": task, "language": language}
        with self._storage_errors():
            path.parent.mkdir(parents=True, exist_ok=True)
        self._waiting: list[ItemRecord] = []
        self._file: _RecordFile | None = self._opened()
        self._sealed: Path | None = None

    def __enter__(self) -> Self:
        """Return the writer itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what was not closed."""
        self.discard()

    def add(self, records: Sequence[ItemRecord]) -> None:
        """Take the next records."""
        assert self._file is not None
        self._waiting += records
        while len(self._waiting) >= ROW_GROUP:
            self._write(self._file, self._waiting[:ROW_GROUP])
            del self._waiting[:ROW_GROUP]

    def seal(self, further: Mapping[str, Sequence[Any]] | None = None) -> None:
        """Bring all records safely to disk, still under another name.

        Args:
            further: By metric: what each labelled record has in `ItemRecord.scores` besides what it was added with.
                The file is then written a second time.
        """
        assert self._file is not None
        if self._waiting:
            self._write(self._file, self._waiting)
            self._waiting = []
        with self._storage_errors():
            self._sealed = self._file.finish()
        self._file = None
        if further:
            self._rewrite(self._sealed, further)

    def close(self, further: Mapping[str, Sequence[Any]] | None = None) -> None:
        """Give the records their name; seals them with `further` where that was not done."""
        if self._sealed is None:
            self.seal(further)
        assert self._sealed is not None
        with self._storage_errors():
            publish(self._sealed, self._path)
        self._sealed = None

    def discard(self) -> None:
        """Remove what was written and not closed; does nothing after `close`."""
        if self._file is not None:
            self._file.discard()
        if self._sealed is not None:
            self._sealed.unlink(missing_ok=True)
        self._file = self._sealed = None

    def _opened(self) -> _RecordFile:
        with self._storage_errors():
            return _RecordFile(self._path, self._origin)

    def _write(self, file: _RecordFile, records: Sequence[ItemRecord]) -> None:
        with self._storage_errors():
            file.write(records)

    def _rewrite(self, sealed: Path, further: Mapping[str, Sequence[Any]]) -> None:
        number = 0
        self._file = self._opened()
        for group in _chunks(read_records(sealed), ROW_GROUP):
            completed = []
            for record in group:
                scores: dict[str, Any] = {}
                if record.reference is not None:
                    scores = {name: values[number] for name, values in further.items()}
                    number += 1
                completed.append(replace(record, scores={**record.scores, **scores}))
            self._write(self._file, completed)
        sealed.unlink()
        self._sealed = None
        with self._storage_errors():
            self._sealed = self._file.finish()
        self._file = None

    @contextmanager
    def _storage_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise FileNotWrittenError(self._path, error) from error


class _RecordFile:
    """A Parquet file next to the one that it replaces at the end."""

    def __init__(self, path: Path, origin: Mapping[str, str | None]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._origin = origin
        self._schema = pa.schema(
            [
                (name, {"tokens": pa.int32(), "correct": pa.bool_()}.get(name, pa.string()))
                for name in RECORD_COLUMNS
            ]
        )
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        self._temporary = Path(temporary)
        self._sink = os.fdopen(handle, "wb")
        self._writer = pq.ParquetWriter(self._sink, self._schema, compression="zstd")

    def write(self, records: Sequence[ItemRecord]) -> None:
        import pyarrow as pa

        columns: dict[str, list[Any]] = {
            **{name: [value] * len(records) for name, value in self._origin.items()},
            "id": [record.id for record in records],
            "inputs_digest": [record.inputs_digest for record in records],
            "prediction": [_compact(record.prediction) for record in records],
            "reference": [_compact(record.reference) for record in records],
            "scores": [_compact(record.scores) for record in records],
            "cluster": [record.cluster for record in records],
            "group": [record.group for record in records],
            "tags": [_compact(record.tags) for record in records],
            "flags": [_compact(record.flags) for record in records],
            "inputs": [record.inputs for record in records],
            "tokens": [record.tokens for record in records],
            "answer": [record.answer for record in records],
            "correct": [record.correct for record in records],
            "reasoning": [record.reasoning for record in records],
        }
        arrays = [_column(columns[field.name], field.type) for field in self._schema]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema), row_group_size=ROW_GROUP)

    def finish(self) -> Path:
        """Return the file, whose content is on the disk."""
        self._writer.close()
        self._sink.flush()
        os.fsync(self._sink.fileno())
        self._sink.close()
        return self._temporary

    def discard(self) -> None:
        """Remove the file; what cannot be written to it does not matter any more."""
        for stream in (self._writer, self._sink):
            with suppress(OSError):
                stream.close()
        self._temporary.unlink(missing_ok=True)


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return a column of texts, truth values or 32-bit integers, made of its buffers: `pa.array` imports pandas."""
    import numpy as np
    import pyarrow as pa

    present = np.packbits(np.array([value is not None for value in values], bool), bitorder="little")
    if kind == pa.string():
        texts = [(value or "").encode() for value in values]
        offsets = np.cumsum([0, *map(len, texts)])
        if offsets[-1] > np.iinfo(np.int32).max:  # it makes several arrays
            return pa.array(values, kind)
        content: list[Any] = [offsets.astype(np.int32), b"".join(texts)]
    elif kind == pa.bool_():
        content = [np.packbits(np.array(values, bool), bitorder="little")]
    else:
        content = [np.array([value or 0 for value in values], np.int32)]
    return pa.Array.from_buffers(kind, len(values), [pa.py_buffer(buffer) for buffer in (present, *content)])


def read_records(path: Path) -> Iterator[ItemRecord]:
    """Yield the records of a file, few in memory at a time; raises `DataError` where it is missing or broken."""
    for batch in read_batches(path, _STORED):
        yield from map(_record, batch.to_pylist())


def find_record(path: Path, identifier: str) -> ItemRecord | None:
    """Return the record of one item of a file; None where the file does not have it; raises as `read_records`."""
    for batch in read_batches(path, _STORED):
        ids = batch.column("id").to_pylist()
        if identifier in ids:
            return _record(batch.slice(ids.index(identifier), 1).to_pylist()[0])
    return None


def read_scores(path: Path) -> Iterator[ItemScores]:
    """Yield the item scores of a file part by part, in its order; reads nothing else; raises as `read_records`."""
    for batch in read_batches(path, ("id", "cluster", "scores")):
        columns = batch.to_pydict()
        scores = [json.loads(text) for text in columns["scores"]]
        scored = [number for number, item_scores in enumerate(scores) if item_scores]
        yield ItemScores(
            ids=[columns["id"][number] for number in scored],
            clusters=[columns["cluster"][number] for number in scored],
            scores=[scores[number] for number in scored],
        )


def read_ids(path: Path) -> list[str]:
    """Return the ids of all items of a file, in its order; reads nothing else; raises as `read_records`."""
    return read_columns(path, ("id",))["id"]


def read_tokens(path: Path) -> ItemTokens:
    """Return the sub-words of all items of a file, in its order; reads nothing else; raises as `read_records`."""
    columns = read_columns(path, ("id", "cluster", "tokens"))
    ids = columns["id"]
    return ItemTokens(ids=ids, clusters=columns["cluster"], tokens=columns["tokens"] or [None] * len(ids))


def read_columns(path: Path, names: Sequence[str]) -> dict[str, list[Any]]:
    """Return columns of a file as they are stored; one that an older version did not write is empty.

    Raises as `read_records`.
    """
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for batch in read_batches(path, names):
        for name, values in batch.to_pydict().items():
            columns[name] += values
    return columns


def read_table(path: Path) -> pa.Table:
    """Return the items of a file as an Arrow table for people, one row per item; raises as `read_records`.

    Columns: ``id``, the item's own fields as ``inputs``, the ``gold`` answer and the ``answer`` as texts, ``correct``,
    one per metric, ``cluster``, ``group``, ``tags``, ``truncated``, ``unparsed``, ``unfinished``, ``tokens`` and
    ``reasoning``.
    """
    import pyarrow as pa

    records = list(read_records(path))
    metrics = dict.fromkeys(name for record in records for name in record.scores)
    texts = pa.string()
    columns = {
        "id": pa.array([record.id for record in records], texts),
        "inputs": _inferred([_flat_fields(record) for record in records]),
        "gold": pa.array([record.gold for record in records], texts),
        "answer": pa.array([record.answer for record in records], texts),
        "correct": pa.array([record.correct for record in records], pa.bool_()),
        **{name: _inferred([record.scores.get(name) for record in records]) for name in metrics},
        "cluster": pa.array([record.cluster for record in records], texts),
        "group": pa.array([record.group for record in records], texts),
        "tags": _inferred([dict(record.tags) for record in records]),
        "truncated": pa.array([bool(record.flags.get("truncated")) for record in records]),
        "unparsed": pa.array([bool(record.flags.get("unparsed")) for record in records]),
        "unfinished": pa.array([bool(record.flags.get("unfinished")) for record in records]),
        "tokens": pa.array([record.tokens for record in records], pa.int32()),
        "reasoning": pa.array([record.reasoning for record in records], texts),
    }
    return pa.table(columns)


def _flat_fields(record: ItemRecord) -> dict[str, Any]:
    fields = {name: value for name, value in record.fields.items() if name != "id"}
    inputs = fields.pop("inputs", {})
    return {**inputs, **fields} if isinstance(inputs, Mapping) else {"inputs": inputs, **fields}


def _inferred(values: Sequence[Any]) -> pa.Array:
    """Return an Arrow column of the values; what has no common type is kept as JSON."""
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([_compact(value) for value in values])


def read_batches(path: Path, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the columns of a file, few rows at a time; those that older versions did not write may be missing.

    Raises `DataError` where the file is missing or broken.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            present = [name for name in names if name in file.schema_arrow.names]
            missing = [name for name in names if name not in LATER_COLUMNS.union(present)]
            if missing:
                raise DataError(
                    f"The records {str(path)!r} cannot be read: {', '.join(missing)} are missing."
                )
            yield from file.iter_batches(READ_TOGETHER, columns=present)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"The records {str(path)!r} cannot be read: {error}.") from error


def _record(row: Mapping[str, Any]) -> ItemRecord:
    return ItemRecord(
        id=row["id"],
        inputs_digest=row["inputs_digest"],
        cluster=row["cluster"],
        group=row["group"],
        inputs=row.get("inputs") or "{}",
        tokens=row.get("tokens"),
        reasoning=row.get("reasoning"),
        **{name: json.loads(row[name]) for name in ("prediction", "reference", "scores", "tags", "flags")},
    )


def _chunks(records: Iterator[ItemRecord], size: int) -> Iterator[list[ItemRecord]]:
    while chunk := list(itertools.islice(records, size)):
        yield chunk


def _compact(value: Any) -> str:
    return _ENCODER.encode(value) if value or not isinstance(value, dict) else "{}"


def answer_text(prediction: Any, inputs: str = "{}") -> str | None:
    """Return an answer as a person reads it; None where the model gave none.

    It is the label, the choice, the text of a span, the id of the first candidate, the tags with spaces between, or the
    marked stretches of a text as ``words (TAG)``. Any other answer is its JSON.

    Args:
        prediction: What the record keeps.
        inputs: The fields of the item as JSON, for answers that are places in a text.
    """
    if isinstance(prediction, Mapping):
        for name in ("label", "text", "candidate"):
            if name in prediction:
                return None if prediction[name] is None else str(prediction[name])
        if isinstance(prediction.get("candidates"), Sequence):
            return next((str(name) for name in prediction["candidates"]), None)
        if isinstance(prediction.get("spans"), Sequence):
            return _marked(prediction["spans"], inputs)
    if prediction is None or isinstance(prediction, str):
        return prediction
    if isinstance(prediction, list) and all(isinstance(tag, str) for tag in prediction):
        return " ".join(prediction)
    return json.dumps(prediction, ensure_ascii=False, default=dict)


def is_correct(prediction: Any, reference: Any, scores: Mapping[str, Any]) -> bool | None:
    """Return whether an answer is right; None without a gold answer, and where items are only more or less right.

    Labels, choices, translations, tags and marked spans are right if they equal the gold answer; the text of a span if
    an exact-match metric says so. Of several answers the majority's counts. Rankings, and answers of other shapes, have
    no such verdict.
    """
    if reference is None:
        return None
    if isinstance(prediction, Mapping):
        if REPEATS in prediction:
            return next(
                (score == 1.0 for name, score in scores.items() if name.startswith("majority@")), None
            )
        for name in ("label", "candidate"):
            if name in prediction:
                return bool(prediction[name] == reference)
        if "spans" in prediction:
            return _places(prediction["spans"]) == _places(reference)
        return next((scores[name] == right for name, right in _RIGHT.items() if name in scores), None)
    return prediction == reference if isinstance(prediction, list) else None


def _marked(spans: Sequence[Sequence[Any]], inputs: str) -> str:
    text = json.loads(inputs).get("text")
    marked = []
    for start, end, tag in spans:
        stretch = text[start:end] if isinstance(text, str) else f"{start}-{end}"
        marked.append(f"{stretch} ({tag})")
    return "; ".join(marked)


def _are_spans(values: Sequence[Any]) -> bool:
    return all(isinstance(span, list) and len(span) == 3 for span in values)


def _places(spans: Sequence[Sequence[Any]]) -> set[tuple[Any, ...]]:
    return {tuple(span) for span in spans}
