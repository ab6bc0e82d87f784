"""Suites and templates are loaded from files, with all their faults."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from harness.errors import SpecError, UnknownNameError, UsageError
from harness_checklist.folder import load_suite
from harness_checklist.suite import ListedFillIn, Names, PairFillIn, Profile, Suite
from harness_checklist.template import TemplateError, capitalise, parse

TINY = Path(__file__).with_name("tiny")
GERMAN = (TINY / "languages" / "de.yaml").read_text(encoding="utf-8")


def write(folder: Path, **languages: str) -> Path:
    (folder / "languages").mkdir(parents=True, exist_ok=True)
    shutil.copy(TINY / "suite.yaml", folder)
    for code, text in languages.items():
        (folder / "languages" / f"{code}.yaml").write_text(text, encoding="utf-8")
    return folder


def load(folder: Path, **languages: str) -> Suite:
    return load_suite(write(folder, **languages))


def faults(folder: Path, text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load(folder, de=text)
    assert caught.value.source.endswith("languages/de.yaml")
    return [str(problem) for problem in caught.value.problems]


def test_a_suite_is_read(tmp_path: Path) -> None:
    suite = load(tmp_path, de=GERMAN)
    assert (suite.name, suite.version, suite.source_language) == ("tiny", 2, "de")
    assert [(test.id, test.title, test.type) for test in suite.tests.values()] == [
        ("comparisons", "Comparisons", "MFT"),
        ("properties", "Properties", "MFT"),
        ("renaming", "Renaming", "INV"),
    ]
    german = suite.languages["de"]
    assert german.names == Names(male=("Max", "Tim"), female=("Ida",), last=("No", "1"), script="Latn")
    assert german.profile == Profile(articles=("ein", "eine"), match="start", strip=". ", casefold=True)
    assert list(german.tests) == ["comparisons", "properties"]


def test_fill_ins_of_every_shape_are_read(tmp_path: Path) -> None:
    tests = load(tmp_path, de=GERMAN).languages["de"].tests
    fills = tests["properties"].fills
    obj, color, size = fills["obj"], fills["color"], fills["size"]
    assert (
        isinstance(obj, ListedFillIn) and isinstance(color, ListedFillIn) and isinstance(size, ListedFillIn)
    )
    assert {name: forms[0].texts for name, forms in obj.values.items()} == {
        "sofa": ("ein Sofa", "das Sofa"),
        "no": ("ein Nein", "das Nein"),
    }
    assert [(form.texts, form.when) for form in color.values["red"]] == [
        (("roter",), {"obj": frozenset({"sofa"})}),
        (("rot",), {}),
    ]
    assert list(size.values) == ["groß", "klein"]
    pair = fills["p"]
    assert isinstance(pair, PairFillIn)
    assert (pair.of, pair.named, pair.ordered) == (("color", "size"), "property", False)
    assert (tests["properties"].zips, tests["properties"].balance) == ((("obj", "size"),), "p.p1")
    assert tests["comparisons"].fills == {**fills, "extra": tests["comparisons"].fills["extra"]}
    assert tests["comparisons"].names == "male"
    assert tests["comparisons"].contexts[0].when == {
        "p.p1": frozenset({"color", "size"}),
        "obj": frozenset({"sofa"}),
    }


def test_places_are_those_of_the_texts(tmp_path: Path) -> None:
    german = load(tmp_path, de=GERMAN).languages["de"]
    lines = GERMAN.split("\n")
    for test in german.tests.values():
        for context in test.contexts:
            place = context.place
            assert place is not None and place.line is not None
            assert context.text in lines[place.line - 1]
            assert str(place) == f"{tmp_path}/languages/de.yaml:{place.line}"
        for question in test.questions:
            assert question.place is not None and question.place.line is not None
            assert "ask: " in lines[question.place.line - 1]
    color = german.tests["properties"].fills["color"]
    assert isinstance(color, ListedFillIn)
    places = [form.place for form in color.values["red"]]
    assert ["form: roter" in lines[place.line - 1] for place in places if place and place.line] == [
        True,
        False,
    ]


def test_names_are_borrowed(tmp_path: Path) -> None:
    plain = "language: {0}\nnames: {1}\ntests: {{comparisons: {{contexts: [a], questions: [{{ask: b, answer: c}}]}}}}\n"
    suite = load(tmp_path, de=GERMAN, yo=plain.format("yo", "{from: de}"))
    names = suite.languages["yo"].names
    assert names == suite.languages["de"].names.model_copy(update={"borrowed": "de"})
    assert list(load_suite(tmp_path, ["yo"]).languages) == ["yo"]
    with pytest.raises(SpecError, match=r"line 2: names.from: there are no names of 'ha' to borrow"):
        load(tmp_path, yo=plain.format("yo", "{from: ha}"))


def test_only_the_languages_that_are_asked_for_are_read(tmp_path: Path) -> None:
    write(tmp_path, de=GERMAN, sw="nonsense: [")
    assert list(load_suite(tmp_path, ["de"]).languages) == ["de"]
    with pytest.raises(UnknownNameError, match=r"named 'dee'[.] Did you mean 'de'[?]"):
        load_suite(tmp_path, ["dee"])
    with pytest.raises(UsageError, match=r"it has no suite[.]yaml"):
        load_suite(tmp_path / "languages")


HEAD = """\
language: de
names: {male: [Max, Tim]}
tests:
  comparisons:
