"""Suites from files: what is read, and every fault of a file at once with line and column."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.errors import SpecError, UnknownNameError, UsageError
from harness_checklist.suites.loading import load_suite
from harness_checklist.suites.profile import Profile
from harness_checklist.suites.suite import Form, ListedFillIn, Names, PairFillIn, Suite

SUITE = """\
suite: tiny
version: 2
description: Two tests.
license: CC0-1.0
citation: anonymous2026
source_language: de
tests:
  comparisons: {name: A is COMP than B., title: Comparisons, capability: Vocabulary, type: MFT}
  properties: {name: Properties, capability: Taxonomy}
  renaming: {name: Renaming, capability: Robustness, type: INV}
"""
GERMAN = """\
language: de
names: {script: Latn, male: [Max, Tim], female: [Ida], last: [No, "1"]}
normalise: {articles: [ein, eine], match: start, strip: ". ", casefold: true}
tests:
  properties:
    balance: p.p1
    contexts:
      - "Hier ist {obj[0]}: {p.v1} und {p.v2}."
    questions:
      - {ask: "Welche {p.p1}?", answer: "{p.v1}"}
    fill:
      obj: {sofa: [ein Sofa, das Sofa], no: [ein Nein, das Nein]}
      color:
        red:
          - {form: roter, when: {obj: sofa}}
          - rot
      size: [groß, klein]
      property: {color: Farbe, size: Größe}
      p: {pairs: [color, size], named: property, ordered: false}
      unused: {x: y}
    zip: [[obj, size]]
  comparisons:
    names: male
    contexts:
      - {text: "{first_name} > {first_name1}", when: {p.p1: [color, size], obj: [sofa]}}
    questions:
      - ask: "{obj[1]}?"
        answer: "{first_name}"
        when: {first_name.gender: male}
    fill: {use: properties, extra: {a: b}}
