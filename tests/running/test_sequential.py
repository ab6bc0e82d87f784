"""Samples that grow: what they hold, where they stop, what is asked, and that no circumstance changes it."""

from __future__ import annotations

import importlib
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from harness.data.records import draw
from harness.errors import UsageError
from harness.metrics.scoring import MetricScore
from harness.planning.plan import Plan
from harness.planning.sampling import items_needed
from harness.reporting.overview.overview import LoadedRun
from harness.reporting.overview.run_remarks import sampled_items
from harness.reporting.overview.summary import read_material
from harness.reporting.overview.summary_blocks import system_table, systems_latex
from harness.running.sequential import Sampling, reach
from harness.statistics import mean_of_codes
from harness.storage.results import CellResult, Look
from harness.storage.run_folder import Run

from .conftest import Cli

SIZE = 700
SHARES = {"de": 0.5, "hi": 0.95, "sw": 0.5}
"""Items of which the model, which always says the first label, is right."""


# The decisions ----------------------------------------------------------------------------------------


def _evaluate(sampling: Sampling, sizes: dict[str, int], spread: dict[str, float]) -> dict[str, int]:
    """Let half-widths fall with the square root of the size, and return how many items each cell ends with."""

    def look(name: str) -> None:
        while (limit := sampling.wanted(name)) is not None:
            n = min(limit, sizes[name])
            width = spread[name] / math.sqrt(n) or None
            sampling.add(name, Look(limit=limit, n=n, size=sizes[name], half_width=width))

    while sampling.next_round(sizes):
        for name in sizes:
            look(name)
    for name in sizes:
        look(name)
    return {name: sampling.looks[name][-1].n for name in sizes}


CELLS = st.lists(st.tuples(st.integers(20, 5_000), st.floats(0, 1)), min_size=1, max_size=6)


