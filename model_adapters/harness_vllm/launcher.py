"""Run a server as a child, and end its whole process group when the harness ends in any way.

Run as a script: ``python launcher.py PID_OF_THE_HARNESS COMMAND...`` as the leader of a process group of its own.
The harness cannot do this itself: a signal that ends it at once (SIGKILL, out of memory) leaves it no time to
end its server, so this process watches it. SIGTERM ends the server, too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from types import FrameType
from typing import NoReturn

SECONDS_BETWEEN_CHECKS = 0.25
GRACE = 10.0
"""Seconds between SIGTERM and SIGKILL."""
SECONDS_FOR_CHILDREN = 0.2
"""Seconds in which the server's own children may end after it."""


class _Ended(Exception):
    """SIGTERM came."""


def _end(number: int, frame: FrameType | None) -> NoReturn:
    raise _Ended


def _end_group(server: subprocess.Popen[bytes] | None) -> NoReturn:
    """SIGTERM for everyone in the group but this process; SIGKILL for everyone, after the grace."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    try:
        if server is not None:
            server.wait(GRACE)
        time.sleep(SECONDS_FOR_CHILDREN)
    except subprocess.TimeoutExpired:
        pass
    os.killpg(0, signal.SIGKILL)
    raise AssertionError("this process is in the group, too")


def main(harness: int, command: list[str]) -> int:
    """Run the command until it ends, the harness ends, or SIGTERM comes; return the command's status."""
    server: subprocess.Popen[bytes] | None = None
    signal.signal(signal.SIGTERM, _end)
    try:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        while os.getppid() == harness:
            try:
                status = server.wait(SECONDS_BETWEEN_CHECKS)
            except subprocess.TimeoutExpired:
                continue
            return status if status >= 0 else 128 - status
    except _Ended:
        pass
    _end_group(server)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
