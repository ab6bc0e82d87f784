"""What a launcher was asked for, and the command that starts several processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("accelerate")

from accelerate.commands.config import config_args

from harness.errors import UsageError
from harness.planning.run_config import settings
from harness.registry.registry import Registry
from harness.running.launch import STATUS_VARIABLE, join_processes, leave_status
from harness_accelerate import joining
from harness_accelerate.joining import asked_processes, read_asked
from harness_accelerate.starting import _status, launch_command

CLI = ["/bin/python", "/venv/bin/accelerate", "launch"]
MODULE = ["/bin/python", "-m", "accelerate.commands.launch"]
PROGRAM = ["-m", "harness", "eval", "--num-processes", "9", "--output", "launch"]


@pytest.fixture(autouse=True)
def _no_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (joining, config_args):
        monkeypatch.setattr(module, "default_config_file", str(tmp_path / "default_config.yaml"))
    for name in ("WORLD_SIZE", "ACCELERATE_MIXED_PRECISION", STATUS_VARIABLE, "RANK"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "launch", [CLI, MODULE, ["python", "-m", "accelerate.commands.accelerate_cli", "launch"]]
)
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--cpu", "--num_processes", "2"], 2),
        (["--num_processes=4"], 4),
        (["--num-processes", "3"], 3),
        (["--cpu"], None),
        ([], None),
    ],
)
def test_the_command_line_of_accelerate(launch: list[str], options: list[str], expected: int | None) -> None:
    assert read_asked([*launch, *options, *PROGRAM]) == expected


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["bash"],
        ["python", "-m", "torch.distributed.run", "--nproc_per_node", "2", *PROGRAM],
        ["python", *PROGRAM],
        ["launch", "--num_processes", "2"],
        ["/bin/accelerate", "config"],
        [*CLI, "--num_processes", "two", *PROGRAM],
    ],
)
def test_other_command_lines(command: list[str]) -> None:
    assert read_asked(command) is None


def test_the_configuration_of_accelerate(tmp_path: Path) -> None:
    content = (
        "compute_environment: LOCAL_MACHINE\ndistributed_type: 'NO'\nmixed_precision: 'no'\nuse_cpu: true\n"
    )
    for name, number in (("own.yaml", 5), ("default_config.yaml", 3)):
        (tmp_path / name).write_text(
            f"{content}num_processes: {number}\nnum_machines: 1\nmachine_rank: 0\n", encoding="utf-8"
        )
    assert read_asked([*CLI, *PROGRAM]) == 3
    assert read_asked([*CLI, "--config_file", str(tmp_path / "own.yaml"), *PROGRAM]) == 5
    assert (
        read_asked([*CLI, "--config_file", str(tmp_path / "own.yaml"), "--num_processes", "2", *PROGRAM]) == 2
    )


def test_a_process_without_a_launcher_talks_to_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked_processes() is None
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "no")
    monkeypatch.setattr(os, "getppid", lambda: 0)
    assert asked_processes() is None


@pytest.mark.parametrize("gpus", [2, 3, 8])
def test_accelerate_starts_a_process_for_each_gpu(gpus: int) -> None:
    command = launch_command(["eval", "-t", "xnli"], 2, gpus=gpus)
    assert command[:3] == [sys.executable, "-m", "accelerate.commands.launch"]
    assert command[-6:] == ["-m", "--", "harness", "eval", "-t", "xnli"]
    assert command[command.index("--num_processes") + 1] == "2"
    assert "--multi_gpu" in command
    assert read_asked(command) == 2, "its own processes find what they were asked for"


@pytest.mark.parametrize("gpus", [0, 1])
def test_torchrun_starts_them_where_there_are_too_few_gpus(gpus: int) -> None:
    command = launch_command(["eval"], 2, gpus=gpus)
    assert command == [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"),
        *("-m", "--", "harness", "eval"),
    ]


def test_no_option_of_ours_is_taken_for_one_of_a_launcher() -> None:
    from accelerate.commands.launch import launch_command_parser
    from torch.distributed.run import get_args_parser

    arguments = [part for setting in settings().values() for part in (setting.long, "x")]
    for gpus, parser in ((0, get_args_parser()), (2, launch_command_parser())):
        read = parser.parse_args(launch_command(arguments, 2, gpus=gpus)[3:])
        assert (read.training_script, read.training_script_args) == ("harness", arguments)


def test_the_status_of_the_leading_process_passes_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert leave_status(2) == 2
    assert _status(tmp_path, 0, stopped=False) == 1, "a leading process that left nothing crashed"
    monkeypatch.setenv(STATUS_VARIABLE, str(tmp_path))
    monkeypatch.setenv("RANK", "1")
    assert leave_status(2) == 0
    assert not (tmp_path / "status").exists()
    monkeypatch.setenv("RANK", "0")
    assert leave_status(130) == 0
    assert _status(tmp_path, 0, stopped=False) == 130
    assert _status(tmp_path, 1, stopped=False) == 1
    assert _status(tmp_path, 1, stopped=True) == 130, "stopped before there was a process to signal"


def test_a_process_without_a_launcher_is_single(registry: Registry) -> None:
    assert join_processes(registry).is_single
    assert join_processes(registry, wanted=1).is_single
    with pytest.raises(UsageError, match="2 processes were asked for, but this is one"):
        join_processes(registry, wanted=2)
