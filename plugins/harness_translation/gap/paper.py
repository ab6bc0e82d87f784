"""Every number that follows from a table of printed scores, the printed number, and why they differ.

Arithmetic is exact (fractions of the decimals as printed). A mean is over the values of the target languages, without
the source language; if a printed average follows another rule, or is truncated instead of rounded, the row says so.
The paper's tables follow four rules: the mean without English, the mean with it, the difference of two means, and
each of them truncated.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import cache
from importlib import resources
from typing import Any, Final

from harness_translation.gap.correlation import correlation
from harness_translation.gap.formula import CONTRASTS, FLAGGED, VARIANTS
from harness_translation.gap.pretraining import by_size, resource_class
from harness_translation.gap.score_file import AVERAGE, DELTA, Printed, PrintedRow, ScoreGroup

__all__ = ["SOURCE", "DerivedRow", "derived_rows"]

SOURCE: Final = "en"
UNFAIR: Final = "the context is in the target language for ZS and in English for TT and BT"
SPAN_TASKS: Final = frozenset({"mlqa", "xquad", "tydiqa"})
"""Tasks of which only the question is translated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedRow:
    """A number that follows from the scores of a table, in their unit."""

    group: ScoreGroup
    translator: str
    lang: str
    quantity: str
    value: Fraction
    printed: Printed | None = None
    erratum: str = ""
    """Why the printed number differs from the computed one; empty if it does not, or nothing is printed."""
    unfair: str = ""
    languages: tuple[str, ...] = ()
    """The languages that it is the mean of."""
    interval: tuple[float, float] | None = None
    """95 %, of rank correlations."""

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
            "erratum": self.erratum or None,
            "metric": group.metric,
            "split": group.split,
            "unfair": self.unfair or None,
            "languages": list(self.languages) or None,
            "ci_low": None if self.interval is None else self.interval[0],
            "ci_high": None if self.interval is None else self.interval[1],
        }


def derived_rows(groups: Sequence[ScoreGroup], order: str = "cc100") -> list[DerivedRow]:
    """Return, table by table, the cells themselves, contrasts, means, transfer gaps and rank correlations.

    Groups without a variant of the paper (attention overlaps) have no rows.
    """
    return [row for group in groups for row in _Derivation(group, groups, order).rows()]


