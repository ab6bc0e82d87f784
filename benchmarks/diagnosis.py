"""Wall time, CPU time and memory of a diagnosis of 10,000 items, start-up included; against ExplainaBoard 0.12.7.

    python -m benchmarks.diagnosis

The runs are made: questions about contexts of 120 words, and sentences of 12 tokens with about two entities. What is
timed is the command ``harness diagnose`` in a process of its own. ExplainaBoard runs on the same items where
``make .venv-explainaboard`` has made its environment; elsewhere its figures are those that were measured once, of its
own example data enlarged to as many items, and are marked so.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.explainaboard_peer import peer_command
from benchmarks.measuring import record
from harness.metrics import chunk, question_answering
from harness.metrics.metric import MetricContext
from harness.storage.records import ItemRecord
from harness.storage.run_folder import Run

ITEMS = 10_000
LIMIT_MB = 300
MEASURED_ELSEWHERE = {
    "questions, one run": "10.6 s, 334 MiB (elsewhere)",
    "questions, two runs": "10.1 s, 364 MiB, no intervals (elsewhere)",
    "entities, one run": "53.6 s, 2,775 MiB (elsewhere)",
}
"""ExplainaBoard 0.12.7 with intervals, unless it says otherwise."""
CASES = (
    ("questions, one run", 1, "questions", "aLen,qLen,cLen", 4.0),
    ("questions, two runs", 2, "questions", "aLen,qLen,cLen", 4.0),
    ("questions, two runs, with BLEU", 2, "questions", "aLen,qLen,cLen,BLEU_AQ,BLEU_QC", 7.0),
    ("questions, two runs, all attributes", 2, "questions", "", 7.0),
    ("entities, one run", 1, "entities", "sLen,eDen,tag,eLen,tLen,rPos", 4.0),
    ("entities, two runs", 2, "entities", "sLen,eDen,tag,eLen,tLen,rPos", 4.0),
)
TAGS = ("PER", "ORG", "LOC")


def _words(generator: random.Random, count: int) -> list[str]:
    return [f"w{min(int(generator.expovariate(0.002)), 9_999)}" for _ in range(count)]


def _record(identifier: int, fields: Mapping[str, Any], prediction: Any, **given: Any) -> ItemRecord:
    return ItemRecord(
        id=str(identifier),
        inputs_digest=str(identifier),
        prediction=prediction,
        group=None,
        tags={},
        flags={},
        inputs=json.dumps({"id": str(identifier), **fields}),
        **given,
    )


def _questions(items: int, right: float, seed: int) -> Iterator[ItemRecord]:
    """Yield questions, five about a context; both systems get the same ones."""
    generator, answering = random.Random(1), random.Random(seed)
    context = MetricContext(language="en")
    for number in range(items):
        if number % 5 == 0:
            words = _words(generator, generator.randint(60, 180))
        question = _words(generator, generator.randint(6, 16))
        start, size = generator.randint(0, len(words) - 10), generator.randint(1, 8)
        gold = " ".join(words[start : start + size])
        shift = 0 if answering.random() < right else answering.randint(-3, 3)
        answer = " ".join(words[max(0, start + shift) : start + shift + size])
        scores = {
            "f1": question_answering.squad_f1([answer], [[gold]], context).value,
            "exact_match": question_answering.squad_exact_match([answer], [[gold]], context).value,
        }
        fields = {"context": " ".join(words), "question": " ".join(question)}
        cluster = f"c{number // 5}"
        yield _record(number, fields, {"text": answer}, reference=[gold], scores=scores, cluster=cluster)


def _sentences(items: int, right: float, seed: int) -> Iterator[ItemRecord]:
    generator, answering = random.Random(1), random.Random(seed)
    for number in range(items):
        size = generator.randint(4, 20)
        tags, place = ["O"] * size, generator.randint(0, 3)
        while place < size:
            tag, end = generator.choice(TAGS), min(size, place + generator.randint(1, 4))
            tags[place:end] = [f"B-{tag}", *[f"I-{tag}"] * (end - place - 1)]
            place = end + generator.randint(1, 8)
        given = [tag if answering.random() < right else answering.choice(["O", "B-PER"]) for tag in tags]
        counts = chunk.chunk_f1([given], [tags], MetricContext(language="en")).counts
        assert counts is not None
        scores = {"chunk_f1": counts[0].tolist()}
        fields = {"tokens": _words(generator, size), "text": None}
        yield _record(number, fields, given, reference=tags, scores=scores, cluster=None)


def _write(folder: Path, task: str, spec: Mapping[str, Any], records: Iterator[ItemRecord]) -> None:
    run = Run.at(folder)
    run.create()
    run.write_records(run.records_path(task, "en", "0" * 12), list(records))
    tasks = {task: {"metric_options": {}, "axes": [], "parallel": False, **spec}}
    run.write_manifest({"model": f"made:{folder.name}", "tasks": tasks, "suites": []})
    cell = {
        "task": task,
        "language": "en",
        "digest": "0" * 12,
        "version": 1,
        "protocol": "frozen",
        "method": "head",
        "seed": 42,
        "view": {},
        "status": "ok",
        "metrics": {},
    }
    run.write_results({"schema": 1, "run": {"data": "local", "id": folder.name}, "cells": [cell]})


def write_question_run(folder: Path, *, items: int, right: float, seed: int) -> None:
    """Write a run folder of made questions, of which a share is answered right."""
    spec = {"kind": "span_extraction", "labels": [], "headline": ["f1", "exact_match"]}
    _write(folder, "questions", spec, _questions(items, right, seed))


def write_tagging_run(folder: Path, *, items: int, right: float, seed: int) -> None:
    """Write a run folder of made sentences, of whose tags a share is right."""
    labels = ["O", *(f"{prefix}-{tag}" for tag in TAGS for prefix in "BI")]
    spec = {"kind": "token_tagging", "labels": labels, "headline": ["chunk_f1"]}
    _write(folder, "entities", spec, _sentences(items, right, seed))


def _write_all(root: Path, items: int) -> None:
    for number, right in enumerate((0.7, 0.75)):
        write_question_run(root / f"questions{number}", items=items, right=right, seed=number)
        write_tagging_run(root / f"entities{number}", items=items, right=right, seed=number)


def _measured(command: list[str]) -> tuple[float, float, float]:
    """Return wall seconds, CPU seconds and MB of a command."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed.")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def _peer(title: str, run: Path, task: str, runs: int, own: float) -> str:
    """Return what ExplainaBoard takes for one run of a task, measured once, and how many times as long that is."""
    command = peer_command(run, task) if runs == 1 else None
    if command is None:
        return MEASURED_ELSEWHERE.get(title, "")
    wall, _, size = _measured(command)
    return f"{wall:.1f} s, {size:,.0f} MB, {wall / own:.1f} x"


