"""Questions and answer spans: the SQuAD v1.1 layout (XQuAD, MLQA, TyDiQA-GoldP) and Hub columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.data.readers.reader import COLUMNS, Reader, choice, line_of_text, whole_text
from harness.data.readers.tabular import parse_json, read_jsonl, read_parquet
from harness.data.records import Row
from harness.errors import DataError

_CHECKS = ("true", "nearest", "found", "drop", "false")
_CHECK_OFFSETS = (
    "'true' (default: every answer must be at its offset), 'nearest' (an answer with a wrong offset is "
    "moved to its nearest occurrence, for copies whose contexts were stripped), 'found' (as 'nearest', and an answer "
    "that its context does not have is kept without an offset), 'drop' (as 'nearest', and such an answer is dropped, "
    "with its question where it was the only one: for translated training sets), or 'false'"
)

_UNANSWERABLE = ("keep", "skip")
_UNANSWERABLE_OPTION = (
    "'keep' (default: a question without answers is an unlabelled item) or 'skip', for sets in which some questions "
    "have no answer in their paragraph"
)

_REMOVED = {"text": "", "start": 0}
"""What XTREME's download script leaves of every answer of a test set (`remove_qa_test_annotations`)."""
_UNANSWERED = {"id", "question", "is_impossible"}
"""Keys of a question in a file without answers."""


