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


EN, HI = LANGUAGES.get("en"), LANGUAGES.get("hi")


def found(*pairs: tuple[str, str]) -> dict[str, int]:
    report = guard_report([*SOUND, *pairs], EN, HI, detector=language_detector())
    assert report.segments == 3 + len(pairs)
    return {guard: count for guard, count in report.counts.items() if count}


@pytest.mark.parametrize(
    ("guard", "before", "after"),
    [
        *((guard, *pair) for guard, pair in FAULTS.items()),
        ("length", "It is raining today here.", "आज यहाँ बारिश हो रही है। " * 5),
        ("repeated", "The big house is old.", "बड़ा घर पुराना है " * 4),
        ("repeated", "The house is old.", "घर घर घर घर पुराना है"),
    ],
)
def test_a_fault_is_counted(guard: str, before: str, after: str) -> None:
    assert {*FAULTS, "truncated"} == set(GUARDS)
    assert found() == {}
    assert found((before, after)).get(guard) == 1


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
    ("pair", "target", "detected", "count"),
    [
        (SOUND[1], "hi", ("es", 0.59), 0),
        (SOUND[1], "hi", ("es", 0.6), 1),
        (("Old.", "La casa."), "hi", ("es", 1.0), 0),
        # The detector does not know Hausa.
        (("The children went to school.", "Yara sun tafi makaranta yau da safe."), "ha", ("tr", 0.9), 0),
    ],
)
def test_a_language_that_is_not_sure_is_no_fault(
    pair: tuple[str, str], target: str, detected: tuple[str, float], count: int
) -> None:
    report = guard_report([pair], EN, LANGUAGES.get(target), detector=lambda _: detected)
    assert report.counts["language"] == count
    assert report.unchecked == (("language",) if target == "ha" else ())


def test_truncation_is_reported_by_the_translator() -> None:
    report = guard_report(SOUND, EN, HI, truncated=[False, True, False])
    assert report.counts["truncated"] == 1
    assert report.examples["truncated"] == [SOUND[1]]
    assert report.unchecked == ("language",)
    assert guard_report([("My sisters were older.",) * 2], EN, EN).counts["copied"] == 0


@pytest.mark.parametrize(
    ("code", "text"),
    [("zh", "这座房子很旧很冷。"), ("ko", "이 집은 낡고 춥다."), ("ja", "この家は古くて寒い。")],
)
def test_scripts_of_the_table_are_those_of_texts(code: str, text: str) -> None:
    assert guard_report([("The house is old.", text)], EN, LANGUAGES.get(code)).counts["script"] == 0
