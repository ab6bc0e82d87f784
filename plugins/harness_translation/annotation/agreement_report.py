"""The report of an annotation: how many inherited labels hold in each text, and which do not.

The quantities are those of the human evaluation in the translation-errors paper (EACL 2024, section 4.1), with the
intervals and tests that it does not give.
"""

from __future__ import annotations

import csv
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import UsageError
from harness.statistics import holm, wilson
from harness_translation.annotation.agreement import (
    Share,
    alpha_interval,
    cohen_kappa,
    krippendorff_alpha,
    two_proportions,
    weighted_share,
)
from harness_translation.annotation.key import Key, KeyedRow, Sheet
from harness_translation.annotation.sample import CONTROL, SUSPECT
from harness_translation.annotation.store import Annotations, final_label

__all__ = ["AgreementReport", "Contrast", "Precision", "SheetAgreement", "report_counts", "report_sheets"]

CUTS = (10, 20, 50, 100, 200, 500)
"""Numbers of first suspects for which precision is reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetAgreement:
    """How far the labels of people agree with the inherited ones, and with each other, in one text."""

    task: str
    language: str
    text: str
    """Version of the text and, where it is known, where it comes from."""
    n: int | None
    """Rows with a final label; None in a table that does not give it."""
    agree: float | None
    """Of them: rows whose final label is the inherited one."""
    agreement: float | None
    """Estimated share in the whole text, by the weights of the rows; None while rows are open.

    Rows that annotators agree on are the easy ones: a share of these alone would be too high.
    """
    interval: tuple[float, float] | None
    open: int = 0
    """Rows that were labelled and have no final label, since annotators disagree."""
    unlabelled: int = 0
    bounds: tuple[float, float] | None = None
    """The share among the labelled rows if the open ones all disagreed, or all agreed, with the inherited label."""
    design: str = "simple"
    each: Mapping[str, float] = field(default_factory=dict)
    """By annotator: the share of the rows that they labelled with the inherited label, before adjudication."""
    kappas: Mapping[tuple[str, str], float | None] = field(default_factory=dict)
    """Cohen's, by pair of annotators, before adjudication."""
    alpha: float | None = None
    alpha_interval: tuple[float, float] | None = None
    confusion: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """By inherited and final label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Two texts of one task compared by the two-proportion test; their items differ, so nothing is paired."""

    task: str
    across: str
    """``texts`` of one language, or ``languages`` in one text."""
    first: str
    second: str
    difference: float
    p: float
    p_holm: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """How many of the first k suspects are wrong, compared with the random control."""

    task: str
    language: str
    text: str
    k: int
    wrong: int
    precision: float
    interval: tuple[float, float]
    control: int
    control_wrong: int
    base_rate: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementReport:
    """The whole report."""

    sheets: tuple[SheetAgreement, ...]
    contrasts: tuple[Contrast, ...]
    precisions: tuple[Precision, ...] = ()
    to_fix: tuple[Mapping[str, Any], ...] = ()
    """Items whose final label is not the inherited one."""
    labels: tuple[Mapping[str, Any], ...] = ()
    """Every final label, as a gold file holds it."""


def report_sheets(key: Key, annotations: Annotations) -> AgreementReport:
    """Return the report of what was imported so far; raises `UsageError` if no row has a final label."""
    decided = {
        sheet.name: {
            keyed.row: label
            for keyed in sheet.rows
            if (label := final_label(keyed.row, annotations)) is not None
        }
        for sheet in key.sheets
    }
    used = [sheet for sheet in key.sheets if decided[sheet.name]]
    if not used:
        raise UsageError(
            "There is nothing to report: no row has a final label yet.",
            hint="Import filled-in sheets: harness annotate import DIR FILE...",
        )
    found = tuple(_agreement(sheet, annotations, decided[sheet.name]) for sheet in used)
    rows = [row for sheet in used for row in _final_rows(sheet, decided[sheet.name])]
    return AgreementReport(
        sheets=found,
        contrasts=tuple(_contrasts(found)),
        precisions=tuple(p for sheet in used for p in _precisions(sheet, decided[sheet.name])),
        to_fix=tuple(row for row in rows if row["label"] != row["inherited"]),
        labels=tuple(rows),
    )


def _agreement(sheet: Sheet, annotations: Annotations, decided: Mapping[str, str]) -> SheetAgreement:
    given = annotations.of(sheet)
    rows = [keyed for keyed in sheet.rows if keyed.row in decided]
    hits = [decided[keyed.row] == keyed.drawn.item.gold for keyed in rows]
    share = _share(sheet, rows, hits)
    labelled = {row for labels in given.values() for row in labels} | set(decided)
    left = len(labelled) - len(rows)
    units = [[labels[keyed.row] for labels in given.values() if keyed.row in labels] for keyed in sheet.rows]
    return SheetAgreement(
        task=sheet.text.task,
        language=sheet.text.language,
        text=_text_name(sheet),
        n=len(rows),
        agree=sum(hits),
        agreement=None if left else share.value,
        interval=None if left else (share.low, share.high),
        open=left,
        unlabelled=len(sheet.rows) - len(labelled),
        bounds=(sum(hits) / len(labelled), (sum(hits) + left) / len(labelled)) if left else None,
        design=sheet.design,
        each={
            name: sum(label == sheet.by_row[row].drawn.item.gold for row, label in labels.items())
            / len(labels)
            for name, labels in sorted(given.items())
        },
        kappas=dict(_kappas(given)),
        alpha=krippendorff_alpha(units),
        alpha_interval=alpha_interval(units),
        confusion=Counter((keyed.drawn.item.gold, decided[keyed.row]) for keyed in rows),
    )