def _read_squad(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per question; ids need not be unique, as those of TyDiQA's training file are not."""
    check = choice(options, "check_offsets", _CHECKS)
    answered_only = choice(options, "unanswerable", _UNANSWERABLE) == "skip"
    first_article = 0
    for path in paths:
        document = parse_json(whole_text(path), path)
        articles = _member(document, "data", list, str(path))
        number = 0
        for index, article in enumerate(articles):
            where = f"{path}: article {index + 1}"
            for fields in _questions(
                article, first_article + index, where, path, answered_only=answered_only
            ):
                number += 1
                where = f"{path}: question {fields['id']!r}"
                answers = fields["answers"]
                fields["answers"] = _checked(answers, fields["context"], check, where)
                if check == "drop" and answers and not fields["answers"]:
                    continue
                yield Row(fields=fields, path=str(path), line=number)
        first_article += len(articles)


def _questions(
    article: Any, article_index: int, where: str, path: Path, *, answered_only: bool
) -> Iterator[dict[str, Any]]:
    title = _member(article, "title", str, where, default="")
    for index, paragraph in enumerate(_member(article, "paragraphs", list, where)):
        paragraph_where = f"{where}, paragraph {index + 1}"
        context = _member(paragraph, "context", str, paragraph_where)
        for question in _member(paragraph, "qas", list, paragraph_where):
            identifier = _identifier(question, paragraph_where)
            if answered_only and not _has_answer(question):
                continue
            question_where = f"{paragraph_where}, question {identifier!r}"
            if "answers" not in question and not question.keys() <= _UNANSWERED:
                # Not a file without answers, but one that has them in another way.
                line, keys = line_of_text(path, identifier), ", ".join(map(repr, question))
                raise DataError(f"{path}:{line}: question {identifier!r}: expected 'answers', found {keys}.")
            yield {
                "id": identifier,
                "title": title,
                "paragraph": f"{article_index}-{index}",
                "context": context,
                "question": _member(question, "question", str, question_where),
                "answers": [
                    _answer(answer, question_where)
                    for answer in _member(question, "answers", list, question_where, default=[])
                ],
            }


def _identifier(question: Any, where: str) -> str:
    """Return the id of a question, which some sets write as a number."""
    number = question.get("id") if isinstance(question, Mapping) else None
    return str(number) if type(number) is int else str(_member(question, "id", str, where))


def _has_answer(question: Mapping[str, Any]) -> bool:
    """Return whether some answer of a question has a text; those without are written in several ways."""
    answers = question.get("answers")
    listed = answers if isinstance(answers, list) else []
    return any(isinstance(answer, Mapping) and answer.get("text") for answer in listed)


def _read_columns(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    check = choice(options, "check_offsets", _CHECKS)
    answered_only = choice(options, "unanswerable", _UNANSWERABLE) == "skip"
    prefix = options.get("id_prefix", "")
    paragraphs = _Places()
    for row in _records(paths, {key: value for key, value in options.items() if key == "columns"}):
        where = f"{row.path}: record {row.line}"
        identifier = _member(row.fields, "id", str, where)
        answers = row.fields.get("answers") or {}
        if not identifier.startswith(prefix) or (
            answered_only and not (row.fields["context"] and answers.get("text"))
        ):
            continue
        question_where = f"{row.path}: question {identifier!r}"
        title = _member(row.fields, "title", str, question_where, default="")
        context = _member(row.fields, "context", str, question_where)
        fields = {
            "id": identifier,
            "title": title,
            "paragraph": paragraphs.of(title, context),
            "context": context,
            "question": _member(row.fields, "question", str, question_where),
            "answers": _checked(_answer_columns(row.fields, question_where), context, check, question_where),
        }
        yield Row(fields=fields, path=row.path, line=row.line)


def _records(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    lines = all(path.suffix in {".json", ".jsonl"} for path in paths)
    return read_jsonl(paths, options) if lines else read_parquet(paths, options)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Numbers titles and contexts in the order of their first appearance."""

    titles: dict[str, int] = field(default_factory=dict)
    contexts: dict[tuple[str, str], int] = field(default_factory=dict)

    def of(self, title: str, context: str) -> str:
        article = self.titles.setdefault(title, len(self.titles))
        paragraph = self.contexts.setdefault((title, context), len(self.contexts))
        return f"{article}-{paragraph}"


def _answer_columns(record: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    answers = _member(record, "answers", dict, where, default={"text": [], "answer_start": []})
    texts = _member(answers, "text", list, where)
    starts = _member(answers, "answer_start", list, where)
    if len(texts) != len(starts):
        raise DataError(
            f"{where}: expected as many offsets as answers, found {len(starts)} for {len(texts)}."
        )
    pairs = zip(texts, starts, strict=True)
    return [_answer({"text": text, "answer_start": start}, where) for text, start in pairs]


def _answer(answer: Any, where: str) -> dict[str, Any]:
    return {
        "text": _member(answer, "text", str, where),
        "start": _member(answer, "answer_start", int, where),
    }


def _checked(answers: list[dict[str, Any]], context: str, check: str, where: str) -> list[dict[str, Any]]:
    if answers == [_REMOVED]:
        return []
    if check == "false":
        return answers
    if check == "drop":
        answers = [answer for answer in answers if answer["text"] and answer["text"] in context]
        check = "nearest"
    return [_placed(answer, context, check, where) for answer in answers]


def _placed(answer: dict[str, Any], context: str, check: str, where: str) -> dict[str, Any]:
    text, start = answer["text"], answer["start"]
    excerpt = context[start : start + len(text)] if start >= 0 else ""
    if text and excerpt == text:
        return answer
    occurrences = _occurrences(text, context)
    if check == "found" and not occurrences:
        return {"text": text, "start": -1}
    if check in {"nearest", "found"} and occurrences:
        return {"text": text, "start": min(occurrences, key=lambda other: (abs(other - start), other))}
    if not occurrences:
        raise DataError(f"{where}: expected the answer {text!r} in the context, found it nowhere.")
    raise DataError(
        f"{where}: expected the answer {text!r} at offset {start}, found {excerpt!r}.",
        hint="A copy whose contexts were stripped can be read with check_offsets: nearest.",
    )


def _occurrences(text: str, context: str) -> list[int]:
    if not text:
        return []
    return [start for start in range(len(context)) if context.startswith(text, start)]


def _member(record: Any, name: str, kind: type, where: str, *, default: Any = None) -> Any:
    if not isinstance(record, Mapping):
        raise DataError(f"{where}: expected an object with {name!r}, found {type(record).__name__}.")
    value = record.get(name)
    if value is None:
        if default is None:
            keys = ", ".join(repr(key) for key in record) or "nothing"
            raise DataError(f"{where}: expected {name!r}, found {keys}.")
        return default
    if not isinstance(value, kind) or isinstance(value, bool):
        raise DataError(
            f"{where}: expected {name!r} to be of type {kind.__name__}, found {type(value).__name__}."
        )
    return value


SQUAD = Reader(
    name="squad",
    read=_read_squad,
    summary="SQuAD v1.1 JSON: XQuAD, MLQA, TyDiQA-GoldP.",
    options={"check_offsets": _CHECK_OFFSETS, "unanswerable": _UNANSWERABLE_OPTION},
)

SQUAD_RECORDS = Reader(
    name="squad_records",
    read=_read_columns,
    summary="SQuAD questions as Parquet columns or JSON lines: id, context, question, answers{text, answer_start}.",
    options={
        "columns": COLUMNS,
        "unanswerable": _UNANSWERABLE_OPTION,
        "check_offsets": _CHECK_OFFSETS,
        "id_prefix": "only questions whose id begins so (TyDi QA keeps all languages in one file)",
    },
)
