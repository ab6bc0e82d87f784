"""One job of a fleet: ``python -m harness_fleet.job FOLDER`` runs ``harness eval`` and writes down how it ended.

Its exit status is 0 where all cells were reached, also where some failed with their reasons; schedulers start only then
what needs the job.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.registry import JobState
from harness.storage import FileLock, write_atomically

JOB, CONFIG, STATUS, LOCK = "job.json", "config.yaml", "status.json", "job.lock"
CELLS_FAILED = 1
"""Exit status of ``harness eval`` where a cell failed, and of any program that broke."""
UNFINISHED = 3
"""Exit status where cells were not reached, or a fit failed: what needs them cannot start."""
IN_USE = 4
PATIENCE = 5.0
"""Seconds that a killed job may take until the operating system frees its lock."""


def read_job(folder: Path) -> dict[str, Any]:
    """Return the content of ``job.json``; raises `OSError` or `ValueError` where it cannot be read."""
    content: dict[str, Any] = json.loads((folder / JOB).read_text(encoding="utf-8"))
    return content


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job of a folder and return its exit status: 0 where it came to its end, 130 where it was interrupted."""
    parser = argparse.ArgumentParser(prog="python -m harness_fleet.job")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", help="Use this model in place of the job's.")
    parser.add_argument("--allow-code", action="store_true")
    parser.add_argument("--trust-remote-code")
    namespace = parser.parse_args(arguments)
    folder = namespace.folder.absolute()
    lock = FileLock(folder / LOCK)
    if not lock.acquire(patience=PATIENCE):
        from harness.cli import echo

        echo(f"The job in {folder} is run already by {lock.holder()}.", err=True)
        return IN_USE
    try:
        return _run(folder, namespace)
    finally:
        lock.release()


def _run(folder: Path, namespace: argparse.Namespace) -> int:
    job = read_job(folder)
    process = {"started": now(), "host": socket.gethostname(), "pid": os.getpid()}
    _write_status(folder, {"state": JobState.RUNNING, **process})
    os.environ["HARNESS_CACHE"] = job["cache"]
    if Path(job["cwd"]).is_dir():  # names of models and their options may be paths seen from there
        os.chdir(job["cwd"])
    run = Path(job["run"])
    status = _evaluate([*_arguments(folder, job, run), *_consent(namespace)])
    if status == CELLS_FAILED:
        status = UNFINISHED if job["fits_only"] or not _is_finished(run) else 0
    _write_status(folder, {"state": JobState.of_status(status), "code": status, **process, "ended": now()})
    return status


def _evaluate(arguments: list[str]) -> int:
    """Run ``harness eval`` in this process, which the signals of a scheduler reach, and return its exit status."""
    from harness.cli import run_command

    sys.argv = ["harness", *arguments]  # what it starts further processes with
    return run_command(arguments)


def _arguments(folder: Path, job: dict[str, Any], run: Path) -> list[str]:
    if (run / "manifest.json").is_file():
        arguments = ["eval", "--resume", str(run), *(["--fits-only"] if job["fits_only"] else [])]
    else:
        arguments = ["eval", "--config", str(folder / CONFIG), "--output", str(run)]
    return [*arguments, *(["--num-processes", str(job["processes"])] if job["processes"] > 1 else [])]


def _consent(namespace: argparse.Namespace) -> list[str]:
    """Return the permissions that only the command line may give, not a file."""
    trust = namespace.trust_remote_code
    return [
        *(["--model", namespace.model] if namespace.model else []),
        *(["--allow-code"] if namespace.allow_code else []),
        *(["-o", f"trust_remote_code={trust}"] if trust else []),
    ]


def _is_finished(run: Path) -> bool:
    """Return whether every cell of a run was scored or failed by itself."""
    from harness import HarnessError, Run

    try:
        return not any(cell.is_stopped for cell in Run(run).cells)
    except HarnessError:
        return False


def _write_status(folder: Path, content: dict[str, Any]) -> None:
    write_atomically(folder / STATUS, json.dumps(content, indent=1) + "\n")


def now() -> str:
    """Return the time, as the files of a fleet keep it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


if __name__ == "__main__":
    sys.exit(main())
