"""The questions of LAReQA (XQuAD-R): the queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness import Reader, Row
from harness_xtreme_r.readers.xquad_r_paragraph import read_paragraphs

__all__ = ["XQUAD_R_QUESTIONS"]


def _read(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    number = 0
    for path, paragraph in read_paragraphs(paths):
        for question in paragraph.questions:
            number += 1
            fields = {"id": question.id, "query": question.text, "paragraph": paragraph.place}
            yield Row(fields=fields, path=str(path), line=number)


XQUAD_R_QUESTIONS = Reader(
    name="xquad_r_questions",
    read=_read,
    summary="LAReQA (XQuAD-R): the questions of one language, in the order of the file.",
)