"""


def write(folder: Path, **languages: str) -> Path:
    (folder / "languages").mkdir(parents=True, exist_ok=True)
    (folder / "suite.yaml").write_text(SUITE, encoding="utf-8")
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
    assert [(test.id, test.title, test.type) for test in suite.tests] == [
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
    assert [(entry.id, entry.forms[0].texts) for entry in obj.entries] == [
        ("sofa", ("ein Sofa", "das Sofa")),
        ("no", ("ein Nein", "das Nein")),
    ]
    assert [(form.texts, form.when) for form in color.entries[0].forms] == [
        (("roter",), {"obj": frozenset({"sofa"})}),
        (("rot",), {}),
    ]
    assert [entry.id for entry in size.entries] == ["groß", "klein"]
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
            assert place is not None and place.line is not None and place.column is not None
            assert lines[place.line - 1][place.column - 1 :].startswith(context.text)
            assert str(place) == f"{tmp_path}/languages/de.yaml:{place.line}:{place.column}"
        for question in test.questions:
            assert question.place is not None and question.place.line is not None
            assert "ask: " in lines[question.place.line - 1]


def test_names_are_in_a_file_or_are_borrowed(tmp_path: Path) -> None:
    names = {"sw": {"script": "Latn", "male": ["Juma"], "female": [], "last": []}}
    write(tmp_path).joinpath("names.json").write_text(json.dumps(names), encoding="utf-8")
    plain = "language: {0}\nnames: {1}\ntests: {{comparisons: {{contexts: [a], questions: [{{ask: b, answer: c}}]}}}}\n"
    suite = load(
        tmp_path,
        de=GERMAN,
        sw=plain.format("sw", "file"),
        ha=plain.format("ha", "{from: sw}"),
        yo=plain.format("yo", "{from: de}"),
    )
    own = Names(male=("Juma",), script="Latn")
    assert suite.languages["sw"].names == own
    assert suite.languages["ha"].names == Names(male=("Juma",), script="Latn", borrowed="sw")
    assert suite.languages["yo"].names.last == ("No", "1")
    assert suite.languages["yo"].names.borrowed == "de"


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
        (TWO + "      x: {}\n", ["line 8: column 10: the fill-in 'x' has no values"]),
        (
            '    contexts: ["a {first_nam} {last_name}"]\n    questions: [{ask: a, answer: "{first_name.x}"}]\n',
            [
                "line 5: column 19: {first_nam}: no fill-in named 'first_nam'; "
                "did you mean 'first_name' or 'last_name'?",
                "line 5: column 31: {last_name} has no values: the language has no last names",
                "line 6: column 35: {first_name.x}: a name has neither attributes nor further forms",
            ],
        ),
        (
            '    contexts: ["{x[2]}", "{y.v1}", "{p}", "{p.v3}", "{p.p1}", "{"]\n    questions: [{ask: a, answer: b}]\n'
            "    fill: {x: {a: [b, c]}, y: {d: e}, p: {pairs: [x, y]}}\n",
            [
                "line 5: column 17: {x[2]}: 'x' has 2 aligned forms, counted from 0",
                "line 5: column 27: {y.v1}: 'y' is no pair and has no 'v1'",
                "line 5: column 37: {p}: 'p' is a pair: write {p.v1}",
                "line 5: column 44: {p.v3}: a pair has no 'v3'; it has p1, v1, p2, v2",
                "line 5: column 54: {p.p1}: the pair 'p' has no 'named'",
                "line 5: column 64: '{' is not closed: write '{{' for a brace",
            ],
        ),
        (
            TWO + '      x: {a: "{y}"}\n      y: {b: c, d: "e {x}"}\n',
            [
                "line 8: column 10: fill-ins form a cycle: x -> y -> x",
            ],
        ),
        (
            TWO + "      x:\n        a: [b, c]\n        d: [e]\n        f: [g, h, i]\n",
            [
                "line 10: column 12: x: 'd' has 1 aligned forms where 'a' has 2",
                "line 11: column 12: x: 'f' has 3 aligned forms where 'a' has 2",
            ],
        ),
        (
            TWO + '      x: {a: ["b {nothing}", "{x", c]}\n',
            [
                "line 8: column 18: {nothing}: no fill-in named 'nothing'",
                "line 8: column 31: '{' is not closed: write '{{' for a brace",
            ],
        ),
        (
            '    contexts: [{text: "{x}", when: {x: [aa], z: [b], x.v1: [c]}}]\n'
            "    questions: [{ask: a, answer: b, when: {x: [], first_name.gender: [man]}}]\n"
            "    fill: {x: {ab: c}}\n",
            [
                "line 5: column 24: when: x has no 'aa', so it never applies for it",
                "line 5: column 24: when: no slot named 'z'",
                "line 5: column 24: when: 'x' has no 'v1'",
                "line 6: column 17: when: x names no ids",
                "line 6: column 17: when: first_name.gender has no 'man', so it never applies for it",
            ],
        ),
        (
            '    contexts: ["{p.v1}", {text: a, when: {p.p1: size}}, {text: b, when: {p.p1: color, p.v1: big}}]\n'
            "    questions: [{ask: a, answer: b}]\n"
            "    fill: {color: {red: rot}, size: {big: groß}, p: {pairs: [color, size]}}\n",
            [
                "line 5: column 33: the context never applies: no draw has p.p1 is size",
                "line 5: column 64: the context never applies: no draw has p.p1 is color, p.v1 is big",
            ],
        ),
        (
            TWO + "      x:\n        a: [b, {form: c, when: {x: a}}]\n",
            ["line 9: column 16: x: a form of 'a' never applies: an earlier one applies wherever it does"],
        ),
        (
            TWO
            + "      x: {a: [{form: c, when: {z: [d, e]}}, {form: f, when: {z: d}}]}\n      z: {d: g, e: h}\n",
            ["line 8: column 45: x: a form of 'a' never applies: an earlier one applies wherever it does"],
        ),
        (
            TWO + "      x: {a: b, c: d}\n      y: {e: f}\n    zip: [[x, y], [x, w]]\n",
            [
                "line 10: column 10: zip: fill-ins of unequal length: x 2, y 1",
                "line 10: column 10: zip: 'x' is zipped twice",
                "line 10: column 10: zip: 'w' is no listed fill-in",
            ],
        ),
        (
            TWO
            + "      x: {a: b}\n      y1: {a: b}\n      first_name: {a: b}\n      p: {pairs: [x, x], named: q}\n",
            [
                "line 9: column 11: a fill-in cannot be named 'y1': expected letters and _, no digit at the end",
                "line 10: column 19: the fill-in 'first_name' is taken: names fill it",
                "line 11: column 10: the pair 'p' needs two or more different fill-ins",
                "line 11: column 10: the pair 'p' names 'q', which is no listed fill-in",
            ],
        ),
        (
            TWO + "      x: [b, b]\n    balance: y\n    names: man\n    colour: red\n",
            [
                "line 10: tests.comparisons.names: expected 'any' or 'male' or 'female', found 'man'",
                "line 11: tests.comparisons: unknown key 'colour'",
            ],
        ),
        (
            TWO + "      x: [b, b]\n    balance: y\n",
            [
                "line 8: column 14: the fill-in 'x' has 'b' twice",
                "line 9: column 14: balance: no slot named 'y'",
            ],
        ),
        (
            "    contexts: [1, yes, ~, true, {txt: a}]\n    questions: {ask: a}\n",
            [
                'line 5: tests.comparisons.contexts: expected a text, found 1, write "1" for the text',
                'line 5: tests.comparisons.contexts: expected a text, found ~, write "~" for the text',
                'line 5: tests.comparisons.contexts: expected a text, found true, write "true" for the text',
                "line 5: tests.comparisons.contexts: unknown key 'txt'; did you mean 'text'?",
                "line 5: tests.comparisons.contexts: the key 'text' is missing",
                "line 6: tests.comparisons.questions: expected a list, found a mapping",
            ],
        ),
        (
            BODY + "  comparison: {}\n  comparisons: {}\n",
            [
                "line 7: tests: suite.yaml declares no test 'comparison'; did you mean 'comparisons'?",
                "line 8: tests: the key 'comparisons' is given twice (first on line 5)",
            ],
        ),
        (
            BODY + "    fill: {use: properties}\n",
            ["line 7: tests.comparisons.fill.use: no test 'properties' whose fill-ins could be used: none"],
        ),
        (
            "    contexts: !!python/tuple [a]\n    questions: [{ask: !!str a, answer: b}]\n",
            [
                "line 5: tests.comparisons.contexts: tags such as 'tag:yaml.org,2002:python/tuple' are not allowed",
                "line 6: tests.comparisons.questions: tags such as 'tag:yaml.org,2002:str' are not allowed",
            ],
        ),
        ("    contexts: [a\n    questions: []\n", ["line 6: column 14: did not find expected ',' or ']'"]),
        (
            "    contexts: []\n    questions: []\n",
            [
                "line 5: tests.comparisons: the test has no contexts",
                "line 5: tests.comparisons: the test has no questions",
            ],
        ),
    ],
)
def test_all_faults_of_a_test_are_reported_with_line_and_column(
    tmp_path: Path, test: str, expected: list[str]
) -> None:
    assert faults(tmp_path, HEAD + test) == expected


def test_faults_outside_of_tests_are_reported_too(tmp_path: Path) -> None:
    text = """\
