"""From what a user typed to tasks and languages: names, suites, globs, ``xnli:sw+hi``, ``xnli:!en``, ``@sw``."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HarnessError, UnknownNameError, UsageError, raise_unknown
from harness.languages.table import known_languages
from harness.specs.catalog import Catalog
from harness.specs.task_entry import TaskEntry

LANGUAGE_MARK = "@"
"""``@sw`` means all tasks that have Swahili, in Swahili."""
EXCLUSION_MARK = "!"
"""``!en`` means all languages but English."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedTask:
    """A task with the languages to run, and the languages that were asked for but are missing."""

    entry: TaskEntry
    languages: tuple[str, ...]
    missing: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    """Languages of the task that were asked for, but that the language lists of its suites do not have."""
    outside: tuple[str, ...] = ()
    """Languages that were named with the task, but are not among those of ``--languages``."""
    suites: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    """The languages that its score averages: those of its suites where only they are run, else the task's own."""


def split_names(values: Iterable[str]) -> list[str]:
    """Return the names of repeated options, in order, without repetitions.

    Commas and spaces separate them; the name of a language, such as ``Mandarin Chinese``, may have spaces.
    """
    names: dict[str, None] = {}
    for words in (piece.split() for value in values for piece in value.split(",")):
        while words:
            sizes = range(len(words), 1, -1)
            names_of_languages = (
                size for size in sizes if known_languages().code_named(" ".join(words[:size]))
            )
            size = next(names_of_languages, 1)
            names[" ".join(words[:size])] = None
            del words[:size]
    return list(names)


def language_codes(values: Iterable[str] | None) -> list[str]:
    """Return the codes of languages that an option names in any form; what is not known is itself."""
    return [known_languages().code_of(name) or name for name in split_names(values or ())]


