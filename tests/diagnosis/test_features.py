from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from harness.analysis.items import spans_of
from harness.data.features import FeatureContext, Items
from harness.languages.detection import text_scripts
from harness.metrics.chunk import chunks, corpus_chunks
from harness_diagnosis import attributes
from harness_diagnosis.attributes import UNKNOWN, fertility, question_type, unknown_words
from harness_diagnosis.catalog import FEATURES
from tests.diagnosis.conftest import items_of, pair, question, record, sentence

NOTHING = FeatureContext()
few_words = st.lists(st.sampled_from("abcd"), max_size=9)
several_words = st.lists(st.sampled_from("abcd"), min_size=4, max_size=9)


@given(st.lists(st.tuples(several_words, few_words), min_size=1, max_size=6))
def test_bleu_equals_that_of_sacrebleu(pairs: list[tuple[list[str], list[str]]]) -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    theirs = sacrebleu.BLEU(smooth_method="add-k", smooth_value=1, effective_order=True, tokenize="none")
    ours = attributes.sentence_bleu([own[0] for own in pairs], [own[1] for own in pairs])
    for value, (hypothesis, reference) in zip(ours.tolist(), pairs, strict=True):
        expected = theirs.sentence_score(" ".join(hypothesis), [" ".join(reference)]).score / 100
        if set(hypothesis) & set(reference):
            assert value == pytest.approx(expected)
        else:
            assert value == 0


def test_bleu_of_short_texts() -> None:
    ours = attributes.sentence_bleu(
        [["a"], ["a", "a"], [], ["a", "b"]], [["a"], ["a"], ["a"], ["a", "b", "c", "d"]]
    )
    # Clipped 1/2 and smoothed 1/2; 1 and (1 + 1) / (1 + 1), with the brevity penalty exp(1 - 4/2).
    assert ours == pytest.approx([1, 0.5, 0, np.exp(-1)])


def test_lengths_ratios_and_question_types() -> None:
    fields = {"context": "灯节在河边。", "question": "Where is the festival?"}
    items = items_of("xquad", "zh", [record("1", fields, {"text": ""}, ["河边", "边"])])
    assert attributes.answer_length(items, NOTHING) == [2]
    assert attributes.ratio(attributes.answer_length, attributes.length("context"))(items, NOTHING) == [0.4]
    empty = items_of("xquad", "en", [record("1", {"context": "?", "question": "a b"}, {"text": ""}, ["a"])])
    shares = attributes.ratio(attributes.answer_length, attributes.length("context"))(empty, NOTHING)
    assert shares is not None
    assert np.isnan(shares).all()


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "In what year did it begin?", "in"),
        ("hi", "टेस्ला ने कब काम शुरू किया?", "when"),
        ("hi", "सुपर बाउल कहाँ हुआ?", "where"),
        ("fi", "Kuinka monta asukasta Turussa on?", "how"),
        ("sw", "Kwa nini Tesla aliondoka?", "why"),
        ("zh", "特斯拉什么时候出生？", "when"),
        ("th", "เขาเกิดที่ไหน", "where"),
        ("ko", "수도는 어디인가?", "where"),
        ("ru", "В каком году?", "which"),
        ("sw", "Mji mkuu wa Morocco ni?", UNKNOWN),
        ("yo", "Tani o?", UNKNOWN),
    ],
)
def test_a_question_has_the_type_of_its_question_word(language: str, text: str, expected: str) -> None:
    assert question_type(_questions(language, first=text), NOTHING) == [expected]


def _questions(language: str, **texts: str) -> Items:
    fields = {key: {"context": "", "question": text} for key, text in texts.items()}
    return items_of("xquad", language, [record(key, own, {"text": ""}, ["a"]) for key, own in fields.items()])


def test_a_question_of_a_parallel_set_has_the_type_of_the_english_one() -> None:
    english = _questions("en", first="Which team won?", second="Who lost?")
    hindi = _questions("hi", second="टेस्ला क्या?", third="टेस्ला कब?")
    assert question_type(hindi, FeatureContext(english=lambda: english)) == ["who", "when"]


def test_pairs_are_in_the_order_of_the_spec_and_not_of_the_file() -> None:
    items = items_of("xnli", "en", [pair("1", "one two three", "Three four", "neutral", "neutral")])
    assert attributes.input_length(0)(items, NOTHING) == [3]
    assert attributes.input_length(1)(items, NOTHING) == [2]
    assert attributes.overlap(items, NOTHING) == [1 / 4]


def test_spans_have_positions_lengths_and_characters() -> None:
    records = [
        sentence("1", "Anna Li lives in Rome", "B-PER O O O B-LOC", "B-PER I-PER O O B-LOC"),
        sentence("2", "nobody here", "O O", "O O"),
        sentence("3", "हिन्दी", "B-LOC", "B-LOC"),
    ]
    items = items_of("wikiann", "en", records)
    gold = spans_of(items, items.references, "gold")
    assert gold is not None
    context = FeatureContext(spans=gold)
    assert gold.items.tolist() == [0, 0, 2]
    assert list(attributes.tag(items, context)) == ["PER", "LOC", "LOC"]
    assert attributes.span_length(items, context) == pytest.approx([2, 1, 1])
    assert attributes.characters(items, context) == pytest.approx([7, 4, 3])
    assert attributes.position(items, context) == pytest.approx([0, 0.8, 0])
    assert attributes.sentence_length(items, NOTHING) == pytest.approx([5, 2, 1])
    assert attributes.density(items, NOTHING) == pytest.approx([0.6, 0, 1])


