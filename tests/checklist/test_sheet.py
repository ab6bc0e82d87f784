"""Suites as spreadsheets: written, and read back."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given, strategies as st

from harness.errors import SpecError, UsageError
from harness.specs.loading import read_yaml
from harness_checklist.folder import dump_suite, find_suite, load_suite, yaml_text
from harness_checklist.released import read_released
from harness_checklist.sheet import COLUMNS, GUIDELINES, read_sheet, write_sheet
from harness_checklist.suite import (
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
from tests.builders import released_data
from tests.conftest import Cli

BASICS = find_suite("basics")
Rows = list[dict[str, str]]


def rows_of(text: str) -> Rows:
    return list(csv.DictReader(io.StringIO(text)))


def written(folder: Path, rows: Rows) -> Path:
    path = folder / "sheet.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def at(rows: Rows, test: str, part: str, id_: str, form: str = "") -> int:
    wanted = {"test": test, "part": part, "id": id_, "form": form}
    return next(number for number, row in enumerate(rows) if wanted.items() <= row.items())


def line(number: int) -> str:
    """Return how faults of a row begin; the heading is line 1."""
    return f"line {number + 2}: "


# Out and back ---------------------------------------------------------------------------------------------


def comes_back(suite: Suite, code: str, folder: Path) -> bool:
    path = folder / "sheet.csv"
    path.write_text(write_sheet(suite, code), encoding="utf-8")
    # As JSON, so that the order of fill-ins counts, which draws depend on.
    read, own = (
        json.dumps(spoken.model_dump(), default=sorted)
        for spoken in (read_sheet(path, suite), suite.languages[code])
    )
    return read == own


@pytest.mark.parametrize("code", sorted(BASICS.languages))
def test_every_shipped_language_comes_back_as_it_was(code: str, tmp_path: Path) -> None:
    assert comes_back(BASICS, code, tmp_path)


@pytest.mark.thorough
def test_every_released_language_comes_back_as_it_was(tmp_path: Path) -> None:
    suite = read_released(released_data() / "multichecklist" / "checklist_templates.tsv")
    for code in suite.languages:
        assert comes_back(suite, code, tmp_path), code


def test_a_new_sheet_has_the_guidelines_all_source_texts_and_no_translation() -> None:
    rows = rows_of(write_sheet(BASICS, "sv"))
    assert [row["source"] for row in rows if row["part"] == "guideline"] == list(GUIDELINES)
    texts = [row for row in rows if row["test"]]
    assert texts
    assert all(row["source"] and not row["translation"] for row in texts)
    for test_id, test in BASICS.languages["en"].tests.items():
        own = {row["source"] for row in texts if row["test"] == test_id}
        wanted = {context.text for context in test.contexts}
        wanted |= {text for question in test.questions for text in (question.ask, question.answer)}
        assert wanted <= own


def filled(translate: Callable[[str], str]) -> Rows:
    """Return a sheet for Swedish in which every text is translated by a function."""
    rows = [row for row in rows_of(write_sheet(BASICS, "sv")) if row["part"] != "names"]
    for row in rows:
        if row["test"]:
            row["translation"] = translate(row["source"])
    people = {"male": ("Nils", "Sven", "Olof"), "female": ("Elsa", "Maja", "Siri"), "last": ("Ek",)}
    named = [{"part": "names", "id": kind, "translation": name} for kind in people for name in people[kind]]
    return [dict.fromkeys(COLUMNS, "") | row for row in (*rows, *named)]


def test_a_filled_in_sheet_becomes_a_language_with_its_variants(tmp_path: Path) -> None:
    rows = filled(lambda text: text)
    context = at(rows, "comparisons", "context", "1")
    rows[context]["when"] = "{adj: [strong, tall]}"
    rows.insert(context + 1, rows[context] | {"translation": "VARIANT {first_name}", "when": "adj: fast"})
    question = at(rows, "comparisons", "question", "1")
    rows[question]["when"] = "adj: tall"
    rows[question + 2 : question + 2] = [
        rows[question] | {"when": "{adj: [strong, fast]}"},
        rows[question + 1] | {"translation": "{first_name1}"},
    ]
    language = read_sheet(written(tmp_path, rows), BASICS)
    first, second = language.tests["comparisons"].contexts
    assert (first.when, second.when) == (
        {"adj": frozenset({"strong", "tall"})},
        {"adj": frozenset({"fast"})},
    )
    assert second.text.startswith("VARIANT ")
    assert str(second.place) == f"{tmp_path}/sheet.csv:{context + 3}"
    asked = [(one.when.get("adj"), one.answer) for one in language.tests["comparisons"].questions]
    assert asked[:2] == [
        (frozenset({"tall"}), "{first_name}"),
        (frozenset({"strong", "fast"}), "{first_name1}"),
    ]
    assert language.names.male == ("Nils", "Sven", "Olof")
    assert language.language == "sv"


def test_forms_of_a_fill_in_may_have_variants_too(tmp_path: Path) -> None:
    rows = filled(lambda text: text)
    first = at(rows, "comparisons", "fill adj", "tall", "1")
    texts = [
        ("1", "äldre", "{first_name.gender: [male]}"),
        ("2", "gammal", ""),
        ("1", "ELDRE", ""),
        ("2", "GAMMAL", ""),
    ]
    rows[first : first + 2] = [
        rows[first] | {"form": form, "translation": text, "when": when} for form, text, when in texts
    ]
    fill = read_sheet(written(tmp_path, rows), BASICS).tests["comparisons"].fills["adj"]
    assert isinstance(fill, ListedFillIn)
    assert [(form.texts, dict(form.when)) for form in fill.values["tall"]] == [
        (("äldre", "gammal"), {"first_name.gender": frozenset({"male"})}),
        (("ELDRE", "GAMMAL"), {}),
    ]


def test_skipped_rows_stay_skipped_and_an_untouched_test_is_missing(tmp_path: Path) -> None:
    rows = filled(lambda text: text)
    for row in rows:
        if row["test"] == "intensifiers":
            row["translation"] = ""
        elif row["part"] == "fill adj" and row["id"] == "tall":
            row["translation"] = "-"
    language = read_sheet(written(tmp_path, rows), BASICS)
    assert "intensifiers" not in language.tests
    fill = language.tests["comparisons"].fills["adj"]
    assert isinstance(fill, ListedFillIn)
    assert "tall" not in fill.values


def test_an_imported_sheet_is_written_and_linted(cli: Cli, tmp_path: Path) -> None:
    rows = filled(lambda text: text.replace("Who", "Vem"))
    rows[at(rows, "comparisons", "question", "2")]["translation"] = rows[
        at(rows, "comparisons", "question", "1")
    ]["translation"]
    path = written(tmp_path, rows)
    status, _, err = cli("checklist", "import", path, "--suite", "basics", "--output", tmp_path / "suite")
    assert status == 0
    kinds = {":".join(reported.split(":")[:2]) for reported in err.splitlines()}
    assert "warning: contradictory" in kinds
    again = load_suite(tmp_path / "suite")
    assert again.languages.keys() == BASICS.languages.keys() | {"sv"}
    assert again.languages["sv"].model_dump() == read_sheet(path, BASICS).model_dump()


# Faults ---------------------------------------------------------------------------------------------------


def faults(path: Path) -> list[str]:
    with pytest.raises(SpecError) as caught:
        read_sheet(path, BASICS)
    return [str(problem) for problem in caught.value.problems]


def test_all_faults_of_rows_are_reported_with_their_lines(tmp_path: Path) -> None:
    rows = filled(lambda text: text)
    condition = at(rows, "comparisons", "context", "1")
    rows[condition]["when"] = "older"
    missing = at(rows, "comparisons", "question", "1")
    rows[missing]["translation"] = ""
    part = at(rows, "intensifiers", "context", "1")
    rows[part]["part"] = "contxt"
    rows.append(dict.fromkeys(COLUMNS, "") | {"test": "comparson", "part": "context", "translation": "x"})
    assert faults(written(tmp_path, rows)) == [
        f"{line(condition)}'older' is no condition: expected one such as {{adj: [older, younger]}}",
        f"{line(missing)}the question '1' is not translated: {rows[missing]['source']!r}",
        f"{line(part)}unknown part 'contxt'; did you mean 'context'?",
        f"{line(len(rows) - 1)}the suite has no test 'comparson'; did you mean 'comparisons'?",
    ]


def test_faults_of_templates_are_reported_with_their_lines(tmp_path: Path) -> None:
    rows = filled(lambda text: text)
    context = at(rows, "comparisons", "context", "1")
    rows[context] |= {"translation": "{first_name} är {adj[0] än {first_name1}.", "when": "{adj: [dolt]}"}
    answer = at(rows, "comparisons", "answer", "1")
    rows[answer]["translation"] = "Hos {first_nam}"
    lonely = at(rows, "intensifiers", "answer", "2")
    reported = faults(written(tmp_path, rows))
    assert [one.split("tests.")[0] for one in reported] == [line(context), line(context), line(answer - 1)]
    assert "is not closed" in reported[0] and "'dolt'" in reported[1] and "'first_nam'" in reported[2]
    rows[lonely]["id"] = "3"
    (without_answer, without_question) = faults(written(tmp_path, rows))
    assert without_answer.endswith("the key 'answer' is missing")
    assert without_question == f"{line(lonely)}tests.intensifiers.questions.2: the key 'ask' is missing"


def test_a_sheet_without_columns_language_or_translation_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text("test,part,id,form,source,when\n", encoding="utf-8")
    assert faults(path)[0].startswith("line 1: the columns translation are missing")
    rows = rows_of(write_sheet(BASICS, "sv"))
    assert "no test is translated" in faults(written(tmp_path, rows))[0]
    rows = filled(lambda text: text)
    rows[at(rows, "", "language", "")]["translation"] = "Swedish!"
    assert "'Swedish!' is no language code" in faults(written(tmp_path, rows))[0]


def test_broken_quotation_marks_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text(write_sheet(BASICS, "sv") + 'comparisons,context,9,,,"never"ends\n', encoding="utf-8")
    assert any("quotation marks of this row are broken" in reported for reported in faults(path))


def test_the_command_writes_a_sheet(cli: Cli, tmp_path: Path) -> None:
    output = tmp_path / "sv.csv"
    status, reported, _ = cli("checklist", "sheet", "basics", "--language", "sv", "--output", output)
    assert status == 0
    assert "to be filled in" in reported
    assert output.read_text(encoding="utf-8") == write_sheet(BASICS, "sv")
    assert cli("checklist", "sheet", "basics", "--language", "sv")[1] == write_sheet(BASICS, "sv")
    with pytest.raises(UsageError, match="'Swedish!'"):
        write_sheet(BASICS, "Swedish!")


MISREAD = [*"no On 1e3 ~ null 1 0x1f 12:30 true = << .".split(), "", "- a", "a: b", "a #b", " a", "a "]
HIDDEN = [
    "\u200f.",
    "a\ufeffb",
    "\x85",
    "\u2028",
    "\t",
    "\x7f",
    "می‌خواهم",
    "a\nb",
    *r"""\ " ' {a} 😀 %a @""".split(),
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
