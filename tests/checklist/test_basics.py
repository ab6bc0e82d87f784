"""Words, cases and the defects of templates."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from harness.errors import DataError, MissingDataError
from harness_checklist.case import (
    Case,
    CaseExample,
    answerable,
    case_defect,
    case_lines,
    example_defects,
    read_cases,
)
from harness_checklist.folder import find_suite
from harness_checklist.generation import draw_cases
from harness_checklist.lint import lint_suite
from harness_checklist.suite import ListedFillIn, Match, Profile

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


def test_the_lint_has_no_findings_and_all_floors_are_zero() -> None:
    report = lint_suite(SUITE)
    assert report.findings == ()
    made = report.floors
    assert {(row.language, row.test) for row in made} == set(CELLS)
    assert {(row.cases, row.floor) for row in made} == {(CASES, 0.0)}


# Agreement -----------------------------------------------------------------------------------------------


def matches(language: str, test: str, pattern: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield every context of a test with its match of a pattern, which it must have."""
    for text in contexts(language, test):
        match = re.search(pattern, text)
        assert match, text
        yield text, match


def test_german_articles_agree_in_gender_between_the_cases() -> None:
    genders = {"einen": "Der", "eine": "Die", "ein": "Das"}
    pattern = r"^\w+ hat (\w+) (\w+) gekauft\. (\w+) (\w+) ist \w+ und \w+\.$"
    for text, match in matches("de", "properties", pattern):
        article, noun, definite, again = match.groups()
        assert (genders[article], noun) == (definite, again), text


def test_spanish_adjectives_agree_with_the_article() -> None:
    pattern = r"^\w+ compró (una?) (\w+)\. (El|La) (\w+) es (\w+) y (\w+)\.$"
    for text, match in matches("es", "properties", pattern):
        article, noun, definite, again, *adjectives = match.groups()
        assert (article, noun) == ({"El": "un", "La": "una"}[definite], again), text
        wrong = {"El": "a", "La": "o"}[definite]
        assert not any(word.endswith(wrong) for word in adjectives), text


def test_russian_verbs_agree_with_names_and_adjectives_with_nouns() -> None:
    endings = {"а": ("ая", "яя"), "о": ("ое", "ее")}
    for text, match in matches("ru", "properties", r"^(\w+) (купила?) (\w+)\. (\w+) (\w+) и (\w+)\.$"):
        name, verb, bought, noun, *adjectives = match.groups()
        assert (verb == "купила") == (name[-1] in "ая"), text
        assert bought == (noun[:-1] + "у" if noun[-1] == "а" else noun).lower(), text
        assert all(word.endswith(endings.get(noun[-1], ("ый", "ий", "ой"))) for word in adjectives), text
    for text in contexts("ru", "animal_vs_vehicles_2"):
        for name, verb in re.findall(r"(\w+) (купила?)\b", text):
            assert (verb == "купила") == (name[-1] in "ая"), text
    for text, match in matches("ru", "job_vs_nationality", r"(\w+)(?= —).*\b(\w+(?:ка|ец|нин|уз|ек))\b"):
        assert (match[2].endswith("ка")) == (match[1][-1] in "ая"), text


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


case_file_texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]))


@st.composite
def any_cases(draw: st.DrawFn) -> list[Case]:
    return [
        Case(
            id=f"t-{number}",
            test=draw(case_file_texts),
            language="de",
            capability=draw(case_file_texts),
            normalise=draw(st.sampled_from([Profile(), Profile(articles=("l'",), strip="»")])),
            fills=draw(st.dictionaries(case_file_texts, case_file_texts, max_size=3)),
            examples=tuple(
                CaseExample(
                    id=f"t-{number}/{i}",
                    context=draw(case_file_texts),
                    question=draw(case_file_texts),
                    answer=draw(case_file_texts),
                )
                for i in range(1, draw(st.integers(1, 4)))
            ),
        )
        for number in range(draw(st.integers(0, 4)))
    ]


@given(cases=any_cases())
def test_cases_that_are_written_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, cases: list[Case]
) -> None:
    path = tmp_path_factory.mktemp("cases") / "de.jsonl"
    path.write_text(case_lines(cases), encoding="utf-8")
    assert read_cases(path) == cases
    keys = ("id", "test", "language", "capability", "type", "fills", "examples")
    assert case_lines(cases).split("\n")[:-1] == [
        json.dumps(
            {**{key: asdict(case)[key] for key in keys}, "normalise": case.normalise.model_dump(mode="json")},
            ensure_ascii=False,
        )
        for case in cases
    ]