def test_bare_tags_make_every_token_a_span() -> None:
    items = items_of("udpos", "en", [sentence("1", "big cats sleep", "ADJ NOUN NOUN", "ADJ NOUN VERB")])
    gold = spans_of(items, items.references, "gold")
    assert gold is not None
    assert list(gold.tags) == ["ADJ", "NOUN", "VERB"]
    assert (gold.ends - gold.starts == 1).all()
    assert attributes.span_length(items, FeatureContext(spans=gold)) is None
    assert attributes.density(items, NOTHING) is None


@given(st.lists(st.lists(st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B"]), max_size=6), max_size=5))
def test_chunks_of_a_corpus_are_those_of_its_sentences(sentences: list[list[str]]) -> None:
    found = corpus_chunks(sentences)
    rows = zip(found.sentences.tolist(), found.types, found.starts.tolist(), found.ends.tolist(), strict=True)
    assert list(rows) == [(number, *own) for number, tags in enumerate(sentences) for own in chunks(tags)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, мир!", "Latn"),
        ("यह हिन्दी", "Deva"),
        ("यह भी ok", "Deva"),
        ("123 !?", None),
        ("東京へ行きます", "Jpan"),
        ("灯节", "Hani"),
        ("한국어", "Kore"),
        ("اردو", "Arab"),
        ("ไทย", "Thai"),
    ],
)
def test_scripts_of_texts(text: str, expected: str | None) -> None:
    assert text_scripts([text]) == [expected]


def test_scripts_of_the_sides_of_a_pair() -> None:
    records = [
        pair("1", "यह हिन्दी", "OK Google 7", "neutral", "neutral"),
        pair("2", "यह", "है", "neutral", "neutral"),
        pair("3", "यह", "7", "neutral", "neutral"),
    ]
    items = items_of("xnli", "hi", records)
    assert attributes.item_script(items, NOTHING) == ["Deva+Latn", "Deva", "Deva"]
    assert attributes.latin_side(items, NOTHING) == ["yes", "no", "no"]
    assert attributes.latin_side(items_of("xnli", "en", records), NOTHING) is None


@pytest.mark.parametrize(("language", "expected"), [("hi", 319), ("ur", 517)])
def test_items_of_the_real_test_sets_with_a_latin_side(data_root: Path, language: str, expected: int) -> None:
    path = data_root / "xnli" / f"test-{language}.tsv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    records = [pair(str(number), row[0], row[1], "neutral", "neutral") for number, row in enumerate(rows)]
    found = attributes.latin_side(items_of("xnli", language, records), NOTHING)
    assert found is not None
    assert (len(found), found.count("yes")) == (5010, expected)


def test_unknown_words_and_fertility_need_what_they_compare_with(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    items = items_of("xnli", "en", [pair("1", "The cat", "a dog", "neutral", "neutral")])
    assert unknown_words(items, NOTHING) is None
    known = FeatureContext(vocabulary=frozenset({"the", "cat", "a"}))
    assert unknown_words(items, known) == [0.25]
    context = FeatureContext(model=tmp_path)
    assert fertility(items, context) is None

    def save(splitter: Any) -> None:
        own = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
        own.pre_tokenizer = splitter
        own.save(str(tmp_path / "tokenizer.json"))

    save(tokenizers.pre_tokenizers.WhitespaceSplit())
    attributes._tokenizer.cache_clear()
    assert [fertility(items, context) for _ in range(3)] == [[1.0]] * 3
    assert (attributes._tokenizer.cache_info().misses, attributes._tokenizer.cache_info().hits) == (1, 2)
    save(tokenizers.pre_tokenizers.Split("", "isolated"))
    assert fertility(items, context) == [13 / 4], "a tokenizer is read again once its file changes"


def _ranked(targets: list[str], languages: list[str], candidates: list[str]) -> Any:
    gold = {"targets": targets, "languages": languages}
    return record("1", {"query": "where"}, {"candidates": candidates}, gold)


def test_ranks_and_languages_of_targets() -> None:
    rows = [
        _ranked(["a"], ["en"], ["a", "b"]),
        _ranked(["a"], ["hi"], ["b", "c", "a"]),
        _ranked(["a", "d"], ["en", "hi"], [*"bcefghi", "d"]),
        _ranked(["a"], ["sw"], ["b"]),
    ]
    items = items_of("xquad", "en", rows)
    assert attributes.rank_of_gold(items, NOTHING) == ["1", "2-5", "6-20", "after 20"]
    assert attributes.query_to_target(items, NOTHING) == ["same", "cross", "both", "cross"]
    assert attributes.target_language(items, NOTHING) == ["en", "hi", "several", "sw"]


def test_features_are_declared_once_and_give_a_value_an_item() -> None:
    names = [feature.name for feature in FEATURES]
    assert len(set(names)) == len(names)
    items = items_of("xquad", "en", [question(str(number), number, 1.0) for number in range(1, 4)])
    for feature in FEATURES:
        if feature.kinds is None or "span_extraction" in feature.kinds:
            values = feature.compute(items, NOTHING)
            assert values is None or len(values) == 3


def test_a_character_that_writes_a_syllable_may_count_for_several_letters() -> None:
    """A Chinese sentence may have more letters in its foreign names than characters."""
    text = "今天他要谈谈Third SS和Blackbird。"
    assert (text_scripts([text]), text_scripts([text], sign=3)) == (["Latn"], ["Hani"])
