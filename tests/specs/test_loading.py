from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.errors import SpecError
from harness.specs.loading import read_yaml


def _problem(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        read_yaml(text, "f.yaml")
    assert caught.value.source == "f.yaml"
    [problem] = caught.value.problems
    return str(problem)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("True", "True"),
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("1e-4", 1e-4),
        ("1.0e-4", 1e-4),
        ("2E5", 2e5),
        (".5", 0.5),
        ("-3", -3),
        ("010", 10),
        ("1_000", "1_000"),
        ("0x10", "0x10"),
        ("12:30:00", "12:30:00"),
        ("2024-01-01", "2024-01-01"),
        (".nan", ".nan"),
        (".inf", ".inf"),
        ('"1"', "1"),
        ("'true'", "true"),
        ("nouns", "nouns"),
    ],
)
def test_scalars_are_read_as_yaml_1_2_does(text: str, value: Any) -> None:
    read = read_yaml(f"key: {text}", "f.yaml").data["key"]
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "line", "first"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, 1),
        ("x:\n  a: {b: 1,\n     b: 2}\n", 3, 2),
        ("languages:\n  sw:\n  de:\n  sw: {}\n", 4, 2),
        ("{0: a,\n '0': b}", 2, 1),
        ("true: a\n'true': b", 2, 1),
    ],
)
def test_a_key_given_twice_is_reported_with_both_lines(text: str, line: int, first: int) -> None:
    problem = _problem(text)
    assert problem.startswith(f"line {line}: the key ")
    assert problem.endswith(f" is given twice (first on line {first})")


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (
            "{0: a, true: b, null: c, 1.5: d, no: e}",
            {"0": "a", "true": "b", "null": "c", "1.5": "d", "no": "e"},
        ),
        ("a: &x {k: [1, 2]}\nb: *x\n", {"a": {"k": [1, 2]}, "b": {"k": [1, 2]}}),
        ("a: &x {k: 1}\nb: {<<: *x}\n", {"a": {"k": 1}, "b": {"<<": {"k": 1}}}),
        ("\ufeffa: 1", {"a": 1}),
    ],
)
def test_keys_are_text_and_aliases_repeat_what_they_name(text: str, data: dict[str, Any]) -> None:
    assert read_yaml(text, "f.yaml").data == data


@pytest.mark.parametrize(
    ("text", "line", "fault"),
    [
        *(
            (f"a: 1\nb: [!!{tag}]\n", 2, "tags such as '!")
            for tag in (
                "python/object/apply:os.system [id]",
                "str 1",
                "int '5'",
                "binary aGk=",
                "set {x}",
                "float x",
            )
        ),
        ("a: 1\nb: [!mine x]\n", 2, "tags such as '!mine' are not allowed"),
        ("!!int '1': x", 1, "tags such as '!!int' are not allowed"),
        ("a: &a {b: *a}", 1, "an alias is inside what it names"),
        ("a: &a [x, *a]", 1, "an alias is inside what it names"),
        ("&a b: 1\nc: &d {e: [{f: *d}]}", 2, "an alias is inside what it names"),
        # a text that ends too early, or is no mapping
        ("a: 1\nb: [x,\n", 2, ""),
        ("a: 1\nb: {c: 'x", 2, ""),
        ("", 1, ""),
        ("- 1", 1, ""),
        ("text", 1, ""),
        ("a: 1\n---\nb: 2", 2, ""),
        ("? [x]\n: y", 1, ""),
    ],
)
def test_faulty_documents_are_reported_with_their_line(text: str, line: int, fault: str) -> None:
    problem = _problem(text)
    assert problem.startswith(f"line {line}: ")
    assert fault in problem


def test_control_characters_are_rejected() -> None:
    assert "control characters are not allowed" in _problem("a: \x00")


def test_lines_are_those_of_keys_and_of_list_items() -> None:
    document = read_yaml("a:\n  b:\n    - x\n    - c: 1\n      d: 2\n", "f.yaml")
    assert document.line_of(["a", "b", 1, "d"]) == 5
    assert document.line_of(["a", "b", 0]) == 3
    assert document.line_of(["a", "unknown", "deeper"]) == 1
    assert document.line_of(["unknown"]) is None
    assert document.line_of([]) is None


_TEXT = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=20)
"""JSON escapes what lies above U+FFFF as a pair of surrogates, which YAML does not have."""
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(_TEXT, _JSON, max_size=4))
def test_json_is_read_as_json_reads_it(data: dict[str, Any]) -> None:
    text = json.dumps(data)
    assert read_yaml(text, "f.yaml").data == data
