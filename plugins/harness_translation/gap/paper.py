"""Tables of printed scores by version of a test set, and every number that follows from one, next to it."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from harness import DataError, UsageError
from harness.metrics import metric_name
from harness.reporting import BLANK, Bar, CurveChart, Section, Table
from harness_translation.gap.correlation import by_size, correlation
from harness_translation.gap.sections import (
    CAUTION,
    Point,
    gap_section,
    gap_table,
    paper_table,
    size_text,
    transfer_chart,
    unfair_text,
)
from harness_translation.gap.system import CONTRASTS, FLAGGED, HEADS, TITLES, VARIANTS, contrast

COLUMNS: Final = (
    "table", "task", "metric", "model", "train", "split", "variant", "translator", "lang", "value",
)  # fmt: skip
_AVERAGE: Final = "avg"
_DELTA: Final = "delta"
SOURCE: Final = "en"
UNFAIR: Final = "the context is in the target language for ZS and in English for TT and BT"
SPAN_TASKS: Final = frozenset({"mlqa", "xquad", "tydiqa"})
"""Tasks of which only the question is translated."""
LEGEND: Final = (
    "Units as given. Means are means of the languages' own values, without the source language; gap: the "
    "source language's ZS minus the score. ~ compares more than translations."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A number as written in a file."""

    text: str
    line: int

    @property
    def exact(self) -> Fraction:
        """Return its exact value."""
        return Fraction(Decimal(self.text))


PrintedRow = Mapping[str, Printed]
"""By language, or ``avg``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreGroup:
    """The rows of one table for one task, metric, model, train variant and split."""

    table: str
    task: str
    metric: str
    model: str
    train: str
    split: str
    rows: Mapping[tuple[str, str], PrintedRow]
    """By variant in lower case (``delta`` for printed differences) and translator."""


def read_scores(path: Path) -> list[ScoreGroup]:
    """Return the tables of a file in its order.

    Raises:
        UsageError: If the file does not exist, or a column is missing.
        DataError: If a value is not a number, the file has none of the four variants, or a cell occurs twice; the
            message names the line.
    """
    if not path.is_file():
        raise UsageError(f"The score file {str(path)!r} does not exist.")
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as UTF-8 text: {error}.") from error
    reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    head = next(reader, [])
    missing = [name for name in COLUMNS if name not in head]
    if missing:
        raise UsageError(
            f"{path}: expected the columns {' '.join(COLUMNS)}; {' '.join(missing)} not found in {' '.join(head)!r}.",
            hint="harness_translation.gap.paper describes the columns.",
        )
    rows_by_group: dict[tuple[str, ...], dict[tuple[str, str], dict[str, Printed]]] = {}
    for number, fields in enumerate(reader, start=2):
        where = f"{path}:{number}"
        if any(fields) and len(fields) != len(head):
            raise DataError(f"{where}: expected {len(head)} fields, found {len(fields)}.")
        row = dict(zip(head, (field.strip() for field in fields), strict=False))
        if not row.get("value"):
            continue
        variant, fault = row["variant"].lower(), _fault(row)
        if fault:
            raise DataError(f"{where}: {fault}.")
        group = rows_by_group.setdefault(tuple(row[name] for name in COLUMNS[:6]), {})
        cells = group.setdefault((variant, "" if variant == "zs" else row["translator"]), {})
        if row["lang"] in cells:
            raise DataError(
                f"{where}: the cell of table {row['table']!r}, {row['variant']} {row['translator']} in "
                f"{row['lang']!r} is in line {cells[row['lang']].line} already."
            )
        cells[row["lang"]] = Printed(text=row["value"], line=number)
    groups = [
        ScoreGroup(**dict(zip(COLUMNS[:6], key, strict=True)), rows=rows)
        for key, rows in rows_by_group.items()
    ]
    if not any(variant in VARIANTS for group in groups for variant, _ in group.rows):
        raise DataError(f"{path}: no row is of a variant {', '.join(map(str.upper, VARIANTS))}.")
    return groups


def _fault(row: Mapping[str, str]) -> str:
    """Return the fault of a row, or an empty text."""
    try:
        finite = Decimal(row["value"]).is_finite()
    except InvalidOperation:
        finite = False
    if not finite:
        return f"expected a number as value, found {row['value']!r}"
    if not row["lang"]:
        return "the row names no language"
    if row["variant"].lower() in VARIANTS[1:] and not row["translator"]:
        return f"a score of variant {row['variant']!r} names no translator"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedRow:
    """A number that follows from the scores of a table, in their unit."""

    group: ScoreGroup
    translator: str
    lang: str
    quantity: str
    value: Fraction
    printed: Printed | None = None
    """The table's own number; printed averages of some tables hold the source language, too."""
    languages: tuple[str, ...] = ()
    """The languages that it is the mean of."""
    interval: tuple[float, float] | None = None
    """95 %, of rank correlations."""

    @property
    def unfair(self) -> str:
        """Why the two sides of a contrast differ in more than their translation."""
        spans = self.group.task.lower().replace("-", "") in SPAN_TASKS
        return UNFAIR if spans and self.quantity in {"delta", "tt_zs"} else ""

    def to_json(self) -> dict[str, Any]:
        """Return it as a plain object."""
        group = self.group
        return {
            "table": group.table,
            "task": group.task,
            "model": group.model,
            "train": group.train,
            "translator": self.translator or None,
            "lang": self.lang,
            "quantity": self.quantity,
            "value": float(self.value),
            "printed": None if self.printed is None else float(self.printed.exact),
            "metric": group.metric,
            "split": group.split,
            "unfair": self.unfair or None,
            "languages": list(self.languages) or None,
            "ci_low": None if self.interval is None else self.interval[0],
            "ci_high": None if self.interval is None else self.interval[1],
        }


