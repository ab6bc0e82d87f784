"""Test cases in 50 languages: seconds and memory of `harness checklist generate`, `lint` and `import` as commands.

The released templates are used where HARNESS_DATA names a folder that has them, else the suite that ships, in ten
languages, which have no limit. Limits for 50 languages: 5 s and 500 MB to generate (the released generator took 17 s
on two cores), 20 s to lint. Run: make bench, or python -m benchmarks.checklist
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.measuring import record

RELEASED_GENERATOR = 17.0
"""Seconds of the released generator for all 50 languages, measured on two cores; it cannot be installed here."""
FLOOR = "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL); "
FLOOR += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)"


def _measured(command: list[str]) -> tuple[float, float]:
    """Return wall seconds and peak megabytes of a command."""
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", FLOOR, *command], check=True, capture_output=True, text=True)
    return time.perf_counter() - started, int(done.stdout.split()[-1]) / 1024


def _suite() -> str:
    for folder in os.environ.get("HARNESS_DATA", "").split(os.pathsep):
        path = Path(folder) / "multichecklist" / "checklist_templates.tsv"
        if folder and path.is_file():
            return str(path)
    return "basics"


def _imported(harness: list[str], templates: str) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        return _measured([*harness, "import", templates, "--output", str(Path(folder) / "suite")])


def main() -> None:
    """Print the table."""
    suite, harness = _suite(), [sys.executable, "-m", "harness", "checklist"]
    with tempfile.TemporaryDirectory() as folder:
        generated = _measured([*harness, "generate", suite, "--output", folder])
        files = sorted(Path(folder).glob("*.jsonl"))
        lines = [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]
        examples = sum(len(json.loads(line)["examples"]) for line in lines)
    linted = _measured([*harness, "lint", suite])
    imported = _imported(harness, suite) if suite != "basics" else None
    table = Table(title=f"{len(files)} languages, {len(lines):,} cases, {examples:,} examples")
    for head in ("command", "seconds", "limit", "peak MB", "limit", "released generator / ours"):
        table.add_column(head, justify="right")
    limits = (5, 500, 20) if len(files) == 50 else (None, None, None)
    ratio = f"{RELEASED_GENERATOR / generated[0]:.1f}" if len(files) == 50 else "-"
    table.add_row(
        "generate",
        f"{generated[0]:.2f}",
        f"{limits[0] or '-'}",
        f"{generated[1]:.0f}",
        f"{limits[1] or '-'}",
        ratio,
    )
    table.add_row("lint", f"{linted[0]:.2f}", f"{limits[2] or '-'}", f"{linted[1]:.0f}", "-", "-")
    if imported is not None:
        table.add_row("import", f"{imported[0]:.2f}", "-", f"{imported[1]:.0f}", "-", "-")
    Console().print(table)
    record(f"checklist generate, {len(files)} languages", generated[0], limits[0], unit=" s")
    record("checklist generate: memory", generated[1], limits[1], unit=" MB")
    record("checklist lint", linted[0], limits[2], unit=" s")


if __name__ == "__main__":
    main()
