from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.errors import UsageError
from harness.planning.plan import Plan
from harness.planning.run_config import RunConfig, data_options
from harness.planning.shards import Shard, parse_shard, plan_digest, take_shard
from harness.running.session import prepare

TASKS = ("xnli:en+sw+hi+de", "udpos:en+de", "xquad:en+de", "tatoeba:de+hi")


@pytest.fixture(scope="module")
def plan() -> Plan:
    config = RunConfig(tasks=TASKS, model="baseline:char-ngram", data=data_options(["sample"]))
    return prepare(config).plan


@pytest.fixture(scope="module")
def large(plan: Plan) -> Callable[[list[int]], Plan]:
    """Return a plan with so many cells of each fit, the first number without one."""
    fits = plan.fits

    def make(counts: list[int]) -> Plan:
        cells = []
        for number, count in enumerate(counts):
            fit = None if number == 0 else replace(fits[0], seed=number)
            cells += [replace(plan.cells[0], fit=fit, seed=seed) for seed in range(count)]
        return replace(plan, cells=tuple(cells))

    return make


def _digests(plan: Plan) -> list[str]:
    return [cell.digest for cell in plan.cells]


@pytest.mark.parametrize("text", ["0/4", "5/4", "a/b", "2", "2/", "/2", "-1/2", "1/0", "1/2/3", "1.0/2", ""])
def test_nonsense_is_rejected(text: str) -> None:
    with pytest.raises(UsageError, match=f"--shard {text} names no part; expected I/N"):
        parse_shard(text)


def test_a_shard_is_read_and_shown() -> None:
    shard = parse_shard("2/4")
    assert shard == Shard(index=2, count=4)
    assert str(shard) == "2/4"


@pytest.mark.thorough
@given(data=st.data())
def test_every_cell_is_in_one_shard_and_the_parts_are_balanced(
    large: Callable[[list[int]], Plan], data: Any
) -> None:
    counts = data.draw(st.lists(st.integers(0, 12), min_size=1, max_size=5).filter(sum))
    plan = large(counts)
    total = len(plan.cells)
    count = data.draw(st.integers(1, total))
    parts = [take_shard(plan, Shard(index=index, count=count)) for index in range(1, count + 1)]
    together = [digest for part in parts for digest in _digests(part)]
    assert sorted(together) == sorted(_digests(plan))
    sizes = [len(part.cells) for part in parts]
    assert min(sizes) >= 1
    assert all(abs(size - total / count) <= total / count / 2 + 1 for size in sizes)
    for part in parts:
        kept = set(_digests(part))
        assert _digests(part) == [digest for digest in _digests(plan) if digest in kept]
        assert (part.skipped, part.notes, part.suites) == (plan.skipped, plan.notes, plan.suites)


def test_a_cut_spares_a_fit(large: Callable[[list[int]], Plan]) -> None:
    plan = large([0, 7, 9])
    halves = [take_shard(plan, Shard(index=index, count=2)) for index in (1, 2)]
    assert [len(half.fits) for half in halves] == [1, 1]
    free = large([16])
    assert [len(take_shard(free, Shard(index=index, count=2)).cells) for index in (1, 2)] == [8, 8]


def test_more_shards_than_cells_are_rejected(plan: Plan) -> None:
    count = len(plan.cells) + 1
    with pytest.raises(UsageError, match=f"into {count} parts, so that some are empty. Use at most"):
        take_shard(plan, Shard(index=1, count=count))
    parts = [
        take_shard(plan, Shard(index=index, count=count), may_be_empty=True) for index in range(1, count + 1)
    ]
    assert sorted(len(part.cells) for part in parts) == [0] + [1] * len(plan.cells)


def test_the_digest_is_that_of_the_cells(plan: Plan) -> None:
    assert plan_digest(plan) == plan_digest(replace(plan, notes=("another note",)))
    assert plan_digest(plan) != plan_digest(replace(plan, cells=plan.cells[1:]))


def test_the_summary_says_which_shard_has_a_cell(plan: Plan) -> None:
    shard = Shard(index=2, count=3)
    part = take_shard(plan, shard)
    summary = part.shard
    assert (summary["shard"], summary["plan"]) == ("2/3", plan_digest(plan))
    own = [cell["digest"] for cell in summary["plan_cells"] if cell["shard"] == 2]
    assert own == _digests(part)
    assert [cell["digest"] for cell in summary["plan_cells"]] == _digests(plan)
