"""Systems side by side: the mean of every task with its interval, and strips of one dot per language."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from harness.languages.table import known_languages
from harness.reporting.column import Column
from harness.reporting.html.layout import section
from harness.reporting.html.material import Material
from harness.reporting.markup.chart import Bar, Dot, interval_bars, strip_plot
from harness.reporting.markup.element import Element, element

__all__ = ["system_section"]

ENGLISH = "en"
PUBLISHED_PROTOCOLS = {"human"}
"""Published scores of it are shown next to those of any protocol."""


def system_section(material: Material) -> Element | None:
    """Return a chart of intervals and a strip plot for every column of the summary; None without columns."""
    charts = [(_intervals(material, column), _strips(material, column)) for column in material.columns]
    if not charts:
        return None
    legend = (
        "One dot per language, coloured by its family; English has a ring. A whisker is the 95 % interval of a mean, "
        "where the run has one. Published scores are those of the whole test sets: a published mean is the one "
        "that was printed, also where scores of only some languages were. "
        "~ over other cells, § under another protocol or prompt: the overview says which."
    )
    return section("systems", "Systems", element("p", legend, class_="note"), charts)


def _intervals(material: Material, column: Column) -> Element:
    bars = []
    for number, run in enumerate(material.every):
        mean = material.mean(run, column)
        row = mean.row
        if row is not None:
            low, high = row.get("ci") or (None, None)
            bars.append(
                Bar(
                    label=_short(material.name(run)) + mean.mark,
                    value=row["value"] * 100,
                    low=None if low is None else low * 100,
                    high=None if high is None else high * 100,
                    n=row["languages"],
                    group=number,
                )
            )
    bars += [
        Bar(label=f"published {label}", value=value, group=7)
        for label, value in _published_means(material, column)
    ]
    return interval_bars(f"{_title(column)}: means over languages", bars, high=100.0, unit="score x100")


def _strips(material: Material, column: Column) -> Element:
    families = {code: (name, family) for code, name, family in material.languages}
    dots: list[Dot] = []
    means: dict[str, float] = {}
    counts: dict[str, str] = {}
    for label, scores, mean in _rows(material, column):
        dots += _dots(label, scores, families)
        means[label] = mean
        counts[label] = _count(material, column, scores)
    groups = sorted({*material.families, *(dot.group for dot in dots)})
    title = f"{_title(column)}: languages"
    return strip_plot(
        title, dots, rows=list(means), groups=groups, unit="score x100", means=means, row_notes=counts
    )


def _rows(material: Material, column: Column) -> Iterator[tuple[str, dict[str, float], float]]:
    """Yield name, scores by language and mean of every system: a published mean is the one that was printed."""
    for run in material.every:
        mean = material.mean(run, column)
        if mean.row is not None:
            scores = {code: value * 100 for code, value in mean.row["by_language"].items()}
            yield _short(material.name(run)) + mean.mark, scores, mean.row["value"] * 100
    for item in material.published:
        scores = item.get("languages", {}).get(column.task, {}).get(column.metric)
        if scores and _comparable(item["protocol"], column):
            yield f"published {item['label']}", scores, item["scores"][column.task][column.metric]


def _count(material: Material, column: Column, scores: Collection[str]) -> str:
    """Return ``1 of 38 languages``; empty where no language of the task's mean is missing."""
    specs = (run.manifest["tasks"].get(column.task, {}) for run in material.every)
    whole = next((codes for spec in specs if (codes := spec.get("published_languages"))), ())
    known = sum(code in scores for code in whole)
    return f"{known} of {len(whole)} languages" if known < len(whole) else ""


def _dots(row: str, scores: dict[str, float], families: dict[str, tuple[str, str]]) -> Iterator[Dot]:
    table = known_languages()
    for code, value in scores.items():
        name, family = families.get(code) or (
            (table.get(code).name, table.get(code).family) if code in table else (code, "other")
        )
        yield Dot(row=row, label=name, group=family, value=value, marked=code == ENGLISH)


def _published_means(material: Material, column: Column) -> Iterator[tuple[str, float]]:
    for item in material.published:
        value = item["scores"].get(column.task, {}).get(column.metric)
        if value is not None and _comparable(item["protocol"], column):
            yield item["label"], value


def _comparable(protocol: str, column: Column) -> bool:
    return not column.view and protocol in {column.protocol, *PUBLISHED_PROTOCOLS}


def _title(column: Column) -> str:
    return column.title.replace("\n", " ")


def _short(name: str, most: int = 30) -> str:
    """Return a name that fits next to a chart; the ends of a path say most."""
    return name if len(name) <= most else f"{name[:8]}…{name[-(most - 9) :]}"