def main(arguments: list[str] | None = None) -> None:
    """Print a table: what was measured, the limits, and ExplainaBoard's figures."""
    parser = argparse.ArgumentParser(description="Time of a diagnosis.")
    parser.add_argument("--items", type=int, default=ITEMS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=Path, help="only write the runs, here")
    given = parser.parse_args(arguments)
    if given.write is not None:
        _write_all(given.write, given.items)
        return
    title = f"Diagnosis of {given.items:,} items: median of {given.rounds}, with start-up"
    table = Table("", "wall s", "CPU s", "MB", "limit s", "ExplainaBoard 0.12.7", title=title)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        # In another process: what a process has held counts for those that it starts.
        own = [sys.executable, "-m", "benchmarks.diagnosis", "--items", str(given.items)]
        subprocess.run([*own, "--write", name], check=True)
        for title, runs, task, attributes, limit in CASES:
            folders = [str(root / f"{task}{number}") for number in range(runs)]
            command = [sys.executable, "-m", "harness", "diagnose", *folders]
            command += ["--attributes", attributes] if attributes else []
            rounds = sorted(_measured(command) for _ in range(given.rounds))
            wall, cpu, size = rounds[len(rounds) // 2]
            shown = [f"{wall:.2f}", f"{cpu:.2f}", f"{size:.0f}", f"{limit:.0f}, {LIMIT_MB} MB"]
            record(f"diagnose {title}", cpu, limit, unit=" CPU s")
            record(f"diagnose {title}: memory", size, LIMIT_MB, unit=" MB")
            table.add_row(title, *shown, _peer(title, Path(folders[0]), task, runs, wall))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
