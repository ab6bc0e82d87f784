"""Runs all registered checks of tasks on one set of data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.checks.shared_rows import audit_own_rows
from harness.checks.task_audit import TaskAudit, join_audits
from harness.data.sources import DataFinder
from harness.errors import UsageError
from harness.planning.lock_file import read_lock
from harness.planning.run_config import data_options
from harness.planning.task_checks import CheckSetting, TaskChecker
from harness.running.session import Session
from harness.specs.catalog import Catalog
from harness.specs.folder import read_entry
from harness.specs.task_entry import TaskEntry
from harness.storage.files import cache_folder


class Auditor:
    """Checks tasks with the checks of all plugins, each opened once."""

    def __init__(self, setting: CheckSetting) -> None:
        """Open the registered checks; raises `UsageError` where there are none."""
        table = setting.registry.task_checks
        if not table.names:
            raise UsageError(
                "No plugin checks tasks on data.",
                hint="Enable the plugin 'audit', or omit --data to check only the specs.",
            )
        self._finder = setting.finder
        self._checkers: list[TaskChecker] = [checks.load(checks.target)(setting) for checks in table]

    def audit(self, entry: TaskEntry, *, only: Sequence[str] = ()) -> TaskAudit:
        """Return the findings of all checks of a task, in the languages of `only`; empty means all."""
        audits = [checker.check(entry, only=only) for checker in self._checkers]
        return join_audits(entry.spec.task, [*audits, audit_own_rows(entry, self._finder, only=only)])


def open_auditor(session: Session, data: Sequence[str | Path], locked: Path | None = None) -> Auditor:
    """Return the registered checks on data; raises `UsageError` for data or a lock file that cannot be used.

    Args:
        session: The plugins and specs.
        data: Where data are looked for.
        locked: A lock file that the data must be those of.
    """
    lock = None if locked is None else read_lock(locked)
    pins = {} if lock is None else lock.pins
    finder = DataFinder(data_options(data), session.registry, cache_folder() / "data", pins=pins)
    return Auditor(
        CheckSetting(registry=session.registry, catalog=session.catalog, finder=finder, locked=lock)
    )


def audited_entry(catalog: Catalog, sort: str, name: str, source: str) -> TaskEntry | None:
    """Return the task that a validated document is about, read from its own file; None for other documents."""
    if sort not in {"task", "extends"}:
        return None
    if sort == "task" and name in catalog.names("task"):
        installed = catalog.task(name)
        if installed.document.source == source:
            return installed
    path = Path(source)
    if not path.is_file():
        return None
    entry = read_entry(source, path, path.parent)
    if sort == "task":
        return catalog.joined(entry, catalog.validate_task(entry))
    extended = catalog.entry("task", name)
    return catalog.joined(extended, catalog.validate_task(extended), further=[entry])
