"""Sentences that restate significant findings about a language, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from harness.diagnosis import LEAST_ITEMS, SIGNIFICANCE
from harness.reporting.html.material import Material, cells_of
from harness.reporting.html.weakness import Weakness, by_attribute, interval_of
from harness.reporting.summary import METRIC_SHORT, Column
from harness.results import Run
from harness.statistics import benjamini_hochberg

__all__ = ["Contrast", "Finding", "contrast", "findings", "mean_of_others", "score_of"]

SENTENCES = 3
NORMAL = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A score minus another one, as fractions, the two taken as independent."""

    difference: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One sentence about one language."""

    language: str
    text: str
    effect: float
    """Size of the difference, to put large ones first."""
    p: float | None
    """None for what is corrected for the number of tests already."""


def contrast(one: tuple[float, float | None], other: tuple[float, float | None]) -> Contrast | None:
    """Return the first minus the second of two (score, standard error), with a normal 95 % interval and p.

    Where both are of the same items, as in parallel data, the interval is too wide rather than too narrow. None where
    an error is unknown or both are 0.
    """
    if one[1] is None or other[1] is None:
        return None
    se = math.hypot(one[1], other[1])
    if se == 0:
        return None
    difference = one[0] - other[0]
    p = math.erfc(abs(difference) / se / math.sqrt(2))
    return Contrast(difference=difference, low=difference - NORMAL * se, high=difference + NORMAL * se, p=p)


def score_of(run: Run, column: Column, code: str) -> tuple[float, float | None] | None:
    """Return a language's score and its standard error; that of one seed only, else None."""
    found = [
        cell["metrics"][column.metric]
        for cell in cells_of(run, column, code)
        if cell["status"] == "ok" and column.metric in cell["metrics"]
    ]
    if not found:
        return None
    return fmean(entry["value"] for entry in found), found[0].get("se") if len(found) == 1 else None


def mean_of_others(
    run: Run, column: Column, code: str, codes: Sequence[str]
) -> tuple[float, float | None] | None:
    """Return the unweighted mean of the other languages and its standard error, languages taken as independent."""
    found = [score for other in codes if other != code if (score := score_of(run, column, other)) is not None]
    if not found:
        return None
    errors = [error for _, error in found if error is not None]
    se = math.hypot(*errors) / len(found) if len(errors) == len(found) else None
    return fmean(value for value, _ in found), se


def findings(material: Material, weakness: Weakness) -> dict[str, list[str]]:
    """Return up to three sentences a language.

    All contrasts of the first run are tested together: Benjamini-Hochberg at the rate of the diagnosis. Differences of
    two runs are those that the diagnosis itself calls significant.
    """
    tested = [*_behind_others(material), *_buckets(weakness)]
    rates = benjamini_hochberg([finding.p or 0.0 for finding in tested]).tolist() if tested else []
    kept = [finding for finding, q in zip(tested, rates, strict=True) if q <= SIGNIFICANCE]
    kept += _pairs(weakness)
    found: dict[str, list[str]] = {}
    for finding in sorted(kept, key=lambda one: -one.effect):
        own = found.setdefault(finding.language, [])
        if len(own) < SENTENCES:
            own.append(finding.text)
    return found


def _behind_others(material: Material) -> Iterator[Finding]:
    run = material.runs[0]
    codes = [code for code, _, _ in material.languages]
    for column in material.summary.columns:
        for code, name, _ in material.languages:
            own, others = score_of(run, column, code), mean_of_others(run, column, code, codes)
            found = None if own is None or others is None else contrast(others, own)
            if found is not None and found.difference > 0:
                metric = METRIC_SHORT.get(column.metric, column.metric)
                text = (
                    f"{column.task}: {name} scores {_points(found.difference)} lower ({metric}) than the mean of the "
                    f"other languages ({_interval(found.low, found.high)})."
                )
                yield Finding(language=code, text=text, effect=found.difference, p=found.p)


def _buckets(weakness: Weakness) -> Iterator[Finding]:
    """Yield the contrasts of the last interval of each attribute with its first, which were chosen beforehand."""
    rows = [row for row in (weakness.runs[0] if weakness.runs else ()) if row["kind"] == "single"]
    systems = {row["task"]: row["system"] for row in reversed(rows)}
    for language in dict.fromkeys(row["language"] for row in rows if row["language"] is not None):
        own = [row for row in rows if row["language"] == language and row["system"] == systems[row["task"]]]
        for (task, _, attribute), buckets in by_attribute(own).items():
            first, last = buckets[0], buckets[-1]
            if len(buckets) < 2 or first["low"] is None or min(first["n"], last["n"]) < LEAST_ITEMS:
                continue
            if first["value"] is None or last["value"] is None:
                continue
            found = contrast((last["value"], last["se"]), (first["value"], first["se"]))
            if found is not None:
                yield _bucket_finding(found, task, language, weakness.title(attribute), first, last)


def _bucket_finding(
    found: Contrast, task: str, language: str, title: str, first: Mapping[str, Any], last: Mapping[str, Any]
) -> Finding:
    down = found.difference < 0
    low, high = (-found.high, -found.low) if down else (found.low, found.high)
    things = "spans" if last.get("level") == "span" else "items"
    text = (
        f"{task}: {things} whose {title} is in {interval_of(last)} score {_points(abs(found.difference))} "
        f"{'lower' if down else 'higher'} than those in {interval_of(first)} ({_interval(low, high)})."
    )
    return Finding(language=language, text=text, effect=abs(found.difference), p=found.p)


def _pairs(weakness: Weakness) -> Iterator[Finding]:
    for row in weakness.pairs:
        if row["kind"] == "pairwise" and row["language"] is not None and row["significant"] and row["ci"]:
            first, second = row["systems"]
            down = row["difference"] < 0
            low, high = row["ci"]
            low, high = (-high, -low) if down else (low, high)
            things = "spans" if row.get("level") == "span" else "items"
            text = (
                f"{row['task']}: on {things} whose {weakness.title(row['attribute'])} is {_named(row)}, {second} scores "
                f"{_points(abs(row['difference']))} {'lower' if down else 'higher'} than {first} "
                f"({_interval(low, high)})."
            )
            yield Finding(language=row["language"], text=text, effect=abs(row["difference"]), p=None)


def _named(row: Mapping[str, Any]) -> str:
    return f"in {interval_of(row)}" if row["low"] is not None else interval_of(row)


def _points(difference: float) -> str:
    return f"{difference * 100:.1f} points"


def _interval(low: float, high: float) -> str:
    return f"95 % interval {low * 100:.1f} to {high * 100:.1f}"
