"""Checks of the choices of items: identical ones, other numbers in other languages, one position too often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.checks import Finding, Note
from harness.specs import TaskSpec, source_language
from harness_audit.split import AuditedSplit, named_ids

if TYPE_CHECKING:
    from harness.data import DataFinder, Reader

EQUAL = "equal"
"""The option of readers that skip pairs of identical sentences: ``keep`` reads them too."""
UNEVEN = 0.001
"""The p below which an uneven spread of gold answers over positions is reported."""
LEAST_EXPECTED = 5
"""Gold answers per position that a chi-square test needs (Cochran, 1954)."""


def identical_notes(
    split: AuditedSplit, finder: DataFinder, reader_of: Callable[[str], Reader]
) -> Iterator[Note]:
    """Yield how many pairs have identical forms: those that the reader skips, and those that are scored as wrong."""
    if not hasattr(split.examples[0], "wrong"):
        return
    scored = [example.id for example in split.examples if example.right in example.wrong]
    if scored:
        count = f"{len(scored):,} of {len(split.examples):,} items of the {split.title} split"
        yield split.note(
            "identical forms", f"{count} have a wrong form that equals the right one ({named_ids(scored)})"
        )
    files = split.found.files
    options = {} if files.reader is None else reader_of(files.reader).options
    if EQUAL not in options or files.options.get(EQUAL) == "keep":
        return
    unfiltered = replace(split.found, files=replace(files, options={**files.options, EQUAL: "keep"}))
    skipped = [
        str(row.fields["id"]) for row in finder.rows(unfiltered) if row.fields["right"] == row.fields["wrong"]
    ]
    if skipped:
        count = f"{len(skipped):,} of {len(split.examples) + len(skipped):,} pairs of the {split.title} split"
        yield split.note(
            "identical forms",
            f"{count} are two identical sentences and are not scored ({named_ids(skipped)})",
        )


def candidate_findings(spec: TaskSpec, tests: Sequence[AuditedSplit]) -> Iterator[Finding]:
    """Yield languages of a parallel task whose items have other numbers of candidates than the source language's."""
    counted = {
        (split.language, split.axes): {example.id: len(example.wrong) + 1 for example in split.examples}
        for split in tests
        if spec.pairs(split.language) and hasattr(split.examples[0], "wrong")
    }
    for split in tests:
        ours = counted.get((split.language, split.axes), {})
        same_axes = [sizes for (_, axes), sizes in counted.items() if axes == split.axes]
        theirs = counted.get((source_language(spec), split.axes)) or next(iter(same_axes), {})
        differ = [name for name, size in ours.items() if theirs.get(name, size) != size]
        if differ:
            name = differ[0]
            expected = (
                f"as many candidates as the same items of the {split.title} split have in other languages"
            )
            count = f"{len(differ):,} with others (first: item {name!r} has {ours[name]} and {theirs[name]})"
            yield split.finding("parallel candidates", expected, count)


def position_notes(spec: TaskSpec, split: AuditedSplit, references: Sequence[Any]) -> Iterator[Note]:
    """Yield choices that are gold more or less often than others, where chance does not explain it (chi-square)."""
    labels, size = spec.label_names, len(references)
    if spec.kind != "multiple_choice" or len(labels) < 2 or size < LEAST_EXPECTED * len(labels):
        return
    from scipy.stats import chisquare

    counts = Counter(references)
    p = float(chisquare([counts[label] for label in labels]).pvalue)
    if p < UNEVEN:
        shares = ", ".join(f"{label} {counts[label] / size * 100:.1f} %" for label in labels)
        sentence = (
            f"the right answers of the {split.title} split are not spread evenly over the positions ({shares}; "
            f"chi-square p {'< .001' if p < 0.001 else f'= {p:.3f}'})"
        )
        yield split.note("answer position", sentence)
