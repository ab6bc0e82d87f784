"""Checks of other versions of a task's test items, which its spec names.

A version is of the same items: as many, with the same ids and labels.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from harness import DataError, MissingDataError, UsageError
from harness.checks import Finding, Note
from harness.data import find_split
from harness.kinds import ReadContext, TaskKind, read_examples
from harness_audit.split import AuditedSplit, named_ids

if TYPE_CHECKING:
    from harness.data import DataFinder
    from harness.specs import TaskEntry

Results = Iterator[Finding | Note]


def variant_results(
    entry: TaskEntry, kind: TaskKind, finder: DataFinder, tests: Sequence[AuditedSplit]
) -> Results:
    """Yield the faults of the variants that a spec names, against the task's own test items."""
    spec = entry.spec
    for (name, variant), test in itertools.product(spec.variants.items(), tests):
        source, folder = variant.splits.get("test"), entry.folders.get(test.language)
        if source is None or folder is None:
            continue
        language = entry.languages.get(test.language)
        conditions = dict(zip(spec.axes, test.axes, strict=True))
        title = f"the variant {name!r}"
        try:
            resolved = find_split(finder, source, spec.task, language, "test", folder, conditions)
        except MissingDataError:
            continue
        try:
            context = ReadContext.of_test(spec, test.language, resolved.label_map)
            examples = read_examples(kind, finder.rows(resolved), context)
        except (DataError, UsageError) as error:
            yield test.finding("variant", f"readable items in {title}", str(error).rstrip("."))
            continue
        if spec.label_names:
            yield from _labels(kind, test, examples, title)
        test_ids = {example.id for example in test.examples}
        ids = {example.id for example in examples}
        absent = sorted(test_ids - ids)
        further = sorted(ids - test_ids)
        if absent or further:
            sentence = f"{len(examples):,}: {len(absent):,} are missing and {len(further):,} are others"
            expected = f"the {len(test_ids):,} items of the {test.title} split in {title}"
            yield test.finding("variant", expected, f"{sentence} ({named_ids([*absent, *further])})")


def _labels(kind: TaskKind, test: AuditedSplit, examples: Sequence[Any], title: str) -> Results:
    """Yield labels that are not those of the items with the same ids; golds that are texts may differ."""
    labels = {example.id: kind.reference(example) for example in test.examples}
    shared = [example for example in examples if example.id in labels]
    wrong = [example.id for example in shared if kind.reference(example) not in (None, labels[example.id])]
    if wrong:
        count = f"{len(wrong):,} of {len(shared):,} others ({named_ids(wrong)})"
        yield test.finding("variant", f"the labels of the same items in {title}", count)
