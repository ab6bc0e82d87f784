from __future__ import annotations

from pathlib import Path

import pytest

from harness.data.readers.conllu import Token
from harness.errors import DuplicateNameError, SpecError, UnknownNameError
from harness_vyakarana.grammar import Grammar, grammar_of, load_grammars
from harness_vyakarana.paradigm import ParadigmPlace, Paradigms

SMALL = """
language: xx
name: Test
variants: [same]
content:
  NOUN: {paper: [Number], key: [Number], requires: [Number]}
"""


def word(form: str, lemma: str, upos: str) -> Token:
    empty = dict.fromkeys(("xpos", "feats", "deps", "misc"), "_")
    return Token(id="1", form=form, lemma=lemma, upos=upos, head="0", deprel="root", **empty)


def test_the_languages_that_come_with_the_plugin(grammars: dict[str, Grammar]) -> None:
    assert sorted(grammars) == ["hi", "mr", "ta", "ur"]
    assert grammars["hi"].variants == grammars["ur"].variants == ("same", "opposite", "Masc", "Fem")
    assert grammars["ta"].variants == ("same",) * 4
    assert grammars["mr"].variants == ("same", "Masc", "Fem", "Neut")
    assert grammars["hi"].paper.flips == ("NOUN", "PROPN", "VERB", "ADJ", "ADV", "ADP")


def test_the_gender_of_a_noun_by_variant(grammars: dict[str, Grammar]) -> None:
    hindi = grammars["hi"]
    assert [hindi.gender_in(variant, "Fem") for variant in hindi.variants] == ["Fem", "Masc", "Masc", "Fem"]
    assert hindi.gender_in("Masc", "Com") == "Com"


@pytest.mark.parametrize(
    ("form", "lemma", "upos", "gender", "number", "oblique", "wanted"),
    [
        ("था", "था", "AUX", "Masc", "Sing", False, "थी"),
        ("थे", "था", "AUX", "Masc", "Plur", False, "थीं"),
        ("थीं", "था", "AUX", "Fem", "Plur", False, "थे"),
        ("रहा", "रह", "AUX", "Masc", "Sing", False, "रही"),
        ("रहे", "रहना", "AUX", "Masc", "Plur", False, "रही"),
        ("गया", "जा", "AUX", "Masc", "Sing", False, "गई"),
        ("गयी", "जाना", "AUX", "Fem", "Sing", False, "गया"),
        ("जाएंगे", "जाना", "AUX", "Masc", "Plur", False, "जाएंगी"),
        ("मेरा", "मैं", "PRON", "Masc", "Sing", False, "मेरी"),
        ("मेरी", "मैं", "PRON", "Fem", "Sing", True, "मेरे"),
        ("अपनी", "अपना", "PRON", "Fem", "Plur", False, "अपने"),
        ("ऐसे", "ऐसा", "DET", "Masc", "Plur", False, "ऐसी"),
        ("का", "का", "ADP", "Masc", "Sing", False, "की"),
        ("की", "का", "ADP", "Fem", "Sing", False, "का"),
        ("की", "का", "ADP", "Fem", "Sing", True, "के"),
        ("की", "का", "ADP", "Fem", "Plur", False, "के"),
        ("वाली", "वाला", "ADP", "Fem", "Sing", False, "वाला"),
        ("जैसे", "जैसा", "ADP", "Masc", "Sing", True, "जैसी"),
        ("किया", "करना", "VERB", "Masc", "Sing", False, "की"),
        ("दी", "दे", "VERB", "Fem", "Sing", False, "दिया"),
        ("हुए", "होना", "VERB", "Masc", "Plur", False, "हुई"),
        ("पहुंची", "पहुँचना", "VERB", "Fem", "Sing", False, "पहुंचा"),
        ("जाना", "जानना", "VERB", "Masc", "Sing", False, "जानी"),
        ("नयी", "नया", "ADJ", "Fem", "Sing", True, "नये"),
        ("8वीं", "8वाँ", "ADJ", "Fem", "Sing", False, "8वाँ"),
        # What does not inflect.
        ("है", "है", "AUX", "Masc", "Sing", False, None),
        ("वही", "वह", "DET", "Masc", "Sing", False, None),
        ("उसने", "वह", "PRON", "Masc", "Sing", False, None),
        ("साथ", "साथ", "ADP", "Masc", "Sing", False, None),
        ("भारी", "भारी", "ADJ", "Fem", "Sing", False, None),
        ("ताज़ा", "ताज़ा", "ADJ", "Masc", "Sing", False, None),
    ],
)
def test_hindi_paradigms(
    grammars: dict[str, Grammar],
    form: str,
    lemma: str,
    upos: str,
    gender: str,
    number: str,
    oblique: bool,
    wanted: str | None,
) -> None:
    paradigms = Paradigms(grammars["hi"])
    found = paradigms.find(word(form, lemma, upos), gender)
    place = ParadigmPlace(number=number, oblique=oblique, last=upos == "AUX" and lemma == "था")
    other = grammars["hi"].gender_in("opposite", gender)
    assert (found and paradigms.form(found, other, place)) == wanted


