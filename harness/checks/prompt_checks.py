"""Checks of prompts beyond their schema, and of the words that fragments bring for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.errors import HarnessError, Problem, SpecError, UnknownNameError
from harness.prompts.parsing import PARSERS
from harness.prompts.preset import compile_prompt
from harness.specs.documents import ALL_LANGUAGES, PromptSpec
from harness.specs.schema import TaskSpec, TrainingSpec

if TYPE_CHECKING:
    from harness.kinds.kind import TaskKind
    from harness.registry.registry import Registry
    from harness.specs.catalog import Catalog
    from harness.specs.documents import AddedWords
    from harness.specs.loading import Document
    from harness.specs.task_entry import TaskEntry


def prompt_problems(
    spec: PromptSpec, document: Document, registry: Registry, catalog: Catalog
) -> list[Problem]:
    """Return the problems of a prompt: templates are compiled in every language that it has words in."""
    faults: list[tuple[Sequence[str | int], str]] = []
    if spec.kind not in registry.kinds:
        faults.append((["kind"], str(UnknownNameError("task kind", spec.kind, registry.kinds.names))))
        return _located(faults, document)
    kind = registry.kinds.get(spec.kind)
    if spec.parser is not None and spec.parser not in PARSERS:
        faults.append((["parser"], str(UnknownNameError("parser", spec.parser, PARSERS))))
    owners = [*catalog.names("task"), *catalog.names("training")]
    for index, name in enumerate(spec.tasks):
        if name not in owners:
            faults.append((["tasks", index], str(UnknownNameError("task or training set", name, owners))))
            continue
        faults += _prompt_faults(spec, kind, _spec_of(name, catalog), index, catalog)
    return _located(faults, document)


def _spec_of(name: str, catalog: Catalog) -> TaskSpec | TrainingSpec:
    return catalog.task(name).spec if name in catalog.names("task") else catalog.training(name)[0]


def _prompt_faults(
    spec: PromptSpec, kind: TaskKind, task: TaskSpec | TrainingSpec, index: int, catalog: Catalog
) -> list[tuple[Sequence[str | int], str]]:
    if task.kind != spec.kind or kind.prompt_fields is None:
        return [
            (
                ["tasks", index],
                f"{spec.tasks[index]!r} is of the kind {task.kind}, and this prompt is for {spec.kind}",
            )
        ]
    faults: list[tuple[Sequence[str | int], str]] = []
    inherited = catalog.inherited_prompt(spec)
    tables = {**({} if inherited is None else inherited.literals), **spec.literals}
    for code in [code for code in tables if code != ALL_LANGUAGES] or ["en"]:
        faults += [
            (["literals", code], fault) for fault in _template_faults(spec, code, kind, task, inherited)
        ]
    return faults


def _located(found: Sequence[tuple[Sequence[str | int], str]], document: Document) -> list[Problem]:
    unique = dict.fromkeys((tuple(path), message) for path, message in found)
    return [
        Problem(message=message, key=".".join(map(str, path)), line=document.line_of(path))
        for path, message in unique
    ]


KeyPath = tuple[str, ...]


def needed_words(spec: PromptSpec, inherited: PromptSpec | None) -> tuple[str, ...]:
    """Return the names of the words that a language must bring: those of the English table, or of the first one.

    Empty for a prompt that is the same in all languages.
    """
    tables = {**({} if inherited is None else inherited.literals), **spec.literals}
    everywhere = tables.pop(ALL_LANGUAGES, None)
    table = tables.get("en") or next(iter(tables.values()), None)
    shared = set() if everywhere is None else set(everywhere.words)
    return () if table is None else tuple(name for name in table.words if name not in shared)


def is_missing_words(spec: PromptSpec, catalog: Catalog, language: str) -> bool:
    """Return whether a prompt has words, and none in a language."""
    inherited = catalog.inherited_prompt(spec)
    tables = {**({} if inherited is None else inherited.literals), **spec.literals}
    return bool(needed_words(spec, inherited)) and language not in tables


def place_of_words(entry: TaskEntry, language: str, preset: str) -> str:
    """Return where the missing words of a language are written: ``yo.yaml:3, languages.yo.prompts.default``."""
    key = f"languages.{language}.prompts.{preset}"
    if language not in entry.fragments:
        return f"a fragment that extends {entry.spec.task!r}, {key}"
    document = entry.document_of(language)
    return f"{document.source}:{document.line_of(['languages', language])}, {key}"


def word_problems(
    entry: TaskEntry, registry: Registry, catalog: Catalog, *, document: Document
) -> list[Problem]:
    """Return the problems of the words that a document brings for prompts of a task."""
    faults: list[tuple[KeyPath, str]] = []
    for (preset, code), added in entry.words.items():
        if added.document is document:
            path = ("languages", code, "prompts", preset)
            faults += [
                ((*path, *further), message)
                for further, message in _word_faults(entry, registry, catalog, preset, code, added.words)
            ]
    return [
        Problem(message=message, key=".".join(path), line=document.line_of(path)) for path, message in faults
    ]


def _word_faults(
    entry: TaskEntry, registry: Registry, catalog: Catalog, preset: str, code: str, given: AddedWords
) -> Iterator[tuple[KeyPath, str]]:
    task = entry.spec.task
    if code not in entry.spec.languages:
        yield (
            (),
            f"the task {task!r} has no {code!r}: give 'provenance' next to the words, and its test items",
        )
        return
    presets = catalog.presets(task)
    if preset not in presets:
        yield (), str(UnknownNameError(f"prompt of {task!r}", preset, presets))
        return
    spec = catalog.prompt(task, preset)
    inherited = catalog.inherited_prompt(spec)
    tables = {**({} if inherited is None else inherited.literals), **spec.literals}
    words = dict.fromkeys(name for table in tables.values() for name in table.words)
    if not words:
        yield (), f"the prompt {spec.prompt!r} has no words: it is the same in all languages"
        return
    unknown = [name for name in given.words if name not in words]
    own_templates = any((given.item, given.choice, given.answer))
    for name in () if own_templates else unknown:
        yield ("words", name), str(UnknownNameError(f"word of the prompt {spec.prompt!r}", name, words))
    missing = [name for name in needed_words(spec, inherited) if name not in given.words]
    if missing and not own_templates:
        yield ("words",), f"the prompt {spec.prompt!r} also needs the words {', '.join(map(repr, missing))}"
    elif not unknown or own_templates:
        kind = registry.kinds.get(entry.spec.kind)
        for fault in _template_faults(entry.worded(spec, code), code, kind, entry.spec, inherited):
            yield (), fault


def _template_faults(
    spec: PromptSpec, code: str, kind: TaskKind, task: TaskSpec | TrainingSpec, inherited: PromptSpec | None
) -> Iterator[str]:
    """Yield the faults of a prompt that is compiled in a language."""
    try:
        compiled = compile_prompt(spec, code, policy="fail", inherited=inherited)
        compiled.check_known(() if kind.prompt_fields is None else kind.prompt_fields(task))
        if spec.kind == "sequence_classification":
            compiled.label_words(task.label_names)
    except SpecError as error:
        yield from (problem.message for problem in error.problems)
    except HarnessError as error:
        yield str(error)
