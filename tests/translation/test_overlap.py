"""Overlap of words between a text and its translation."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.data.translation.services import Aligner, Alignment, Link, WordPair, check_alignments
from harness.errors import ContractError, DataError, PluginError, UsageError
from harness.models import TextInput
from harness.models.requests import SegmentAttention
from harness.running.session import open_session
from harness_translation import harness_register_aligners
from harness_translation.overlap.aligner_file import open_file
from harness_translation.overlap.command import overlap_table
from harness_translation.overlap.formula import (
    ItemOverlap,
    OverlapRule,
    important_words,
    item_overlap,
    sentence_overlap,
    split_words,
    word_scores,
)
from harness_translation.overlap.measure import SourceItem, _minus_human

# A hand-made case with two items of two sentences each, worked out on paper: premise and hypothesis have English
# scores, target scores and (English word, target word, probability) links.
ITEMS: list[list[tuple[list[float], list[float], list[tuple[int, int, float]]]]] = [
    [
        (
            [0.9, 0.8, 0.1, 0.4],
            [0.2, 0.8, 0.6, 0.1, 0.3],
            [(0, 0, 0.9), (0, 1, 0.8), (1, 2, 0.7), (3, 4, 0.4)],
        ),
        ([0.4, 0.4, 0.1], [0.5, 0.1, 0.4], [(0, 0, 0.95), (1, 1, 0.6), (2, 2, 0.9)]),
    ],
    [
        ([0.2, 0.2], [0.1, 0.3, 0.3], [(0, 1, 0.99), (1, 0, 0.3)]),
        ([0.6, 0.1, 0.5], [0.7, 0.2], [(0, 0, 0.8), (2, 0, 0.51)]),
    ],
]
EXPECTED = [
    (OverlapRule(), [(0.5, 0.5), (0.5, 1.0)], 1.25),
    (OverlapRule(link="any"), [(1.0, 0.5), (0.5, 1.0)], 1.5),
    (OverlapRule(link="any", denominator="aligned"), [(1.0, 0.5), (1.0, 1.0)], 1.75),
]


def links(triples: list[tuple[int, int, float]]) -> list[Link]:
    return [Link(source=one, target=other, probability=value) for one, other, value in triples]


@pytest.mark.parametrize(("rule", "shares", "total"), EXPECTED, ids=["authors", "any link", "aligned only"])
def test_the_hand_made_case(rule: OverlapRule, shares: list[Any], total: float) -> None:
    found = [item_overlap([(one, other, links(own)) for one, other, own in item], rule) for item in ITEMS]
    assert [one.sentences for one in found] == shares
    assert sum(one.sum for one in found) / len(found) == total
    assert sum(one.mean for one in found) / len(found) == total / 2


def test_equal_scores_are_all_important_or_none() -> None:
    scores = [0.1, 0.1, 0.1]
    assert sum(scores) / 3 > 0.1, "rounding makes the mean larger than every score"
    assert important_words(scores, OverlapRule()) == {0, 1, 2}
    assert important_words(scores, OverlapRule(importance=">")) == set()


@pytest.mark.parametrize(
    ("source", "target", "triples", "rule", "share"),
    [
        ([1.0], [1.0], [(0, 0, 0.5)], OverlapRule(), 0),
        ([1.0], [1.0], [(0, 0, 0.5)], OverlapRule(min_probability=0.49), 1),
        # The first link that remains counts.
        ([1.0], [0.0, 1.0], [(0, 0, 0.2), (0, 1, 0.9), (0, 0, 0.8)], OverlapRule(), 1),
        # A sentence without words, or without aligned ones, has no share.
        ([], [1.0], [], OverlapRule(), None),
        ([1.0], [1.0], [], OverlapRule(denominator="aligned"), None),
    ],
)
def test_links_above_the_threshold_count(
    source: list[float],
    target: list[float],
    triples: list[tuple[int, int, float]],
    rule: OverlapRule,
    share: float | None,
) -> None:
    assert sentence_overlap(source, target, links(triples), rule) == share
    assert not ItemOverlap(sentences=(1.0, None)).defined


scores = st.lists(st.floats(0, 1, width=32), min_size=1, max_size=8)


@given(scores, scores, st.data())
def test_shares_are_shares_and_more_links_never_lose(
    source: list[float], target: list[float], data: st.DataObject
) -> None:
    word = st.tuples(
        st.integers(0, len(source) - 1), st.integers(0, len(target) - 1), st.floats(0, 1, width=32)
    )
    own = links(data.draw(st.lists(word, max_size=12)))
    first, any_link = (
        sentence_overlap(source, target, own, OverlapRule(link=kind)) for kind in ("first", "any")
    )
    aligned = sentence_overlap(source, target, own, OverlapRule(link="any", denominator="aligned"))
    assert first is not None
    assert any_link is not None
    assert 0 <= first <= any_link <= 1
    assert aligned is None or any_link <= aligned <= 1


@given(scores)
def test_a_sentence_and_itself_overlap_wholly(own: list[float]) -> None:
    identity = links([(word, word, 1.0) for word in range(len(own))])
    assert sentence_overlap(own, own, identity, OverlapRule()) == 1


def test_machine_minus_human_is_over_pairs_of_one_item() -> None:
    """Table 3's difference, with the interval of paired items: noise that both texts share does not count."""

    def cell(variant: str) -> Any:
        return SimpleNamespace(
            language="sw", view={} if variant == "zs" else {"variant": variant, "translator": "mt"}
        )

    draws = random.Random(3)
    base = {str(number): draws.random() for number in range(120)}
    items = [SourceItem(id=name, cluster=None, input=TextInput(text="x")) for name in base]

    def shifted(by: float, skip: int = 0) -> dict[str, ItemOverlap]:
        own = list(base.items())[skip:]
        return {name: ItemOverlap(sentences=(value, value + by), words=1, linked=1) for name, value in own}

    human = shifted(0.0)
    machine = {**shifted(0.25, skip=20), "119": ItemOverlap(sentences=(None, 1.0), words=1, linked=1)}
    assert _minus_human(items, human, shifted(0.5), cell("bt")) is None
    assert _minus_human(items, None, machine, cell("te")) is None
    found = _minus_human(items, human, machine, cell("te"))
    assert found is not None and found["n"] == 99
    assert found["overlap_sum"]["value"] == pytest.approx(0.25)
    assert found["overlap_mean"]["value"] == pytest.approx(0.125)
    ends = found["overlap_sum"]["ci"]
    assert ends is None or ends == pytest.approx([0.25, 0.25])
    row = {"task": "xnli", "language": "sw", "seed": 1, "fit": "f", "variant": "te", "translator": "mt"}
    whole = {**row, **found, "minus_human": found}
    assert "- human" in overlap_table([whole])[1][1][0]


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
    spaced = WordPair(source=("10\u202f000", "ans"), target=("一\u3000万\u2028", "年"))
    aligner = open_file(write(tmp_path, f"{' '.join(spaced.source)} ||| {' '.join(spaced.target)} ||| 1-1"))
    (found,) = aligner.align([spaced])
    assert found.links == (Link(source=1, target=1, probability=1.0),), "words may hold other kinds of spaces"
    check_alignments("file", [spaced], [found])


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("a cat sle eps ||| paka analala ||| 1-0", r"4 .*'a cat sleeps'.*3"),
        ("a cat sleeps ||| paka amelala ||| 1-0", "'a cat sleeps' and 'paka analala'"),
    ],
)
def test_a_file_with_other_words_is_rejected(tmp_path: Path, line: str, named: str) -> None:
    aligner = open_file(write(tmp_path, line))
    with pytest.raises(DataError, match=named):
        check_alignments("file", [PAIR], aligner.align([PAIR]))


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["a ||| b"], r"links:1: .*\b2\b"),
        (["a ||| b ||| 0:0"], r"links:1: .*'0:0'"),
        (["a ||| b ||| 0-1"], r"links:1: .*'0-1' .*\b1 and 1\b"),
        (["a ||| b ||| 0-0:1.5"], r"links:1: .*'0-0:1.5'"),
        (["a ||| b ||| 0-0", "a ||| b ||| "], r"links:2: .*line 1"),
    ],
)
def test_malformed_lines_are_rejected(tmp_path: Path, lines: list[str], found: str) -> None:
    with pytest.raises(DataError, match=found):
        open_file(write(tmp_path, *lines))


