"""The released test cases: read, imported and checked."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from harness.errors import DataError, MissingDataError, SpecError
from harness_checklist.case import Case
from harness_checklist.generation import draw_cases
from harness_checklist.released import read_released
from harness_checklist.suite import ListedFillIn, PairFillIn, Suite

from .released_sheet_text import ANIMALS, ANIMALS_2, INTENSIFIERS, NAMES, SheetText, at


def read(folder: Path, sheet: SheetText) -> Suite:
    return read_released(sheet.write(folder))


def cases(found: Suite, test: str, language: str, n: int = 500) -> tuple[Case, ...]:
    return draw_cases(found, test, language, n, 0).cases


def texts(case: Case) -> set[tuple[str, str, str]]:
    return {(item.context, item.question, item.answer) for item in case.examples}


def ids(found: Suite, language: str, test: str, slot: str) -> list[str]:
    fill = found.languages[language].tests[test].fills[slot]
    assert isinstance(fill, ListedFillIn)
    return [entry.id for entry in fill.entries]


def test_the_six_tests_in_the_order_of_table_5(tmp_path: Path) -> None:
    found = read(tmp_path, SheetText())
    assert [test.title for test in found.tests.values()] == [
        "Comparisons", "Intensifiers", "Properties", "Job vs Nationality", "Animal vs Vehicles", "Animal vs Vehicles 2",
    ]  # fmt: skip
    assert [test.capability for test in found.tests.values()] == ["Vocabulary"] * 2 + ["Taxonomy"] * 4


def test_fill_in_ids_are_their_english_words(tmp_path: Path) -> None:
    found = read(tmp_path, SheetText().language("de"))
    context = found.languages["de"].tests["comparisons"].contexts[0]
    assert str(context.place).endswith(".tsv:4:3")
    assert ids(found, "de", "comparisons", "adj") == ["older", "tougher", "kinder"]
    assert ids(found, "de", "properties", "obj") == ["bed", "lamp"]
    assert ids(found, "de", "intensifiers", "somewhat") == ["a little"]
    assert ids(found, "de", "job_vs_nationality", "profession") == ["baker", "actress"]
    assert ids(found, "de", "animal_vs_vehicles_2", "animal") == ["dog", "guinea pig"]


def test_english_cases(tmp_path: Path) -> None:
    found = read(tmp_path, SheetText())
    assert {frozenset(texts(case)) for case in cases(found, "animal_vs_vehicles_2", "en")} == {
        frozenset(
            {
                (f"{one} got {animal}. {two} got a car.", "Who got an animal?", one),
                (f"{one} got {animal}. {two} got a car.", "Who got a vehicle?", two),
            }
        )
        for one in ("Ben", "Tom", "Ann", "Eve")
        for two in ("Ben", "Tom", "Ann", "Eve")
        for animal in ("a dog", "a guinea pig")
        if one != two
    }


@pytest.mark.parametrize("test", ["comparisons", "intensifiers", "job_vs_nationality"])
def test_only_men_are_named_where_templates_agree_with_men(tmp_path: Path, test: str) -> None:
    found = read(tmp_path, SheetText())
    named = {case.fills["first_name"] for case in cases(found, test, "en")}
    assert named == {"Ben", "Tom"}
    assert {case.fills["first_name"] for case in cases(found, "animal_vs_vehicles", "en")} > named


def test_a_language_without_names_borrows_the_english_ones(tmp_path: Path) -> None:
    found = read(tmp_path, SheetText().language("ru").language("sw", placeholders=False))
    names = {language: spoken.names for language, spoken in found.languages.items()}
    assert names["ru"].script == "Cyrl"
    assert names["ru"].borrowed is None
    assert names["sw"].borrowed == "en"
    assert names["sw"].male == names["en"].male
    assert names["sw"].script == "Latn"


@pytest.mark.parametrize(
    ("language", "between", "kept"), [("ur", "،", " alt"), ("zh", "，", "alt"), ("my", " ", "alt")]
)
def test_separators_of_aligned_forms(tmp_path: Path, language: str, between: str, kept: str) -> None:
    changed = {
        line: (f"mehr{between}{kept}", "")
        for line, row in enumerate(SheetText().rows, 2)
        if row[0] in ("adj", "obj")
    }
    found = read(tmp_path, SheetText().language(language, changed, placeholders=False))
    fill = found.languages[language].tests["comparisons"].fills["adj"]
    assert isinstance(fill, ListedFillIn)
    assert {form.texts for entry in fill.entries for form in entry.forms} == {("mehr", kept)}


def test_a_question_for_some_adjectives(tmp_path: Path) -> None:
    ask = at("Question", "Who is not so {adj[1]}?")
    # The English adjective is found with the space before it: "older" is not, standing first, but "old" is.
    variants = (
        {ask: ("Wer ist weniger {adj[1]}?", "older, old, kinder, kind")},
        {ask: ("Wer ist {adj[1]}?", "touger, tough")},
    )
    found = read(tmp_path, SheetText().language("pt", *variants))
    by_adjective = {}
    for case in cases(found, "comparisons", "pt"):
        by_adjective[case.fills["adj"]] = {item.question for item in case.examples}
    assert by_adjective == {
        "older": {"Wer ist weniger old?", "Who is older?"},
        "kinder": {"Wer ist weniger kind?", "Who is kinder?"},
        "tougher": {"Wer ist tough?", "Who is tougher?"},
    }


def test_an_adjective_in_two_groups_is_drawn_in_each(tmp_path: Path) -> None:
    ask = at("Question", "Who is not so {adj[1]}?")
    variants = (
        {ask: ("A {adj[1]}?", "older, old")},
        {ask: ("B {adj[1]}?", "older, old, tough, tough, kind, kind")},
    )
    found = read(tmp_path, SheetText().language("ja", *variants))
    asked = Counter(
        (case.fills["adj"], case.examples[0].question[0]) for case in cases(found, "comparisons", "ja")
    )
    assert set(asked) == {("older", "A"), ("older", "B"), ("tougher", "B"), ("kinder", "B")}
    # Both groups give equal parts, the first as often with its one adjective as the second with three.
    few = Counter(case.fills["variant"] for case in cases(found, "comparisons", "ja", 4))
    assert few == {"1": 2, "2": 2}


def test_an_adjective_that_no_question_is_for_is_never_drawn(tmp_path: Path) -> None:
    ask = at("Question", "Who is not so {adj[1]}?")
    found = read(tmp_path, SheetText().language("hu", {ask: ("Ki {adj[1]}?", "older, old, kinder, kind")}))
    assert ids(found, "hu", "comparisons", "adj") == ["older", "kinder"]
    # Of "old" and "kind", as the English sheet has them behind a comma and a space, the first is inside "older".
    found = read(tmp_path, SheetText().language("ru", {ask: ("Кто {adj[1]}?", "older, kinder, tougher")}))
    assert ids(found, "ru", "comparisons", "adj") == ["tougher", "kinder"]


def intensifiers(*states: str) -> tuple[dict[int, tuple[str, str]], ...]:
    """Return one variant for each of the lists of states, reported apart by their number."""
    lines = [
        line
        for line, row in enumerate(SheetText().rows, 2)
        if 14 <= line <= 19 and row[0] in ("Context", "Question")
    ]
    return tuple(
        {line: (SheetText().rows[line - 2][1].replace("is", f"is{number}"), named) for line in lines}
        for number, named in enumerate(states)
    )


def test_a_state_without_variant_has_empty_cases(tmp_path: Path) -> None:
    found = read(tmp_path, SheetText().language("de", *intensifiers("glad")))
    sizes = {(case.fills["s"], len(case.examples)) for case in cases(found, "intensifiers", "de")}
    assert sizes == {("glad", 4), ("open", 0)}


def test_a_state_that_is_listed_twice_doubles_its_cases_and_contradicts_itself(tmp_path: Path) -> None:
    found = read(tmp_path, SheetText().language("ru", *intensifiers("glad, open, glad")))
    by_state = {case.fills["s"]: case for case in cases(found, "intensifiers", "ru")}
    assert {state: len(case.examples) for state, case in by_state.items()} == {"glad": 8, "open": 4}
    asked = {(item.question, item.answer) for item in by_state["glad"].examples}
    # The second question of the list is the first one again, with the second answer.
    assert len({question for question, _ in asked}) == 1
    assert len(asked) == 2


def test_placeholders_are_ignored_where_the_generator_ignores_them(tmp_path: Path) -> None:
    found = read(tmp_path, SheetText().language("yo", *intensifiers("glad", "open")))
    assert {len(case.examples) for case in cases(found, "intensifiers", "yo")} == {8}


def test_properties_keep_the_order_of_the_sheet(tmp_path: Path) -> None:
    found = read(tmp_path, SheetText().language("sw", placeholders=False))
    pair = found.languages["sw"].tests["properties"].fills["p"]
    assert isinstance(pair, PairFillIn)
    assert pair.of == ("color", "size", "age", "shape", "material")
    assert pair.ordered
    assert len(cases(found, "properties", "sw")) == 2 * 10


def property_questions(first: str, second: str) -> tuple[dict[int, tuple[str, str]], ...]:
    lines = at("Question", "What {p.p1} has {obj[1]}?"), at("Question", "What {p.p2} has {obj[1]}?")
    most = "color, size, age, shape"
    return (
        {lines[0]: ("A {p.p1} {obj[1]}?", most), lines[1]: ("A {p.p2} {obj[1]}?", most)},
        {lines[0]: (first, "material"), lines[1]: (second, "material")},
    )


def test_questions_by_property_in_both_orders(tmp_path: Path) -> None:
    variants = property_questions("B {p.p1} {obj[1]}?", "B {p.p2} {obj[1]}?")
    found = read(tmp_path, SheetText().language("fi", *variants))
    drawn = cases(found, "properties", "fi")
    assert len(drawn) == 2 * 20
    for case in drawn:
        for item, attribute in zip(case.examples, ("p1", "p2"), strict=True):
            asked = case.fills[f"p.{attribute}"]
            assert item.question.split() == [
                "B" if asked == "material" else "A",
                asked,
                *item.question.split()[2:],
            ]


def test_a_property_with_one_question_keeps_its_position(tmp_path: Path) -> None:
    # The German sheet asks for p1 twice where the second question should ask for p2.
    found = read(
        tmp_path, SheetText().language("de", *property_questions("B {p.p1} {obj[1]}?", "B {p.p1} {obj[1]}?"))
    )
    drawn = cases(found, "properties", "de")
    assert {len(case.examples) for case in drawn} == {2}
    assert {case.fills["p.p1"] for case in drawn} == {"color", "size", "age", "shape", "material"}
    assert {case.fills["p.p2"] for case in drawn} == {"color", "size", "age", "shape"}


def test_attributes_agree_with_their_objects(tmp_path: Path) -> None:
    red = at("color", "red")
    variants = ({red: ("rouge", "a bed, the bed")}, {red: ("rouges", "lamp")})
    found = read(tmp_path, SheetText().language("fr", *variants))
    said = {
        (case.fills["obj"], word.strip("."))
        for case in cases(found, "properties", "fr")
        for word in case.examples[0].context.split()
        if word.startswith("rouge")
    }
    assert said == {("bed", "rouge"), ("lamp", "rouges")}


def test_contexts_by_object_in_marathi(tmp_path: Path) -> None:
    context = at("Context", "Here is {obj[0]}. {obj[1]} is {p.v1} and {p.v2}.")
    text = SheetText().rows[context - 2][1]
    found = read(
        tmp_path,
        SheetText().language("mr", {context: (text, "bed")}, {context: (f"{text}!", "the bed, rug")}),
    )
    sizes = {(case.fills["obj"], len(case.examples)) for case in cases(found, "properties", "mr")}
    assert sizes == {("bed", 4), ("lamp", 0)}


def test_dutch_contexts_go_by_the_first_property(tmp_path: Path) -> None:
    context = at("Context", "Here is {obj[0]}. {obj[1]} is {p.v1} and {p.v2}.")
    plain, made = property_questions("B {p.p1} {obj[1]}?", "B {p.p2} {obj[1]}?")
    plain[context] = ("{obj[1]} is {p.v1} en {p.v2}.", "color, size, age, shape")
    made[context] = ("{obj[1]} is van {p.v1} en {p.v2}.", "material")
    found = read(tmp_path, SheetText().language("nl", plain, made))
    drawn = cases(found, "properties", "nl")
    assert {len(case.examples) for case in drawn} == {2}
    for case in drawn:
        assert (" van " in case.examples[0].context) == (case.fills["p.p1"] == "material")


def test_nationalities_agree_with_professions(tmp_path: Path) -> None:
    nationality = at("nationality", "Indian")
    variants = ({nationality: ("indien", "a baker")}, {nationality: ("indienne", "actress")})
    found = read(tmp_path, SheetText().language("fr", *variants))
    said = {
        (case.fills["profession"], case.fills["nationality"], case.examples[1].answer)
        for case in cases(found, "job_vs_nationality", "fr")
    }
    assert said == {
        ("baker", "Indian", "indien"),
        ("actress", "Indian", "indienne"),
        ("baker", "Finnish", "Finnish"),
        ("actress", "Finnish", "Finnish"),
    }


def test_contexts_by_animal(tmp_path: Path) -> None:
    context = at("Context", "{first_name} got {animal}. {first_name2} got {vehicle}.")
    text = SheetText().rows[context - 2][1]
    variants = ({context: (text, "dog")}, {context: (text.replace("got", "osti"), "a guinea pig")})
    found = read(tmp_path, SheetText().language("fi", *variants))
    drawn = cases(found, "animal_vs_vehicles_2", "fi")
    assert {len(case.examples) for case in drawn} == {2}
    for case in drawn:
        assert ("osti" in case.examples[0].context) == (case.fills["animal"] == "guinea pig")


def test_quechua_answers_go_with_their_context(tmp_path: Path) -> None:
    answers = at("Answer", "{animal}"), at("Answer", "{vehicle}")
    variant = {answers[0]: ("{animal}mi", "{animal}taq"), answers[1]: ("{vehicle}taq", "{vehicle}mi")}
    found = read(tmp_path, SheetText().language("qu", variant))
    drawn = cases(found, "animal_vs_vehicles", "qu")
    assert {len(case.examples) for case in drawn} == {2}
    for case in drawn:
        animal_first = case.examples[0].context.split()[2:4] != ["a", "car"]
        assert {item.answer.endswith("mi") for item in case.examples if "dog" in item.answer} <= {
            animal_first
        }
        assert case.examples[1].answer == ("a cartaq" if animal_first else "a carmi")


def test_an_english_article_stays_as_the_generator_writes_it(tmp_path: Path) -> None:
    context = at("Context", "{first_name} has {animal} and {vehicle}.")
    found = read(
        tmp_path,
        SheetText().language("sw", {context: ("{first_name} {a:animal} {vehicle}.", "")}, placeholders=False),
    )
    template = found.languages["sw"].tests["animal_vs_vehicles"]
    assert template.contexts[0].text == "{first_name} a {animal} {vehicle}."


def test_a_sheet_of_fewer_tests_is_a_suite_of_these(tmp_path: Path) -> None:
    sheet = SheetText()
    sheet.rows = sheet.rows[: next(i for i, row in enumerate(sheet.rows) if row[0] == "")]
    assert list(read(tmp_path, sheet).tests) == ["comparisons"]


def test_lists_of_animals_are_held_against_the_placeholders_of_other_cells(tmp_path: Path) -> None:
    dog, pig = at("animal", "a dog"), at("animal", "a guinea pig")
    has, got = (
        "{first_name} has {animal} and {vehicle}.",
        "{first_name} got {animal}. {first_name2} got {vehicle}.",
    )
    variants = ({dog: ("köpek", got), pig: ("domuz", "")}, {dog: ("köpeği", has), pig: ("", "")})
    found = read(tmp_path, SheetText().language("tr", *variants))
    # Without its empty cells the list is köpek, köpeği, domuz; the placeholders of all cells are got, has, -, -.
    assert ids(found, "tr", "animal_vs_vehicles", "animal") == ["dog/2", "guinea pig"]
    assert ids(found, "tr", "animal_vs_vehicles_2", "animal") == ["dog", "guinea pig"]


def faults(folder: Path, sheet: SheetText) -> list[str]:
    with pytest.raises(SpecError) as caught:
        read_released(sheet.write(folder))
    return [str(problem) for problem in caught.value.problems]


def test_faults_of_the_header_and_of_rows(tmp_path: Path) -> None:
    sheet = SheetText().language("de", {}, {})
    sheet.header[5] = "note"
    assert faults(tmp_path, sheet) == [
        "line 1: column 5: 'de' has several columns, but no 'de-placeholders' follows this one"
    ]
    sheet = SheetText().language("de")
    sheet.header[2] = "fr"
    assert faults(tmp_path, sheet) == ["line 1: column 4: 'de-placeholders' has no column 'de' before it"]
    sheet = SheetText()
    sheet.header = ["Kind", "eng-1"]
    assert faults(tmp_path, sheet) == [
        "line 1: column 1: is named 'Kind', but the first column has to be 'Field'",
        "line 1: column 1: there is no column 'en', which every other language translates",
        "line 1: column 2: 'eng-1' is no language code",
    ]
    sheet = SheetText().language("de")
    sheet.rows[5].append("more")
    del sheet.rows[7][-1]
    assert faults(tmp_path, sheet) == [
        "line 7: has 5 cells, but the first line has 4",
        "line 9: has 3 cells, but the first line has 4",
    ]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (None, MissingDataError, "There is no file"),
        ("Field\ten\tde\nName\tx\tgrün".encode("latin-1"), DataError, "is not UTF-8 at byte 21"),
        (b"", SpecError, "'Field'"),
        (b"Field\ten\n", SpecError, "there is no test"),
    ],
)
def test_files_of_another_kind(
    tmp_path: Path, content: bytes | None, error: type[Exception], message: str
) -> None:
    path = tmp_path / "sheet.tsv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error, match=message):
        read_released(path)


def test_a_broken_separator(tmp_path: Path) -> None:
    older, bed = at("adj", "older, old"), at("obj", "a bed, the bed")
    sheet = SheetText().language(
        "ar", {older: ("أكبر, كبير", ""), bed: ("سرير، سرير", "")}, placeholders=False
    )
    reported = faults(tmp_path, sheet)
    # A language whose cells have other numbers of forms than its templates name.
    assert any(
        line.startswith(f"line {older}: column 3: ") or "'adj' has 1 form" in line for line in reported
    )
    assert any("aligned forms" in line for line in reported)


def test_questions_and_answers_go_together(tmp_path: Path) -> None:
    sheet = SheetText()
    ask = at("Question", "Who is {adj[0]}?")
    del sheet.rows[ask - 1]
    answer = sheet.line("Answer", "{profession}")
    del sheet.rows[answer - 3]
    assert faults(tmp_path, sheet) == [
        f"line {ask}: the question has no 'Answer' below it",
        f"line {answer - 1}: the answer has no 'Question' above it",
    ]


def test_unknown_fields_and_tests(tmp_path: Path) -> None:
    sheet = SheetText()
    sheet.rows[7][0] = "adjective"
    sheet.rows[8][0] = "Qestion"
    name = at("Name", ANIMALS)
    sheet.rows[name - 2][1] = "Animal vs Vehicles"
    reported = faults(tmp_path, sheet)
    assert reported[0] == "line 9: 'adjective' is no field of this test"
    assert reported[1] == "line 10: 'Qestion' is no field of this test; did you mean 'Question'?"
    released = "'Animal vs Vehicles' is no test that was released; did you mean 'Animal vs Vehicle'"
    assert any(line.startswith(f"line {name}: {released}") for line in reported)


def test_the_second_test_of_animals_needs_the_first(tmp_path: Path) -> None:
    sheet = SheetText()
    first, second = at("Name", ANIMALS), at("Name", ANIMALS_2)
    del sheet.rows[first - 2 : second - 2]
    assert "which is missing" in faults(tmp_path, sheet)[0]


def test_an_empty_test_and_one_that_begins_twice(tmp_path: Path) -> None:
    sheet = SheetText()
    end = next(index for index, row in enumerate(sheet.rows) if row[0] == "")
    again = [list(row) for row in sheet.rows[:end]]
    del sheet.rows[1:end]
    sheet.rows += [["", ""], *again]
    reported = faults(tmp_path, sheet)
    assert "line 2: the test 'A is COMP than B. Who is more / less COMP?' has no 'Context'" in reported
    assert "line 2: the test 'A is COMP than B. Who is more / less COMP?' has no 'Question'" in reported
    assert "line 2: the test 'A is COMP than B. Who is more / less COMP?' has no 'Capability'" in reported
    assert "line 2: the test 'A is COMP than B. Who is more / less COMP?' has no 'adj'" in reported
    assert any("has begun in line 2 before" in line for line in reported)


def test_templates_that_name_nothing(tmp_path: Path) -> None:
    sheet = SheetText()
    context = at("Context", "{first_name} is {nationality} and {profession}.")
    sheet.rows[context - 2][1] = "{frist_name} is {nationality and {profession}."
    ask = at("Question", "What {p.p1} has {obj[1]}?")
    sheet.rows[ask - 2][1] = "What {p.q1} has {obj.v1}?"
    reported = faults(tmp_path, sheet)
    assert [line.split(": ")[:2] for line in reported] == [
        [f"line {ask}", "column 2"],
        [f"line {ask}", "column 2"],
        [f"line {context}", "column 2"],
    ]
    assert ["{p.q1}" in reported[0], "{obj.v1}" in reported[1], "is not closed" in reported[2]] == [True] * 3


def test_faults_of_all_kinds_are_reported_together(tmp_path: Path) -> None:
    answer = at("Answer", "{vehicle}")
    sheet = SheetText().language("sw", {answer: ("", "")}, placeholders=False)
    sheet.rows[5].append("more")
    reported = faults(tmp_path, sheet)
    assert [line.split(":")[0] for line in reported] == ["line 7", f"line {answer}"]
    assert reported[1] == f"line {answer}: column 3: 'Answer' is empty in 'sw'"


def test_names_that_are_missing_or_malformed(tmp_path: Path) -> None:
    path = SheetText().write(tmp_path)
    names = tmp_path / "names_by_language.json"
    names.write_text(json.dumps({"de": {"male": ["Hans"], "female": "Anna", "last": []}, "fr": []}))
    with pytest.raises(SpecError) as caught:
        read_released(path)
    assert [problem.key for problem in caught.value.problems] == ["languages.fr"]
    names.write_text(json.dumps({"de": {"male": ["Hans"], "female": ["Anna"], "last": []}}))
    with pytest.raises(SpecError) as caught:
        read_released(path)
    assert [str(problem) for problem in caught.value.problems] == [
        "de.last: there is no name",
        "there are no names of 'en', which other languages borrow",
    ]
    names.write_text("{")
    with pytest.raises(DataError, match="cannot be read as JSON"):
        read_released(path)
    names.unlink()
    with pytest.raises(MissingDataError, match="--names FILE"):
        read_released(path)
    elsewhere = tmp_path / "people.json"
    elsewhere.write_text(json.dumps(NAMES))
    assert read_released(path, elsewhere).languages["en"].names.male == ("Ben", "Tom")


def test_a_language_whose_templates_name_nothing(tmp_path: Path) -> None:
    ask = at("Question", "Who is not so {adj[1]}?")
    lines = range(at("Name", INTENSIFIERS), at("state", "glad"))
    bare = {
        line: (row[1], "")
        for line, row in enumerate(SheetText().rows, 2)
        if line == ask or (line in lines and row[0] in ("Context", "Question"))
    }
    assert faults(tmp_path, SheetText().language("ru", bare)) == [
        "line 2: ru: the test has no contexts",
        "line 2: ru: the test has no questions",
        "line 13: ru: the test has no contexts",
        "line 13: ru: the test has no questions",
    ]
