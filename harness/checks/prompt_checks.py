"""Checks of a prompt beyond its schema: tasks, fields and literals that do not exist."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.errors import HarnessError, Problem, SpecError, UnknownNameError
from harness.prompts.parsing import PARSERS
from harness.prompts.preset import compile_prompt
from harness.specs.prompt import ALL_LANGUAGES, PromptSpec
from harness.specs.schema import TaskSpec, TrainingSpec

if TYPE_CHECKING:
    from harness.kinds.kind import TaskKind
    from harness.registry.registry import Registry
    from harness.specs.catalog import Catalog
    from harness.specs.loading import Document


def prompt_problems(
    spec: PromptSpec, document: Document, registry: Registry, catalog: Catalog
) -> list[Problem]:
    """Return the problems of a prompt: templates are compiled in every language that it has words in."""
    faults: list[tuple[Sequence[str | int], str]] = []
    if spec.kind not in registry.kinds:
        faults.append((["kind"], str(UnknownNameError("task kind", spec.kind, registry.kinds.names))))
        return _problems(faults, document)
    kind = registry.kinds.get(spec.kind)
    if spec.parser is not None and spec.parser not in PARSERS:
        faults.append((["parser"], str(UnknownNameError("parser", spec.parser, PARSERS))))
    owners = [*catalog.names("task"), *catalog.names("training")]
    for index, name in enumerate(spec.tasks):
        if name not in owners:
            faults.append((["tasks", index], str(UnknownNameError("task or training set", name, owners))))
            continue
        faults += _faults(spec, kind, _spec_of(name, catalog), index, catalog)
    return _problems(faults, document)


def _spec_of(name: str, catalog: Catalog) -> TaskSpec | TrainingSpec:
    return catalog.task(name).spec if name in catalog.names("task") else catalog.training(name)[0]


def _faults(
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
        try:
            compiled = compile_prompt(spec, code, policy="fail", inherited=inherited)
            compiled.check_known(kind.prompt_fields(task))
            if spec.kind == "sequence_classification":
                compiled.label_words(task.label_names)
        except SpecError as error:
            faults += [(["literals", code], problem.message) for problem in error.problems]
        except HarnessError as error:
            faults.append((["literals", code], str(error)))
    return faults


def _problems(found: Sequence[tuple[Sequence[str | int], str]], document: Document) -> list[Problem]:
    unique = dict.fromkeys((tuple(path), message) for path, message in found)
    return [
        Problem(message=message, key=".".join(map(str, path)), line=document.line_of(path))
        for path, message in unique
    ]