def derived_rows(groups: Sequence[ScoreGroup]) -> list[DerivedRow]:
    """Return, table by table, the cells themselves, contrasts, means, transfer gaps and rank correlations.

    Groups without a variant of the paper (attention overlaps) have no rows.
    """
    return [row for group in groups for row in _group_rows(group)]


def _group_rows(group: ScoreGroup) -> Iterator[DerivedRow]:
    scores = {key: row for key, row in group.rows.items() if key[0] in VARIANTS}
    codes = {code for row in scores.values() for code in row}
    targets = by_size([code for code in codes if code not in {SOURCE, _AVERAGE} and "@" not in code])
    for (variant, translator), row in scores.items():
        for code, printed in row.items():
            if code != _AVERAGE:
                yield DerivedRow(
                    group=group,
                    translator=translator,
                    lang=code,
                    quantity=variant,
                    value=printed.exact,
                    printed=printed,
                )
    for translator in sorted({translator for _, translator in scores if translator}):
        for quantity in CONTRASTS:
            yield from _contrast_rows(group, quantity, translator, targets)
    for variant, translator in scores:
        yield from _mean_rows(group, variant, translator, targets)
        yield from _transfer_rows(group, variant, translator, targets)


def _contrast_rows(
    group: ScoreGroup, quantity: str, translator: str, targets: Sequence[str]
) -> Iterator[DerivedRow]:
    """Yield a contrast of every language, its means and its rank correlation with pre-training size."""
    needed = {
        name: group.rows.get((name, "" if name == "zs" else translator), {}) for name in CONTRASTS[quantity]
    }
    printed = group.rows.get((_DELTA, translator), {}) if quantity == "delta" else {}
    values: dict[str, Fraction] = {
        code: contrast(quantity, {name: row[code].exact for name, row in needed.items()})
        for code in targets
        if all(code in row for row in needed.values())
    }
    common: dict[str, Any] = {"group": group, "translator": translator}
    for code, value in values.items():
        yield DerivedRow(**common, quantity=quantity, lang=code, value=value, printed=printed.get(code))
    if not values:
        return
    mean = _mean(values.values())
    common |= {"lang": _AVERAGE}
    yield DerivedRow(
        **common, quantity=quantity, value=mean, languages=tuple(values), printed=printed.get(_AVERAGE)
    )
    vectors = {code: [float(value)] for code, value in values.items()}
    estimate = correlation(quantity, translator, vectors, 1) if quantity in FLAGGED else None
    if estimate is not None:
        yield DerivedRow(
            **common,
            quantity=f"rank_correlation_{quantity}",
            value=Fraction(estimate.rho),
            languages=estimate.languages,
            interval=(estimate.low, estimate.high),
        )


