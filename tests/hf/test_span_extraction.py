from __future__ import annotations

import unicodedata
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st
from transformers import AutoModelForQuestionAnswering

from harness.data.records import Answer, SpanExample
from harness.errors import AdapterError, DataError
from harness.models.capabilities import ExtractsSpans, Head, HeadSpec, SpanQuestion
from harness_hf.encoder.span_extraction import (
    SpanLimits,
    best_span,
    piece_f1,
    prepare_span_extraction,
    split_contexts,
    trim_span,
)

from .conftest import Options

SPEC = HeadSpec(head=Head.SPAN_EXTRACTION)
CONTEXTS = [
    "The cat sat on the warm mat, and the dog slept near the door.",
    "cafe\u0301 e\u0301cole fermé",
    "यह एक छोटा वाक्य है और बिल्ली चटाई पर बैठी है।",
    "القطة تجلس على السجادة قرب الباب.",
    "👩‍👩‍👧 猫坐在门边的垫子上。 👍🏽",
    "  two   spaces\n\tand a tab  ",
    "one two three " * 40,
]


def colours(count: int) -> list[SpanExample]:
    words = ["red", "green", "blue"]
    fillers = ["the cat sat on the mat", "the dog slept near the door", "one two three"]
    examples = []
    for number in range(count):
        word = words[number % 3]
        context = f"{fillers[number % 2]} {word} {fillers[(number + 1) % 3]}"
        answer = Answer(text=word, start=context.index(word))
        examples.append(SpanExample(id=str(number), question="good", context=context, answers=(answer,)))
    return examples


def questions(contexts: list[str]) -> list[SpanQuestion]:
    return [
        SpanQuestion(id=str(n), question="where is the cat", context=text) for n, text in enumerate(contexts)
    ]


@pytest.mark.thorough
def test_fitting_learns_spans(encoder: Any, fit_options: Options) -> None:
    settings_ = {"epochs": 8, "max_length": 48, "stride": 8, "learning_rate": 3e-3}
    fitted = encoder.fit(colours(90), colours(9), SPEC, fit_options(**settings_))
    assert isinstance(fitted, ExtractsSpans)
    test = colours(12)
    answers = fitted.extract_spans(
        [SpanQuestion(id=one.id, question=one.question, context=one.context) for one in test]
    )
    right = [found.text == one.answers[0].text for found, one in zip(answers, test, strict=True)]
    assert np.mean(right) >= 0.9


@pytest.fixture
def extractor(with_head: Any, open_folder: Any) -> Any:
    return open_folder(with_head(AutoModelForQuestionAnswering))


def test_answers_are_slices_of_their_contexts(extractor: Any) -> None:
    for answer, context in zip(extractor.extract_spans(questions(CONTEXTS)), CONTEXTS, strict=True):
        assert answer.text == context[answer.start : answer.end]
        assert answer.text == answer.text.strip()
        assert answer.text
        assert np.isfinite(answer.score)
        assert not answer.truncated


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(context=st.text(max_size=120) | st.sampled_from(CONTEXTS), question=st.text(max_size=20))
def test_any_context_gets_a_slice_of_itself(
    with_head: Any, open_folder: Any, context: str, question: str
) -> None:
    cache = test_any_context_gets_a_slice_of_itself.__dict__
    if "adapter" not in cache:
        cache["adapter"] = open_folder(with_head(AutoModelForQuestionAnswering))
    (answer,) = cache["adapter"].extract_spans([SpanQuestion(id="1", question=question, context=context)])
    if answer.start < 0:
        assert (answer.text, answer.end) == ("", -1)
        pieces = cache["adapter"]._session.tokenizer(context, add_special_tokens=False)["input_ids"]
        assert not context.strip() or not pieces or not any(map(str.isprintable, context))
    else:
        assert answer.text == context[answer.start : answer.end]
        assert answer.text.strip() == answer.text != ""


def test_empty_contexts_and_empty_lists(extractor: Any) -> None:
    assert extractor.extract_spans([]) == []
    for context in ("", "   "):
        (answer,) = extractor.extract_spans(questions([context]))
        assert (answer.text, answer.start, answer.end) == ("", -1, -1)