"""
BODY = """\
    contexts: ["{first_name}"]
    questions: [{ask: a, answer: b}]
"""
TWO = '    contexts: ["{x}"]\n    questions: [{ask: a, answer: b}]\n    fill:\n'


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        (TWO + "      x: {}\n", [(8, "the fill-in 'x' has no values")]),
        (
            '    contexts: ["a {first_nam} {last_name}"]\n    questions: [{ask: a, answer: "{first_name.x}"}]\n',
            [
                (5, "{first_nam}: no fill-in named 'first_nam'; did you mean 'first_name' or 'last_name'?"),
                (5, "{last_name} has no values: the language has no last names"),
                (6, "{first_name.x}: a name has neither attributes nor further forms"),
            ],
        ),
        (
            '    contexts: ["{x[2]}", "{y.v1}", "{p}", "{p.v3}", "{p.p1}", "{"]\n    questions: [{ask: a, answer: b}]\n'
            "    fill: {x: {a: [b, c]}, y: {d: e}, p: {pairs: [x, y]}}\n",
            [
                (5, "{x[2]}: 'x' has 2 aligned forms, counted from 0"),
                (5, "{y.v1}: 'y' is no pair and has no 'v1'"),
                (5, "{p}: 'p' is a pair: write {p.v1}"),
                (5, "{p.v3}: a pair has no 'v3'; it has p1, v1, p2, v2"),
                (5, "{p.p1}: the pair 'p' has no 'named'"),
                (5, "'{': '{' (character 1) is not closed: write '{{' for a brace"),
            ],
        ),
        (
            TWO + '      x: {a: "{y}"}\n      y: {b: c, d: "e {x}"}\n',
            [(8, "fill-ins form a cycle: x -> y -> x")],
        ),
        (
            TWO + "      x:\n        a: [b, c]\n        d: [e]\n        f: [g, h, i]\n",
            [
                (10, "x: 'd' has 1 aligned forms where the first has 2"),
                (11, "x: 'f' has 3 aligned forms where the first has 2"),
            ],
        ),
        (
            TWO + '      x: {a: ["b {nothing}", "{x", c]}\n',
            [
                (8, "{nothing}: no fill-in named 'nothing'"),
                (8, "'{x': '{' (character 1) is not closed: write '{{' for a brace"),
            ],
        ),
        (
            '    contexts: [{text: "{x}", when: {x: [aa], z: [b], x.v1: [c]}}]\n'
            "    questions: [{ask: a, answer: b, when: {x: [], first_name.gender: [man]}}]\n"
            "    fill: {x: {ab: c}}\n",
            [
                (5, "when: x has no 'aa', so it never applies for it"),
                (5, "when: no slot named 'z'"),
                (5, "when: 'x' has no 'v1'"),
                (6, "when: x names no ids"),
                (6, "when: first_name.gender has no 'man', so it never applies for it"),
            ],
        ),
        (
            '    contexts: ["{p.v1}", {text: a, when: {p.p1: size}}, {text: b, when: {p.p1: color, p.v1: big}}]\n'
            "    questions: [{ask: a, answer: b}]\n"
            "    fill: {color: {red: rot}, size: {big: groß}, p: {pairs: [color, size]}}\n",
            [
                (5, "the context never applies: no draw has p.p1 is size"),
                (5, "the context never applies: no draw has p.p1 is color, p.v1 is big"),
            ],
        ),
        (
            TWO + "      x:\n        a: [b, {form: c, when: {x: a}}]\n",
            [(9, "x: a form of 'a' never applies: an earlier one applies wherever it does")],
        ),
        (
            TWO + "      x: {a: b, c: d}\n      y: {e: f}\n    zip: [[x, y], [x, w]]\n",
            [
                (5, "zip: fill-ins of unequal length: x 2, y 1"),
                (5, "zip: 'x' is zipped twice"),
                (5, "zip: 'w' is no listed fill-in"),
            ],
        ),
        (
            TWO
            + "      x: {a: b}\n      y1: {a: b}\n      first_name: {a: b}\n      p: {pairs: [x, x], named: q}\n",
            [
                (9, "a fill-in cannot be named 'y1': expected letters and _, no digit at the end"),
                (10, "the fill-in 'first_name' is taken: names fill it"),
                (11, "the pair 'p' needs two or more different fill-ins"),
                (11, "the pair 'p' names 'q', which is no listed fill-in"),
            ],
        ),
        (TWO + "      x: {b: c}\n    balance: y\n", [(5, "balance: no slot named 'y'")]),
        (
            BODY + "  comparison: {contexts: [], questions: []}\n",
            [(7, "suite.yaml declares no test 'comparison'; did you mean 'comparisons'?")],
        ),
        (BODY + "    fill: {use: properties}\n", [(7, "no test 'properties' whose fill-ins could be used")]),
        (
            "    contexts: []\n    questions: []\n",
            [(4, "the test has no contexts"), (4, "the test has no questions")],
        ),
    ],
)
def test_all_faults_of_templates_are_reported_with_their_lines(
    tmp_path: Path, test: str, expected: list[tuple[int, str]]
) -> None:
    with pytest.raises(SpecError) as caught:
        load(tmp_path, de=HEAD + test)
    found = {(problem.line or 0, problem.message) for problem in caught.value.problems}
    lines = {number: [message for line, message in found if line == number] for number, _ in found}
    expected = [
        (4 if message.startswith(("zip", "balance")) else line, message) for line, message in expected
    ]
    assert lines.keys() == {line for line, _ in expected}
    assert found == set(expected)


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        (
            TWO + "      x: [b, b]\n    names: man\n    colour: red\n",
            [(8, "fill.x"), (9, "names"), (10, "colour")],
        ),
        (
            "    contexts: [1, ~, true, {txt: a}]\n    questions: {ask: a}\n",
            [
                (5, "contexts.0"),
                (5, "contexts.1"),
                (5, "contexts.2"),
                (5, "contexts.3"),
                (5, "contexts.3.txt"),
                (6, "questions"),
            ],
        ),
        (
            TWO + "      x: {a: [], b: {frm: c}, d: }\n",
            [(8, "fill.x.a.0.form"), (8, "fill.x.b.0"), (8, "fill.x.b.0.frm"), (8, "fill.x.d.0.form")],
        ),
        (TWO + "      p: {pairs: [x], name: y}\n", [(8, "fill.p.name")]),
    ],
)
def test_all_faults_of_keys_and_values_are_reported_with_their_lines(
    tmp_path: Path, test: str, expected: list[tuple[int, str]]
) -> None:
    with pytest.raises(SpecError) as caught:
        load(tmp_path, de=HEAD + test)
    found = {(problem.line, problem.key) for problem in caught.value.problems}
    assert found == {(line, f"tests.comparisons.{key}") for line, key in expected}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (HEAD + BODY + "  comparisons: {}\n", 7),
        (HEAD + "    contexts: !!python/tuple [a]\n", 5),
        (HEAD + "    contexts: [a\n    questions: []\n", 6),
        ("", 1),
        ("[a]", 1),
        ("just text", 1),
    ],
)
def test_what_is_no_strict_yaml_is_rejected(tmp_path: Path, text: str, line: int) -> None:
    assert faults(tmp_path, text)[0].startswith(f"line {line}: ")
    (tmp_path / "languages" / "de.yaml").write_bytes("language: de\nnames: é\n".encode("latin-1"))
    with pytest.raises(SpecError, match="line 2: the file is not UTF-8 text"):
        load_suite(tmp_path)


def test_faults_outside_of_tests_are_reported_too(tmp_path: Path) -> None:
    text = """\
