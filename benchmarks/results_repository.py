"""A results repository of 200 models x 10 tasks x 50 languages: how long its check and the site of its board take.

    python -m benchmarks.results_repository [--models N] [--tasks N] [--languages N] [--output DIR]

The scores are drawn from a seed: a model has a level, a language too, and each item is right or wrong. Files are
written as ``harness results add`` writes them; check and site run in processes of their own, as a workflow starts them.
Budgets: 5 s for the check, 20 s for the site.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.measuring import record
from harness.languages.table import known_languages
from harness.statistics import wilson
from harness_board.repository_entry import RepositoryEntry

ITEMS = 1000
ORGANISATIONS = ("north", "south", "east", "west")


def _metric(right: int, n: int) -> dict[str, Any]:
    value, (low, high) = right / n, wilson(right, n)
    return {
        "value": round(value, 6),
        "se": round(math.sqrt(value * (1 - value) / n), 6),
        "ci": [round(low, 6), round(high, 6)],
        "ci_method": "wilson",
    }


def entry(model: int, task: int, codes: list[str], seed: int) -> RepositoryEntry:
    """Return the file of one model and task, with a score in every language and their mean."""
    draw = random.Random(f"{seed} {model} {task}")
    level = random.Random(f"{seed} {model}").uniform(-1.0, 2.0)
    known = known_languages()
    scores: list[dict[str, Any]] = []
    for code in codes:
        chance = 1 / (1 + math.exp(-level - random.Random(f"{seed} {code}").gauss(0, 0.7)))
        right = min(
            ITEMS, max(0, round(draw.gauss(ITEMS * chance, math.sqrt(ITEMS * chance * (1 - chance)))))
        )
        scores.append(
            {
                "language": code,
                "split": "test",
                "provenance": "human-translated",
                "protocol": "zero_shot_transfer",
                "method": "head",
                "seed": 42,
                "fit": f"fit{model}",
                "n": ITEMS,
                "size": ITEMS,
                "items": {"origin": "hub", "digest": f"{task:016x}", "revision": f"{task:040x}"},
                "metrics": {"accuracy": _metric(right, ITEMS)},
            }
        )
    value, se = (fmean(score["metrics"]["accuracy"][name] for score in scores) for name in ("value", "se"))
    mean = {
        **{
            "protocol": "zero_shot_transfer",
            "method": "head",
            "metric": "accuracy",
            "languages": sorted(codes),
        },
        **{"value": round(value, 6), "se": round(se, 6), "ci_method": "clustered t"},
        "ci": [round(max(0.0, value - 1.96 * se), 6), round(min(1.0, value + 1.96 * se), 6)],
    }
    content = {
        "schema": 1,
        "model": f"{ORGANISATIONS[model % 4]}/model-{model:03}",
        "task": {
            **{"name": f"task{task}", "version": 1, "kind": "sequence_classification", "parallel": True},
            **{"metrics": ["accuracy"], "headline": ["accuracy"], "source": "en", "chance": 0.25},
            "published_languages": codes,
            "languages": {code: [known.get(code).family, known.get(code).script] for code in codes},
        },
        "runs": [
            {
                **{"created": f"2026-01-{model % 28 + 1:02}T00:00:00+00:00", "harness": "0.2.0"},
                **{
                    "adapter": "hf-encoder",
                    "parameters": round(10 ** (7.5 + level)),
                    "weights": f"{model:064x}",
                },
                **{"fits": {f"fit{model}": "train (en), seed 42"}, "scores": scores, "means": [mean]},
            }
        ],
    }
    return RepositoryEntry.model_validate_json(json.dumps(content))


def write_repository(folder: Path, *, models: int, tasks: int, languages: int, seed: int = 7) -> int:
    """Write the files of made-up models and return their number."""
    codes = ["en", *sorted({language.code for language in known_languages()} - {"en"})][:languages]
    for model in range(models):
        for task in range(tasks):
            made = entry(model, task, codes, seed)
            path = folder / made.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(made.text(), encoding="utf-8")
    return models * tasks


def _seconds(*arguments: str) -> float:
    code = "import sys; from harness.cli.main import run_command; sys.exit(run_command(sys.argv[1:]))"
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code, *arguments], check=True)
    return time.perf_counter() - started


def main() -> None:
    """Print the seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--languages", type=int, default=50)
    parser.add_argument("--output", type=Path, help="keep repository and site in this folder")
    given = parser.parse_args()
    size = f"{given.models} models x {given.tasks} tasks x {given.languages} languages"
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.output or Path(temporary)
        files = write_repository(
            folder / "repository", models=given.models, tasks=given.tasks, languages=given.languages
        )
        repository = str(folder / "repository")
        written = sum(path.stat().st_size for path in folder.rglob("*.json"))
        print(f"{size}: {files:,} files, {written / 1e6:.1f} MB")
        record(f"results repository: check of {size}", _seconds("results", "check", repository), 5, unit=" s")
        site = ("board", "--from", repository, "--site", str(folder / "site"))
        record(f"results repository: site of {size}", _seconds(*site), 20, unit=" s")


if __name__ == "__main__":
    main()