GOOD = {
    "id": "t-1",
    "test": "t",
    "language": "de",
    "examples": [{"id": "t-1/1", "context": "c", "question": "q", "answer": "a"}],
}


def faults(tmp_path: Path, *lines: object) -> list[str]:
    path = tmp_path / "cases.jsonl"
    reported = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(reported), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_cases(path)
    head, *found = caught.value.message.split("\n  ")
    assert head == f"{path} has {len(found)} fault{'s' if len(found) > 1 else ''}:"
    return found


def test_all_faults_of_a_file_are_reported_with_their_lines(tmp_path: Path) -> None:
    bad_example = {"id": 1, "context": "c", "question": "q", "answr": "a"}
    reported = faults(
        tmp_path,
        GOOD,
        "",
        '{"id": "t-2",',
        [],
        {**GOOD, "id": "t-3", "examples": [bad_example, "x"], "more": 1},
        {"id": "t-4", "test": 5, "fills": {"a": 1}, "normalise": {"strips": ""}},
        GOOD,
    )
    expected = [
        "line 3: Invalid JSON",
        "line 4: ",
        "line 5: unknown key 'more'",
        "line 5: the key 'examples.0.answer' is missing",
        "line 5: unknown key 'examples.0.answr'",
        "line 5: examples.0.id: ",
        "line 5: examples.1: ",
        "line 6: the key 'language' is missing",
        "line 6: the key 'examples' is missing",
        "line 6: test: ",
        "line 6: fills.a: ",
        "line 6: unknown key 'normalise.strips'",
        "line 7: the id 't-1' is given twice (first on line 1)",
        "line 7: the id 't-1/1' is given twice (first on line 1)",
    ]
    assert len(reported) == len(expected)
    assert all(any(one.startswith(start) for one in reported) for start in expected), reported
    path = tmp_path / "cases.jsonl"
    path.write_text("x\n" * 130, encoding="utf-8")
    with pytest.raises(DataError, match=r"(.|\n)*line 100: (.|\n)*and 30 more faults$"):
        read_cases(path)


def test_files_of_other_formats_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="There is no file"):
        read_cases(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match="cannot be read"):
        read_cases(tmp_path)
    (tmp_path / "latin1.jsonl").write_bytes(b"\xe9")
    with pytest.raises(DataError, match="is not UTF-8"):
        read_cases(tmp_path / "latin1.jsonl")


ENGLISH = Profile(articles=("a", "an", "the", "in", "at"))


def example(context: str, question: str, answer: str) -> CaseExample:
    return CaseExample(id="t-0/1", context=context, question=question, answer=answer)


def by_brute_force(context: str, answer: str, profile: Profile) -> bool:
    spans = (context[i:j] for i in range(len(context) + 1) for j in range(i, len(context) + 1))
    wanted = profile.clean(answer)
    return any(profile.clean(span) == wanted for span in spans)


defect_texts = st.text(alphabet="ab .Ab\u200f", max_size=9)


@given(
    context=st.text(alphabet="ab .A\u200fß", max_size=14),
    answer=defect_texts,
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


DOG = "Ann has a dog."


@pytest.mark.parametrize(
    ("examples", "defects", "defect"),
    [
        ([], [], "empty"),
        ([(DOG, "What?", "a dog"), (DOG, "What?", "dog.")], [None, None], None),
        (
            [(DOG, "What?", "a dog"), (DOG, "What?", "Ann"), (DOG, "Who?", "Ann")],
            ["contradictory", "contradictory", None],
            "contradictory",
        ),
        ([(DOG, "Who?", "Ann"), (DOG, "Who?", "Bob")], ["contradictory"] * 2, "contradictory"),
        ([(DOG, "Who?", "Bob")], ["unanswerable"], "unanswerable"),
    ],
)
def test_defects_of_examples_and_of_their_case(
    examples: list[tuple[str, str, str]], defects: list[str | None], defect: str | None
) -> None:
    """Answers are compared after cleaning; a contradiction comes before a missing answer."""
    made = [example(*texts) for texts in examples]
    assert example_defects(made, ENGLISH) == defects
    assert case_defect(made, ENGLISH) == defect
