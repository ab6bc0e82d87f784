"""The shipped suite ``basics`` is right where it can be checked: spans, questions, scripts, agreement, lint, floors.

After a change of wording: ``HARNESS_UPDATE_GOLDEN=1 python -m pytest tests/checklist``, and read the diff as a speaker.
"""

from __future__ import annotations

import os
import re
import unicodedata
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

from harness_checklist.generation.case import Case
from harness_checklist.generation.drawing import draw_cases
from harness_checklist.lint.linter import lint_suite
from harness_checklist.suites.loading import find_suite
from harness_checklist.suites.suite import ListedFillIn

GOLDEN = Path(__file__).with_name("golden") / "basics.txt"
UPDATE = "HARNESS_UPDATE_GOLDEN"
CASES = 200
SUITE = find_suite("basics")
SCRIPTS = {
    **dict.fromkeys(("de", "en", "es", "sw", "tr"), "LATIN"),
    "ar": "ARABIC",
    "el": "GREEK",
    "hi": "DEVANAGARI",
    "ru": "CYRILLIC",
    "zh": "CJK UNIFIED IDEOGRAPH",
}
SHAPES = {  # contexts, questions
    "comparisons": (1, 2),
    "intensifiers": (6, 2),
    "properties": (1, 2),
    "job_vs_nationality": (4, 2),
    "animal_vs_vehicles": (2, 2),
    "animal_vs_vehicles_2": (2, 2),
}
SIZES = {
    "comparisons": {"adj": 10},
    "intensifiers": {"state": 8, "very": 4, "somewhat": 4},
    "properties": {"obj": 12, "color": 3, "size": 3, "shape": 3, "property": 3},
    "job_vs_nationality": {"profession": 12, "nationality": 8},
    "animal_vs_vehicles": {"animal": 10, "vehicle": 8},
    "animal_vs_vehicles_2": {"animal": 10, "vehicle": 8},
}
CELLS = [(language, test) for language in SCRIPTS for test in SHAPES]


@cache
def cases(language: str, test: str) -> tuple[Case, ...]:
    drawn = draw_cases(SUITE, test, language, CASES, 0)
    assert drawn.note is None
    return drawn.cases


def texts(language: str) -> set[str]:
    """Return all contexts and questions that are drawn in one language."""
    made = [case for test in SHAPES for case in cases(language, test)]
    return {text for case in made for item in case.examples for text in (item.context, item.question)}


def contexts(language: str, test: str) -> list[str]:
    return sorted({item.context for case in cases(language, test) for item in case.examples})


def texts_of(language: str, test: str) -> set[str]:
    asked = {item.question for case in cases(language, test) for item in case.examples}
    return asked | set(contexts(language, test))


# Whole ---------------------------------------------------------------------------------------------------


def test_the_suite_has_the_six_tests_in_ten_languages_of_six_scripts() -> None:
    assert set(SUITE.languages) == set(SCRIPTS)
    assert len(set(SCRIPTS.values())) == 6
    assert list(SUITE.tests) == list(SHAPES)
    assert [test.capability for test in SUITE.tests.values()] == ["Vocabulary"] * 2 + ["Taxonomy"] * 4
    for language in SUITE.languages.values():
        assert list(language.tests) == list(SHAPES), language.language


@pytest.mark.parametrize("language", SCRIPTS)
def test_there_are_enough_fill_ins_and_names(language: str) -> None:
    spoken = SUITE.languages[language]
    assert len(set(spoken.names.male)) == len(spoken.names.male) == 20
    assert len(set(spoken.names.female)) == len(spoken.names.female) == 20
    assert not set(spoken.names.male) & set(spoken.names.female)
    for test, sizes in SIZES.items():
        for slot, least in sizes.items():
            fill = spoken.tests[test].fills[slot]
            assert isinstance(fill, ListedFillIn)
            assert len(fill.entries) >= least, (test, slot)


@pytest.mark.parametrize(("language", "test"), CELLS)
def test_two_hundred_cases_are_drawn_and_all_are_whole(language: str, test: str) -> None:
    made = cases(language, test)
    assert len({case.id for case in made}) == len(made) == CASES
    for case in made:
        asked = {(item.context, item.question): item.answer for item in case.examples}
        shape = (len({context for context, _ in asked}), len({question for _, question in asked}))
        assert shape == SHAPES[test], case.id
        assert len(asked) == len(case.examples) == shape[0] * shape[1], case.id
        answers = {(item.question, item.answer) for item in case.examples}
        assert len(answers) == len({answer for _, answer in answers}) == 2, case.id


@pytest.mark.parametrize(("language", "test"), CELLS)
def test_an_answer_is_once_in_its_context_between_word_edges(language: str, test: str) -> None:
    profile = SUITE.languages[language].profile
    # Vowel signs belong to words, and Chinese has no spaces between words.
    part = "(?!)" if language == "zh" else r"[^\W_]|[\u0900-\u094d]"
    for case in cases(language, test):
        for item in case.examples:
            assert item.context.count(item.answer) == 1, item
            assert re.search(rf"(?<!{part}){re.escape(item.answer)}(?!{part})", item.context), item
            assert profile.clean(item.answer)


@pytest.mark.parametrize("language", SCRIPTS)
def test_no_answer_is_part_of_a_name(language: str) -> None:
    names = SUITE.languages[language].names
    listed = [*names.male, *names.female]
    answers = {item.answer for test in SHAPES for case in cases(language, test) for item in case.examples}
    assert [
        (one, name) for one in {*answers, *listed} for name in listed if one != name and one in name
    ] == []


