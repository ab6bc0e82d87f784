"""What a plugin declares to check tasks on their data, and what its checks get to work with."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from harness.errors import BrokenPluginError

if TYPE_CHECKING:
    from harness.data.sources import DataFinder, FoundData
    from harness.languages.table import LanguageTable
    from harness.planning.lock_file import LockFile
    from harness.planning.task_audit import TaskAudit
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
        """Return what is found of a task; faults of its data are findings, not errors.

        Findings that are about no language of `only` are skipped; empty means all languages.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChecks:
    """Checks of tasks on their data; their code is named, and imported when ``harness tasks validate`` runs them."""

    name: str
    target: str
    """``module:callable``, called as ``callable(setting)`` with a `CheckSetting`; returns a `TaskChecker`."""
    summary: str
    remarks: str = ""
    """``module:callable`` of the cheap checks, called by a run with the `CheckedItems` of a cell; yields sentences."""

    def open(self) -> Callable[[CheckSetting], TaskChecker]:
        """Return the callable; raises `BrokenPluginError` where it cannot be imported."""
        make: Callable[[CheckSetting], TaskChecker] = self._loaded(self.target)
        return make

    def remarks_on(self, items: CheckedItems) -> Iterable[str]:
        """Return what the cheap checks say of items; raises `BrokenPluginError` where they cannot be imported."""
        sentences: Iterable[str] = self._loaded(self.remarks)(items) if self.remarks else ()
        return sentences

    def _loaded(self, target: str) -> Any:
        module, _, name = target.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise BrokenPluginError(
                f"The task checks {self.name!r} cannot be loaded from {target!r}: {error}."
            ) from error