def test_perfectives_are_distinguished_from_infinitives(grammars: dict[str, Grammar]) -> None:
    paradigms = Paradigms(grammars["hi"])
    slots = {}
    for form, lemma in (
        ("बना", "बनना"),
        ("जाना", "जाना"),
        ("जाना", "जानना"),
        ("जीता", "जीतना"),
        ("सोता", "सो"),
    ):
        found = paradigms.find(word(form, lemma, "VERB"), "Masc")
        assert found is not None
        slots[form, lemma] = paradigms.slot(found).partition(":")[0]
    assert list(slots.values()) == ["perfective", "infinitive", "perfective", "perfective", "imperfective"]


def test_marathi_and_urdu_paradigms(grammars: dict[str, Grammar]) -> None:
    marathi, urdu = Paradigms(grammars["mr"]), Paradigms(grammars["ur"])
    found = marathi.find(word("होता", "असणे", "AUX"), "Masc")
    assert found is not None
    assert marathi.form(found, "Neut", ParadigmPlace(number="Sing", oblique=False)) == "होते"
    found = urdu.find(word("تھا", "تھا", "AUX"), "Masc")
    assert found is not None
    assert urdu.form(found, "Fem", ParadigmPlace(number="Plur", oblique=False)) == "تھی"
    found = urdu.find(word("کی", "کا", "ADP"), "Fem")
    assert found is not None
    assert urdu.form(found, "Masc", ParadigmPlace(number="Sing", oblique=False)) == "کا"


def test_definitions_of_other_folders(tmp_path: Path) -> None:
    (tmp_path / "xx.yaml").write_text(SMALL)
    (tmp_path / "README.md").write_text("no definition")
    found = load_grammars([tmp_path])
    assert list(found) == ["xx"]
    with pytest.raises(UnknownNameError, match="xx") as error:
        grammar_of("en", found)
    assert error.value.name == "en"
    (tmp_path / "yy.yaml").write_text(SMALL)
    with pytest.raises(DuplicateNameError, match=r"yy\.yaml"):
        load_grammars([tmp_path])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("colour: green", "colour"),
        ("genders: [Masc, Fem, Neut]\nparadigms: []\nergative: ne", "genders|paradigms|ergative"),
        ("citation_forms: [infinitive]", "infinitive"),
        ("paradigms: [{name: a, upos: [ADP], cells: {Masc Dirr: x}}]", "Dirr"),
        ("paradigms: [{name: a, upos: [ADP], cells: {}}]", "cells"),
        ("paradigms: [{name: a, upos: [ADP], open: true, stems: [k], cells: {Masc: x}}]", "stems"),
    ],
)
def test_faults_of_a_definition(tmp_path: Path, line: str, found: str) -> None:
    (tmp_path / "xx.yaml").write_text(SMALL + line + "\n")
    with pytest.raises(SpecError, match=found):
        load_grammars([tmp_path])


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("[same]", "[same, Masc]", "Masc"),
        ("[same]", "[opposite]", "opposite"),
        ("[same]", "[]", "variants"),
        ("key: [Number]", "key: [number]", "number"),
        ("requires: [Number]", "ladder: [[Case]]", "Case"),
        ("key: [Number], requires: [Number]", "key: [Gender], ladder: [[Gender]]", "Gender"),
    ],
)
def test_contradictions_of_a_definition(tmp_path: Path, old: str, new: str, found: str) -> None:
    (tmp_path / "xx.yaml").write_text(SMALL.replace(old, new))
    with pytest.raises(SpecError, match=found):
        load_grammars([tmp_path])