@pytest.mark.parametrize("language", SCRIPTS)
def test_texts_are_clean_and_in_the_script_of_the_language(language: str) -> None:
    for text in texts(language):
        assert text == text.strip() == unicodedata.normalize("NFC", text)
        assert not re.search(r"[{}\\]|\s\s|\s[.,?!;،؟।，。？]", text), text
        letters = [char for char in text if char.isalpha()]
        strange = [char for char in letters if not unicodedata.name(char).startswith(SCRIPTS[language])]
        assert not strange, (text, strange)
        assert language == "zh" or " " in text
        assert language != "zh" or " " not in text
        if letters[0].lower() != letters[0].upper():
            assert letters[0].isupper(), text


def test_no_text_is_that_of_another_language() -> None:
    for one, other in combinations(SCRIPTS, 2):
        assert not texts(one) & texts(other), (one, other)


def test_all_floors_are_zero() -> None:
    made = lint_suite(SUITE).floors
    assert {(row.language, row.test) for row in made} == set(CELLS)
    assert {(row.cases, row.floor) for row in made} == {(CASES, 0.0)}


def test_nothing_is_found_by_the_lint() -> None:
    assert lint_suite(SUITE).findings == ()


# Agreement -----------------------------------------------------------------------------------------------


def test_german_articles_agree_in_gender_between_the_cases() -> None:
    genders = {"einen": "Der", "eine": "Die", "ein": "Das"}
    for text in contexts("de", "properties"):
        found = re.fullmatch(r"\w+ hat (\w+) (\w+) gekauft\. (\w+) (\w+) ist \w+ und \w+\.", text)
        assert found, text
        article, noun, definite, again = found.groups()
        assert (genders[article], noun) == (definite, again), text


def test_spanish_adjectives_agree_with_the_article() -> None:
    endings = {"El": "o", "La": "a"}
    for text in contexts("es", "properties"):
        found = re.fullmatch(r"\w+ compró (una?) (\w+)\. (El|La) (\w+) es (\w+) y (\w+)\.", text)
        assert found, text
        article, noun, definite, again, *said = found.groups()
        assert (article, noun) == ({"El": "un", "La": "una"}[definite], again), text
        wrong = {"o": "a", "a": "o"}[endings[definite]]
        assert not any(word.endswith(wrong) for word in said), text


def test_russian_verbs_agree_with_names_and_adjectives_with_nouns() -> None:
    endings = {"а": ("ая", "яя"), "о": ("ое", "ее")}
    for text in contexts("ru", "properties"):
        found = re.fullmatch(r"(\w+) (купила?) (\w+)\. (\w+) (\w+) и (\w+)\.", text)
        assert found, text
        name, verb, bought, noun, *said = found.groups()
        assert (verb == "купила") == (name[-1] in "ая"), text
        assert bought == (noun[:-1] + "у" if noun[-1] == "а" else noun).lower(), text
        assert all(word.endswith(endings.get(noun[-1], ("ый", "ий", "ой"))) for word in said), text
    for text in contexts("ru", "animal_vs_vehicles_2"):
        for name, verb in re.findall(r"(\w+) (купила?)\b", text):
            assert (verb == "купила") == (name[-1] in "ая"), text
    for text in contexts("ru", "job_vs_nationality"):
        found = re.search(r"(\w+)(?= —).*\b(\w+(?:ка|ец|нин|уз|ек))\b", text)
        assert found, text
        assert (found[2].endswith("ка")) == (found[1][-1] in "ая"), text


def test_greek_articles_agree_with_names() -> None:
    for test in SHAPES:
        for text in texts_of("el", test):
            for article, name in re.findall(r"(?<!\w)([ΟοΗη]) ([Α-ΩΆ-Ώ]\w+)", text):
                assert (article in "Οο") == name.endswith("ς"), text


def test_arabic_verbs_and_pronouns_agree_with_names() -> None:
    names = SUITE.languages["ar"].names
    female = {name: False for name in names.male} | {name: True for name in names.female}
    said = 0
    for test in ("intensifiers", "properties", "animal_vs_vehicles_2"):
        for text in contexts("ar", test):
            for verb, name in re.findall(r"(اشترى|اشترت|تشعر|يشعر) (\w+)", text):
                assert (verb in {"اشترت", "تشعر"}) == female[name], text
                said += 1
    for test in ("job_vs_nationality", "animal_vs_vehicles"):
        for text in contexts("ar", test):
            for name, pronoun in re.findall(r"^(?:لدى )?(\w+) [^،]*، و(لديه|لديها|هو|هي) ", text):
                assert (pronoun in {"لديها", "هي"}) == female[name], text
                said += 1
    assert said > 1000


def test_hindi_verbs_agree_with_what_was_bought() -> None:
    feminine = {"बिल्ली", "गाय", "बकरी", "भेड़", "बत्तख़", "कार", "साइकिल", "मोटरसाइकिल", "बस", "नाव"}
    for text in contexts("hi", "animal_vs_vehicles_2"):
        found = re.findall(r"ने एक (\S+) (\S+)।", text)
        assert len(found) == 2
        assert all((verb == "ख़रीदी") == (noun in feminine) for noun, verb in found), text


# For speakers --------------------------------------------------------------------------------------------


def rendered(case: Case) -> list[str]:
    shown = list(dict.fromkeys(item.context for item in case.examples))
    asked = dict.fromkeys((item.question, item.answer) for item in case.examples)
    return [*(f"  {context}" for context in shown), *(f"    {q} -> {a}" for q, a in asked)]


def test_a_case_of_every_language_and_test_reads_as_approved() -> None:
    lines = []
    for language, test in CELLS:
        lines += [f"{language} {test}", *rendered(cases(language, test)[0]), ""]
    made = "\n".join(lines)
    if os.environ.get(UPDATE):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(made, encoding="utf-8")
    assert made == GOLDEN.read_text(encoding="utf-8"), f"if that is meant, run with {UPDATE}=1"
