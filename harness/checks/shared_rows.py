"""Languages of one task that would be scored on the same rows, so that their scores would be equal."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from harness.checks.task_audit import Finding, TaskAudit
from harness.data.origin import Origin
from harness.data.sources import DataFinder, FoundData
from harness.errors import HarnessError, Problem, SpecError
from harness.specs.task_entry import TaskEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTest:
    """The test items of one language in one view."""

    language: str
    view: Mapping[str, str]
    found: FoundData


def _rows() -> Callable[[FoundTest], tuple[object, ...]]:
    """Return a function for what decides which rows are read: the files, and how the reader selects among them.

    Links are followed, those of a folder once.
    """
    real_folder = cache(os.path.realpath)

    def rows(test: FoundTest) -> tuple[object, ...]:
        files = test.found.files
        locations = (os.path.split(path.resolve() if path.is_symlink() else path) for path in files.paths)
        return (
            tuple(sorted(test.view.items())),
            tuple((real_folder(folder), name) for folder, name in locations),
            files.reader,
            files.columns,
            *sorted(files.options.items()),
        )

    return rows


def check_own_rows(entry: TaskEntry, tests: Iterable[FoundTest]) -> None:
    """Raise `SpecError` where several languages of a task would be scored on the same rows."""
    for languages, files in _shared(tests, _rows()):
        last = languages[-1]
        document = entry.document_of(last)
        path = ("languages", last)
        message = (
            f"{', '.join(languages)} would be scored on the same rows of {files}: give each language a file of its "
            "own ('{language}' in the path), or a reader option that selects its rows"
        )
        problem = Problem(message=message, key=".".join(path), line=document.line_of(path))
        raise SpecError(document.source, [problem])


def audit_own_rows(entry: TaskEntry, finder: DataFinder, *, only: Sequence[str] = ()) -> TaskAudit:
    """Return a finding for each set of languages that read the same rows, or that have one of `only` among them."""
    tests = list(_tests(entry, finder))
    findings = [
        Finding(
            task=entry.spec.task,
            languages=languages,
            check="shared_rows",
            expected="rows of its own for every language",
            found=f"the same rows of {files} for all of them",
        )
        for languages, files in _shared(tests, _rows())
        if not only or {*languages} & {*only}
    ]
    findings += [
        Finding(
            task=entry.spec.task,
            languages=languages,
            check="shared_rows",
            expected="items of its own for every language",
            found=f"files with the same contents, {files}",
        )
        for languages, files in _copies(tests)
        if not only or {*languages} & {*only}
    ]
    return TaskAudit(task=entry.spec.task, findings=findings)


def copied_files_notes(task: str, tests: Iterable[FoundTest]) -> list[str]:
    """Return a note for each set of languages whose files have the same contents: at most one has its own items."""
    return [
        f"{task}: {', '.join(languages)} are scored on files with the same contents ({files}), so at most one of them "
        "is scored on its own items"
        for languages, files in _copies(list(tests))
    ]


def _copies(tests: Sequence[FoundTest]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the languages that have files of their own with the same contents, and the files."""
    rows = _rows()
    distinct = {rows(test): test for test in reversed(tests)}.values()
    yield from _shared(
        list(distinct)[::-1], lambda test: (tuple(sorted(test.view.items())), *test.found.content())
    )


def _shared(
    tests: Iterable[FoundTest], key: Callable[[FoundTest], tuple[object, ...]]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the languages whose tests are the same by a key, and their files."""
    same: dict[tuple[object, ...], list[FoundTest]] = {}
    for test in tests:
        same.setdefault(key(test), []).append(test)
    reported: set[tuple[str, ...]] = set()
    for group in same.values():
        languages = tuple(dict.fromkeys(test.language for test in group))
        if len(languages) > 1 and languages not in reported:
            reported.add(languages)
            yield (
                languages,
                ", ".join(dict.fromkeys(str(path) for test in group for path in test.found.files.paths)),
            )


def _tests(entry: TaskEntry, finder: DataFinder) -> Iterator[FoundTest]:
    spec = entry.spec
    for code in spec.languages:
        for values in itertools.product(*spec.axes.values()):
            view = dict(zip(spec.axes, values, strict=True))
            try:
                data = Origin.of(entry).find(finder, code, "test", view)
            except HarnessError:
                continue  # the checks that read the items report it
            yield FoundTest(language=code, view=view, found=data)
