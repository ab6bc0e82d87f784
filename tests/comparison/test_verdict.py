"""The sentence of a comparison, from the tests that the comparison has made."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.analysis.comparison import Comparison, compare
from harness.registry.registry import Registry
from harness.reporting.blocks.chart import ForestChart
from harness.reporting.blocks.model import Charts, Fold, Note, Notes
from harness.reporting.comparison.comparison import forest_blocks, page_comparison, verdict_blocks
from harness.statistics import holm
from harness.storage.run_folder import Run

from .conftest import LABELS, Cells, difference_of, labelled, write_runs

MakeRun = Callable[..., Run]
GOLD = "abc" * 20
WRONG = "bca" * 20


def _texts(compared: Comparison) -> list[str]:
    found: list[str] = []
    for block in verdict_blocks(compared):
        assert isinstance(block, Note | Notes)
        found += [block.text] if isinstance(block, Note) else block.texts
    return found


def _charts(compared: Comparison) -> list[ForestChart]:
    blocks = [block for block in forest_blocks(compared) if isinstance(block, Charts)]
    return [chart for block in blocks for chart in block.charts if isinstance(chart, ForestChart)]


def test_one_task_has_one_sentence(make_run: MakeRun, registry: Registry) -> None:
    compared = compare(write_runs(make_run, GOLD, x=GOLD, y=GOLD[:30] + WRONG[30:]), registry.metrics)
    difference = difference_of(compared.tasks[0])
    assert difference.low is not None
    assert difference.high is not None
    [text] = _texts(compared)
    ends = f"({100 * difference.low:.1f} to {100 * difference.high:.1f})"
    assert text == f"xnli: x is 50.0 points above y {ends}, p < .001, 60 items in 1 language."


def test_what_is_not_significant_is_not_distinguishable(make_run: MakeRun, registry: Registry) -> None:
    compared = compare(write_runs(make_run, GOLD, x=GOLD, y="b" + GOLD[1:]), registry.metrics)
    [text] = _texts(compared)
    assert "are not distinguishable: +1.7 points" in text
    assert "p = 1.000" in text
    assert [row.direction for row in _charts(compared)[0].rows] == ["even"]


def test_several_tasks_are_counted_after_holm(make_run: MakeRun, registry: Registry) -> None:
    """Six clear differences and one of p = .03, which seven tests do not let pass."""
    answers = {"xnli": WRONG[:6] + GOLD[6:], **{f"task{n}": WRONG for n in range(6)}}
    runs = []
    for name, own in (("x", dict.fromkeys(answers, GOLD)), ("y", answers)):
        cells: Cells = [(task, "de", labelled(text, GOLD), {}) for task, text in own.items()]
        runs.append(make_run(name, cells, specs=dict.fromkeys(answers, LABELS)))
    compared = compare(runs, registry.metrics)
    adjusted = holm([difference_of(task).p or 0.0 for task in compared.tasks])
    decided = sum(p <= 0.05 for p in adjusted)
    first, *rest = _texts(compared)
    assert first.startswith(f"Of 7 tasks, x is above y on {decided}")
    assert len(rest) == 5
    [chart] = _charts(compared)
    assert [row.direction == "up" for row in chart.rows] == [bool(p <= 0.05) for p in adjusted]


def test_other_conditions_of_the_first_model_are_not_in_the_verdict(
    make_run: MakeRun, registry: Registry
) -> None:
    own = [("xnli", "de", labelled(GOLD, GOLD), {"seed": seed}) for seed in (1, 2)]
    other = [("xnli", "de", labelled(WRONG, GOLD), {"seed": seed}) for seed in (1, 2)]
    compared = compare([make_run("x", own), make_run("y", other)], registry.metrics)
    assert len(compared.tasks[0].systems) == 4
    [text] = _texts(compared)
    assert "x (seed=1) is 100.0 points above y (seed=1)" in text
    alone = compare([make_run("z", own)], registry.metrics)
    assert "z (seed=1) and z (seed=2) are not distinguishable" in _texts(alone)[0]


@pytest.mark.parametrize("count", [1, 2, 17])
def test_languages_are_under_a_task_that_is_alone(make_run: MakeRun, registry: Registry, count: int) -> None:
    codes = "ar bn de el en es et eu fa fi fr he hi id it ja sw".split()[:count]
    [chart] = _charts(compare(write_runs(make_run, GOLD, *codes, x=GOLD, y=WRONG), registry.metrics))
    assert len(chart.rows) == (3 if count == 2 else 1)


def test_runs_without_common_items_are_compared_one_by_one(make_run: MakeRun, registry: Registry) -> None:
    records = (labelled(GOLD, GOLD), labelled(WRONG, GOLD), labelled(GOLD, GOLD, inputs_digest="other"))
    runs = [
        make_run(name, [("xnli", "de", own, {})]) for name, own in zip(("x", "y", "z"), records, strict=True)
    ]
    found = page_comparison(runs, registry.metrics)
    [charts] = [block for block in found if isinstance(block, Charts)]
    assert [row.text for chart in charts.charts if isinstance(chart, ForestChart) for row in chart.rows] == [
        "+100.0"
    ]
    notes = [block.text for block in found if isinstance(block, Note)]
    assert "z and x are not compared: they have no answered items in common." in notes
    assert any(isinstance(block, Fold) and block.title == "Why" for block in found)
    assert page_comparison(runs[:1], registry.metrics) == []
