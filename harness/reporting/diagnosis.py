"""A diagnosis as tables and charts: the worst and best buckets, all buckets, confusion, calibration, and the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from harness.analysis.diagnosis import LEAST_ITEMS, Diagnosis
from harness.reporting.chart import Bar, BarChart, CurveChart, Line, number
from harness.reporting.column import conditions_of
from harness.reporting.console import SAMPLE_WARNING
from harness.reporting.heat import SCALES, heat_class
from harness.reporting.model import Block, Charts, Field, Fold, Note, Notes, Table, rows_of
from harness.reporting.number import NOTHING, interval_text, percent, signed
from harness.reporting.weakness import Row, Weakness, by_attribute, edges_text, interval_of

__all__ = ["diagnosis_blocks", "page_blocks"]

SINGLE_LEGEND = (
    "Scores x100 of the worst and the best bucket of each attribute, of those with 30 items or more where there are "
    "two; brackets: 95 % interval. Exploratory: the buckets are not corrected for their number."
)
PAIR_LEGEND = (
    "Differences x100, second system minus first, where they are largest in either direction; brackets: 95 % cluster "
    "bootstrap interval. q: Benjamini-Hochberg over all buckets of this diagnosis; *: q <= 0.05, with 30 items or more."
)
DATA_LEGEND = "Mean, and quartiles: a quarter, half and three quarters of the items have at most this value."
PAGE_LEGEND = (
    "A bar is the score of the items, or spans, of a bucket, over all languages; XS to XL hold about as many items of "
    "each language. A whisker is the 95 % interval. Differences are exploratory; q is p after "
    "Benjamini and Hochberg; * marks significant differences in buckets of enough items."
)


def diagnosis_blocks(diagnosis: Diagnosis, *, each_language: bool = False) -> list[Block]:
    """Return the tables: those of all languages together or, where there is one or `each_language`, of each."""
    rows = diagnosis.rows(diagnosis.kind)
    if diagnosis.kind == "data":
        return [*_data_tables(rows), Notes(diagnosis.notes), Note(DATA_LEGEND, "note")]
    single = diagnosis.kind == "single"
    return [
        *([Note(SAMPLE_WARNING, "warning")] if diagnosis.sample else []),
        *(
            block
            for _, group in groupby(rows, key=_of_task)
            for block in _task(list(group), single=single, each_language=each_language)
        ),
        Notes(diagnosis.notes),
        Note(SINGLE_LEGEND if single else PAIR_LEGEND, "note"),
    ]


def _of_task(row: Row) -> tuple[str, ...]:
    names = row.get("systems") or [row["system"]]
    return (row["task"], str(row["view"]), row["protocol"], row["method"], *names)


def _task(rows: Sequence[Row], *, single: bool, each_language: bool) -> Iterator[Block]:
    first = rows[0]
    view = ", ".join(f"{name}={value}" for name, value in first["view"].items())
    task = f"{first['task']} ({view})" if view else first["task"]
    languages = list(dict.fromkeys(row["language"] for row in rows))
    shown = [None] if None in languages and not each_language else languages
    yield Note(f"{task} ({first['protocol']}, {first['method']})", "heading")
    yield Notes([first["system"]] if single else first["systems"])
    for language in shown:
        own = [row for row in rows if row["language"] == language]
        codes = " ".join(code for code in languages if code is not None)
        title = f"all of {codes}" if language is None else language
        yield Note(f"  {title}")
        yield _single_table(own, title) if single else _pair_table(own, title)
    if shown == [None]:
        yield Note("  --languages shows languages by themselves.", "note")
    yield Note("")


def _by_attribute(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    return ((name, list(group)) for name, group in groupby(rows, key=lambda row: str(row["attribute"])))


def _ends(rows: Sequence[Row], name: str) -> list[Row]:
    """Return the lowest and the highest bucket, those of few items only where fewer than two have more."""
    scored = [row for row in rows if row[name] is not None]
    large = [row for row in scored if row["n"] >= LEAST_ITEMS]
    ranked = sorted(large if len(large) > 1 else scored, key=lambda row: row[name])
    return [ranked[0], ranked[-1]] if ranked else []


def _single_table(rows: Sequence[Row], title: str) -> Table:
    found: list[tuple[str | Field, ...]] = [
        (
            name if word == "worst" else "",
            Field(text=word, style="bad" if word == "worst" else "good"),
            _bucket(row),
            percent(row["value"]),
            _bracketed(row["ci"]),
            str(row["n"]),
        )
        for name, own in _by_attribute(rows)
        for word, row in zip(("worst", "best"), _ends(own, "value"), strict=False)
    ]
    return Table(
        title=title, untitled=True, corner="attribute", folding=True, words=frozenset({0, 1}),
        heads=("", "bucket", rows[0]["metric"], "95 % interval", "n"), rows=rows_of(found),
    )  # fmt: skip


def _pair_table(rows: Sequence[Row], title: str) -> Table:
    found: list[tuple[str | Field, ...]] = []
    for name, own in _by_attribute(rows):
        for place, row in enumerate(_ends(own, "difference")):
            star = "*" if row["significant"] else ""
            difference = Field(
                text=f"{100 * row['difference']:+.1f}{star}",
                style="" if not star else "bad" if row["difference"] < 0 else "good",
            )
            values = map(percent, row["values"])
            found.append(
                (name if not place else "", _bucket(row), *values, difference, _bracketed(row["ci"]),
                 NOTHING if row["q"] is None else f"{row['q']:.3f}", str(row["n"]))
            )  # fmt: skip
    return Table(
        title=title, untitled=True, corner="attribute", folding=True, words=frozenset({0}),
        heads=("bucket", "first", "second", "diff.", "95 % interval", "q", "n"), rows=rows_of(found),
    )  # fmt: skip


def _bucket(row: Row) -> str:
    edges = edges_text(row)
    return f"{row['bucket']} {edges}" if edges else str(row["bucket"])


def _bracketed(bounds: Sequence[float] | None) -> str:
    return NOTHING if bounds is None else f"[{percent(bounds[0])}, {percent(bounds[1])}]"


def _data_tables(rows: Sequence[Row]) -> Iterator[Block]:
    for task, group in groupby(rows, key=lambda row: str(row["task"])):
        found = []
        for name, own in _by_attribute(sorted(group, key=lambda row: str(row["attribute"]))):
            for place, row in enumerate(own):
                numbers, frequent = [NOTHING] * 4, ""
                if row["quartiles"] is not None:
                    numbers = [f"{value:.3g}" for value in (row["mean"], *row["quartiles"])]
                else:
                    frequent = ", ".join(
                        f"{str(value)[:12]} {count}" for value, count in row["histogram"][:2]
                    )
                found.append(("" if place else name, row["language"], str(row["n"]), *numbers, frequent))
        heads = ("", "n", "mean", "25 %", "50 %", "75 %", "most frequent")
        yield Table(
            title=task, corner="attribute", heads=heads, words=frozenset({0}), folding=True,
            rows=rows_of(found),
        )  # fmt: skip


def page_blocks(names: Sequence[str], weakness: Weakness) -> list[Block]:
    """Return all charts of a diagnosis for a page; where there is none, the sentence that says why.

    Args:
        names: What the report calls the runs of the diagnosis.
        weakness: Their diagnosis.
    """
    parts: list[Block] = []
    for place, (name, rows) in enumerate(zip(names, weakness.runs, strict=True)):
        inside = [*_bucket_folds(_whole(rows, "single"), weakness), *_labels(rows)]
        if inside:
            parts.append(Fold(title=f"Buckets of {name}", blocks=inside, is_open=place == 0))
    pairs = list(_bucket_folds(_whole(weakness.pairs, "pairwise"), weakness))
    if pairs:
        parts.append(Fold(title="Pairs of runs in buckets", blocks=pairs, is_open=True))
    if data := list(_data(weakness)):
        parts.append(Fold(title="How attributes are distributed over languages", blocks=data))
    shown = [Note(PAGE_LEGEND, "note"), *parts] if parts else [Note("There is nothing to diagnose.")]
    return [*shown, Notes(weakness.notes)]


def _whole(rows: Sequence[Row], kind: str) -> list[Row]:
    """Return the rows over all languages, and those of one language for tasks that have only one."""
    own = [row for row in rows if row["kind"] == kind]
    joined = {(row["task"], str(row["view"])) for row in own if row["language"] is None}
    return [row for row in own if row["language"] is None or (row["task"], str(row["view"])) not in joined]


def _bucket_folds(rows: Sequence[Row], weakness: Weakness) -> Iterator[Block]:
    tasks: dict[tuple[str, str], list[tuple[str, list[Row]]]] = {}
    for (task, system, attribute), buckets in by_attribute(rows).items():
        tasks.setdefault((task, system), []).append((attribute, buckets))
    for (task, system), own in tasks.items():
        charts = tuple(_chart(buckets, attribute, weakness) for attribute, buckets in own)
        tables = [_pair_details(buckets, name) for name, buckets in own if "values" in buckets[0]]
        title = f"{task}, {system}: {len(own)} {'attribute' if len(own) == 1 else 'attributes'}"
        yield Fold(title=title, blocks=[Charts(charts=charts), *tables])


def _chart(rows: Sequence[Row], attribute: str, weakness: Weakness) -> BarChart:
    systems = rows[0].get("systems") or ()
    bars = []
    for row in rows:
        label = f"{interval_of(row)} n={row['n']:,}"
        if systems:
            bars += [
                Bar(label="" if place else label, value=_hundred(value), group=place)
                for place, value in enumerate(row["values"])
            ]
        else:
            low, high = map(_hundred, row["ci"] or (None, None))
            bars.append(Bar(label=label, value=_hundred(row["value"]), low=low, high=high, n=row["n"]))
    title = f"{attribute}: {weakness.title(attribute)} ({rows[0]['metric']}, times 100)"
    return BarChart(title=title, bars=tuple(bars), groups=tuple(systems), high=100.0, width=460, label=150)


def _pair_details(rows: Sequence[Row], attribute: str) -> Table:
    first, second = rows[0]["systems"]
    found = [
        (
            f"{row['bucket']} {interval_of(row)}" if row["low"] is not None else str(row["bucket"]),
            f"{signed(row['difference'])}{' *' if row['significant'] else ''}",
            interval_text(row["ci"]),
            number(row["p"], 3),
            number(row["q"], 3),
        )
        for row in rows
    ]
    heads = ("difference", "95 % interval", "p", "q")
    return Table(
        title=f"{attribute}: {second} minus {first}", corner="bucket", heads=heads, rows=rows_of(found)
    )


def _hundred(value: float | None) -> float | None:
    return None if value is None else value * 100


def _labels(rows: Sequence[Row]) -> Iterator[Block]:
    """Yield confusion and calibration of every system and task, over all languages."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if row["kind"] in {"confusion", "calibration"}:
            key = (row["kind"], f"{row['task']} {conditions_of(row['view'])}".strip(), row["system"])
            groups.setdefault(key, []).append(row)
    for (kind, task, system), own in groups.items():
        blocks = [_confusion(own, task)] if kind == "confusion" else _calibration(own, task)
        yield Fold(title=f"{task}, {system}: {kind}", blocks=blocks)


