from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from seqeval.metrics import sequence_labeling as seqeval

from harness.metrics import chunk
from harness.metrics.catalog import METRICS
from harness.metrics.metric import Metric, MetricContext

pytestmark = pytest.mark.thorough

CONTEXT = MetricContext(language="en")
UPOS = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X _".split()
BIO = ["O", *(f"{prefix}-{kind}" for prefix in "BI" for kind in ("PER", "ORG", "LOC"))]
BIOES = ["O", *(f"{prefix}-{kind}" for prefix in "BIES" for kind in ("PER", "LOC"))]
TAG_SETS = (UPOS, UPOS[:3], ["NOUN", "SCONJ", "CCONJ", "SYM", "X", "_"], BIO, BIOES)
BY_NAME = {metric.name: metric for metric in METRICS}
SET_METRICS = [BY_NAME[name] for name in ("chunk_f1", "chunk_precision", "chunk_recall", "token_accuracy")]


@st.composite
def corpora(draw: st.DrawFn) -> tuple[list[list[str]], list[list[str]]]:
    """Return (predictions, references) over one tag set; sentences may be empty and BIO sequences invalid."""
    tag = st.sampled_from(draw(st.sampled_from(TAG_SETS)))
    lengths = draw(st.lists(st.integers(0, 7), min_size=1, max_size=6))
    references = [draw(st.lists(tag, min_size=length, max_size=length)) for length in lengths]
    predictions = [[draw(st.one_of(st.just(gold), tag)) for gold in sentence] for sentence in references]
    return predictions, references


def as_in_seqeval_0_0_12(sentences: list[list[str]]) -> list[list[str]]:
    """Return tags whose type under the rule of seqeval 1.x is the type under the rule of 0.0.12.

    seqeval 1.x gives ``O`` the type ``_``, so the tag ``_`` needs another name.
    """

    def rename(tag: str) -> str:
        if "-" in tag or tag == "O":
            return tag
        return "_-BLANK" if tag == "_" else f"{tag[0]}-{tag}"

    return [[rename(tag) for tag in sentence] for sentence in sentences]


@pytest.mark.filterwarnings("ignore:.*seems not to be NE tag")
@given(corpora())
def test_equals_seqeval(corpus: tuple[list[list[str]], list[list[str]]]) -> None:
    predictions, references = corpus
    gold, predicted = as_in_seqeval_0_0_12(references), as_in_seqeval_0_0_12(predictions)
    options: dict[str, Any] = {"average": "micro", "zero_division": 0}
    assert chunk.chunk_f1(predictions, references, CONTEXT).value == pytest.approx(
        seqeval.f1_score(gold, predicted, **options)
    )
    assert chunk.chunk_precision(predictions, references, CONTEXT).value == pytest.approx(
        seqeval.precision_score(gold, predicted, **options)
    )
    assert chunk.chunk_recall(predictions, references, CONTEXT).value == pytest.approx(
        seqeval.recall_score(gold, predicted, **options)
    )


@pytest.mark.filterwarnings("ignore:.*seems not to be NE tag")
@given(corpora())
def test_chunks_are_those_of_seqeval(corpus: tuple[list[list[str]], list[list[str]]]) -> None:
    for tags, renamed in zip(corpus[1], as_in_seqeval_0_0_12(corpus[1]), strict=True):
        expected = [
            (kind.replace("BLANK", "_"), start, end) for kind, start, end in seqeval.get_entities(renamed)
        ]
        assert chunk.chunks(tags) == expected


@given(corpora())
def test_counts_of_sentences_add_up(corpus: tuple[list[list[str]], list[list[str]]]) -> None:
    predictions, references = corpus
    for metric in SET_METRICS:
        result = metric.compute(predictions, references, CONTEXT)
        assert result.counts is not None
        alone = [
            metric.compute([p], [g], CONTEXT).counts for p, g in zip(predictions, references, strict=True)
        ]
        np.testing.assert_array_equal(
            result.counts, np.concatenate([row for row in alone if row is not None])
        )
        assert metric.from_counts is not None
        assert metric.from_counts(result.counts.sum(axis=0)) == result.value
        assert 0.0 <= result.value <= 1.0


def test_runs_of_equal_bare_tags_are_one_chunk_within_a_sentence() -> None:
    assert chunk.chunks(["NOUN", "NOUN", "VERB"]) == [("NOUN", 0, 1), ("VERB", 2, 2)]
    assert chunk.chunks(["SYM", "SYM", "SCONJ"]) == [("SYM", 0, 0), ("SYM", 1, 1), ("SCONJ", 2, 2)]
    result = chunk.chunk_f1(
        [["NOUN", "ADJ", "VERB"], ["VERB"]], [["NOUN", "NOUN", "VERB"], ["VERB"]], CONTEXT
    )
    assert result.counts is not None
    assert result.counts.tolist() == [[1.0, 3.0, 2.0], [1.0, 1.0, 1.0]]
    assert result.value == pytest.approx(2 * 2 / (4 + 3))
    # unlike in seqeval 1
    assert chunk.chunk_f1([["CCONJ"]], [["SCONJ"]], CONTEXT).value == 0.0
    assert chunk.chunk_f1([["X"]], [["_"]], CONTEXT).value == 0.0
    for metric in SET_METRICS[:3]:
        assert metric.compute([["O", "O"]], [["O", "O"]], CONTEXT).value == 0.0


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        ([["X"]], [["X"], ["X"]], "each of the 2 references, found 1"),
        ([], [], "at least one item"),
        ([["X"], ["X"]], [["X"], ["X", "X"]], "Sentence 1: expected 2 predicted tags, .* found 1"),
        ([["X", ""]], [["X", "X"]], "Sentence 0: the prediction has an empty tag at token 1"),
        (["NOUN"], [list("NOUN")], "Sentence 0: expected a list of tags as the prediction, found 'NOUN'"),
    ],
)
@pytest.mark.parametrize("metric", SET_METRICS, ids=lambda metric: metric.name)
def test_rejects_what_does_not_fit(
    metric: Metric, predictions: list[Any], references: list[Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        metric.compute(predictions, references, CONTEXT)
