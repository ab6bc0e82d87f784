"""What a run adds to the cost of its model: journal, scores and records, with e5-small as a classifier on XNLI.

The runner is measured with the model behind it, and with the model's own answers played back in the same batches. That
leaves all that a run adds to asking the model: reading the items, naming requests by their content, journal, scores,
records. It is at most 3 % of the run. All seconds are CPU seconds of this process, so that a busy machine does
not count. Run: make bench, or python -m benchmarks.run_overhead [--data DIR] [--model DIR] [--items N] [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.decoder_items import XNLI, made_up
from benchmarks.encoder_inference import save_headed
from benchmarks.measuring import record
from harness.data.origin import Checksums
from harness.metrics.scoring import CellScorer
from harness.models.adapters import AdapterEntry
from harness.models.capabilities import Adapter, ModelDescription, TextInput
from harness.models.options import AdapterOptions
from harness.models.requests import Ability, Answered, Call
from harness.planning.run_config import RunConfig, data_options
from harness.running import inference as asking
from harness.running.cell_reader import CellReader
from harness.running.cell_writer import CellWriter
from harness.running.run import open_run, run_cells
from harness.running.session import Prepared, prepare
from harness.running.start import RunState
from harness.storage.journal import Journal
from harness.storage.run_folder import Run

LIMIT = 0.03
PARTS: Mapping[str, tuple[tuple[Any, str], ...]] = {
    "read the items": ((CellReader, "stream"),),
    "name the requests": ((asking, "request_keys"),),
    "plan the blocks": ((asking, "plan_blocks"),),
    "journal": ((Journal, "known"), (Journal, "append"), (Journal, "sync")),
    "scores": ((CellScorer, "add"), (CellScorer, "finish")),
    "records": ((CellWriter, "add"), (CellWriter, "finish"), (Run, "keep")),
    "results.json": ((Run, "write_results"),),
}
"""What is timed by itself; the time of a part within another one counts for the inner one."""


class Recording:
    """The model, opened once for all rounds; notes the batches of its answers."""

    def __init__(self, adapter: Any) -> None:
        self.adapter = adapter
        self.answered: list[list[Answered]] = []
        """By call of `stream`."""
        self.blocks: list[tuple[Call, Sequence[Sequence[Any]]]] = []

    def identity(self) -> Mapping[str, str]:
        """Return the model's own."""
        identity: Mapping[str, str] = self.adapter.identity()
        return identity

    def close(self) -> None:
        """Leave the model open for the next round."""

    def classify(self, inputs: Sequence[TextInput], labels: Sequence[str]) -> Any:
        """Return the model's scores."""
        return self.adapter.classify(inputs, labels)

    def block_characters(self, ability: Ability) -> int | None:
        """Return the model's own."""
        size: int | None = self.adapter.block_characters(ability)
        return size

    def stream(self, call: Call, blocks: Sequence[Sequence[Any]]) -> Iterator[Answered]:
        """Yield the model's answers."""
        self.blocks.append((call, blocks))
        self.answered.append([])
        for answered in self.adapter.stream(call, blocks):
            self.answered[-1].append(answered)
            yield answered


