"""Gaps as one HTML page that needs no network, and Figure 1 of the paper as a separate drawing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from harness.cli.output import write_file
from harness.reporting.html.layout import notes, section, table
from harness.reporting.markup.chart import Bar, interval_bars
from harness.reporting.markup.element import Element, element, render
from harness.reporting.markup.page import page
from harness_translation.gap.console import figure_quantity
from harness_translation.gap.formula import CONTRASTS, TITLES, VARIANTS
from harness_translation.gap.measure import ALL, GapValue, SystemGaps
from harness_translation.gap.pretraining import pretraining_size
from harness_translation.gap.text import (
    CAUTION,
    LEGEND,
    averaged_text,
    correlation_text,
    flag_texts,
    interval_text,
    mean_row,
    percent,
    script_text,
    signed,
    translator_text,
)

__all__ = ["drawing", "gaps_page", "write_page", "write_with_drawing"]

NOTHING: Final = "-"
STYLE: Final = (
    "svg{font:12px sans-serif;background:#fff}text{fill:#1a1c1e}.soft{fill:#565d64}.end{text-anchor:end}"
    ".mid{text-anchor:middle}.grid{stroke:#d5d9dd}.axis{stroke:#565d64}.whisker{stroke:#1a1c1e;stroke-width:1.5;"
    "fill:none}.c0{fill:#0072b2}.c1{fill:#d55e00}.c2{fill:#007a5a}.c3{fill:#b0447f}.c4{fill:#9a6a00}.c5{fill:#2f8fc4}"
    ".c6{fill:#6b6b6b}.c7{fill:#5b3fa0}"
)
"""The colours of the pages' light theme: a separate drawing has no page around it."""


def write_page(path: Path, found: Sequence[SystemGaps], *, k: float, order: str) -> None:
    """Write the page and its figures; raises `UsageError` if a file cannot be written."""
    figures = [_figure(gaps, order) for gaps in found]
    write_with_drawing(
        path, gaps_page(found, k=k, order=order), [each for each in figures if each is not None]
    )


def write_with_drawing(path: Path, text: str, figures: Sequence[Element]) -> None:
    """Write a page and, in the same folder, each of its figures: ``gaps.svg``, ``gaps-2.svg``."""
    write_file(path, text)
    for number, each in enumerate(figures, start=1):
        name = path.stem if number == 1 else f"{path.stem}-{number}"
        write_file(path.with_name(f"{name}.svg"), drawing(each))


def drawing(figure: Element) -> str:
    """Return the image of a chart of `harness.reporting.markup.chart` as an SVG file."""
    text = render(_image(figure))
    return text.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(
        ">", f"><style>{STYLE}</style>", 1
    )


def _image(node: Element) -> Element:
    for child in node.children:
        if isinstance(child, Element) and child.tag == "div":
            for inner in child.children:
                if isinstance(inner, Element) and inner.tag == "svg":
                    return inner
    raise ValueError("The figure holds no drawing.")


def gaps_page(found: Sequence[SystemGaps], *, k: float, order: str) -> str:
    """Return all systems as a page."""
    parts = [_section(number, gaps, k, order) for number, gaps in enumerate(found)]
    main = element(
        "main",
        element("h1", "Gaps between translations"),
        element("p", LEGEND, class_="note"),
        parts,
        id="main",
    )
    return page("Gaps between translations", main, description=f"{len(found)} systems.")


def _section(number: int, gaps: SystemGaps, k: float, order: str) -> Element:
    names = gaps.system.translators
    shown = (*names, ALL) if len(names) > 1 else names
    unfair = {value.quantity: value.unfair for value in gaps.values if value.unfair}
    has_bt = any(value.quantity == "bt" for value in gaps.values)
    lines = [
        *flag_texts(gaps, k),
        *(correlation_text(own) for own in gaps.correlations),
        script_text(gaps),
        *([CAUTION] if has_bt else []),
        *(f"Not a fair contrast: {TITLES[name]}: {why}." for name, why in unfair.items()),
        *gaps.notes,
    ]
    return section(
        f"system-{number}",
        f"{gaps.system.title}: {gaps.metric}",
        _figure(gaps, order),
        notes(lines),
        [_scores(gaps, name, order) for name in shown],
        [_contrasts(gaps, name) for name in shown],
        _classes(gaps),
        _scripts(gaps),
    )


