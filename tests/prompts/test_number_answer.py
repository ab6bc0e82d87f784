"""Numbers are read from answers as a person reads them; the expected values were written by hand."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from harness.languages.number import number_text
from harness.prompts.number_answer import answer_number

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
