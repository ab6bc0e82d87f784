"""From what a user typed to tasks and languages: names, suites, globs, ``xnli:sw+hi``, ``@sw``, ``lm_eval:xnli_sw``."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HarnessError, UnknownNameError, UsageError
from harness.specs.catalog import Catalog
from harness.specs.task_entry import TaskEntry

__all__ = ["SelectedTask", "select", "split_names", "tasks_with"]

LANGUAGE_MARK = "@"
"""``@sw`` means all tasks that have Swahili, in Swahili."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedTask:
    """A task with the languages to run, and the languages that were asked for but are missing."""

    entry: TaskEntry
    languages: tuple[str, ...]
    missing: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    """Languages of the task that were asked for, but that the language lists of its suites do not have."""
    suites: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    """The languages that its score averages: those of its suites where only they are run, else the task's own."""


def split_names(values: Iterable[str]) -> list[str]:
    """Return the comma-separated names of repeated options, in order, without repetitions."""
    names = [name.strip() for value in values for name in value.split(",")]
    return list(dict.fromkeys(name for name in names if name))


def select(
    catalog: Catalog, patterns: Sequence[str], languages: Sequence[str] | None = None, *, shots: int = 0
) -> list[SelectedTask]:
    """Return the tasks that the patterns name, in the order they were named.

    A pattern is a task, a suite, or a glob over both, with ``:code+code`` behind it to pick languages; ``@code``, all
    tasks that have a language, in that language; or what a source of tasks makes, ``PREFIX:NAME``, with `shots`
    examples. `languages` restricts all of them; a language that is missing in a task but that other tasks have is
    listed, not an error. Raises `UnknownNameError` for unknown tasks and languages.
    """
    chosen: dict[str, list[str] | None] = {}
    suites: dict[str, list[str]] = {}
    for pattern in split_names(patterns):
        if catalog.is_made(pattern):
            chosen |= catalog.make(pattern, shots)
            continue
        for task, suite, codes in _named(catalog, pattern):
            before, own = chosen.get(task, []), codes or _suite_languages(catalog, task, suite)
            chosen[task] = None if own is None or before is None else [*before, *own]
            if suite is not None:
                suites.setdefault(task, []).append(suite)
    if not chosen:
        raise UsageError("No task was named.", hint="Run 'harness tasks list' to see all.")
    return [
        _with_languages(catalog, task, codes, languages, suites.get(task, []))
        for task, codes in chosen.items()
    ]


def tasks_with(catalog: Catalog, code: str) -> list[str]:
    """Return the tasks that have a language, fragments included, without validating them.

    Raises `UsageError` where no task has the language, and for a code that neither the language table nor a document
    has.
    """
    _check_language(catalog, code)
    found = []
    for name in catalog.names("task"):
        try:
            if code in catalog.languages_of(name):
                found.append(name)
        except HarnessError as error:
            catalog.problems.append(error)
    if not found:
        raise UsageError(
            f"No task has the language {code!r}.",
            hint=f"Run 'harness new language {code} --task TASK' to add it to one.",
        )
    return found


def _check_language(catalog: Catalog, code: str) -> None:
    """Raise `UsageError` for a code that neither the language table nor a document has."""
    if code in catalog.language_codes():
        return
    try:
        catalog.languages.get(code)
    except UnknownNameError as error:
        if not error.near:
            error.hint = f"{error.hint or ''} To add it, run 'harness new language {code or 'CODE'}'.".strip()
        raise


def _named(catalog: Catalog, pattern: str) -> Iterator[tuple[str, str | None, list[str] | None]]:
    """Yield what a pattern names: a task, the suite that it was named through, and its languages, or None for all."""
    if pattern.startswith(LANGUAGE_MARK):
        code = pattern.removeprefix(LANGUAGE_MARK)
        yield from ((task, None, [code]) for task in tasks_with(catalog, code))
        return
    name, _, codes_text = pattern.partition(":")
    codes = [code for code in codes_text.split("+") if code] or None
    yield from ((task, suite, codes) for task, suite in _tasks_of(catalog, name))


def _tasks_of(catalog: Catalog, name: str) -> list[tuple[str, str | None]]:
    tasks, suites = catalog.names("task"), catalog.names("suite")
    if name in tasks:
        return [(name, None)]
    if name in suites:
        return [(task, name) for task in catalog.suite(name).tasks]
    if any(mark in name for mark in "*?["):
        matching = fnmatch.filter(tasks, name)
        if matching:
            return [(task, None) for task in matching]
    if Path(name).exists():
        raise UsageError(
            f"{name!r} is a {'folder' if Path(name).is_dir() else 'file'}, not a task.",
            hint=f"Give it with --tasks-from {name}, and the task that is in it, or that it extends, by its name.",
        )
    raise UnknownNameError(
        "task or suite",
        name,
        [*tasks, *suites],
        hint="Run 'harness tasks list' to see all, or give the file of a task with --tasks-from.",
    )


def _suite_languages(catalog: Catalog, task: str, suite: str | None) -> list[str] | None:
    """Return the languages of a task that a suite runs, fragments' included; None where it runs all."""
    own = None if suite is None else catalog.suite(suite).languages.get(task)
    if own is None:
        return None
    entry = catalog.task(task)
    return [*own, *(code for code in entry.added if code not in own and code not in entry.on_request)]


def _with_languages(
    catalog: Catalog, task: str, codes: list[str] | None, wanted: Sequence[str] | None, suites: list[str]
) -> SelectedTask:
    entry = catalog.task(task)
    whole = [code for code in entry.spec.languages if code not in entry.on_request]
    asked = whole if codes is None else list(dict.fromkeys(codes))
    if codes is None and wanted is not None:
        asked = list(dict.fromkeys(wanted))
    elif wanted is not None:
        asked = [code for code in asked if code in set(wanted)]
    known = catalog.language_codes()
    for code in asked:
        if code not in known:
            entry.languages.get(code)
    found = tuple(code for code in asked if code in entry.spec.languages)
    names = tuple(dict.fromkeys(suites))
    dropped = [code for code in wanted or () if names and code in entry.spec.languages and code not in asked]
    listed = {code for suite in names for code in _suite_languages(catalog, task, suite) or ()}
    return SelectedTask(
        entry=entry,
        languages=found,
        missing=tuple(code for code in asked if code not in entry.spec.languages),
        unlisted=tuple(code for code in dict.fromkeys(dropped) if code not in listed),
        suites=names,
        published=_published(catalog, entry, found, names),
    )


def _published(
    catalog: Catalog, entry: TaskEntry, languages: Sequence[str], suites: Sequence[str]
) -> tuple[str, ...]:
    named = {code for suite in suites for code in catalog.suite(suite).languages.get(entry.spec.task, ())}
    own = [code for code in entry.spec.languages if code not in entry.added or code in named]
    counted = {
        code for suite in suites for code in own if catalog.suite(suite).includes(entry.spec.task, code)
    }
    is_of_suites = {code for code in languages if code in own} <= counted
    return tuple(code for code in own if code in counted or not is_of_suites)