def _mean_rows(
    group: ScoreGroup, variant: str, translator: str, targets: Sequence[str]
) -> Iterator[DerivedRow]:
    """Yield the mean over targets, and the mean with the source language if the row has it."""
    row = group.rows[variant, translator]
    codes = tuple(code for code in targets if code in row)
    means = {f"mean_{variant}": codes, f"mean_with_source_{variant}": (SOURCE, *codes)}
    for name, averaged in means.items():
        if not codes or any(code not in row for code in averaged):
            continue
        value = _mean(row[code].exact for code in averaged)
        yield DerivedRow(
            group=group,
            translator=translator,
            lang=_AVERAGE,
            quantity=name,
            value=value,
            languages=averaged,
            printed=row.get(_AVERAGE) if averaged == codes else None,
        )


def _transfer_rows(
    group: ScoreGroup, variant: str, translator: str, targets: Sequence[str]
) -> Iterator[DerivedRow]:
    """Yield the source language's score minus those of the targets (Hu et al. 2020, section 5)."""
    row, human = group.rows[variant, translator], group.rows.get(("zs", ""), {})
    values = {
        code: source.exact - row[code].exact
        for code in targets
        if code in row and (source := human.get(f"{SOURCE}@{code}", human.get(SOURCE))) is not None
    }
    common: dict[str, Any] = {"group": group, "translator": translator}
    name = f"transfer_gap_{variant}"
    for code, value in values.items():
        yield DerivedRow(**common, lang=code, quantity=name, value=value)
    if values:
        mean, codes = _mean(values.values()), tuple(values)
        yield DerivedRow(**common, lang=_AVERAGE, quantity=name, value=mean, languages=codes)
    if values and SOURCE in row:
        codes = (SOURCE, *values)
        mean = row[SOURCE].exact - _mean(row[code].exact for code in codes)
        name = f"transfer_gap_with_source_{variant}"
        yield DerivedRow(**common, lang=_AVERAGE, quantity=name, value=mean, languages=codes)


def _mean(values: Any) -> Fraction:
    numbers = list(values)
    return sum(numbers, Fraction(0)) / len(numbers)


def derived_sections(rows: Sequence[DerivedRow]) -> list[Section]:
    """Return one section per group and translator."""
    sections = []
    for group in {id(row.group): row.group for row in rows}.values():
        group_rows = [row for row in rows if row.group is group]
        for translator in sorted({row.translator for row in group_rows if row.translator}) or [""]:
            # Human text belongs to every translator.
            section_rows = [row for row in group_rows if row.translator in {"", translator}]
            sections.append(_section(group, translator, section_rows))
    return sections


def _title(group: ScoreGroup) -> str:
    metric = metric_name(group.metric)
    return f"Table {group.table}: {group.task} {group.split} {metric}, {group.model}, {group.train}"


