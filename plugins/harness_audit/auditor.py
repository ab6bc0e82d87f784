"""The audit of a task: gold scores 100, trivial answers no more than chance, data and prompts are right.

The faults that it looks for are those found in other harnesses: inverted labels, constants and truncated outputs that
score well, wrong or missing label words, empty templates, prompts that differ by label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from harness import Finding, HarnessError, Metric, MetricContext, MissingDataError, Note, TaskAudit
from harness.data.translation.guards import language_detector
from harness.planning.id_alignment import is_numbered, pairing_order
from harness.planning.lock_file import data_difference
from harness.planning.resolution import TasksResolver
from harness.prompts.preview import Rendering, render_item
from harness.specs.selection import SelectedTask
from harness_audit.answer import kinds_with_answers, largest_constant, trials
from harness_audit.data import (
    count_findings,
    id_results,
    joined_findings,
    label_findings,
    label_map_findings,
    overlap_findings,
    parallel_findings,
    placeholder_notes,
    provenance_notes,
    script_results,
    stand_in_notes,
)
from harness_audit.frame import join_findings, mark_findings
from harness_audit.judgement import Parts, chance_notes, collapse_notes, judged
from harness_audit.prompt import (
    TaskPrompt,
    compiled_prompts,
    field_findings,
    literal_findings,
    word_conflicts,
)
from harness_audit.prompt import label_findings as prompt_label_findings
from harness_audit.split import AuditedSplit
from harness_audit.split_reader import SplitReader
from harness_audit.tag import tag_results
from harness_audit.text import (
    character_notes,
    copy_results,
    cut_word_findings,
    leak_findings,
    remark_notes,
    repeat_notes,
    untranslated_results,
)
from harness_audit.translation import source_language, translation_results
from harness_audit.trial import Scored
from harness_audit.variant import VariantAuditor
from harness_audit.word import WordTable, word_results
from harness_audit.writing import Writing, writing_results

if TYPE_CHECKING:
    from harness import CheckSetting, TaskEntry, TaskKind, TaskSpec

__all__ = ["TaskAuditor"]

PARTLY_SCORED = "span_extraction"
WRITTEN = 50
"""Items of every language, spread over its file, whose written answers are read back."""


class TaskAuditor:
    """Audits the tasks of one environment on one set of data."""

    def __init__(self, setting: CheckSetting) -> None:
        self._registry = setting.registry
        self._catalog = setting.catalog
        self._finder = setting.finder
        self._locked = setting.locked
        self._planner = setting.planner
        self._word_table: WordTable | None = None

    def check(self, entry: TaskEntry, *, only: Sequence[str] = ()) -> TaskAudit:
        """Return what is found of a task; raises no error for faults of its data, which are findings.

        `only` names the languages that the user asks about; findings of other languages are skipped.
        """
        spec = entry.spec
        reader = SplitReader(entry, self._registry, self._catalog, self._finder)
        tests = list(reader.tests())
        results: list[Finding | Note] = [*label_map_findings(spec), *self._literals(entry)]
        kind = self._registry.kinds.get(spec.kind)
        parts: Parts = {}
        for split in tests:
            results += self._split(entry, kind, split, parts)
        results += collapse_notes(entry, parts)
        results += parallel_findings(spec, tests, kind.reference)
        results += provenance_notes(spec, tests)
        results += translation_results(spec, tests, entry.languages, language_detector())
        results += copy_results(spec, tests, source_language(spec))
        results += repeat_notes(spec, tests, source_language(spec))
        results += id_results(
            spec, tests, pairing_order(entry), lambda split: is_numbered(split.found, self._finder)
        )
        results += overlap_findings(spec, tests, reader.learned())
        skipped = list(_skipped(spec, kind, reader, tests, only))
        versions = VariantAuditor(entry, kind, self._finder, tests)
        results += versions.named()
        if self._planner is not None:
            results += versions.translated(self._planner)
            skipped += versions.missing()
        results += self._prompts(entry, kind, tests)
        results += self._lock(entry)
        results += reader.findings
        shown_results = [
            item for item in results if not only or not item.languages or {*item.languages} & {*only}
        ]
        shown = [split for split in tests if not only or split.language in only]
        return TaskAudit(
            task=spec.task,
            languages=tuple(dict.fromkeys(split.language for split in shown)),
            items=sum(len(split.examples) for split in shown),
            findings=joined_findings(item for item in shown_results if isinstance(item, Finding)),
            notes=[item for item in shown_results if isinstance(item, Note)],
            skipped=skipped,
            prompts=list(self._rendered(entry, kind, shown)),
        )

    def _split(
        self, entry: TaskEntry, kind: TaskKind, split: AuditedSplit, parts: Parts
    ) -> Iterator[Finding | Note]:
        spec = entry.spec
        yield from count_findings(spec, split)
        yield from stand_in_notes(spec, split)
        yield from placeholder_notes(spec, split)
        yield from script_results(spec, split, entry.languages)
        yield from character_notes(spec, split)
        yield from remark_notes(spec, split, source_language(spec))
        yield from untranslated_results(spec, split)
        yield from cut_word_findings(spec, split, entry.languages.get(split.language))
        references = [kind.reference(example) for example in split.examples]
        if references[0] is None:
            return
        yield from label_findings(spec, split, references)
        yield from tag_results(spec, split, references)
        yield from leak_findings(spec, split, references)
        tried = trials(spec.kind, split.examples, references, spec.label_names, split.candidates)
        context = MetricContext(language=split.language, labels=spec.label_names, options=spec.metric_options)
        for metric in self._metrics(entry):
            for trial in tried:
                scored = Scored.of(metric, trial, split.examples, references, context)
                yield from judged(spec.task, split, metric, trial, scored)
                if trial.check == "truncated" and spec.kind == PARTLY_SCORED:
                    parts.setdefault(metric.name, {})[split.language] = scored.goodness or 0.0
        yield from chance_notes(entry, split, tried)

    def _metrics(self, entry: TaskEntry) -> list[Metric]:
        """Return the headline metrics that score any method's answers."""
        found = [self._registry.metrics.get(name) for name in entry.spec.headline]
        return [metric for metric in found if metric.methods is None]

    # Prompts --------------------------------------------------------------------------------------------

    def _shipped(self, task: str) -> list[Any]:
        names = sorted(self._catalog.presets(task), key="default".__ne__)
        specs = [self._catalog.prompt(task, preset) for preset in names]
        return [(spec, self._catalog.inherited_prompt(spec)) for spec in specs]

    def _presets(self, entry: TaskEntry) -> list[Any]:
        """Return the presets of a task and what they inherit, with the words of fragments."""
        pairs = self._shipped(entry.spec.task)
        return [(entry.worded(one), None if other is None else entry.worded(other)) for one, other in pairs]

    def _words(self) -> WordTable:
        """Return the label words of all presets, gathered once."""
        if self._word_table is None:
            presets = {
                spec.prompt: (spec, inherited)
                for task in self._catalog.names("task")
                for spec, inherited in self._shipped(task)
            }
            self._word_table = WordTable(list(presets.values()))
        return self._word_table

    def _literals(self, entry: TaskEntry) -> Iterator[Finding | Note]:
        for spec, inherited in self._presets(entry):
            yield from literal_findings(entry.spec.task, spec, entry.languages, language_detector())
            yield from word_results(entry.spec.task, spec, inherited, self._words())

    def _prompts(
        self, entry: TaskEntry, kind: TaskKind, tests: Sequence[AuditedSplit]
    ) -> Iterator[Finding | Note]:
        spec = entry.spec
        if kind.prompt_item is None:
            return
        presets = self._presets(entry)
        by_preset: dict[str, list[TaskPrompt]] = {}
        item = None
        for split in _one_a_language(tests):
            item = item or kind.prompt_item(split.examples[0])
            for prompt in compiled_prompts(spec, presets, split.language):
                if isinstance(prompt, Finding):
                    yield prompt
                    continue
                by_preset.setdefault(prompt.spec.prompt, []).append(prompt)
                shown = kind.prompt_item(split.examples[0])
                yield from prompt_label_findings(prompt, shown)
                with suppress(HarnessError):
                    # The missing word for a label is a finding already.
                    yield from mark_findings(prompt, shown)
                    yield from join_findings(prompt, shown, entry.languages.get(split.language))
                yield from self._written(entry, kind, split, prompt)
        for prompts in by_preset.values():
            assert item is not None
            yield from field_findings(prompts, item, _inputs(spec, kind, item))
        yield from word_conflicts([one for own in by_preset.values() for one in own], spec.label_names)

    def _rendered(
        self, entry: TaskEntry, kind: TaskKind, tests: Sequence[AuditedSplit]
    ) -> Iterator[Rendering]:
        """Yield one item of every language under every preset; what cannot be rendered is a finding of its own."""
        if kind.prompt_item is None:
            return
        presets = self._presets(entry)
        for split in _one_a_language(tests):
            example = split.examples[0]
            item = kind.prompt_item(example)
            for prompt, inherited in presets:
                with suppress(HarnessError):
                    yield render_item(prompt, inherited, split.language, example.id, item)

    def _written(
        self, entry: TaskEntry, kind: TaskKind, split: AuditedSplit, prompt: TaskPrompt
    ) -> Iterator[Finding | Note]:
        name = f"{kind.name}:generate"
        examples = split.examples[:: max(1, len(split.examples) // WRITTEN)][:WRITTEN]
        references = [kind.reference(example) for example in examples]
        if name not in self._registry.methods or references[0] is None:
            return
        if prompt.spec.formulation != "generation":
            return
        best = largest_constant(trials(kind.name, examples, references, entry.spec.label_names))
        writing = Writing(
            spec=entry.spec,
            kind=kind,
            method=self._registry.methods.get(name),
            metrics=self._metrics(entry),
            language=entry.languages.get(split.language),
            examples=examples,
            references=references,
            most=0.0 if best is None else best.ceiling,
        )
        yield from writing_results(writing, prompt)

    # The lock -------------------------------------------------------------------------------------------

    def _lock(self, entry: TaskEntry) -> Iterator[Finding]:
        """Yield splits whose data are not those of the lock file."""
        if self._locked is None:
            return
        kept = {split.key: split for split in self._locked.lock.data}
        selected = SelectedTask(entry=entry, languages=tuple(entry.spec.languages))
        try:
            resolution = TasksResolver(self._catalog, self._finder).resolve([selected])
        except MissingDataError:
            return
        for split in resolution.data:
            own = kept.get(split.key)
            if own is None:
                found = "no entry for them"
            elif own.digest != split.digest:
                found = f"others: {data_difference(split, own)}"
            else:
                continue
            yield Finding(
                task=entry.spec.task,
                languages=(split.language,),
                check="lock",
                expected=f"the data of {split.title} that {str(self._locked.path)!r} locks",
                found=found,
            )


def _skipped(
    spec: TaskSpec,
    kind: TaskKind,
    reader: SplitReader,
    tests: Sequence[AuditedSplit],
    only: Sequence[str],
) -> Iterator[str]:
    """Yield what was not audited because its data are not there, each with the reason."""
    missing = [code for code in reader.missing if not only or code in only]
    if missing:
        files = "" if reader.has_tests(only) else f" (of {reader.test_files(missing[0])})"
        yield f"no test items were found in {' '.join(missing)}{files}"
    if not tests:
        return
    if learned := reader.missing_learned():
        yield f"overlap: {' and '.join(learned)} {'was' if len(learned) == 1 else 'were'} not found"
    source, read = source_language(spec), {split.language for split in tests}
    if source in spec.languages and source not in read and any(map(spec.pairs, read)):
        yield f"labels and texts were not compared with {source}: no items in {source} were found"
    if reader.pool_missing:
        yield f"the pool has no candidates of {' '.join(reader.pool_missing)}"
    if spec.kind not in kinds_with_answers():
        yield f"answers: no trial answers are known for the kind {spec.kind}"
    elif not any(kind.reference(split.examples[0]) is not None for split in tests):
        yield "answers: the test items have no labels"


def _one_a_language(tests: Sequence[AuditedSplit]) -> list[AuditedSplit]:
    return list({split.language: split for split in reversed(tests)}.values())[::-1]


def _inputs(spec: Any, kind: TaskKind, item: Any) -> tuple[str, ...]:
    """Return the fields that a prompt must show: the inputs of a task, or what its kind has of a question."""
    wanted: Callable[[str], bool] = set(item.fields).__contains__
    named = tuple(filter(wanted, spec.input_names))
    return named or tuple(filter(wanted, ("context", "question", "tokens", "text")))