def _text_name(sheet: Sheet) -> str:
    known = sheet.provenance if not sheet.text.view else ""
    return f"{sheet.text.version}, {known}" if known else sheet.text.version


def _share(sheet: Sheet, rows: Sequence[KeyedRow], hits: Sequence[bool]) -> Share:
    weights: dict[str, float] = defaultdict(float)
    for keyed in sheet.rows:
        weights[keyed.drawn.stratum] += keyed.drawn.weight
    return weighted_share(hits, [keyed.drawn.stratum for keyed in rows], weights)


def _kappas(given: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[tuple[str, str], float | None]]:
    for first, second in itertools.combinations(sorted(given), 2):
        both = [row for row in given[first] if row in given[second]]
        if both:
            pairs = ([given[name][row] for row in both] for name in (first, second))
            yield (first, second), cohen_kappa(*pairs)


def _final_rows(sheet: Sheet, decided: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for keyed in sheet.rows:
        if keyed.row in decided:
            item = keyed.drawn.item
            yield {
                "task": sheet.text.task,
                "language": sheet.text.language,
                **sheet.text.view,
                "id": item.id,
                "label": decided[keyed.row],
                "inherited": item.gold,
                "text": {**item.fields, **item.choices},
            }


def _contrasts(sheets: Sequence[SheetAgreement]) -> Iterator[Contrast]:
    """Yield the contrasts between all texts in one language, and between the same text in two languages.

    Holm's correction is applied to all contrasts of a task and sort. Weighted estimates are tested at their estimated
    successes.
    """
    families: dict[tuple[str, str], list[tuple[SheetAgreement, SheetAgreement, float]]] = defaultdict(list)
    for first, second in itertools.combinations(sheets, 2):
        across = _across(first, second)
        if across is None or not first.n or not second.n:
            continue
        if first.agreement is not None and second.agreement is not None:
            successes = first.agreement * first.n, second.agreement * second.n
            p = two_proportions(successes[0], first.n, successes[1], second.n)
            families[first.task, across].append((first, second, p))
    for (task, across), members in sorted(families.items(), reverse=True):
        for (first, second, p), adjusted in zip(members, holm([p for *_, p in members]), strict=True):
            yield Contrast(
                task=task,
                across=across,
                first=f"{first.language} {first.text}",
                second=f"{second.language} {second.text}",
                difference=(second.agreement or 0.0) - (first.agreement or 0.0),
                p=p,
                p_holm=float(adjusted),
            )


def _across(first: SheetAgreement, second: SheetAgreement) -> str | None:
    if first.task != second.task:
        return None
    if first.language == second.language:
        return "texts"
    return "languages" if first.text.partition(",")[0] == second.text.partition(",")[0] else None


def _precisions(sheet: Sheet, decided: Mapping[str, str]) -> Iterator[Precision]:
    suspects = sorted(
        (keyed for keyed in sheet.rows if keyed.drawn.stratum == SUSPECT and keyed.row in decided),
        key=lambda keyed: keyed.drawn.rank or 0,
    )
    control = [keyed for keyed in sheet.rows if keyed.drawn.stratum == CONTROL and keyed.row in decided]
    if not suspects or not control:
        return
    base = sum(decided[keyed.row] != keyed.drawn.item.gold for keyed in control)
    for k in [*(cut for cut in CUTS if cut < len(suspects)), len(suspects)]:
        wrong = sum(decided[keyed.row] != keyed.drawn.item.gold for keyed in suspects[:k])
        yield Precision(
            task=sheet.text.task,
            language=sheet.text.language,
            text=_text_name(sheet),
            k=k,
            wrong=wrong,
            precision=wrong / k,
            interval=wilson(wrong, k),
            control=len(control),
            control_wrong=base,
            base_rate=base / len(control),
            p=two_proportions(wrong, k, base, len(control)),
        )


def report_counts(path: Path) -> AgreementReport:
    """Return the report of a published table with the columns lang, text, n and label_agreement_pct.

    A column that begins with ``cohen_kappa`` is shown as well; a row without n has no interval and no test.
    Raises `UsageError` for any other table.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The table {str(path)!r} cannot be read: {error}.") from error
    rows = list(csv.DictReader(lines, delimiter="\t"))
    needed = {"lang", "text", "n", "label_agreement_pct"}
    if not rows or not needed <= set(rows[0]):
        found = ", ".join(rows[0]) if rows else "no rows"
        raise UsageError(
            f"The table {str(path)!r} needs the columns {', '.join(sorted(needed))}; found {found}."
        )
    sheets = tuple(_counted(row, f"{path}:{number}") for number, row in enumerate(rows, start=2))
    return AgreementReport(sheets=sheets, contrasts=tuple(_contrasts(sheets)))


def _counted(row: Mapping[str, str], where: str) -> SheetAgreement:
    kappa = next((value for name, value in row.items() if name.startswith("cohen_kappa")), "")
    try:
        n = int(row["n"]) if row["n"] else None
        agreement = float(row["label_agreement_pct"]) / 100
        kappas = {("1", "2"): float(kappa)} if kappa else {}
    except (ValueError, TypeError) as error:
        raise UsageError(f"{where}: expected numbers in n and label_agreement_pct ({error}).") from error
    if not 0 <= agreement <= 1 or (n is not None and n < 1):
        raise UsageError(f"{where}: expected a percentage of at least one item, found {dict(row)}.")
    return SheetAgreement(
        task="",
        language=row["lang"],
        text=row["text"],
        n=n,
        agree=None if n is None else agreement * n,
        agreement=agreement,
        interval=None if n is None else wilson(agreement * n, n),
        kappas=kappas,
    )