class _Derivation:
    """The numbers of one group."""

    def __init__(self, group: ScoreGroup, groups: Sequence[ScoreGroup], order: str) -> None:
        self._group, self._groups, self._order = group, groups, order
        self._scores = {key: row for key, row in group.rows.items() if key[0] in VARIANTS}
        self._translators = sorted({translator for _, translator in self._scores if translator})
        codes = {code for row in self._scores.values() for code in row}
        self._targets = by_size([code for code in codes if _is_target(code)], order)
        self._span = group.task.lower().replace("-", "") in SPAN_TASKS

    def rows(self) -> Iterator[DerivedRow]:
        for (variant, translator), row in self._scores.items():
            yield from self._cells(variant, translator, row)
        for translator in self._translators:
            for quantity in CONTRASTS:
                yield from self._contrasts(quantity, translator)
        for (variant, translator), row in self._scores.items():
            yield from self._means(variant, translator, row)
            yield from self._transfer_gaps(variant, translator, row)

    def _row(self, quantity: str, translator: str, lang: str, value: Fraction, **given: Any) -> DerivedRow:
        unfair = UNFAIR if self._span and quantity in {"delta", "tt_zs"} else ""
        return DerivedRow(
            group=self._group,
            translator=translator,
            lang=lang,
            quantity=quantity,
            value=value,
            unfair=unfair,
            **given,
        )

    def _cells(self, variant: str, translator: str, row: PrintedRow) -> Iterator[DerivedRow]:
        """Yield the printed scores; if another table prints a different score for the same cell, both are errata."""
        for code, printed in row.items():
            if code != AVERAGE:
                erratum = self._elsewhere(variant, translator, code, printed)
                yield self._row(variant, translator, code, printed.exact, printed=printed, erratum=erratum)

    def _elsewhere(self, variant: str, translator: str, code: str, printed: Printed) -> str:
        errata = []
        for other in self._groups:
            if other is self._group or other.identity != self._group.identity:
                continue
            found = other.rows.get((variant, translator), {}).get(code)
            if found is None or found.exact == printed.exact:
                continue
            rounded = abs(found.exact - printed.exact) <= Fraction(1, 10)
            errata.append(
                f"table {other.table} prints {found.text} for the same cell"
                + (" (rounding)" if rounded else "")
            )
        return "; ".join(errata)

    def _contrasts(self, quantity: str, translator: str) -> Iterator[DerivedRow]:
        needed = [
            self._scores.get((name, "" if name == "zs" else translator), {}) for name in CONTRASTS[quantity]
        ]
        printed = self._group.rows.get((DELTA, translator), {}) if quantity == "delta" else {}
        values: dict[str, Fraction] = {}
        for code in self._targets:
            if all(code in row for row in needed):
                own = [row[code].exact for row in needed]
                values[code] = _contrast(quantity, own)
                shown = printed.get(code)
                formula = _formula(quantity, [row[code].text for row in needed], values[code])
                erratum = self._reason(shown, values[code], (DELTA, translator), code, formula, {}, printed)
                yield self._row(quantity, translator, code, values[code], printed=shown, erratum=erratum)
        if not values:
            return
        mean = _mean(values.values())
        shown = printed.get(AVERAGE)
        means = [_mean(row[code].exact for code in values) for row in needed]
        others = {}
        if quantity == "delta":
            others["mean of BT minus mean of TT"] = means[2] - means[1]
            others["mean of BT minus mean of ZS"] = means[2] - means[0]
        rule = f"the mean of the {len(values)} deltas is {_shown(mean)}"
        erratum = self._reason(shown, mean, (DELTA, translator), AVERAGE, rule, others, printed)
        names = tuple(values)
        yield self._row(quantity, translator, AVERAGE, mean, printed=shown, erratum=erratum, languages=names)
        yield from self._classes(quantity, translator, values)

    def _classes(
        self, quantity: str, translator: str, values: Mapping[str, Fraction]
    ) -> Iterator[DerivedRow]:
        """Yield the mean of every class of resources, and the rank correlation with pre-training size."""
        classes: dict[str, list[str]] = {}
        for code in values:
            name = resource_class(code, self._order)
            if name is not None:
                classes.setdefault(name, []).append(code)
        if len(classes) > 1:
            for name, codes in classes.items():
                mean = _mean(values[code] for code in codes)
                yield self._row(quantity, translator, name, mean, languages=tuple(codes))
        if quantity in FLAGGED:
            vectors = {code: [float(value)] for code, value in values.items()}
            found = correlation(quantity, translator, vectors, self._order, 1)
            if found is not None:
                name, rho = f"rank_correlation_{quantity}", Fraction(found.rho)
                ends = (found.low, found.high)
                yield self._row(name, translator, AVERAGE, rho, languages=found.languages, interval=ends)

    def _means(self, variant: str, translator: str, row: PrintedRow) -> Iterator[DerivedRow]:
        """Yield the mean over targets, and the mean with the source language if the row has it."""
        codes = tuple(code for code in self._targets if code in row)
        if not codes:
            return
        shown = row.get(AVERAGE)
        mean = _mean(row[code].exact for code in codes)
        others, rule = {}, f"the mean of {len(codes)} languages without {SOURCE} is {_shown(mean)}"
        whole = (SOURCE, *codes)
        if SOURCE in row:
            others[f"mean of {len(whole)} languages with {SOURCE}"] = _mean(row[code].exact for code in whole)
            rule += f" and that of {len(whole)} with it {_shown(*others.values())}"
        erratum = self._reason(shown, mean, (variant, translator), AVERAGE, rule, others, row)
        if shown is not None and not erratum:
            erratum = self._same_mean(variant, translator, shown)
        yield self._row(
            f"mean_{variant}", translator, AVERAGE, mean, printed=shown, erratum=erratum, languages=codes
        )
        for value in others.values():
            fits = shown is not None and (_rounded(value, shown, row) or _truncated(value, shown, row))
            given = {"printed": shown, "erratum": _cut(value, shown, row)} if fits else {}
            name = f"mean_with_source_{variant}"
            yield self._row(name, translator, AVERAGE, value, languages=whole, **given)

    def _same_mean(self, variant: str, translator: str, shown: Printed) -> str:
        """Return which other table prints a different average for this row, by the same rule."""
        for other in self._groups:
            row = other.rows.get((variant, translator), {})
            found = row.get(AVERAGE)
            if other is self._group or other.identity != self._group.identity or found is None:
                continue
            codes = [code for code in row if _is_target(code)]
            own = _mean(row[code].exact for code in codes)
            if found.exact != shown.exact and _rounded(own, found, row):
                return f"table {other.table} prints {found.text} for the same mean, which follows from its own cells"
        return ""

    def _transfer_gaps(self, variant: str, translator: str, row: PrintedRow) -> Iterator[DerivedRow]:
        """Yield the source language's score minus those of the targets (Hu et al. 2020, section 5)."""
        human = self._scores.get(("zs", ""), {})
        values = {}
        for code in self._targets:
            source = human.get(f"{SOURCE}@{code}", human.get(SOURCE))
            if code in row and source is not None:
                values[code] = source.exact - row[code].exact
        name = f"transfer_gap_{variant}"
        for code, value in values.items():
            yield self._claimed(name, translator, code, value, {})
        if not values:
            return
        others = {}
        if SOURCE in row:
            with_source = row[SOURCE].exact - _mean(
                row[code].exact for code in (SOURCE, *values) if code in row
            )
            others[f"{SOURCE} minus the mean of {len(values) + 1} languages with {SOURCE}"] = with_source
        yield self._claimed(name, translator, AVERAGE, _mean(values.values()), others, tuple(values))
        for value in others.values():
            with_name = f"transfer_gap_with_source_{variant}"
            yield self._row(with_name, translator, AVERAGE, value, languages=(SOURCE, *values))

    def _claimed(
        self,
        quantity: str,
        translator: str,
        code: str,
        value: Fraction,
        others: Mapping[str, Fraction],
        languages: tuple[str, ...] = (),
    ) -> DerivedRow:
        """Return a transfer gap with the number that the paper's text gives."""
        source = self._scores.get(("zs", ""), {}).get(SOURCE)
        group = self._group
        key = (group.table, group.task, group.model, group.train, translator, code, quantity)
        claim = _claims().get(key)
        if claim is None or source is None or claim["source_score"] != source.text:
            return self._row(quantity, translator, code, value, languages=languages)
        shown = Printed(text=claim["printed"], line=0)
        erratum = self._reason(shown, value, None, code, f"like for like it is {_shown(value)}", others, {})
        reason = f"{claim['where']}: {erratum}" if erratum else ""
        return self._row(
            quantity, translator, code, value, printed=shown, erratum=reason, languages=languages
        )

    def _reason(
        self,
        shown: Printed | None,
        value: Fraction,
        place: tuple[str, str] | None,
        code: str,
        formula: str,
        others: Mapping[str, Fraction],
        row: PrintedRow,
    ) -> str:
        """Return why a printed number differs from the computed one, or an empty text if it does not."""
        if shown is None or _rounded(value, shown, row):
            return ""
        for name, other in others.items():
            if _rounded(other, shown, row):
                return f"{formula}; {shown.text} is the {name}, {_shown(other)}"
        if _truncated(value, shown, row):
            return f"{formula}; {shown.text} is truncated, not rounded"
        for name, other in others.items():
            if _truncated(other, shown, row):
                return f"{formula}; {shown.text} is the {name}, {_shown(other)}, truncated"
        alike = [
            f"table {other.table} prints {shown.text} for {other.train}"
            for other in self._groups
            if place is not None
            and other is not self._group
            and (other.task, other.metric, other.model) == self._group.identity[:3]
            and (found := other.rows.get(place, {}).get(code)) is not None
            and found.exact == shown.exact
        ]
        return "; ".join([f"{formula}, and {shown.text} follows from no rule", *alike[:1]])


