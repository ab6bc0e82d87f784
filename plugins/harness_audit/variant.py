"""What is wrong with other versions of a task's test items: those that its spec names, and translated ones.

A version is of the same items: as many, with the same ids, labels and golds. A translator changes the texts that the
spec names and nothing else, leaves a placeholder as it is, and no text empty.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness import DataError, Finding, MissingDataError, Note, Row, TaskKind, UsageError, read_examples
from harness.data.sources import find_split
from harness.planning.translations import VariantPlanner, source_language
from harness_audit.data import PLACEHOLDERS
from harness_audit.split import AuditedSplit, named_ids
from harness_audit.split_reader import test_context

if TYPE_CHECKING:
    from harness import TaskEntry
    from harness.data.sources import DataFinder, FoundData

__all__ = ["VariantAuditor"]

Results = Iterator[Finding | Note]


class VariantAuditor:
    """Audits the versions of the test items of one task against its own test items."""

    def __init__(
        self, entry: TaskEntry, kind: TaskKind, finder: DataFinder, tests: Sequence[AuditedSplit]
    ) -> None:
        self._entry = entry
        self._kind = kind
        self._finder = finder
        self._tests = tests
        self._missing: dict[str, list[tuple[str, str]]] = {}

    def missing(self) -> Iterator[str]:
        """Yield which versions could not be made in which languages, each with the first reason."""
        for variant, reasons in self._missing.items():
            codes = " ".join(code for code, _ in reasons)
            yield f"{variant} of {codes}: {reasons[0][1]}"

    def named(self) -> Results:
        """Yield what is wrong with the variants that the spec names."""
        spec = self._entry.spec
        for (name, variant), test in itertools.product(spec.variants.items(), self._tests):
            source = variant.splits.get("test")
            language, folder = (
                self._entry.languages.get(test.language),
                self._entry.folders.get(test.language),
            )
            if source is None or folder is None:
                continue
            conditions = dict(zip(spec.axes, test.axes, strict=True))
            try:
                found = find_split(self._finder, source, spec.task, language, "test", folder, conditions)
            except MissingDataError:
                continue
            yield from self._same(test, found, f"the variant {name!r}")

    def translated(self, planner: VariantPlanner) -> Results:
        """Yield what is wrong with the versions that translators make; pairs without one are kept as reasons."""
        origin = source_language(self._entry.spec)
        for (variant, translator), test in itertools.product(planner.translations(), self._tests):
            if test.language == origin:
                continue
            conditions = dict(zip(self._entry.spec.axes, test.axes, strict=True))
            title = f"the variant {variant!r} by {translator!r}"
            try:
                version = planner.plan(self._entry, test.language, variant, translator, conditions)
            except MissingDataError as error:
                self._missing.setdefault(variant, []).append((test.language, str(error).rstrip(".")))
                continue
            try:
                before = self._finder.rows_before(version.found)
                after = list(self._finder.rows(version.found))
                labels = [self._labels(test, version.found, rows) for rows in (before, after)]
            except (DataError, UsageError) as error:
                yield self._finding(test, "readable items", title, str(error).rstrip("."))
                continue
            others = [name for name, label in labels[0].items() if labels[1].get(name, label) != label]
            if others:
                sentence = f"{len(others):,} of {len(before):,} others ({named_ids(others)})"
                yield self._finding(test, "the labels of the items before translation", title, sentence)
            yield from self._changed(test, version.found, before, after, title)
            yield from self._same(test, version.found, title, limited=version.found.drawn is not None)

    def _same(self, test: AuditedSplit, found: FoundData, title: str, *, limited: bool = False) -> Results:
        """Yield how the items of a version are others than the language's own."""
        context = test_context(self._entry.spec, test.language, found)
        try:
            examples = read_examples(self._kind, self._finder.rows(found), context)
        except (DataError, UsageError) as error:
            yield self._finding(test, "readable items", title, str(error).rstrip("."))
            return
        own = {example.id: example for example in test.examples}
        ids = {example.id for example in examples}
        absent = [] if limited else [name for name in own if name not in ids]
        further = [example.id for example in examples if example.id not in own]
        if absent or further:
            sentence = f"{len(examples):,}: {len(absent):,} are missing and {len(further):,} are others"
            sentence += f" ({named_ids([*absent, *further])})"
            yield self._finding(test, f"the {len(own):,} items of the {test.title} split", title, sentence)
        labels = [
            (example.id, label, self._kind.reference(own[example.id]))
            for example in examples
            if example.id in own and (label := self._kind.reference(example)) is not None
        ]
        if not self._entry.spec.label_names:
            # Golds that are texts are those of the version's own context.
            return
        others = [name for name, label, gold in labels if label != gold]
        sentence = f"{len(others):,} of {len(labels):,} others"
        if others and found.change is None:
            named = f"{sentence} ({named_ids(others)})"
            yield self._finding(test, "the labels of the same items", title, named)
        elif others:
            # The labels are those of the items that were translated, which may be the source language's.
            yield self._note(test, f"{sentence} than the language's own are the labels in {title}")

    def _labels(self, test: AuditedSplit, found: FoundData, rows: Sequence[Row]) -> dict[str, Any]:
        """Return the label of every item; empty for tasks whose golds are texts."""
        if not self._entry.spec.label_names:
            return {}
        context = test_context(self._entry.spec, test.language, found)
        return {
            example.id: self._kind.reference(example) for example in read_examples(self._kind, rows, context)
        }

    def _changed(
        self, test: AuditedSplit, found: FoundData, before: Sequence[Row], after: Sequence[Row], title: str
    ) -> Results:
        """Yield what a translator did that it should not."""
        assert found.change is not None
        texts = found.change.fields
        changed = {str(row.fields["id"]): row.fields for row in after}
        pairs = [(row.fields, changed[own]) for row in before if (own := str(row.fields["id"])) in changed]
        if len(pairs) < len(before):
            yield self._note(
                test, f"{len(before) - len(pairs):,} of {len(before):,} items are not in {title}"
            )
        kept = {
            name
            for old, new in pairs
            for name in old.keys() - {*texts, found.change.answers}
            if old[name] != new.get(name)
        }
        if kept:
            names = ", ".join(map(repr, sorted(kept)))
            yield self._finding(test, f"{names} of the items before translation", title, "others")
        empty = [str(old["id"]) for old, new in pairs if _any(texts, old, new, _loses_text)]
        if empty:
            sentence = f"an empty one in {len(empty):,} of {len(pairs):,} items ({named_ids(empty)})"
            yield self._finding(test, "a translation of every text", title, sentence)
        lost = [str(old["id"]) for old, new in pairs if _any(texts, old, new, _loses_placeholder)]
        if lost:
            sentence = f"other texts in {len(lost):,} of {len(pairs):,} items ({named_ids(lost)})"
            yield self._finding(test, "placeholders as they are", title, sentence)
        unfound = [str(new["id"]) for _, new in pairs if _gold_is_lost(new)]
        if unfound:
            sentence = f"none in {len(unfound):,} of {len(pairs):,} items ({named_ids(unfound)})"
            yield self._finding(test, "a gold answer in every context", title, sentence)

    def _finding(self, test: AuditedSplit, expected: str, title: str, found: str) -> Finding:
        return Finding(
            task=self._entry.spec.task,
            languages=(test.language,),
            check="variant",
            expected=f"{expected} in {title}",
            found=found,
        )

    def _note(self, test: AuditedSplit, sentence: str) -> Note:
        return Note(task=self._entry.spec.task, languages=(test.language,), check="variant", text=sentence)


Fields = Mapping[str, Any]


def _any(names: Sequence[str], old: Fields, new: Fields, wrong: Callable[[str, str], bool]) -> bool:
    return any(wrong(str(old[name]), str(new[name])) for name in names)


def _loses_text(text: str, own: str) -> bool:
    return bool(text.strip()) and not own.strip()


def _loses_placeholder(text: str, own: str) -> bool:
    return text.strip().casefold() in PLACEHOLDERS and own.strip() != text.strip()


def _gold_is_lost(fields: Mapping[str, Any]) -> bool:
    """Return whether an item has gold answers, and none of them is in its context."""
    answers, context = fields.get("answers"), fields.get("context")
    if not isinstance(answers, list | tuple) or not answers or not isinstance(context, str):
        return False
    texts = [str(answer["text"]) for answer in answers if isinstance(answer, Mapping) and "text" in answer]
    return bool(texts) and not any(text in context for text in texts)