def test_an_aligner_without_its_file_or_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    file = declared("file")
    for reference, named in (("nowhere", "'nowhere'"), ("", "--aligner file:FILE")):
        with pytest.raises(UsageError, match=named):
            file.open(reference)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(PluginError, match=r"'simalign'.* pip install"):
        replace(file, name="x", needs=("simalign",), install="pip install simalign").open("bert")


@pytest.mark.parametrize(
    ("alignments", "error", "named"),
    [
        ([Alignment(links=(Link(source=3, target=0),))], DataError, r"3-0 .*3 and 2"),
        ([Alignment(links=(Link(source=0, target=0, probability=2),))], ContractError, "2"),
        ([], ContractError, r"0 .*1"),
    ],
)
def test_links_that_do_not_fit_are_rejected(
    alignments: list[Alignment], error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        check_alignments("x", [PAIR], alignments)


def test_a_plugin_brings_its_own_aligner(install_plugin: Any) -> None:
    install_plugin(
        "with_aligner",
        """
from harness import hookimpl

@hookimpl
def harness_register_aligners():
    from harness.data.translation.services import Aligner
    return [Aligner(name="diagonal", target="with_aligner:Diagonal", licence="MIT", summary="word n to word n",
                    reference="BLANK"),
            Aligner(name="hollow", target="with_aligner:dict", licence="MIT", summary="none", reference="X")]

class Diagonal:
    def __init__(self, reference):
        self.reference = reference
    def align(self, pairs):
        from harness.data.translation.services import Alignment, Link
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


def segment(*pieces: tuple[int, int, float]) -> SegmentAttention:
    starts, ends, scores = zip(*pieces, strict=True)
    return SegmentAttention(starts=starts, ends=ends, scores=scores)


def test_scripts_without_spaces_are_cut_and_keep_their_punctuation() -> None:
    assert [word.text for word in split_words("  It's  done, now.\n")] == ["It's", "done,", "now."]
    assert [word.text for word in split_words("“猫坐”。 OK ไทย")] == ["“猫", "坐”。", "OK", "ไ", "ท", "ย"]
    with pytest.raises(DataError, match="--words auto"):
        split_words("猫坐在", "space")


@given(st.text(max_size=40))
def test_words_are_stretches_of_the_text_and_hold_all_but_spaces(text: str) -> None:
    words = split_words(text)
    assert all(text[word.start : word.end] == word.text for word in words)
    covered = [place for word in words for place in range(word.start, word.end)]
    assert covered == [place for place, character in enumerate(text) if not character.isspace()]


@pytest.mark.parametrize(
    ("text", "pieces", "rule", "expected"),
    [
        ("unbelievable story", [(0, 2, 0.1), (2, 12, 0.2), (13, 18, 0.4)], "sum", (0.3, 0.4)),
        ("unbelievable story", [(0, 2, 0.1), (2, 12, 0.2), (13, 18, 0.4)], "mean", (0.15, 0.4)),
        # A piece of several words is shared by characters.
        ("猫坐在", [(0, 2, 0.6), (2, 3, 0.1)], "sum", (0.3, 0.3, 0.1)),
        # The mark of a word's start belongs to that word.
        ("a b", [(0, 1, 0.5), (1, 2, 0.25), (2, 3, 0.125), (3, 3, 0.7)], "sum", (0.5, 0.375)),
        ("a b", [(0, 1, 0.5)], "sum", (0.5, 0.0)),
    ],
)
def test_words_get_the_scores_of_their_pieces(
    text: str, pieces: list[tuple[int, int, float]], rule: Any, expected: tuple[float, ...]
) -> None:
    assert word_scores(segment(*pieces), text, split_words(text), rule) == pytest.approx(expected)
    with pytest.raises(DataError, match=r"'a' .*0 words"):
        word_scores(segment((0, 1, 0.5)), "ab", [])


@given(st.text(alphabet="ab 猫坐ไท.", min_size=1, max_size=20), st.data())
def test_no_score_is_lost(text: str, data: st.DataObject) -> None:
    """Words get the scores of all pieces except those of trailing spaces."""
    cuts = sorted({0, len(text), *data.draw(st.lists(st.integers(0, len(text)), max_size=6))})
    pieces = [(first, last, 0.25) for first, last in itertools.pairwise(cuts)]
    words = split_words(text)
    total = sum(word_scores(segment(*pieces), text, words))
    last = words[-1].end if words else 0
    assert total == pytest.approx(0.25 * sum(first < last for first, _, _ in pieces))
