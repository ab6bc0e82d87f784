"""Reads the records of a cell as columns, for diagnosis."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from harness.data.features import Items, Spans
from harness.errors import UsageError
from harness.languages.table import Language, known_languages, recorded_name
from harness.metrics.chunk import corpus_chunks
from harness.storage.records import READ_TOGETHER, read_batches
from harness.storage.results import CellResult, TaskSummary
from harness.storage.run_folder import Run

_COLUMNS: Final = ("id", "inputs_digest", "prediction", "reference", "scores", "cluster", "tags", "inputs")
_JSON: Final = {"prediction", "reference", "scores", "tags", "inputs"}


def read_items(
    run: Run,
    cell: CellResult,
    task: TaskSummary,
    *,
    inputs: bool = True,
    most: int | None = None,
) -> Items:
    """Return the labelled items of a finished cell.

    Args:
        run: The run.
        cell: One of its cells.
        task: What its manifest says of the task.
        inputs: Whether `Items.fields` are needed; else they are empty, which saves half of the memory.
        most: Items to return at most. They are drawn by a hash of their ids, so runs and languages that have the same
            ids get the same items. None returns all.

    Raises:
        UsageError: Where the run folder holds no records of this cell, or those of a version that kept no inputs.
        DataError: Where they are broken.
    """
    columns = _columns(run, cell, inputs=inputs, most=most)
    full = run.manifest.specs.get(cell.task, {})
    return Items(
        task=cell.task,
        kind=task.kind,
        language=_language(cell.language, task),
        labels=tuple(task.labels),
        input_names=tuple(full.get("inputs") or ()),
        ids=columns["id"],
        digests=columns["inputs_digest"],
        fields=columns["inputs"],
        predictions=columns["prediction"],
        references=columns["reference"],
        clusters=columns["cluster"],
        tags=columns["tags"],
        scores=columns["scores"],
    )


def _language(code: str, task: TaskSummary) -> Language:
    """Return a language of the table or, for one that a plugin brought, what the run records of it."""
    table = known_languages()
    recorded = task.languages.get(code)
    if code in table.listed or (code in table and not recorded):
        return table.get(code)
    family, script = recorded or ("", "")
    return Language(code=code, name=recorded_name(code, [task.names]), script=script, family=family)


def _columns(run: Run, cell: CellResult, *, inputs: bool, most: int | None) -> dict[str, list[Any]]:
    path = run.records_of(cell)
    if not path.is_file():
        raise UsageError(
            f"The run {str(run.path)!r} has no records of {cell.task!r} in {cell.language!r}: "
            f"{str(path)!r} is not there.",
            hint="A diagnosis needs the folder 'records' that 'harness eval' wrote next to results.json.",
        )
    required = [name for name in _COLUMNS if inputs or name != "inputs"]
    mask = _row_mask(path, most)
    # A file of one batch is opened once; of a large one, one column at a time is held.
    groups = [required] if len(mask) <= READ_TOGETHER else [[name] for name in required]
    read = (pair for names in groups for pair in _read(path, names, mask).items())
    columns = {name: _values(name, column) for name, column in read}
    if inputs and len(columns["inputs"]) < len(columns["id"]):
        raise UsageError(
            f"The run {str(run.path)!r} is of an older version of the harness, whose records do not keep "
            "what was asked, so that nothing can be diagnosed.",
            hint="Evaluate the model again.",
        )
    return columns if inputs else {**columns, "inputs": [{} for _ in columns["id"]]}


def _row_mask(path: Path, most: int | None) -> npt.NDArray[np.bool_]:
    """Return which rows of a file are labelled and, of more than `most`, drawn."""
    labelled: list[bool] = []
    hashes: list[int] = []
    for batch in read_batches(path, ("id", "reference")):
        rows = batch.to_pydict()
        labelled += [text not in (None, "null") for text in rows["reference"]]
        hashes += [zlib.crc32(str(identifier).encode("utf-8", "surrogatepass")) for identifier in rows["id"]]
    mask = np.array(labelled, dtype=np.bool_)
    if most is not None and mask.sum() > most:
        indices = np.flatnonzero(mask)
        order = np.argsort(np.array(hashes, dtype=np.uint32)[indices], kind="stable")
        mask[indices[order[most:]]] = False
    return mask


def _read(path: Path, names: Sequence[str], mask: npt.NDArray[np.bool_]) -> dict[str, list[Any]]:
    """Return the kept rows of columns, none of a column that is missing; only they become Python objects."""
    import pyarrow as pa

    columns: dict[str, list[Any]] = {name: [] for name in names}
    start = 0
    for batch in read_batches(path, names):
        # `pa.array` imports pandas.
        bits = pa.py_buffer(np.packbits(mask[start : start + batch.num_rows], bitorder="little"))
        rows = batch.filter(pa.Array.from_buffers(pa.bool_(), batch.num_rows, [None, bits]))
        for name in rows.schema.names:
            columns[name] += rows.column(name).to_pylist()
        start += batch.num_rows
    return columns


def _values(name: str, column: list[Any]) -> list[Any]:
    if name not in _JSON:
        return column
    # One text is parsed several times faster than one for every item, and equal strings in it are one object.
    values: list[Any] = json.loads("[" + ",".join("null" if text is None else text for text in column) + "]")
    return values


def spans_of(items: Items, tagged: Sequence[Any], side: Any) -> Spans | None:
    """Return the spans of the predictions or references of a tagging task; None for other kinds.

    Where tags are of the BIO scheme, these are the chunks of `harness.metrics.chunk`; bare tags (parts of speech)
    make every token a span of one; marked text has its spans in characters.
    """
    if items.kind == "text_marking":
        marked = [value["spans"] if isinstance(value, Mapping) else value for value in tagged]
        flat = [span for spans in marked for span in spans]
        bounds = np.array([span[:2] for span in flat], dtype=np.int64).reshape(-1, 2)
        return Spans(
            side=side,
            unit="character",
            items=np.repeat(np.arange(len(marked)), [len(spans) for spans in marked]),
            starts=bounds[:, 0],
            ends=bounds[:, 1],
            tags=[span[2] for span in flat],
        )
    if items.kind != "token_tagging":
        return None
    if _is_bio(items.labels):
        chunks = corpus_chunks(tagged)
        return Spans(
            side=side,
            unit="token",
            items=chunks.sentences,
            starts=chunks.starts,
            ends=chunks.ends + 1,
            tags=chunks.types,
        )
    lengths = np.fromiter(map(len, tagged), np.int64, len(tagged))
    first = np.repeat(np.cumsum(lengths) - lengths, lengths)
    starts = np.arange(int(lengths.sum())) - first
    tags = [tag for tags in tagged for tag in tags]
    owners = np.repeat(np.arange(len(tagged)), lengths)
    return Spans(side=side, unit="token", items=owners, starts=starts, ends=starts + 1, tags=tags)


def _is_bio(labels: Sequence[str]) -> bool:
    return any(label[:2] in {"B-", "I-"} for label in labels)
