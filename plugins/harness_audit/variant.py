"""What is wrong with other versions of a task's test items, which its spec names.

A version is of the same items: as many, with the same ids and labels.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from harness import (
    DataError,
    Finding,
    MissingDataError,
    Note,
    ReadContext,
    TaskKind,
    UsageError,
    read_examples,
)
from harness.data.sources import find_split
from harness_audit.split import AuditedSplit, named_ids

if TYPE_CHECKING:
    from harness import TaskEntry
    from harness.data.sources import DataFinder

__all__ = ["variant_results"]

Results = Iterator[Finding | Note]


def variant_results(
    entry: TaskEntry, kind: TaskKind, finder: DataFinder, tests: Sequence[AuditedSplit]
) -> Results:
    """Yield what is wrong with the variants that a spec names, against the task's own test items."""
    spec = entry.spec
    for (name, variant), test in itertools.product(spec.variants.items(), tests):
        source, folder = variant.splits.get("test"), entry.folders.get(test.language)
        if source is None or folder is None:
            continue
        language = entry.languages.get(test.language)
        conditions = dict(zip(spec.axes, test.axes, strict=True))
        title = f"the variant {name!r}"
        try:
            found = find_split(finder, source, spec.task, language, "test", folder, conditions)
        except MissingDataError:
            continue
        try:
            context = ReadContext.of_test(spec, test.language, found.label_map)
            examples = read_examples(kind, finder.rows(found), context)
        except (DataError, UsageError) as error:
            yield test.finding("variant", f"readable items in {title}", str(error).rstrip("."))
            continue
        if spec.label_names:
            yield from _labels(kind, test, examples, title)
        own = {example.id for example in test.examples}
        ids = {example.id for example in examples}
        absent = sorted(own - ids)
        further = sorted(ids - own)
        if absent or further:
            sentence = f"{len(examples):,}: {len(absent):,} are missing and {len(further):,} are others"
            expected = f"the {len(own):,} items of the {test.title} split in {title}"
            yield test.finding("variant", expected, f"{sentence} ({named_ids([*absent, *further])})")


def _labels(kind: TaskKind, test: AuditedSplit, examples: Sequence[Any], title: str) -> Results:
    """Yield labels that are not those of the items with the same ids; golds that are texts may differ."""
    labels = {example.id: kind.reference(example) for example in test.examples}
    known = [example for example in examples if example.id in labels]
    wrong = [own.id for own in known if kind.reference(own) not in (None, labels[own.id])]
    if wrong:
        found = f"{len(wrong):,} of {len(known):,} others ({named_ids(wrong)})"
        yield test.finding("variant", f"the labels of the same items in {title}", found)
