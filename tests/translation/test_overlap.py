"""The aggregation of attention overlap: the hand-made case, and properties."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.data.translation.aligners import Link
from harness.models import TextInput
from harness_translation.overlap.formula import (
    ItemOverlap,
    OverlapRule,
    important_words,
    item_overlap,
    sentence_overlap,
)
from harness_translation.overlap.item import SourceItem
from harness_translation.overlap.measure import _minus_human
from harness_translation.overlap.table import overlap_table

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


def test_a_probability_at_the_threshold_is_not_above_it() -> None:
    own = links([(0, 0, 0.5)])
    assert sentence_overlap([1.0], [1.0], own, OverlapRule()) == 0
    assert sentence_overlap([1.0], [1.0], own, OverlapRule(min_probability=0.49)) == 1


def test_the_first_link_that_remains_counts() -> None:
    own = links([(0, 0, 0.2), (0, 1, 0.9), (0, 0, 0.8)])
    assert sentence_overlap([1.0], [0.0, 1.0], own, OverlapRule()) == 1


def test_a_sentence_without_words_has_no_share() -> None:
    assert sentence_overlap([], [1.0], [], OverlapRule()) is None
    assert sentence_overlap([1.0], [1.0], [], OverlapRule(denominator="aligned")) is None
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
