"""Grammars of languages, and those of plugins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.data.readers.conllu import Token, read_sentences
from harness.errors import DuplicateNameError, SpecError, UnknownNameError
from harness_vyakarana.grammar import Grammar, ParadigmPlace, Paradigms, grammar_of, load_grammars
from tests.vyakarana.conftest import run

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


@pytest.mark.parametrize(
    ("form", "lemma", "slot"),
    [
        ("बना", "बनना", "perfective"),
        ("जाना", "जाना", "infinitive"),
        ("जाना", "जानना", "perfective"),
        ("जीता", "जीतना", "perfective"),
        ("सोता", "सो", "imperfective"),
    ],
)
def test_perfectives_are_distinguished_from_infinitives(
    grammars: dict[str, Grammar], form: str, lemma: str, slot: str
) -> None:
    paradigms = Paradigms(grammars["hi"])
    inflection = paradigms.find(word(form, lemma, "VERB"), "Masc")
    assert inflection is not None
    assert paradigms.slot(inflection).partition(":")[0] == slot


def test_marathi_and_urdu_paradigms(grammars: dict[str, Grammar]) -> None:
    marathi, urdu = Paradigms(grammars["mr"]), Paradigms(grammars["ur"])
    for paradigms, token, gender, other, number, wanted in (
        (marathi, word("होता", "असणे", "AUX"), "Masc", "Neut", "Sing", "होते"),
        (urdu, word("تھا", "تھا", "AUX"), "Masc", "Fem", "Plur", "تھی"),
        (urdu, word("کی", "کا", "ADP"), "Fem", "Masc", "Sing", "کا"),
    ):
        inflection = paradigms.find(token, gender)
        assert inflection is not None
        assert paradigms.form(inflection, other, ParadigmPlace(number=number, oblique=False)) == wanted


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


PLUGIN = """\
from importlib.resources import files

from harness import hookimpl


@hookimpl
def harness_register_grammars():
    return [files("with_polish") / "grammars"]


@hookimpl
def harness_register_transliterators():
    from harness.data.translation.services import Transliterator

    return [Transliterator(name="shout", version="1", licence="MIT", languages=None, summary="x",
                           transliterate=lambda words, language: [word.upper() for word in words])]
"""
POLISH = """\
language: pl
name: Polish
transliterator: shout
genders: [Masc, Fem]
variants: [same, opposite]
content:
  NOUN: {key: [Gender, Number, Case], requires: [Gender]}
paradigms:
  - name: past
    upos: [VERB]
    open: true
    cells: {Masc Sing: ał, Fem Sing: ała}
"""
WORDS = (("kot", "kot", "Masc", "spał"), ("pies", "pies", "Masc", "grał"), ("ryba", "ryba", "Fem", "spała"))


def treebank() -> str:
    sentences = []
    for number, (form, lemma, gender, verb) in enumerate(WORDS):
        feats = f"Case=Nom|Gender={gender}|Number=Sing"
        sentences.append(
            f"# sent_id = s{number}\n"
            f"1\t{form}\t{lemma}\tNOUN\t_\t{feats}\t2\tnsubj\t_\t_\n"
            f"2\t{verb}\tx\tVERB\t_\tGender={gender}|Number=Sing\t0\troot\t_\t_\n\n"
        )
    return "".join(sentences)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "pl_x-ud-test.conllu"
    path.write_text(treebank())
    return path


def install(install_plugin: Callable[..., Path], grammar: str = POLISH) -> None:
    install_plugin(
        "with_polish", {"with_polish/__init__.py": PLUGIN, "with_polish/grammars/pl.yaml": grammar}
    )


def test_a_language_of_a_plugin_is_generated_checked_and_switched(
    install_plugin: Callable[..., Path], source: Path, tmp_path: Path
) -> None:
    install(install_plugin)
    target = tmp_path / "pl_cg-ud-test.conllu"
    run("colorless-green", source, "--out", target, "--drop-shorter-than", 1)
    made = [[word.form for word in sentence.words] for sentence in list(read_sentences(target))]
    # In the second variant the gender is the other one, and the verb follows it by the plugin's paradigm.
    assert made[:4] == [["pies", "spał"], ["ryba", "spała"], ["kot", "grał"], ["ryba", "grała"]]
    assert made[4:] == [["ryba", "spała"], [made[5][0], "spał"]]
    assert made[5][0] in ("kot", "pies")
    assert ": 0 violations" in run("check", source, target, "--drop-shorter-than", 1)
    output = run("code-switch", source, "--out", tmp_path / "pl_cs.conllu")
    assert "by shout 1 (MIT)" in output
    assert next(read_sentences(tmp_path / "pl_cs.conllu")).words[0].form == "KOT"
    assert "by rules" in run(
        "code-switch", source, "--out", tmp_path / "x", "--engine", "rules", "--language", "hi"
    )


def test_a_language_that_no_plugin_defines_is_rejected(source: Path, tmp_path: Path) -> None:
    for arguments in (["colorless-green", source, "--out", tmp_path / "out"], ["check", source, source]):
        with pytest.raises(UnknownNameError) as caught:
            run(*arguments)
        assert caught.value.name == "pl"


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [("language: pl", "language: hi", DuplicateNameError), ("genders", "genera", SpecError)],
)
def test_a_language_is_defined_once_and_without_faults(
    install_plugin: Callable[..., Path],
    source: Path,
    tmp_path: Path,
    old: str,
    new: str,
    error: type[Exception],
) -> None:
    install(install_plugin, POLISH.replace(old, new))
    with pytest.raises(error, match=r"pl\.yaml"):
        run("colorless-green", source, "--out", tmp_path / "out")
