"""Template texts: their placeholders, their faults with columns, and filling."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from harness_checklist.suites.template import TemplateError, capitalise, parse, split_number


def test_every_shape_of_placeholder_is_read() -> None:
    template = parse("{a} {a1} {adj[1]} {p.v1} {p2.p1[1]} {obj[1]|capitalise} { s | capitalise }")
    assert tuple(item.reference for item in template.placeholders) == (
        "a",
        "a1",
        "adj[1]",
        "p.v1",
        "p2.p1[1]",
        "obj[1]|capitalise",
        "s|capitalise",
    )
    pair = template.placeholders[4]
    assert (pair.slot, pair.number, pair.key, pair.attribute, pair.index) == ("p", 2, "p2", "p1", 1)


def test_the_first_form_is_the_one_without_an_index() -> None:
    assert parse("{adj[0]}").placeholders == parse("{adj}").placeholders


def test_doubled_braces_and_percent_signs_are_literal() -> None:
    assert parse("{{x}} is {a} 100 % %s").fill({"a": "{b}"}) == "{x} is {b} 100 % %s"
    assert parse("{{}}").fill({}) == "{}"


@given(st.text())
def test_an_escaped_text_is_itself(text: str) -> None:
    assert parse(text.replace("{", "{{").replace("}", "}}")).fill({}) == text


@given(st.lists(st.text(alphabet="ab%'é {}", max_size=5), min_size=1, max_size=6))
def test_filling_puts_values_between_the_literals(literals: list[str]) -> None:
    escaped = [literal.replace("{", "{{").replace("}", "}}") for literal in literals]
    template = parse("{slot}".join(escaped))
    assert template.fill({"slot": "%s"}) == "%s".join(literals)


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("a } b", ["'}' (character 3) closes nothing"]),
        ("a {b", ["'{' (character 3) is not closed"]),
        ("{a {b}", ["'{' (character 1) is not closed"]),
        ("{}", ["{} is no placeholder"]),
        ("x {a:noun} {b[x]}", ["{a:noun} is no placeholder", "{b[x]} is no placeholder"]),
        ("{p[0].v1}", ["{p[0].v1} is no placeholder"]),
        ("ok {a} {a|upper} {1a}", ["{a|upper}: no transformation named 'upper'", "{1a} is no"]),
    ],
)
def test_faults_are_reported_all_at_once(text: str, faults: list[str]) -> None:
    with pytest.raises(TemplateError) as caught:
        parse(text)
    assert len(caught.value.faults) == len(faults)
    assert all(found.startswith(start) for found, start in zip(caught.value.faults, faults, strict=True))


def test_numbers_are_split_from_slots() -> None:
    assert split_number("first_name12") == ("first_name", 12)
    assert split_number("first_name") == ("first_name", None)


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("ein Sofa", "de", "Ein Sofa"),
        ("iyi", "tr", "İyi"),
        ("ivory", "en", "Ivory"),
        ("ǆak", "hr", "ǅak"),
        ("სახლი", "ka", "სახლი"),
        ("", "en", ""),
    ],
)
def test_capitals_follow_the_language(text: str, language: str, expected: str) -> None:
    assert capitalise(text, language) == expected
