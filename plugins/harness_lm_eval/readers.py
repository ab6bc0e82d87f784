"""Readers of questions whose gold answers are texts without an offset, and of BLEnD: voted answers, and choices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from harness import DataError
from harness.data import (
    CSV,
    PARQUET,
    Column,
    Reader,
    Row,
    choice,
    parse_json,
    read_json,
    read_jsonl,
    read_parquet,
    whole_text,
)

UNUSABLE_VOTES = 3
"""Annotators who found a question unanswerable or not applicable to their country: from here on it is skipped."""
UNKNOWN_VOTES = 5
"""Annotators who did not know an answer: from here on a question is skipped."""


def _read_answer_texts(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per record of Parquet, JSON-lines or JSON files, with ``context``, ``question`` and ``answers``.

    The offset of an answer is that of its first match in the context, or -1 without one: such an answer is scored, but
    not trained on. Raises `DataError` where the answer is neither a text nor a list of texts or of objects with
    ``text`` and ``aliases``.
    """
    skipping = choice(options, "unanswerable", ("keep", "skip")) == "skip"
    inside = {"records": options["records"]} if "records" in options else {}
    for path in paths:
        reading = read_json if inside else read_parquet if path.suffix == ".parquet" else read_jsonl
        for row in reading([path], inside):
            context = _text(row, options["context"]) if "context" in options else ""
            answers = _answers(row, options.get("answers", "answer"))
            if skipping and not answers:
                continue
            fields: dict[str, Any] = {
                "context": context,
                "question": _text(row, options.get("question", "question")),
                "answers": [{"text": answer, "start": context.find(answer)} for answer in answers],
            }
            named = {name: _value(row, options[name]) for name in ("id", "group") if name in options}
            fields |= {name: str(value) for name, value in named.items()}
            yield Row(fields=fields, path=row.path, line=row.line)


def _value(row: Row, source: str) -> Any:
    return Column(field=source, source=source).value(row.fields, row.where)


def _text(row: Row, source: str) -> str:
    value = _value(row, source)
    if not isinstance(value, str):
        raise DataError(f"{row.where}: expected the text field {source!r}, found {type(value).__name__}.")
    return value


def _answers(row: Row, source: str) -> list[str]:
    """Return the texts of the answers; an answer whose text is null is none."""
    value = _value(row, source)
    texts: list[Any] = []
    for answer in [value] if isinstance(value, str) else value if isinstance(value, list) else [value]:
        if isinstance(answer, Mapping) and "text" in answer:
            texts += [text for text in (answer["text"], *(answer.get("aliases") or ())) if text is not None]
        else:
            texts.append(answer)
    if not all(isinstance(text, str) and text for text in texts):
        raise DataError(f"{row.where}: expected an answer or a list of answers, found {value!r}.")
    return list(dict.fromkeys(texts))


ANSWER_TEXTS: Final = Reader(
    name="answer_texts",
    read=_read_answer_texts,
    summary="Parquet or JSON lines whose answers are texts without an offset in the passage",
    options={
        "context": "the column of the passage; without it there is none",
        "question": "the column of the question (default: question)",
        "answers": "the column of the answer or the list of answers, which are texts or objects with 'text' and "
        "'aliases'; dots go inside: answers.text (default: answer)",
        "id": "the column of the id; without it, items are numbered",
        "group": "the column by which scores are also shown",
        "records": "the key of the array of records, where the file is one JSON object",
        "unanswerable": "'keep' (default: a question without answers is an unlabelled item) or 'skip'",
    },
)


def _read_voted_answers(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
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
            texts = [
                text for answer in _record_value(record, "annotations", where) for text in answer["answers"]
            ]
            texts = [text for text in texts if text.strip()]
            if texts and not _is_skipped(record, where):
                fields = {
                    "id": identifier,
                    "context": "",
                    "question": _record_value(record, options.get("question", "question"), where),
                    "answers": [{"text": text, "start": -1} for text in dict.fromkeys(texts)],
                }
                yield Row(fields=fields, path=str(path), line=number)


def _is_skipped(record: Any, where: str) -> bool:
    votes = {
        name: _record_value(record, f"idks.{name}", where) for name in ("idk", "no-answer", "not-applicable")
    }
    unusable = votes["no-answer"] + votes["not-applicable"]
    return bool(unusable >= UNUSABLE_VOTES or votes["idk"] >= UNKNOWN_VOTES)


def _record_value(record: Any, source: str, where: str) -> Any:
    if not isinstance(record, Mapping):
        raise DataError(f"{where}: expected an object.")
    return Column(field="", source=source).value(record, where)


VOTED_ANSWERS: Final = Reader(
    name="voted_answers",
    read=_read_voted_answers,
    summary="A JSON object of questions by id, whose answers have annotators' votes (BLEnD)",
    options={"question": "the key of the question (default: question)"},
)

_CHOICE_COLUMNS: Final = {
    "id": "MCQID",
    "source": "ID",
    "question": "prompt",
    "label": "answer_idx",
    "group": "country",
}
_CHOICES: Final = ("A", "B", "C", "D")
_REQUEST: Final = " Without any explanation,"
"""The authors' request for a letter in JSON begins so."""


def _read_choices(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per choice question with ``id``, ``question``, ``A`` to ``D``, ``label``, ``group`` and ``source``.

    The authors' request for JSON and their list of choices are cut from the question. Raises `DataError` for a record
    without the columns, or with other choices.
    """
    for path in paths:
        for row in (PARQUET if path.suffix == ".parquet" else CSV).read([path], {}):
            choices = parse_json(_record_value(row.fields, "choices", row.where), path, first_line=row.line)
            if not isinstance(choices, Mapping) or sorted(choices) != list(_CHOICES):
                raise DataError(f"{row.where}: expected the choices {', '.join(_CHOICES)}.")
            columns = {
                name: _record_value(row.fields, source, row.where) for name, source in _CHOICE_COLUMNS.items()
            }
            columns["question"] = columns["question"].partition(_REQUEST)[0]
            yield replace(row, fields={**columns, **choices})


COUNTRY_CHOICES: Final = Reader(
    name="country_choices",
    read=_read_choices,
    summary="Choice questions of BLEnD, whose choices are a JSON object in a cell (CSV or Parquet)",
)
