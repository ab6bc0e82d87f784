"""Significant findings on the languages of the first run: differences with a sentence each, the largest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.bucket_scoring import LEAST_ITEMS
from harness.analysis.diagnosis import SIGNIFICANCE
from harness.metrics.naming import metric_name
from harness.reporting.blocks.number import interval_text, level_text
from harness.reporting.overview.contrast import Contrast, from_others, mean_of_others, score_of
from harness.reporting.overview.material import Material
from harness.reporting.weakness.weakness import Row, Weakness, by_attribute, things_of
from harness.statistics import benjamini_hochberg

SENTENCES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A significant difference of one language."""

    language: str
    text: str
    difference: float
    """As a fraction; below 0 where something is worse."""


def findings(material: Material, weakness: Weakness) -> dict[str, list[str]]:
    """Return up to three sentences per language; the language furthest below the others comes first.

    Differences of two runs follow the shortfalls of the first one.
    """
    sentences: dict[str, list[str]] = {}
    for finding in [*shortfalls(material, weakness), *_pair_findings(weakness)]:
        texts = sentences.setdefault(finding.language, [])
        if len(texts) < SENTENCES:
            texts.append(finding.text)
    return sentences


def shortfalls(material: Material, weakness: Weakness) -> list[Finding]:
    """Return the significant shortfalls of the first run in single languages, the largest difference first.

    First come languages below the mean of the others, tested together (Benjamini and Hochberg at the rate of the
    diagnosis), then buckets below the rest of their language, which the diagnosis has tested and corrected.
    """
    names = {code: name for code, name, _ in material.languages}
    groups = (_behind_others(material), _buckets(weakness, names))
    return [finding for group in groups for finding in sorted(group, key=lambda finding: finding.difference)]


def _behind_others(material: Material) -> Iterator[Finding]:
    run = material.runs[0]
    codes = [code for code, _, _ in material.languages]
    tested: list[tuple[str, str, Contrast]] = []
    for column in material.summary.columns:
        for code, name, _ in material.languages:
            score, mean = score_of(run, column, code), mean_of_others(run, column, code, codes)
            if score is None or mean is None or min(score.draws, mean.draws) < LEAST_ITEMS:
                continue
            contrast = from_others(run, column, code, codes)
            if contrast is not None:
                text = (
                    f"{column.task}: {name} scores {_points(contrast.difference)} lower ({metric_name(column.metric)}) "
                    "than the mean of the other languages "
                    f"(95 % interval {interval_text((-contrast.high, -contrast.low))}"
                )
                tested.append((code, text, contrast))
    rates = benjamini_hochberg([contrast.p for *_, contrast in tested]).tolist()
    for (code, text, contrast), q in zip(tested, rates, strict=True):
        if q <= SIGNIFICANCE and contrast.high < 0:
            how = "paired over the same items" if contrast.is_paired else "languages taken as independent"
            sentence = f"{text}, {level_text('q', q)}; {how})."
            yield Finding(language=code, text=sentence, difference=contrast.difference)


def _buckets(weakness: Weakness, names: Mapping[str, str]) -> Iterator[Finding]:
    rows = [row for row in (weakness.runs[0] if weakness.runs else ()) if row["kind"] == "single"]
    systems = {row["task"]: row["system"] for row in reversed(rows)}
    for language in dict.fromkeys(row["language"] for row in rows if row["language"] is not None):
        language_rows = [
            row for row in rows if row["language"] == language and row["system"] == systems[row["task"]]
        ]
        for (task, *_), buckets in by_attribute(language_rows).items():
            for row in buckets:
                if row["significant"] and row["difference"] < 0 and row["difference_ci"][1] < 0:
                    low, high = row["difference_ci"]
                    text = (
                        f"{task}, {names.get(language, language)}: {weakness.phrase(row, buckets)}: "
                        f"{_points(row['difference'])} below the rest "
                        f"({interval_text((-high, -low))}, {level_text('q', row['q'])}, {things_of(row)})."
                    )
                    yield Finding(language=language, text=text, difference=row["difference"])


def _pair_findings(weakness: Weakness) -> list[Finding]:
    """Return in which buckets of one language two runs differ, the largest difference first."""
    rows = [row for row in weakness.pairs if row["kind"] == "pairwise" and row["language"] is not None]
    pair_findings = [
        Finding(
            language=language,
            text=f"{task}: {_pair_text(weakness, row, buckets)}",
            difference=row["difference"],
        )
        for language in dict.fromkeys(row["language"] for row in rows)
        for (task, *_), buckets in by_attribute([row for row in rows if row["language"] == language]).items()
        for row in buckets
        if row["significant"] and row["ci"]
    ]
    return sorted(pair_findings, key=lambda finding: -abs(finding.difference))


def _pair_text(weakness: Weakness, row: Row, buckets: Sequence[Row]) -> str:
    """Return a difference of two runs in one bucket as a sentence."""
    first, second = row["systems"]
    low, high = row["ci"]
    direction, ends = ("above", (low, high)) if row["difference"] > 0 else ("below", (-high, -low))
    return (
        f"{weakness.phrase(row, buckets)}: {first} is {_points(row['difference'])} {direction} {second} "
        f"({interval_text(ends)}, {level_text('q', row['q'])}, {things_of(row)})."
    )


def _points(difference: float) -> str:
    return f"{abs(difference) * 100:.1f} points"
