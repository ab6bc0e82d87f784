"""Run all benchmarks, each in a process of its own: python -m benchmarks [NAME ...] [--smoke] [--data DIR].

One table of all rows is printed in the end and written to docs/speed.md. With ``--smoke`` every benchmark gets its
smallest input, two run at once, and nothing is written: what counts is that they run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.measuring import ROWS, Row

BENCHMARKS = {
    "startup": "--rounds 1",
    "plugins": "--rounds 1",
    "planning": "--rounds 1 --tasks 2",
    "call_path": "",
    "diagnosis": "--items 200 --rounds 1",
    "retrieval": "--sizes 500 --candidates 5000 --queries 20 --rounds 1",
    "vllm_client": "--requests 6 --rounds 1",
    "prompt_building": "--documents 20 --rounds 1",
    "decoder_endtoend": "--documents 4 --rounds 1",
    "decoder_generation": "--tokens 16 --prompts 4 --items 4 --rounds 1",
    "large_vocabulary": "--contexts 2 --batch-size 4 --peer-batch-size 4",
    "decoder_scores": "--items 2 --questions 1 --max-tokens 2",
    "seq2seq_scores": "--items 2",
    "journal": "--answers 500 --records 1000 --rounds 1",
    "checklist": "",
    "run_overhead": "--items 8 --rounds 1",
    "processes": "--items 8 --rounds 1",
    "encoder_inference": "--items 8 --lengths 32 --rounds 1",
    "training": "--steps 1 --batch 4 --length 8 --rounds 1",
    "gap": "--rounds 1",
    "coverage": "--draws 3",
    "power": "--draws 3",
    "precision": "--draws 3",
    "item_response": "--draws 1 --sizes 50",
    "drift": "--draws 2",
    "suspects": "--draws 1 --sizes 2 --tasks xquad",
    "explanation": "--draws 2",
    "fleet": "--models 2",
    "memory": "--items 2000",
    "report_page": "--cells 20",
    "results_repository": "--models 2 --tasks 2 --languages 3",
    "translation": "--segments 4",
    "generation": "--sentences 20 --rounds 1",
    "transliteration": "--tokens 500 --rounds 1",
    "contamination": "--data-sets 2",
    "passport": "--draws 3",
    "probing": "--tokens 300 --peer-layers 1",
}
"""Name of the module -> the arguments of its smallest input."""
MOST_SECONDS = 1800
"""Seconds of one benchmark."""
PAGE = Path("docs/speed.md")
PACKAGES = ("multilingual-harness", "torch", "transformers", "faiss-cpu", "numpy", "pyarrow")
INTRODUCTION = """\
# Speed

What `make bench` measured on {date}: every ratio against a peer that runs the same work in the same run, or a figure
with its limit. {machine}.

"""


def run_benchmark(name: str, arguments: Sequence[str], *, logs: Path) -> list[Row]:
    """Return the rows that a benchmark records, or one with what became of it; its output goes to `logs`."""
    started, rows = time.perf_counter(), logs / f"{name}.jsonl"
    try:
        done = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{name}", *arguments],
            env={**os.environ, ROWS: str(rows)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=MOST_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return [Row(name=name, state=f"failed: not done after {MOST_SECONDS} s")]
    print(f"\n== {name}: {time.perf_counter() - started:.0f} s\n{done.stdout}", flush=True)
    lines = rows.read_text(encoding="utf-8").splitlines() if rows.exists() else []
    recorded = [Row(**json.loads(line)) for line in lines]
    last = ([line.strip() for line in done.stdout.splitlines() if line.strip()] or ["no output"])[-1]
    if done.returncode and ("Traceback" in done.stdout or not recorded):
        is_error = "Traceback" in done.stdout or done.returncode != 1
        return [*recorded, Row(name=name, state=f"{'failed' if is_error else 'missed'}: {last}")]
    if recorded:
        return recorded
    return [
        Row(name=name, state=f"not measured: {last}" if "there is no" in last else "compares with nothing")
    ]


def table_of(rows: Sequence[Row]) -> str:
    """Return the rows as a table in Markdown."""
    lines = ["| benchmark | measured | limit | |", "|---|---|---|---|"]
    lines += [f"| {row.name} | {row.value} | {row.limit} | {row.state} |" for row in rows]
    return "\n".join(lines).replace(str(Path.cwd()), ".") + "\n"


def machine() -> str:
    """Return cores, memory and versions; never the name of a host."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GiB of memory, "
        f"OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'unset')}; Python {platform.python_version()}, {versions}"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmarks; return 1 where one failed or, with its whole input, missed a limit."""
    parser = argparse.ArgumentParser(description="Run all benchmarks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; default: all")
    parser.add_argument("--smoke", action="store_true", help="the smallest inputs; limits do not count")
    parser.add_argument("--data", help="folder with the published data; HARNESS_DATA otherwise")
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - set(BENCHMARKS):
        parser.error(f"no benchmark named {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    if given.data is not None:
        os.environ["HARNESS_DATA"] = given.data
    names, started = given.names or list(BENCHMARKS), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2 if given.smoke else 1) as pool:
        runs = [
            pool.submit(
                run_benchmark, name, BENCHMARKS[name].split() if given.smoke else [], logs=Path(folder)
            )
            for name in names
        ]
        rows = []
        for run in runs:
            rows += run.result()
            if (
                not given.smoke and not given.names
            ):  # after each, so that a run that is killed leaves its rows
                head = INTRODUCTION.format(date=datetime.now(UTC).date(), machine=machine())
                PAGE.write_text(head + table_of(rows), encoding="utf-8")
    print(f"\n{table_of(rows)}\n{len(names)} benchmarks in {time.perf_counter() - started:.0f} s")
    bad = ("failed",) if given.smoke else ("failed", "missed")
    return int(any(row.state.startswith(bad) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
