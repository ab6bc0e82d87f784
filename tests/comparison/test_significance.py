"""Tests between systems against scipy, and against what was counted by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from harness.analysis.comparison import compare
from harness.errors import UsageError
from harness.registry.registry import Registry
from harness.reporting.comparison.comparison import comparison_blocks, comparison_rows
from harness.reporting.render.console import render_blocks
from harness.storage.records import ItemRecord
from harness.storage.run_folder import Run

from .conftest import LABELS, TAGS, Cells, difference_of, item, labelled, write_runs

MakeRun = Callable[..., Run]
Cli = Callable[..., tuple[int, str, str]]


def _answers(gold: str, wrong: range) -> str:
    return "".join("b" if number in wrong else letter for number, letter in enumerate(gold))


def test_right_and_wrong_items_are_those_of_an_exact_binomial_test(
    make_run: MakeRun, registry: Registry
) -> None:
    gold = "a" * 60
    same_text = _answers(gold, range(20))
    runs = write_runs(make_run, gold, x=same_text, y=_answers(gold, range(14, 24)), z=same_text)
    [task] = compare(runs, registry.metrics).tasks
    [scores] = task.scores
    better, same = difference_of(task), difference_of(task, 2)
    # y has 0 to 13 right where x does not, x has 20 to 23.
    assert (better.won, better.lost, better.even) == (4, 14, 42)
    exact = stats.binomtest(4, 18, 0.5).pvalue
    assert better.mcnemar == pytest.approx(exact)
    # Signs of single items that are +-1 are the same test, by simulation.
    assert better.p == pytest.approx(exact, abs=4 * np.sqrt(exact / 9_999))
    assert better.p is not None and better.p_holm == pytest.approx(2 * better.p)
    assert (same.p, same.p_holm, same.mcnemar, same.won) == (1.0, 1.0, 1.0, 0)
    is_tied = 2 * better.p >= 0.05
    assert scores.best == (is_tied, True, is_tied)
    assert scores.ranks is not None
    assert scores.ranks[1] == (1, 1)
    assert scores.ranks[0] == scores.ranks[2]


def test_clusters_are_swapped_whole(make_run: MakeRun, registry: Registry) -> None:
    runs = []
    for name, wrong in (("x", range(12)), ("y", range(0))):
        letters = enumerate(_answers("a" * 30, wrong))
        records = [item(str(number), letter, "a", cluster=str(number // 6)) for number, letter in letters]
        runs.append(make_run(name, [("xnli", "de", records, {})]))
    [task] = compare(runs, registry.metrics).tasks
    difference = difference_of(task)
    # Of five clusters two differ, by six items each: two of the four signs are as extreme.
    assert (difference.p, difference.mcnemar) == (0.5, None)
    assert (difference.won, difference.lost, difference.even) == (0, 12, 18)


def test_a_p_that_few_clusters_bound_is_reported_with_its_bound(
    make_run: MakeRun, registry: Registry
) -> None:
    gold = "abcabc"
    texts = {"x": "aaaaaa", "y": gold, "z": "cccccc", "same": gold}
    specs = {"xnli": {**LABELS, "parallel": True}}
    runs = [
        make_run(name, [("xnli", code, labelled(text, gold), {}) for code in ("de", "sw", "hi")], specs=specs)
        for name, text in texts.items()
    ]
    compared = compare(runs[:3], registry.metrics)
    difference = difference_of(compared.tasks[0])
    assert difference.high is not None
    # Four of six items differ, all to the better: 2 of 2^4 swaps are as extreme, though the interval excludes 0.
    assert (difference.discordant, difference.p, difference.p_holm) == (4, 0.125, 0.25)
    assert difference.high < 0
    [note] = compared.tasks[0].notes
    assert "x" in note
    assert "0.125 for y and 0.125 for z (after Holm 0.250)" in note
    console = Console(width=100)
    with console.capture() as captured:
        console.print(render_blocks(comparison_blocks(compared), width=100))
    rows = [line.split()[:2] for line in captured.get().partition(" rank ")[2].splitlines()]
    ranks = [row for row in rows if len(row) == 2 and row[0] in "ABC"]
    assert ranks[:3] == [["A", "2-3?"], ["B", "1="], ["C", "2-3?"]]
    [equal] = compare([runs[1], runs[3]], registry.metrics).tasks
    assert (equal.scores[0].out_of_reach, equal.notes) == ((False, False), ())


def test_many_clusters_bound_nothing(make_run: MakeRun, registry: Registry) -> None:
    gold = "a" * 30
    runs = write_runs(make_run, gold, x=_answers(gold, range(8)), y=gold, z=_answers(gold, range(2)))
    [task] = compare(runs, registry.metrics).tasks
    assert task.scores[0].out_of_reach == (False, False, True), "z differs from y in two items"
    [note] = task.notes
    # 2.90 standard errors of independent items have 80 % power, as scipy's noncentral t says.
    limit, factor = stats.t.ppf(0.975, 29), 2.8987
    assert stats.nct.sf(limit, 29, factor) == pytest.approx(0.8, abs=1e-4)
    for name, own in zip("yz", task.scores[0].differences[1:], strict=True):
        assert own is not None
        assert own.se is not None
        assert f"{factor * own.se * 100:.1f} points for {name} (30 draws)" in note


def test_set_level_metrics_count_the_clusters_that_differ(make_run: MakeRun, registry: Registry) -> None:
    gold = ["B-PER", "O"]
    runs = []
    for name, wrong in (("x", 0), ("y", 4)):
        records = [item(str(n), ["O", "O"] if n < wrong else gold, gold) for n in range(6)]
        runs.append(make_run(name, [("udpos", "de", records, {})], specs={"udpos": TAGS}))
    [task] = compare(runs, registry.metrics).tasks
    assert (difference_of(task).discordant, difference_of(task).p) == (4, 0.125)


@pytest.mark.parametrize(("parallel", "p"), [(False, 2 / 2**12), (True, 2 / 2**6)])
def test_translations_are_flipped_together(
    make_run: MakeRun, registry: Registry, parallel: bool, p: float
) -> None:
    specs = {"xnli": {**LABELS, "parallel": parallel}}
    runs = []
    for name, wrong in (("x", range(6)), ("y", range(0))):
        records = labelled(_answers("a" * 20, wrong), "a" * 20)
        runs.append(make_run(name, [("xnli", code, records, {}) for code in ("de", "sw")], specs=specs))
    [task] = compare(runs, registry.metrics).tasks
    assert difference_of(task).p == p
    assert [difference_of(part).p for part in task.languages] == [2 / 2**6] * 2


def _sentences(right: int, total: int = 40) -> list[ItemRecord]:
    gold = ["NOUN", "VERB"]
    return [item(str(number), gold if number < right else ["VERB", "NOUN"], gold) for number in range(total)]


def test_set_level_metrics_have_paired_intervals_and_tests(make_run: MakeRun, registry: Registry) -> None:
    runs = []
    for name, right in (("x", 20), ("y", 30)):
        cells: Cells = [("udpos", code, _sentences(right), {}) for code in ("de", "sw")]
        runs.append(make_run(name, cells, specs={"udpos": TAGS}))
    [task] = compare(runs, registry.metrics).tasks
    [scores] = task.scores
    difference = difference_of(task)
    assert difference.low is not None
    assert difference.high is not None
    assert difference.low < difference.value == -0.25 < difference.high < 0
    assert difference.method == "paired bootstrap"
    # Of each language ten sentences differ, all in favour of y: exact by language, by simulation together.
    for part in task.languages:
        assert difference_of(part).p == pytest.approx(2 / 2**10, abs=0.002)
    assert difference.p == pytest.approx(1e-4, abs=1e-4)
    assert scores.best == (False, True)
    assert scores.ranks == ((2, 2), (1, 1))


def test_rows_carry_all_tests(make_run: MakeRun, registry: Registry) -> None:
    rows = comparison_rows(compare(write_runs(make_run, "aabb", x="aabb", y="aaba"), registry.metrics).tasks)
    assert [row["language"] for row in rows] == [None, None, "de", "de"]
    assert {name: rows[1][name] for name in ("p", "p_holm", "mcnemar")} == dict.fromkeys(
        ("p", "p_holm", "mcnemar"), 1.0
    )
    assert (rows[1]["won"], rows[1]["lost"], rows[1]["even"]) == (1, 0, 3)
    assert [row["tied_with_best"] for row in rows] == [True, True, None, None]
    assert [row["rank"] for row in rows] == [[1, 1], [1, 2], [1, 1], [1, 2]]
    assert (rows[0]["p"], rows[0]["se"]) == (None, None)


@pytest.mark.parametrize(
    ("second", "further", "difference"),
    [
        ("aab", {}, "Items in de: 1 "),
        ("aabb", {"version": 2}, "1 and 2"),
        ("aabb", {"data": {"digest": "f1"}}, "test data in de"),
        ("aabb", {}, None),
    ],
)
def test_strict_rejects_what_was_not_asked_the_same(
    make_run: MakeRun, registry: Registry, second: str, further: dict[str, object], difference: str | None
) -> None:
    usual = {"version": 1, "data": {"digest": "f0"}}
    runs = [
        make_run("x", [("xnli", "de", labelled("aabb", "aabb"), usual)]),
        make_run("y", [("xnli", "de", labelled(second, "aabb"[: len(second)]), {**usual, **further})]),
    ]
    compare(runs, registry.metrics)
    if difference is None:
        assert compare(runs, registry.metrics, strict=True).tasks[0].items == 4
    else:
        with pytest.raises(UsageError, match=f"xnli: .*{difference}.*--strict"):
            compare(runs, registry.metrics, strict=True)


@pytest.mark.parametrize(("answers", "cluster"), [("a", None), ("aabb", "c")])
def test_one_item_and_one_cluster_have_no_interval(
    make_run: MakeRun, registry: Registry, answers: str, cluster: str | None
) -> None:
    runs = [
        make_run(name, [("xnli", "de", labelled(text, answers, cluster=cluster), {})])
        for name, text in (("x", answers), ("y", "b" * len(answers)))
    ]
    difference = difference_of(compare(runs, registry.metrics).tasks[0])
    assert (difference.low, difference.method, difference.p) == (None, "one cluster", 1.0)


def test_the_command_takes_strict(make_run: MakeRun, cli: Cli, tmp_path: Path) -> None:
    for name, text in (("x", "aabb"), ("y", "aab")):
        make_run(name, [("xnli", "de", labelled(text, "aabb"[: len(text)]), {})])
    status, out, err = cli("compare", tmp_path / "x", tmp_path / "y", "--strict")
    assert (status, out) == (2, "")
    assert "the systems were not asked the same" in err
