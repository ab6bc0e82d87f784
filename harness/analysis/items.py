"""Reads the records of a cell as columns, for diagnosis."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from harness.data.features import Items, Spans
from harness.errors import DataError, UsageError
from harness.languages.table import Language, known_languages, recorded_name
from harness.metrics.chunk import corpus_chunks
from harness.storage.records import LATER_COLUMNS, READ_TOGETHER, RECORD_COLUMNS
from harness.storage.run_folder import Run, RunFolder

__all__ = ["read_items", "spans_of"]

_COLUMNS: Final = ("id", "inputs_digest", "prediction", "reference", "scores", "cluster", "tags", "inputs")
_JSON: Final = {"prediction", "reference", "scores", "tags", "inputs"}


def read_items(
    run: Run,
    cell: Mapping[str, Any],
    spec: Mapping[str, Any],
    *,
    inputs: bool = True,
    most: int | None = None,
) -> Items:
    """Return the labelled items of a finished cell.

    Args:
        run: The run.
        cell: One of its cells.
        spec: What its manifest says of the task.
        inputs: Whether `Items.fields` are needed; else they are empty, which saves half of the memory.
        most: Items to return at most. They are drawn by a hash of their ids, so runs and languages that have the same
            ids get the same items. None returns all.

    Raises:
        UsageError: Where the run folder holds no records of this cell, or those of a version that kept no inputs.
        DataError: Where they are broken.
    """
    columns = _columns(run, cell, inputs=inputs, most=most)
    full = run.manifest.get("specs", {}).get(cell["task"], {})
    return Items(
        task=cell["task"],
        kind=spec["kind"],
        language=_language(cell["language"], spec),
        labels=tuple(spec.get("labels") or ()),
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


def _language(code: str, spec: Mapping[str, Any]) -> Language:
    """Return a language of the table or, for one that a plugin brought, what the run records of it."""
    table = known_languages()
    if code in table:
        return table.get(code)
    family, script = (spec.get("languages") or {}).get(code) or ("", "")
    return Language(code=code, name=recorded_name(code, [spec]), script=script, family=family)


def _columns(run: Run, cell: Mapping[str, Any], *, inputs: bool, most: int | None) -> dict[str, list[Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = RunFolder(run.path).records_path(cell["task"], cell["language"], cell["digest"])
    if not path.is_file():
        raise UsageError(
            f"The run {str(run.path)!r} has no records of {cell['task']!r} in {cell['language']!r}: "
            f"{str(path)!r} is not there.",
            hint="A diagnosis needs the folder 'records' that 'harness eval' wrote next to results.json.",
        )
    try:
        with pq.ParquetFile(path) as file:
            present = set(file.schema_arrow.names)
            if "inputs" not in present:
                raise UsageError(
                    f"The run {str(run.path)!r} is of an older version of the harness, whose records do not keep "
                    "what was asked, so that nothing can be diagnosed.",
                    hint="Evaluate the model again.",
                )
            missing = [name for name in RECORD_COLUMNS if name not in LATER_COLUMNS.union(present)]
            if missing:
                raise DataError(
                    f"The records {str(path)!r} cannot be read: {', '.join(missing)} are missing."
                )
            wanted = [name for name in _COLUMNS if inputs or name != "inputs"]
            kept = _kept(file, most)
            found = {name: _values(name, _column(file, name, kept)) for name in wanted}
        return found if inputs else {**found, "inputs": [{} for _ in found["id"]]}
    except (OSError, ValueError, pa.ArrowInvalid) as error:
        raise DataError(f"The records {str(path)!r} cannot be read: {error}.") from error


def _kept(file: Any, most: int | None) -> Any:
    """Return which rows of a file are labelled and, of more than `most`, drawn."""
    parts: list[tuple[Any, Any]] = []
    for batch in file.iter_batches(READ_TOGETHER, columns=["id", "reference"], use_threads=False):
        ids, references = (batch.column(name).to_pylist() for name in ("id", "reference"))
        labelled = np.array([text not in (None, "null") for text in references], dtype=bool)
        hashes = [zlib.crc32(str(own).encode("utf-8", "surrogatepass")) for own in ids]
        parts.append((labelled, np.array(hashes, dtype=np.uint32)))
    kept = np.concatenate([part[0] for part in parts]) if parts else np.zeros(0, dtype=bool)
    if most is not None and kept.sum() > most:
        rows = np.flatnonzero(kept)
        order = np.argsort(np.concatenate([part[1] for part in parts])[rows], kind="stable")
        kept[rows[order[most:]]] = False
    return kept


def _column(file: Any, name: str, kept: Any) -> list[Any]:
    """Return the kept rows of one column; only they become Python objects."""
    values: list[Any] = []
    start = 0
    for batch in file.iter_batches(READ_TOGETHER, columns=[name], use_threads=False):
        end = start + batch.num_rows
        values += batch.column(0).take(np.flatnonzero(kept[start:end])).to_pylist()
        start = end
    return values


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
        given = [value["spans"] if isinstance(value, Mapping) else value for value in tagged]
        flat = [span for spans in given for span in spans]
        places = np.array([span[:2] for span in flat], dtype=np.int64).reshape(-1, 2)
        return Spans(
            side=side,
            unit="character",
            items=np.repeat(np.arange(len(given)), [len(spans) for spans in given]),
            starts=places[:, 0],
            ends=places[:, 1],
            tags=[span[2] for span in flat],
        )
    if items.kind != "token_tagging":
        return None
    if _is_bio(items.labels):
        found = corpus_chunks(tagged)
        return Spans(
            side=side,
            unit="token",
            items=found.sentences,
            starts=found.starts,
            ends=found.ends + 1,
            tags=found.types,
        )
    lengths = np.fromiter(map(len, tagged), np.int64, len(tagged))
    first = np.repeat(np.cumsum(lengths) - lengths, lengths)
    starts = np.arange(int(lengths.sum())) - first
    tags = [tag for tags in tagged for tag in tags]
    owners = np.repeat(np.arange(len(tagged)), lengths)
    return Spans(side=side, unit="token", items=owners, starts=starts, ends=starts + 1, tags=tags)


def _is_bio(labels: Sequence[str]) -> bool:
    return any(label[:2] in {"B-", "I-"} for label in labels)
