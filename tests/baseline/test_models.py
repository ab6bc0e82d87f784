"""The baselines: character n-grams, the majority, guesses, and how they read words."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from harness.data.records import (
    Answer,
    ClassificationExample,
    MultipleChoiceExample,
    SpanExample,
    TaggedSentence,
)
from harness.errors import CapabilityError, UnknownNameError
from harness.models.capabilities import Choice, Head, HeadSpec, SpanQuestion, TextInput
from harness.testing.examples import SENTENCES, head_spec, training_examples
from harness_baseline.char_ngram import _read_passage as read_passage
from harness_baseline.guess import hash_text, mix
from harness_baseline.model import Baseline
from harness_baseline.text import normalise, shape_of, split_words

PAIR = HeadSpec(head=Head.CLASSIFICATION, labels=("no", "yes"), inputs=("a", "b"))
SENTIMENT = HeadSpec(head=Head.CLASSIFICATION, labels=("no", "yes"), inputs=("text",))
WORDS = [f"w{number}" for number in range(60)]


def overlap_pairs(count: int, seed: int, words: list[str]) -> list[ClassificationExample]:
    """Pairs that are labelled by whether the second text repeats words of the first."""
    generator = np.random.default_rng(seed)
    pairs = []
    for number in range(count):
        chosen = [str(word) for word in generator.permutation(words)[:8]]
        label = "yes" if number % 2 else "no"
        second = chosen[1:5] if label == "yes" else [str(word) for word in generator.permutation(words)[:4]]
        inputs = {"a": " ".join(chosen), "b": " ".join(second)}
        pairs.append(ClassificationExample(id=str(number), inputs=inputs, label=label))
    return pairs


def sentiments(positive: str, negative: str) -> list[ClassificationExample]:
    return [
        ClassificationExample(id=str(number), inputs={"text": f"{word} x{number}"}, label=label)
        for number, (word, label) in enumerate([(positive, "yes"), (negative, "no")] * 10)
    ]


def accuracy(model: Any, pairs: list[ClassificationExample]) -> float:
    inputs = [TextInput(text=pair.inputs["a"], text_pair=pair.inputs["b"]) for pair in pairs]
    best = model.classify(inputs, PAIR.labels).argmax(axis=1)
    return float(np.mean([PAIR.labels[index] == pair.label for index, pair in zip(best, pairs, strict=True)]))


def test_overlap_is_learnt_and_carries_over_to_another_script(fit: Any) -> None:
    model = fit("char-ngram", overlap_pairs(200, 1, WORDS), PAIR)
    assert accuracy(model, overlap_pairs(100, 2, WORDS)) > 0.9
    assert accuracy(model, overlap_pairs(100, 3, ["क" * size + "ल" for size in range(1, 61)])) > 0.9
    with pytest.raises(UnknownNameError, match=r"'yess'.*'yes'"):
        model.classify([TextInput(text="a", text_pair="b")], ["yess"])
    with pytest.raises(CapabilityError, match="'text_to_text'"):
        fit("char-ngram", ["x"], HeadSpec(head=Head.TEXT_TO_TEXT))


def test_one_text_is_classified_by_its_words(fit: Any) -> None:
    model = fit("char-ngram", sentiments("good", "bad"), SENTIMENT)
    scores = model.classify([TextInput(text="good day"), TextInput(text="bad day")], SENTIMENT.labels)
    assert scores.argmax(axis=1).tolist() == [1, 0]


def test_the_second_stage_goes_on_from_the_first(fit: Any) -> None:
    asked = [TextInput(text="good")]
    first = fit("char-ngram", sentiments("good", "bad"), SENTIMENT)
    second = fit(first, sentiments("up", "down"), SENTIMENT)
    alone = fit("char-ngram", sentiments("up", "down"), SENTIMENT)
    kept, forgotten = (model.classify(asked, SENTIMENT.labels)[0] for model in (second, alone))
    assert kept[1] - kept[0] > 5 * abs(forgotten[1] - forgotten[0])


def test_tags_are_learnt_from_suffixes(fit: Any) -> None:
    train = [
        TaggedSentence(
            id=str(number), tokens=(f"b{number}ing", f"c{number}ed")[::order], tags=("G", "P")[::order]
        )
        for number in range(40)
        for order in (1, -1)
    ]
    model = fit("char-ngram", train, HeadSpec(head=Head.TAGGING))
    assert model.tag([["zooming"], [], ["played", "playing"]]) == [["G"], [], ["P", "G"]]


def test_choices_are_learnt_from_overlap(fit: Any) -> None:
    train = [
        MultipleChoiceExample(
            id=pair.id, context=pair.inputs["a"], choices=(pair.inputs["b"], "zz yy"), label=0
        )
        for pair in overlap_pairs(40, 1, WORDS)
        if pair.label == "yes"
    ]
    model = fit("char-ngram", train, HeadSpec(head=Head.MULTIPLE_CHOICE))
    choices = [("q r",), ("q r", "l m"), ("l m", "k", "q"), ()]
    items = [Choice(context="k l m", choices=own) for own in choices]
    answers = model.choose(items)
    assert answers[1][1] > answers[1][0]
    assert answers[-1] == ()
    assert answers == [model.choose([item])[0] for item in items]


def test_spans_are_learnt_and_exact_in_any_script(fit: Any) -> None:
    train = []
    for number in range(60):
        context = f"Alpha{number} lives in town. The year of birth is {1900 + number} for all. Nothing else."
        answer = Answer(text=str(1900 + number), start=context.index(str(1900 + number)))
        train.append(
            SpanExample(
                id=str(number), question="What is the year of birth?", context=context, answers=(answer,)
            )
        )
    model = fit("char-ngram", train, HeadSpec(head=Head.SPAN_EXTRACTION))
    context = "😀 Beta lives in town e\u0301. The year of birth is 1875 for all 12 others."
    asked = SpanQuestion(id="1", question="What is the year of birth?", context=context)
    (answer_found,) = model.extract_spans([asked])
    assert answer_found.text == "1875"
    assert context[answer_found.start : answer_found.end] == "1875"


def test_vectors_are_those_of_the_n_gram_counts(open_baseline: Callable[..., Baseline]) -> None:
    model = open_baseline("char-ngram")
    one, same, near, far = model.embed(["Straße", "  STRASSE ", "Strasse!", "वर्षा"], side="query")
    assert one @ same == pytest.approx(1, abs=1e-6)
    assert one @ near > 0.6
    assert abs(one @ far) < 0.2
    composed, decomposed = model.embed(["é", unicodedata.normalize("NFD", "é")], side="passage")
    np.testing.assert_array_equal(composed, decomposed)


def test_vectors_do_not_depend_on_the_chunk(open_baseline: Callable[..., Baseline]) -> None:
    model = open_baseline("char-ngram", dimension="64")
    texts = [f"{text} {number}" for number in range(300) for text in SENTENCES]
    whole = model.embed(texts, side="query")
    np.testing.assert_array_equal(whole[1020:1030], model.embed(texts[1020:1030], side="query"))


def test_fitting_the_dual_encoder_changes_no_vector(fit: Any, open_baseline: Callable[..., Baseline]) -> None:
    head = Head.DUAL_ENCODER
    fitted = fit("char-ngram", training_examples(head), head_spec(head))
    before = open_baseline("char-ngram").embed(SENTENCES, side="query")
    np.testing.assert_array_equal(fitted.embed(SENTENCES, side="query"), before)


def test_majority_answers_with_the_shares_of_its_training_set(fit: Any) -> None:
    labelled = [
        ClassificationExample(id=str(number), inputs={"text": "x"}, label=label)
        for number, label in enumerate(["a", "b", "b", "b"])
    ]
    model = fit("majority", labelled, HeadSpec(head=Head.CLASSIFICATION, labels=("a", "b", "c")))
    scores = model.classify([TextInput(text="anything"), TextInput(text="")], ["c", "b", "a"])
    np.testing.assert_array_equal(scores, [[0, 0.75, 0.25]] * 2)
    tagged = [TaggedSentence(id="1", tokens=("a", "b", "c"), tags=("X", "Y", "Y"))]
    assert fit("majority", tagged, HeadSpec(head=Head.TAGGING)).tag([["a", "q"], []]) == [["Y", "Y"], []]
    chosen = [
        MultipleChoiceExample(id=str(number), context="x", choices=("a", "b"), label=label)
        for number, label in enumerate([1, 1, 0])
    ]
    model = fit("majority", chosen, HeadSpec(head=Head.MULTIPLE_CHOICE))
    two, three = model.choose(
        [Choice(context="", choices=choices) for choices in (("p", "q"), ("p", "q", "r"))]
    )
    assert two == pytest.approx((1 / 3, 2 / 3))
    assert three == pytest.approx((1 / 3, 2 / 3, 0))


@pytest.mark.parametrize(
    ("context", "answer"),
    [
        ("  Anna lives here. He does not.", "Anna lives here"),
        ("राम घर में है। वह सोता है।", "राम घर में है"),
        ("他在家。她不在。", "他在家"),
        ("no end", "no end"),
        (" \n", ""),
    ],
)
def test_majority_span_is_the_first_sentence(fit: Any, context: str, answer: str) -> None:
    head = Head.SPAN_EXTRACTION
    model = fit("majority", training_examples(head), head_spec(head))
    (span,) = model.extract_spans([SpanQuestion(id="1", question="?", context=context)])
    assert span.text == answer
    assert (span.start == -1) if not answer else (context[span.start : span.end] == answer)


ITEMS = [TextInput(text=f"item {number}", text_pair="b") for number in range(3000)]


def test_guesses_are_uniform_and_depend_on_the_seeds(
    fit: Any, open_baseline: Callable[..., Baseline]
) -> None:
    head = Head.CLASSIFICATION
    train, spec = training_examples(head), head_spec(head)

    def scores(fit_seed: int, **options: str) -> Any:
        model = fit(open_baseline("random", **options), train, spec, seed=fit_seed)
        return model.classify(ITEMS, spec.labels)

    first = scores(1)
    assert abs(Counter(first.argmax(axis=1).tolist())[0] - 1500) < 150
    np.testing.assert_array_equal(first, scores(1))
    for other in (scores(2), scores(1, seed="5")):
        assert not np.allclose(first, other)
    pairs = [TextInput(text="a"), TextInput(text="a", text_pair="")]
    missing, empty = fit("random", train, spec).classify(pairs, spec.labels)
    assert not np.allclose(missing, empty), "a missing pair is not an empty one"


def test_vectors_of_different_texts_are_nearly_orthogonal(open_baseline: Callable[..., Baseline]) -> None:
    vectors = open_baseline("random").embed(SENTENCES, side="query")
    products = vectors @ vectors.T - np.eye(len(SENTENCES))
    assert np.abs(products).max() < 0.1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't go!", ["Don", "'", "t", "go", "!"]),
        ("हिन्दी में बात।", ["हिन्दी", "में", "बात", "।"]),
        ("我们很好。", ["我", "们", "很", "好", "。"]),
        ("می\u200cخواهم بروم", ["می\u200cخواهم", "بروم"]),
        ("cafe\u0301 o\u0300", ["cafe\u0301", "o\u0300"]),
        ("กี่", ["กี่"]),
        ("", []),
    ],
)
def test_words_of_many_scripts(text: str, words: list[str]) -> None:
    assert [word.form for word in split_words(text)] == words


@given(st.text())
def test_offsets_cut_out_the_words_and_only_blanks_are_left(text: str) -> None:
    rest = list(text)
    for word in split_words(text):
        assert text[word.start : word.end] == word.form
        rest[word.start : word.end] = [" "] * (word.end - word.start)
    assert all(unicodedata.category(character) in {"Zs", "Zl", "Zp", "Cc"} for character in rest)


@pytest.mark.parametrize(
    ("form", "shape"), [("McCoy-1", "AaAa.0"), ("सेब", "c"), ("१२", "0"), ("$5", "$0"), ("", "")]
)
def test_shapes(form: str, shape: str) -> None:
    assert shape_of(form) == shape


@given(st.text(alphabet="aB1 .,।中\u0301", max_size=40))
def test_candidates_stay_inside_the_passage(text: str) -> None:
    passage = read_passage(text)
    assert len(passage.words) == len(passage.classes) == len(passage.sentences)
    assert (passage.firsts <= passage.lasts).all()
    assert (passage.sentences[passage.firsts] == passage.sentences[passage.lasts]).all()
    numbers = read_passage("It cost 3.5 euros. Yes.")
    assert numbers.sentences.tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 1], "3.5 ends no sentence"


def test_hashes_are_the_same_in_every_process() -> None:
    assert hash_text("añb", 1) == 584044005187562864
    assert hash_text("ab", "c") != hash_text("a", "bc")
    # The first outputs of SplitMix64 for the seeds 0 and 1.
    assert mix(np.array([0, 1], dtype=np.uint64)).tolist() == [16294208416658607535, 10451216379200822465]


@given(st.text())
def test_composed_and_decomposed_text_are_one(text: str) -> None:
    assert normalise(unicodedata.normalize("NFD", text)) == normalise(unicodedata.normalize("NFC", text))
