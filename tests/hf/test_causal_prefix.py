from __future__ import annotations

import itertools

from hypothesis import given, strategies as st

from harness_hf.causal import prefix
from harness_hf.causal.prefix import PrefixGroup, pack_groups, share_prefixes, split_group

token = st.integers(0, 1)
texts = st.lists(st.lists(token, min_size=1, max_size=14).map(tuple), min_size=1, max_size=9, unique=True)


def saved(groups: list[PrefixGroup]) -> int:
    return sum((len(group.members) - 1) * group.stem for group in groups)


def common(several: list[tuple[int, ...]]) -> int:
    columns = itertools.takewhile(lambda column: len(set(column)) == 1, zip(*several, strict=False))
    return len(list(columns))


def check(groups: list[PrefixGroup], given_texts: list[tuple[int, ...]]) -> None:
    assert sorted(member for group in groups for member in group.members) == list(range(len(given_texts)))
    for group in groups:
        members = [given_texts[member] for member in group.members]
        assert group.longest == max(len(text) for text in members)
        assert group.stem <= common(members)
        if len(members) == 1:
            assert group.stem == len(members[0])
            assert group.branches == 0


@given(texts)
def test_groups_hold_every_text_once_behind_its_beginning(given_texts: list[tuple[int, ...]]) -> None:
    check(share_prefixes(given_texts, share=True), given_texts)
    alone = share_prefixes(given_texts, share=False)
    check(alone, given_texts)
    assert saved(alone) == 0


@given(texts)
def test_no_other_split_saves_more(given_texts: list[tuple[int, ...]]) -> None:
    """Against every way to cut the sorted texts into runs."""
    ordered = sorted(given_texts)
    best = 0
    for cuts in itertools.product([False, True], repeat=len(ordered) - 1):
        runs: list[list[tuple[int, ...]]] = [[ordered[0]]]
        for cut, text in zip(cuts, ordered[1:], strict=True):
            if cut:
                runs.append([])
            runs[-1].append(text)
        gains = [(len(run) - 1) * common(run) if common(run) >= prefix.LEAST_SHARED else 0 for run in runs]
        best = max(best, sum(gains))
    assert saved(share_prefixes(given_texts, share=True)) == best


@given(texts, st.integers(1, 60))
def test_batches_hold_every_group_within_the_budget(given_texts: list[tuple[int, ...]], budget: int) -> None:
    batches = list(pack_groups(share_prefixes(given_texts, share=True), given_texts, budget))
    check([group for batch in batches for group in batch], given_texts)
    for batch in batches:
        assert len({group.branches > 0 for group in batch}) == 1
        rows = sum(group.branches for group in batch)
        tokens = len(batch) * max(group.stem for group in batch)
        tokens += rows * max(group.longest - group.stem for group in batch)
        if len(batch) > 1:
            assert tokens <= budget
            assert rows * max(group.longest for group in batch) <= prefix.CACHE_FACTOR * budget


def test_splitting_a_group() -> None:
    given_texts = [(*range(10), last) for last in range(5)]
    (group,) = share_prefixes(given_texts, share=True)
    assert group.stem == 10
    parts = split_group(group, given_texts, 2)
    assert [len(part.members) for part in parts] == [2, 2, 1]
    check(parts, given_texts)


def test_many_texts_behind_one_beginning_are_several_groups() -> None:
    """Few-shot prompts: everything shares the shots."""
    shots = tuple(range(100))
    given_texts = [(*shots, 200 + number, 7) for number in range(150)]
    groups = share_prefixes(given_texts, share=True)
    check(groups, given_texts)
    assert len(groups) == -(-150 // prefix.MOST_TOGETHER)
