"""Listing with 50 plugin packages installed that bring 5,000 pairs of task and language, against ``lm-eval ls tasks``.

The packages lie on the path as pip leaves them. Cold is the first listing, which parses every spec; warm are those
after it, which take parsed specs from the index. Wall seconds count what else the machine does, CPU seconds do not; one
process and thread is at work. Ends with status 1 where the median of the CPU seconds misses a limit.
Run: make bench, or python -m benchmarks.plugins [--peer PATH/TO/lm-eval] [--rounds N] [--fragments N]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.measuring import record

PACKAGES = 50
TASKS = 5
LANGUAGES = "ar bg de el en es et fr hi ht id it qu ru sw th tr ur vi zh".split()
ADDED = [f"q{first}{second}" for first in "abcdefghijklmnopqrst" for second in "abcdefghijklmnopqrst"]
"""Codes that no table knows: nothing is validated in a list."""
LIMITS = {"harness --help": 0.25, "harness tasks list, warm": 0.5}
MODULE = """\
from importlib.resources import files

from harness import hookimpl


@hookimpl
def harness_register_task_specs():
    return [files(__name__) / "specs"]
"""
TASK = """\
task: {task}
kind: sequence_classification
version: 1
description: Whether a remark is pleased or annoyed.
citation: someone2026none
license: cc0-1.0
inputs: [text]
labels: [annoyed, pleased]
metrics: [accuracy]
chance: 0.5
parallel: true
transfer: {{source: en, stages: [{task}], recipe: xtreme_r}}
languages:
"""
LANGUAGE = """\
  {code}:
    provenance: human-translated
    test:
      local: [{task}/test-{code}.tsv, {task}/{code}/test.tsv]
      columns: [text, label]
      hub: {{path: someone/{task}, config: {code}, split: test, label_map: {{'0': annoyed, '1': pleased}}}}
"""
COMMAND = "import typer\n\napp = typer.Typer()\n"


def write_packages(site: Path, *, fragments: int) -> None:
    """Write the packages as pip leaves them: a package folder, and one with its metadata; each has a command too."""
    for number in range(PACKAGES):
        name = f"bench_plugin_{number:02d}"
        files = {f"{name}/__init__.py": MODULE, f"{name}/command.py": COMMAND}
        tasks = [f"{name}_task_{index}" for index in range(TASKS)]
        for task in tasks:
            languages = "".join(LANGUAGE.format(task=task, code=code) for code in LANGUAGES)
            files[f"{name}/specs/{task}.yaml"] = TASK.format(task=task) + languages
        for index in range(fragments):
            text = f"extends: {tasks[index % TASKS]}\nlanguages:\n"
            files[f"{name}/specs/added_{index}.yaml"] = text + LANGUAGE.format(
                task=tasks[0], code=ADDED[index // TASKS]
            )
        files[f"{name}-1.0.dist-info/METADATA"] = (
            f"Metadata-Version: 2.4\nName: {name.replace('_', '-')}\nVersion: 1.0\n"
            "Requires-Dist: multilingual-harness\nRequires-Python: >=3.11\n\nTasks for a benchmark.\n"
        )
        files[f"{name}-1.0.dist-info/entry_points.txt"] = (
            f"[harness]\n{name} = {name}\n\n[harness.commands]\nbench{number:02d} = {name}.command:app\n"
        )
        files[f"{name}-1.0.dist-info/RECORD"] = "".join(f"{path},,\n" for path in files)
        for path, content in files.items():
            (site / path).parent.mkdir(parents=True, exist_ok=True)
            (site / path).write_text(content, encoding="utf-8")


def _timed(words: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """Return wall and CPU seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run(words, check=True, capture_output=True, env=dict(environment))
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _check(words: Sequence[str], environment: Mapping[str, str], fragments: int) -> None:
    """Raise `AssertionError` where one of the pairs is missing in a listing."""
    shown = subprocess.run(words, check=True, capture_output=True, text=True, env=dict(environment)).stdout
    counts = [line.split()[2] for line in shown.splitlines() if line.startswith("bench_plugin_")]
    pairs = sum(int(count.rstrip(":")) for count in counts)
    assert pairs == PACKAGES * (TASKS * len(LANGUAGES) + fragments), pairs


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--peer", default=".venv-peers/bin/lm-eval", help="lm-eval's command")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--fragments", type=int, default=1, help="files per package that each add a language")
    given = parser.parse_args(arguments)
    ours = str(Path(sys.executable).with_name("harness"))
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        write_packages(site, fragments=given.fragments)
        path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), str(site)]))
        environment = {**os.environ, "PYTHONPATH": path, "HARNESS_CACHE": str(Path(folder) / "cache")}
        index = Path(folder) / "cache" / "specs"
        listing = [ours, "tasks", "list"]
        _check(listing, environment, given.fragments)  # also leaves the byte code of the packages
        contenders = {
            "harness --help": [ours, "--help"],
            "harness tasks list, cold": listing,
            "harness tasks list, warm": listing,
        }
        if Path(given.peer).exists():
            contenders["lm-eval ls tasks"] = [given.peer, "ls", "tasks"]
        else:
            print(f"No peer at {given.peer}; make bench installs it. Our own times only.")
        seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
        for _ in range(given.rounds):
            for name, words in contenders.items():
                if name.endswith("cold"):
                    for file in index.glob("*"):
                        file.unlink()
                seconds[name].append(_timed(words, environment))
    _show(seconds, given.fragments)
    for name, limit in LIMITS.items():
        cpu = statistics.median(cpu for _, cpu in seconds[name])
        record(f"{name}, {PACKAGES} plugin packages", cpu, limit, unit=" s")


def _show(seconds: Mapping[str, Sequence[tuple[float, float]]], fragments: int) -> None:
    pairs = PACKAGES * (TASKS * len(LANGUAGES) + fragments)
    title = f"{PACKAGES} plugin packages, {pairs:,} pairs of task and language"
    table = Table(
        "", "wall s, min", "wall s, median", "CPU s, median", "limit", title=title, title_justify="left"
    )
    for name, rounds in seconds.items():
        walls, cpus = zip(*rounds, strict=True)
        numbers = [
            f"{value:.3f}" for value in (min(walls), statistics.median(walls), statistics.median(cpus))
        ]
        table.add_row(name, *numbers, f"{LIMITS[name]:.2f} s" if name in LIMITS else "")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
