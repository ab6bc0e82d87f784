"""The paragraphs of XQuAD-R (LAReQA): SQuAD paragraphs with the borders of their sentences.

Source: Roy et al. (2020), LAReQA, section 3.1; google-research-datasets/lareqa ``xquad-r``;
google-research/xtreme ``third_party/utils_lareqa.py`` (generate_examples) and
``third_party/processors/lareqa.py`` (the text that is encoded).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import DataError
from harness.data.readers.structured import parse_json
from harness.data.readers.text import line_of_text, whole_text
from harness_xtreme_r.readers.member import member

__all__ = ["Paragraph", "Question", "passage_text", "read_paragraphs"]

_PARQUET = b"PAR1"
_HINT = "Give xquad-r/LANG.json of google-research-datasets/lareqa; the Hub's xquad_r has no breaks."


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question; `answer` and `start` are its first reference answer."""

    id: str
    text: str
    answer: str
    start: int
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """One paragraph of a file."""

    place: str
    """``article-paragraph``, both counted from 0: the same in every language."""
    context: str
    breaks: tuple[tuple[int, int], ...]
    """Start and end of every sentence, in code points of `context`."""
    sentences: tuple[str, ...]
    """The sentences as the file spells them out."""
    questions: tuple[Question, ...]
    where: str


def passage_text(sentence: str, paragraph: str) -> str:
    """Return what a dual encoder reads of a candidate: the sentence, then its whole paragraph.

    There is no separator and newlines are deleted, as in the released code.
    """
    return (sentence + paragraph).replace("\n", "")


def read_paragraphs(paths: Sequence[Path]) -> Iterator[tuple[Path, Paragraph]]:
    """Yield the paragraphs of files in their order; article numbers continue from file to file.

    Raises `DataError` for what is not XQuAD-R, and for a duplicate question id.
    """
    first_article = 0
    seen: dict[str, str] = {}
    for path in paths:
        articles = member(_document(path), "data", list, str(path))
        for index, article in enumerate(articles):
            where = f"{path}: article {index + 1}"
            for number, paragraph in enumerate(member(article, "paragraphs", list, where)):
                place = f"{first_article + index}-{number}"
                found = _paragraph(paragraph, place, f"{where}, paragraph {number + 1}", path)
                for question in found.questions:
                    if question.id in seen:
                        raise DataError(f"{question.where}: this id was already used at {seen[question.id]}.")
                    seen[question.id] = found.where
                yield path, found
        first_article += len(articles)


def _document(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            start = file.read(len(_PARQUET))
    except OSError:
        start = b""
    if start == _PARQUET:
        raise DataError(
            f"{path}: expected JSON of XQuAD-R, found a Parquet file of another release.", hint=_HINT
        )
    return parse_json(whole_text(path), path)


def _paragraph(record: Any, place: str, where: str, path: Path) -> Paragraph:
    context = member(record, "context", str, where)
    if "sentence_breaks" not in record:
        shown = ", ".join(repr(key) for key in record)
        raise DataError(
            f"{where}: expected 'sentence_breaks', found {shown}: this is another release, a SQuAD file such as "
            "XQuAD and not XQuAD-R.",
            hint=_HINT,
        )
    sentences = member(record, "sentences", list, where)
    for number, sentence in enumerate(sentences, start=1):
        if not isinstance(sentence, str):
            raise DataError(f"{where}: expected sentence {number} to be a text, found {sentence!r}.")
    questions = tuple(_question(item, where, path) for item in member(record, "qas", list, where))
    return Paragraph(
        place=place,
        context=context,
        breaks=_breaks(member(record, "sentence_breaks", list, where), len(context), where),
        sentences=tuple(sentences),
        questions=questions,
        where=where,
    )


def _question(record: Mapping[str, Any], where: str, path: Path) -> Question:
    identifier = member(record, "id", str, where)
    asked = f"{path}: question {identifier!r}"
    answers = member(record, "answers", list, asked)
    if not answers:
        raise DataError(f"{asked}: expected a reference answer, found none.")
    answer = member(answers[0], "text", str, asked)
    if not answer:
        raise DataError(
            f"{path}:{line_of_text(path, identifier)}: question {identifier!r}: expected the text of its reference "
            "answer, found none: the answers of this copy were removed.",
            hint=_HINT,
        )
    return Question(
        id=identifier,
        text=member(record, "question", str, asked),
        answer=answer,
        start=member(answers[0], "answer_start", int, asked),
        where=asked,
    )


def _breaks(found: Sequence[Any], length: int, where: str) -> tuple[tuple[int, int], ...]:
    breaks = []
    previous = 0
    for number, pair in enumerate(found, start=1):
        if not isinstance(pair, list) or len(pair) != 2 or not all(type(end) is int for end in pair):
            raise DataError(f"{where}: expected sentence break {number} to be [start, end], found {pair!r}.")
        start, end = pair
        if not previous <= start < end <= length:
            raise DataError(
                f"{where}: expected sentence break {number} after {previous} and inside the {length} "
                f"characters of the context, found {pair!r}."
            )
        breaks.append((start, end))
        previous = end
    return tuple(breaks)