def _is_target(code: str) -> bool:
    return code not in {SOURCE, AVERAGE} and "@" not in code


def _contrast(quantity: str, scores: Sequence[Fraction]) -> Fraction:
    """Return `harness_translation.gap.formula.contrast` of exact numbers."""
    if quantity == "delta":
        return scores[2] - max(scores[0], scores[1])
    return scores[1] - scores[0]


def _formula(quantity: str, texts: Sequence[str], value: Fraction) -> str:
    if quantity == "delta":
        return f"{texts[2]} - max({texts[0]}, {texts[1]}) = {_shown(value)}"
    return f"{texts[1]} - {texts[0]} = {_shown(value)}"


def _mean(values: Any) -> Fraction:
    known = list(values)
    return sum(known, Fraction(0)) / len(known)


def _shown(value: Fraction) -> str:
    return f"{float(value):.4f}".rstrip("0").rstrip(".")


def _decimals(shown: Printed, row: PrintedRow) -> int:
    """Return the number of printed decimals; a number without any is as exact as the others of its row."""
    return shown.decimals or min((each.decimals for each in row.values() if each.decimals), default=0)


def _quantized(value: Fraction, digits: int, rounding: str) -> Fraction:
    exact = Decimal(value.numerator) / Decimal(value.denominator)
    return Fraction(exact.quantize(Decimal(1).scaleb(-digits), rounding=rounding))


def _rounded(value: Fraction, shown: Printed, row: PrintedRow) -> bool:
    return _quantized(value, _decimals(shown, row), ROUND_HALF_UP) == shown.exact


def _truncated(value: Fraction, shown: Printed, row: PrintedRow) -> bool:
    return _quantized(value, _decimals(shown, row), ROUND_DOWN) == shown.exact


def _cut(value: Fraction, shown: Printed | None, row: PrintedRow) -> str:
    if shown is None or _rounded(value, shown, row):
        return ""
    return f"{_shown(value)}; {shown.text} is truncated, not rounded"


@cache
def _claims() -> Mapping[tuple[str, ...], Mapping[str, str]]:
    """Return the transfer gaps in the paper's text, by the first seven columns of ``printed_gap.tsv``."""
    text = resources.files("harness_translation.gap").joinpath("printed_gap.tsv").read_text(encoding="utf-8")
    names = ("table", "task", "model", "train", "translator", "lang", "quantity")
    rows = csv.DictReader(text.splitlines(), delimiter="\t")
    return {tuple(row[name] for name in names): row for row in rows}
