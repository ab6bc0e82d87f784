"""Run a command as a child, and kill it when the worker of Ray that started it ends in any way.

Run as a script: ``python watcher.py PID_OF_THE_WORKER COMMAND...`` as the leader of a process group of its own. A
worker that is killed has no time to end its job, which Ray then starts elsewhere; two must not run at once. SIGTERM is
passed on to the command.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

SECONDS_BETWEEN_CHECKS = 0.2


def main(worker: int, command: list[str]) -> int:
    """Run the command until it or the worker ends; return its status, 128 and the number of a signal that ended it."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    signal.signal(signal.SIGTERM, lambda number, frame: child.terminate())
    while os.getppid() == worker:
        try:
            status = child.wait(SECONDS_BETWEEN_CHECKS)
        except subprocess.TimeoutExpired:
            continue
        return status if status >= 0 else 128 - status
    os.killpg(0, signal.SIGKILL)
    raise AssertionError("this process is in the group, too")


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
