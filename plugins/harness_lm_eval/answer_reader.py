"""Reads questions whose gold answers are texts alone, without an offset in a passage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from harness import DataError
from harness.data import Column, Reader, Row, choice, read_jsonl, read_parquet


def read(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per record of Parquet or JSON-lines files, with ``context``, ``question`` and ``answers``.

    The offset of an answer is that of its first match in the context, or -1 without one: such an answer is scored, but
    not trained on. Raises `DataError` where the answer is neither a text nor a list of texts or of objects with
    ``text`` and ``aliases``.
    """
    skipping = choice(options, "unanswerable", ("keep", "skip")) == "skip"
    for path in paths:
        reading = read_parquet if path.suffix == ".parquet" else read_jsonl
        for row in reading([path], {}):
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


READER: Final = Reader(
    name="answer_texts",
    read=read,
    summary="Parquet or JSON lines whose answers are texts without an offset in the passage",
    options={
        "context": "the column of the passage; without it there is none",
        "question": "the column of the question (default: question)",
        "answers": "the column of the answer or the list of answers, which are texts or objects with 'text' and "
        "'aliases'; dots go inside: answers.text (default: answer)",
        "id": "the column of the id; without it, items are numbered",
        "group": "the column by which scores are also shown",
        "unanswerable": "'keep' (default: a question without answers is an unlabelled item) or 'skip'",
    },
)
