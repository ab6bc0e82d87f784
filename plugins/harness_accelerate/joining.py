"""Join the processes that torchrun or accelerate started into one group."""

from __future__ import annotations

import datetime
import os
import threading
import time
from pathlib import Path

import torch
from accelerate import PartialState
from accelerate.commands.config.config_args import default_config_file, load_config_from_file
from accelerate.commands.launch import launch_command_parser

from harness import AdapterError, UsageError
from harness.running import PARENT_LOCK, STATUS_VARIABLE
from harness.storage import FileLock

PATIENCE = datetime.timedelta(hours=24)
"""How long the other processes wait for one that scores or fits; one that has ended is noticed at once."""
WATCH_EVERY = 1.0
MODULE = "accelerate.commands.launch"
LOST = 3
"""Exit status of a process whose launcher is gone."""


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
