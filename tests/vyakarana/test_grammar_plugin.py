"""Language definitions of other packages: every command of ``harness treebank`` uses them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.data.readers.conllu import read_sentences
from harness.errors import DuplicateNameError, SpecError, UnknownNameError
from harness_vyakarana.command import app

PLUGIN = """\
from importlib.resources import files

from harness import hookimpl


@hookimpl
def harness_register_grammars():
    return [files("with_polish") / "grammars"]


@hookimpl
def harness_register_transliterators():
    from harness.data.translation.transliterators import Transliterator

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


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


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
        result = CliRunner().invoke(app, list(map(str, arguments)))
        assert isinstance(result.exception, UnknownNameError)
        assert result.exception.name == "pl"


def test_a_language_is_defined_once_and_without_faults(
    install_plugin: Callable[..., Path], source: Path, tmp_path: Path
) -> None:
    install(install_plugin, POLISH.replace("language: pl", "language: hi"))
    result = CliRunner().invoke(app, ["colorless-green", str(source), "--out", str(tmp_path / "out")])
    assert isinstance(result.exception, DuplicateNameError)
    install(install_plugin, POLISH.replace("genders", "genera"))
    result = CliRunner().invoke(app, ["colorless-green", str(source), "--out", str(tmp_path / "out")])
    assert isinstance(result.exception, SpecError)
    assert "pl.yaml" in str(result.exception)
