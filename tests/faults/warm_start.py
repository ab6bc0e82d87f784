"""Starts commands in processes that have imported everything already: forks of this one.

A script. Each line of its input is a JSON object (arguments, environment, folder); it writes the pid of the command
into ``FOLDER/pid`` and, once it has ended, its exit status into ``FOLDER/status`` as a shell would give it.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import pkgutil
import signal
import sys
from pathlib import Path
from typing import Any

PACKAGES = ("harness", "harness_hf")
FURTHER = ("transformers.models.bert.modeling_bert", "transformers.models.llama.modeling_llama")


def main() -> None:
    """Import, say so, and serve until the input ends."""
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        for module in pkgutil.walk_packages(path, f"{package}."):
            if not module.name.startswith("harness.testing") and not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    for name in FURTHER:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    # Read without a buffer that a fork would share.
    text = b""
    while piece := os.read(0, 1 << 16):
        text += piece
        *lines, text = text.split(b"\n")
        for line in lines:
            if os.fork() == 0:
                _mind(json.loads(line))


def _mind(order: dict[str, Any]) -> None:
    """Start a command, wait for its end, and record its status."""
    _end_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    folder = Path(order["folder"])
    process = os.fork()
    if process == 0:
        _command(order, folder)
    _publish(folder / "pid", process)
    _, status = os.waitpid(process, 0)
    _publish(folder / "status", os.waitstatus_to_exitcode(status))
    os._exit(0)


def _end_with_parent() -> None:
    """Nothing outlives the tests: the system kills this process when the one that started it ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)


def _publish(path: Path, number: int) -> None:
    part = path.with_suffix(".part")
    part.write_text(str(number), encoding="ascii")
    part.rename(path)


def _command(order: dict[str, Any], folder: Path) -> None:
    os.setsid()
    _end_with_parent()
    for descriptor, name in ((0, os.devnull), (1, folder / "stdout"), (2, folder / "stderr")):
        opened = os.open(name, os.O_RDONLY if descriptor == 0 else os.O_WRONLY | os.O_CREAT)
        os.dup2(opened, descriptor)
    os.environ.update(order["environment"])
    sys.argv = ["harness", *order["arguments"]]
    status = 1
    try:
        sys.modules["sitecustomize"].install()
        from harness.cli.main import run

        run()
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
