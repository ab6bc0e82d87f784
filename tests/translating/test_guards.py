"""Every guard finds what it is for, and nothing in a sound translation."""

from __future__ import annotations

import pytest

from harness.data.translation.guards import GUARDS, guard_report
from harness.languages.detection import language_detector
from harness.languages.table import known_languages

LANGUAGES = known_languages()
SOUND = [
    ("The house has 3 rooms.", "घर में ३ कमरे हैं।"),
    ("She came home very late last night.", "वह कल रात बहुत देर से घर आई।"),
    ("It costs 1,500 rupees.", "इसकी कीमत 1500 रुपये है।"),
]
FAULTS = {
    "empty": ("Hello there", "  "),
    "copied": ("My sisters were older.", "My sisters were older."),
    "script": ("The house is old and cold.", "ghar purana aur thanda hai"),
    "language": ("The house is old and cold.", "La casa es vieja y está muy fría hoy."),
    "length": ("It is raining today in the big city.", "हाँ"),
    "repeated": ("The house is old.", "घर पुराना है घर पुराना है घर पुराना है घर पुराना है"),
    "numbers": ("He was born in 1987.", "उसका जन्म उस साल हुआ था।"),
}


def found(*pairs: tuple[str, str]) -> dict[str, int]:
    report = guard_report(
        [*SOUND, *pairs], LANGUAGES.get("en"), LANGUAGES.get("hi"), detector=language_detector()
    )
    assert report.segments == 3 + len(pairs)
    return {guard: count for guard, count in report.counts.items() if count}


def test_sound_translations_pass() -> None:
    assert found() == {}


@pytest.mark.parametrize("guard", FAULTS)
def test_a_fault_is_counted(guard: str) -> None:
    assert found(FAULTS[guard]).get(guard) == 1


@pytest.mark.parametrize(
    ("guard", "before", "after"),
    [
        ("repeated", "no no no no he said to them.", "नहीं नहीं नहीं नहीं उसने उनसे कहा।"),
        ("repeated", "The house is old.", "घर घर घर पुराना है"),
        ("length", "It is raining today here.", "आज यहाँ बारिश हो रही है, और बहुत देर तक होती रहेगी।"),
        ("numbers", "He was born then.", "उसका जन्म 1987 में हुआ था।"),
        ("copied", "NATO", "NATO."),
        ("language", "Namaste.", "La casa."),
    ],
)
def test_what_is_no_fault_is_not_counted(guard: str, before: str, after: str) -> None:
    assert guard not in found((before, after))


@pytest.mark.parametrize(
    ("guard", "before", "after"),
    [
        ("length", "It is raining today here.", "आज यहाँ बारिश हो रही है। " * 5),
        ("repeated", "The big house is old.", "बड़ा घर पुराना है " * 4),
        ("repeated", "The house is old.", "घर घर घर घर पुराना है"),
    ],
)
def test_what_is_just_a_fault_is_counted(guard: str, before: str, after: str) -> None:
    assert found((before, after)).get(guard) == 1


def test_a_text_that_stays_in_its_language_is_not_copied() -> None:
    report = guard_report([("My sisters were older.",) * 2], LANGUAGES.get("en"), LANGUAGES.get("en"))
    assert report.counts["copied"] == 0


def test_a_doubtful_language_and_that_of_a_short_text_are_no_faults() -> None:
    doubtful = guard_report(
        [SOUND[1]], LANGUAGES.get("en"), LANGUAGES.get("hi"), detector=lambda _: ("es", 0.59)
    )
    sure = guard_report([SOUND[1]], LANGUAGES.get("en"), LANGUAGES.get("hi"), detector=lambda _: ("es", 0.6))
    short = guard_report(
        [("Old.", "La casa.")], LANGUAGES.get("en"), LANGUAGES.get("hi"), detector=lambda _: ("es", 1.0)
    )
    counts = [report.counts["language"] for report in (doubtful, sure, short)]
    assert counts == [0, 1, 0]


def test_a_language_that_the_detector_does_not_know_is_unchecked() -> None:
    pair = ("The children went to school today.", "Yara sun tafi makaranta yau da safe.")
    report = guard_report([pair], LANGUAGES.get("en"), LANGUAGES.get("ha"), detector=lambda _: ("tr", 0.9))
    assert (report.counts["language"], report.unchecked) == (0, ("language",))


def test_truncation_is_reported_by_the_translator() -> None:
    report = guard_report(SOUND, LANGUAGES.get("en"), LANGUAGES.get("hi"), truncated=[False, True, False])
    assert report.counts["truncated"] == 1
    assert report.examples["truncated"] == [SOUND[1]]
    assert report.unchecked == ("language",)


def test_all_guards_have_a_row() -> None:
    assert {*FAULTS, "truncated"} == set(GUARDS)


@pytest.mark.parametrize(
    ("code", "text"),
    [("zh", "这座房子很旧很冷。"), ("ko", "이 집은 낡고 춥다."), ("ja", "この家は古くて寒い。")],
)
def test_scripts_of_the_table_are_those_of_texts(code: str, text: str) -> None:
    report = guard_report([("The house is old and cold.", text)], LANGUAGES.get("en"), LANGUAGES.get(code))
    assert report.counts["script"] == 0
