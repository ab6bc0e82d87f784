"""The diagnosis as charts: buckets of each run and of pairs, confusion, calibration, and the data by language."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness.reporting.html.layout import fold, notes, section, table
from harness.reporting.html.material import Material
from harness.reporting.html.weakness import Row, Weakness, by_attribute, interval_of
from harness.reporting.markup.chart import Series, bucket_bars, calibration
from harness.reporting.markup.element import Child, Element, element
from harness.reporting.markup.figure import number
from harness.reporting.markup.heatmap import HeatRow, heatmap
from harness.reporting.number import interval_text, signed

__all__ = ["diagnosis_section"]

LONGEST_LABEL = 10
WIDE = 6
"""A chart of more buckets has a row of its own."""
LEGEND = (
    "A bar is the score of the items, or spans, of a bucket, over all languages; XS to XL hold about as many items of "
    "each language. A whisker is the 95 % interval. Differences are exploratory; q is p after "
    "Benjamini and Hochberg; * marks significant differences in buckets of enough items."
)


def diagnosis_section(material: Material, weakness: Weakness) -> Element:
    """Return all charts of a diagnosis; where there is none, the sentence that says why."""
    parts: list[Child] = []
    for number_of_run, (run, rows) in enumerate(zip(material.runs, weakness.runs, strict=True)):
        inside = [*_bucket_folds(_whole(rows, "single"), weakness), *_labels(rows)]
        if inside:
            parts.append(fold(f"Buckets of {material.name(run)}", inside, is_open=number_of_run == 0))
    pairs = list(_bucket_folds(_whole(weakness.pairs, "pairwise"), weakness))
    parts.append(fold("Pairs of runs in buckets", pairs, is_open=True) if pairs else None)
    data = list(_data(weakness))
    parts.append(fold("How attributes are distributed over languages", data) if data else None)
    if not any(parts):
        parts = [element("p", "There is nothing to diagnose.")]
    else:
        parts.insert(0, element("p", LEGEND, class_="note"))
    return section("diagnosis", "Diagnosis", parts, notes(weakness.notes))


def _whole(rows: Sequence[Row], kind: str) -> list[Row]:
    """Return the rows over all languages, and those of one language for tasks that have only one."""
    own = [row for row in rows if row["kind"] == kind]
    joined = {(row["task"], str(row["view"])) for row in own if row["language"] is None}
    return [row for row in own if row["language"] is None or (row["task"], str(row["view"])) not in joined]


def _bucket_folds(rows: Sequence[Row], weakness: Weakness) -> Iterator[Element]:
    charts: dict[tuple[str, str], list[Child]] = {}
    for (task, system, attribute), buckets in by_attribute(rows).items():
        chart = (
            _single(buckets, attribute, weakness)
            if "value" in buckets[0]
            else _pair(buckets, attribute, weakness)
        )
        wide = "wide" if len(buckets) > WIDE else None
        charts.setdefault((task, system), []).append(element("div", chart, class_=wide))
    for (task, system), own in charts.items():
        count = f"{len(own)} {'attribute' if len(own) == 1 else 'attributes'}"
        yield fold(f"{task}, {system}: {count}", element("div", own, class_="charts"))


def _single(rows: Sequence[Row], attribute: str, weakness: Weakness) -> Element:
    series = Series(
        label=rows[0]["system"],
        values=tuple(_hundred(row["value"]) for row in rows),
        lows=tuple(_hundred(row["ci"][0] if row["ci"] else None) for row in rows),
        highs=tuple(_hundred(row["ci"][1] if row["ci"] else None) for row in rows),
    )
    return bucket_bars(
        _chart_title(rows, attribute, weakness),
        _labels_of(rows),
        [series],
        counts=[row["n"] for row in rows],
        high=100.0,
    )


def _pair(rows: Sequence[Row], attribute: str, weakness: Weakness) -> Element:
    first, second = rows[0]["systems"]
    series = [
        Series(label=name, values=tuple(_hundred(row["values"][index]) for row in rows))
        for index, name in enumerate((first, second))
    ]
    chart = bucket_bars(
        _chart_title(rows, attribute, weakness),
        _labels_of(rows),
        series,
        counts=[row["n"] for row in rows],
        high=100.0,
    )
    fields = [
        (
            f"{row['bucket']} {interval_of(row)}" if row["low"] is not None else str(row["bucket"]),
            f"{signed(row['difference'])}{' *' if row['significant'] else ''}",
            interval_text(row["ci"]),
            number(row["p"], 3),
            number(row["q"], 3),
        )
        for row in rows
    ]
    heads = ("bucket", "difference", "95 % interval", "p", "q")
    return element(
        "div", chart, table(f"{attribute}: {second} minus {first}", heads, fields, hidden_caption=True)
    )


def _chart_title(rows: Sequence[Row], attribute: str, weakness: Weakness) -> str:
    return f"{attribute}: {weakness.title(attribute)} ({rows[0]['metric']}, times 100)"


def _labels_of(rows: Sequence[Row]) -> list[str]:
    texts = [interval_of(row) for row in rows]
    return [text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…" for text in texts]


def _hundred(value: float | None) -> float | None:
    return None if value is None else value * 100


def _labels(rows: Sequence[Row]) -> Iterator[Element]:
    """Yield confusion and calibration of every system and task, over all languages."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if row["kind"] in {"confusion", "calibration"}:
            view = " ".join(f"{name}={value}" for name, value in row["view"].items())
            key = (row["kind"], f"{row['task']} {view}".strip(), row["system"])
            groups.setdefault(key, []).append(row)
    for (kind, task, system), own in groups.items():
        shown = _confusion(own, task) if kind == "confusion" else _calibration(own, task)
        yield fold(f"{task}, {system}: {kind}", shown)


