"""Layer curves and tables of probes: scores of layers, controls and random weights, gender variants, and depth."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from harness.reporting import (
    BLANK,
    Block,
    Charts,
    CurveChart,
    Line,
    Table,
    TableRow,
    percent,
    signed,
    sparkline,
)
from harness_probing.reporting.probe import METRIC, Probe, at_layer

LABEL_WIDTH = 30
MANY_LAYERS = 33
"""From so many layers on, the axis of a figure does not number each."""
Point = tuple[int, float]
Stroke = Literal["solid", "dashed", "dotted"]
UNIT = "weighted F1 x100"
STROKES: tuple[tuple[str, Stroke, str], ...] = (
    ("probe", "solid", ""),
    ("control", "dashed", "control task"),
    ("random", "dotted", "encoder with random weights"),
)
CURVE_NOTE = (
    "One character per layer, from the embeddings; the curves of a row share their scale from low to high. Weighted F1 "
    "x100."
)

EMBEDDINGS = 0
NAMED = 3
"""Probes that a note names."""
BASELINE_HEADS = (
    "best",
    "majo-\nrity",
    "word\ntype",
    "random\nencoder",
    "layer\n0",
    "selec-\ntivity",
    "compr.",
    "gravity",
)
DETAIL_HEADS = (
    "weighted\nF1",
    "SD",
    "macro\nF1",
    "accu-\nracy",
    "train",
    "dev",
    "test\nitems",
    "clus-\nters",
)
UNSEEN_HEADS = ("types", "unseen\n%", "items", "unseen\n%", "F1\nseen", "F1\nunseen", "differ-\nence")
DEPTH_HEADS = ("layers", "best\nlayer", "depth", "best", "last", "gravity", "depth")
BASELINE_NOTES = (
    "All at the best layer. Majority: the most frequent class of train; word type: that of every word type. "
    "Random encoder: the same architecture with random weights, at its own best layer. Layer 0: the embeddings.",
    "Selectivity: the score minus that on a control task (Hewitt and Liang 2019), points. Compr.: how many times "
    "shorter the labels' online code is than the uniform one (Voita and Titov 2020). Gravity: the mean layer of a "
    "scalar mix of all layers (Tenney et al. 2019).",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Points (layer, score) of one probe; fractions."""

    probe: Probe
    points: tuple[Point, ...]
    control: tuple[Point, ...]
    """Empty without control tasks."""
    random: tuple[Point, ...]
    """Empty without a random encoder."""

    @property
    def lines(self) -> dict[str, tuple[Point, ...]]:
        """All three by what they are of."""
        return {"probe": self.points, "control": self.control, "random": self.random}

    @property
    def limits(self) -> tuple[float, float]:
        """The lowest and the highest value of all three."""
        values = [value for points in self.lines.values() for _, value in points]
        return min(values), max(values)


def curves(probes: Sequence[Probe]) -> list[Curve]:
    """Return the curve of every probe."""
    return [
        Curve(
            probe=probe,
            points=_points(probe.layers, "test"),
            control=_points(probe.layers, "control"),
            random=_points(probe.random_layers, "test"),
        )
        for probe in probes
    ]