def _confusion(rows: Sequence[Row], task: str) -> Table:
    counts: dict[tuple[str, str | None], int] = {}
    for row in rows:
        pair = (row["gold"], row["predicted"])
        counts[pair] = counts.get(pair, 0) + row["n"]
    given = list(dict.fromkeys(label for _, label in counts))
    found: list[tuple[str | Field, ...]] = []
    for label in dict.fromkeys(label for label, _ in counts):
        own = [counts.get((label, other), 0) for other in given]
        shares = [count / sum(own) if sum(own) else None for count in own]
        found.append((f"{label} ({sum(own):,})", *(_share(share) for share in shares)))
    return Table(
        title=f"{task}: of the items (or tokens) of each gold label, the share that got each label, in percent",
        corner="gold",
        heads=tuple("unreadable" if label is None else label for label in given),
        rows=rows_of(found),
        style="heat",
        ramp="share",
    )


def _share(share: float | None) -> Field:
    return Field(text=percent(share), shade=heat_class(share, *SCALES["share"], ramp="share"))


def _calibration(rows: Sequence[Row], task: str) -> list[Block]:
    bins: dict[int, list[float]] = {}
    for row in rows:
        if row["n"]:
            sums = bins.setdefault(row["bin"], [0.0, 0.0, 0.0])
            for place, amount in enumerate((row["confidence"], row["accuracy"], 1.0)):
                sums[place] += row["n"] * amount
    points = tuple((sure / n, right / n) for _, (sure, right, n) in sorted(bins.items()))
    total = sum(n for *_, n in bins.values())
    error = sum(abs(sure - right) for sure, right, _ in bins.values()) / total if total else None
    chart = CurveChart(
        title=f"{task}: confidence against accuracy, all languages",
        lines=(
            Line(label="equal", points=((0.0, 0.0), (1.0, 1.0)), stroke="dashed"),
            Line(label="items", points=points),
        ),
        x_label="confidence",
        y_label="accuracy",
        x_digits=3,
        y_digits=3,
        summary=f"Expected calibration error {number(error, 3)} over {total:,.0f} items",
    )
    errors: dict[str, str] = {}
    for row in rows:
        errors.setdefault(str(row["language"]), number(row["ece"], 3))
    table = Table(
        title=f"{task}: expected calibration error by language",
        corner="language",
        heads=("error",),
        rows=rows_of(errors.items()),
    )
    return [Charts(charts=(chart,)), table]


def _data(weakness: Weakness) -> Iterator[Block]:
    """Yield a table per task: the quartiles of every attribute that is a number, by language."""
    tasks: dict[str, dict[str, dict[str, Any]]] = {}
    for row in weakness.data:
        if row["mean"] is not None:
            task = f"{row['task']} {conditions_of(row['view'])}".strip()
            tasks.setdefault(task, {}).setdefault(row["language"], {})[row["attribute"]] = row
    for task, languages in tasks.items():
        attributes = list(dict.fromkeys(name for own in languages.values() for name in own))
        yield Table(
            title=f"{task}: median (and quartiles) of each attribute",
            corner="language",
            heads=tuple(attributes),
            rows=rows_of(
                (code, *(_distribution(own.get(name)) for name in attributes))
                for code, own in languages.items()
            ),
        )


def _distribution(row: Mapping[str, Any] | None) -> str:
    if row is None or row["quartiles"] is None:
        return NOTHING
    low, middle, high = row["quartiles"]
    return f"{middle:.3g} ({low:.3g} to {high:.3g})"
