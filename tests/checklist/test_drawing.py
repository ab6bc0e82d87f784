"""Test cases are drawn from templates, and written by the command."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.errors import SpecError, UnknownNameError
from harness.specs.loading import read_yaml
from harness_checklist import generation
from harness_checklist.case import Case, read_cases
from harness_checklist.folder import load_suite
from harness_checklist.generation import draw_cases
from harness_checklist.suite import (
    Condition,
    ContextTemplate,
    FillIn,
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
from tests.conftest import Cli

PEOPLE = Names(male=("Ben", "Tom", "Jim"), female=("Ann", "Eve"), last=("Li", "Roy"), script="Latn")


def when(**conditions: str) -> Condition:
    return {key.replace("__", "."): frozenset(ids.split()) for key, ids in conditions.items()}


def listed(**entries: Any) -> ListedFillIn:
    made = {}
    for name, forms in entries.items():
        given_forms = (
            forms if isinstance(forms, list) else [Form(texts=(forms,) if isinstance(forms, str) else forms)]
        )
        made[name] = tuple(given_forms)
    return ListedFillIn(values=made)


def suite_of(test: TestTemplate, names: Names = PEOPLE, *codes: str, name: str = "tiny") -> Suite:
    return Suite(
        name=name,
        version=1,
        description="",
        license="",
        citation="",
        tests={"t": TestDeclaration(id="t", name="T", title="T", capability="Vocabulary")},
        languages={
            code: LanguageSuite(language=code, tests={"t": test}, names=names) for code in codes or ("en",)
        },
    )


def template(
    *contexts: Any, ask: Any = ("Who?", "{x}"), fills: Mapping[str, FillIn] | None = None
) -> TestTemplate:
    asked = ask if isinstance(ask, list) else [ask]
    return TestTemplate(
        contexts=tuple(ContextTemplate(text=c) if isinstance(c, str) else c for c in contexts),
        questions=tuple(
            QuestionTemplate(ask=q[0], answer=q[1]) if isinstance(q, tuple) else q for q in asked
        ),
        fills=dict(fills or {}),
    )


def drawn(test: TestTemplate, n: int = 1000, seed: int = 0, names: Names = PEOPLE) -> tuple[Case, ...]:
    return draw_cases(suite_of(test, names), "t", "en", n, seed).cases


def contents(cases: tuple[Case, ...]) -> list[tuple[tuple[str, str, str], ...]]:
    return [tuple((e.context, e.question, e.answer) for e in case.examples) for case in cases]


COMPARISON = template(
    "{first_name} is {adj[0]} than {first_name1}.",
    ask=[("Who is less {adj[1]}?", "{first_name1}"), ("Who is {adj[0]}?", "{first_name}")],
    fills={"adj": listed(old=("older", "old"), tall=("taller", "tall"))},
)


def test_a_small_space_is_drawn_whole_as_the_product_says() -> None:
    found = draw_cases(suite_of(COMPARISON), "t", "en", 1000, 0)
    people = [*PEOPLE.male, *PEOPLE.female]
    expected = {
        (f"{a} is {more} than {b}.", f"Who is less {adj}?", b)
        for (a, b), (more, adj) in product(permutations(people, 2), [("older", "old"), ("taller", "tall")])
    }
    firsts = [(e.context, e.question, e.answer) for e in (case.examples[0] for case in found.cases)]
    assert len(firsts) == len(expected) == 40
    assert set(firsts) == expected
    assert found.possible == 40
    assert found.note == (
        "en t: only 40 of the 1000 cases exist: 50 draws (5 first_name x 2 adj x 5 first_name1), 10 of them "
        "impossible or the same as others; give more fill-ins or names, or --cases 40."
    )
    whole = draw_cases(suite_of(COMPARISON), "t", "en", 40, 0)
    assert (len(whole.cases), whole.note) == (40, None)


fill_ins = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]),
    st.sampled_from(["red", "blue", "big", "{s} red", "{first_name}"]),
    min_size=1,
)


@st.composite
def any_test(draw: st.DrawFn) -> TestTemplate:
    """Tests with nested fill-ins, numbered draws, conditions on contexts and forms, zips and balances."""
    x = draw(fill_ins)
    choices = draw(st.lists(st.sampled_from(sorted(x)), min_size=1, unique=True))
    second = when(x=" ".join(choices))
    odd = {"odd": (Form(texts=("only here",), when=second),)}
    s = ListedFillIn(values={**listed(m="so", n="very").values, **(odd if draw(st.booleans()) else {})})
    contexts: list[Any] = ["{first_name} has {x}."]
    if draw(st.booleans()):
        contexts.append(ContextTemplate(text="{s} {x} and {x1}", when=second))
    if draw(st.booleans()):
        contexts[0] = ContextTemplate(text="{first_name} has {x}.", when=second)
    made = template(*contexts, ask=("What?", "{x}"), fills={"x": listed(**x), "s": s})
    balances: list[str | None] = [None, "variants", "x"]
    return made.model_copy(
        update={
            "balance": draw(st.sampled_from(balances)),
            "names": draw(st.sampled_from(["any", "male", "female"])),
        }
    )


@given(any_test(), st.integers(0, 3))
def test_cases_differ_in_content_and_id_and_hold_every_slot(test: TestTemplate, seed: int) -> None:
    cases = drawn(test, seed=seed)
    shown = [content for content in contents(cases) if content]
    assert len(set(shown)) == len(shown)
    assert len({case.id for case in cases}) == len(cases)
    assert len({tuple(sorted(case.fills.items())) for case in cases}) == len(cases)
    for case in cases:
        assert [example.id for example in case.examples] == [
            f"{case.id}/{i + 1}" for i in range(len(case.examples))
        ]
        assert not any(
            "{" in part for content in contents((case,)) for example in content for part in example
        )


@given(any_test(), st.integers(0, 3), st.integers(1, 12), st.integers(1, 12))
def test_fewer_cases_are_the_first_of_more(test: TestTemplate, seed: int, few: int, more: int) -> None:
    many = drawn(test, few + more, seed)
    assert drawn(test, few, seed) == many[:few]


@given(any_test())
def test_every_seed_draws_a_small_space_whole(test: TestTemplate) -> None:
    plain = test.model_copy(update={"balance": None})
    assert set(contents(drawn(plain, seed=1))) == set(contents(drawn(test, seed=2)))


def test_the_draw_depends_on_suite_test_language_and_seed_alone() -> None:
    one = suite_of(COMPARISON, PEOPLE, "en", "de")
    other = suite_of(COMPARISON, PEOPLE, "de", "sw", "en")
    first = draw_cases(one, "t", "en", 20, 0)
    draw_cases(other, "t", "de", 7, 3)
    assert draw_cases(other, "t", "en", 20, 0) == first
    assert draw_cases(one, "t", "de", 20, 0).cases != tuple(replace(c, language="de") for c in first.cases)
    assert draw_cases(one, "t", "en", 20, 1).cases != first.cases
    assert draw_cases(suite_of(COMPARISON, name="other"), "t", "en", 20, 0).cases != first.cases


def test_ids_are_those_of_the_fill_ins_whatever_n_and_seed() -> None:
    by_fills = {tuple(case.fills.items()): case.id for case in drawn(COMPARISON, 1000, 0)}
    for case in drawn(COMPARISON, 13, 5):
        assert by_fills[tuple(case.fills.items())] == case.id
    # Written in files, so it must never change: printf a=x | b2sum -l 48.
    assert generation.case_id("t", {"b": "1", "a": "x"}) == generation.case_id("t", {"a": "x", "b": "1"})
    assert generation.case_id("t", {"a": "x"}) == "t-47f94340701d"


def test_examples_are_applicable_contexts_times_applicable_questions_contexts_outermost() -> None:
    male = when(first_name__gender="male")
    test = template(
        ContextTemplate(text="He is {first_name}.", when=male),
        ContextTemplate(text="She is {first_name}.", when=when(first_name__gender="female")),
        "It is {first_name}.",
        ask=[("Who?", "{first_name}"), QuestionTemplate(ask="Which man?", answer="{first_name}", when=male)],
    )
    by_name = {case.fills["first_name"]: case.examples for case in drawn(test)}
    assert [(e.context, e.question) for e in by_name["Ben"]] == [
        ("He is Ben.", "Who?"),
        ("He is Ben.", "Which man?"),
        ("It is Ben.", "Who?"),
        ("It is Ben.", "Which man?"),
    ]
    assert [(e.context, e.question) for e in by_name["Ann"]] == [
        ("She is Ann.", "Who?"),
        ("It is Ann.", "Who?"),
    ]


def test_draws_without_context_or_question_are_cases_without_examples() -> None:
    test = template(
        ContextTemplate(text="{x}", when=when(x="a")), fills={"x": listed(a="red", b="blue", c="blue")}
    )
    cases = {case.fills["x"]: case.examples for case in drawn(test)}
    assert len(cases["a"]) == 1
    assert cases["b"] == cases["c"] == ()


OF_TWO: dict[str, FillIn] = {
    "color": listed(red="red", blue="blue"),
    "size": listed(big="big"),
    "p": PairFillIn(of=("color", "size"), ordered=False),
}
SPACES = {
    "a form that does not apply": (
        template(
            "{obj} {color}",
            ask=("?", "{color}"),
            fills={
                "obj": listed(sofa="il divano", lamp="la lampada", sea="il mare"),
                "color": listed(
                    red=[
                        Form(texts=("rosso",), when=when(obj="sofa")),
                        Form(texts=("rossa",), when=when(obj="lamp")),
                    ]
                ),
            },
        ),
        ["il divano rosso", "la lampada rossa"],
    ),
    "two slots never show the same words": (
        template("{x} {y}", fills={"x": listed(a="red", b="blue"), "y": listed(c="red", d="green")}),
        ["blue green", "blue red", "red green"],
    ),
    "forms of one slot may": (
        template("{x[0]} {x[1]}", fills={"x": listed(a=("same", "same"))}),
        ["same same"],
    ),
    "equal words under two ids": (
        template("{x}", fills={"x": listed(a="red", b="red", c="blue")}),
        ["blue", "red"],
    ),
    "zipped and numbered": (
        template(
            "{animal} {sound} {animal1} {sound1}",
            ask=("?", "{animal}"),
            fills={"animal": listed(d="dog", c="cat"), "sound": listed(w="woof", m="meow")},
        ).model_copy(update={"zips": (("animal", "sound"),)}),
        ["cat meow dog woof", "dog woof cat meow"],
    ),
    "numbered draws of a pair": (
        template(
            "{p.v1} {p.v2} {p1.v1} {p1.v2}",
            ask=("?", "{p.v1}"),
            fills={**OF_TWO, "p": PairFillIn(of=("color", "size"))},
        ),
        ["blue big red big", "red big blue big"],
    ),
    "conditions on parts of a pair": (
        template(
            ContextTemplate(text="{p.v1} {p.v2}", when=when(p__p1="color", p__v1="blue")),
            ask=("?", "{p.v1}"),
            fills=OF_TWO,
        ),
        ["blue big"],
    ),
    "nested fill-ins": (
        template(
            "{car|capitalise}, {color}",
            ask=("?", "{color}"),
            fills={"car": listed(a="the {color} car", b="a bus"), "color": listed(r="red", g="green")},
        ),
        ["A bus, green", "A bus, red", "The green car, green", "The red car, red"],
    ),
}


@pytest.mark.parametrize("name", SPACES)
def test_contexts_of_a_space(name: str) -> None:
    test, contexts = SPACES[name]
    assert sorted(example.context for case in drawn(test) for example in case.examples) == contexts


@pytest.mark.parametrize(("ordered", "count"), [(True, 2 * 2 + 2 * 1 + 2 * 1), (False, 2 * 8)])
def test_pairs_are_two_different_fill_ins_with_a_value_each(ordered: bool, count: int) -> None:
    fills: dict[str, FillIn] = {
        "color": listed(red="red", blue="blue"),
        "size": listed(big="big", small="small"),
        "age": listed(new="new"),
        "property": listed(color="colour", size="size", age="age"),
        "p": PairFillIn(of=("color", "size", "age"), named="property", ordered=ordered),
    }
    test = template("{p.v1} {p.v2}", ask=[("What {p.p1}?", "{p.v1}")], fills=fills)
    cases = drawn(test)
    assert len(cases) == count
    for case in cases:
        assert case.fills["p.p1"] != case.fills["p.p2"]
        asked = "colour" if case.fills["p.p1"] == "color" else case.fills["p.p1"]
        assert case.examples[0].question == f"What {asked}?"


def test_names_are_of_the_gender_asked_for_and_a_shared_name_is_drawn_once() -> None:
    names = Names(male=("Kim", "Ben"), female=("Kim", "Ann"), last=("{Li}",))
    test = template("{first_name} {last_name}", ask=("?", "{last_name}"))
    assert sorted(e.context for case in drawn(test, names=names) for e in case.examples) == [
        "Ann {Li}",
        "Ben {Li}",
        "Kim {Li}",
    ]
    women = drawn(test.model_copy(update={"names": "female"}), names=names)
    assert {case.fills["first_name"] for case in women} == {"Kim", "Ann"}


@pytest.mark.parametrize("balance", ["x", "first_name.gender", "p.p1", "p"])
def test_a_balanced_slot_is_drawn_in_equal_parts(balance: str) -> None:
    fills: dict[str, FillIn] = {
        "x": listed(a="alpha", b="beta", c="gamma"),
        "few": listed(one="1", two="2"),
        "many": listed(**{f"m{i}": f"many {i}" for i in range(20)}),
        "p": PairFillIn(of=("few", "many"), ordered=False),
    }
    test = template("{first_name} {x} {p.v1} {p.v2}", fills=fills)
    gender = {name: "male" for name in PEOPLE.male} | {name: "female" for name in PEOPLE.female}
    cases = drawn(test.model_copy(update={"balance": balance}), 31)
    values = [
        gender[case.fills["first_name"]]
        if balance == "first_name.gender"
        else case.fills["p.p1"]
        if balance == "p"
        else case.fills[balance]
        for case in cases
    ]
    counts = Counter(values)
    assert len(counts) == (3 if balance == "x" else 2)
    assert max(counts.values()) - min(counts.values()) <= 1


def test_balanced_variants_come_in_turn_until_they_run_out() -> None:
    fills = {"x": listed(rare="rare", **{f"m{i}": f"many{i}" for i in range(30)})}
    test = template(
        ContextTemplate(text="{first_name} {x}!", when=when(x="rare")),
        ContextTemplate(text="{first_name} {x}.", when=when(x=" ".join(f"m{i}" for i in range(30)))),
        fills=fills,
    )
    test = test.model_copy(update={"balance": "variants"})
    assert Counter(case.fills["x"] == "rare" for case in drawn(test, 8)) == {
        True: 4,
        False: 4,
    }
    assert Counter(case.fills["x"] == "rare" for case in drawn(test, 50)) == {
        True: 5,
        False: 45,
    }


def test_draws_are_uniform_without_balance() -> None:
    fills = {
        "x": listed(**{f"m{i}": f"many{i}" for i in range(4)}),
        "y": listed(**{f"y{i}": f"y {i}" for i in range(250)}),
    }
    counts = Counter(case.fills["x"] for case in drawn(template("{x} {y}", fills=fills), 500))
    # Half of a space of 1,000: hypergeometric, standard deviation 6.9 around 125.
    assert all(abs(count - 125) < 4 * 6.9 for count in counts.values())


def test_a_large_space_without_cases_ends_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "PATIENCE", 500)
    same = {f"m{i}": "the same" for i in range(300)}
    test = template("{x} {y} {z}", fills={name: listed(**same) for name in "xyz"})
    found = draw_cases(suite_of(test), "t", "en", 5, 0)
    assert found.cases == ()
    assert found.possible is None
    assert found.note is not None
    assert all(number in found.note for number in ("only 0 of the 5", "27,000,000", "500"))


def test_unknown_languages_tests_and_slots_are_rejected() -> None:
    suite = suite_of(COMPARISON)
    with pytest.raises(UnknownNameError, match="No language of suite 'tiny' named 'ne'"):
        draw_cases(suite, "t", "ne", 1, 0)
    with pytest.raises(UnknownNameError, match="No test of suite 'tiny' named 'tt'"):
        draw_cases(suite, "tt", "en", 1, 0)
    faulty = template("{adk} {x.v1} {x[3]}", fills={"adj": listed(a="b"), "x": listed(a="c")})
    with pytest.raises(SpecError) as caught:
        drawn(faulty)
    assert "no fill-in named 'adk'; did you mean 'adj'?" in str(caught.value)
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize("text", ["{x[1]}", "{p}", "{x.v1}", "{x"])
def test_a_faulty_template_never_becomes_a_case(text: str) -> None:
    fills: dict[str, FillIn] = {"x": listed(a="c"), "y": listed(b="d"), "p": PairFillIn(of=("x", "y"))}
    with pytest.raises(SpecError):
        drawn(template(text, ask=("?", "c"), fills=fills))


SUITE = """\
suite: Tiny
version: 1
description: "Two tests: small ones."
license: CC0-1.0
citation: anonymous2026
tests:
  choice: {name: Choice, capability: Vocabulary}
  lone: {name: Lone, capability: Taxonomy}
  moved: {name: Moved, capability: Robustness, type: INV}
