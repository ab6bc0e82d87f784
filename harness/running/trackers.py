"""Trackers that a run is logged to: how plugins declare them, and what they are given."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from harness.errors import require_extra


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedRun:
    """A run that a tracker is asked to open."""

    name: str
    """The name of its folder."""
    config: Mapping[str, Any]
    """Plain JSON: model, revision, options, tasks with their versions, languages, seeds, digests of the data."""
    id: str | None = None
    """`RunLog.id` of an earlier attempt, which is continued; None for a run that the tracker does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedResults:
    """What is known of a run at its end."""

    values: Mapping[str, float]
    """Means of tasks (``xnli/mean/accuracy``) and suites (``suite/xtreme_r/mean``), with the ends of intervals."""
    table: Sequence[Mapping[str, Any]]
    """The rows of `harness.storage.run_folder.Run.scores`."""
    file: Path
    """``results.json``."""


class RunLog(Protocol):
    """A run that is open in a tracker."""

    id: str
    """Under which the tracker finds the run again."""
    place: str
    """Where a person finds it: an address, a folder."""

    def log(self, values: Mapping[str, float]) -> None:
        """Log the metrics of a finished cell: ``xnli/sw/accuracy``, ``xnli/sw/accuracy_low``, ``..._high``."""

    def finish(self, results: LoggedResults) -> None:
        """Log the means, the table and the file; called again where a finished run is resumed."""

    def close(self, *, finished: bool) -> None:
        """End the run in the tracker; `finished` is false where it was stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracker:
    """The declaration of an experiment tracker; it names its code, which is imported for ``--log NAME`` only."""

    name: str
    """The value of ``--log``."""
    target: str
    """``module:callable``, called as ``callable(run: TrackedRun)``: returns a `RunLog`."""
    summary: str = ""
    """One line for the list of registered names."""
    extra: str | None = None
    """The extra of the harness that installs what it needs."""

    def load(self) -> Callable[[TrackedRun], RunLog]:
        """Return what opens a run; raises `MissingExtraError` where its package is not installed."""
        module, _, attribute = self.target.partition(":")
        with require_extra(f"The tracker {self.name!r}", self.extra, self.target):
            opener: Callable[[TrackedRun], RunLog] = getattr(importlib.import_module(module), attribute)
            return opener
