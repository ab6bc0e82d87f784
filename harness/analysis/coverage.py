"""The languages of a suite's tasks: Table 7's columns, which task has which language, and the family index.

Source: Ruder et al. (2021), Tables 7 and 8. A language counts once for every task of the suite whose document lists
it; languages that other packages add to a task are named, and not counted, so that the numbers stay the suite's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.errors import Problem, SpecError, UnknownNameError
from harness.languages.table import TABLE_SOURCE, Language, known_languages

if TYPE_CHECKING:
    from harness.specs.catalog import Catalog
    from harness.specs.schema import SuiteSpec
    from harness.specs.task_entry import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class CoveredLanguage:
    """One language of a suite and the tasks that have it."""

    language: Language
    tasks: tuple[str, ...]
    """In the order of the suite."""
    printed_datasets: int | None = None
    """The number of datasets that the suite's paper prints, where it is the paper of the language table."""

    @property
    def datasets(self) -> int:
        """The number of the suite's tasks that have the language."""
        return len(self.tasks)

    def row(self) -> dict[str, Any]:
        """Return the columns of Table 7 and the tasks, as plain values."""
        names = ("code", "name", "script", "printed_script", "family", "branch", "wikipedia_articles")
        marks = ("diacritics", "compounding", "clitics", "inflection", "derivation")
        row: dict[str, Any] = {name: getattr(self.language, name) for name in (*names, *marks)}
        return {
            **row,
            "datasets": self.datasets,
            "printed_datasets": self.printed_datasets,
            "tasks": list(self.tasks),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteCoverage:
    """The languages of a suite by code, and its tasks."""

    suite: str
    tasks: tuple[str, ...]
    languages: tuple[CoveredLanguage, ...]
    compared: Mapping[str, tuple[Language, ...]]
    """The languages of other benchmarks whose indices the suite's paper prints."""
    added: tuple[str, ...]
    """``task:code (plugin)`` of the languages that other packages add, which do not count."""
    notes: Mapping[str, str]
    """Why the suite's paper prints other values: ``script``, ``datasets``, ``family_index``, ``typology_index``."""

    def total(self, task: str) -> int:
        """Return the number of languages of a task."""
        return sum(task in covered.tasks for covered in self.languages)


def suite_coverage(catalog: Catalog, name: str) -> SuiteCoverage:
    """Return the languages of a suite's tasks; their documents are read and not validated.

    Raises `UnknownNameError` for an unknown suite, `SpecError` for unknown tasks of it, and an error that names the
    code for a language that neither the language table nor the task's document describes.
    """
    suite = catalog.suite(name)
    lost = [task for task in suite.tasks if task not in catalog.names("task")]
    if lost:
        document = catalog.entry("suite", name).document
        problems = [
            Problem(
                message=str(UnknownNameError("task", task, catalog.names("task"))),
                key="tasks",
                line=document.line_of(["tasks", suite.tasks.index(task)]),
            )
            for task in lost
        ]
        raise SpecError(document.source, problems)
    return cover(
        suite, {task: catalog.entry("task", task) for task in suite.tasks}, _added(catalog, suite.tasks)
    )


def cover(suite: SuiteSpec, entries: Mapping[str, Entry], added: Sequence[str] = ()) -> SuiteCoverage:
    """Return the languages of a suite whose task documents are `entries`."""
    described: dict[str, Language] = {}
    for entry in entries.values():
        for code in entry.languages:
            if suite.includes(entry.name, code):
                described.setdefault(code, _language(entry, code))
    printed = suite.citation == TABLE_SOURCE
    covered = [
        CoveredLanguage(
            language=language,
            tasks=tuple(
                task
                for task, entry in entries.items()
                if code in entry.languages and suite.includes(task, code)
            ),
            printed_datasets=int(language.printed_datasets)
            if printed and language.printed_datasets
            else None,
        )
        for code, language in described.items()
    ]
    return SuiteCoverage(
        suite=suite.suite,
        tasks=suite.tasks,
        languages=tuple(sorted(covered, key=lambda item: item.language.code)),
        compared={name: tuple(map(known_languages().get, codes)) for name, codes in suite.compared.items()},
        added=tuple(added),
        notes={str(key): note for key, note in suite.notes.items()},
    )


def family_index(languages: Iterable[Language]) -> tuple[int, int]:
    """Return the numbers of distinct top-level families (an isolate is one) and of languages.

    Their ratio is the family index of Ruder et al. (2021), Table 8, in (0, 1]: 16 / 50 for the languages of Table 7.
    """
    counted = list(languages)
    return len({language.family for language in counted}), len(counted)


def dataset_differences(languages: Iterable[CoveredLanguage]) -> list[tuple[str, int, int]]:
    """Return code, printed and counted number of datasets where the two differ."""
    return [
        (item.language.code, item.printed_datasets, item.datasets)
        for item in languages
        if item.printed_datasets is not None and item.printed_datasets != item.datasets
    ]


def _language(entry: Entry, code: str) -> Language:
    table = known_languages()
    if code in table:
        return table.get(code)
    description = entry.document.data["languages"][code]
    texts = description if isinstance(description, Mapping) else {}
    name, script, family = (texts.get(key) for key in ("name", "script", "family"))
    if isinstance(name, str) and isinstance(script, str) and isinstance(family, str):
        return Language(code=code, name=name, script=script, family=family)
    message = (
        table.meant_by(code)
        or f"{code!r} needs 'name', 'script' and 'family': it is not in the language table"
    )
    line = entry.document.line_of(["languages", code])
    raise SpecError(entry.document.source, [Problem(message=message, key=f"languages.{code}", line=line)])


def _added(catalog: Catalog, tasks: Iterable[str]) -> list[str]:
    return [
        f"{entry.name}:{code} ({entry.plugin})"
        for task in tasks
        for entry in catalog.entries
        if entry.sort == "extends" and entry.name == task
        for code in entry.languages
    ]
