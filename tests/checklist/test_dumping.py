"""Suites written as YAML: what is written is read back, also by another reader of YAML."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.specs.loading import read_yaml
from harness_checklist.suites.dumping import dump_suite, scalar
from harness_checklist.suites.loading import load_suite
from harness_checklist.suites.profile import Profile
from harness_checklist.suites.suite import (
    ContextTemplate,
    Entry,
    Form,
    LanguageSuite,
    ListedFillIn,
    Names,
    PairFillIn,
    QuestionTemplate,
    Suite,
    TestDeclaration,
    TestTemplate,
)

MISREAD = [
    "no",
    "On",
    "1e3",
    "~",
    "",
    "null",
    "1",
    "0x1f",
    "12:30",
    "true",
    "=",
    "<<",
    "- a",
    "a: b",
    "a #b",
    " a",
    "a ",
    ".",
]
HIDDEN = [
    "\u200f.",
    "a\ufeffb",
    "\x85",
    "\u2028",
    "\t",
    "\x7f",
    "\\",
    '"',
    "'",
    "{a}",
    "می‌خواهم",
    "a\nb",
    "😀",
    "%a",
    "@",
]
texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    MISREAD + HIDDEN
)


@given(texts)
def test_a_text_stays_a_text_for_every_reader(text: str) -> None:
    line = f"{{{scalar(text)}: [{scalar(text)}]}}"
    assert yaml.safe_load(line) == {text: [text]}
    assert read_yaml(line, "x").data == {text: [text]}
    assert "\n" not in line


@pytest.mark.parametrize("text", ["älter", "ein Sofa", "größer (m)", "l’été", "ስም", "大きい"])
def test_words_are_written_plainly(text: str) -> None:
    assert scalar(text) == text


def test_unseen_characters_are_written_as_escapes_but_joiners_are_spelling() -> None:
    assert scalar("\u200f. ") == '"\\u200f. "'
    assert scalar("a\U000e0001") == '"a\\U000e0001"'
    assert "\u200c" in scalar("می‌خواهم")


conditions = st.dictionaries(
    st.just("s"), st.sets(st.sampled_from(["no", "b c", "1"]), min_size=1).map(frozenset), max_size=1
)
forms = st.builds(
    lambda text, when: Form(texts=(text, "second"), when=when),
    texts.map(lambda t: re.sub("[{}]", "", t)),
    conditions,
)


def entry(name: str, made: list[Form]) -> Entry:
    """Return an entry whose forms all may apply: at most one of each condition, the plain one last."""
    kept = {frozenset(form.when.items()): form for form in made}
    found = sorted(
        kept.values(), key=lambda form: (-len(form.when), sum(len(ids) for ids in form.when.values()))
    )
    return Entry(id=name, forms=tuple(found))


@st.composite
def any_suite(draw: st.DrawFn) -> Suite:
    ids = draw(st.lists(texts, min_size=1, max_size=4, unique=True))
    x = ListedFillIn(
        entries=tuple(entry(name, draw(st.lists(forms, min_size=1, max_size=3))) for name in ids)
    )
    s = ListedFillIn(entries=tuple(Entry(id=i, forms=(Form(texts=(f"s{i}",)),)) for i in ("no", "b c", "1")))
    named = ListedFillIn(entries=tuple(Entry(id=i, forms=(Form(texts=(i,)),)) for i in ("x", "s")))
    literal = draw(texts).replace("{", "{{").replace("}", "}}")
    test = TestTemplate(
        contexts=(ContextTemplate(text=f"{literal}{{x[1]}} {{p.v1}}", when=draw(conditions)),),
        questions=(QuestionTemplate(ask=literal, answer="{p.p1} {s}", when=draw(conditions)),)
        * draw(st.integers(1, 2)),
        fills={
            "x": x,
            "s": s,
            "n": named,
            "p": PairFillIn(of=("x", "s"), named="n", ordered=draw(st.booleans())),
        },
        names=draw(st.sampled_from(["any", "male", "female"])),
        zips=draw(st.sampled_from([(), (("s",),)])),
        balance=draw(st.sampled_from([None, "variants", "s", "p.p1"])),
    )
    people = tuple(draw(st.lists(texts.filter(str.strip), max_size=30)))
    profile = Profile(
        articles=tuple(draw(st.lists(texts, max_size=2))),
        match=draw(st.sampled_from(["word", "anywhere"])),
        strip=draw(texts),
        casefold=draw(st.booleans()),
    )
    names = Names(male=people, last=people[:2], script=draw(st.sampled_from(["", "Latn"])))
    lent = replace(names, borrowed=draw(st.sampled_from(["de", "en"]))) if people else names
    spoken = [
        LanguageSuite(language="de", tests={"t": test, "u": test}, names=names, profile=profile),
        LanguageSuite(language="sw", tests={"u": test}, names=lent),
    ]
    declared = [
        TestDeclaration(id=i, name=draw(texts), title=draw(texts), capability=draw(texts)) for i in "tu"
    ]
    return Suite(
        name=draw(texts),
        version=3,
        description=draw(texts),
        license="CC0",
        citation="",
        tests=tuple(declared),
        languages={item.language: item for item in spoken},
    )


def placeless(value: Any) -> Any:
    """Return a value whose dataclasses are tuples, without places, and with mappings in their order."""
    if is_dataclass(value):
        found = [(field.name, placeless(getattr(value, field.name))) for field in fields(value)]
        return tuple(item for item in found if item[0] != "place")
    if isinstance(value, dict):
        return [(key, placeless(item)) for key, item in value.items()]
    return tuple(placeless(item) for item in value) if isinstance(value, tuple) else value


@given(suite=any_suite())
def test_a_suite_that_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, suite: Suite) -> None:
    folder = tmp_path_factory.mktemp("suite")
    dump_suite(suite, folder)
    assert placeless(load_suite(folder)) == placeless(suite)


def small(*codes: str) -> Suite:
    test = TestTemplate(
        contexts=(ContextTemplate(text="{x}"),),
        questions=(QuestionTemplate(ask="?", answer="{x}"),),
        fills={"x": ListedFillIn(entries=(Entry(id="no", forms=(Form(texts=("nein", "nie")),)),))},
    )
    return Suite(
        name="s",
        version=1,
        description="",
        license="",
        citation="",
        tests=tuple(TestDeclaration(id=i, name=i, title=i, capability="c") for i in "tu"),
        languages={
            code: LanguageSuite(language=code, tests={"t": test, "u": test}, names=Names()) for code in codes
        },
    )


def test_the_file_is_one_that_a_person_would_write(tmp_path: Path) -> None:
    dump_suite(small("de"), tmp_path)
    assert (
        (tmp_path / "languages" / "de.yaml").read_text(encoding="utf-8")
        == """\
language: de
tests:
  t:
    contexts:
      - "{x}"
    questions:
      - {ask: "?", answer: "{x}"}
    fill:
      x: {"no": [nein, nie]}
  u:
    contexts:
      - "{x}"
    questions:
      - {ask: "?", answer: "{x}"}
    fill: {use: t}
"""
    )


def test_languages_of_another_suite_are_not_mixed_in(tmp_path: Path) -> None:
    dump_suite(small("de", "fr"), tmp_path)
    with pytest.raises(UsageError, match=r"suite 's'.* fr"):
        dump_suite(small("de"), tmp_path)
