"""CPU time of the HTML report of 2,000 cells of 10 items against 1,000: linear, and at most 20 s.

    python -m benchmarks.report_page [--cells N]

Makes runs of ten synthetic tasks in half of the languages and in all of them, and writes the page of each in a process
of its own, start-up included.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import record
from harness.languages.table import known_languages

CELLS, TASKS, ITEMS = 2_000, 10, 10
LIMIT_SECONDS, LIMIT_RATIO = 20.0, 2.2
SPEC = """\
task: {name}
kind: sequence_classification
version: 1
description: Made-up sentences.
citation: none
license: cc0-1.0
inputs: [text]
labels: [bad, good]
metrics: [accuracy, macro_f1]
chance: 0.5
transfer: {{source: en, stages: [{name}], recipe: quick}}
splits:
  train: {{local: train.jsonl, reader: jsonl}}
  test: {{local: "{name}-{{language}}.jsonl", reader: jsonl}}
languages: {{{languages}}}
"""


def write_tasks(folder: Path, languages: int) -> None:
    """Write specs below ``specs`` and the items of each task in so many languages, English included."""
    codes = ["en", *(language.code for language in known_languages() if language.code != "en")][:languages]
    generator = random.Random(1)
    (folder / "specs").mkdir(parents=True)
    _write_items(folder / "train.jsonl", generator, 50)
    for number in range(TASKS):
        name = f"made{number}"
        spec = SPEC.format(name=name, languages=", ".join(f"'{code}'" for code in codes))
        (folder / f"specs/{name}.yaml").write_text(spec, encoding="utf-8")
        for code in codes:
            _write_items(folder / f"{name}-{code}.jsonl", generator, ITEMS)


def _write_items(file: Path, generator: random.Random, count: int) -> None:
    rows = [
        {
            "id": str(number),
            "text": " ".join(f"w{generator.randrange(100)}" for _ in range(generator.randint(3, 20))),
            "label": generator.choice(["bad", "good"]),
        }
        for number in range(count)
    ]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def measure(cells: int) -> float:
    """Return the CPU seconds of the page of so many cells."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tasks(folder, cells // TASKS)
        environment = {**os.environ, "HARNESS_CACHE": str(folder / "cache")}
        harness = [sys.executable, "-m", "harness"]
        command = [*harness, "eval", "--tasks", "made*", "--tasks-from", str(folder / "specs")]
        command += ["--data", name, "--model", "baseline:majority", "--output", str(folder / "run")]
        subprocess.run(command, check=True, env=environment, capture_output=True)
        page = [
            *harness,
            "report",
            str(folder / "run"),
            "--format",
            "html",
            "--output",
            str(folder / "page.html"),
        ]
        process = subprocess.Popen(
            page, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"{' '.join(page)} failed.")
        return usage.ru_utime + usage.ru_stime


def main(arguments: list[str] | None = None) -> None:
    """Print both times and their ratio."""
    parser = argparse.ArgumentParser(description="CPU time of a report by its number of cells.")
    parser.add_argument("--cells", type=int, default=CELLS)
    given = parser.parse_args(arguments)
    half, whole = measure(given.cells // 2), measure(given.cells)
    print(
        f"{given.cells // 2:>6,} cells: {half:6.1f} s of CPU\n{given.cells:>6,} cells: {whole:6.1f} s of CPU"
    )
    record(f"page of {given.cells:,} cells", whole, LIMIT_SECONDS, unit=" CPU s")
    record("... / page of half as many cells", whole / half, LIMIT_RATIO)


if __name__ == "__main__":
    main()
