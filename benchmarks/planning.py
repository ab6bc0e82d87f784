"""Time of planning 10,000 cells: 100 made-up tasks in 100 languages, a file each; limit 1 second.

    python -m benchmarks.planning

What is timed is the plan alone, with the digests of all files: specs are loaded and plugins found before. The
languages have the codes that ISO 639 leaves for local use.
"""

from __future__ import annotations

import argparse
import statistics
import string
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import record
from harness.data.sources import DataFinder
from harness.planning.planner import make_plan, resolve_model
from harness.planning.resolution import resolve_plan
from harness.planning.run_config import RunConfig, data_options
from harness.planning.shards import parse_shard, take_shard
from harness.running.session import open_session

TASKS, LANGUAGES = 100, 100
LIMIT_SECONDS = 1.0
SPEC = """\
task: made-{number}
kind: sequence_classification
version: 1
description: A made-up task.
citation: none
license: cc0-1.0
inputs: [text]
labels: [even, odd]
metrics: [accuracy]
transfer: {{source: {first}, stages: [made-{number}], recipe: quick}}
splits:
  test: {{local: "made-{number}/{{language}}.jsonl", reader: jsonl}}
languages:
  {first}:
    name: {first}
    script: Latn
    family: made up
    train: {{local: "made-{number}/{first}.jsonl", reader: jsonl}}
"""


def write_tasks(folder: Path, tasks: int, languages: int) -> None:
    """Write so many specs below ``specs`` and a file of one item for each of their languages."""
    letters = string.ascii_lowercase
    codes = [f"q{second}{third}" for second in letters[:20] for third in letters][:languages]
    (folder / "specs").mkdir(parents=True)
    for number in range(tasks):
        spec = SPEC.format(number=number, first=codes[0]) + "".join(
            f"  {code}: {{name: {code}, script: Latn, family: made up}}\n" for code in codes[1:]
        )
        (folder / "specs" / f"made-{number}.yaml").write_text(spec, encoding="utf-8")
        (folder / f"made-{number}").mkdir()
        for code in codes:
            row = f'{{"text": "{code} {number}", "label": "odd"}}\n'
            (folder / f"made-{number}" / f"{code}.jsonl").write_text(row, encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="Time of planning.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tasks", type=int, default=TASKS)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tasks(folder, given.tasks, LANGUAGES)
        session = open_session([folder / "specs"])
        options = data_options([folder])
        config = RunConfig(
            tasks=tuple(f"made-{number}" for number in range(given.tasks)),
            model="baseline:majority",
            data=options,
        )
        seconds: list[float] = []
        resolving: list[float] = []
        sharding: list[float] = []
        for _ in range(given.rounds):
            started = time.perf_counter()
            finder = DataFinder(options, session.registry, folder / "cache")
            model = resolve_model(session.registry.adapters, config.model, config.options)
            plan = make_plan(config, session.registry, session.catalog, finder, model)
            digests = {cell.digest for cell in plan.cells}
            files = {cell.test.digest() for cell in plan.cells}
            seconds.append(time.perf_counter() - started)
            started = time.perf_counter()
            resolve_plan(plan, session.catalog)
            resolving.append(time.perf_counter() - started)
            started = time.perf_counter()
            take_shard(plan, parse_shard("2/4"))
            sharding.append(time.perf_counter() - started)
    assert len(digests) == len(files) == given.tasks * LANGUAGES, plan.skipped[:1]
    median = statistics.median(seconds)
    print(
        f"{len(digests):,} cells planned in {median:.2f} s (median of {given.rounds}, first {seconds[0]:.2f} s)"
    )
    print(
        f"Besides: {statistics.median(resolving):.2f} s for what the manifest keeps of their data, "
        f"{statistics.median(sharding):.2f} s for one of four shards"
    )
    record(f"plan of {len(digests):,} cells", median, LIMIT_SECONDS, unit=" s")


if __name__ == "__main__":
    main()