class Playing(Recording):
    """Gives the answers that were noted, which takes no time."""

    def __init__(self, recording: Recording) -> None:
        super().__init__(recording.adapter)
        self._waiting = list(recording.answered)

    def stream(self, call: Call, blocks: Sequence[Sequence[Any]]) -> Iterator[Answered]:
        """Yield what the model answered at this place of the run."""
        yield from self._waiting.pop(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenEntry(AdapterEntry):
    """Opens what is open already."""

    adapter: Any

    def open(self, description: ModelDescription, options: AdapterOptions) -> Adapter:
        """Return the adapter."""
        opened: Adapter = self.adapter
        return opened


@dataclass(slots=True)
class Clock:
    """CPU seconds by part; the time of a part that is called by another one is taken from the outer one."""

    seconds: dict[str, float] = field(default_factory=dict)
    _running: list[str] = field(default_factory=list)
    _since: float = 0.0

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, timed."""

        def run(*arguments: Any, **named: Any) -> Any:
            self._turn()
            self._running.append(part)
            try:
                return function(*arguments, **named)
            finally:
                self._turn()
                self._running.pop()

        return run

    def _turn(self) -> None:
        now = time.process_time()
        if self._running:
            part = self._running[-1]
            self.seconds[part] = self.seconds.get(part, 0.0) + now - self._since
        self._since = now


def write_pairs(folder: Path, count: int, data: Path | None) -> None:
    """Write XNLI's test file: its first so many pairs from `data`, or made-up ones of their lengths."""
    if data is None:
        made_up(count, 1, 1).write(folder)
        return
    name = Path("xnli") / f"test-{XNLI}.tsv"
    lines = (Path(data) / name).read_text(encoding="utf-8").splitlines(keepends=True)[:count]
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text("".join(lines), encoding="utf-8")


def run_once(config: RunConfig, prepared: Prepared, adapter: Recording, folder: Path) -> float:
    """Return the CPU seconds of a run into a new folder, from the opened model to the results on disk."""
    model = prepared.plan.model
    entry = OpenEntry(
        **{name: getattr(model.entry, name) for name in AdapterEntry.__slots__}, adapter=adapter
    )
    plan = replace(prepared.plan, model=replace(model, entry=entry))
    output = Run.at(folder)
    state = RunState(
        config=config,
        plan=plan,
        run=output,
        registry=prepared.session.registry,
        catalog=prepared.session.catalog,
        finder=prepared.finder,
        checksums=Checksums.read(()),
    )
    with open_run(state):
        started = time.process_time()
        run_cells(state)
        seconds = time.process_time() - started
    results = json.loads((output.path / "results.json").read_text(encoding="utf-8"))
    failed = [cell["reason"] for cell in results["cells"] if cell["status"] != "ok"]
    if failed:
        raise RuntimeError(failed[0])
    return seconds


def ask_alone(recording: Recording) -> float:
    """Return the CPU seconds of the model's answers to the same blocks, without anything else."""
    started = time.process_time()
    for call, blocks in recording.blocks:
        for _ in recording.adapter.stream(call, blocks):
            pass
    return time.process_time() - started


def play(
    config: RunConfig, prepared: Prepared, recording: Recording, folder: Path
) -> tuple[float, dict[str, float]]:
    """Return the CPU seconds of a run whose model takes no time, and its parts; the parts are timed in another run."""
    whole = run_once(config, prepared, Playing(recording), folder / "whole")
    clock = Clock()
    with ExitStack() as stack:
        for part, places in PARTS.items():
            for owner, name in places:
                timed = clock.timed(part, getattr(owner, name))
                stack.enter_context(patch.object(owner, name, timed))
        parted = run_once(config, prepared, Playing(recording), folder / "parts")
    clock.seconds["everything else"] = parted - sum(clock.seconds.values())
    return whole, clock.seconds


def show(items: int, alone: float, full: float, overhead: float, parts: Mapping[str, float]) -> None:
    """Print the two ratios and what the run does in addition to asking its model."""
    table = Table("outside of the model", "CPU ms", "share of the run", title_justify="left")
    for part, seconds in parts.items():
        table.add_row(part, f"{1000 * seconds:.1f}", f"{seconds / (alone + overhead):.2%}")
    Console(width=110).print(table)
    print(
        f"{items:,} items: the model alone {alone:.2f} s of CPU ({items / alone:.0f} items/s), "
        f"the run {full:.2f} s: {full / alone:.3f} of it"
    )
    share = overhead / (alone + overhead)
    print(
        f"All that a run adds to its model takes {overhead:.3f} s, {share:.2%} of it (limit {LIMIT:.0%}); "
        f"{items / overhead:,.0f} items/s by itself"
    )
    record("what a run adds to its model, share of its time", share, LIMIT)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print; without a model, say what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("HARNESS_DATA"), help="folder with xnli")
    parser.add_argument("--model", type=Path, default=Path("models/e5-small"))
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    if not given.model.exists():
        print(f"The cost of a run is not measured: there is no {given.model}; make models makes it.")
        return
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_headed(given.model, folder / "model")
        write_pairs(folder / "data", given.items, given.data)
        config = RunConfig(
            tasks=(f"xnli:{XNLI}",),
            model=f"hf-encoder:{folder / 'model'}",
            options={"device": "cpu"},
            data=data_options([folder / "data"]),
        )
        prepared = prepare(config)
        model = prepared.plan.model
        recording = Recording(model.entry.open(model.description, model.options))
        run_once(config, prepared, recording, folder / "first")
        rounds = [
            (
                ask_alone(recording),
                run_once(config, prepared, Recording(recording.adapter), folder / f"run{number}"),
                *play(config, prepared, recording, folder / f"played{number}"),
            )
            for number in range(given.rounds)
        ]
    alone, full, overhead, parts = zip(*rounds, strict=True)
    show(given.items, min(alone), min(full), min(overhead), min(parts, key=lambda part: sum(part.values())))


if __name__ == "__main__":
    main()
