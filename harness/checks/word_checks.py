"""Faults of the words that fragments bring for the prompts of a task, and places for missing ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.errors import HarnessError, Problem, SpecError, UnknownNameError
from harness.prompts.preset import compile_prompt
from harness.specs.prompt import ALL_LANGUAGES, PromptSpec

if TYPE_CHECKING:
    from harness.registry.registry import Registry
    from harness.specs.catalog import Catalog
    from harness.specs.fragment import AddedWords
    from harness.specs.loading import Document
    from harness.specs.task_entry import TaskEntry

Path = tuple[str, ...]


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
    faults: list[tuple[Path, str]] = []
    for (preset, code), added in entry.words.items():
        if added.document is document:
            path = ("languages", code, "prompts", preset)
            faults += [
                ((*path, *further), message)
                for further, message in _faults(entry, registry, catalog, preset, code, added.words)
            ]
    return [
        Problem(message=message, key=".".join(path), line=document.line_of(path)) for path, message in faults
    ]


def _faults(
    entry: TaskEntry, registry: Registry, catalog: Catalog, preset: str, code: str, given: AddedWords
) -> Iterator[tuple[Path, str]]:
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
        yield from _template_faults(entry, registry, entry.worded(spec, code), code, inherited)


def _template_faults(
    entry: TaskEntry, registry: Registry, spec: PromptSpec, code: str, inherited: PromptSpec | None
) -> Iterator[tuple[Path, str]]:
    fields: Sequence[str] = ()
    kind = registry.kinds.get(entry.spec.kind)
    if kind.prompt_fields is not None:
        fields = kind.prompt_fields(entry.spec)
    try:
        compiled = compile_prompt(spec, code, policy="fail", inherited=inherited)
        compiled.check_known(fields)
        if entry.spec.kind == "sequence_classification":
            compiled.label_words(entry.spec.label_names)
    except SpecError as error:
        for problem in error.problems:
            yield (), problem.message
    except HarnessError as error:
        yield (), str(error)
