"""The tables that ``harness treebank`` prints and writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.cli.output import echo, write_rows
from harness.cli.table import print_table
from harness_vyakarana.colorless import Report
from harness_vyakarana.stats import FEATURES, Stats, offers
from harness_vyakarana.treebank_check import CheckResult
from harness_vyakarana.treebank_file import Job

__all__ = ["report_row", "show_check", "show_reports", "show_stats"]

SHOWN_VIOLATIONS = 20


def show_reports(reports: Sequence[tuple[Job, Report]], json_file: Path | None) -> None:
    """Print the generated files, the replaced words and the steps of the ladder; also write them to `json_file`."""
    total = Report()
    for job, report in reports:
        total.add(report)
        echo(
            f"Wrote {job.target}: {report.written:,} sentences from {report.read:,} of {job.source.name}"
            f" ({report.dropped:,} dropped as too short)."
        )
    print_table(
        ("UPOS", "words", "replaced", "inflected", "full key", "backed off", "no donor"),
        [_words_row(total, upos) for upos in sorted(set(total.replaced) | set(total.inflected))],
    )
    genders = sorted({gender for _, gender in total.genders})
    if genders:
        variants = sorted({variant for variant, _ in total.genders})
        print_table(
            ("variant", *genders),
            [
                (f"org{variant + 1}", *(f"{total.genders[variant, gender]:,}" for gender in genders))
                for variant in variants
            ],
        )
    if json_file is not None:
        write_rows(json_file, [report_row(job, report) for job, report in reports])


def _words_row(report: Report, upos: str) -> tuple[str, ...]:
    full = report.stepped[upos, 0]
    lower = sum(count for (tag, step), count in report.stepped.items() if tag == upos and step)
    counts = (report.words[upos], report.replaced[upos], report.inflected[upos], full, lower)
    return (upos, *(f"{count:,}" for count in counts), f"{report.without_donor[upos]:,}")


def report_row(job: Job, report: Report) -> dict[str, Any]:
    """Return the report as a plain object."""
    return {
        "source": str(job.source),
        "target": str(job.target),
        "language": job.language,
        "read": report.read,
        "dropped": report.dropped,
        "written": report.written,
        "words": _sorted(report.words),
        "replaced": _sorted(report.replaced),
        "inflected": _sorted(report.inflected),
        "ladder": {f"{upos}:{step}": report.stepped[upos, step] for upos, step in sorted(report.stepped)},
        "without_donor": _sorted(report.without_donor),
        "genders": {
            f"org{variant + 1}:{gender}": report.genders[variant, gender]
            for variant, gender in sorted(report.genders)
        },
    }


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return {name: counts[name] for name in sorted(counts)}


def show_stats(found: Sequence[tuple[str, Stats]]) -> None:
    """Print size, coverage and labels of treebanks, and the tasks that they support."""
    rows = []
    for name, stats in found:
        depths = f"{min(stats.depths)}-{max(stats.depths)}" if stats.depths else "-"
        shares = (f"{100 * stats.share(feature):.1f}" for feature in FEATURES)
        rows.append((name, f"{stats.sentences:,}", f"{stats.words:,}", *shares, depths))
    print_table(("treebank", "sentences", "words", *(f"{feature} %" for feature in FEATURES), "depth"), rows)
    labels = []
    for name, stats in found:
        strict = f" (strict {stats.strict:,})"
        labels.append((name, "genders", _counts(stats.genders)))
        labels.append((name, "gcm", _counts(stats.cases)))
        labels.append((name, "sva", _counts(stats.agreement) + strict))
    print_table(("treebank", "labels", "words by label"), labels)
    print_table(
        ("treebank", "task", "items", "supported"),
        [
            (name, offer.task, f"{offer.items:,}", "yes" if offer.offered else f"no: {offer.reason}")
            for name, stats in found
            for offer in offers(stats)
        ],
    )


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common()) or "none"


def show_check(result: CheckResult, json_file: Path | None) -> None:
    """Print the counts and the violations of a check."""
    changed = sum(result.changed.values())
    echo(
        f"{result.sentences:,} sentences, {result.words:,} words, {changed:,} changed:"
        f" {len(result.violations):,} violations."
    )
    other = {column: count for column, count in result.other_release.items() if count}
    if other:
        shown = ", ".join(f"{column.upper()} of {count:,} words" for column, count in sorted(other.items()))
        echo(f"The source is from another release: {shown} differ; not counted as violations.")
    for violation in result.violations[:SHOWN_VIOLATIONS]:
        echo(f"  {violation}")
    if len(result.violations) > SHOWN_VIOLATIONS:
        echo(f"  and {len(result.violations) - SHOWN_VIOLATIONS} more (--json writes all).")
    if json_file is not None:
        rows = [
            {"sent_id": violation.sent_id, "word": violation.word, "message": violation.message}
            for violation in result.violations
        ]
        write_rows(json_file, rows)
