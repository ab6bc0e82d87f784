"""Plant each fault in a copy of the tree, run the tests that must find it, and print what they found.

    python -m tests.planted [--only NAME]... [--jobs 2] [--confirm]

The status is 1 where a fault was not found. The tree itself stays as it is.
"""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.planted.plants import ROOT, Plant, read_plants

SELECTED = "not thorough and not slow and not gpu"
PACKAGES = ("", "plugins", "model_adapters", "task_specs")


def copy_tree(folder: Path) -> None:
    """Copy what git tracks, and new files that it does not ignore, into a folder."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def run_tests(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run pytest in a copy of the tree; returns its status and its output."""
    path = os.pathsep.join([*(str(folder / name) for name in PACKAGES), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-m", SELECTED, *arguments]
    ended = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stdout + ended.stderr


def judge(plant: Plant, folder: Path, *, confirmed: bool) -> str:
    """Return ``found`` or ``NOT FOUND`` with a reason; the copy is as before afterwards."""
    file = folder / plant.file
    before = file.read_text(encoding="utf-8")
    try:
        file.write_text(plant.planted(folder), encoding="utf-8")
        status, output = run_tests(folder, *plant.tests)
    finally:
        file.write_text(before, encoding="utf-8")
    last = next((line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))), "")
    if status != 1:
        return f"NOT FOUND (pytest ended with status {status})"
    if confirmed and run_tests(folder, "--last-failed", *plant.tests)[0] != 0:
        return f"NOT FOUND: it fails without the fault: {last}"
    return f"found by {last.split(' ')[1]}"


def main() -> int:
    """Judge the chosen faults and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="this fault alone; may be repeated")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="copies of the tree at work at once")
    parser.add_argument(
        "--confirm", action="store_true", help="run each test that failed without the fault, too"
    )
    options = parser.parse_args()
    plants = [plant for plant in read_plants() if not options.only or plant.name in options.only]
    with tempfile.TemporaryDirectory(prefix="planted-") as scratch:
        copies: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(options.jobs):
            copies.put(Path(scratch) / str(number))
            copy_tree(Path(scratch) / str(number))

        def work(plant: Plant) -> bool:
            folder, start = copies.get(), time.monotonic()
            try:
                verdict = judge(plant, folder, confirmed=options.confirm)
            finally:
                copies.put(folder)
            print(f"{plant.name:20} {time.monotonic() - start:6.1f} s  {verdict}", flush=True)  # noqa: T201
            return verdict.startswith("found")

        with ThreadPoolExecutor(options.jobs) as pool:
            found = list(pool.map(work, plants))
    print(f"{sum(found)} of {len(plants)} faults were found.")  # noqa: T201
    return 0 if found and all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
