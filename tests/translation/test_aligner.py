"""Aligners without a network: links from files, bad links, and missing packages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.data.translation.aligners import Aligner, Alignment, Link, WordPair, check_alignments
from harness.errors import ContractError, DataError, PluginError, UsageError
from harness.running.session import open_session
from harness_translation import harness_register_aligners
from harness_translation.overlap.aligner_file import open_file

PAIR = WordPair(source=("a", "cat", "sleeps"), target=("paka", "analala"))


def declared(name: str) -> Aligner:
    return next(aligner for aligner in harness_register_aligners() if aligner.name == name)


def write(folder: Path, *lines: str) -> str:
    path = folder / "links"
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def test_links_are_read_from_a_file_in_their_order(tmp_path: Path) -> None:
    aligner = open_file(write(tmp_path, "x ||| y ||| ", "a cat sleeps ||| paka analala ||| 2-1:0.87 1-0"))
    (found,) = aligner.align([PAIR])
    assert found.links == (Link(source=2, target=1, probability=0.87), Link(source=1, target=0))
    check_alignments("file", [PAIR], [found])


def test_words_of_a_file_may_hold_spaces_of_other_kinds(tmp_path: Path) -> None:
    pair = WordPair(source=("10\u202f000", "ans"), target=("一\u3000万\u2028", "年"))
    aligner = open_file(write(tmp_path, f"{' '.join(pair.source)} ||| {' '.join(pair.target)} ||| 1-1"))
    (alignment,) = aligner.align([pair])
    assert alignment.links == (Link(source=1, target=1, probability=1.0),)
    check_alignments("file", [pair], [alignment])


def test_a_file_with_other_words_is_rejected(tmp_path: Path) -> None:
    aligner = open_file(write(tmp_path, "a cat sle eps ||| paka analala ||| 1-0"))
    with pytest.raises(DataError, match=r"4 .*'a cat sleeps'.*3"):
        check_alignments("file", [PAIR], aligner.align([PAIR]))


def test_an_unknown_pair_is_named(tmp_path: Path) -> None:
    aligner = open_file(write(tmp_path, "a cat sleeps ||| paka amelala ||| 1-0"))
    with pytest.raises(DataError, match="'a cat sleeps' and 'paka analala'"):
        aligner.align([PAIR])


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("a ||| b", r"links:1: .*\b2\b"),
        ("a ||| b ||| 0:0", r"links:1: .*'0:0'"),
        ("a ||| b ||| 0-1", r"links:1: .*'0-1' .*\b1 and 1\b"),
        ("a ||| b ||| 0-0:1.5", r"links:1: .*'0-0:1.5'"),
    ],
)
def test_malformed_lines_are_rejected(tmp_path: Path, line: str, found: str) -> None:
    with pytest.raises(DataError, match=found):
        open_file(write(tmp_path, line))


def test_a_pair_with_two_sets_of_links_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"links:2: .*line 1"):
        open_file(write(tmp_path, "a ||| b ||| 0-0", "a ||| b ||| "))


def test_a_missing_file_is_named() -> None:
    with pytest.raises(UsageError, match="'nowhere'"):
        declared("file").open("nowhere")


def test_a_missing_package_is_reported_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    given = replace(declared("file"), name="x", needs=("simalign",), install="pip install simalign")
    with pytest.raises(PluginError, match=r"'simalign'.* pip install"):
        given.open("bert")


def test_an_aligner_needs_a_name() -> None:
    with pytest.raises(UsageError, match=r"--aligner file:FILE"):
        declared("file").open("")


def test_links_that_do_not_fit_are_rejected() -> None:
    outside = Alignment(links=(Link(source=3, target=0),))
    with pytest.raises(DataError, match=r"3-0 .*3 and 2"):
        check_alignments("x", [PAIR], [outside])
    with pytest.raises(ContractError, match="2"):
        check_alignments("x", [PAIR], [Alignment(links=(Link(source=0, target=0, probability=2),))])
    with pytest.raises(ContractError, match=r"0 .*1"):
        check_alignments("x", [PAIR], [])


def test_a_plugin_brings_its_own_aligner(install_plugin: Any) -> None:
    install_plugin(
        "with_aligner",
        """
from harness import hookimpl

@hookimpl
def harness_register_aligners():
    from harness.data.translation.aligners import Aligner
    return [Aligner(name="diagonal", target="with_aligner:Diagonal", licence="MIT", summary="word n to word n",
                    reference="BLANK"),
            Aligner(name="hollow", target="with_aligner:dict", licence="MIT", summary="none", reference="X")]

class Diagonal:
    def __init__(self, reference):
        self.reference = reference
    def align(self, pairs):
        from harness.data.translation.aligners import Alignment, Link
        shorter = [min(len(pair.source), len(pair.target)) for pair in pairs]
        return [Alignment(links=tuple(Link(source=n, target=n) for n in range(size))) for size in shorter]
    def identity(self):
        return {"aligner": self.reference}
    def close(self):
        pass

def dict(reference):
    return {}
""",
    )
    aligners = open_session().registry.aligners
    assert {"diagonal", "own"} <= set(aligners.names)
    opened = aligners.get("diagonal").open("plain")
    assert opened.identity() == {"aligner": "plain"}
    (found,) = opened.align([WordPair(source=("a", "b"), target=("c",))])
    assert [(link.source, link.target) for link in found.links] == [(0, 0)]
    with pytest.raises(ContractError, match="align"):
        aligners.get("hollow").open("x")
