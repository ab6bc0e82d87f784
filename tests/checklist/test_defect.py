"""Defects of cases against a brute force over all spans."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from harness_checklist.generation.case import CaseExample
from harness_checklist.generation.defect import answerable, case_defect, example_defects
from harness_checklist.suites.suite import Match, Profile

ENGLISH = Profile(articles=("a", "an", "the", "in", "at"))


def example(context: str, question: str, answer: str) -> CaseExample:
    return CaseExample(id="t-0/1", context=context, question=question, answer=answer)


def by_brute_force(context: str, answer: str, profile: Profile) -> bool:
    spans = (context[i:j] for i in range(len(context) + 1) for j in range(i, len(context) + 1))
    wanted = profile.clean(answer)
    return any(profile.clean(span) == wanted for span in spans)


texts = st.text(alphabet="ab .Ab\u200f", max_size=9)


@given(
    context=st.text(alphabet="ab .A\u200fß", max_size=14),
    answer=texts,
    articles=st.lists(st.text(alphabet="ab ", min_size=1, max_size=3), max_size=3),
    match=st.sampled_from(["word", "start", "anywhere"]),
    strip=st.sampled_from([",. ", ".", "", "a ."]),
    casefold=st.booleans(),
)
def test_answerable_is_what_a_brute_force_over_all_spans_says(
    context: str, answer: str, articles: list[str], match: Match, strip: str, casefold: bool
) -> None:
    profile = Profile(articles=tuple(articles), match=match, strip=strip, casefold=casefold)
    assert answerable(context, answer, profile) == by_brute_force(context, answer, profile)


@pytest.mark.parametrize(
    ("context", "answer", "profile", "passable"),
    [
        ("Ann has a dog.", "a dog", ENGLISH, True),
        ("Ann has the dog.", "a dog", ENGLISH, True),
        ("Ann has Dog.", "dog", ENGLISH, False),
        ("Ann has Dog.", "dog", Profile(casefold=True), True),
        ("Harold runs.", "Haroldqa", Profile(), False),
        ("Er hat keinen Hund", "einen Hund", Profile(articles=("ein", "eine", "einen")), True),
        ("في الغرفة الكرسي", "كرسي", Profile(articles=("ال",), match="anywhere"), True),
        ("في الغرفة كرسي", "الكرسي", Profile(articles=("ال",), match="anywhere"), True),
        ("anything", ". ,", ENGLISH, True),
        ("the big the dog", "a big dog", ENGLISH, False),  # two spaces stay inside
        ("big red the dog", "red a dog", ENGLISH, True),
        # Only the stripped text next to it keeps b from being an article.
        ("ab", "aab", Profile(articles=("b",), strip="a"), True),
        ("ba", "baa", Profile(articles=("b",), strip="a"), True),
    ],
)
def test_spans_are_compared_after_the_profile(
    context: str, answer: str, profile: Profile, passable: bool
) -> None:
    assert by_brute_force(context, answer, profile) == passable
    assert answerable(context, answer, profile) == passable


def test_no_examples_are_empty() -> None:
    assert case_defect([], ENGLISH) == "empty"


def test_two_answers_to_one_question_are_contradictory_only_where_they_differ_after_cleaning() -> None:
    same = [example("Ann has a dog.", "What?", "a dog"), example("Ann has a dog.", "What?", "dog.")]
    assert case_defect(same, ENGLISH) is None
    other = [*same, example("Ann has a dog.", "What?", "Ann"), example("Ann has a dog.", "Who?", "Ann")]
    assert case_defect(other, ENGLISH) == "contradictory"
    assert example_defects(other, ENGLISH) == ["contradictory"] * 3 + [None]


def test_contradiction_is_reported_before_a_missing_answer() -> None:
    examples = [example("Ann runs.", "Who?", "Ann"), example("Ann runs.", "Who?", "Bob")]
    assert case_defect(examples, ENGLISH) == "contradictory"
    assert case_defect(examples[1:], ENGLISH) == "unanswerable"
    assert example_defects([examples[1]], ENGLISH) == ["unanswerable"]


def test_many_names_in_turn() -> None:
    profile = Profile(articles=("ein", "eine", "einen"), strip=",. ")
    names = [f"Name{number}" for number in range(5000)]
    for name in names:
        context = f"{name} hat einen Hund und ein Auto. {name} ist eine Ärztin."
        cases = [
            example(context, "Was?", "ein Hund"),
            example(context, "Wer?", name),
            example(context, "Womit?", "einem Auto"),
            example(context, "Wann?", "gestern"),
        ]
        assert case_defect(cases, profile) == "unanswerable"
        assert case_defect(cases[:2], profile) is None
