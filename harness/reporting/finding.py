"""Sentences that restate significant findings about one language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.analysis.diagnosis import LEAST_ITEMS, SIGNIFICANCE
from harness.reporting.column import METRIC_SHORT
from harness.reporting.contrast import Contrast, contrast, estimate_of_row, mean_of_others, score_of
from harness.reporting.material import Material
from harness.reporting.weakness import Weakness, by_attribute, interval_of
from harness.statistics import benjamini_hochberg

__all__ = ["findings"]

SENTENCES = 3


Finding = tuple[str, str, float, Contrast | None]
"""Language, sentence, size of the difference, and what is tested; None for what the diagnosis has tested."""


def findings(material: Material, weakness: Weakness) -> dict[str, list[str]]:
    """Return up to three sentences per language.

    All contrasts of the first run are tested together: Benjamini-Hochberg at the rate of the diagnosis. Differences of
    two runs are those that the diagnosis itself calls significant.
    """
    tested = [*_behind_others(material), *_buckets(weakness)]
    rates = benjamini_hochberg([found.p for *_, found in tested if found is not None]).tolist()
    kept = [
        one
        for one, q in zip(tested, rates, strict=True)
        if q <= SIGNIFICANCE and one[-1] is not None and one[-1].excludes_zero
    ]
    found: dict[str, list[str]] = {}
    for language, text, *_ in sorted([*kept, *_pairs(weakness)], key=lambda one: -one[2]):
        own = found.setdefault(language, [])
        if len(own) < SENTENCES:
            own.append(text)
    return found


def _behind_others(material: Material) -> Iterator[Finding]:
    run = material.runs[0]
    codes = [code for code, _, _ in material.languages]
    for column in material.summary.columns:
        for code, name, _ in material.languages:
            own, others = score_of(run, column, code), mean_of_others(run, column, code, codes)
            if own is None or others is None or min(own.draws, others.draws) < LEAST_ITEMS:
                continue
            found = contrast(others, own)
            if found is not None and found.difference > 0:
                metric = METRIC_SHORT.get(column.metric, column.metric)
                text = (
                    f"{column.task}: {name} scores {_points(found.difference)} lower ({metric}) than the mean of the "
                    f"other languages ({_interval(found.low, found.high)})."
                )
                yield code, text, found.difference, found


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
            end, start = estimate_of_row(last), estimate_of_row(first)
            found = None if end is None or start is None else contrast(end, start)
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
    return language, text, abs(found.difference), found


def _pairs(weakness: Weakness) -> Iterator[Finding]:
    for row in weakness.pairs:
        if row["kind"] == "pairwise" and row["language"] is not None and row["significant"] and row["ci"]:
            first, second = row["systems"]
            down = row["difference"] < 0
            low, high = row["ci"]
            low, high = (-high, -low) if down else (low, high)
            things = "spans" if row.get("level") == "span" else "items"
            text = (
                f"{row['task']}: on {things} whose {weakness.title(row['attribute'])} is {_named(row)}, {second} "
                f"scores {_points(abs(row['difference']))} {'lower' if down else 'higher'} than {first} "
                f"({_interval(low, high)})."
            )
            yield row["language"], text, abs(row["difference"]), None


def _named(row: Mapping[str, Any]) -> str:
    return f"in {interval_of(row)}" if row["low"] is not None else interval_of(row)


def _points(difference: float) -> str:
    return f"{difference * 100:.1f} points"


def _interval(low: float, high: float) -> str:
    return f"95 % interval {low * 100:.1f} to {high * 100:.1f}"
