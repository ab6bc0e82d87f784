"""Sentences side by side, and the rows that the released notebooks count."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.data.readers.conllu import read_sentences
from harness.errors import DataError, MissingDataError
from harness_vyakarana.command import app
from harness_vyakarana.readers import READERS
from harness_vyakarana.side_by_side import side_by_side

POS = next(reader for reader in READERS if reader.name == "vyakarana")


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def generated(own: Path, tmp_path: Path) -> tuple[Path, Path, Path]:
    """A treebank, and both treebanks that are made from it."""
    source, green, mixed = own / "hi_own-ud-test.conllu", tmp_path / "cg.conllu", tmp_path / "cscg.conllu"
    run("colorless-green", source, "--out", green)
    run("code-switch", green, "--out", mixed)
    return source, green, mixed


def test_versions_of_a_sentence_are_side_by_side(generated: tuple[Path, Path, Path], tmp_path: Path) -> None:
    source, green, mixed = generated
    [table] = side_by_side(generated, ["hi-02"])
    variants = [f"org{number}" for number in range(1, 5)]
    assert table.heads == (
        "UPOS",
        "Case",
        "Gender",
        "original",
        *variants,
        *(f"{name} latin" for name in variants),
    )
    columns = list(zip(*(row.fields for row in table.rows), strict=True))
    by_id = {own.sent_id: own for path in generated[:2] for own in read_sentences(path)}
    assert list(columns[3]) == [word.form for word in by_id["hi-02"].words]
    assert list(columns[5]) == [word.form for word in by_id["hi-02-org2"].words]
    assert all(str(form).isascii() for form in columns[-1])
    assert [own.title for own in side_by_side(generated, [], count=2)] == ["hi-01", "hi-02"]
    output = run(
        "show", *generated, "--sentence", "hi-02", "--format", "latex", "--output", tmp_path / "x.tex"
    )
    assert not output
    latex = (tmp_path / "x.tex").read_text(encoding="utf-8")
    assert latex.count(r"\begin{tabular}") == 1
    assert all(str(form) in latex for form in columns[5])
    assert "hi-01" in run("show", source, green, mixed)


def test_what_is_not_side_by_side_is_an_error(
    generated: tuple[Path, Path, Path], own: Path, tmp_path: Path
) -> None:
    with pytest.raises(MissingDataError, match="hi-99"):
        side_by_side(generated, ["hi-99"])
    with pytest.raises(MissingDataError, match="in common"):
        side_by_side([generated[0], own / "ta_own-ud-test.conllu"], [])
    cut = tmp_path / "cut.conllu"
    cut.write_text("# sent_id = hi-01-org1\n1\tx\tx\tX\t_\t_\t0\troot\t_\t_\n\n")
    with pytest.raises(DataError, match="hi-01"):
        side_by_side([generated[0], cut], ["hi-01"])


@pytest.mark.parametrize("task", ["pos", "stdp"])
def test_ranges_are_rows_of_their_own(task: str, own: Path) -> None:
    path = own / "ta_own-ud-test.conllu"
    words, rows = (list(POS.rows([path], {"task": task, "ranges": view})) for view in ("false", "true"))
    for sentence, plain, full in zip(read_sentences(path), words, rows, strict=True):
        forms = [token.form for token in sentence.tokens]
        assert full.fields.get("tokens", forms) == forms
        assert full.fields.get("sentence", " ".join(forms)) == " ".join(forms)
        if task == "pos":
            tags = full.fields["tags"]
            assert [tag for tag in tags if tag != "None"] == plain.fields["tags"]
            assert tags.count("None") == len(sentence.tokens) - len(sentence.words)
        else:
            assert full.fields["label"] == plain.fields["label"]
    assert words != rows


def test_the_published_counts_of_rows(data_root: Path) -> None:
    """Table 3 of Patil et al. (2021) counts the rows of CG-TTB: 8,732 of train and 5,536 of dev."""
    for split, rows, words in (("train", 8732, 7956), ("dev", 5536, 5052)):
        path = data_root / "vyakarana/tamil/CG-TTB" / f"{split}.conllu"
        for view, count in (("true", rows), ("false", words)):
            tags = [row.fields["tags"] for row in POS.rows([path], {"task": "pos", "ranges": view})]
            assert sum(map(len, tags)) == count


def test_help_names_the_command() -> None:
    assert re.search(r"\bshow\b", run("--help"))
