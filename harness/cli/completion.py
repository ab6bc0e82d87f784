"""Completion of commands and options in the shell, by typer's scripts."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import typer.core
import typer.main

from harness.errors import UsageError

COMPLETE_VARIABLE = "_HARNESS_COMPLETE"
"""Set by the shell's script to what it wants to know."""
SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")


def install(shell: str | None = None) -> tuple[str, Path]:
    """Write the script of a shell and return its name and path; None finds the shell that runs the command.

    Raises `UsageError` for a shell that typer does not know.
    """
    if shell is not None and shell not in SHELLS:
        raise UsageError(f"No completion for the shell {shell!r}; expected {', '.join(SHELLS)}.")
    try:
        shell_name, path = _typer_completion().install(
            shell, prog_name="harness", complete_var=COMPLETE_VARIABLE
        )
    except typer.Exit as error:
        raise UsageError(
            f"The shell is not known; expected {', '.join(SHELLS)}.",
            hint="Name it: harness --install-completion bash",
        ) from error
    return shell_name, path


def complete(commands: Mapping[str, str], load: Callable[[str], Any]) -> int:
    """Print what may follow the words in the shell's variables; only the command that they name is loaded."""

    class Commands(typer.core.TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            return list(commands)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if cmd_name not in commands:
                return None
            words = (
                os.environ.get("COMP_WORDS", "").split() or os.environ.get("_TYPER_COMPLETE_ARGS", "").split()
            )
            if cmd_name not in words:  # its help is all that a list of commands needs
                return typer.core.TyperCommand(cmd_name, help=commands[cmd_name])
            return typer.main.get_command(load(cmd_name))

    _typer_completion().completion_init()
    group = Commands(name="harness")
    status = group.main(args=[], prog_name="harness", complete_var=COMPLETE_VARIABLE, standalone_mode=False)
    return status if isinstance(status, int) else 0


def _typer_completion() -> Any:
    """Return typer's module, which does not declare what its commands use of it."""
    return importlib.import_module("typer.completion")