def test_a_combining_mark_stays_with_its_letter() -> None:
    context = unicodedata.normalize("NFD", "le café fermé")
    start = context.index("cafe")
    assert trim_span(context, start, start + 4) == (start, start + 5)
    assert unicodedata.normalize("NFC", context[start : start + 5]) == "café"
    hindi = "बिल्ली है"
    assert hindi[slice(*trim_span(hindi, 0, 1))] == "बि"
    assert trim_span("a b ", 1, 4) == (2, 3)


@pytest.mark.parametrize("text", CONTEXTS)
def test_every_word_of_a_context_is_found_again(encoder: Any, text: str) -> None:
    """The way from characters to pieces and back, for words of every script."""
    limits = SpanLimits(max_length=64, stride=7, max_query_length=4)
    windows = split_contexts(questions([text]), encoder._session, limits)
    position = 0
    for word in text.split():
        start = text.index(word, position)
        position = end = start + len(word)
        holding = [(window, window.pieces_of(start, end)) for window in windows]
        holding = [(window, pieces) for window, pieces in holding if pieces is not None]
        assert holding, word
        for window, pieces in holding:
            assert pieces is not None
            first, last = (piece - window.context_start for piece in pieces)
            left, right = trim_span(text, window.offsets[first][0], window.offsets[last][1])
            assert left <= start
            assert right >= end
            assert text[left:right].split() == [word] or len(text[left:right]) <= len(word) + 1


