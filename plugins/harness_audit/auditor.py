"""The audit of a task: gold scores 100, trivial answers no more than chance, data and prompts are right.

The faults that it looks for are those found in other harnesses: inverted labels, constants that score well, missing
label words, fields that a template does not show, training items in the test set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

from harness import HarnessError, MissingDataError
from harness.checks import Finding, Note, TaskAudit, is_numbered, pairing_order
from harness.metrics import Metric, MetricContext
from harness.planning import LockedSplit, resolve_tasks
from harness.prompts import Prompter, Rendering, compile_prompt, render_item
from harness.specs import SelectedTask, source_language
from harness_audit.answers import Scored, judged, kinds_with_answers, trials
from harness_audit.damage import damage_notes
from harness_audit.data import (
    candidate_findings,
    copy_results,
    count_findings,
    id_results,
    identical_notes,
    joined_findings,
    label_findings,
    label_map_findings,
    overlap_findings,
    parallel_results,
    placeholder_notes,
    position_notes,
    provenance_notes,
    script_results,
    stand_in_notes,
    variant_results,
)
from harness_audit.prompt import (
    TaskPrompt,
    Writing,
    compiled_prompts,
    field_findings,
    label_findings as label_word_findings,
    literal_findings,
    word_conflicts,
)
from harness_audit.split import AuditedSplit, SplitReader

if TYPE_CHECKING:
    from harness.kinds import TaskKind
    from harness.planning import CheckSetting
    from harness.specs import TaskEntry, TaskSpec

WRITTEN = 50
"""Items of every language, spread over its file, whose written answers are read back."""
Results = Iterator[Finding | Note]


class TaskAuditor:
    """Audits the tasks of one environment on one set of data."""

    def __init__(self, setting: CheckSetting) -> None:
        self._registry = setting.registry
        self._catalog = setting.catalog
        self._finder = setting.finder
        self._locked = setting.locked

    def check(self, entry: TaskEntry, *, only: Sequence[str] = ()) -> TaskAudit:
        """Return the findings and notes of a task; faults of its data are findings and raise no error.

        `only` names the languages that the user asks about; findings of other languages are skipped.
        """
        spec = entry.spec
        reader = SplitReader(entry, self._registry, self._catalog, self._finder)
        tests = list(reader.tests())
        kind = self._registry.kinds.get(spec.kind)
        presets = self._presets(entry)
        results: list[Finding | Note] = [*label_map_findings(spec)]
        for preset, _ in presets:
            results += literal_findings(spec.task, preset, entry.languages)
        for split in tests:
            results += self._split(entry, kind, split)
        results += parallel_results(spec, tests, kind.reference)
        results += candidate_findings(spec, tests)
        results += provenance_notes(spec, tests)
        results += copy_results(spec, tests)
        order = pairing_order(entry)
        results += id_results(spec, tests, order, lambda split: is_numbered(split.found, self._finder))
        results += overlap_findings(spec, tests, reader.learned())
        skipped = list(_skipped(spec, kind, reader, tests, only))
        results += variant_results(entry, kind, self._finder, tests)
        results += self._prompts(entry, kind, presets, tests)
        results += self._lock(entry)
        results += reader.findings
        if only:
            results = [item for item in results if not item.languages or {*item.languages} & {*only}]
        audited = [split for split in tests if not only or split.language in only]
        return TaskAudit(
            task=spec.task,
            languages=tuple(dict.fromkeys(split.language for split in audited)),
            items=sum(len(split.examples) for split in audited),
            findings=joined_findings(item for item in results if isinstance(item, Finding)),
            notes=[item for item in results if isinstance(item, Note)],
            skipped=skipped,
            prompts=list(_rendered(kind, presets, audited)),
        )

    def _split(self, entry: TaskEntry, kind: TaskKind, split: AuditedSplit) -> Results:
        spec = entry.spec
        yield from count_findings(spec, split)
        yield from stand_in_notes(split)
        yield from placeholder_notes(split)
        yield from script_results(split, entry.languages)
        references = [kind.reference(example) for example in split.examples]
        yield from damage_notes(spec, split, references, entry.languages)
        if references[0] is None:
            return
        yield from label_findings(spec, split, references)
        yield from position_notes(spec, split, references)
        yield from identical_notes(split, self._finder, self._registry.readers.get)
        context = MetricContext(language=split.language, labels=spec.label_names, options=spec.metric_options)
        for metric in self._metrics(entry):
            for trial in trials(spec.kind, split.examples, references, spec.label_names):
                scored = Scored.of(metric, trial, split.examples, references, context)
                yield from judged(split, metric, trial, scored)

    def _metrics(self, entry: TaskEntry) -> list[Metric]:
        """Return the headline metrics that score any method's answers."""
        metrics = [self._registry.metrics.get(name) for name in entry.spec.headline]
        return [metric for metric in metrics if metric.methods is None]

    # Prompts --------------------------------------------------------------------------------------------

    def _presets(self, entry: TaskEntry) -> list[Any]:
        """Return the presets of a task and what they inherit, with the words of fragments."""
        names = sorted(self._catalog.presets(entry.spec.task), key="default".__ne__)
        specs = [self._catalog.prompt(entry.spec.task, preset) for preset in names]
        pairs = [(spec, self._catalog.inherited_prompt(spec)) for spec in specs]
        return [
            (entry.worded(spec), None if inherited is None else entry.worded(inherited))
            for spec, inherited in pairs
        ]

    def _prompts(
        self, entry: TaskEntry, kind: TaskKind, presets: Sequence[Any], tests: Sequence[AuditedSplit]
    ) -> Results:
        if kind.prompt_item is None or not tests:
            return
        spec = entry.spec
        by_preset: dict[str, list[TaskPrompt]] = {}
        for split in _one_a_language(tests):
            for prompt in compiled_prompts(spec, presets, split.language):
                if isinstance(prompt, Finding):
                    yield prompt
                    continue
                by_preset.setdefault(prompt.spec.prompt, []).append(prompt)
                yield from label_word_findings(prompt, kind.prompt_item(split.examples[0]))
                yield from self._written(entry, kind, split, prompt)
        item = kind.prompt_item(tests[0].examples[0])
        inputs = [name for name in spec.input_names if name in item.fields]
        text_fields = [name for name in ("context", "question", "tokens", "text") if name in item.fields]
        for prompts in by_preset.values():
            yield from field_findings(prompts, item, inputs or text_fields)
        yield from word_conflicts(list(chain.from_iterable(by_preset.values())), spec.label_names)

    def _written(self, entry: TaskEntry, kind: TaskKind, split: AuditedSplit, prompt: TaskPrompt) -> Results:
        name = f"{kind.name}:generate"
        examples = split.examples[:: max(1, len(split.examples) // WRITTEN)][:WRITTEN]
        if name not in self._registry.methods or prompt.spec.formulation != "generation":
            return
        if kind.reference(examples[0]) is None:
            return
        writing = Writing(
            spec=entry.spec,
            kind=kind,
            method=self._registry.methods.get(name),
            metrics=self._metrics(entry),
            language=entry.languages.get(split.language),
            examples=examples,
        )
        yield from writing.results(prompt)

    # The lock -------------------------------------------------------------------------------------------

    def _lock(self, entry: TaskEntry) -> Iterator[Finding]:
        """Yield splits whose data are not those of the lock file."""
        if self._locked is None:
            return
        selected = SelectedTask(entry=entry, languages=tuple(entry.spec.languages))
        try:
            resolution, _ = resolve_tasks(self._catalog, self._finder, [selected])
        except MissingDataError:
            return
        for split, locked in resolution.diff(self._locked.lock):
            if not isinstance(split, LockedSplit):
                continue
            change = (
                "no entry for them" if locked is None else f"others: {split.difference(locked, 'the lock')}"
            )
            yield Finding(
                task=entry.spec.task,
                languages=(split.language,),
                check="lock",
                expected=f"the data of {split.title} that {str(self._locked.path)!r} locks",
                found=change,
            )


def _rendered(kind: TaskKind, presets: Sequence[Any], tests: Sequence[AuditedSplit]) -> Iterator[Rendering]:
    """Yield one item of every language under every preset; what cannot be rendered is a finding of its own."""
    if kind.prompt_item is None:
        return
    for split in _one_a_language(tests):
        for prompt, inherited in presets:
            with suppress(HarnessError):
                compiled = compile_prompt(prompt, split.language, inherited=inherited)
                prompter = Prompter(
                    prompt=compiled, item=kind.prompt_item, task=prompt.prompt, language=split.language
                )
                yield render_item(prompter, split.examples[0], split.language, inherited=inherited)


def _skipped(
    spec: TaskSpec,
    kind: TaskKind,
    reader: SplitReader,
    tests: Sequence[AuditedSplit],
    only: Sequence[str],
) -> Iterator[str]:
    """Yield a sentence with its reason for each check that was skipped because its data are missing."""
    codes = only or list(spec.languages)
    missing = [code for code in codes if code in reader.missing]
    if missing:
        files = f" (of {reader.test_files(missing[0])})" if len(missing) == len(codes) else ""
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
