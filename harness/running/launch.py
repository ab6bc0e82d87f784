"""From one process to several: how a run is started on many, and how each of them finds the others."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import UsageError, require_extra
from harness.registry.declarations import Launcher
from harness.registry.registry import Registry
from harness.running.processes import ProcessGroup, launched

STATUS_VARIABLE = "HARNESS_STATUS_FOLDER"
"""Names the folder in which processes that the harness started itself leave their ids, and the first its status."""

PARENT_LOCK = "parent.lock"
"""Held in that folder by the command that started the processes, for as long as it lives."""


def join_processes(registry: Registry, *, wanted: int | None = None, cpu: bool = False) -> ProcessGroup:
    """Return the processes that this one was started with; alone where no launcher started it.

    Raises `UsageError` where their number is not the one that was asked for.
    """
    if not launched():
        if wanted is not None and wanted > 1:
            raise UsageError(
                f"{wanted} processes were asked for, but this is one, and no launcher started it.",
                hint="Start the program with torchrun or accelerate, or use the command: harness eval --num-processes.",
            )
        return ProcessGroup()
    launcher = _launcher(registry)
    processes = ProcessGroup(_load(launcher, launcher.join)(cpu=cpu))
    if wanted is not None and processes.count != wanted:
        processes.close()
        raise UsageError(
            f"--num-processes asks for {wanted} processes, but this launcher started {processes.count}.",
            hint=f"Omit one of the two: harness eval --num-processes {wanted} starts them itself.",
        )
    return processes


def needs_start(registry: Registry, count: int | None, options: Mapping[str, str]) -> bool:
    """Return whether the command has to start processes: for a number above 1 or a launcher's configuration."""
    return not launched() and ((count or 1) > 1 or _configuration(registry, options) is not None)


def start_processes(
    registry: Registry, arguments: Sequence[str], count: int | None, options: Mapping[str, str]
) -> int:
    """Run ``harness ARGUMENTS`` in several processes of this machine and return the exit status."""
    launcher = _launcher(registry)
    status: int = _load(launcher, launcher.start)(arguments, count, _configuration(registry, options))
    return status


def _configuration(registry: Registry, options: Mapping[str, str]) -> str | None:
    """Return the configuration file that the options of the model name for the launcher."""
    names = [launcher.option for launcher in list(registry.launchers)[:1] if launcher.option is not None]
    return options.get(names[0]) if names else None


def leave_status(status: int) -> int:
    """Return the exit status of this process; where the harness started it, the true one is left in a file.

    A launcher takes any other status than 0 for a crash and kills the processes that are still writing.
    """
    folder = os.environ.get(STATUS_VARIABLE)
    if folder is None:
        return status
    if os.environ.get("RANK", "0") == "0":
        (Path(folder) / "status").write_text(str(status), encoding="ascii")
    return 0


def _launcher(registry: Registry) -> Launcher:
    launchers: list[Launcher] = list(registry.launchers)
    if not launchers:
        raise UsageError(
            "No plugin can run several processes.",
            hint="Run: pip install 'multilingual-harness[hf]', and leave HARNESS_DISABLE_PLUGINS unset.",
        )
    return launchers[0]


def _load(launcher: Launcher, target: str) -> Any:
    module_name, _, attribute = target.partition(":")
    with require_extra("Running several processes", launcher.extra, target):
        return getattr(importlib.import_module(module_name), attribute)
