"""How long a run still takes, by what was measured of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.cli.tally import Tally, TimeLeft
from harness.progress import CellOutcome, PlannedCell, PlannedFit


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def left(seconds: float, fits: int = 0) -> Any:
    return TimeLeft(seconds=pytest.approx(seconds), fits=fits)  # type: ignore[arg-type]


def advance(tally: Tally, count: int) -> None:
    assert tally.step is not None
    tally.step.done += count


def cell(name: str, items: int | None = None) -> PlannedCell:
    task, _, language = name.partition(":")
    return PlannedCell(digest=name, task=task, language=language, items=items)


def run_cell(tally: Tally, clock: Clock, name: str, seconds: float, items: int, failure: str = "") -> None:
    tally.cell_started(name)
    clock.now += seconds
    tally.cell_finished(CellOutcome(digest=name, items=items, failure=failure))


def test_nothing_is_said_before_something_is_measured(clock: Clock) -> None:
    tally = Tally("m", [cell("a:en", 10)], clock=clock)
    assert tally.time_left() is None
    tally.cell_started("a:en")
    clock.now += 60
    assert tally.time_left() is None
    tally.start("a:en", 10, "items", 0)
    assert tally.time_left() is None
    clock.now += 3
    advance(tally, 2)
    assert tally.time_left() == left(12.0)


def test_cells_weigh_as_many_items_as_they_have(clock: Clock) -> None:
    tally = Tally("m", [cell("a:en", 10), cell("a:de", 30), cell("a:sw")], clock=clock)
    run_cell(tally, clock, "a:en", seconds=5.0, items=10)
    # Half a second per item; of the last cell nothing is known, so it has 10 items as the finished one.
    assert tally.time_left() == left(0.5 * (30 + 10))


def test_every_task_has_its_own_pace(clock: Clock) -> None:
    cells = [cell("a:en", 10), cell("a:de", 10), cell("b:en", 10), cell("b:de", 20), cell("c:en", 10)]
    tally = Tally("m", cells, clock=clock)
    run_cell(tally, clock, "a:en", seconds=1.0, items=10)
    run_cell(tally, clock, "b:en", seconds=9.0, items=10)
    # 0.1 s per item of a, 0.9 of b; 0.5 of c, as of all so far.
    assert tally.time_left() == left(1.0 + 18.0 + 5.0)


def test_the_cell_that_is_under_way_counts_by_its_items(clock: Clock) -> None:
    tally = Tally("m", [cell("a:en", 10), cell("a:de", 99)], clock=clock)
    run_cell(tally, clock, "a:en", seconds=10.0, items=10)
    tally.cell_started("a:de")
    tally.start("a:de", 40, "items", 0)
    clock.now += 20.0
    advance(tally, 20)
    assert tally.time_left() == left(20.0)
    assert tally.share == pytest.approx((1 + 0.5) / 2)


def test_what_precedes_the_items_is_part_of_the_rest(clock: Clock) -> None:
    tally = Tally("m", [cell("a:en", 10), cell("a:de", 10)], clock=clock)
    run_cell(tally, clock, "a:en", seconds=10.0, items=10)
    tally.cell_started("a:de")
    tally.start("a: the candidate pool", 100, "texts", 0)
    clock.now += 5.0
    advance(tally, 50)
    assert tally.time_left() == left(10.0 + 5.0)


def test_failed_cells_and_earlier_ones_are_no_measurements(clock: Clock) -> None:
    done = [CellOutcome(digest="a:en", items=10)]
    tally = Tally("m", [cell("a:en", 10), cell("a:de", 10), cell("a:sw", 10)], done=done, clock=clock)
    run_cell(tally, clock, "a:de", seconds=1000.0, items=0, failure="out of memory")
    assert tally.time_left() is None
    assert tally.failed == 1


def test_trainings_weigh_their_size(clock: Clock) -> None:
    fits = [PlannedFit(digest="small", size=1.0), PlannedFit(digest="large", size=5.0)]
    tally = Tally("m", [cell("a:en", 10), cell("b:en", 10)], fits, clock=clock)
    run_cell(tally, clock, "a:en", seconds=10.0, items=10)
    assert tally.time_left() == left(10.0, fits=2)
    tally.fit_started("small", "small (en)")
    tally.start("small (en)", 10, "steps", 0)
    clock.now += 4.0
    advance(tally, 5)
    # Half of size 1 took 4 s: 8 s for each unit of size, of which 5.5 are left.
    assert tally.time_left() == left(10.0 + 8.0 * 5.5)
    clock.now += 4.0
    tally.fit_finished("small", failed=False)
    assert tally.time_left() == left(10.0 + 40.0)


def test_a_training_that_failed_is_no_measurement_and_not_left(clock: Clock) -> None:
    fits = [PlannedFit(digest="one", size=1.0), PlannedFit(digest="two", size=1.0)]
    tally = Tally("m", [cell("a:en", 10), cell("b:en", 10)], fits, clock=clock)
    run_cell(tally, clock, "a:en", seconds=10.0, items=10)
    tally.fit_started("one", "one (en)")
    clock.now += 1000.0
    tally.fit_finished("one", failed=True)
    assert tally.time_left() == left(10.0, fits=1)


def test_a_resumed_training_counts_the_steps_that_it_took_now(clock: Clock) -> None:
    tally = Tally("m", [cell("a:en", 1), cell("b:en", 1)], [PlannedFit(digest="f", size=2.0)], clock=clock)
    run_cell(tally, clock, "a:en", seconds=1.0, items=1)
    tally.fit_started("f", "f (en)")
    tally.start("f (en)", 100, "steps", 90)
    clock.now += 10.0
    advance(tally, 5)
    assert tally.time_left() == left(1.0 + 10.0)


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(1, 50)), min_size=2, max_size=12))
def test_the_time_left_never_rises(steps: list[tuple[float, int]]) -> None:
    """Whatever the pace of the cells; trainings that nothing is known of are none here."""
    clock = Clock()
    tally = Tally("m", [cell(f"xnli:{number}", 50) for number in range(len(steps) + 1)], clock=clock)
    seen = []
    for number, (seconds, items) in enumerate(steps):
        tally.cell_started(f"xnli:{number}")
        tally.start("xnli", 50, "items", 0)
        clock.now += seconds / 2
        advance(tally, items)
        seen.append(tally.time_left())
        clock.now += seconds / 2
        tally.cell_finished(CellOutcome(digest=f"xnli:{number}", items=50))
        seen.append(tally.time_left())
    known = [left.seconds for left in seen if left is not None]
    assert known == sorted(known, reverse=True)
    assert len(known) >= len(steps)
