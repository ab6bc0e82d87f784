"""Validates spec files and gives the JSON schema that editors check them with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from harness.errors import HarnessError, Problem, SpecError, UnknownNameError, UsageError
from harness.planning.prompt_checks import prompt_problems
from harness.planning.spec_checks import published_problems, suite_problems, task_problems, training_problems
from harness.registry.registry import Registry
from harness.specs.catalog import Catalog
from harness.specs.folder import read_entry, yaml_files
from harness.specs.fragment import FragmentSpec
from harness.specs.prompt import PromptSpec
from harness.specs.published import PublishedSpec
from harness.specs.recipe import RecipeSpec
from harness.specs.schema import (
    SpecModel,
    SuiteSpec,
    TrainingSpec,
)
from harness.specs.task_entry import Entry
from harness.specs.validating import validate_document

__all__ = ["spec_schema", "validate_specs"]

MODELS: dict[str, type[SpecModel]] = {
    "training": TrainingSpec,
    "recipe": RecipeSpec,
    "suite": SuiteSpec,
    "published": PublishedSpec,
    "prompt": PromptSpec,
    "extends": FragmentSpec,
}


def validate_specs(registry: Registry, catalog: Catalog, targets: Sequence[str]) -> list[dict[str, Any]]:
    """Return one row for every target (a name, a file, a folder; none means every document), with all its problems."""
    rows: list[dict[str, Any]] = []
    if not targets:
        rows += [_unreadable(problem) for problem in catalog.problems]
        rows += [_checked(entry, registry, catalog) for entry in catalog.entries]
    for target in targets:
        if Path(target).suffix in {".yaml", ".yml"} or Path(target).is_file():
            rows.append(_checked_file(Path(target), registry, catalog))
        elif Path(target).is_dir() and target not in catalog.names("task"):
            rows += [_checked_file(path, registry, catalog) for path in _files_in(Path(target))]
        else:
            rows.append(_checked(catalog.entry("task", target), registry, catalog))
    return rows


def _files_in(folder: Path) -> list[Path]:
    """Return the files that ``--tasks-from`` would read there; raises `UsageError` where there is none."""
    files = [Path(str(file)) for file in yaml_files(str(folder), folder)]
    if not files:
        raise UsageError(f"The folder {str(folder)!r} holds no YAML spec.")
    return files


def _checked_file(path: Path, registry: Registry, catalog: Catalog) -> dict[str, Any]:
    try:
        entry = read_entry(str(path), path, path.parent)
    except SpecError as error:
        return _unreadable(error)
    except OSError as error:
        raise UsageError(f"The spec {str(path)!r} cannot be read: {error.strerror}.") from error
    return _checked(entry, registry, catalog)


def _checked(entry: Entry, registry: Registry, catalog: Catalog) -> dict[str, Any]:
    row = {"sort": entry.sort, "name": entry.name, "source": entry.document.source}
    try:
        problems = [str(problem) for problem in _problems(entry, registry, catalog)]
    except SpecError as error:
        problems = [str(problem) for problem in error.problems]
    except HarnessError as error:
        problems = [str(error)]
    return {**row, "problems": problems}


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
