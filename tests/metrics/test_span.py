"""Span F1 against sets counted by hand and against seqeval, where pre-tokens are the gold tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from seqeval.metrics import sequence_labeling as seqeval

from harness.data.alignment import detokenise
from harness.kinds.tagging import pretokens, spans_of_pretokens
from harness.metrics import chunk
from harness.metrics.catalog import METRICS
from harness.metrics.metric import MetricContext

CONTEXT = MetricContext(language="en")
BIO = ["O", *(f"{prefix}-{kind}" for prefix in "BI" for kind in ("PER", "ORG", "LOC"))]
BY_NAME = {metric.name: metric for metric in METRICS}

Spans = list[list[Any]]

one_span = st.tuples(st.integers(0, 9), st.integers(1, 4), st.sampled_from(["PER", "LOC"])).map(
    lambda parts: [parts[0], parts[0] + parts[1], parts[2]]
)
span_lists = st.lists(one_span, max_size=6, unique_by=tuple)
texts = st.lists(st.tuples(span_lists, span_lists), min_size=1, max_size=6)


@st.composite
def tagged_texts(draw: st.DrawFn) -> tuple[list[list[str]], list[list[str]]]:
    """Return (predictions, references) in BIO tags, valid or not, of sentences of like lengths."""
    tag = st.sampled_from(BIO)
    lengths = draw(st.lists(st.integers(1, 8), min_size=1, max_size=6))
    references = [draw(st.lists(tag, min_size=length, max_size=length)) for length in lengths]
    predictions = [[draw(st.one_of(st.just(gold), tag)) for gold in sentence] for sentence in references]
    return predictions, references


@given(texts)
def test_values_are_those_of_sets_over_the_corpus(corpus: list[tuple[Spans, Spans]]) -> None:
    predictions = [{"spans": predicted} for predicted, _ in corpus]
    references = [gold for _, gold in corpus]
    found = {(i, *item) for i, (predicted, _) in enumerate(corpus) for item in predicted}
    wanted = {(i, *item) for i, (_, gold) in enumerate(corpus) for item in gold}
    right = len(found & wanted)
    expected = {
        "span_precision": right / len(found) if found else 0.0,
        "span_recall": right / len(wanted) if wanted else 0.0,
        "span_f1": 2 * right / (len(found) + len(wanted)) if found or wanted else 0.0,
    }
    for name, value in expected.items():
        metric = BY_NAME[name]
        result = metric.compute(predictions, references, CONTEXT)
        assert result.value == pytest.approx(value)
        assert result.counts is not None
        assert result.counts.shape == (len(corpus), 3)
        assert metric.from_counts is not None
        assert metric.from_counts(result.counts.sum(axis=0)) == result.value


def _marked(tags: list[str]) -> Spans:
    text, offsets = detokenise([f"w{number}" for number in range(len(tags))], "en")
    pieces = pretokens(text)
    assert [(piece.start, piece.end) for piece in pieces] == list(offsets)
    return [[item.start, item.end, item.tag] for item in spans_of_pretokens(pieces, tags, "bio")]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@given(tagged_texts())
def test_equals_seqeval_and_chunk_f1_where_pretokens_are_the_tokens(
    corpus: tuple[list[list[str]], list[list[str]]],
) -> None:
    predicted, gold = corpus
    predictions = [{"spans": _marked(tags)} for tags in predicted]
    references = [_marked(tags) for tags in gold]
    options: dict[str, Any] = {"average": "micro", "zero_division": 0}
    for ours, token_metric, theirs in (
        (chunk.span_f1, chunk.chunk_f1, seqeval.f1_score),
        (chunk.span_precision, chunk.chunk_precision, seqeval.precision_score),
        (chunk.span_recall, chunk.chunk_recall, seqeval.recall_score),
    ):
        result = ours(predictions, references, CONTEXT)
        in_tokens = token_metric(predicted, gold, CONTEXT)
        assert result.value == pytest.approx(theirs(gold, predicted, **options))
        assert result.counts is not None and in_tokens.counts is not None
        assert np.array_equal(result.counts, in_tokens.counts)


def test_a_span_is_right_only_as_a_whole() -> None:
    gold = [[[0, 4, "PER"], [5, 9, "LOC"]]]
    for almost in ([0, 5, "PER"], [1, 4, "PER"], [0, 4, "LOC"]):
        result = chunk.span_f1([{"spans": [almost]}], gold, CONTEXT)
        assert result.counts is not None
        assert (result.value, result.counts.tolist()) == (0.0, [[0, 1, 2]])
    half = chunk.span_f1([[[0, 4, "PER"]]], gold, CONTEXT)
    assert half.value == pytest.approx(2 / 3)
    assert chunk.span_precision([[[0, 4, "PER"]]], gold, CONTEXT).value == 1.0
    assert chunk.span_recall([[[0, 4, "PER"]]], gold, CONTEXT).value == 0.5


@pytest.mark.parametrize(
    ("prediction", "message"),
    [
        ({"tags": []}, r"Item 1: expected a prediction with the key 'spans', found 'tags'"),
        ({"spans": "PER"}, r"Item 1: expected a list of spans as the prediction, found 'PER'"),
        ({"spans": [[0, 4]]}, r"Item 1: expected \[start, end, tag\] .* of the prediction, found \[0, 4\]"),
        ({"spans": [[4, 4, "PER"]]}, r"0 <= start < end .* found \[4, 4, 'PER'\]"),
        ({"spans": [[-1, 4, "PER"]]}, r"0 <= start < end"),
        ({"spans": [[0.0, 4, "PER"]]}, r"expected \[start, end, tag\]"),
        ({"spans": [[0, True, "PER"]]}, r"expected \[start, end, tag\]"),
        ({"spans": [[0, 4, 7]]}, r"expected \[start, end, tag\]"),
        ({"spans": [[0, 4, "PER"], [0, 4, "PER"]]}, r"the prediction has the span \[0, 4, 'PER'\] more than"),
    ],
)
def test_what_is_no_list_of_spans_is_rejected(prediction: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        chunk.span_f1([{"spans": []}, prediction], [[], []], CONTEXT)
    with pytest.raises(ValueError, match=r"Item 0: expected \[start, end, tag\] .* of the reference"):
        chunk.span_f1([[]], [[[3, 2, "X"]]], CONTEXT)