def named_and_excluded(codes: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the languages of a list that are named, and those that ``!`` excludes; one of the two is empty.

    The rule wherever a list restricts languages: it names them, or each of its codes has a ``!`` and is excluded from
    all. Raises `UsageError` for a mixture.
    """
    codes = list(codes)
    excluded = [code.removeprefix(EXCLUSION_MARK) for code in codes if code.startswith(EXCLUSION_MARK)]
    included = [code for code in codes if not code.startswith(EXCLUSION_MARK)]
    if included and excluded:
        raise UsageError(
            f"A list of languages names or excludes them: got {', '.join(included)} and "
            f"{', '.join(code for code in codes if code not in included)}.",
            hint="Name the languages to use, or put ! before each one that is excluded.",
        )
    return included, excluded


def plain_codes(catalog: Catalog, codes: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Return the codes with the ones of the harness, and a note on each that differs.

    The rule wherever languages are named: a code of the table or of a document is itself; any other name of a language
    is read as `LanguageTable.code_of` does: ``swa``, ``Swahili``, ``swh_Latn`` and ``sw-KE`` are ``sw``. What is no
    name at all is itself, for the error that follows.
    """
    plain: dict[str, str] = {}
    for code in codes:
        bare = code.removeprefix(EXCLUSION_MARK)
        is_known = not bare or bare in catalog.language_codes()
        mark = code[: len(code) - len(bare)]
        plain[code] = code if is_known else mark + (catalog.languages.code_of(bare) or bare)
    return plain, [
        f"{code} is {harness_code} here" for code, harness_code in plain.items() if harness_code != code
    ]


def plain_patterns(catalog: Catalog, patterns: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return patterns of tasks with the codes of the harness, ``xnli:zh-CN`` as ``xnli:zh``, and notes on them."""
    plain: list[str] = []
    notes: dict[str, None] = {}
    for pattern in split_names(patterns):
        prefix = f"{pattern.partition(':')[0]}:" if catalog.is_made(pattern) else ""
        mark = LANGUAGE_MARK if pattern.startswith(LANGUAGE_MARK) else ":"
        name, mark, codes = pattern.removeprefix(prefix).partition(mark)
        by_code, remarks = plain_codes(catalog, codes.split("+"))
        plain.append(f"{prefix}{name}{mark}{'+'.join(by_code.values())}")
        notes |= dict.fromkeys(remarks)
    return plain, list(notes)


def select(
    catalog: Catalog, patterns: Sequence[str], languages: Sequence[str] | None = None, *, shots: int = 0
) -> list[SelectedTask]:
    """Return the tasks that the patterns name, in the order they were named.

    A pattern is a task, a suite, or a glob over both, with ``:code+code`` behind it to pick languages, or
    ``:!code+!code`` to exclude them; ``@code``, all tasks that have a language, in that language; or what a source of
    tasks makes, ``PREFIX:NAME``, with `shots` examples. `languages` restricts all of them; a language that is missing
    in a task but that other tasks have is listed, not an error. Raises `UnknownNameError` for unknown tasks and
    languages.
    """
    chosen: dict[str, list[str] | None] = {}
    suites: dict[str, list[str]] = {}
    languages = languages and list(plain_codes(catalog, languages)[0].values())
    unknown: list[UnknownNameError] = []
    for pattern in plain_patterns(catalog, patterns)[0]:
        if catalog.is_made(pattern):
            chosen |= catalog.make(pattern, shots)
            continue
        try:
            choices = list(_named(catalog, pattern))
        except UnknownNameError as error:
            unknown.append(error)
            continue
        for task, suite, codes in choices:
            included, excluded = named_and_excluded(codes or ())
            before, selected = chosen.get(task, []), included or _suite_languages(catalog, task, suite)
            if excluded:
                check_languages(catalog, excluded)
                selected = [
                    code
                    for code in selected or _default_languages(catalog.task(task))
                    if code not in excluded
                ]
            chosen[task] = None if selected is None or before is None else [*before, *selected]
            if suite is not None:
                suites.setdefault(task, []).append(suite)
    raise_unknown(unknown)
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
    code = plain_codes(catalog, [code])[0][code]
    check_languages(catalog, [code])
    tasks = []
    for name in catalog.names("task"):
        try:
            if code in catalog.languages_of(name):
                tasks.append(name)
        except HarnessError as error:
            catalog.problems.append(error)
    if not tasks:
        raise UsageError(
            f"No task has the language {code!r}.",
            hint=f"Run 'harness new language {code} --task TASK' to add it to one.",
        )
    return tasks


def check_languages(catalog: Catalog, codes: Iterable[str]) -> None:
    """Raise `UsageError` for the codes that neither the language table nor a document has, all of them at once."""
    unknown: list[UnknownNameError] = []
    for code in dict.fromkeys(codes):
        try:
            if code not in catalog.language_codes():
                catalog.languages.get(code)
        except UnknownNameError as error:
            unknown.append(error)
    raise_unknown(unknown)


def _named(catalog: Catalog, pattern: str) -> Iterator[tuple[str, str | None, list[str] | None]]:
    """Yield the matches of a pattern: a task, the suite that named it, and its languages, or None for all."""
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
    is_language = name and catalog.languages.code_of(name) is not None
    raise UnknownNameError(
        "task or suite",
        name,
        [*tasks, *suites],
        hint=f"{name!r} is a language: write TASK:sw+hi, or @{name} for all tasks that have it."
        if is_language
        else "Run 'harness tasks list' to see all, or give the file of a task with --tasks-from.",
    )


def _suite_languages(catalog: Catalog, task: str, suite: str | None) -> list[str] | None:
    """Return the languages of a task that a suite runs, fragments' included; None where it runs all."""
    listed = None if suite is None else catalog.suite(suite).languages.get(task)
    if listed is None:
        return None
    entry = catalog.task(task)
    return [*listed, *(code for code in entry.added if code not in listed and code not in entry.on_request)]


def _with_languages(
    catalog: Catalog, task: str, codes: list[str] | None, wanted: Sequence[str] | None, suites: list[str]
) -> SelectedTask:
    entry = catalog.task(task)
    wanted, excluded = named_and_excluded(wanted or ())
    requested = _default_languages(entry) if codes is None else list(dict.fromkeys(codes))
    if wanted:
        requested = (
            list(dict.fromkeys(wanted)) if codes is None else [code for code in requested if code in wanted]
        )
    check_languages(catalog, [code for code in (*requested, *excluded) if code not in entry.spec.languages])
    requested = [code for code in requested if code not in excluded]
    available = tuple(code for code in requested if code in entry.spec.languages)
    names = tuple(dict.fromkeys(suites))
    dropped = [code for code in wanted if names and code in entry.spec.languages and code not in requested]
    listed = {code for suite in names for code in _suite_languages(catalog, task, suite) or ()}
    return SelectedTask(
        entry=entry,
        languages=available,
        missing=tuple(code for code in requested if code not in entry.spec.languages),
        unlisted=tuple(code for code in dict.fromkeys(dropped) if code not in listed),
        outside=tuple(code for code in codes or () if wanted and code not in wanted),
        suites=names,
        published=_published(catalog, entry, available, names),
    )


def _default_languages(entry: TaskEntry) -> list[str]:
    """Return the languages of a task that are run where none is named."""
    return [code for code in entry.spec.languages if code not in entry.on_request]


def _published(
    catalog: Catalog, entry: TaskEntry, languages: Sequence[str], suites: Sequence[str]
) -> tuple[str, ...]:
    listed = {code for suite in suites for code in catalog.suite(suite).languages.get(entry.spec.task, ())}
    published = [code for code in entry.spec.languages if code not in entry.added or code in listed]
    counted = {
        code for suite in suites for code in published if catalog.suite(suite).includes(entry.spec.task, code)
    }
    is_of_suites = {code for code in languages if code in published} <= counted
    return tuple(code for code in published if code in counted or not is_of_suites)
