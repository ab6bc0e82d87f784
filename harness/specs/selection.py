"""From what a user typed to tasks and languages: names, suites, globs, ``xnli:sw+hi``, ``lm_eval:xnli_sw``."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UnknownNameError, UsageError
from harness.specs.catalog import Catalog
from harness.specs.task_entry import TaskEntry

__all__ = ["SelectedTask", "select", "split_names"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedTask:
    """A task with the languages to run, and the languages that were asked for but are missing."""

    entry: TaskEntry
    languages: tuple[str, ...]
    missing: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()


def split_names(values: Iterable[str]) -> list[str]:
    """Return the comma-separated names of repeated options, in order, without repetitions."""
    names = [name.strip() for value in values for name in value.split(",")]
    return list(dict.fromkeys(name for name in names if name))


def select(
    catalog: Catalog, patterns: Sequence[str], languages: Sequence[str] | None = None, *, shots: int = 0
) -> list[SelectedTask]:
    """Return the tasks that the patterns name, in the order they were named.

    A pattern is a task, a suite, or a glob over both, with ``:code+code`` behind it to pick languages, or what a
    source of tasks makes, ``PREFIX:NAME``, with `shots` examples. `languages` restricts all of them; a language that is
    missing in a task but that other tasks have is listed, not an error. Raises `UnknownNameError` for unknown tasks and
    languages.
    """
    chosen: dict[str, list[str] | None] = {}
    suites: dict[str, list[str]] = {}
    for pattern in split_names(patterns):
        if catalog.is_made(pattern):
            chosen |= dict.fromkeys(catalog.make(pattern, shots))
            continue
        name, _, codes_text = pattern.partition(":")
        codes = [code for code in codes_text.split("+") if code] or None
        for task, suite in _tasks_of(catalog, name):
            before = chosen.get(task, [])
            chosen[task] = None if codes is None or before is None else [*before, *codes]
            if suite is not None:
                suites.setdefault(task, []).append(suite)
    if not chosen:
        raise UsageError("No task was named.", hint="Run 'harness tasks list' to see all.")
    return [
        _with_languages(catalog, task, codes, languages, suites.get(task, []))
        for task, codes in chosen.items()
    ]


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


def _with_languages(
    catalog: Catalog, task: str, codes: list[str] | None, wanted: Sequence[str] | None, suites: list[str]
) -> SelectedTask:
    entry = catalog.task(task)
    asked = list(entry.spec.languages) if codes is None else list(dict.fromkeys(codes))
    if codes is None and wanted is not None:
        asked = list(dict.fromkeys(wanted))
    elif wanted is not None:
        asked = [code for code in asked if code in set(wanted)]
    known = catalog.language_codes()
    for code in asked:
        if code not in known:
            entry.languages.get(code)
    return SelectedTask(
        entry=entry,
        languages=tuple(code for code in asked if code in entry.spec.languages),
        missing=tuple(code for code in asked if code not in entry.spec.languages),
        suites=tuple(dict.fromkeys(suites)),
    )
