"""From command to command: 200 documents of three choices and a tiny model, ``harness eval`` against ``lm-eval``.

Wall time from the start of the process to its end, with the answers of all items written. The same weights and items,
and the same prompt: XNLI's of lm-eval. The limits are 0.40 of lm-eval's CPU time, and 1.35 times the import
of the network through transformers, which both sides need, together with the scoring.
Run: make bench, or python -m benchmarks.decoder_endtoend [--documents N] [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.decoder_items import XNLI, DecoderItems, made_up
from benchmarks.measuring import record
from benchmarks.tiny_decoder import write_decoder
from harness.storage.run_folder import Run

LIMIT, OF_IMPORT = 0.40, 1.35
IMPORT = "import torch; from transformers import AutoTokenizer, LlamaForCausalLM"
TASK = """\
task: made_up_xnli
dataset_path: json
dataset_kwargs: {{data_files: {{test: {file}}}}}
output_type: multiple_choice
test_split: test
doc_to_text: ''
doc_to_target: label
doc_to_choice: >-
  {{{{[premise+", right? Yes, "+hypothesis, premise+", right? Also, "+hypothesis,
  premise+", right? No, "+hypothesis]}}}}
metric_list: [{{metric: acc, aggregation: mean, higher_is_better: true}}]
"""
"""lm-eval's xnli_en over a local file."""


def write_inputs(folder: Path, items: DecoderItems) -> None:
    """Write the model, our data, and lm-eval's data and task."""
    write_decoder(folder / "model", chain.from_iterable((first, second) for first, second, _ in items.xnli))
    items.write(folder / "data")
    documents = folder / "documents.jsonl"
    rows = [json.dumps(row) for row in items.documents()["xnli"]["documents"]]
    documents.write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "tasks").mkdir()
    (folder / "tasks" / "made_up_xnli.yaml").write_text(TASK.format(file=documents), encoding="utf-8")


def commands(folder: Path, peer: str, number: int) -> dict[str, list[str]]:
    """Return the commands of both sides, and the import; `number` keeps the outputs of the rounds apart."""
    ours = [sys.executable, "-m", "harness", "eval", "--tasks", f"xnli:{XNLI}"]
    ours += [
        "--model",
        f"hf-causal:{folder / 'model'}",
        "--option",
        "device=cpu",
        "--option",
        "dtype=float32",
    ]
    ours += ["--prompt", "lm_eval-bugcompat", "--data", str(folder / "data")]
    theirs = [
        peer,
        "run",
        "--model",
        "hf",
        "--tasks",
        "made_up_xnli",
        "--device",
        "cpu",
        "--batch_size",
        "16",
    ]
    theirs += ["--model_args", f"pretrained={folder / 'model'},dtype=float32", "--log_samples"]
    theirs += ["--include_path", str(folder / "tasks"), "--output_path", str(folder / f"theirs{number}")]
    return {
        "harness eval": [*ours, "--output", str(folder / f"ours{number}")],
        "import of the network alone": [sys.executable, "-c", IMPORT],
        "lm-eval run": theirs,
    }


def run(command: Sequence[str]) -> tuple[float, float]:
    """Return the wall and CPU seconds of a command; raises `RuntimeError` where it fails."""
    before, started = os.times(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - started, os.times()
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stderr[-2000:]}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu


def accuracies(folder: Path) -> tuple[float, float]:
    """Return what both sides of the first round say."""
    [cell] = Run(folder / "ours0").cells
    [file] = (folder / "theirs0").rglob("results_*.json")
    theirs = json.loads(file.read_text(encoding="utf-8"))["results"]["made_up_xnli"]["acc,none"]
    return cell.metrics["accuracy"].value, theirs


def _show(seconds: Mapping[str, list[tuple[float, float]]], scoring: float) -> None:
    table = Table("", "median wall s", "median CPU s", "wall of lm-eval's", "CPU of lm-eval's")
    medians = {
        name: [statistics.median(column) for column in zip(*rows, strict=True)]
        for name, rows in seconds.items()
    }
    for name, (wall, cpu) in medians.items():
        other = medians["lm-eval run"]
        ratios = f"{wall / other[0]:.2f}", f"{cpu / other[1]:.2f}"
        table.add_row(name, f"{wall:.2f}", f"{cpu:.2f}", *ratios)
    Console(width=110).print(table)
    ours, network, theirs = (medians[name][1] for name in seconds)
    record("eval from command to command: CPU time / lm-eval's", ours / theirs, LIMIT)
    record("... / import of the network and scoring", ours / (network + scoring), OF_IMPORT)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print; without lm-eval, say what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--peer", default=".venv-peers/bin/lm-eval", help="lm-eval's command")
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    if not Path(given.peer).exists():
        print(
            f"The way from command to command is not measured: there is no {given.peer}; make bench makes it."
        )
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder, made_up(given.documents, 1, 1))
        seconds: dict[str, list[tuple[float, float]]] = {}
        for number in range(given.rounds):
            for side, command in commands(folder, given.peer, number).items():
                seconds.setdefault(side, []).append(run(command))
        own, other = accuracies(folder)
        [cell] = Run(folder / "ours0").cells
        scoring = cell.seconds
    print(f"{given.documents} documents x 3 choices; accuracy {own:.6f}, lm-eval's {other:.6f}")
    _show(seconds, scoring)


if __name__ == "__main__":
    main()
