"""Reads questions whose gold answers are texts alone, without an offset in a passage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from harness import DataError, Reader, Row
from harness.data.readers.structured import read_jsonl, read_parquet

__all__ = ["READER"]


def read(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per record of Parquet or JSON-lines files, with ``context``, ``question`` and ``answers``.

    The offset of an answer is that of its first match in the context, or -1 without one: such an answer is scored, but
    not trained on. Raises `DataError` where the answer is neither a text nor a list of texts.
    """
    keys = options.get("answers", "answer").split(".")
    for path in paths:
        reading = read_parquet if path.suffix == ".parquet" else read_jsonl
        for row in reading([path], {}):
            context = _text(row, options["context"]) if "context" in options else ""
            fields: dict[str, Any] = {
                "context": context,
                "question": _text(row, options.get("question", "question")),
            }
            fields["answers"] = [
                {"text": answer, "start": context.find(answer)} for answer in _answers(row, keys)
            ]
            yield Row(fields=fields, path=row.path, line=row.line)


def _text(row: Row, name: str) -> str:
    value = row.fields.get(name)
    if not isinstance(value, str):
        found = ", ".join(sorted(row.fields)) if name not in row.fields else type(value).__name__
        raise DataError(f"{row.where}: expected the text field {name!r}, found {found}.")
    return value


def _answers(row: Row, keys: Sequence[str]) -> list[str]:
    value: Any = row.fields
    for key in keys:
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif (
            isinstance(value, Sequence)
            and not isinstance(value, str)
            and key.isdigit()
            and int(key) < len(value)
        ):
            value = value[int(key)]
        else:
            raise DataError(f"{row.where}: expected the answer in {'.'.join(keys)!r}, found no {key!r}.")
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise DataError(f"{row.where}: expected an answer or a list of answers, found {value!r}.")
    return texts


READER: Final = Reader(
    name="answer_texts",
    read=read,
    summary="Parquet or JSON lines whose answers are texts without an offset in the passage",
    options={
        "context": "the column of the passage; without it there is none",
        "question": "the column of the question (default: question)",
        "answers": "the column of the answer or the list of answers; dots go inside: answers.text (default: answer)",
    },
)
