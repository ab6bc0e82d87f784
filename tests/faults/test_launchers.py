"""What a launcher was asked for, and the command that starts several processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("accelerate")

import pyarrow.parquet as pq
from accelerate.commands.config import config_args

from harness.errors import UsageError
from harness.planning.run_config import settings
from harness.registry.registry import Registry
from harness.running.processes import STATUS_VARIABLE, join_processes, leave_status, needs_start
from harness_accelerate import processes
from harness_accelerate.processes import (
    _status,
    asked_processes,
    launch_command,
    read_asked,
    read_configuration,
)

from .saved_models import save_encoder

pytestmark = pytest.mark.thorough

CLI = ["/bin/python", "/venv/bin/accelerate", "launch"]
MODULE = ["/bin/python", "-m", "accelerate.commands.launch"]
PROGRAM = ["-m", "harness", "eval", "--num-processes", "9", "--output", "launch"]


@pytest.fixture(autouse=True)
def _no_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (processes, config_args):
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


def test_torchrun_starts_them() -> None:
    command = launch_command(["eval"], 2)
    assert command == [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"),
        *("-m", "--", "harness", "eval"),
    ]


def test_no_option_of_ours_is_taken_for_one_of_the_launcher() -> None:
    from torch.distributed.run import get_args_parser

    arguments = [part for setting in settings().values() for part in (setting.long, "x")]
    read = get_args_parser().parse_args(launch_command(arguments, 2)[3:])
    assert (read.training_script, read.training_script_args) == ("harness", arguments)


CONFIGURATION = """compute_environment: LOCAL_MACHINE
distributed_type: FSDP
fsdp_config: {fsdp_version: 2, fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP, fsdp_activation_checkpointing: true}
mixed_precision: bf16
num_machines: 1
machine_rank: 0
num_processes: 3
use_cpu: false
"""


def test_a_configuration_file_sets_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "default_config_file", str(tmp_path / "default_config.yaml"))
    file = tmp_path / "own.yaml"
    file.write_text(CONFIGURATION, encoding="utf-8")
    count, found = read_configuration(str(file), None)
    assert count == 3
    assert found["ACCELERATE_MIXED_PRECISION"] == "bf16"
    assert found["ACCELERATE_USE_FSDP"] == "true"
    assert (found["FSDP_VERSION"], found["FSDP_ACTIVATION_CHECKPOINTING"]) == ("2", "true")
    assert found["FSDP_AUTO_WRAP_POLICY"] == "TRANSFORMER_BASED_WRAP"
    assert "OMP_NUM_THREADS" not in found
    assert read_configuration(str(file), 2)[0] == 2
    assert read_configuration(None, 2) == (2, {})
    file.rename(tmp_path / "default_config.yaml")
    assert read_configuration(None, 2)[1] == found


@pytest.mark.parametrize("change", ["num_machines: 2", "num_processes: many", "- no mapping", None])
def test_a_configuration_that_cannot_be_used(tmp_path: Path, change: str | None) -> None:
    file = tmp_path / "own.yaml"
    if change is not None:
        name = change.partition(":")[0]
        kept = [line for line in CONFIGURATION.splitlines() if not line.startswith(name)]
        further = ["main_process_ip: 127.0.0.1"] if name == "num_machines" else []
        file.write_text("\n".join([*kept, change, *further]), encoding="utf-8")
    with pytest.raises(UsageError, match=re.escape(str(file))):
        read_configuration(str(file), None)


def test_the_option_of_a_configuration_starts_processes(registry: Registry) -> None:
    assert needs_start(registry, None, {"accelerate": "own.yaml"})
    assert needs_start(registry, 2, {})
    assert not needs_start(registry, 1, {"device": "cpu"})


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


NOTING = """import atexit, os, pathlib, sys

@atexit.register
def note():
    if "RANK" in os.environ:
        names = [one.__name__ for one in sys.modules["torch.distributed.fsdp"].FSDPModule.__subclasses__()]
        pathlib.Path(__file__).with_name("sharded-" + os.environ["RANK"]).write_text(" ".join(names))
"""
"""Notes the classes of layers that torch sharded in each process."""


def test_shards_that_a_configuration_asks_for_predict_what_one_process_predicts(tmp_path: Path) -> None:
    """`harness eval` as a user runs it: fine-tuned with FSDP2 by two processes, and by one."""
    save_encoder(tmp_path / "bert")
    (tmp_path / "sitecustomize.py").write_text(NOTING, encoding="utf-8")
    (tmp_path / "own.yaml").write_text(
        CONFIGURATION.replace("bf16", "'no'").replace("use_cpu: false", "use_cpu: true"), encoding="utf-8"
    )
    command = [sys.executable, "-m", "harness", "eval", "--tasks", "xnli:en+sw", "--recipe", "quick"]
    command += ["--train-limit", "32", "--data", "sample", "--model", "hf:bert", "-o", "device=cpu"]
    found: list[list[Any]] = []
    for name, further in (("one", []), ("two", ["--num-processes", "2", "-o", "accelerate=own.yaml"])):
        environment = {**os.environ, "HARNESS_CACHE": str(tmp_path / f"cache-{name}"), "PYTHONPATH": "."}
        ended = subprocess.run(
            [*command, *further, "--output", name],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        files = sorted((tmp_path / name / "records").rglob("*.parquet"))
        rows = [row for file in files for row in pq.read_table(file).to_pylist()]
        found.append([(row["id"], json.loads(row["prediction"])) for row in rows])
    one, two = found
    assert len(one) == 48
    assert [(item, prediction["label"]) for item, prediction in two] == [
        (item, prediction["label"]) for item, prediction in one
    ]
    for (_, alone), (_, together) in zip(one, two, strict=True):
        assert together["scores"] == pytest.approx(alone["scores"], abs=1e-4)
    for rank in ("0", "1"):
        assert "FSDPBertLayer" in (tmp_path / f"sharded-{rank}").read_text(encoding="utf-8").split()
