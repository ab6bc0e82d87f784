"""The given runs compared item by item: differences with their intervals, by task and by language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.analysis.comparison import Comparison, TaskComparison, compare
from harness.analysis.significance import Difference, Scores
from harness.errors import HarnessError
from harness.languages.table import recorded_name
from harness.reporting.html.layout import notes, section, table
from harness.reporting.html.material import Material
from harness.reporting.markup.element import Element, element
from harness.reporting.markup.heatmap import HeatRow, heatmap
from harness.reporting.number import NOTHING, percent, signed

if TYPE_CHECKING:
    from harness.registry.registry import Registry

__all__ = ["pair_section"]

LEGEND = (
    "Differences are to the first system, on the items that all have; intervals are paired and count items of one "
    "cluster as one draw."
)


def pair_section(material: Material, registry: Registry) -> Element | None:
    """Return the comparison of the given runs, or None where there is one run only."""
    if len(material.runs) < 2:
        return None
    try:
        compared = compare(material.runs, registry.metrics)
    except HarnessError as error:
        return section("comparison", "Comparison", element("p", f"The runs are not compared: {error}"))
    return section(
        "comparison",
        "Comparison",
        element("p", LEGEND, class_="note"),
        [_task(task) for task in compared.tasks],
        _by_language(compared, material),
        notes(compared.notes),
    )


def _task(task: TaskComparison) -> Element:
    heads = (
        "system",
        "metric",
        "score",
        "difference",
        "95 % interval",
        "p",
        "p (Holm)",
        "won/lost/even",
        "ranks",
    )
    rows = [
        (
            name,
            scores.metric,
            percent(scores.values[index]),
            *_difference(scores, index),
            _ranks(scores, index),
        )
        for scores in task.scores
        for index, name in enumerate(task.systems)
    ]
    caption = f"{task.title}: {task.items:,} common items in {len(task.languages)} languages"
    return element("div", table(caption, heads, rows, texts={1}), notes(task.notes))


def _difference(scores: Scores, index: int) -> tuple[str, str, str, str, str]:
    found = scores.differences[index]
    if found is None:
        return (NOTHING,) * 5
    counts = (found.won, found.lost, found.even)
    return (
        signed(found.value),
        _interval(found),
        _p_text(found.p),
        _p_text(found.p_holm),
        NOTHING if None in counts else "/".join(map(str, counts)),
    )


def _interval(found: Difference) -> str:
    if found.low is None or found.high is None:
        return NOTHING
    return f"{signed(found.low)} to {signed(found.high)}"


def _ranks(scores: Scores, index: int) -> str:
    if scores.ranks is None:
        return NOTHING
    first, last = scores.ranks[index]
    return str(first) if first == last else f"{first} to {last}"


def _p_text(p: float | None) -> str:
    return NOTHING if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def _by_language(compared: Comparison, material: Material) -> list[Element]:
    """Return for every further system a table of its differences: languages against tasks."""
    names = list(dict.fromkeys(name for task in compared.tasks for name in task.systems[1:]))
    specs = [spec for run in material.runs for spec in run.manifest["tasks"].values()]
    found = []
    for name in names:
        tasks = [task for task in compared.tasks if name in task.systems[1:]]
        codes = sorted({part.language for task in tasks for part in task.languages})
        rows = []
        for code in codes:
            label = f"{recorded_name(code, specs)} ({code})"
            known = [_in_language(task, name, code) for task in tasks]
            values = tuple(None if one is None else one.value * 100 for one in known)
            rows.append(HeatRow(label=label, values=values, reaches=tuple(map(_reach, known))))
        first = " / ".join(dict.fromkeys(task.systems[0] for task in tasks))
        caption = f"{name} minus {first} by language, points"
        heads = [f"{task.title} {task.scores[0].metric}" for task in tasks]
        found.append(heatmap(caption, heads, rows, corner="language", ramp="difference"))
    return found


def _in_language(task: TaskComparison, name: str, code: str) -> Difference | None:
    for part in task.languages:
        if part.language == code:
            return part.scores[0].differences[task.systems.index(name)]
    return None


def _reach(found: Difference | None) -> float | None:
    if found is None or found.low is None or found.high is None:
        return None
    return 100 * max(found.value - found.low, found.high - found.value)
