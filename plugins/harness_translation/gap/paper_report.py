"""Numbers that follow from printed tables, in a terminal or as a page: tables per group and translator, then errata."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from harness.reporting.html.layout import notes, section, table
from harness.reporting.markup.chart import Bar, interval_bars
from harness.reporting.markup.element import Element, element
from harness.reporting.markup.page import page
from harness_translation.gap.formula import CONTRASTS, TITLES, VARIANTS
from harness_translation.gap.page import write_with_drawing
from harness_translation.gap.paper import SOURCE, DerivedRow
from harness_translation.gap.pretraining import by_size, pretraining_size
from harness_translation.gap.score_file import AVERAGE, ScoreGroup
from harness_translation.gap.text import CAUTION

__all__ = ["derived_page", "render_derived", "write_derived"]

NOTHING: Final = "-"
WIDTH: Final = 40
LEGEND: Final = (
    "Units as given. Means are means of the languages' own values, without the source language; gap: the "
    "source language's ZS minus the score. ! differs from the printed number: see the errata. "
    "~ compares more than translations."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sheet:
    """The rows of one group and translator."""

    group: ScoreGroup
    translator: str
    values: dict[tuple[str, str], DerivedRow]
    """By quantity and language; human text belongs to every translator."""
    languages: tuple[str, ...]

    @property
    def title(self) -> str:
        group = self.group
        by = f", {self.translator}" if self.translator else ""
        return f"Table {group.table}: {group.task} {group.split} {group.metric}, {group.model}, {group.train}{by}"

    @property
    def quantities(self) -> list[str]:
        """Return the quantities of the sheet, variants and contrasts before transfer gaps."""
        every = (*VARIANTS, *CONTRASTS, *(f"transfer_gap_{variant}" for variant in VARIANTS))
        held = {quantity for quantity, _ in self.values}
        return [name for name in every if name in held]

    def rows(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the head and fields of every language, then of the mean."""
        for code in self.languages:
            yield code, [_field(self.values.get((name, code))) for name in self.quantities]
        means = [
            self.values.get((f"mean_{name}" if name in VARIANTS else name, AVERAGE))
            for name in self.quantities
        ]
        # A mean over other languages cannot be compared with the rest of its row.
        alike = [own if own is not None and own.languages == self.averaged else None for own in means]
        if self.averaged:
            yield "mean", [_field(own, digits=2) for own in alike]

    @property
    def averaged(self) -> tuple[str, ...]:
        """Return the languages of the means: those of the mean over the fewest languages."""
        names = (*(f"mean_{variant}" for variant in VARIANTS), *CONTRASTS)
        found = [self.values[name, AVERAGE].languages for name in names if (name, AVERAGE) in self.values]
        return min(found, key=len, default=())


def _sheets(rows: Sequence[DerivedRow], order: str) -> list[_Sheet]:
    groups = list({id(row.group): row.group for row in rows}.values())
    found = []
    for group in groups:
        own = [row for row in rows if row.group is group]
        for translator in sorted({row.translator for row in own if row.translator}) or [""]:
            values = {(row.quantity, row.lang): row for row in own if row.translator in {"", translator}}
            codes = {row.lang for row in own if row.quantity in VARIANTS}
            sources = sorted(code for code in codes if code.partition("@")[0] == SOURCE)
            targets = by_size(codes - set(sources), order)
            found.append(
                _Sheet(group=group, translator=translator, values=values, languages=(*sources, *targets))
            )
    return found


def _field(row: DerivedRow | None, digits: int | None = None) -> str:
    if row is None:
        return NOTHING
    value = float(row.value)
    places = digits if digits is not None else 1 if round(value, 1) == round(value, 4) else 2
    # Adding zero turns a rounded -0.0 into 0.0.
    return f"{round(value, places) + 0.0:.{places}f}{'!' if row.erratum else ''}{'~' if row.unfair else ''}"


def _errata(rows: Sequence[DerivedRow]) -> list[str]:
    return [
        f"Table {row.group.table}, {row.group.train}{', ' + row.translator if row.translator else ''}, {row.lang}, "
        f"{row.quantity}: printed {'' if row.printed is None else row.printed.text}; {row.erratum}."
        for row in rows
        if row.erratum
    ]


def _unfair(rows: Sequence[DerivedRow]) -> list[str]:
    found = {(row.group.task, row.quantity): row.unfair for row in rows if row.unfair}
    return [f"Not a fair contrast in {task}: {TITLES[name]}: {why}." for (task, name), why in found.items()]


