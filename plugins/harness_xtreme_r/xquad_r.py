"""The readers of LAReQA: XQuAD-R's questions and sentences, and SQuAD as training pairs.

SQuAD paragraphs have no sentence breaks; `sentence_spans` is a heuristic of our own for where English sentences end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness import DataError
from harness.data import SQUAD, Reader, Row, choice, line_of_text, parse_json, whole_text
from harness_xtreme_r.readers import cuts_character, member, required_option

ABBREVIATIONS: Final = frozenset(
    "Adm Aug Bros Capt Col Dec Dr Fr Ft Gen Gov Inc Jan Jr Lt Ltd Maj Messrs Mr Mrs Ms Mt No Nos Nov Oct Op Pres "
    "Prof Rep Rev Sec Sen Sgt Sr St Sta Ste Vol al approx art b c ca cf ch d e.g eds est etc fl i.e p pp r v vol "
    "vs a.k.a".split()
)
"""Words, without their last full stop, that a full stop does not end a sentence after."""

OPENERS: Final = frozenset(
    "After Although An As At By During For He However If In It Its Many On Several She Since The Their There "
    "These They This Those To Under When While With".split()
)
"""Words that begin a sentence even after initials (``in the U.S. The ...``)."""

_BORDER: Final = re.compile(
    r"""(?P<marks>[.?!]+)(?P<behind>["'”’)\]]*(?:\[[^\[\]]{1,20}\])*)\s+(?=["'“‘(\[]*(?P<next>[^\W_]+))"""
)
_LONGEST_ABBREVIATION: Final = 8
_PARQUET = b"PAR1"
_HINT = "Give xquad-r/LANG.json of google-research-datasets/lareqa; the Hub's xquad_r has no breaks."
_SHIFTED_HINT = (
    "The benchmark's code takes the text between the breaks; two sentences of the released tr.json are shifted. "
    "Read such a file with check_breaks: length, or name its language in 'shifted'."
)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return start and end of every sentence of a text, in code points, without the white space around."""
    spans = []
    start = len(text) - len(text.lstrip())
    for match in _BORDER.finditer(text):
        if _ends_sentence(match, text):
            spans.append((start, match.end("behind")))
            start = match.end()
    end = len(text.rstrip())
    if start < end:
        spans.append((start, end))
    return spans


def _ends_sentence(match: re.Match[str], text: str) -> bool:
    following = match["next"]
    if not (following[0].isupper() or following[0].isdigit()):
        return False
    if match["marks"] != "." or match["behind"]:
        return True
    before = text[max(0, match.start() - _LONGEST_ABBREVIATION) : match.start()]
    word = re.split(r"[\s\"'“‘(\[]", before)[-1]
    if word in ABBREVIATIONS:
        return False
    initials = all(len(part) == 1 and part.isupper() for part in word.split("."))
    return following in OPENERS or not initials


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """One question; `answer` and `start` are its first reference answer."""

    id: str
    text: str
    answer: str
    start: int
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Paragraph:
    """One paragraph of a file."""

    place: str
    """``article-paragraph``, both counted from 0: the same in every language."""
    context: str
    breaks: tuple[tuple[int, int], ...]
    """Start and end of every sentence, in code points of `context`."""
    sentences: tuple[str, ...]
    """The sentences as the file spells them out."""
    questions: tuple[_Question, ...]
    where: str


def _passage_text(sentence: str, paragraph: str) -> str:
    """Return the text of a candidate for a dual encoder: the sentence, then its whole paragraph.

    There is no separator and newlines are deleted, as in the released code.
    """
    return (sentence + paragraph).replace("\n", "")


def _read_paragraphs(paths: Sequence[Path]) -> Iterator[tuple[Path, _Paragraph]]:
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


def _paragraph(record: Any, place: str, where: str, path: Path) -> _Paragraph:
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
    return _Paragraph(
        place=place,
        context=context,
        breaks=_breaks(member(record, "sentence_breaks", list, where), len(context), where),
        sentences=tuple(sentences),
        questions=questions,
        where=where,
    )


def _question(record: Mapping[str, Any], where: str, path: Path) -> _Question:
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
    return _Question(
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


def _read_questions(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    number = 0
    for path, paragraph in _read_paragraphs(paths):
        for question in paragraph.questions:
            number += 1
            fields = {"id": question.id, "query": question.text, "paragraph": paragraph.place}
            yield Row(fields=fields, path=str(path), line=number)


XQUAD_R_QUESTIONS = Reader(
    name="xquad_r_questions",
    read=_read_questions,
    summary="LAReQA (XQuAD-R): the questions of one language, in the order of the file.",
)


def _read_sentences(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per sentence; equal sentences have different ids."""
    language = required_option(options, "language", "xquad_r_sentences")
    lengths_only = choice(options, "check_breaks", ("true", "length")) == "length"
    lengths_only |= language in options.get("shifted", "").split()
    number = 0
    for path, paragraph in _read_paragraphs(paths):
        _check_sentences(paragraph, lengths_only=lengths_only)
        answers: list[list[str]] = [[] for _ in paragraph.breaks]
        for question in paragraph.questions:
            answers[_sentence_of(question, paragraph)].append(question.id)
        for position, (start, end) in enumerate(paragraph.breaks):
            number += 1
            sentence = paragraph.context[start:end]
            fields = {
                "id": f"{language}/{paragraph.place}/{position}",
                "text": _passage_text(sentence, paragraph.context),
                "sentence": sentence,
                "answers": answers[position],
            }
            yield Row(fields=fields, path=str(path), line=number)


def _check_sentences(paragraph: _Paragraph, *, lengths_only: bool) -> None:
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
                hint=_SHIFTED_HINT,
            )


def _sentence_of(question: _Question, paragraph: _Paragraph) -> int:
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
    name="xquad_r_sentences",
    read=_read_sentences,
    summary="LAReQA (XQuAD-R): the candidate sentences of one language with the questions that they answer.",
    options={
        "language": "the code that begins the ids of the candidates (needed)",
        "shifted": "codes of languages whose released file needs check_breaks: length",
        "check_breaks": "'true' (default: the text between two breaks must be the sentence) or 'length' (it "
        "must be as long as the sentence)",
    },
)


def _read_training(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per question, with the sentence in which its first reference answer starts.

    A question whose answer starts in no sentence is skipped, as in the released training code
    (google-research/xtreme ``third_party/processors/lareqa.py``, _create_examples). Raises `DataError` for a
    question without an answer and for an answer that is not at its offset.
    """
    paragraph, spans = "", []
    for row in SQUAD.read(paths, options):
        fields = row.fields
        if not fields["answers"]:
            raise DataError(
                f"{row.path}: question {fields['id']!r}: expected a reference answer, found none."
            )
        if fields["paragraph"] != paragraph:
            paragraph, spans = fields["paragraph"], sentence_spans(fields["context"])
        answer = fields["answers"][0]["start"]
        sentence = next((fields["context"][start:end] for start, end in spans if start <= answer < end), None)
        if sentence is None:
            continue
        pair = {
            "id": fields["id"],
            "query": fields["question"],
            "passage": _passage_text(sentence, fields["context"]),
            "paragraph": paragraph,
        }
        yield Row(fields=pair, path=row.path, line=row.line)


SQUAD_SENTENCES = Reader(
    name="squad_sentences",
    read=_read_training,
    summary="SQuAD v1.1 JSON as pairs of a question and the sentence, with its paragraph, that answers it.",
    options=SQUAD.options,
)