def test_windows_overlap_and_cover_the_context(bert: Any) -> None:
    session = bert._session
    text = "cat " * 100
    limits = SpanLimits(max_length=30, stride=10)
    windows = split_contexts(questions([text]), session, limits)
    asked = len(session.tokenizer("where is the cat", add_special_tokens=False)["input_ids"])
    room = 30 - session.pair.size - asked
    assert [window.offsets[0][0] // 4 for window in windows] == list(range(0, 10 * len(windows), 10))
    assert all(len(window.encoded) == 30 for window in windows[:-1])
    assert len(windows) == int(np.ceil((100 - room) / 10)) + 1
    assert windows[-1].offsets[-1][1] == len(text.rstrip())
    for window in windows:
        ids = window.encoded.input_ids
        expected = session.tokenizer(
            "where is the cat", text[window.offsets[0][0] : window.offsets[-1][1]], return_token_type_ids=True
        )
        assert ids == expected["input_ids"]
        assert window.encoded.type_ids == expected["token_type_ids"]


def test_windows_are_those_of_the_tokenizer(bert: Any) -> None:
    """The same windows from the library's own stride, which counts the overlap instead of the step."""
    session = bert._session
    text = "The dog slept near the door, the cat sat on the mat. " * 6
    question = "where is the cat"
    asked = len(session.tokenizer(question, add_special_tokens=False)["input_ids"])
    room = 40 - session.pair.size - asked
    expected = session.tokenizer(
        question,
        text,
        truncation="only_second",
        max_length=40,
        stride=room - 12,
        return_overflowing_tokens=True,
    )["input_ids"]
    item = SpanQuestion(id="1", question=question, context=text)
    windows = split_contexts([item], session, SpanLimits(max_length=40, stride=12))
    assert [window.encoded.input_ids for window in windows] == expected


def test_training_targets(encoder: Any) -> None:
    filler = "the dog slept near the door " * 8
    context = f"{filler}green {filler}"
    start = context.index("green")
    example = SpanExample(
        id="1", question="good", context=context, answers=(Answer(text="green", start=start),)
    )
    data = prepare_span_extraction(encoder._session, [example], [], SpanLimits(max_length=40, stride=10))
    assert len(data.train) > 3
    vocabulary = encoder._session.tokenizer
    held = 0
    for feature in data.train:
        (sequence,) = feature.sequences
        first, last = feature.targets["start_positions"], feature.targets["end_positions"]
        if (first, last) != (0, 0):
            held += 1
            assert vocabulary.decode(sequence.input_ids[first : last + 1]).strip() == "green"
        else:
            assert "green" not in vocabulary.decode(sequence.input_ids)
    assert held > 1


def test_a_long_question_is_cut_and_said_so(extractor: Any) -> None:
    item = SpanQuestion(id="1", question="where is the cat " * 40, context="The cat sat on the mat.")
    (answer,) = extractor.extract_spans([item])
    assert answer.truncated
    assert answer.text


def test_answers_do_not_depend_on_batches(
    with_head: Any, open_folder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = with_head(AutoModelForQuestionAnswering)
    items = questions(CONTEXTS)
    large = open_folder(folder, batch_tokens=99_999).extract_spans(items)
    monkeypatch.setattr("harness_hf.encoder.span_extraction.ITEM_CHUNK", 2)
    small = open_folder(folder, batch_tokens=1).extract_spans(items)
    for left, right in zip(small, large, strict=True):
        assert replace(left, score=0.0) == replace(right, score=0.0)
        assert left.score == pytest.approx(right.score, abs=1e-5)


def slow_best_span(starts: Any, ends: Any, visible: Any, longest: int, n_best: int) -> tuple[int, int] | None:
    """The definition, by looking at all pairs."""
    pieces = [index for index, shown in enumerate(visible) if shown]
    top_starts = sorted(pieces, key=lambda index: -starts[index])[:n_best]
    top_ends = sorted(pieces, key=lambda index: -ends[index])[:n_best]
    for left, right in ((top_starts, top_ends), (pieces, pieces)):
        spans = [(a, b) for a in sorted(left) for b in sorted(right) if 0 <= b - a < longest]
        if spans:
            return max(spans, key=lambda span: float(starts[span[0]]) + float(ends[span[1]]))
    return None


@given(
    st.integers(1, 12).flatmap(
        lambda size: st.tuples(
            st.lists(st.integers(-3, 3), min_size=size, max_size=size),
            st.lists(st.integers(-3, 3), min_size=size, max_size=size),
            st.lists(st.booleans(), min_size=size, max_size=size),
        )
    ),
    st.integers(1, 5),
    st.integers(1, 4),
)
def test_the_best_span_is_the_best_of_all_pairs(
    rows: tuple[list[int], list[int], list[bool]], longest: int, n_best: int
) -> None:
    starts, ends = np.array(rows[0], np.float32), np.array(rows[1], np.float32)
    found = best_span(starts, ends, np.array(rows[2]), longest, n_best)
    assert found == slow_best_span(starts, ends, rows[2], longest, n_best)


def test_piece_f1() -> None:
    predicted = np.array([[2, 4], [5, 3], [0, 0], [7, 8], [1, 1]])
    gold = np.array([[3, 5], [3, 5], [0, 0], [1, 2], [1, 1]])
    expected = []
    for (a, b), (c, d) in zip(predicted, gold, strict=True):
        left, right = set(range(a, b + 1)), set(range(c, d + 1))
        expected.append(2 * len(left & right) / (len(left) + len(right)))
    assert piece_f1(predicted, gold) == pytest.approx(np.mean(expected))


def test_answers_that_are_not_in_their_context_are_named(bert: Any, fit_options: Options) -> None:
    good = colours(4)
    for answer in (Answer(text="red", start=0), Answer(text="", start=0), Answer(text="red", start=-3)):
        with pytest.raises(DataError, match="'odd' has the answer"):
            bert.fit([*good, replace(good[0], id="odd", answers=(answer,))], [], SPEC, fit_options())
    with pytest.raises(DataError, match="'odd' has no answer"):
        bert.fit(good, [replace(good[0], id="odd", answers=())], SPEC, fit_options())


def test_scores_that_are_not_finite_are_an_error(extractor: Any) -> None:
    with torch.no_grad():
        extractor._session.network.qa_outputs.bias.fill_(float("nan"))
    with pytest.raises(AdapterError, match="not finite"):
        extractor.extract_spans(questions(CONTEXTS[:1]))


def test_the_settings_of_the_fit_are_used(bert: Any, fit_options: Options, open_folder: Any) -> None:
    options = fit_options(
        epochs=1, max_length=30, stride=5, max_query_length=3, max_answer_length=1, n_best=4
    )
    fitted = bert.fit(colours(8), [], SPEC, options)
    limits = SpanLimits(max_length=30, stride=5, max_query_length=3, max_answer_length=1, n_best=4)
    assert fitted._limits() == limits
    assert open_folder(options.directory)._limits() == limits
    for answer in fitted.extract_spans(questions(CONTEXTS[:1])):
        assert len(answer.text.split()) == 1
        assert answer.truncated