@given(CELLS, st.integers(0, 20_000), st.sampled_from([None, 1.0, 3.0]), st.sampled_from([None, 30, 400]))
@settings(deadline=None, max_examples=60)
def test_a_budget_is_kept_and_used(
    cells: list[tuple[int, float]], more: int, precision: float | None, limit: int | None
) -> None:
    sizes = {str(number): size for number, (size, _) in enumerate(cells)}
    spread = {str(number): width for number, (_, width) in enumerate(cells)}
    budget = 20 * len(cells) + more
    sampling = Sampling(precision=precision, budget=budget, limit=limit)
    counts = _evaluate(sampling, sizes, spread)
    assert sum(counts.values()) <= budget
    open_cells = [name for name in sizes if sampling.stopped(name) == "budget"]
    if open_cells:
        assert budget - sum(counts.values()) < len(open_cells)
    # No cell has items that would have narrowed a wider one more; doubling and whole items leave a margin.
    widths = {name: (spread[name] or 1) / math.sqrt(counts[name]) for name in open_cells}
    first = min(100, max(20, budget // (2 * len(cells))))
    grown = [name for name in widths if counts[name] > first]
    if grown:
        assert max(widths.values()) <= max(widths[name] for name in grown) * 1.05


@given(CELLS, st.integers(0, 20_000), st.integers(0, 63))
@settings(deadline=None, max_examples=40)
def test_cells_that_were_finished_before_a_kill_change_no_allocation(
    cells: list[tuple[int, float]], more: int, finished: int
) -> None:
    sizes = {str(number): size for number, (size, _) in enumerate(cells)}
    spread = {str(number): width for number, (_, width) in enumerate(cells)}
    whole = Sampling(budget=20 * len(cells) + more)
    _evaluate(whole, sizes, spread)
    resumed = Sampling(budget=whole.budget)
    resumed.recall({name: looks for name, looks in whole.looks.items() if finished >> int(name) & 1})
    _evaluate(resumed, sizes, spread)
    assert resumed.looks == whole.looks


@given(CELLS, st.integers(0, 20_000))
@settings(deadline=None, max_examples=60)
def test_a_cell_that_failed_before_a_kill_joins_cells_that_are_finished(
    cells: list[tuple[int, float]], more: int
) -> None:
    """What was left to the finished cells is more than they get with one cell more: they take no look again."""
    sizes = {str(number): size for number, (size, _) in enumerate(cells)}
    spread = {str(number): width for number, (_, width) in enumerate(cells)}
    budget = 10 * (len(cells) + 1) + more
    first = Sampling(budget=budget)
    _evaluate(first, sizes, spread)
    resumed = Sampling(budget=budget)
    resumed.recall(first.looks)
    rounds = 0
    while resumed.next_round([*sizes, "failed"]):
        assert not [name for name in sizes if resumed.wanted(name) is not None]
        if (limit := resumed.wanted("failed")) is not None:
            resumed.add("failed", Look(limit=limit, n=min(limit, 500), size=500, half_width=limit**-0.5))
        rounds += 1
        assert rounds < 100


def test_looks_are_at_fixed_sizes_until_the_half_width_is_reached() -> None:
    sampling = Sampling(precision=5.0)
    assert _evaluate(sampling, {"a": 5_000, "b": 120}, {"a": 1.0, "b": 1.0}) == {"a": 507, "b": 120}
    assert [look.limit for look in sampling.looks["a"]] == [100, 150, 225, 338, 507]
    assert (sampling.stopped("a"), sampling.stopped("b")) == ("precision", "all items")
    limited = Sampling(precision=5.0, limit=180)
    assert _evaluate(limited, {"a": 5_000}, {"a": 1.0}) == {"a": 180}
    assert limited.stopped("a") == "limit"


@given(st.sets(st.text(min_size=1, max_size=4), min_size=1, max_size=40), st.data())
@settings(deadline=None, max_examples=50)
def test_a_sample_holds_all_smaller_ones(ids: set[str], data: st.DataObject) -> None:
    names = sorted(ids)
    size = data.draw(st.integers(1, len(names)))
    order = data.draw(st.permutations(names))
    kept = {names[i] for i in draw(names, size, seed=0, task="t", language=None)}
    more = {order[i] for i in draw(order, size + 1, seed=0, task="t", language=None)}
    assert kept <= more


def _reach(values: list[float], clusters: int) -> float | None:
    items = np.array(values)
    interval = mean_of_codes(items, np.arange(len(items)) % clusters)
    return reach({"m": MetricScore(value=float(items.mean()), interval=interval)}, ["other", "m"])


def test_scores_that_are_all_equal_are_not_taken_as_certain() -> None:
    right = _reach([1.0] * 100, 100)
    assert right == pytest.approx(1 - 100 / (100 + 1.959964**2))  # Wilson's lower end
    assert _reach([0.5] * 100, 100) is None
    assert _reach([0.0, 1.0] * 50, 5) is None  # every cluster is half right
    assert _reach([0.0, 1.0, 1.0] * 33, 4) is None
    assert _reach([0.0, 1.0, 1.0] * 33, 5) is not None
    assert reach({}, ["m"]) is None


def test_items_that_a_half_width_needs() -> None:
    assert items_needed(1.0) == 9_604  # 1.96 ** 2 / 4 / 0.01 ** 2
    assert items_needed(2.0, score=0.9) == 865


# Runs -------------------------------------------------------------------------------------------------


@pytest.fixture
def data(data_folder: Callable[..., Path]) -> Path:
    """Write XNLI files of three languages whose items go together."""
    files = {}
    for code, share in SHARES.items():
        labels = random.Random(code)
        lines = [
            f"Sentence {number} of {code}.\tClaim {number}.\t"
            f"{'contradiction' if labels.random() < share else 'neutral'}\n"
            for number in range(SIZE)
        ]
        files[f"xnli/test-{code}.tsv"] = "".join(lines)
    return data_folder(files)


@pytest.fixture
def flaky(install_plugin: Callable[..., Path]) -> Any:
    """Install the adapter ``flaky``, and return its module."""
    source = Path(__file__).parents[1] / "faults" / "flaky_adapter.py"
    install_plugin("flaky_adapter", source.read_text(encoding="utf-8"))
    return importlib.import_module("flaky_adapter")


@pytest.fixture
def sampled(data: Path, flaky: Any, run: Callable[..., Run]) -> Callable[..., Run]:
    """Evaluate ``flaky:it`` on the three languages."""

    def evaluated(**given: Any) -> Run:
        nothing = {"recipe": None, "train_limit": None, "limit": None}
        return run("xnli:de+hi+sw", "flaky:it", **{**nothing, "data": str(data), **given})

    return evaluated


def _cells(run: Run) -> dict[str, CellResult]:
    return {cell.language: cell for cell in run.cells}


def _plain(run: Run) -> list[dict[str, Any]]:
    return [{**cell.to_json(), "seconds": 0} for cell in run.cells]


def _ids(run: Run, code: str) -> list[str]:
    return [record.id for record in run.records(_cells(run)[code])]


@pytest.mark.thorough
def test_a_cell_that_stopped_is_what_the_limit_gives(sampled: Callable[..., Run]) -> None:
    run = sampled(precision=6.0)
    cells = _cells(run)
    assert all(cell.status == "ok" for cell in run.cells)
    assert {code: cell.stopped for code, cell in cells.items()} == dict.fromkeys(SHARES, "precision")
    assert cells["hi"].n < cells["de"].n < SIZE == cells["de"].size
    assert set(_ids(run, "hi")) < set(_ids(run, "de"))  # one order in all languages
    limited = _cells(sampled(limit=cells["de"].n))
    assert limited["de"].metrics == cells["de"].metrics
    assert _ids(run, "de") == [record.id for record in sampled(limit=cells["de"].n).records(limited["de"])]
    low, high = cells["de"].metrics["accuracy"].ci or (0, 1)
    assert (high - low) / 2 <= 0.06 == pytest.approx(cells["de"].looks[-2].half_width, abs=0.02)
    total = sum(cell.n for cell in run.cells)
    assert run.results.run.requests == {"planned": total, "asked": total, "reused": 0}


def test_a_budget_goes_where_scores_vary(sampled: Callable[..., Run]) -> None:
    cells = _cells(sampled(budget=900))
    counts = {code: cell.n for code, cell in cells.items()}
    assert 897 < sum(counts.values()) <= 900
    assert counts["hi"] < counts["de"] - 100
    widest = [cells[code].looks[-1].half_width or 1 for code in ("de", "sw")]
    assert max(widest) - min(widest) < 0.01
    both = _cells(sampled(budget=900, precision=8.0))
    assert {cell.stopped for cell in both.values()} == {"precision"}
    assert sum(cell.n for cell in both.values()) < 700


def test_samples_are_marked_where_scores_are_shown(sampled: Callable[..., Run]) -> None:
    for setting, option in (
        ({"precision": 6.0}, "--precision"),
        ({"budget": 900}, "--budget"),
        ({"limit": 9}, "--limit"),
    ):
        run = LoadedRun(sampled(**setting).path)
        assert option in "".join(sampled_items(run))
        assert option in run._repr_html_()
        table = system_table(material := read_material([run]))
        assert table is not None
        assert option.replace("--", "-{}-") in systems_latex(material, table)


@pytest.mark.thorough
@pytest.mark.parametrize("given", [{"precision": 6.0}, {"budget": 900}])
@pytest.mark.parametrize("blocks", [3, 40, 75])
def test_an_interrupted_run_ends_as_if_nothing_had_happened(
    sampled: Callable[..., Run],
    flaky: Any,
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, Any],
    blocks: int,
) -> None:
    whole = sampled(**given)
    asked: list[str] = []
    classify, left = flaky.Flaky.classify, [blocks]

    def interrupted(self: Any, inputs: Any, labels: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        asked.extend(item.text for item in inputs)
        return classify(self, inputs, labels)

    monkeypatch.setattr(flaky.Flaky, "classify", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sampled(**given, output=tmp_path / "stopped")
    status, _, err = cli("eval", "--resume", str(tmp_path / "stopped"))
    assert status == 0, err
    resumed = Run(tmp_path / "stopped")
    assert _plain(resumed) == _plain(whole)
    assert len(asked) == len(set(asked)) == sum(cell.n for cell in whole.cells)


@pytest.mark.thorough
@pytest.mark.parametrize("given", [{"precision": 6.0}, {"budget": 900}])
def test_larger_blocks_change_nothing(
    sampled: Callable[..., Run], flaky: Any, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]
) -> None:
    small = _plain(sampled(**given))
    monkeypatch.setattr(flaky.Flaky, "block_characters", lambda *_: 5_000)
    assert _plain(sampled(**given)) == small


def test_a_cell_that_fails_leaves_the_budget_to_the_others(
    data: Path, flaky: Any, run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    classify = flaky.Flaky.classify

    def failing(self: Any, inputs: Any, labels: Any) -> Any:
        if any(" of hi" in item.text for item in inputs):
            raise RuntimeError("out of order")
        return classify(self, inputs, labels)

    monkeypatch.setattr(flaky.Flaky, "classify", failing)
    nothing = {"recipe": None, "train_limit": None, "limit": None}
    cells = _cells(run("xnli:de+hi+sw", "flaky:it", **nothing, data=str(data), budget=600))
    assert (cells["hi"].status, cells["hi"].n) == ("failed", 0)
    assert 597 < cells["de"].n + cells["sw"].n <= 600


def test_budgets_that_cannot_be_kept_are_rejected(make_plan: Callable[..., Plan]) -> None:
    with pytest.raises(UsageError, match="3 cells, which need 20 items each"):
        make_plan("xnli:de+hi+sw", budget=59)
    with pytest.raises(UsageError, match="--shard"):
        make_plan("xnli:de+hi+sw", budget=100, shard="1/2")
    with pytest.raises(UsageError, match="'multichecklist' is evaluated by whole test cases"):
        make_plan("multichecklist:de", budget=1_000)
    with pytest.raises(UsageError, match="--precision must be at least 0"):
        make_plan("xnli:de", precision=-1.0)
