"""The sentences of LAReQA (XQuAD-R): the candidates, with the questions that they answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness import DataError, Reader, Row
from harness.data.readers.reader import choice
from harness_xtreme_r.readers.member import required_option
from harness_xtreme_r.readers.offset import cuts_character
from harness_xtreme_r.readers.xquad_r_paragraph import Paragraph, Question, passage_text, read_paragraphs

__all__ = ["XQUAD_R_SENTENCES"]

_NAME = "xquad_r_sentences"
_HINT = (
    "The benchmark's code takes the text between the breaks; two sentences of the released tr.json are shifted. "
    "Read such a file with check_breaks: length, or name its language in 'shifted'."
)


def _read(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per sentence; equal sentences have different ids."""
    language = required_option(options, "language", _NAME)
    lengths_only = choice(options, "check_breaks", ("true", "length")) == "length"
    lengths_only |= language in options.get("shifted", "").split()
    number = 0
    for path, paragraph in read_paragraphs(paths):
        _check_sentences(paragraph, lengths_only=lengths_only)
        answers: list[list[str]] = [[] for _ in paragraph.breaks]
        for question in paragraph.questions:
            answers[_sentence_of(question, paragraph)].append(question.id)
        for position, (start, end) in enumerate(paragraph.breaks):
            number += 1
            sentence = paragraph.context[start:end]
            fields = {
                "id": f"{language}/{paragraph.place}/{position}",
                "text": passage_text(sentence, paragraph.context),
                "sentence": sentence,
                "answers": answers[position],
            }
            yield Row(fields=fields, path=str(path), line=number)


def _check_sentences(paragraph: Paragraph, *, lengths_only: bool) -> None:
    if len(paragraph.sentences) != len(paragraph.breaks):
        raise DataError(
            f"{paragraph.where}: expected as many sentences as sentence breaks, found "
            f"{len(paragraph.sentences)} for {len(paragraph.breaks)}."
        )
    for number, ((start, end), sentence) in enumerate(
        zip(paragraph.breaks, paragraph.sentences, strict=True), start=1
    ):
        found = paragraph.context[start:end]
        if len(sentence) != len(found):
            raise DataError(
                f"{paragraph.where}: expected sentence {number} between the breaks {start} and {end}, found "
                f"{found!r} and not {sentence!r}."
            )
        if found != sentence and not lengths_only:
            raise DataError(
                f"{paragraph.where}: expected sentence {number}, {sentence!r}, between the breaks {start} and "
                f"{end}, found {found!r}.",
                hint=_HINT,
            )


def _sentence_of(question: Question, paragraph: Paragraph) -> int:
    """Return the number of the sentence in which the answer starts."""
    start, context = question.start, paragraph.context
    if not 0 <= start < len(context):
        raise DataError(
            f"{question.where}: expected an answer offset from 0 to {len(context) - 1}, found {start}."
        )
    if cuts_character(context, start):
        raise DataError(
            f"{question.where}: expected an answer offset at the start of a character, found {start}, which is "
            f"inside of {context[start - 1 : start + 1]!r}."
        )
    found = context[start : start + len(question.answer)]
    if found != question.answer:
        raise DataError(
            f"{question.where}: expected the answer {question.answer!r} at offset {start}, found {found!r}."
        )
    for position, (first, end) in enumerate(paragraph.breaks):
        if first <= start < end:
            return position
    raise DataError(
        f"{question.where}: a question without a correct sentence: expected its answer offset {start} between "
        f"two sentence breaks, found it between sentences."
    )


XQUAD_R_SENTENCES = Reader(
    name=_NAME,
    read=_read,
    summary="LAReQA (XQuAD-R): the candidate sentences of one language with the questions that they answer.",
    options={
        "language": "the code that begins the ids of the candidates (needed)",
        "shifted": "codes of languages whose released file needs check_breaks: length",
        "check_breaks": "'true' (default: the text between two breaks must be the sentence) or 'length' (it "
        "must be as long as the sentence)",
    },
)
