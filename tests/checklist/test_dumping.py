"""Suites written as YAML: what is written is read back, also by another reader of YAML."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given, strategies as st

from harness.errors import UsageError
from harness.specs.loading import read_yaml
from harness_checklist.suites.dumping import dump_suite, yaml_text
from harness_checklist.suites.loading import load_suite
from harness_checklist.suites.suite import (
    ContextTemplate,
    Form,
    LanguageSuite,
    ListedFillIn,
    Names,
    PairFillIn,
    Profile,
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
    for flow in (None, True):
        line = yaml_text({text: [text]}, flow=flow)
        assert yaml.safe_load(line) == {text: [text]}
        assert read_yaml(line, "x").data == {text: [text]}


@pytest.mark.parametrize("text", ["älter", "ein Sofa", "größer (m)", "l’été", "ስም", "大きい"])
def test_words_are_written_plainly(text: str) -> None:
    assert yaml_text({"a": text}, flow=True) == f"{{a: {text}}}\n"


conditions = st.dictionaries(
    st.just("s"), st.sets(st.sampled_from(["no", "b c", "1"]), min_size=1).map(frozenset), max_size=1
)
forms = st.builds(
    lambda text, when: Form(texts=(text, "second"), when=when),
    texts.map(lambda t: re.sub("[{}]", "", t)),
    conditions,
)


def kept(made: list[Form]) -> tuple[Form, ...]:
    """Return forms that all may apply: at most one of each condition, the plain one last."""
    found = {frozenset(form.when.items()): form for form in made}
    return tuple(
        sorted(
            found.values(), key=lambda form: (-len(form.when), sum(len(ids) for ids in form.when.values()))
        )
    )


@st.composite
def any_suite(draw: st.DrawFn) -> Suite:
    ids = draw(st.lists(texts, min_size=1, max_size=4, unique=True))
    x = ListedFillIn(values={name: kept(draw(st.lists(forms, min_size=1, max_size=3))) for name in ids})
    s = ListedFillIn(values={i: (Form(texts=(f"s{i}",)),) for i in ("no", "b c", "1")})
    named = ListedFillIn(values={i: (Form(texts=(i,)),) for i in ("x", "s")})
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
    lent = names.model_copy(update={"borrowed": draw(st.sampled_from(["de", "en"]))}) if people else names
    spoken = [
        LanguageSuite(language="de", tests={"t": test, "u": test}, names=names, profile=profile),
        LanguageSuite(language="sw", tests={"u": test}, names=lent),
    ]
    declared = {
        i: TestDeclaration(id=i, name=draw(texts), title=draw(texts), capability=draw(texts)) for i in "tu"
    }
    return Suite(
        name=draw(texts),
        version=3,
        description=draw(texts),
        license="CC0",
        citation="",
        tests=declared,
        languages={item.language: item for item in spoken},
    )


@given(suite=any_suite())
def test_a_suite_that_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, suite: Suite) -> None:
    folder = tmp_path_factory.mktemp("suite")
    dump_suite(suite, folder)
    read = load_suite(folder)
    # Texts and their order, which draws depend on; places are no part of it.
    assert json.dumps(read.model_dump(), default=sorted) == json.dumps(suite.model_dump(), default=sorted)


def small(*codes: str) -> Suite:
    test = TestTemplate(
        contexts=(ContextTemplate(text="{x}"),),
        questions=(QuestionTemplate(ask="?", answer="{x}"),),
        fills={"x": ListedFillIn(values={"no": (Form(texts=("nein", "nie")),)})},
    )
    return Suite(
        name="s",
        version=1,
        description="",
        license="",
        citation="",
        tests={i: TestDeclaration(id=i, name=i, title=i, capability="c") for i in "tu"},
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
    - ask: "?"
      answer: "{x}"
    fill:
      x:
        "no": [nein, nie]
  u:
    contexts:
    - "{x}"
    questions:
    - ask: "?"
      answer: "{x}"
    fill: {use: t}
"""
    )


def test_languages_of_another_suite_are_not_mixed_in(tmp_path: Path) -> None:
    dump_suite(small("de", "fr"), tmp_path)
    with pytest.raises(UsageError, match=r"suite 's'.* fr"):
        dump_suite(small("de"), tmp_path)
