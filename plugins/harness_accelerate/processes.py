"""Processes of one command: started on this machine with torchrun, and joined into one group where they run.

torchrun is what ``accelerate launch`` uses for GPUs; on a CPU that starts a single process whatever it is asked for.
"""

from __future__ import annotations

import datetime
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import torch
from accelerate import PartialState
from accelerate.commands.config.config_args import default_config_file, load_config_from_file
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils.launch import prepare_multi_gpu_env

from harness import AdapterError, UsageError
from harness.running import PARENT_LOCK, STATUS_VARIABLE
from harness.storage import FileLock

CRASHED = 1
INTERRUPTED = 130
GRACE = 60.0
"""Seconds that the launcher gets to end by itself after the third Ctrl-C."""
PATIENCE = datetime.timedelta(hours=24)
"""How long the other processes wait for one that scores or fits; one that has ended is noticed at once."""
WATCH_EVERY = 1.0
MODULE = "accelerate.commands.launch"
LOST = 3
"""Exit status of a process whose launcher is gone."""


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


class TorchProcesses:
    """The processes of torch's default group; messages go over gloo, whatever tensors go over."""

    def __init__(self) -> None:
        self.rank = int(torch.distributed.get_rank())
        self.count = int(torch.distributed.get_world_size())
        self._group = torch.distributed.new_group(backend="gloo", timeout=PATIENCE)

    def gather(self, message: bytes) -> list[bytes]:
        """Return the messages of all processes, by rank; raises `AdapterError` where one of them is gone."""
        try:
            return self._gather(message)
        except RuntimeError as error:
            raise AdapterError(
                f"Process {self.rank} lost another one of the {self.count}: {str(error).splitlines()[0]}.",
                hint="See its last lines above; then continue with --resume.",
            ) from error

    def _gather(self, message: bytes) -> list[bytes]:
        size = torch.tensor([len(message)], dtype=torch.int64)
        sizes = [torch.zeros_like(size) for _ in range(self.count)]
        torch.distributed.all_gather(sizes, size, group=self._group)
        longest = max(1, *(int(length) for length in sizes))
        padded = torch.zeros(longest, dtype=torch.uint8)
        if message:
            padded[: len(message)] = torch.frombuffer(bytearray(message), dtype=torch.uint8)
        messages = [torch.empty_like(padded) for _ in range(self.count)]
        torch.distributed.all_gather(messages, padded, group=self._group)
        return [
            tensor[: int(length)].numpy().tobytes() for tensor, length in zip(messages, sizes, strict=True)
        ]

    def close(self) -> None:
        """Leave the group; a second call does nothing."""
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


def join(*, cpu: bool = False) -> TorchProcesses | None:
    """Return the processes that this one was started with, None where it is the only one.

    Args:
        cpu: Whether the model runs on the CPU although there are GPUs.

    Raises `UsageError` where fewer processes run than were asked for: ``accelerate launch --cpu`` runs a single one,
    whatever its ``--num_processes`` says.
    """
    count = int(os.environ.get("WORLD_SIZE", "1"))
    requested = asked_processes()
    if requested is not None and requested != count:
        raise UsageError(
            f"accelerate was asked for {requested} processes and started {count}: it knows no other way on a CPU.",
            hint=f"Run 'harness eval --num-processes {requested} ...' (-o accelerate=FILE configures them), or "
            f"'ACCELERATE_USE_CPU=true torchrun "
            f"--nproc_per_node {requested} -m harness eval ...'.",
        )
    if count == 1:
        return None
    _write_process_id()
    _watch_launcher()
    # transformers would load no weights in the other processes, not even those of models that only answer.
    os.environ["FSDP_CPU_RAM_EFFICIENT_LOADING"] = "false"
    state = PartialState(cpu=cpu or not torch.cuda.is_available() or _says_cpu())
    if state.num_processes != count:
        raise UsageError(
            f"{count} processes were started, but accelerate sees {state.num_processes} of them."
        )
    return TorchProcesses()


def _says_cpu() -> bool:
    return os.environ.get("ACCELERATE_USE_CPU", "").lower() in {"1", "true", "yes"}


def _write_process_id() -> None:
    folder = os.environ.get(STATUS_VARIABLE)
    if folder is not None:
        (Path(folder) / f"{os.environ['RANK']}.pid").write_text(str(os.getpid()), encoding="ascii")


def _watch_launcher() -> None:
    """End this process soon after its launcher, or the command that started the launcher, was killed."""
    parent = os.getppid()
    folder = os.environ.get(STATUS_VARIABLE)
    command = None if folder is None else FileLock(Path(folder) / PARENT_LOCK)

    def watch() -> None:
        while os.getppid() == parent and (command is None or command.is_held()):
            time.sleep(WATCH_EVERY)
        os._exit(LOST)

    threading.Thread(target=watch, name="harness-launcher-watch", daemon=True).start()


def asked_processes() -> int | None:
    """Return the number that this process's parent was asked for, None where the parent is no ``accelerate launch``."""
    if "ACCELERATE_MIXED_PRECISION" not in os.environ:
        return None
    try:
        line = Path(f"/proc/{os.getppid()}/cmdline").read_bytes()
    except OSError:
        return None
    return read_asked([argument.decode(errors="replace") for argument in line.split(b"\0") if argument])


def read_asked(command: list[str]) -> int | None:
    """Return the number of processes that an ``accelerate launch`` command line asks for, None for no number."""
    launch_arguments = _arguments(command)
    if launch_arguments is None:
        return None
    try:
        arguments, _ = launch_command_parser().parse_known_args(launch_arguments)
    except SystemExit:
        return None
    if arguments.num_processes is not None:
        return int(arguments.num_processes)
    if arguments.config_file is None and not Path(default_config_file).is_file():
        return None
    number = getattr(load_config_from_file(arguments.config_file), "num_processes", None)
    return None if number is None or int(number) < 1 else int(number)


def _arguments(command: list[str]) -> list[str] | None:
    """Return the arguments after ``accelerate launch`` or ``python -m accelerate.commands.launch``."""
    for index, argument in enumerate(command):
        if argument == MODULE or (
            argument == "launch" and any("accelerate" in word for word in command[:index])
        ):
            return command[index + 1 :]
    return None
