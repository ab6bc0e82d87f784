"""Validates spec files and gives the JSON schema that editors check them with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from harness.checks.prompt_checks import prompt_problems
from harness.checks.spec_checks import published_problems, suite_problems, task_problems, training_problems
from harness.errors import DuplicateNameError, HarnessError, Problem, SpecError, UnknownNameError, UsageError
from harness.registry.registry import Registry
from harness.specs.catalog import Catalog
from harness.specs.documents import FragmentSpec, PromptSpec, PublishedSpec, RecipeSpec
from harness.specs.folder import read_entries, yaml_files
from harness.specs.schema import (
    SpecModel,
    SuiteSpec,
    TrainingSpec,
)
from harness.specs.task_entry import Entry
from harness.specs.validating import valid_part, validate_document

MODELS: dict[str, type[SpecModel]] = {
    "training": TrainingSpec,
    "recipe": RecipeSpec,
    "suite": SuiteSpec,
    "published": PublishedSpec,
    "prompt": PromptSpec,
    "extends": FragmentSpec,
}


def validate_specs(registry: Registry, catalog: Catalog, targets: Sequence[str]) -> list[dict[str, Any]]:
    """Return one row for every target (a name, a file, a folder; none means every document), with all its problems.

    Documents among the targets may name each other.
    """
    rows: list[dict[str, Any]] = []
    if not targets:
        rows += [_unreadable(problem) for problem in catalog.problems]
        rows += [_checked(entry, registry, catalog) for entry in catalog.entries]
        return rows
    read = [item for target in targets for item in _read(target, catalog)]
    entries = [item for item in read if isinstance(item, Entry)]
    catalog.add(entries)
    registry.languages = catalog.languages
    first: dict[tuple[str, str], Entry] = {}
    for item in read:
        if isinstance(item, SpecError):
            rows.append(_unreadable(item))
            continue
        row = _checked(item, registry, catalog)
        earlier = first.setdefault((item.sort, item.name), item)
        if item.sort != "extends" and earlier.document.source != item.document.source:
            row["problems"].append(str(_double(earlier, item)))
        rows.append(row)
    return rows


def _read(target: str, catalog: Catalog) -> Sequence[Entry | SpecError]:
    """Return the documents that a target means, and what is wrong with those that cannot be read."""
    path = Path(target)
    if path.suffix in {".yaml", ".yml"} or path.is_file():
        return _read_file(path)
    if path.is_dir() and target not in catalog.names("task"):
        return [entry for file in _files_in(path) for entry in _read_file(file)]
    return [catalog.entry("task", target)]


def _double(first: Entry, second: Entry) -> Problem:
    """Return the problem of a document that has the name of another one."""
    sources = first.document.source, second.document.source
    error = DuplicateNameError(second.sort, second.name, *sources, given=sources)
    return Problem(message=str(error), key=second.sort, line=second.document.line_of([second.sort]))


def _files_in(folder: Path) -> list[Path]:
    """Return the files that ``--tasks-from`` would read there; raises `UsageError` where there is none."""
    files = [Path(str(file)) for file in yaml_files(str(folder), folder)]
    if not files:
        raise UsageError(f"The folder {str(folder)!r} holds no YAML spec.")
    return files


def _read_file(path: Path) -> Sequence[Entry | SpecError]:
    try:
        return read_entries(str(path), path, path.parent)
    except SpecError as error:
        return [error]
    except OSError as error:
        raise UsageError(f"The spec {str(path)!r} cannot be read: {error.strerror}.") from error


def _checked(entry: Entry, registry: Registry, catalog: Catalog) -> dict[str, Any]:
    row = {"sort": entry.sort, "name": entry.name, "source": entry.document.source}
    try:
        problems = _problems(entry, registry, catalog)
    except SpecError as error:
        problems = list(error.problems)
        if error.source == entry.document.source:
            problems += _further_problems(entry, registry, catalog)
            problems.sort(key=lambda problem: problem.line or 0)
    except HarnessError as error:
        return {**row, "problems": [str(error)]}
    return {**row, "problems": [str(problem) for problem in problems]}


def _further_problems(entry: Entry, registry: Registry, catalog: Catalog) -> list[Problem]:
    """Return the faults of the part of a document that its schema accepts, as far as they can be checked."""
    try:
        if entry.sort == "task":
            schema, document, unknown = catalog.task_schema(entry)
            task = valid_part(schema, document, ["kind"] if unknown else [])
            if task is None:
                return []
            reduced = replace(entry, document=task.document)
            return task.own(task_problems(catalog.joined(reduced, task.spec), registry, catalog))
        partial = valid_part(MODELS[entry.sort], entry.document)
        if partial is None:
            return []
        return partial.own(_problems(replace(entry, document=partial.document), registry, catalog))
    except HarnessError:
        return []


def _problems(entry: Entry, registry: Registry, catalog: Catalog) -> list[Problem]:
    if entry.sort == "task":
        joined = catalog.joined(entry, catalog.validate_task(entry))
        return task_problems(joined, registry, catalog)
    spec = validate_document(MODELS[entry.sort], entry.document)
    problems: list[Problem] = []
    match spec:
        case TrainingSpec():
            problems = training_problems(spec, entry.document, registry)
        case SuiteSpec():
            problems = suite_problems(spec, entry.document, catalog)
        case PublishedSpec():
            problems = published_problems(spec, entry.document, registry, catalog)
        case PromptSpec():
            problems = prompt_problems(spec, entry.document, registry, catalog)
        case FragmentSpec():
            problems = _fragment_problems(entry, registry, catalog)
    return problems


def _fragment_problems(entry: Entry, registry: Registry, catalog: Catalog) -> list[Problem]:
    if entry.name not in catalog.names("task"):
        unknown = UnknownNameError("task", entry.name, catalog.names("task"))
        return [Problem(message=str(unknown), key="extends", line=entry.document.line_of(["extends"]))]
    extended = catalog.entry("task", entry.name)
    joined = catalog.joined(extended, catalog.validate_task(extended), further=[entry])
    return task_problems(joined, registry, catalog, document=entry.document)


def _unreadable(error: HarnessError) -> dict[str, Any]:
    source = error.source if isinstance(error, SpecError) else "?"
    problems = [str(problem) for problem in error.problems] if isinstance(error, SpecError) else [str(error)]
    return {"sort": "?", "name": source, "source": source, "problems": problems}


def spec_schema(registry: Registry) -> dict[str, Any]:
    """Return the JSON schema of all documents: any kind of task, and every other sort."""
    models: list[Any] = [kind.spec_model for kind in registry.kinds]
    union: Any = models[0]
    for model in [*models[1:], *MODELS.values()]:
        union = union | model
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **TypeAdapter(union).json_schema()}