def _section(group: ScoreGroup, translator: str, rows: Sequence[DerivedRow]) -> Section:
    by = f", {translator}" if translator else ""
    title = f"{_title(group)}{by}"
    values = {(row.quantity, row.lang): row for row in rows}
    names = [name for name in HEADS if any(quantity == name for quantity, _ in values)]
    codes = {row.lang for row in rows if row.quantity in VARIANTS}
    sources = sorted(code for code in codes if code.partition("@")[0] == SOURCE)
    codes_by_size = [*sources, *by_size(codes - set(sources))]
    means = {name: values.get((f"mean_{name}" if name in VARIANTS else name, _AVERAGE)) for name in names}
    # A mean over other languages cannot be compared with the rest of its row.
    averaged = min((mean.languages for mean in means.values() if mean is not None), key=len, default=())
    fields = [[code, *(_field(values.get((name, code))) for name in names)] for code in codes_by_size]
    if averaged:
        alike = [mean if mean is not None and mean.languages == averaged else None for mean in means.values()]
        fields.append(["mean", *(_field(mean, digits=2) for mean in alike)])
    heads = ["", *(HEADS[name] for name in names)]
    return gap_section(
        title,
        [gap_table("Scores, contrasts and transfer gaps", heads, fields)],
        [*([f"Means are of {' '.join(averaged)}."] if averaged else []), *_notes(rows, names)],
        figure=f"{TITLES['bt_tt']}: {title}",
        bars=[
            Bar(label=f"{code} {size_text(code)}", value=float(row.value))
            for code in codes_by_size
            if (row := values.get(("bt_tt", code))) is not None
        ],
        unit="as given",
    )


def derived_curves(rows: Sequence[DerivedRow]) -> list[CurveChart | None]:
    """Return Figure 1 of the paper for every table and translator; None without both curves."""
    charts: dict[tuple[int, str], dict[str, dict[str, Point]]] = {}
    groups = {id(row.group): row.group for row in rows}
    for row in rows:
        # Human text belongs to every translator.
        by = [row.translator] if row.translator else sorted({name for _, name in row.group.rows} - {""})
        for translator in by if row.quantity in VARIANTS else ():
            points = charts.setdefault((id(row.group), translator), {}).setdefault(row.quantity, {})
            points[row.lang] = Point(value=float(row.value))
    return [
        transfer_chart(
            f"Table {groups[group].table}: {groups[group].task}, {groups[group].train}, {translator}",
            SOURCE,
            points,
            by_size(set(points.get("tt", ())) - {SOURCE}),
        )
        for (group, translator), points in charts.items()
    ]


def derived_tables(rows: Sequence[DerivedRow]) -> list[Table]:
    """Return the scores of every table in the paper's orientation."""
    tables = []
    for group in {id(row.group): row.group for row in rows}.values():
        own = {(row.quantity, row.translator, row.lang): row for row in rows if row.group is group}
        codes = dict.fromkeys(
            code for row in group.rows.values() for code in row if code not in {SOURCE, _AVERAGE}
        )

        def text(
            quantity: str,
            translator: str,
            code: str | None,
            own: Mapping[Any, DerivedRow] = own,
            size: int = len(codes),
        ) -> str:
            name = quantity if code is not None or quantity == "delta" else f"mean_{quantity}"
            row = own.get((name, translator, _AVERAGE if code is None else code))
            complete = row is not None and (code is not None or len(row.languages) == size)
            return _field(row, digits=None if code is not None else 1) if complete else ""

        title = _title(group)
        translators = sorted({translator for _, translator in group.rows} - {""})
        tables.append(paper_table(title, SOURCE, list(codes), translators, text))
    return tables


def _field(row: DerivedRow | None, digits: int | None = None) -> str:
    if row is None:
        return BLANK
    value = float(row.value)
    decimals = digits if digits is not None else 1 if round(value, 1) == round(value, 4) else 2
    # Adding zero turns a rounded -0.0 into 0.0.
    return f"{round(value, decimals) + 0.0:.{decimals}f}{'~' if row.unfair else ''}"


def _notes(rows: Sequence[DerivedRow], names: Collection[str]) -> Iterator[str]:
    unfair: Mapping[str, str] = {row.quantity: row.unfair for row in rows if row.unfair}
    for row in rows:
        if row.interval is not None:
            yield (
                f"{TITLES[row.quantity.removeprefix('rank_correlation_')]}: Spearman's rho with pre-training size "
                f"{float(row.value):+.2f} (95 % {row.interval[0]:+.2f} to {row.interval[1]:+.2f} over "
                f"{len(row.languages)} languages)."
            )
    yield from (unfair_text(name, why, rows[0].group.task) for name, why in unfair.items())
    if "bt" in names:
        yield CAUTION
