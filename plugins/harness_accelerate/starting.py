"""Start one command in several processes of this machine with torchrun, set up by a configuration file of accelerate.

torchrun is what ``accelerate launch`` uses for GPUs; on a CPU that starts a single process whatever it is asked for.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import torch
from accelerate.commands.config.config_args import default_config_file
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils.launch import prepare_multi_gpu_env

from harness import UsageError
from harness.running import PARENT_LOCK, STATUS_VARIABLE
from harness.storage import FileLock

CRASHED = 1
INTERRUPTED = 130
GRACE = 60.0
"""Seconds that the launcher gets to end by itself after the third Ctrl-C."""


def launch_command(arguments: Sequence[str], count: int) -> list[str]:
    """Return the command that runs ``harness ARGUMENTS`` in `count` processes."""
    # After "--" a launcher takes no option for a shortened one of its own: --log for --log-dir.
    launcher = ["torch.distributed.run", "--standalone", "--nproc_per_node", str(count)]
    return [sys.executable, "-m", *launcher, "-m", "--", "harness", *arguments]


def read_configuration(file: str | None, count: int | None) -> tuple[int, dict[str, str]]:
    """Return the number of processes and what accelerate sets in their environment for a configuration file.

    Without a file it is that of ``accelerate config``, if there is one. `count` has precedence over the file's number.
    Raises `UsageError` for a file that accelerate does not read, without a number, or for several machines.
    """
    if file is None and not Path(default_config_file).is_file():
        return count or 1, {}
    file = file or default_config_file
    options = ["--config_file", file, *(["--num_processes", str(count)] if count is not None else [])]
    before = dict(os.environ)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = launch_command_parser().parse_args(
                [*options, "--main_process_port", "0", "-m", "harness"]
            )
            arguments, _, _ = _validate_launch_command(parsed)
            environment = prepare_multi_gpu_env(arguments)
            processes, machines = int(arguments.num_processes or 1), int(arguments.num_machines or 1)
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"accelerate does not read the configuration {file!r}: {error}.",
            hint="Write it with: accelerate config --config_file FILE",
        ) from error
    if machines > 1:
        raise UsageError(
            f"The configuration {file!r} is for {machines} machines, and "
            "'harness eval' starts the processes of one.",
            hint="Run on every machine: accelerate launch --config_file FILE -m harness eval ...",
        )
    changed = {name: value for name, value in environment.items() if before.get(name) != value}
    if arguments.use_deepspeed:
        changed["ACCELERATE_USE_DEEPSPEED"] = "true"  # rejected where training starts, with what to use
    changed.pop("OMP_NUM_THREADS", None)
    return processes, changed


def start(arguments: Sequence[str], count: int | None, configuration: str | None = None) -> int:
    """Run the command and return its exit status: that of the leading process, 1 where it left none.

    Ctrl-C is passed on to the processes, not to the launcher, which would end them at once.
    """
    count, settings = read_configuration(configuration, count)
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    with tempfile.TemporaryDirectory(prefix="harness-") as folder:
        environment = {
            "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // count)),
            **({} if gpus >= count else {"ACCELERATE_USE_CPU": "true"}),
            **os.environ,
            **settings,
            STATUS_VARIABLE: folder,
        }
        alive = FileLock(Path(folder) / PARENT_LOCK)
        alive.acquire()
        # Its own session: what the terminal sends reaches this process alone.
        launcher = subprocess.Popen(launch_command(arguments, count), env=environment, start_new_session=True)
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