language: fr
names: {male: [Max, ""], script: 1}
normalise: {articles: [ein], match: words, casefold: 1, strips: a}
tests: {}
languages: [de]
"""
    with pytest.raises(SpecError) as caught:
        load(tmp_path, de=text)
    assert {(problem.line, problem.key) for problem in caught.value.problems} == {
        (2, "names.male.1"),
        (2, "names.script"),
        (3, "normalise.match"),
        (3, "normalise.casefold"),
        (3, "normalise.strips"),
        (5, "languages"),
    }
    assert faults(tmp_path, "language: fr\nnames: {male: [A], from: xx}\ntests: {}\n") == [
        "line 1: language: expected the language 'de' after the name of the file",
        "line 2: names.from: there are no names of 'xx' to borrow",
        "line 2: names: names are borrowed with 'from' alone, or listed",
        "line 3: tests: no tests are given",
    ]


def test_faults_of_several_files_are_reported_together(tmp_path: Path) -> None:
    bad = (
        "language: {}\ntests: {{comparisons: {{contexts: ['{{x}}'], questions: [{{ask: a, answer: b}}]}}}}\n"
    )
    with pytest.raises(SpecError) as caught:
        load(tmp_path, de=bad.format("de"), fr=bad.format("fr"))
    reported = str(caught.value)
    assert "languages/de.yaml has 1 fault" in reported
    assert "languages/fr.yaml has 1 fault" in reported


def test_faults_of_the_declaration_are_reported_at_once(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "suite.yaml").write_text(
        "suite: tiny\nversion: 0\ntests:\n  A-b: {name: a, capability: b, type: XYZ}\n  c: {nam: d}\n",
        encoding="utf-8",
    )
    with pytest.raises(SpecError) as caught:
        load_suite(tmp_path)
    assert [(problem.line, problem.key) for problem in caught.value.problems] == [
        (2, "version"),
        (4, "tests.A-b.id"),
        (4, "tests.A-b.type"),
        (5, "tests.c"),
        (5, "tests.c"),
        (5, "tests.c"),
        (5, "tests.c.nam"),
    ]
    assert caught.value.problems[-1].message == "unknown key 'nam'; did you mean 'name'?"


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
    assert parse("{adj[0]}").placeholders == parse("{adj}").placeholders
    pair = template.placeholders[4]
    assert (pair.slot, pair.number, pair.key, pair.attribute, pair.index) == ("p", 2, "p2", "p1", 1)


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
