"""The words that announce an answer serve letters, choices and numbers in every language that prompts have."""

from __future__ import annotations

import csv
import unicodedata
from importlib import resources
from typing import Final

import pytest
from hypothesis import given, strategies as st

from harness.languages.answer_words import answer_words
from harness.languages.character import fold
from harness.prompts.letter_answer import read_letter
from harness.prompts.parsing import answer_number, read_choice
from harness.running.session import Session
from tests.prompts.answer_tables import answer_rows

COLOURS: Final = ("red", "blue", "green", "white")
TEXT: Final = (
    resources.files("harness.languages").joinpath("answer_words.tsv").read_text(encoding="utf-8").splitlines()
)
ROWS: Final = list(csv.DictReader(TEXT, delimiter="\t", quoting=csv.QUOTE_NONE))
LANGUAGES: Final = [row["code"] for row in ROWS]
ANNOUNCED: Final = [
    (row["code"], noun, copula)
    for row in ROWS
    for noun in row["answer"].split("|")
    for copula in (row["copula"].split("|") if row["copula"] else [""])
]
ARTICLES: Final = [(row["code"], letter) for row in ROWS for letter in row["letters"].split("|") if letter]
LENGTHENING: Final = tuple("\u00df \ufb01 \u0130 \u0587 \u0149 \u1e96 \u01f0 e\u0301 \u1fb3".split())
"""What is longer or shorter when it is case-folded or composed."""


def test_every_row_is_whole_and_says_where_it_is_from() -> None:
    assert len(LANGUAGES) == len(set(LANGUAGES))
    for row in ROWS:
        assert row["answer"] and row["provenance"] in {"native", "translated", "copied"} and row["source"]
        for role in ("answer", "option", "correct", "copula", "link", "negation", "cause", "minus"):
            words = row[role].split("|") if row[role] else []
            assert all(words) and [word.strip() for word in words] == words
            assert [unicodedata.normalize("NFC", word) for word in words] == words, row["code"]


def test_every_language_of_the_shipped_prompts_has_words(shipped: Session) -> None:
    languages = {
        code
        for name in shipped.catalog.names("prompt")
        for code in shipped.catalog.entry("prompt", name).document.data.get("literals", {})
    }
    # A subtag has the words of its language.
    assert {code if code in LANGUAGES else code.partition("-")[0] for code in languages} - {"mul"} <= set(
        LANGUAGES
    )


def test_a_subtag_has_the_words_of_its_language_and_an_unknown_code_all() -> None:
    assert answer_words(("zh-Hant",)) == answer_words(("zh",))
    assert answer_words(("xx",)) == answer_words()
    assert set(answer_words(("hu",)).letters) == {"A", "I", "S"}


@given(
    st.sampled_from(ANNOUNCED),
    st.sampled_from("ABCD"),
    st.sampled_from(["{}", "{}.", "({})", "**{}**", "\u201c{}\u201d"]),
)
def test_an_announced_letter_is_read_in_every_language(
    announced: tuple[str, str, str], letter: str, form: str
) -> None:
    code, noun, copula = announced
    for text in (f"{noun} {copula} {form.format(letter)}", f"{noun.capitalize()}: {form.format(letter)}"):
        assert read_letter(text, COLOURS, (code,)) == "ABCD".index(letter), text
        assert read_letter(text, COLOURS, ("en", code)) == "ABCD".index(letter), text


@given(st.sampled_from(ANNOUNCED), st.sampled_from(["red", "blue", "green", "white"]))
def test_an_announced_choice_is_read_in_every_language(announced: tuple[str, str, str], choice: str) -> None:
    code, noun, copula = announced
    text = f"{noun.upper()}: {choice.upper()}." if not copula else f"{noun} {copula} {choice}."
    assert read_choice(text, COLOURS, (code,)) == COLOURS.index(choice), text


@given(st.sampled_from(ANNOUNCED), st.integers(-99, 99))
def test_an_announced_number_is_read_in_every_language(announced: tuple[str, str, str], number: int) -> None:
    code, noun, copula = announced
    for text in (
        f"{noun} {copula} {number}.\n7 + 8",
        f"{noun.capitalize()}: {number} (7 x 8)",
        f"{noun}:\n{number}\n7 x 8",
    ):
        value = answer_number(text, code)
        assert value is not None and value.value == number, text


@given(st.sampled_from([(row["code"], word) for row in ROWS for word in row["minus"].split("|") if word]))
def test_a_minus_in_words_is_read_in_every_language(minus: tuple[str, str]) -> None:
    code, word = minus
    negative, subtracted = answer_number(f"{word} 5", code), answer_number(f"8 {word} 5", code)
    assert negative is not None and negative.value == -5
    assert subtracted is not None and subtracted.value == 5


@given(
    st.sampled_from(ARTICLES),
    st.text("bdfgjlmnpqrtv", min_size=2, max_size=9),
    st.sampled_from(["", "Xyz. "]),
)
def test_an_unannounced_article_is_no_choice(article: tuple[str, str], word: str, before: str) -> None:
    code, letter = article
    choices = [f"choice {number}" for number in range(26)]
    assert read_letter(f"{before}{letter} {word} {word}.", choices, (code,)) is None
    # A sentence after "Answer:" begins with a capital letter too.
    assert read_letter(f"Answer: {letter} {word} {word}.", choices, (code,)) is None


@given(
    st.text("abcdefghijklmnop \n"), st.sampled_from(LENGTHENING), st.sampled_from(["de", "tr", "hy", "en"])
)
def test_what_precedes_an_answer_changes_nothing(before: str, inserted: str, code: str) -> None:
    start = f"{before}{inserted}z. "
    for text in ("The answer is 12.\n7", "\n#### 12\n7 - 3", "Answer: 12 (3 x 4)", "The answer is 1.2e1"):
        number = answer_number(start + text, "en", languages=(code,))
        assert number is not None and number.value == 12, text
    assert read_letter(f"{start}The answer is C.", COLOURS, (code,)) == 2
    assert read_choice(f"{start}The answer is green.", COLOURS, (code,)) == 2


@given(st.text())
def test_any_text_is_read_or_not(text: str) -> None:
    read_letter(text, COLOURS, ("ja",))
    read_choice(text, COLOURS, ("ar",))
    answer_number(text, "zh")
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(("language", "text", "letter"), answer_rows("letters.tsv"))
def test_letters(language: str, text: str, letter: str) -> None:
    assert read_letter(text, COLOURS, (language,)) == ("ABCD".index(letter) if letter else None)


@pytest.mark.parametrize(("language", "text", "words", "choice"), answer_rows("choices.tsv"))
def test_choices(language: str, text: str, words: str, choice: str) -> None:
    expected = words.split("|").index(choice) if choice else None
    assert read_choice(text, words.split("|"), tuple(filter(None, [language]))) == expected


@pytest.mark.parametrize(("language", "text", "number"), answer_rows("announced_numbers.tsv"))
def test_numbers(language: str, text: str, number: str) -> None:
    value = answer_number(text, language)
    assert value is not None and value.value == int(number)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I think so.", None),
        ("I am sure.", None),
        ("I believe C is correct.", 2),
        ("I choose C.", 2),
        ("I violet", 8),
        ("J", 9),
    ],
)
def test_a_pronoun_is_no_tenth_choice(text: str, expected: int | None) -> None:
    words = (*COLOURS, "black", "grey", "pink", "brown", "violet", "gold")
    assert read_letter(text, words, ("en",)) == expected
