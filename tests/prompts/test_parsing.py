"""Answers are read from what a model wrote."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import assume, given, strategies as st

from harness.languages.number import number_text
from harness.models.options import SamplingOptions
from harness.prompts.answer_regex import answer_regex
from harness.prompts.letter_answer import read_letter
from harness.prompts.number_answer import answer_number
from harness.prompts.parsing import read_answer, read_choice
from harness.prompts.tagged import entity_text, read_entities, read_tagged, tagged_text

WORD = st.text(st.characters(categories=("L", "M", "N", "P")), min_size=1, max_size=6)
TAGS = ("NOUN", "VERB", "PUNCT")
NLI = ("True", "Neither", "False")


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("True", NLI, 0),
        (" true.", NLI, 0),
        ("NEITHER of them", NLI, 1),
        ("**False**, because", NLI, 2),
        ("nothing", ("no", "yes"), None),
        ("", NLI, None),
        ("It is True", NLI, None),
        ("The answer is True.", NLI, 0),
        ("**Answer:** neither", NLI, 1),
        ("Antwort: nein", ("ja", "nein"), 1),
        ("Answer: nothing", ("no", "yes"), None),
        ("paraphrase", ("different_meaning", "paraphrase"), 1),
        ("yes and no", ("yes", "yes and no"), 1),
        ("same", ("same", "Same"), None),
        ("2", ("2", "0", "1"), 0),
        ("21", ("2", "0", "1"), None),
        ("不是的。", ("是的", "另外", "不是的"), 2),
        ("不是的确定", ("是的", "另外", "不是的"), None),
        ("Si\u0301", ("No", "Sí"), 1),
    ],
)
def test_read_choice(text: str, words: tuple[str, ...], expected: int | None) -> None:
    assert read_choice(text, words) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A", 0),
        (" B.", 1),
        ("(C) False", 2),
        ("D", None),
        ("Answer: A", 0),
        ("The answer is C.", 2),
        ("The correct answer is **(B)**", 1),
        ("Die richtige Antwort lautet C.", 2),
        ("La respuesta correcta es B", 1),
        ("Jibu sahihi ni B.", 1),
        ("正确答案是C。", 2),
        ("Ответ: A", 0),
        ("The answer is Always A", None),
        ("The answer is D.", None),
        ("Answers vary: A", None),
        ("**B**", 1),
        ("a", None),
        ("", None),
        ("Both", None),
    ],
)
def test_read_letter(text: str, expected: int | None) -> None:
    assert read_letter(text, NLI) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [(" Wien \nQuestion:", "Wien"), ("\n\n Wien", "Wien"), ("", None), (" \n ", None)]
)
def test_read_answer(text: str, expected: str | None) -> None:
    assert read_answer(text) == expected


@given(st.lists(st.tuples(WORD, st.sampled_from(TAGS)), min_size=1))
def test_tagged_text_is_read_back(pairs: list[tuple[str, str]]) -> None:
    tokens, tags = [word for word, _ in pairs], [tag for _, tag in pairs]
    assert read_tagged(tagged_text(tokens, tags), tokens, TAGS) == tags


@given(st.lists(st.tuples(WORD, st.sampled_from(TAGS)), min_size=2), st.data())
def test_tags_are_never_padded_or_cut(pairs: list[tuple[str, str]], data: st.DataObject) -> None:
    tokens, tags = [word for word, _ in pairs], [tag for _, tag in pairs]
    words = tagged_text(tokens, tags).split()
    index = data.draw(st.integers(0, len(words) - 1))
    assert read_tagged(" ".join(words[:index] + words[index + 1 :]), tokens, TAGS) is None
    assert read_tagged(" ".join([*words, words[index]]), tokens, TAGS) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "She_NOUN",
        "She_NOUN sings_VERB ._PUNCT",
        "She sings_VERB",
        "She_NOUN sings_WALK",
        "He_NOUN sings_VERB",
        "sings_VERB She_NOUN",
        "She_NOUN sings_",
    ],
)
def test_a_text_that_does_not_fit_its_sentence_is_not_read(text: str) -> None:
    assert read_tagged(text, ["She", "sings"], TAGS) is None


def test_a_token_may_hold_the_delimiter_and_a_space_is_rejected() -> None:
    assert read_tagged("a_b_NOUN", ["a_b"], TAGS) == ["NOUN"]
    assert read_tagged("New_NOUN York_NOUN", ["New York"], TAGS) is None


@st.composite
def sentences(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    tokens = draw(st.lists(WORD.filter(lambda word: "$$" not in word), min_size=1, max_size=10, unique=True))
    tags: list[str] = []
    while len(tags) < len(tokens):
        length = draw(st.integers(1, len(tokens) - len(tags)))
        kind = draw(st.sampled_from([None, "PER", "LOC"]))
        tags += ["O"] * length if kind is None else [f"B-{kind}"] + [f"I-{kind}"] * (length - 1)
    return tokens, tags


@given(sentences())
def test_entity_text_is_read_back(sentence: tuple[list[str], list[str]]) -> None:
    tokens, tags = sentence
    text = entity_text(tokens, tags)
    # "$$" may also come about where a word that ends in "$" meets another; such texts are not read.
    assume("$" not in "".join(tokens))
    assert read_entities(text, tokens, ("PER", "LOC")) == tags


def test_repeated_mentions_are_found_in_their_order() -> None:
    tokens = "Paris met Paris in Paris".split()
    read = read_entities("PER: Paris $$ PER: Paris $$ LOC: Paris", tokens, ("PER", "LOC"))
    assert read == ["B-PER", "O", "B-PER", "O", "B-LOC"]
    assert read_entities(" $$ ".join(["LOC: Paris"] * 4), tokens, ("PER", "LOC")) is None


def test_entities_are_whole_tokens() -> None:
    tokens = ["New", "York", "Newark"]
    assert read_entities("LOC: New York", tokens, ("LOC",)) == ["B-LOC", "I-LOC", "O"]
    assert read_entities("LOC: Newa", tokens, ("LOC",)) is None
    assert read_entities("LOC: York Newark $$ LOC: New York", tokens, ("LOC",)) is None


@pytest.mark.parametrize("text", ["", " none ", "None"])
def test_no_entity(text: str) -> None:
    assert read_entities(text, ["a", "b"], ("LOC",)) == ["O", "O"]
    assert entity_text(["a", "b"], ["O", "O"]) == "none"


@pytest.mark.parametrize("text", ["a", "LOC:", "LOC: c", "PER: a", "loc: a", "LOC: a $$", "LOC: a; LOC: b"])
def test_entities_that_do_not_fit_are_not_read(text: str) -> None:
    assert read_entities(text, ["a", "b"], ("LOC",)) is None


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


DATA = Path(__file__).parent / "answers"
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


def rows(name: str) -> list[tuple[str, str, str]]:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()[1:]
    return [
        (code, text.replace("⏎", "\n"), value) for code, text, value in (line.split("\t") for line in lines)
    ]


@pytest.mark.parametrize("name", ["written_by_hand.tsv", "written_by_smollm2.tsv"])
def test_values_are_those_a_reader_finds(name: str) -> None:
    wrong = []
    for code, text, expected in rows(name):
        found = answer_number(text, code, PHRASES.get(code, ()))
        value = None if found is None else found.value
        if value != (Fraction(expected) if expected else None):
            wrong.append((code, text, expected, value))
    assert wrong == []


def test_the_lists_cover_eleven_languages_with_three_hundred_answers() -> None:
    counts = Counter(code for name in DATA.glob("*.tsv") for code, _, _ in rows(name.name))
    assert sum(counts.values()) >= 300
    assert {code for code, count in counts.items() if count >= 20} >= {
        "bn", "de", "en", "es", "fr", "ja", "ru", "sw", "te", "th", "zh",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5 + 13 = 18.\n#### 18", 18),
        ("#### $1,234\nThat is all of 7 days.", 1234),
        # Markdown of chat models: headings have words.
        ("#### Step 3: Total\n5 + 13 = 18\n\nSo the total is **18** dollars.", 18),
        ("The answer is **18**.\n\n#### Check\n9 * 2", 18),
        ("#### الخطوة 3\n5 + 13 = 18", 18),
    ],
)
def test_the_mark_of_gsm8k_is_no_heading(text: str, value: int) -> None:
    found = answer_number(text, "en")
    assert found is not None and found.value == value


def test_an_endless_number_is_not_read() -> None:
    found = answer_number("9" * 5000, "en")
    assert found is not None and found.value is None


@pytest.mark.parametrize(
    ("value", "text"), [("5/2", "2.5"), ("1/3", "1/3"), ("-1/20", "-0.05"), ("100", "100"), ("0", "0")]
)
def test_plain_digits(value: str, text: str) -> None:
    assert number_text(Fraction(value)) == text
    assert Fraction(text) == Fraction(value)


@pytest.mark.parametrize("text", ["(A) and (B) are both possible", "**A** or **B**", "Both (A) and (C)."])
def test_several_letters_are_no_answer(text: str) -> None:
    assert read_letter(text, ["yes", "no", "maybe"], ("en",)) is None
