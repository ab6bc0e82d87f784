"""Languages of one task that would be scored on the same rows, so that their scores would be equal."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.data.sources import DataFinder, FoundData
from harness.errors import HarnessError, Problem, SpecError
from harness.planning.origin import Origin
from harness.planning.task_audit import Finding, TaskAudit
from harness.specs.task_entry import TaskEntry

__all__ = ["FoundTest", "audit_own_rows", "check_own_rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTest:
    """The test items of one language in one view."""

    language: str
    view: Mapping[str, str]
    found: FoundData

    @property
    def rows(self) -> tuple[object, ...]:
        """What decides which rows are read: the files, and how the reader selects among them."""
        files = self.found.files
        paths = tuple(path.resolve() for path in files.paths)
        return (
            tuple(sorted(self.view.items())),
            paths,
            files.reader,
            files.columns,
            *sorted(files.options.items()),
        )


def check_own_rows(entry: TaskEntry, tests: Iterable[FoundTest]) -> None:
    """Raise `SpecError` where several languages of a task would be scored on the same rows."""
    for languages, files in _shared(tests):
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
    findings = [
        Finding(
            task=entry.spec.task,
            languages=languages,
            check="shared_rows",
            expected="rows of its own for every language",
            found=f"the same rows of {files} for all of them",
        )
        for languages, files in _shared(_tests(entry, finder))
        if not only or {*languages} & {*only}
    ]
    return TaskAudit(task=entry.spec.task, findings=findings)


def _shared(tests: Iterable[FoundTest]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the languages that read the same rows, and the files."""
    same: dict[tuple[object, ...], list[FoundTest]] = {}
    for test in tests:
        same.setdefault(test.rows, []).append(test)
    seen: set[tuple[str, ...]] = set()
    for group in same.values():
        languages = tuple(dict.fromkeys(test.language for test in group))
        if len(languages) > 1 and languages not in seen:
            seen.add(languages)
            yield languages, ", ".join(str(path) for path in group[0].found.files.paths)


def _tests(entry: TaskEntry, finder: DataFinder) -> Iterator[FoundTest]:
    spec = entry.spec
    for code in spec.languages:
        for values in itertools.product(*spec.axes.values()):
            view = dict(zip(spec.axes, values, strict=True))
            try:
                found = Origin.of(entry).find(finder, code, "test", view)
            except HarnessError:
                continue  # the checks that read the items report it
            yield FoundTest(language=code, view=view, found=found)
