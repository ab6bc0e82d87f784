"""Start one command in several processes of this machine, through accelerate's launcher or, on CPUs, torchrun.

On a CPU ``accelerate launch`` starts a single process whatever it is asked for (its other way is MPI); torchrun,
which it uses for GPUs itself, starts as many as it is asked for.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import torch

from harness.running.launch import PARENT_LOCK, STATUS_VARIABLE
from harness.storage.file_lock import FileLock

__all__ = ["launch_command", "start"]

CRASHED = 1
INTERRUPTED = 130
GRACE = 60.0
"""Seconds that the launcher gets to end by itself after the third Ctrl-C."""


def launch_command(arguments: Sequence[str], count: int, *, gpus: int) -> list[str]:
    """Return the command that runs ``harness ARGUMENTS`` in `count` processes."""
    # After "--" a launcher takes no option for a shortened one of its own: --log for --log-dir.
    module = ["-m", "--", "harness", *arguments]
    if gpus >= count:
        options = ["--multi_gpu", "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"]
        launcher = ["accelerate.commands.launch", *options, "--num_processes", str(count)]
        return [sys.executable, "-m", *launcher, "--main_process_port", "0", *module]
    launcher = ["torch.distributed.run", "--standalone", "--nproc_per_node", str(count)]
    return [sys.executable, "-m", *launcher, *module]


def start(arguments: Sequence[str], count: int) -> int:
    """Run the command and return its exit status: that of the leading process, 1 where it left none.

    Ctrl-C is passed on to the processes, not to the launcher, which would end them at once.
    """
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    with tempfile.TemporaryDirectory(prefix="harness-") as folder:
        environment = {
            "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // count)),
            **({} if gpus >= count else {"ACCELERATE_USE_CPU": "true"}),
            **os.environ,
            STATUS_VARIABLE: folder,
        }
        command = launch_command(arguments, count, gpus=gpus)
        alive = FileLock(Path(folder) / PARENT_LOCK)
        alive.acquire()
        # Its own session: what the terminal sends reaches this process alone.
        launcher = subprocess.Popen(command, env=environment, start_new_session=True)
        with _passed_on(launcher, Path(folder)) as received:
            code = launcher.wait()
        alive.release()
        return _status(Path(folder), code, stopped=bool(received))


def _status(folder: Path, code: int, *, stopped: bool) -> int:
    file = folder / "status"
    if code != 0 or not file.is_file():
        return INTERRUPTED if stopped else CRASHED
    return int(file.read_text(encoding="ascii"))


@contextmanager
def _passed_on(launcher: subprocess.Popen[bytes], folder: Path) -> Iterator[list[int]]:
    """Pass signals on to the processes while the launcher runs, and note them; end it where this process fails.

    Before there are processes, and at the third signal, it is the launcher that ends.
    """
    received: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        received.append(number)
        processes = _processes(folder)
        if len(received) > 2 or not processes:
            launcher.terminate()
        for process in processes:
            _send(process, signal.SIGINT)

    former = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
        if launcher.poll() is None:
            launcher.terminate()
            try:
                launcher.wait(GRACE)
            except subprocess.TimeoutExpired:
                os.killpg(launcher.pid, signal.SIGKILL)


def _processes(folder: Path) -> list[int]:
    return [int(file.read_text(encoding="ascii") or 0) for file in folder.glob("*.pid")]


def _send(process: int, number: int) -> None:
    try:
        if process:
            os.kill(process, number)
    except ProcessLookupError:
        return
