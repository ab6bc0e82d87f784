"""The declaration of a source of tasks: it makes tasks named ``PREFIX:NAME``, such as those of another harness."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.errors import BrokenPluginError


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeTask:
    """The document of one task."""

    text: str
    """YAML; its task is named ``PREFIX:NAME``."""
    source: str
    """The file that it was made of, for messages."""


class MakesTasks(Protocol):
    """Interface of a source's code. Neither of its functions runs the files that it reads, nor needs the network."""

    def names(self, pattern: str) -> Sequence[str]:
        """Return the names (without prefix) that a task, a group or a glob means.

        ``name:code+code`` means some languages of a task.

        Raises `UnknownNameError` with near names, and `HarnessError` where what the source needs is not installed.
        """

    def document(self, name: str, shots: int) -> MadeTask:
        """Return the document of one task; raises `HarnessError` for one that cannot be taken.

        `shots` is what the user asked for; 0 leaves it to the task. The test data of the document are a Hub source
        whose path is ``PREFIX:NAME``: the hook ``harness_resolve_data`` is asked for it wherever other data lie.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSource:
    """Tasks that are made when they are named; the code is named here, and imported when one is."""

    name: str
    """The prefix: ``lm_eval`` of ``lm_eval:xnli_sw``."""
    target: str
    """``module:object``, a `MakesTasks`."""
    metric: str | None = None
    """``module:function``, the metric of a name ``PREFIX:METRIC``; None where the tasks have no metric of their own."""
    summary: str = ""

    def open(self) -> MakesTasks:
        """Return its code; raises `BrokenPluginError` where it cannot be imported."""
        makes: MakesTasks = self._loaded(self.target)
        return makes

    def open_metric(self, name: str) -> Any:
        """Return the metric of a name with the prefix; raises `BrokenPluginError` where it cannot be imported."""
        assert self.metric is not None
        return self._loaded(self.metric)(name)

    def _loaded(self, target: str) -> Any:
        module, _, name = target.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise BrokenPluginError(
                f"The source of tasks {self.name!r} cannot be loaded from {target!r}: {error}."
            ) from error