"""
LANGUAGE = """\
language: CODE
normalise: {articles: [the]}
tests:
  choice:
    contexts: ["{x} and {x1}."]
    questions: [{ask: "First?", answer: "{x}"}, {ask: "Second?", answer: "{x1}"}]
    fill: {x: [a, b, c, d]}
"""
LONE = """\
  lone:
    contexts: [{text: "{y}", when: {y: e}}]
    questions: [{ask: a, answer: "{y}"}]
    fill: {y: [e, f]}
"""
MOVED = '  moved:\n    contexts: ["a"]\n    questions: [{ask: a, answer: a}]\n'


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "suite"
    (folder / "languages").mkdir(parents=True)
    (folder / "suite.yaml").write_text(SUITE, encoding="utf-8")
    for code, tests in {"de": LONE + MOVED, "sw": ""}.items():
        text = LANGUAGE.replace("CODE", code) + tests
        (folder / "languages" / f"{code}.yaml").write_text(text, encoding="utf-8")
    return folder


def generate(cli: Cli, *arguments: object) -> tuple[int, str, str]:
    return cli("checklist", "generate", *arguments)


def test_one_file_per_language_a_task_and_counts_are_written(cli: Cli, suite: Path, tmp_path: Path) -> None:
    out, counts = tmp_path / "out", tmp_path / "counts.json"
    status, reported, err = generate(
        cli, suite, "--cases", 10, "--seed", 3, "--output", out, "--json", counts
    )
    assert status == 0
    loaded = load_suite(suite)
    for code in ("de", "sw"):
        drawn = [
            draw_cases(loaded, test, code, 10, 3).cases
            for test in loaded.languages[code].tests
            if test != "moved"
        ]
        assert read_cases(out / f"{code}.jsonl") == [case for cases in drawn for case in cases]
    rows = {(row["test"], row["language"]): row for row in json.loads(counts.read_text())}
    assert rows["choice", "sw"] == {
        "language": "sw",
        "test": "choice",
        "cases": 10,
        "examples": 20,
        "empty": 0,
        "asked": 10,
        "possible": None,
        "note": None,
    }
    lone = rows["lone", "de"]
    assert (lone["cases"], lone["examples"], lone["empty"], lone["possible"]) == (2, 1, 1, 2)
    assert (
        "note: de lone: only 2 of the 10 cases exist: 2 draws (2 y); give more fill-ins or names, or --cases 2."
        in err
    )
    assert "note: de moved is a test of type INV; only tests of type MFT are generated so far." in err
    table = [line.split() for line in reported.splitlines()]
    assert ["choice", "2", "20", "40", "0"] in table
    assert ["lone", "1", "2", "1", "1"] in table
    assert (
        f"harness eval --tasks-from {out}/task.yaml --data {out} --tasks checklist_tiny"
        in reported.replace("\n", "")
    )


def test_the_task_names_the_files_and_what_was_made(cli: Cli, suite: Path, tmp_path: Path) -> None:
    generate(cli, suite, "--cases", 10, "--out", tmp_path, "--task", "mine")
    task = read_yaml((tmp_path / "task.yaml").read_text(encoding="utf-8"), "task.yaml").data
    assert task == {
        "task": "mine",
        "kind": "span_extraction",
        "version": 1,
        "description": "Two tests: small ones.",
        "citation": "anonymous2026",
        "license": "CC0-1.0",
        "metrics": ["pass_rate", "case_error", "case_floor", "corrected_error", "example_error"],
        "cluster": "case",
        "draw": "clusters",
        "transfer": {"source": "en", "stages": ["squad"], "recipe": "xtreme_r"},
        "splits": {"test": {"local": "{language}.jsonl", "reader": "checklist"}},
        "languages": {"de": {}, "sw": {}},
    }


def test_one_language_goes_to_stdout_and_its_profile_with_it(cli: Cli, suite: Path, tmp_path: Path) -> None:
    status, reported, err = generate(cli, suite, "-l", "de", "-t", "choice", "--cases", 3)
    assert status == 0
    (tmp_path / "de.jsonl").write_text(reported, encoding="utf-8")
    assert len(read_cases(tmp_path / "de.jsonl")) == 3
    assert json.loads(reported.splitlines()[0])["normalise"]["articles"] == ["the"]
    assert ["choice", "1", "3", "6", "0"] in [line.split() for line in err.splitlines()]


def test_a_test_that_is_missing_in_one_language_is_reported(cli: Cli, suite: Path, tmp_path: Path) -> None:
    status, _, err = generate(cli, suite, "--tests", "lone", "--output", tmp_path / "out")
    assert status == 0
    assert "note: sw has no test lone." in err
    assert not (tmp_path / "out" / "sw.jsonl").exists()
    status, _, err = generate(cli, suite, "-l", "sw", "-t", "lone", "--output", tmp_path / "none")
    assert status == 1
    assert "No case of suite 'Tiny' could be made." in err
    assert not (tmp_path / "none" / "task.yaml").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("suite", "-l", "dee"), "No language of suite 'Tiny' named 'dee'."),
        (("suite", "-l", "de", "-t", "choise"), "No test of suite 'Tiny' named 'choise'."),
        (("suite", "-l", "de", "-t", "moved"), "moved is a test of type INV"),
        (("suite",), "Where shall the cases in 2 languages go?"),
        (("suite", "-l", "de", "--task", "My Task"), "--task takes small letters"),
        (("suite", "-l", "de", "--json", "no/such/file"), "its folder is not there"),
        (("suite", "-l", "de", "--cases", "0"), "Invalid value for '--cases'"),
        (("suite", "--output", "taken.txt"), "File exists."),
        (("no/such",), "There is no suite folder 'no/such'."),
        (("nosuch",), "No suite named 'nosuch'."),
        ((".",), "is no suite: it has no suite.yaml"),
        (("taken.txt",), "'taken.txt' is no suite"),
    ],
)
@pytest.mark.usefixtures("suite")
def test_an_impossible_request_is_one_sentence(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken.txt").touch()
    status, out, err = generate(cli, *(f"./{item}" if item == "suite" else item for item in arguments))
    assert (status, out) == (2, "")
    assert message in " ".join(err.split())