language: fr
names: {male: [Max, ""], from: xx, script: Latn}
normalise: {articles: [ein], match: words, casefold: 1, strips: a}
tests: {}
languages: [de]
"""
    assert faults(tmp_path, text) == [
        "line 1: language: expected the language 'de' after the name of the file",
        "line 2: names.from: there are no names of 'xx' to borrow",
        "line 3: normalise: unknown key 'strips'; did you mean 'strip'?",
        "line 3: normalise.match: expected 'word' or 'start' or 'anywhere', found 'words'",
        "line 3: normalise.casefold: expected true or false",
        "line 4: tests: no tests are given",
        "line 5: unknown key 'languages'; did you mean 'language'?",
    ]


@pytest.mark.parametrize("text", ["", "[a]", "just text"])
def test_a_file_of_another_shape_is_rejected(tmp_path: Path, text: str) -> None:
    assert "expected a mapping" in faults(tmp_path, text)[0]


def test_a_file_of_another_encoding_is_rejected(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "languages" / "de.yaml").write_bytes("language: de\nnames: é\n".encode("latin-1"))
    with pytest.raises(SpecError, match="line 2: the file is not UTF-8 text"):
        load_suite(tmp_path)


def test_faults_of_several_files_are_reported_together(tmp_path: Path) -> None:
    bad = (
        "language: {}\ntests: {{comparisons: {{contexts: ['{{x}}'], questions: [{{ask: a, answer: b}}]}}}}\n"
    )
    with pytest.raises(SpecError) as caught:
        load(tmp_path, de=bad.format("de"), fr=bad.format("fr"))
    reported = str(caught.value)
    assert "has 2 faults" in reported
    assert "languages/de.yaml:2: column" in reported
    assert "languages/fr.yaml:2: column" in reported


def test_faults_of_the_declaration_are_reported_at_once(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "suite.yaml").write_text(
        "suite: tiny\nversion: 0\ntests:\n  A-b: {name: a, capability: b, type: XYZ}\n  c: {nam: d}\n",
        encoding="utf-8",
    )
    with pytest.raises(SpecError) as caught:
        load_suite(tmp_path)
    assert [str(problem) for problem in caught.value.problems] == [
        "line 2: version: expected a whole number from 1",
        "line 4: tests.A-b: a test id has small letters, digits and _ only",
        "line 4: tests.A-b.type: expected 'MFT' or 'INV' or 'DIR', found 'XYZ'",
        "line 5: tests.c: unknown key 'nam'; did you mean 'name'?",
        "line 5: tests.c: the key 'name' is missing",
        "line 5: tests.c: the key 'capability' is missing",
    ]


def test_faults_of_the_names_file_are_reported_at_once(tmp_path: Path) -> None:
    write(tmp_path, de="language: de\nnames: file\ntests: {}\n")
    (tmp_path / "names.json").write_text('{"de": {"male": ["", 1], "men": []}, "fr": []}', encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        load_suite(tmp_path)
    assert [problem.key for problem in caught.value.problems] == ["de.male", "de.men", "fr"]


def test_the_form_of_a_missing_value_is_no_value(tmp_path: Path) -> None:
    reported = faults(tmp_path, HEAD + TWO + "      x: {a: [], b: {frm: c}, d: }\n")
    assert reported == [
        "line 8: tests.comparisons.fill.x.a: a fill-in without any form",
        "line 8: tests.comparisons.fill.x.b: unknown key 'frm'; did you mean 'form'?",
        "line 8: tests.comparisons.fill.x.b: the key 'form' is missing",
        "line 8: tests.comparisons.fill.x.d: expected a text, found nothing",
    ]
    assert Form(texts=("",)).when == {}
