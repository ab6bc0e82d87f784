"""Answers are read from what a model wrote."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

from harness.languages.number import number_text
from harness.models.options import SamplingOptions
from harness.prompts.parsing import answer_number, answer_regex, read_answer
from harness.prompts.tagged import entity_text, read_entities, read_tagged
from tests.prompts.answer_tables import answer_rows

TAGS = ("NOUN", "VERB", "PUNCT")


@pytest.mark.parametrize(
    ("text", "expected"), [(" Wien \nQuestion:", "Wien"), ("\n\n Wien", "Wien"), ("", None), (" \n ", None)]
)
def test_read_answer(text: str, expected: str | None) -> None:
    assert read_answer(text) == expected


@pytest.mark.parametrize(
    ("text", "tokens", "tags"),
    [
        ("a_b_NOUN", "a_b", "NOUN"),
        ("New_NOUN York_NOUN", "New|York", "NOUN NOUN"),
        *(
            (text, "She|sings", None)
            for text in (
                "",
                "She_NOUN",
                "She_NOUN sings_VERB ._PUNCT",
                "She sings_VERB",
                "She_NOUN sings_WALK",
            )
        ),
        *(
            (text, "She|sings", None)
            for text in ("He_NOUN sings_VERB", "sings_VERB She_NOUN", "She_NOUN sings_")
        ),
        ("New_NOUN York_NOUN", "New York", None),
    ],
)
def test_read_tagged(text: str, tokens: str, tags: str | None) -> None:
    assert read_tagged(text, tokens.split("|"), TAGS) == (None if tags is None else tags.split())


PARIS = "Paris met Paris in Paris"


@pytest.mark.parametrize(
    ("text", "tokens", "tags"),
    [
        ("PER: Paris $$ PER: Paris $$ LOC: Paris", PARIS, "B-PER O B-PER O B-LOC"),
        (" $$ ".join(["LOC: Paris"] * 4), PARIS, None),
        ("LOC: New York", "New York Newark", "B-LOC I-LOC O"),
        ("LOC: Newa", "New York Newark", None),
        ("LOC: York Newark $$ LOC: New York", "New York Newark", None),
        *((text, "a b", "O O") for text in ("", " none ", "None")),
        *(
            (text, "a b", None)
            for text in ("a", "LOC:", "LOC: c", "XXX: a", "loc: a", "LOC: a $$", "LOC: a; LOC: b")
        ),
    ],
)
def test_read_entities(text: str, tokens: str, tags: str | None) -> None:
    assert read_entities(text, tokens.split(), ("PER", "LOC")) == (None if tags is None else tags.split())
    assert entity_text(["a", "b"], ["O", "O"]) == "none"


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"answer is \(?([A-D])\)?", "The answer is (B).", "B"),
        (r"answer is ([A-D])", "The answer is A. No: the answer is C.", "C"),
        (r"[A-D]$", "so it is D", "D"),
        (r"####\s*(-?[\d,.]+)", "so #### 1,234", "1,234"),
        (r"yes=(\d)|no=(\d)", "no=7", "7"),
        (r"answer is ([A-D])", "I do not know", None),
    ],
)
def test_the_last_match_is_found(pattern: str, text: str, expected: str | None) -> None:
    assert answer_regex(pattern).find(text) == expected


@pytest.mark.parametrize(
    "pattern",
    [r"(a+)+$", r"(a|a)*b", r"(a|aa)+$", r"a*a*a*a*b", "a?" * 40 + "a" * 40, r"((a{1,30}){1,30}){9}b", "["],
)
def test_expressions_that_could_hang_are_rejected(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"could take very long|not a regular expression"):
        answer_regex(pattern)


@pytest.mark.parametrize("pattern", [r"a*b", r"a*a*b", r"(?:ab|ac)c*d", r"a{1,9}a{1,9}b"])
def test_only_as_much_is_searched_as_is_short(pattern: str) -> None:
    found = answer_regex(pattern)
    assert 500 <= found.length <= 4000
    assert found.find("b" + "a" * 10_000) is None
    assert re.search(pattern, "x" * found.length + "b") is None or found.find("x" * 5000 + "b") == "b"


def test_the_options_are_those_of_all_models_that_write() -> None:
    from harness_hf.options import CausalOptions, Seq2SeqOptions
    from harness_vllm.options import ChatOptions, VllmOptions

    names = {"max_tokens", "temperature", "top_p", "stop", "system", "answer_regex"}
    assert names <= SamplingOptions.model_fields.keys()
    for options in (CausalOptions, Seq2SeqOptions, ChatOptions, VllmOptions):
        assert names <= options.model_fields.keys()


PHRASES = {
    "bn": ("উত্তর হল",),
    "de": ("Die Antwort ist", "Die Antwort lautet"),
    "es": ("La respuesta es",),
    "fr": ("La réponse est",),
    "ja": ("答えは",),
    "ru": ("Ответ —", "Ответ:"),
    "sw": ("Jibu ni",),
    "te": ("సమాధానం",),
    "th": ("คำตอบคือ",),
    "zh": ("答案是",),
}


@pytest.mark.parametrize("name", ["written_by_hand.tsv", "written_by_smollm2.tsv"])
def test_values_are_those_a_reader_finds(name: str) -> None:
    wrong = []
    for code, text, expected in answer_rows(name):
        found = answer_number(text, code, PHRASES.get(code, ()))
        value = None if found is None else found.value
        if value != (Fraction(expected) if expected else None):
            wrong.append((code, text, expected, value))
    assert wrong == []


def test_an_endless_number_is_not_read() -> None:
    number = answer_number("9" * 5000, "en")
    assert number is not None and number.value is None


@pytest.mark.parametrize(
    ("value", "text"), [("5/2", "2.5"), ("1/3", "1/3"), ("-1/20", "-0.05"), ("100", "100"), ("0", "0")]
)
def test_plain_digits(value: str, text: str) -> None:
    assert number_text(Fraction(value)) == text
    assert Fraction(text) == Fraction(value)
