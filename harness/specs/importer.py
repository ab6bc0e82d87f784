"""What an importer is: a named way to turn another harness's task into documents of ours."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.errors import BrokenPluginError

__all__ = ["ImportedTask", "TaskImporter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTask:
    """The documents of one task, not yet written."""

    files: Mapping[str, str]
    """Name of a file, without folders -> its text; all together pass ``harness tasks validate``."""
    notes: tuple[str, ...] = ()
    """What differs from the original or was assumed, one sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskImporter:
    """A format of tasks that can be imported; its code is named, and imported when it is used.

    The code is a function ``(source, language) -> ImportedTask``: `source` is what the user gave, a path or a name;
    `language` a code of ours, or None where the importer is to find it out. It raises `SpecError` with every key that
    it cannot take and its line, and executes nothing that the source holds.
    """

    name: str
    target: str
    """``module:function``."""
    summary: str

    def open(self) -> Callable[[str, str | None], ImportedTask]:
        """Return its function; raises `BrokenPluginError` where the code cannot be imported."""
        module, _, name = self.target.partition(":")
        try:
            function: Callable[[str, str | None], ImportedTask] = getattr(
                importlib.import_module(module), name
            )
        except (ImportError, AttributeError) as error:
            raise BrokenPluginError(
                f"The importer {self.name!r} cannot be loaded from {self.target!r}: {error}."
            ) from error
        return function
