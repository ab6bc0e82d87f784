"""Starts real processes that fit tiny models."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("fit_jobs.py")
Job = dict[str, Any]


@pytest.fixture(scope="session")
def fit_alone() -> Callable[[Job], Job]:
    """A function that fits a job in this process."""
    run: Callable[[Job], Job] = runpy.run_path(str(SCRIPT))["run"]
    return run


@pytest.fixture(scope="session")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[list[Job]]]:
    """A function that fits jobs in processes of torchrun, and returns what each process found, by rank.

    Where processes are killed it returns nothing of them.
    """

    def start(jobs: list[Job], processes: int) -> list[list[Job]]:
        file = tmp_path_factory.mktemp("jobs") / "jobs.json"
        file.write_text(json.dumps(jobs))
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
        finished = subprocess.run(
            [sys.executable, *(launcher if processes > 1 else []), str(SCRIPT), str(file)],
            env={**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        ends = any({"kill_at", "tear_at", "ends"} & job.keys() for job in jobs)
        assert (finished.returncode != 0) == ends, finished.stderr[-3000:]
        found = [file.with_suffix(f".{rank}") for rank in range(processes)]
        file.with_suffix(".stderr").write_text(finished.stderr)
        return [json.loads(one.read_text()) for one in found if one.is_file()]

    return start