def _confusion(rows: Sequence[Row], task: str) -> Element:
    counts: dict[tuple[str, str | None], int] = {}
    for row in rows:
        pair = (row["gold"], row["predicted"])
        counts[pair] = counts.get(pair, 0) + row["n"]
    gold = list(dict.fromkeys(label for label, _ in counts))
    given = list(dict.fromkeys(label for _, label in counts))
    shown = []
    for label in gold:
        own = [counts.get((label, other), 0) for other in given]
        values = tuple(100 * count / sum(own) if sum(own) else None for count in own)
        shown.append(HeatRow(label=f"{label} ({sum(own):,})", values=values))
    heads = ["unreadable" if label is None else label for label in given]
    caption = (
        f"{task}: of the items (or tokens) of each gold label, the share that got each label, in percent"
    )
    return heatmap(caption, heads, shown, corner="gold", ramp="share")


def _calibration(rows: Sequence[Row], task: str) -> Element:
    bins: dict[int, list[float]] = {}
    for row in rows:
        if row["n"]:
            sums = bins.setdefault(row["bin"], [0.0, 0.0, 0.0])
            sums[0] += row["n"] * row["confidence"]
            sums[1] += row["n"] * row["accuracy"]
            sums[2] += row["n"]
    points = [(sure / n, right / n, int(n)) for _, (sure, right, n) in sorted(bins.items())]
    errors = dict.fromkeys(row["language"] for row in rows)
    by_language = [
        (str(code), number(next(row["ece"] for row in rows if row["language"] == code), 3)) for code in errors
    ]
    caption = f"{task}: expected calibration error by language"
    return element(
        "div",
        calibration(f"{task}: confidence against accuracy, all languages", points),
        table(caption, ("language", "error"), by_language),
    )


def _data(weakness: Weakness) -> Iterator[Element]:
    """Yield a table per task: the mean of every attribute that is a number, by language."""
    tasks: dict[str, list[Row]] = {}
    for row in weakness.data:
        view = " ".join(f"{name}={value}" for name, value in row["view"].items())
        tasks.setdefault(f"{row['task']} {view}".strip(), []).append(row)
    for task, rows in tasks.items():
        means: dict[str, dict[str, Any]] = {}
        for row in rows:
            if row["mean"] is not None:
                means.setdefault(row["language"], {})[row["attribute"]] = row
        attributes = list(dict.fromkeys(name for own in means.values() for name in own))
        fields = [
            (code, *(_distribution(own.get(name)) for name in attributes)) for code, own in means.items()
        ]
        if fields:
            yield table(
                f"{task}: median (and quartiles) of each attribute", ("language", *attributes), fields
            )


def _distribution(row: Row | None) -> str:
    if row is None or row["quartiles"] is None:
        return "-"
    low, middle, high = row["quartiles"]
    return f"{middle:.3g} ({low:.3g} to {high:.3g})"
