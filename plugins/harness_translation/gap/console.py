"""Gaps in a terminal: tables of scores and contrasts, and Figure 1 of the paper in characters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from harness.reporting.console import SAMPLE_WARNING
from harness_translation.gap.formula import CONTRASTS, TITLES, VARIANTS
from harness_translation.gap.measure import ALL, GapValue, SystemGaps
from harness_translation.gap.pretraining import pretraining_size
from harness_translation.gap.text import (
    CAUTION,
    LEGEND,
    correlation_text,
    flag_texts,
    interval_text,
    mean_row,
    percent,
    script_text,
    signed,
    translator_text,
)

__all__ = ["FIGURE_WIDTH", "figure_lines", "render_gaps"]

FIGURE_WIDTH = 44
NOTHING = "-"


def render_gaps(found: Sequence[SystemGaps], *, k: float, order: str) -> RenderableType:
    """Return all systems for printing with rich."""
    sample = any(
        run.results["run"].get("data") == "sample"
        for gaps in found
        for versions in gaps.system.cells.values()
        for by_seed in versions.values()
        for run, _ in by_seed.values()
    )
    return Group(
        *([Text(SAMPLE_WARNING, style="bold")] if sample else []),
        *(part for gaps in found for part in _system(gaps, k, order)),
        Text(LEGEND, style="dim"),
    )


def _system(gaps: SystemGaps, k: float, order: str) -> list[RenderableType]:
    parts: list[RenderableType] = [Text(f"{gaps.system.title}: {gaps.metric}", style="bold")]
    if gaps.system.translators:
        for translator in _translators(gaps):
            parts += [_score_table(gaps, translator, order), _contrast_table(gaps, translator)]
    else:
        parts.append(_score_table(gaps, "", order))
    parts += _class_parts(gaps)
    shown = figure_quantity(gaps)
    if shown is not None:
        parts.append(Text("\n".join(figure_lines(gaps, shown, order))))
    parts += [Text(line) for line in flag_texts(gaps, k)]
    parts += [Text(correlation_text(own)) for own in gaps.correlations]
    parts += [Text(script_text(gaps)), *_script_table(gaps)]
    if any(value.quantity == "bt" for value in gaps.values):
        parts.append(Text(CAUTION, style="italic"))
    unfair = {value.quantity: value.unfair for value in gaps.values if value.unfair}
    parts += [Text(f"Not a fair contrast: {TITLES[name]}: {why}.") for name, why in unfair.items()]
    parts += [Text(note) for note in gaps.notes]
    return [*parts, Text("")]


def _translators(gaps: SystemGaps) -> tuple[str, ...]:
    names = gaps.system.translators
    return (*names, ALL) if len(names) > 1 else names


def figure_quantity(gaps: SystemGaps) -> str | None:
    """Return the contrast that the figure shows: BT - TT as in the paper, else the first that could be computed."""
    held = {value.quantity for value in gaps.values}
    return next((name for name in ("bt_tt", "te_zs", "delta", "tt_zs") if name in held), None)


def _table(*heads: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for index, head in enumerate(heads):
        justify: Literal["left", "right"] = "left" if index == 0 else "right"
        table.add_column(escape(head), justify=justify, no_wrap=index > 0)
    return table


def _score(gaps: SystemGaps, quantity: str, language: str | None, translator: str) -> GapValue | None:
    bare = quantity in {"zs", "transfer_gap_zs"}
    return gaps.find(quantity, language, "" if bare else translator)


def _score_table(gaps: SystemGaps, translator: str, order: str) -> Table:
    gap_names = [f"transfer_gap_{variant}" for variant in VARIANTS]
    heads = [variant.upper() for variant in VARIANTS] + [f"gap {variant.upper()}" for variant in VARIANTS]
    table = _table(translator_text(translator), "size", *heads, "items")
    source = gaps.system.source
    own = gaps.find("zs", source, "")
    if own is not None:
        blank = [NOTHING] * 7
        table.add_row(
            f"{source} (source)", _size(source, order), percent(own.estimate.value), *blank, str(own.items)
        )
    for code in (*gaps.languages, None):
        values = [_score(gaps, name, code, translator) for name in (*VARIANTS, *gap_names)]
        if code is None:
            head, values = mean_row(values)
        known = [value for value in values if value is not None]
        if not known:
            continue
        fields = [
            NOTHING if value is None else (percent if index < len(VARIANTS) else signed)(value.estimate.value)
            for index, value in enumerate(values)
        ]
        name = head if code is None else code
        table.add_row(name, "" if code is None else _size(code, order), *fields, str(known[0].items))
    return table


def _size(code: str, order: str) -> str:
    size = pretraining_size(code, order)
    return NOTHING if size is None else size.text


def _contrast_table(gaps: SystemGaps, translator: str) -> Table:
    names = [name for name in CONTRASTS if any(value.quantity == name for value in gaps.values)]
    heads = [part for name in names for part in (name.upper().replace("_", "-"), "95 %")]
    table = _table(translator_text(translator), *heads)
    for code in (*gaps.languages, None):
        values = [gaps.find(name, code, translator) for name in names]
        if code is None:
            head, values = mean_row(values)
        known = [value for value in values if value is not None]
        if not known:
            continue
        fields: list[str] = []
        for value in values:
            mark = "" if value is None else f"{'~' if value.unfair else ''}{'*' if value.flagged else ' '}"
            fields += (
                [NOTHING, NOTHING]
                if value is None
                else [signed(value.estimate.value) + mark, interval_text(value.estimate)]
            )
        table.add_row(head if code is None else code, *fields)
    return table


def _class_parts(gaps: SystemGaps) -> list[RenderableType]:
    """Return the mean contrasts by class of resources."""
    rows = [
        value
        for value in gaps.values
        if value.language is None and value.resource_class is not None and value.quantity in CONTRASTS
    ]
    if not rows:
        return []
    table = _table("resource class", "translator", "contrast", "mean", "95 %", "languages")
    for value in sorted(rows, key=lambda value: (list(CONTRASTS).index(value.quantity), value.translator)):
        if value.translator == ALL and len(gaps.system.translators) == 1:
            continue
        table.add_row(
            str(value.resource_class),
            escape(translator_text(value.translator)),
            value.quantity.upper().replace("_", "-"),
            signed(value.estimate.value),
            interval_text(value.estimate),
            " ".join(value.languages),
        )
    return [table]


def _script_table(gaps: SystemGaps) -> list[Table]:
    """Return the contrasts with and without items in another script, if there are any."""
    rows = [value for value in gaps.values if value.subset != "all" and value.quantity in CONTRASTS]
    if not rows:
        return []
    table = _table("matching script only", "translator", "contrast", "all items", "without", "95 %", "items")
    for value in rows:
        whole = gaps.find(value.quantity, value.language, value.translator)
        if whole is None or (value.translator == ALL and len(gaps.system.translators) == 1):
            continue
        table.add_row(
            value.language or "mean",
            escape(translator_text(value.translator)),
            value.quantity.upper().replace("_", "-"),
            signed(whole.estimate.value),
            signed(value.estimate.value),
            interval_text(value.estimate),
            str(value.items),
        )
    return [table]


def figure_lines(gaps: SystemGaps, quantity: str, order: str) -> list[str]:
    """Return Figure 1 of the paper in characters: bars by language and translator, the largest language first."""
    own = [
        value
        for translator in gaps.system.translators
        for code in gaps.languages
        if (value := gaps.find(quantity, code, translator)) is not None
    ]
    ends = [end for value in own for end in (value.estimate.value, value.estimate.interval.low,
                                             value.estimate.interval.high) if end is not None]  # fmt: skip
    low, high = min(0.0, *ends), max(0.0, *ends)
    span = (high - low) or 1.0

    def place(value: float) -> int:
        return round((value - low) / span * (FIGURE_WIDTH - 1))

    lines = [f"{TITLES[quantity]} by language, largest pre-training data first (# value, - 95 % interval)"]
    for code in gaps.languages:
        for value in (each for each in own if each.language == code):
            cells = [" "] * FIGURE_WIDTH
            interval = value.estimate.interval
            if interval.low is not None and interval.high is not None:
                cells[place(interval.low) : place(interval.high) + 1] = "-" * (
                    place(interval.high) - place(interval.low) + 1
                )
            start, end = sorted((place(0.0), place(value.estimate.value)))
            cells[start : end + 1] = "#" * (end - start + 1)
            cells[place(0.0)] = "|"
            head = f"{code:>6} {_size(code, order):>11} {value.translator[:10]:>10} "
            lines.append(f"{head}{''.join(cells)} {signed(value.estimate.value)}")
    return lines
