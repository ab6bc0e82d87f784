"""Reads questions that annotators answered, each answer with its votes, as BLEnD publishes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from harness import DataError
from harness.data import Column, Reader, Row, parse_json, whole_text

UNUSABLE_VOTES = 3
"""Annotators who found a question unanswerable or not applicable to their country: from here on it is skipped."""
UNKNOWN_VOTES = 5
"""Annotators who did not know an answer: from here on a question is skipped."""


def read(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per question with ``id``, an empty ``context``, ``question`` and ``answers``.

    The answers keep the order of the file, those with most votes first; blank ones are dropped. Questions that the
    authors' evaluation skips are skipped: too many annotators had no answer. Raises `DataError` for a record without
    the fields.
    """
    for path in paths:
        records = parse_json(whole_text(path), path)
        if not isinstance(records, Mapping):
            raise DataError(f"{path}:1: expected an object whose keys are ids of questions.")
        for number, (identifier, record) in enumerate(records.items(), start=1):
            where = f"{path}: record {number}"
            texts = [text for answer in _value(record, "annotations", where) for text in answer["answers"]]
            texts = [text for text in texts if text.strip()]
            if texts and not _is_skipped(record, where):
                fields = {
                    "id": identifier,
                    "context": "",
                    "question": _value(record, options.get("question", "question"), where),
                    "answers": [{"text": text, "start": -1} for text in dict.fromkeys(texts)],
                }
                yield Row(fields=fields, path=str(path), line=number)


def _is_skipped(record: Any, where: str) -> bool:
    votes = {name: _value(record, f"idks.{name}", where) for name in ("idk", "no-answer", "not-applicable")}
    unusable = votes["no-answer"] + votes["not-applicable"]
    return bool(unusable >= UNUSABLE_VOTES or votes["idk"] >= UNKNOWN_VOTES)


def _value(record: Any, source: str, where: str) -> Any:
    if not isinstance(record, Mapping):
        raise DataError(f"{where}: expected an object.")
    return Column(field="", source=source).value(record, where)


READER: Final = Reader(
    name="voted_answers",
    read=read,
    summary="A JSON object of questions by id, whose answers have annotators' votes (BLEnD)",
    options={"question": "the key of the question (default: question)"},
)
