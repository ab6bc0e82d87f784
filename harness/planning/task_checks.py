"""Inputs and interface of the checks that plugins run on tasks and their data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from harness.checks.task_audit import TaskAudit
    from harness.data.sources import DataFinder, FoundData
    from harness.languages.table import LanguageTable
    from harness.planning.lock_file import LockFile
    from harness.registry.registry import Registry
    from harness.specs.catalog import Catalog
    from harness.specs.schema import TaskSpec
    from harness.specs.task_entry import TaskEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSetting:
    """The plugins, specs and data that tasks are checked with."""

    registry: Registry
    catalog: Catalog
    finder: DataFinder
    locked: LockFile | None = None
    """The data must be those of this lock file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedItems:
    """The first test items of a cell, which a run looks at before its first cell."""

    spec: TaskSpec
    language: str
    axes: tuple[str, ...]
    """The values of the task's axes."""
    found: FoundData
    examples: Sequence[Any]
    references: Sequence[Any]
    """As metrics get them; None for items without labels."""
    languages: LanguageTable


class TaskChecker(Protocol):
    """Checks the tasks of one setting, one after the other."""

    def check(self, entry: TaskEntry, *, only: Sequence[str] = ()) -> TaskAudit:
        """Return the findings of a task; faults of its data are findings, not errors.

        Findings that are about no language of `only` are skipped; empty means all languages.
        """
