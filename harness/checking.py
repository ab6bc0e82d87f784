"""What a schema cannot see: names that a spec uses and nobody registered, labels that do not exist."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.errors import HarnessError, Problem, SpecError, UnknownNameError
from harness.specs.schema import SPLITS, LanguageEntry, Source

if TYPE_CHECKING:
    from harness.registry import Registry
    from harness.specs.catalog import Catalog, TaskEntry

__all__ = ["check_task", "task_problems"]

KeyPath = tuple[str | int, ...]


def check_task(entry: TaskEntry, registry: Registry, catalog: Catalog) -> None:
    """Raise `SpecError` with all problems of a task whose schema is right."""
    problems = task_problems(entry, registry, catalog)
    if problems:
        raise SpecError(entry.document.source, problems)


def task_problems(entry: TaskEntry, registry: Registry, catalog: Catalog) -> list[Problem]:
    """Return the problems of a task: unknown metrics, readers, stages, recipes, languages, labels."""
    found = [*_names(entry, registry, catalog), *_languages(entry), *_sources(entry, registry)]
    return [
        Problem(message=message, key=".".join(map(str, path)), line=entry.document.line_of(path))
        for path, message in found
    ]


def _names(entry: TaskEntry, registry: Registry, catalog: Catalog) -> Iterator[tuple[KeyPath, str]]:
    spec = entry.spec
    for index, name in enumerate(spec.metrics):
        try:
            metric = registry.metrics.get(name)
        except HarnessError as error:
            yield ("metrics", index), str(error)
            continue
        if spec.kind not in metric.kinds:
            kinds = ", ".join(sorted(metric.kinds))
            yield ("metrics", index), f"the metric {name!r} scores {kinds}, and this task is {spec.kind}"
    if spec.transfer is None:
        return
    stages = [*catalog.names("training"), *catalog.names("task")]
    for index, name in enumerate(spec.transfer.stages):
        if name not in stages:
            yield ("transfer", "stages", index), str(UnknownNameError("training set", name, stages))
    if spec.transfer.recipe not in catalog.names("recipe"):
        unknown = UnknownNameError("recipe", spec.transfer.recipe, catalog.names("recipe"))
        yield ("transfer", "recipe"), str(unknown)


def _languages(entry: TaskEntry) -> Iterator[tuple[KeyPath, str]]:
    for code in entry.spec.languages:
        if code not in entry.languages:
            try:
                entry.languages.get(code)
            except HarnessError as error:
                yield ("languages", code), str(error)


def _sources(entry: TaskEntry, registry: Registry) -> Iterator[tuple[KeyPath, str]]:
    spec = entry.spec
    places: list[tuple[KeyPath, Source]] = [
        (("splits", split), source) for split, source in spec.splits.items()
    ]
    for code, language in spec.languages.items():
        given = language or LanguageEntry()
        for split in SPLITS:
            source = getattr(given, split)
            if source is not None:
                places.append((("languages", code, split), source))
    for path, source in places:
        yield from _readers(path, source, registry)
        yield from _labels(path, source, spec.label_names)


def _readers(path: KeyPath, source: Source, registry: Registry) -> Iterator[tuple[KeyPath, str]]:
    named = [(source.reader, source.options)]
    named += [(item.reader or source.reader, item.options or {}) for item in source.alternatives]
    if source.hub is not None:
        named.append((source.hub.reader, source.hub.options or {}))
    for name, options in named:
        try:
            reader = registry.readers.get(name)
        except HarnessError as error:
            yield (*path, "reader"), str(error)
            continue
        for option in options:
            if option not in reader.options:
                unknown = UnknownNameError(f"option of the reader {name!r}", option, reader.options)
                yield (*path, "options", option), str(unknown)


def _labels(path: KeyPath, source: Source, labels: tuple[str, ...]) -> Iterator[tuple[KeyPath, str]]:
    maps = [(source.label_map, (*path, "label_map"))]
    if source.hub is not None:
        maps.append((source.hub.label_map, (*path, "hub", "label_map")))
    for label_map, where in maps:
        for raw, label in (label_map or {}).items():
            if labels and label not in labels:
                yield (*where, raw), str(UnknownNameError("label", label, labels))
