"""Memory of `harness eval` on 1,000,000 items against 10,000: it must not grow with them, and stays under 400 MB.

    python -m benchmarks.memory [--items N] [--model baseline:char-ngram]

Writes a synthetic classification task into a temporary folder, runs the command on it in a process of its own, and
prints the peak of resident memory. What Python and the packages take by themselves counts too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import record

FEW, MANY = 10_000, 1_000_000
LIMIT_MB = 400
TRAINING = 200
SPEC = """\
task: synthetic
kind: sequence_classification
version: 1
description: Whether a made-up number is even.
citation: none
license: cc0-1.0
inputs: [text]
labels: [even, odd]
metrics: [accuracy]
chance: 0.5
transfer: {source: en, stages: [synthetic], recipe: quick}
languages:
  en:
    train: {local: train.jsonl, reader: jsonl}
    test: {local: test.jsonl, reader: jsonl}
"""
"""A cluster field is added by `write_task`."""
_KIB = 1024


def write_task(folder: Path, items: int, *, clustered: bool = False) -> None:
    """Write the spec ``specs/synthetic.yaml`` and the files ``train.jsonl`` and ``test.jsonl`` of so many items."""
    (folder / "specs").mkdir(parents=True, exist_ok=True)
    spec = SPEC + ("cluster: document\n" if clustered else "")
    (folder / "specs/synthetic.yaml").write_text(spec, encoding="utf-8")
    for name, count in (("train", TRAINING), ("test", items)):
        with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for number in range(count):
                row = {
                    "id": f"{name}-{number}",
                    "text": f"This is sentence {number} of a made-up text, chapter {number % 97}.",
                    "label": "odd" if number % 3 else "even",
                    "document": str(number // 3),
                }
                file.write(json.dumps(row) + "\n")


def measure(items: int, model: str) -> tuple[float, float]:
    """Return the peak of resident memory in MB (2**20 bytes) and the seconds of a run on so many items."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_task(folder, items)
        command = [sys.executable, "-m", "harness", "eval", "--tasks", "synthetic", "--model", model]
        command += ["--tasks-from", str(folder / "specs"), "--data", str(folder)]
        command += ["--output", str(folder / "run")]
        started = time.perf_counter()
        with (folder / "output.txt").open("wb") as output:
            process = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "HARNESS_CACHE": str(folder / "cache")},
            )
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit((folder / "output.txt").read_text(encoding="utf-8"))
        return usage.ru_maxrss / _KIB, time.perf_counter() - started


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="Memory of a run, by its number of items.")
    parser.add_argument("--items", type=int, default=MANY)
    parser.add_argument("--model", default="baseline:majority")
    given = parser.parse_args(arguments)
    fewer = min(FEW, given.items // 10)
    few, few_seconds = measure(fewer, given.model)
    print(f"{fewer:>9,} items: {few:6.0f} MB at the peak, {few_seconds:6.1f} s", flush=True)
    many, many_seconds = measure(given.items, given.model)
    print(f"{given.items:>9,} items: {many:6.0f} MB at the peak, {many_seconds:6.1f} s")
    print(f"{many / few:.2f} x the memory")
    record(f"memory of a run of {given.items:,} items", many, LIMIT_MB, unit=" MB")


if __name__ == "__main__":
    main()
