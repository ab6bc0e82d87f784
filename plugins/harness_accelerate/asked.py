"""The number of processes that ``accelerate launch`` was asked for; it may start only one without a warning."""

from __future__ import annotations

import os
from pathlib import Path

from accelerate.commands.config.config_args import default_config_file, load_config_from_file
from accelerate.commands.launch import launch_command_parser

__all__ = ["asked_processes", "read_asked"]

MODULE = "accelerate.commands.launch"


def asked_processes() -> int | None:
    """Return the number that this process's parent was asked for, None where the parent is no ``accelerate launch``."""
    if "ACCELERATE_MIXED_PRECISION" not in os.environ:
        return None
    try:
        line = Path(f"/proc/{os.getppid()}/cmdline").read_bytes()
    except OSError:
        return None
    return read_asked([part.decode(errors="replace") for part in line.split(b"\0") if part])


def read_asked(command: list[str]) -> int | None:
    """Return the number of processes that an ``accelerate launch`` command line asks for, None for no number."""
    given = _arguments(command)
    if given is None:
        return None
    try:
        arguments, _ = launch_command_parser().parse_known_args(given)
    except SystemExit:
        return None
    if arguments.num_processes is not None:
        return int(arguments.num_processes)
    if arguments.config_file is None and not Path(default_config_file).is_file():
        return None
    number = getattr(load_config_from_file(arguments.config_file), "num_processes", None)
    return None if number is None or int(number) < 1 else int(number)


def _arguments(command: list[str]) -> list[str] | None:
    """Return what follows ``accelerate launch`` or ``python -m accelerate.commands.launch``."""
    for place, part in enumerate(command):
        if part == MODULE or (part == "launch" and any("accelerate" in word for word in command[:place])):
            return command[place + 1 :]
    return None