def _correlations(sheet: _Sheet) -> list[str]:
    return [
        f"{TITLES[name]}: Spearman's rho with pre-training size {float(row.value):+.2f} "
        f"(95 % {row.interval[0]:+.2f} to {row.interval[1]:+.2f} over {len(row.languages)} languages)."
        for name in CONTRASTS
        if (row := sheet.values.get((f"rank_correlation_{name}", AVERAGE))) is not None
        and row.interval is not None
    ]


def _classes(sheet: _Sheet) -> list[str]:
    return [
        f"{TITLES[quantity]}, {lang} ({' '.join(row.languages)}): {float(row.value):+.2f}."
        for (quantity, lang), row in sheet.values.items()
        if quantity in CONTRASTS and row.languages and lang != AVERAGE
    ]


def render_derived(rows: Sequence[DerivedRow], *, order: str) -> RenderableType:
    """Return all groups for printing with rich."""
    parts: list[RenderableType] = []
    for sheet in _sheets(rows, order):
        shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        shown.add_column("", no_wrap=True)
        for name in sheet.quantities:
            shown.add_column(_head(name), justify="right", no_wrap=True)
        for code, fields in sheet.rows():
            shown.add_row(escape(code), *fields)
        parts += [Text(sheet.title, style="bold"), shown]
        if sheet.averaged:
            parts.append(Text(f"Means are of {' '.join(sheet.averaged)}."))
        parts += [Text(line) for line in (*_classes(sheet), *_correlations(sheet), *_bars(sheet))]
        parts.append(Text(""))
    return Group(*parts, *(Text(line) for line in _ending(rows)), Text(LEGEND, style="dim"))


def _ending(rows: Sequence[DerivedRow]) -> list[str]:
    lines = _unfair(rows)
    if any(row.quantity == "bt" for row in rows):
        lines.append(CAUTION)
    return [*lines, f"Errata: {sum(bool(row.erratum) for row in rows)}.", *_errata(rows)]


def _head(quantity: str) -> str:
    if quantity.startswith("transfer_gap_"):
        return f"gap {quantity.removeprefix('transfer_gap_').upper()}"
    return quantity if quantity == "delta" else quantity.upper().replace("_", "-")


def _bars(sheet: _Sheet) -> list[str]:
    """Return Figure 1 of the paper, BT - TT by language, in characters."""
    own = [(code, row) for code in sheet.languages if (row := sheet.values.get(("bt_tt", code))) is not None]
    if not own:
        return []
    values = [float(row.value) for _, row in own]
    low, span = min(0.0, *values), (max(0.0, *values) - min(0.0, *values)) or 1.0
    zero = round((0.0 - low) / span * (WIDTH - 1))
    lines = [f"{TITLES['bt_tt']} by language, largest pre-training data first"]
    for (code, _), value in zip(own, values, strict=True):
        start, end = sorted((zero, round((value - low) / span * (WIDTH - 1))))
        cells = [" "] * WIDTH
        cells[start : end + 1] = "#" * (end - start + 1)
        cells[zero] = "|"
        lines.append(f"{code:>6} {''.join(cells)} {round(value, 4) + 0.0:+g}")
    return lines


def write_derived(path: Path, rows: Sequence[DerivedRow], *, order: str) -> None:
    """Write the page and its figures; raises `UsageError` if a file cannot be written."""
    figures = [each for sheet in _sheets(rows, order) if (each := _figure(sheet, order)) is not None]
    write_with_drawing(path, derived_page(rows, order=order), figures)


def derived_page(rows: Sequence[DerivedRow], *, order: str) -> str:
    """Return all groups as one page."""
    parts = []
    for number, sheet in enumerate(_sheets(rows, order)):
        heads = ["", *(_head(name) for name in sheet.quantities)]
        body = [[code, *fields] for code, fields in sheet.rows()]
        texts = [
            *([f"Means are of {' '.join(sheet.averaged)}."] if sheet.averaged else []),
            *_classes(sheet),
            *_correlations(sheet),
        ]
        shown = table(sheet.title, heads, body, hidden_caption=True)
        parts.append(section(f"sheet-{number}", sheet.title, _figure(sheet, order), shown, notes(texts)))
    main = element(
        "main",
        element("h1", "Gaps of printed scores"),
        element("p", LEGEND, class_="note"),
        parts,
        section("errata", "Errata and cautions", notes(_ending(rows))),
        id="main",
    )
    return page("Gaps of printed scores", main, description=f"{len(rows)} numbers.")


def _figure(sheet: _Sheet, order: str) -> Element | None:
    bars = [
        Bar(label=f"{code} {'' if size is None else size.text}", value=float(row.value))
        for code in sheet.languages
        if (row := sheet.values.get(("bt_tt", code))) is not None
        for size in (pretraining_size(code, order),)
    ]
    if not bars:
        return None
    return interval_bars(f"{TITLES['bt_tt']}: {sheet.title}", bars, low=None, unit="as given")
