"""Template texts: their placeholders, their faults with columns, and filling."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_checklist.suites.template import TemplateError, capitalise, parse, split_number


def test_every_shape_of_placeholder_is_read() -> None:
    template = parse("{a} {a1} {adj[1]} {p.v1} {p2.p1[1]} {obj[1]|capitalise} { s | capitalise }")
    assert template.references == (
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
    assert [item.column for item in template.placeholders][:3] == [1, 5, 10]


def test_the_first_form_is_the_one_without_an_index() -> None:
    assert parse("{adj[0]}").references == parse("{adj}").references == ("adj",)


def test_doubled_braces_and_percent_signs_are_literal() -> None:
    assert parse("{{x}} is {a} 100 % %s").fill({"a": "{b}"}) == "{x} is {b} 100 % %s"
    assert parse("{{}}").constant == "{}"


@given(st.text())
def test_an_escaped_text_is_itself(text: str) -> None:
    assert parse(text.replace("{", "{{").replace("}", "}}")).constant == text


@given(st.lists(st.text(alphabet="ab%'é {}", max_size=5), min_size=1, max_size=6))
def test_filling_puts_values_between_the_literals(literals: list[str]) -> None:
    escaped = [literal.replace("{", "{{").replace("}", "}}") for literal in literals]
    template = parse("{slot}".join(escaped))
    assert template.fill({"slot": "%s"}) == "%s".join(literals)


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("a } b", [(3, "'}' closes nothing")]),
        ("a {b", [(3, "'{' is not closed")]),
        ("{a {b}", [(1, "'{' is not closed")]),
        ("{}", [(1, "{} is no placeholder")]),
        ("x {a:noun} {b[x]}", [(3, "{a:noun} is no placeholder"), (12, "{b[x]} is no placeholder")]),
        ("{p[0].v1}", [(1, "{p[0].v1} is no placeholder")]),
        ("ok {a} {a|upper} {1a}", [(8, "no transformation named 'upper'"), (18, "{1a} is no")]),
    ],
)
def test_faults_are_reported_with_their_columns_all_at_once(text: str, faults: list[tuple[int, str]]) -> None:
    with pytest.raises(TemplateError) as caught:
        parse(text)
    found = caught.value.faults
    assert [fault.column for fault in found] == [column for column, _ in faults]
    for fault, (_, message) in zip(found, faults, strict=True):
        assert message in fault.message


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
