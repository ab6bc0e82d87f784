"""Two processes on two cores against one, a thread each: items per second of a cell with e5-small as XNLI's classifier.

`harness eval --num-processes 2` must answer 1.6 times the items per second of one process, or come within 0.9 of what
two bare length-sorted loops, started together, reach here of one alone. Start-up is not counted: seconds are those of
the cell in results.json, with its reading, scoring and records. Sides take turns; the fastest round counts.
Run: make bench, or python -m benchmarks.processes [--data DIR] [--model DIR] [--items N] [--rounds N]
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

import torch
from rich.console import Console
from rich.table import Table
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from benchmarks.decoder_items import XNLI
from benchmarks.encoder_inference import bare_loop, save_headed
from benchmarks.measuring import record
from benchmarks.run_overhead import write_pairs
from harness.storage.run_folder import Run

FASTER, OF_BARE = 1.6, 0.9
MAX_LENGTH = 128
COUNTS = (1, 2)


def evaluate(folder: Path, count: int, number: int) -> float:
    """Return the items a second of `harness eval` with so many processes; `number` keeps the rounds apart."""
    output = folder / f"run{count}-{number}"
    command = [
        sys.executable,
        "-m",
        "harness",
        "eval",
        "--tasks",
        f"xnli:{XNLI}",
        "--data",
        str(folder / "data"),
    ]
    command += ["--model", f"hf-encoder:{folder / 'model'}", "--num-processes", str(count)]
    command += ["--option", "device=cpu", "--option", f"max_length={MAX_LENGTH}", "--output", str(output)]
    done = subprocess.run(command, env=_one_thread(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{count} processes failed: {done.stderr[-2000:]}")
    run = Run(output)
    [cell] = run.cells
    if run.results.run.processes != count:
        raise RuntimeError(f"{run.results.run.processes} processes ran, not {count}.")
    return float(cell.n / cell.seconds)


def loop_bare(folder: Path, count: int) -> float:
    """Return the items a second of so many bare loops that begin together, each in a process and over all items."""
    command = [sys.executable, "-m", "benchmarks.processes", "--bare", str(folder)]
    loops = [
        subprocess.Popen(
            command, env=_one_thread(), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(count)
    ]  # fmt: skip
    for loop in loops:
        assert loop.stdout is not None
        loop.stdout.readline()
    for loop in loops:
        assert loop.stdin is not None
        loop.stdin.write("go\n")
        loop.stdin.flush()
    found = [json.loads(loop.communicate()[0]) for loop in loops]
    return float(sum(one["items"] for one in found) / max(one["seconds"] for one in found))


def run_bare(folder: Path) -> None:
    """Answer the items in a length-sorted loop once the word comes, and print what it took as JSON."""
    torch.set_num_threads(1)
    model = AutoModelForSequenceClassification.from_pretrained(folder / "model", dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder / "model")
    lines = (folder / "data" / "xnli" / f"test-{XNLI}.tsv").read_text(encoding="utf-8").splitlines()
    pairs = [(line.split("\t")[0], line.split("\t")[1]) for line in lines]
    print("ready", flush=True)
    sys.stdin.readline()
    started = time.perf_counter()
    bare_loop(model, tokenizer, pairs, MAX_LENGTH)
    print(json.dumps({"items": len(pairs), "seconds": time.perf_counter() - started}))


def _one_thread() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


def _show(rates: dict[str, list[float]]) -> None:
    table = Table("items/s", "one process", "two", "ratio", "limit", title_justify="left")
    ratios = {name: two / one for name, (one, two) in rates.items()}
    for name, (one, two) in rates.items():
        limit = f"{FASTER} or {OF_BARE} of the bare loops'" if name == "harness eval" else ""
        table.add_row(name, f"{one:.1f}", f"{two:.1f}", f"{ratios[name]:.2f}", limit)
    Console(width=110).print(table)
    share = ratios["harness eval"] / ratios["bare loop"]
    record("two processes / one, of what two bare loops reach", share, OF_BARE, least=True)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print; without a model, say what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("HARNESS_DATA"), help="folder with xnli")
    parser.add_argument("--model", type=Path, default=Path("models/e5-small"))
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--bare", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.bare is not None:
        run_bare(given.bare)
        return
    if not given.model.exists():
        print(f"Two processes are not measured: there is no {given.model}; make models makes it.")
        return
    rounds: dict[str, list[list[float]]] = {"harness eval": [], "bare loop": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_headed(given.model, folder / "model")
        write_pairs(folder / "data", given.items, given.data)
        for number in range(given.rounds):
            rounds["harness eval"].append([evaluate(folder, count, number) for count in COUNTS])
            rounds["bare loop"].append([loop_bare(folder, count) for count in COUNTS])
            print(f"Round {number + 1}: {rounds}; load {os.getloadavg()[0]:.1f}", flush=True)
    print(f"{given.items} XNLI pairs, one thread per process, {os.cpu_count()} cores")
    _show({name: [max(column) for column in zip(*rows, strict=True)] for name, rows in rounds.items()})


if __name__ == "__main__":
    main()
