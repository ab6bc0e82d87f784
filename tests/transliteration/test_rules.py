"""The engine ``rules`` against spellings that people accept, and on whatever Unicode there is."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from harness_transliteration import rules
from harness_transliteration.rules import romanize_word, transliterate

GOLD = [
    line.split("\t") for line in (Path(__file__).parent / "gold.tsv").read_text(encoding="utf-8").splitlines()
]
"""Language, word and accepted spellings. Written for these tests by their author, from everyday use, not drawn from a
corpus; loans whose customary spelling is English (computer, bus) are in it, which no rule can know."""


def edit_distance(left: str, right: str) -> int:
    row = list(range(len(right) + 1))
    for place, letter in enumerate(left, start=1):
        previous, row[0] = row[0], place
        for column, other in enumerate(right, start=1):
            previous, row[column] = (
                row[column],
                min(row[column] + 1, row[column - 1] + 1, previous + (letter != other)),
            )
    return row[-1]


def agreement(language: str) -> tuple[int, int, float, list[str]]:
    """Return words spelt as accepted, words, mean edit distance over the longer length, and what was wrong."""
    exact, distances, wrong = 0, [], []
    for code, word, accepted in GOLD:
        if code != language:
            continue
        [latin] = transliterate([word], language)
        spellings = accepted.split(" ")
        exact += latin in spellings
        wrong += [] if latin in spellings else [f"{word} {latin} ({accepted})"]
        distances.append(
            min(edit_distance(latin, other) / max(len(latin), len(other)) for other in spellings)
        )
    return exact, len(distances), sum(distances) / len(distances), wrong


@pytest.mark.parametrize(("language", "words", "least", "most"), [("hi", 62, 60, 0.01), ("ta", 42, 40, 0.02)])
def test_words_are_spelt_as_people_accept(language: str, words: int, least: int, most: float) -> None:
    exact, count, distance, wrong = agreement(language)
    assert count == words
    assert exact >= least, wrong
    assert distance <= most


@pytest.mark.parametrize(
    ("language", "words", "latin"),
    [
        # Final schwas: kept after a cluster before y, v, r and after iy; never the only vowel.
        ("hi", "राष्ट्र सत्य तत्व धर्म प्रिय न", "rashtra satya tatva dharm priya na"),
        # Medial schwas, from right to left; not after a cluster, nor before one.
        ("hi", "जनता समझना सरकारी उपन्यास मंगल नुकसान", "janta samajhna sarkari upanyas mangal nuksan"),
        ("hi", "संबंध अंत संसद गाँव", "sambandh ant sansad gaanv"),
        ("hi", "ज़रूर फ़र्क़ पढ़ना बड़ा", "zarur farq padhna bada"),
        ("hi", "। ॥ १९४७ 10वीं राम-लक्ष्मण", ". . 1947 10veen raam-lakshman"),
        ("mr", "वर्ष शब्द महाराष्ट्र नाही", "varsha shabda maharashtra nahi"),
        ("ne", "गर्छ नेपाल", "garchha nepal"),
        ("sa", "धर्म योग", "dharma yoga"),
        # A stop by its place: first, doubled, between vowels, after a nasal, next to another stop.
        ("ta", "கடல் பக்கம் அகம் தங்கம் கற்பனை", "kadal pakkam agam thangam karpanai"),
        ("ta", "தலை பத்து இது இந்த", "thalai patthu idhu indha"),
        ("ta", "பல் அப்பா சபை தம்பி", "pal appa sabai thambi"),
        ("ta", "சிறு பச்சை பேசு மஞ்சள் காட்சி", "siru pacchai pesu manjal kaatchi"),
        ("ta", "காற்று நன்றி மறை", "kaatru nandri marai"),
        ("ta", "ஃபேன் அஃது ஸ்டாலின் ஜனவரி ஷா ௧௨", "fen ahdhu staalin janavari shaa 12"),
    ],
)
def test_rules_hold(language: str, words: str, latin: str) -> None:
    assert " ".join(transliterate(words.split(" "), language)) == latin


def test_what_is_not_known_stays() -> None:
    words = ["abc", "2021", "...", "é", "ৰাম", "👩\u200d🚀", "", "ক্\u200dষ", "\u200d", "्"]
    assert transliterate(words, "hi") == words


def test_silent_letters_alone_do_not_vanish() -> None:
    assert transliterate(["ऽ", "रामोऽपि"], "sa") == ["'", "ramopi"]


def test_joiners_and_composed_letters_change_nothing() -> None:
    assert romanize_word("क्\u200dष", "hi") == romanize_word("क्ष", "hi")
    for word in ("क़लम", "கொடு", "பௌர்ணமி"):
        forms = {unicodedata.normalize(form, word) for form in ("NFC", "NFD")}
        assert len({romanize_word(form, "hi") for form in forms}) == 1


def _of_known_script(letter: str) -> bool:
    name = unicodedata.name(letter, "")
    return letter.isalpha() and name.startswith(("DEVANAGARI", "TAMIL"))


indic = st.characters(min_codepoint=0x900, max_codepoint=0x97F) | st.characters(
    min_codepoint=0xB80, max_codepoint=0xBFF
)
anything = st.text(indic | st.sampled_from("\u200c\u200d\ua8f2\ua8f4\ua8fd\u1ce9a-"), max_size=12) | st.text()


@given(st.lists(anything, max_size=5), st.sampled_from([*sorted(rules.LANGUAGES), "xx"]))
def test_any_text_goes_through(words: list[str], language: str) -> None:
    latin = transliterate(words, language)
    assert len(latin) == len(words)
    assert not any(_of_known_script(letter) for word in latin for letter in word)
    assert [bool(word) for word in latin] == [bool(word) for word in words]
    assert latin == [transliterate([word], language)[0] for word in words]
    assert all(after == before for before, after in zip(words, latin, strict=True) if before.isascii())


@given(anything)
def test_latin_letters_are_not_touched_again(word: str) -> None:
    [latin] = transliterate([word], "hi")
    assert transliterate([latin], "hi") == [latin]
