from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given, strategies as st

from harness.errors import SpecError
from harness.prompts.template import FILTERS, Template


def render(text: str, values: dict[str, str], literals: dict[str, str] | None = None) -> str:
    return Template.parse(text, owner="prompt 'a/b'").render(values, literals)


def test_slots_filters_and_braces() -> None:
    values = {"premise": " It rains. ", "hypothesis": "Wet"}
    assert render("{premise|strip|drop_stop}, {hypothesis|lower_first}{{x}}", values) == "It rains, wet{x}"
    assert render("{{premise}} {{{premise|strip}}}", values) == "{premise} {It rains.}"


def test_a_selector_takes_the_literal_that_the_item_names() -> None:
    literals = {"connective.cause": " Because", "connective.effect": "So"}
    assert render("{connective[question]|strip|lower_first}", {"question": "cause"}, literals) == "because"
    template = Template.parse("{connective[question]} {a}", owner="x")
    assert template.names == {"question", "a"}
    assert template.tables == {"connective"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{premise", "brace at character 1 of '{premise'; write it twice"),
        ("a } b", "brace at character 3 of 'a } b'; write it twice"),
        ("{a{b}}", "brace at character 1 of '{a{b}}'; write it twice"),
        ("{premise|lower_frist}", "No template filter named 'lower_frist'. Did you mean 'lower_first'"),
        ("{a.b}", "the slot {a.b} is not of the form {name}, {name|filter} or {literal[field]}"),
        ("{a[0]}", "the slot {a[0]} is not of the form"),
        ("{a!r}", "the slot {a!r} is not of the form"),
        ("{}", "the slot {} is not of the form"),
        ("{__class__}", "the slot {__class__} is not of the form"),
    ],
)
def test_a_broken_template_is_one_sentence(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)) as caught:
        Template.parse(text, owner="prompt 'a/b'")
    assert len(caught.value.problems) == 1
    assert caught.value.source == "prompt 'a/b'"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{premis}", "No field or literal of the template named 'premis'. Did you mean 'premise'?"),
        ("{connective[question]}", "named 'connective.effect'. Did you mean 'connective.cause'?"),
        ("{connective[query]}", "No field or literal of the template named 'query'."),
    ],
)
def test_a_missing_value_is_one_sentence(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)) as caught:
        render(text, {"premise": "a", "question": "effect"}, {"connective.cause": "because"})
    assert len(caught.value.problems) == 1


@given(st.text(), st.text())
def test_texts_of_items_are_never_evaluated(first: str, second: str) -> None:
    """What looks like a slot, a brace or a format in an item stays as it is."""
    for hostile in ("{premise}", "{{", "}}", "{0}", "%s", "$x", "{{ 7*7 }}", ""):
        values = {"premise": hostile + first, "hypothesis": second + hostile}
        rendered = render("{{{premise}}}|{hypothesis}", values)
        assert rendered == "{" + hostile + first + "}|" + second + hostile


@given(st.text(), st.text())
def test_bound_literals_are_text_too(word: str, field: str) -> None:
    template = Template.parse("{word}{field}{word|strip}", owner="x").bind({"word": word})
    assert template.render({"field": field}) == word + field + word.strip()


@pytest.mark.parametrize(
    ("name", "given_text", "expected"),
    [
        ("lower_first", "İstanbul", "i̇stanbul"),
        ("lower_first_root", "Işık", "işık"),
        ("lower_start", "İstanbul", "istanbul"),
        ("lower_start", "The man", "the man"),
        ("lower_start", "I fell", "I fell"),
        ("lower_start", "I'm ill", "I'm ill"),
        ("lower_start", "USA won", "USA won"),
        ("lower_start", "", ""),
        ("upper_first", "éa", "Éa"),
        ("drop_last", "Fini.", "Fini"),
        ("drop_stop", "a;", "a"),
        ("drop_stop", "a。", "a。"),
        ("drop_period", "街道是湿的。", "街道是湿的"),
        ("drop_period", "यह गीली है।", "यह गीली है"),
        ("drop_period", "گیلا تھا۔", "گیلا تھا"),
        ("drop_period", "Wirklich? ", "Wirklich?"),
        ("drop_period", "Well... ", "Well"),
        ("detokenise", 'He did n\'t say " no " , ( ever ) .', 'He didn\'t say"no", (ever).'),
        ("paragraph", "Ein Text.", "Ein Text.\n\n"),
        ("paragraph", "", ""),
        ("pad_marks", "Wo?  (Wien, a_b)", "Wo ? ( Wien , a_b )"),
        ("pad_marks", "नमस्ते। ৫০%", "नमस्ते । ৫০ %"),
    ],
)
def test_filters(name: str, given_text: str, expected: str) -> None:
    assert FILTERS[name](given_text) == expected


@pytest.mark.parametrize(
    ("name", "language", "text", "expected"),
    [
        ("lower_first", "tr", "Işık", "ışık"),
        ("lower_first", "az", "İpək", "ipək"),
        ("lower_first", "tr", "I\u0307pek", "ipek"),
        ("lower_start", "tr", "Işık söndü.", "ışık söndü."),
        ("lower_start", "tr-TR", "Irmak", "ırmak"),
        ("lower_start", "nl", "IJs smelt.", "ijs smelt."),
        ("lower_start", "nl", "Het is koud.", "het is koud."),
        ("lower_start", "nl", "IJSLAND won", "IJSLAND won"),
        ("lower_start", "en", "It fell", "it fell"),
        ("upper_first", "tr", "ipek", "İpek"),
        ("upper_first", "az", "ışıq", "Işıq"),
        ("upper_first", "nl", "ijs", "IJs"),
        ("upper_first", "de", "ßa", "Ssa"),
        ("upper_first", "ka", "ქართული", "ქართული"),
        ("lower_first", "lt", "\u00cc", "i\u0307\u0300"),
        ("upper_first", "lt", "i\u0307\u0300", "\u00cc"),
    ],
)
def test_case_follows_the_language(name: str, language: str, text: str, expected: str) -> None:
    assert Template.parse(f"{{x|{name}}}", owner="x", language=language).render({"x": text}) == expected


@given(st.text())
def test_pad_marks_adds_and_joins_spaces_only(text: str) -> None:
    padded = FILTERS["pad_marks"](text)
    assert "".join(padded.split()) == "".join(text.split())
    for word in padded.split(" "):
        marks = [c for c in word if c != "_" and unicodedata.category(c)[0] not in "LMN"]
        assert not marks or len(word) == 1
