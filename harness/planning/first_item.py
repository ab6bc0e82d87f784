"""The first item of a task's test split, as a prompt presents it."""

from __future__ import annotations

import itertools

from harness.data.records import Example
from harness.data.sources import DataFinder, data_ref
from harness.errors import HarnessError, MissingDataError, UnknownNameError, UsageError
from harness.kinds.kind import ReadContext, TaskKind, read_examples
from harness.prompts.preset import LiteralPolicy
from harness.prompts.preview import Rendering, render_item
from harness.registry.registry import Registry
from harness.specs.catalog import Catalog
from harness.specs.task_entry import TaskEntry

__all__ = ["render_first_item"]


def render_first_item(
    task: str,
    language: str,
    preset: str,
    *,
    registry: Registry,
    catalog: Catalog,
    finder: DataFinder,
    policy: LiteralPolicy = "english",
) -> Rendering:
    """Return the first item of a task's test split in a language, as a preset presents it.

    Raises `UnknownNameError` for a task, language or preset that is not there, `UsageError` for a kind that is not
    prompted, and `MissingDataError` where there is no item, or no words under the policy ``fail``.
    """
    entry = catalog.task(task)
    if language not in entry.spec.languages:
        raise UnknownNameError(f"language of {task!r}", language, entry.spec.languages)
    kind = registry.kinds.get(entry.spec.kind)
    if kind.prompt_item is None:
        raise UsageError(f"The task {task!r} cannot be prompted: its kind {kind.name!r} has no prompt items.")
    shipped = catalog.prompt(task, preset)
    prompt = entry.worded(shipped, language)
    inherited = catalog.inherited_prompt(shipped)
    inherited = None if inherited is None else entry.worded(inherited, language)
    example = _first(entry, language, kind, finder)
    item = kind.prompt_item(example)
    return render_item(prompt, inherited, language, example.id, item, policy=policy)


def _first(entry: TaskEntry, language: str, kind: TaskKind, finder: DataFinder) -> Example:
    spec = entry.spec
    source = spec.source(language, "test")
    if source is None:
        raise MissingDataError(f"The task {spec.task!r} has no test split in {language!r}.")
    missing: HarnessError | None = None
    for values in itertools.product(*spec.axes.values()):
        conditions = dict(zip(spec.axes, values, strict=True))
        ref = data_ref(
            source,
            owner=spec.task,
            language=entry.languages.get(language),
            split="test",
            folder=entry.folders[language],
            conditions=conditions,
        )
        try:
            found = finder.find(source, ref)
        except MissingDataError as error:
            missing = missing or error
            continue
        context = ReadContext.of_test(spec, language, found.label_map)
        example: Example = read_examples(kind, itertools.islice(finder.rows(found), 1), context)[0]
        return example
    assert missing is not None
    raise missing
