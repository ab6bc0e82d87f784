"""Systems side by side: the mean of every task with its interval, and strips of one dot per language."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from harness.languages.table import known_languages
from harness.reporting.chart import Bar, BarChart, Dot
from harness.reporting.column import Column
from harness.reporting.material import Material
from harness.reporting.model import Block, Charts, Note

__all__ = ["system_blocks"]

ENGLISH = "en"
UNIT = "score x100"
LEGEND = (
    "One dot per language, coloured by its family; English has a ring. A whisker is the 95 % interval of a mean, where "
    "the run has one. Published scores are those of the whole test sets: a published mean is the one that was printed, "
    "also where scores of only some languages were. ~ over other cells, § under another protocol or prompt: the "
    "overview says which."
)
PUBLISHED_PROTOCOLS = {"human"}
"""Published scores of it are shown next to those of any protocol."""


def system_blocks(material: Material) -> list[Block]:
    """Return a chart of intervals and a strip plot for every column of the summary; nothing without columns."""
    charts = [
        Charts(charts=(chart,))
        for column in material.columns
        for chart in (_intervals(material, column), _strips(material, column))
    ]
    return [Note(LEGEND, "note"), *charts] if charts else []


def _intervals(material: Material, column: Column) -> BarChart:
    bars = []
    for number, run in enumerate(material.every):
        mean = material.mean(run, column)
        if mean.row is not None:
            low, high = mean.row.ci or (None, None)
            bars.append(
                Bar(
                    label=_short(material.name(run)) + mean.mark,
                    value=mean.row.value * 100,
                    low=None if low is None else low * 100,
                    high=None if high is None else high * 100,
                    n=mean.row.languages,
                    group=number,
                )
            )
    bars += [
        Bar(label=f"published {label}", value=value, group=7)
        for label, value in _published_means(material, column)
    ]
    title = f"{column.plain_title}: means over languages"
    return BarChart(title=title, bars=tuple(bars), high=100.0, unit=UNIT)


def _strips(material: Material, column: Column) -> BarChart:
    families = {code: (name, family) for code, name, family in material.languages}
    groups = list(material.families)
    bars = []
    for label, scores, mean in _rows(material, column):
        dots = tuple(_dots(scores, families, groups))
        bars.append(Bar(label=label, value=mean, dots=dots, note=_count(material, column, scores)))
    return BarChart(
        title=f"{column.plain_title}: languages",
        bars=tuple(bars),
        groups=tuple(groups),
        low=None,
        unit=UNIT,
        ring="English",
    )


def _rows(material: Material, column: Column) -> Iterator[tuple[str, dict[str, float], float]]:
    """Yield name, scores by language and mean of every system: a published mean is the one that was printed."""
    for run in material.every:
        mean = material.mean(run, column)
        if mean.row is not None:
            scores = {code: value * 100 for code, value in mean.row.by_language.items()}
            yield _short(material.name(run)) + mean.mark, scores, mean.row.value * 100
    for item in material.published:
        scores = item.get("languages", {}).get(column.task, {}).get(column.metric)
        if scores and _comparable(item["protocol"], column):
            yield f"published {item['label']}", scores, item["scores"][column.task][column.metric]


def _count(material: Material, column: Column, scores: Collection[str]) -> str:
    """Return ``1 of 38 languages``; empty where no language of the task's mean is missing."""
    specs = (run.manifest.tasks[column.task] for run in material.every if column.task in run.manifest.tasks)
    whole = next((spec.published_languages for spec in specs if spec.published_languages), ())
    known = sum(code in scores for code in whole)
    return f"{known} of {len(whole)} languages" if known < len(whole) else ""


def _dots(scores: dict[str, float], families: dict[str, tuple[str, str]], groups: list[str]) -> Iterator[Dot]:
    """Yield the languages of one row; a family that is new is added to the groups."""
    table = known_languages()
    for code, value in scores.items():
        name, family = families.get(code) or (
            (table.get(code).name, table.get(code).family) if code in table else (code, "other")
        )
        if family not in groups:
            groups.append(family)
        yield Dot(label=name, group=groups.index(family), value=value, marked=code == ENGLISH)


def _published_means(material: Material, column: Column) -> Iterator[tuple[str, float]]:
    for item in material.published:
        value = item["scores"].get(column.task, {}).get(column.metric)
        if value is not None and _comparable(item["protocol"], column):
            yield item["label"], value


def _comparable(protocol: str, column: Column) -> bool:
    return not column.view and protocol in {column.protocol, *PUBLISHED_PROTOCOLS}


def _short(name: str, most: int = 30) -> str:
    """Return a name that fits next to a chart; the ends of a path say most."""
    return name if len(name) <= most else f"{name[:8]}…{name[-(most - 9) :]}"
