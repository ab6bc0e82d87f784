from __future__ import annotations

import random

import pytest
from hypothesis import given, strategies as st

from harness.data.records import draw

_IDS = st.lists(st.text(max_size=5), unique=True, max_size=40)
_LIMIT = st.integers(min_value=0, max_value=50)
_SEED = st.integers()


def _kept(ids: list[str], limit: int | None, seed: int, language: str | None = None) -> list[str]:
    return [ids[index] for index in draw(ids, limit, seed=seed, task="xnli", language=language)]


@given(_IDS, _LIMIT, _SEED)
def test_exactly_the_limit_is_kept_in_the_original_order(ids: list[str], limit: int, seed: int) -> None:
    kept = draw(ids, limit, seed=seed, task="xnli", language="sw")
    assert len(kept) == min(limit, len(ids))
    assert kept == sorted(set(kept))


@given(_IDS, _SEED)
def test_no_limit_keeps_all(ids: list[str], seed: int) -> None:
    assert _kept(ids, None, seed) == ids


@given(_IDS, _LIMIT, _LIMIT, _SEED)
def test_a_smaller_limit_takes_a_subset(ids: list[str], first: int, second: int, seed: int) -> None:
    smaller, larger = sorted((first, second))
    assert set(_kept(ids, smaller, seed)) <= set(_kept(ids, larger, seed))


@given(_IDS, _LIMIT, _SEED, st.randoms(use_true_random=False))
def test_the_choice_does_not_depend_on_the_order(
    ids: list[str], limit: int, seed: int, shuffler: random.Random
) -> None:
    shuffled = list(ids)
    shuffler.shuffle(shuffled)
    assert set(_kept(ids, limit, seed)) == set(_kept(shuffled, limit, seed))


def test_the_choice_depends_on_seed_task_and_language_and_is_pinned() -> None:
    ids = [str(number) for number in range(1_000)]
    reference = draw(ids, 5, seed=13, task="xnli", language=None)
    assert reference == [97, 378, 493, 578, 722]
    assert draw(ids, 5, seed=14, task="xnli", language=None) != reference
    assert draw(ids, 5, seed=13, task="pawsx", language=None) != reference
    assert draw(ids, 5, seed=13, task="xnli", language="sw") != reference


def test_the_draw_is_fair() -> None:
    ids = [str(number) for number in range(20)]
    counts = [0] * 20
    for seed in range(2_000):
        for index in draw(ids, 5, seed=seed, task="xnli", language=None):
            counts[index] += 1
    # 500 expected each, standard deviation 19.4; five of them to either side.
    assert all(403 < count < 597 for count in counts)


def test_what_makes_no_sense_is_rejected() -> None:
    with pytest.raises(ValueError, match="The limit must not be negative, found -1"):
        draw(["a"], -1, seed=0, task="xnli", language=None)
    with pytest.raises(ValueError, match="The ids of the items of 'xnli' must be unique"):
        draw(["a", "a"], 1, seed=0, task="xnli", language=None)