def _points(entries: Sequence[Mapping[str, Any]], key: str) -> tuple[Point, ...]:
    return tuple(
        (int(entry["layer"]), float(entry[key][METRIC]["value"])) for entry in entries if key in entry
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Localisation:
    """The curves of all models on one task and treebank, over depth: layer divided by the last layer."""

    title: str
    curves: tuple[Curve, ...]


def localisations(curves: Sequence[Curve]) -> list[Localisation]:
    """Return the localisations of several models, in the order of the curves."""
    groups: dict[str, list[Curve]] = {}
    for curve in curves:
        groups.setdefault(f"{curve.probe.title} {curve.probe.treebank_name}".rstrip(), []).append(curve)
    return [
        Localisation(title=title, curves=tuple(group))
        for title, group in groups.items()
        if len({curve.probe.model for curve in group}) > 1
    ]


def depth_of(probe: Probe, layer: float) -> float:
    """Return a layer as a share of the model's depth, from 0 (the embeddings) to 1 (the last layer)."""
    return layer / probe.depth if probe.depth else 0.0


def curve_blocks(curves: Sequence[Curve], places: Sequence[Localisation]) -> list[Block]:
    """Return the layer curves of every task, and those of several models over their depth, as charts."""
    layers = Charts(charts=tuple(map(_layer_chart, _by_task(curves))), table=curve_table(curves))
    return [layers, *([Charts(charts=tuple(map(_depth_chart, places)))] if places else [])]


def curve_table(curves: Sequence[Curve], *further: str) -> Table:
    """Return the curves in one line each: side by side where they fit, and else under each other."""
    return Table(
        title="Layer curves",
        corner="task",
        heads=(*curves[0].lines, "low", "high", "best"),
        rows=tuple(_curve_rows(curves, side_by_side=True)),
        notes=(CURVE_NOTE, *further),
        words=frozenset({0, 1, 2}),
        folding=True,
        label_width=LABEL_WIDTH,
        narrow=Table(
            title="Layer curves",
            corner="task",
            heads=("layers", "of", "low", "high", "best"),
            rows=tuple(_curve_rows(curves, side_by_side=False)),
            notes=(CURVE_NOTE, *further),
            words=frozenset({0, 1}),
            folding=True,
            label_width=LABEL_WIDTH,
        ),
    )


def _curve_rows(curves: Sequence[Curve], *, side_by_side: bool) -> Iterator[TableRow]:
    several = len({curve.probe.model for curve in curves}) > 1
    last = ""
    for curve in curves:
        probe = curve.probe
        grouped = bool(probe.treebank) or several
        head = f"{probe.model}\n{probe.title}" if several else probe.title
        if head != last and grouped:
            yield TableRow(label=head)
        last = head
        label = (probe.treebank_name or probe.title) if grouped else head
        numbers = (*map(percent, curve.limits), str(probe.best["layer"]))
        sparklines = {of: sparkline(points, curve.limits) for of, points in curve.lines.items()}
        if side_by_side:
            yield TableRow(label=label, fields=(*sparklines.values(), *numbers), depth=1)
            continue
        yield TableRow(label=label, fields=(sparklines["probe"], "probe", *numbers), depth=1)
        for of in ("control", "random"):
            if sparklines[of]:
                yield TableRow(label="", fields=(sparklines[of], of, "", "", ""))


def _by_task(curves: Sequence[Curve]) -> list[list[Curve]]:
    """Return the curves of one chart: all treebanks of one model's task."""
    by_task: dict[tuple[str, str], list[Curve]] = {}
    for curve in curves:
        by_task.setdefault((curve.probe.model, curve.probe.title), []).append(curve)
    return list(by_task.values())


def _layer_chart(curves: Sequence[Curve]) -> CurveChart:
    present = {name for curve in curves for name, points in curve.lines.items() if points}
    probe = curves[0].probe
    return CurveChart(
        title=f"{probe.title}, {probe.model}",
        lines=tuple(line for number, curve in enumerate(curves) for line in _lines(curve, number)),
        groups=tuple(curve.probe.treebank_name or "test" for curve in curves),
        x_label="layer",
        y_label=UNIT,
        strokes=tuple((stroke, meaning) for name, stroke, meaning in STROKES if meaning and name in present),
        ring=f"best layer on {probe.best['chosen_on']}",
    )


def curve_figures(curves: Sequence[Curve], places: Sequence[Localisation]) -> dict[str, CurveChart]:
    """Return the layer curves as figures, by the name of the file: Figures 2 and 5 to 7 of Patil et al. (2021).

    For every task of a model its treebanks, and for every task and treebank all models, over numbered layers; the
    majority class is a grey line.
    """
    figures = {}
    for task_curves in _by_task(curves):
        probe = task_curves[0].probe
        name = _file_name("layers", probe.language, probe.method, probe.title, probe.model)
        figures[name] = _with_majority(_layer_chart(task_curves), task_curves)
    for localisation in places:
        probe = localisation.curves[0].probe
        chart = _depth_chart(localisation)
        lines = (
            replace(line, points=tuple((float(layer), 100 * value) for layer, value in curve.points),
                    best=float(curve.probe.best["layer"]))
            for line, curve in zip(chart.lines, localisation.curves, strict=True)
        )  # fmt: skip
        numbered = replace(
            chart, title=f"{localisation.title}: all models", lines=tuple(lines), x_label="layer", x_digits=0
        )
        name = _file_name("models", probe.language, probe.method, localisation.title)
        figures[name] = _with_majority(numbered, localisation.curves)
    return figures


def _file_name(*parts: str) -> str:
    return "-".join(re.sub(r"[^\w.+=]+", "-", part) for part in parts)


def _with_majority(chart: CurveChart, curves: Sequence[Curve]) -> CurveChart:
    """Return a chart in its language with a guide for every value of the majority class."""
    values: dict[float, None] = {}
    for curve in curves:
        baselines = curve.probe.problem["baselines"]
        values |= {100 * scores[METRIC]: None for name, scores in baselines.items() if name == "majority"}
    ends = [layer for curve in curves for layer, _ in curve.points]
    guides = tuple(
        Line(
            label=f"majority {value:.1f}",
            points=tuple((float(end), value) for end in sorted({min(ends), max(ends)})),
            group=6,
            is_guide=True,
        )
        for value in values
        if ends
    )
    title = f"{chart.title} ({curves[0].probe.language}, {curves[0].probe.method})"
    last = max(ends, default=0)
    names = tuple(map(str, range(last + 1))) if last < MANY_LAYERS else ()
    return replace(chart, title=title, lines=(*chart.lines, *guides), x_names=names)


def _lines(curve: Curve, number: int) -> Iterator[Line]:
    name = curve.probe.treebank_name or "test"
    for of, stroke, meaning in STROKES:
        yield Line(
            label=f"{name}, {meaning}" if meaning else name,
            points=tuple((float(layer), value * 100) for layer, value in curve.lines[of]),
            group=number,
            stroke=stroke,
            best=None if meaning else float(curve.probe.best["layer"]),
            whiskers=() if meaning else _whiskers(curve.probe, curve.points),
        )


def _whiskers(probe: Probe, points: Sequence[Point]) -> tuple[tuple[float, float, float], ...]:
    """Return the intervals of the best and the last layer."""
    intervals = {}
    for block in (probe.best, probe.last):
        interval = block[METRIC].get("ci")
        if interval and block["layer"] in dict(points):
            intervals[float(block["layer"])] = (interval[0] * 100, interval[1] * 100)
    return tuple((layer, low, high) for layer, (low, high) in sorted(intervals.items()))


def _depth_chart(one: Localisation) -> CurveChart:
    return CurveChart(
        title=f"{one.title}: all models by depth",
        lines=tuple(_depth_line(curve, number) for number, curve in enumerate(one.curves)),
        groups=tuple(curve.probe.model for curve in one.curves),
        x_label="depth: 0 the embeddings, 1 the last layer",
        y_label=UNIT,
        x_digits=2,
        ring="best layer",
    )


def _depth_line(curve: Curve, number: int) -> Line:
    probe = curve.probe
    return Line(
        label=probe.model,
        points=tuple((depth_of(probe, layer), value * 100) for layer, value in curve.points),
        group=number,
        best=depth_of(probe, probe.best["layer"]),
    )


def probe_table(
    title: str, heads: Sequence[str], rows: Iterable[TableRow], notes: Iterable[str] = ()
) -> Table:
    """Return a table of probes whose labels fold in a terminal."""
    return Table(
        title=title, corner="task", heads=tuple(heads), rows=tuple(rows), notes=tuple(notes), folding=True,
        label_width=LABEL_WIDTH, style="levels",
    )  # fmt: skip


def titled_rows(model: str, rows: Iterable[TableRow], *, alone: bool) -> list[TableRow]:
    """Return the rows of a model, under its name if there are several models."""
    rows = list(rows)
    return rows if alone or not rows else [TableRow(label=model, style="head"), *rows]


def rows_by_task(
    probes: Sequence[Probe], fields: Callable[[Probe], tuple[str, ...] | None]
) -> list[TableRow]:
    """Return a row for every probe that has fields: by model, then by task, then by treebank."""
    table_rows: list[TableRow] = []
    heads: tuple[str, str] | None = None
    models = {probe.model for probe in probes}
    for model in dict.fromkeys(probe.model for probe in probes):
        rows: list[TableRow] = []
        for probe in probes:
            row_fields = fields(probe) if probe.model == model else None
            if row_fields is None:
                continue
            if not probe.treebank:
                rows.append(TableRow(label=probe.title, fields=row_fields))
                continue
            if heads != (model, probe.title):
                rows.append(TableRow(label=probe.title))
                heads = (model, probe.title)
            rows.append(TableRow(label=probe.treebank_name, fields=row_fields, depth=1))
        table_rows += titled_rows(model, rows, alone=len(models) == 1)
    return table_rows


def baseline_values(probe: Probe) -> dict[str, float | None]:
    """Return the baselines of a probe and what its layers say of it; fractions, ratios, and a layer number."""
    baselines: Mapping[str, Mapping[str, float]] = probe.problem["baselines"]
    chosen = probe.chosen or {}
    mix = probe.problem.get("mix")
    random = probe.details.get("random_encoder")
    embeddings = at_layer(probe.layers, EMBEDDINGS)
    return {
        "majority": _baseline(baselines, "majority"),
        "type_majority": _baseline(baselines, "type_majority"),
        "random_encoder": random["headline"][METRIC]["value"] if random else None,
        "layer_0": embeddings["test"][METRIC]["value"] if embeddings else None,
        "selectivity": chosen["selectivity"][METRIC]["value"] if "selectivity" in chosen else None,
        "compression": chosen["code"]["compression"] if "code" in chosen else None,
        "center_of_gravity": mix["center_of_gravity"] if mix else None,
    }


def _baseline(baselines: Mapping[str, Mapping[str, float]], name: str) -> float | None:
    return baselines[name][METRIC] if name in baselines else None


def baseline_table(probes: Sequence[Probe], title: str) -> Table:
    """Return the baselines of every score."""
    return probe_table(title, BASELINE_HEADS, rows_by_task(probes, _baseline_fields), BASELINE_NOTES)


def _baseline_fields(probe: Probe) -> tuple[str, ...]:
    values = baseline_values(probe)
    names = ("majority", "type_majority", "random_encoder", "layer_0")
    return (
        percent(probe.best[METRIC]["value"]),
        *(percent(values[name]) for name in names),
        signed(values["selectivity"]),
        _ratio(values["compression"]),
        _ratio(values["center_of_gravity"]),
    )


def _ratio(value: float | None) -> str:
    return BLANK if value is None else f"{value:.2f}"


def detail_table(probes: Sequence[Probe], title: str) -> Table:
    """Return the further scores of the best layer, their spread over seeds, and what they are counted over."""
    notes = [
        "At the best layer. SD: over the seeds of the probes, points. Clusters: source sentences.",
        *_coverage_notes(probes),
    ]
    return probe_table(title, DETAIL_HEADS, rows_by_task(probes, _detail_fields), notes)


def _detail_fields(probe: Probe) -> tuple[str, ...]:
    best, items = probe.best, probe.problem["items"]
    return (
        percent(best[METRIC]["value"]),
        percent(best[METRIC]["sd"]),
        percent(best["macro_f1"]["value"]),
        percent(best["accuracy"]["value"]),
        *(f"{items[split]:,}" for split in ("train", "dev", "test")),
        f"{best['clusters']:,}",
    )


def _coverage_notes(probes: Sequence[Probe]) -> Iterator[str]:
    """Yield notes on items that did not reach the probes, each with its probes."""
    names_by_fact: dict[str, list[str]] = {}
    for probe in probes:
        for fact in _coverage(probe):
            names_by_fact.setdefault(fact, []).append(probe.name)
    for fact, names in names_by_fact.items():
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        yield f"{fact}: {', '.join(names[:NAMED])}{more}."


def _coverage(probe: Probe) -> Iterator[str]:
    items = probe.problem["items"]
    if items["missing_in_train"]:
        yield (
            f"Not in train: {', '.join(items['missing_in_train'])}, which "
            f"{items['test_items_of_missing_classes']:,} test items have, and which count as wrong"
        )
    for split, counts in probe.details.get("coverage", {}).items():
        for key, fact in (("truncated_sentences", "Sentences cut"), ("empty_words", "Words without a piece")):
            if counts.get(key):
                yield f"{fact} in {split}, {counts[key]:,}"


def variant_table(probes: Sequence[Probe], title: str) -> Table | None:
    """Return the scores of every gender variant; None where no probe has several."""
    having = [probe for probe in probes if len(probe.groups) > 1]
    if not having:
        return None
    names = tuple(sorted({name for probe in having for name in probe.groups}))

    def fields(probe: Probe) -> tuple[str, ...] | None:
        if len(probe.groups) < 2:
            return None
        values = {name: value for name, (value, _) in probe.groups.items()}
        spread = max(values.values()) - min(values.values())
        return (*(percent(values.get(name)) for name in names), percent(spread))

    counts = [count for probe in having for _, count in probe.groups.values()]
    note = (
        f"Weighted F1 x100 of each variant alone ({min(counts):,} to {max(counts):,} items), at the best layer. "
        "Spread: the best variant minus the worst."
    )
    return probe_table(title, (*names, "spread"), rows_by_task(having, fields), [note])


def unseen_table(probes: Sequence[Probe], title: str) -> Table | None:
    """Return the scores of test words whose type is in train, and of all others; None for tasks over sentences."""
    having = [probe for probe in probes if probe.details.get("unseen_types")]
    if not having:
        return None
    note = "Word types of test, those that are not in train, and weighted F1 x100 of their items at the best layer."
    return probe_table(title, UNSEEN_HEADS, rows_by_task(having, _unseen_fields), [note])


def _unseen_fields(probe: Probe) -> tuple[str, ...]:
    counts: Mapping[str, Any] = probe.details["unseen_types"]
    seen_f1, unseen_f1 = counts["weighted_f1_seen"], counts["weighted_f1_unseen"]
    return (
        f"{counts['types']:,}",
        _share(counts["unseen"], counts["types"]),
        f"{counts['items']:,}",
        _share(counts["unseen_items"], counts["items"]),
        percent(seen_f1),
        percent(unseen_f1),
        signed(None if seen_f1 is None or unseen_f1 is None else unseen_f1 - seen_f1),
    )


def _share(part: int, whole: int) -> str:
    return percent(part / whole) if whole else BLANK


def localisation_table(found: Sequence[Localisation], title: str) -> Table | None:
    """Return where every model has its best layer and its centre of gravity; None where there is one model."""
    rows = [row for localisation in found for row in _rows(localisation)]
    if not rows:
        return None
    note = "Depth: the layer divided by the last one. Gravity: the mean layer of a scalar mix of all layers."
    return replace(probe_table(title, DEPTH_HEADS, rows, [note]), corner="task and model")


def _rows(one: Localisation) -> Iterator[TableRow]:
    yield TableRow(label=one.title)
    for curve in one.curves:
        probe = curve.probe
        gravity = baseline_values(probe)["center_of_gravity"]
        yield TableRow(
            label=probe.model,
            fields=(
                str(probe.depth),
                str(probe.best["layer"]),
                f"{depth_of(probe, probe.best['layer']):.2f}",
                percent(probe.best[METRIC]["value"]),
                percent(probe.last[METRIC]["value"]),
                BLANK if gravity is None else f"{gravity:.2f}",
                BLANK if gravity is None else f"{depth_of(probe, gravity):.2f}",
            ),
            depth=1,
        )