def _figure(gaps: SystemGaps, order: str) -> Element | None:
    quantity = figure_quantity(gaps)
    if quantity is None:
        return None
    bars = [
        _bar(value, index, order)
        for code in gaps.languages
        for index, name in enumerate(gaps.system.translators)
        if (value := gaps.find(quantity, code, name)) is not None
    ]
    title = f"{TITLES[quantity]} by language, largest pre-training data first"
    return interval_bars(title, bars, low=None, unit="points")


def _bar(value: GapValue, group: int, order: str) -> Bar:
    size = pretraining_size(str(value.language), order)
    interval = value.estimate.interval
    return Bar(
        label=f"{value.language} {'' if size is None else size.text} {value.translator}",
        value=value.estimate.value * 100,
        low=None if interval.low is None else interval.low * 100,
        high=None if interval.high is None else interval.high * 100,
        n=value.items,
        group=group,
    )


def _scores(gaps: SystemGaps, translator: str, order: str) -> Element:
    names = [*VARIANTS, *(f"transfer_gap_{variant}" for variant in VARIANTS)]
    heads = [variant.upper() for variant in VARIANTS] + [f"gap {variant.upper()}" for variant in VARIANTS]
    rows = []
    own = gaps.find("zs", gaps.system.source, "")
    if own is not None:
        blank = [NOTHING] * 7
        rows.append(
            [f"{gaps.system.source} (source)", "", percent(own.estimate.value), *blank, str(own.items)]
        )
    for code in (*gaps.languages, None):
        bare = {"zs", "transfer_gap_zs"}
        values = [gaps.find(name, code, "" if name in bare else translator) for name in names]
        if code is None:
            mean, values = mean_row(values)
        known = [value for value in values if value is not None]
        if not known:
            continue
        size = None if code is None else pretraining_size(code, order)
        fields = [
            NOTHING if value is None else (percent if place < 4 else signed)(value.estimate.value)
            for place, value in enumerate(values)
        ]
        head = mean if code is None else code
        rows.append([head, "" if size is None else size.text, *fields, str(known[0].items)])
    return table(
        f"Scores and transfer gaps, {translator_text(translator)}", ["", "size", *heads, "items"], rows
    )


def _contrasts(gaps: SystemGaps, translator: str) -> Element:
    names = [name for name in CONTRASTS if any(value.quantity == name for value in gaps.values)]
    rows = []
    for code in (*gaps.languages, None):
        values = [gaps.find(name, code, translator) for name in names]
        if code is None:
            mean, values = mean_row(values)
        known = [value for value in values if value is not None]
        if known:
            fields = [_contrast(value) for value in values]
            rows.append([mean if code is None else code, *fields])
    return table(f"Contrasts, {translator_text(translator)}", ["", *(TITLES[name] for name in names)], rows)


def _contrast(value: GapValue | None) -> str:
    if value is None:
        return NOTHING
    mark = f"{'~' if value.unfair else ''}{'*' if value.flagged else ''}"
    return f"{signed(value.estimate.value)}{mark} ({interval_text(value.estimate)})"


def _classes(gaps: SystemGaps) -> Element | None:
    rows = [
        [
            str(value.resource_class),
            translator_text(value.translator),
            TITLES[value.quantity],
            _contrast(value),
            " ".join(value.languages),
        ]
        for value in gaps.values
        if value.language is None and value.resource_class is not None and value.quantity in CONTRASTS
    ]
    heads = ["class", "translator", "contrast", "mean", "languages"]
    return table("By class of resources", heads, rows) if rows else None


def _scripts(gaps: SystemGaps) -> Element | None:
    rows = []
    for value in gaps.values:
        if value.subset != "all" and value.quantity in CONTRASTS:
            whole = gaps.find(value.quantity, value.language, value.translator)
            rows.append(
                [
                    value.language or averaged_text(value),
                    translator_text(value.translator),
                    TITLES[value.quantity],
                    _contrast(whole),
                    _contrast(value),
                    str(value.items),
                ]
            )
    heads = ["language", "translator", "contrast", "all items", "items in its script", "items"]
    return table("With and without items in another script", heads, rows) if rows else None
