"""Rules of instructions in languages other than English, and the forms of answers that count as loose."""

from __future__ import annotations

from typing import Any

import pytest

from harness_instructions.rules import (
    RULES,
    Instruction,
    contains_word,
    follows,
    instruction_fault,
    is_in_language,
    loosened,
    sentence_count,
    words_of,
)


def verdict(text: str, identifier: str, language: str, prompt: str = "", **values: Any) -> bool:
    return follows(text, identifier, Instruction(values=values, prompt=prompt, language=language))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The river is wide. Dr. Brown swims! Really?", 3),
        ("At 3.5 km it is wide", 1),
        ("今天下雨。我没带伞！你呢？", 3),
        ("नदी चौड़ी है। नाव छोटी है।", 2),
        ("النهر واسع. هل القارب صغير؟ نعم", 3),
        ("دریا چوڑا ہے۔ کشتی چھوٹی ہے۔", 2),
        ("วันนี้ฝนตก ฉันไม่มีร่ม\nแล้วคุณล่ะ", 3),
        ("* \n***\n", 0),
        ("", 0),
    ],
)
def test_sentences_end_at_the_marks_of_a_script(text: str, count: int) -> None:
    assert sentence_count(text) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("It's 3.5 km", 5),
        ("हिन्दी एक भाषा है", 4),
        ("今天下雨 OK", 5),
        ("Привет, мир", 2),
        ("วันนี้ฝนตกหนักมาก", 4),
    ],
)
def test_words_of_any_script(text: str, count: int) -> None:
    r"""English as ``\w+`` has it; 13 Thai letters are estimated to be 4 words (5 by PyThaiNLP)."""
    assert words_of(text) == count


@pytest.mark.parametrize(
    ("text", "word", "is_contained"),
    [
        ("The boat sails", "Boat", True),
        ("The boats sail", "boat", False),
        ("请带雨伞出门", "雨伞", True),
        ("काम करो", "का", False),
        ("यह राम का घर है", "का", True),
        ("C++ is old", "c++", True),
        ("my_boat", "boat", False),
    ],
)
def test_a_word_is_no_part_of_a_longer_one(text: str, word: str, is_contained: bool) -> None:
    assert contains_word(text, word) == is_contained


@pytest.mark.parametrize(
    ("text", "code", "is_right"),
    [
        ("Heute regnet es und ich habe keinen Schirm dabei.", "de", True),
        ("Heute regnet es und ich habe keinen Schirm dabei.", "en", False),
        ("Сегодня идёт дождь, и у меня нет зонта.", "uk", False),
        ("今天下雨，我没有带伞出门。", "zh", True),
        ("今日は雨なので傘を持って出かけます。", "zh", False),
        ("12 345", "de", True),
        ("Hello there", "xx-unknown", False),
    ],
)
def test_the_language_of_an_answer(text: str, code: str, is_right: bool) -> None:
    assert is_in_language(text, code) == is_right


@pytest.mark.parametrize(
    ("identifier", "language", "values", "good", "bad"),
    [
        ("punctuation:no_comma", "ar", {}, "السوق كبير", "السوق كبير، وجميل"),
        ("punctuation:no_comma", "zh", {}, "今天下雨", "今天下雨，很冷"),
        ("startend:quotation", "zh", {}, "“今天下雨”", "今天“下雨”"),
        ("startend:quotation", "de", {}, "„Es regnet“", "Es regnet"),
        ("startend:quotation", "en", {}, '"It rains"', "“It rains”"),
        ("startend:end_checker", "de", {"end_phrase": "Bis morgen!"}, "Gut. „Bis morgen!“", "Bis morgen! Gut."),
        (
            "keywords:letter_frequency",
            "ru",
            {"letter": "Ж", "let_frequency": 2, "let_relation": "at least"},
            "Жук жужжит",
            "Дом",
        ),
        ("keywords:existence", "hi", {"keywords": ["नाव"]}, "नाव छोटी है", "घर छोटा है"),
        ("detectable_content:number_placeholders", "zh", {"num_placeholders": 1}, "姓名：【姓名】", "姓名"),
        (
            "length_constraints:nth_paragraph_first_word",
            "zh",
            {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "太白金星"},
            "开始。\n\n太白金星来了。",
            "太白金星来了。\n\n开始。",
        ),
        (
            "change_case:capital_word_frequency",
            "ar",
            {"capital_frequency": 1, "capital_relation": "at least"},
            "وكالة NASA كبيرة",
            "السوق كبير",
        ),
        ("detectable_content:postscript", "de", {"postscript_marker": "PS:"}, "Gut.\nPS: Bis morgen", "Gut."),
    ],
)  # fmt: skip
def test_rules_know_languages(
    identifier: str, language: str, values: dict[str, Any], good: str, bad: str
) -> None:
    assert verdict(good, identifier, language, **values)
    assert not verdict(bad, identifier, language, **values)


def test_allowed_answers_are_those_that_a_prompt_quotes() -> None:
    prompt = "プードルは大きいですか? (「私の答えははいです。」、「私の答えはいいえです。」)"
    rule = "detectable_format:constrained_response"
    assert verdict("私の答えははいです。", rule, "ja", prompt)
    assert not verdict("はい。", rule, "ja", prompt)
    assert verdict("My answer is no.", rule, "ja", "大きいですか?")
    assert not verdict("私の答えははいです。", rule, "en", prompt)


def test_one_of_eight_forms_is_enough_for_a_loose_verdict() -> None:
    assert loosened("Sure:\n*yes*\nBye") == [
        *("Sure:\n*yes*\nBye", "*yes*\nBye", "Sure:\n*yes*", "*yes*"),
        *("Sure:\nyes\nBye", "yes\nBye", "Sure:\nyes", "yes"),
    ]


def test_an_empty_answer_follows_nothing() -> None:
    assert not verdict(" \n", "punctuation:no_comma", "en")


@pytest.mark.parametrize(
    ("identifier", "values", "fault"),
    [
        ("keywords:existance", {}, "has the unknown instruction 'keywords:existance'"),
        ("keywords:existence", {"keywords": []}, "has no 'keywords' for the instruction"),
        ("length_constraints:number_words", {"num_words": 3, "relation": "more"}, "has the relation 'more'"),
        ("punctuation:no_comma", {"num_words": None}, None),
    ],
)
def test_instructions_that_cannot_be_checked(
    identifier: str, values: dict[str, Any], fault: str | None
) -> None:
    reason = instruction_fault(identifier, values)
    assert (reason is None) == (fault is None)
    assert fault is None or fault in str(reason)


def test_every_rule_is_a_sort_and_a_name() -> None:
    assert len(RULES) == 25
    assert all(identifier.count(":") == 1 for identifier in RULES)
