"""The training pairs of LAReQA: SQuAD v1.1 questions with the sentence that answers them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness import DataError, Reader, Row
from harness.data.readers.squad import SQUAD
from harness_xtreme_r.readers.sentence_border import sentence_spans
from harness_xtreme_r.readers.xquad_r_paragraph import passage_text

__all__ = ["SQUAD_SENTENCES"]


def _read(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
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
            "passage": passage_text(sentence, fields["context"]),
            "paragraph": paragraph,
        }
        yield Row(fields=pair, path=row.path, line=row.line)


SQUAD_SENTENCES = Reader(
    name="squad_sentences",
    read=_read,
    summary="SQuAD v1.1 JSON as pairs of a question and the sentence, with its paragraph, that answers it.",
    options=SQUAD.options,
)
