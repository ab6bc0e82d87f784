"""Scores of a decoder: the same accuracy, F1 and log-probabilities as lm-eval, from the same weights and items.

XNLI and XCOPA are ranked and XQuAD is answered in float32, with lm-eval's own prompts on both sides. The scores must be
equal, the log-probabilities of choices within 1e-3, and XNLI's choices, whole sentences, be ranked at least 1.4 times
as fast. Run: make bench, or python -m benchmarks.decoder_scores [--data DIR] [--model DIR] [--items N]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import yaml
from rich.console import Console
from rich.table import Table

from benchmarks.decoder_items import LABELS, LANGUAGES, DecoderItems, made_up, published
from benchmarks.lm_eval_peer import ask
from benchmarks.measuring import record
from harness.api import evaluate
from harness.running.session import open_session
from harness_hf.causal.adapter import Causal

PRESET = "lm_eval-bugcompat"
SHORT = "lm_eval-short"
"""The same prompt of XQuAD, with short answers."""
CHOICES = {"xnli": LABELS, "xcopa": ("choice1", "choice2")}
"""In lm-eval's order."""
METRICS = {"xnli": ("accuracy", "acc"), "xcopa": ("accuracy", "acc"), "xquad": ("f1", "f1")}
CLOSE = 1e-3
TICK = 0.01
"""Seconds: no clock of CPU time is finer on every system."""
FASTER = 1.4


def measure(model: str, items: DecoderItems, max_tokens: int) -> dict[str, dict[str, Any]]:
    """Return our score of every task, the answers of its items, and CPU and wall seconds of the model's part."""
    answers: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        items.write(folder / "data")
        _write_short_prompt(folder / "specs", max_tokens)
        for task, language in LANGUAGES.items():
            seconds = [0.0, 0.0]
            with _Clock(seconds):
                run = evaluate(
                    f"{task}:{language}",
                    f"hf-causal:{model}",
                    options={"dtype": "float32", "device": "cpu"},
                    data=folder / "data",
                    tasks_from=(folder / "specs",),
                    prompt=SHORT if task == "xquad" else PRESET,
                    output=folder / task,
                )
            [cell] = run.cells
            if cell.status != "ok":
                raise RuntimeError(cell.reason)
            records = list(run.records(cell))
            answers[task] = {
                "score": cell.metrics[METRICS[task][0]].value,
                "answers": [_answer(task, record.prediction) for record in records],
                "seconds": seconds,
            }
    return answers


class _Clock:
    """Adds up the seconds that the adapter spends on log-probabilities and generation."""

    def __init__(self, seconds: list[float]) -> None:
        self._seconds = seconds
        self._whole = {name: getattr(Causal, name) for name in ("loglikelihood", "generate")}

    def __enter__(self) -> None:
        for name, work in self._whole.items():
            setattr(Causal, name, self._timed(work))

    def __exit__(self, *_: object) -> None:
        for name, work in self._whole.items():
            setattr(Causal, name, work)

    def _timed(self, work: Any) -> Any:
        def run(adapter: Causal, *arguments: Any) -> Any:
            wall, cpu = time.perf_counter(), time.process_time()
            answered = work(adapter, *arguments)
            self._seconds[0] += time.process_time() - cpu
            self._seconds[1] += time.perf_counter() - wall
            return answered

        return run


def _answer(task: str, prediction: Mapping[str, Any]) -> Any:
    """Return the sums of an item's choices in lm-eval's order, or the text that was written."""
    if task == "xquad":
        return prediction["raw"]
    names = ("contradiction", "entailment", "neutral") if task == "xnli" else CHOICES[task]
    sums = dict(zip(names, prediction["scores"], strict=True))
    return [sums[name] for name in CHOICES[task]]


def _write_short_prompt(folder: Path, max_tokens: int) -> None:
    spec = open_session().catalog.prompt("xquad", PRESET)
    content = spec.model_dump(mode="json", exclude_defaults=True)
    content |= {"prompt": f"xquad/{SHORT}", "max_tokens": max_tokens}
    folder.mkdir()
    text = yaml.safe_dump(content, allow_unicode=True, sort_keys=False)
    (folder / "xquad_short.yaml").write_text(text, encoding="utf-8")


def compare(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    """Print scores, differences and speeds of both sides."""
    table = Table(
        "", "score", "lm-eval's", "largest difference", "requests/CPU s", "lm-eval's", "ratio CPU, wall"
    )
    gaps: dict[str, float] = {}
    faster: dict[str, float] = {}
    for task, (_, metric) in METRICS.items():
        own, other = ours[task], theirs[task]
        if task == "xquad":
            pairs = zip(own["answers"], (item[0][0] for item in other["answers"]), strict=True)
            different = sum(text.strip() != answer.strip() for text, answer in pairs)
            difference, count = f"{different} other texts", len(own["answers"])
        else:
            sums = [[choice[0][0] for choice in item] for item in other["answers"]]
            gap = gaps[task] = max(
                abs(one - two)
                for pair in zip(own["answers"], sums, strict=True)
                for one, two in zip(*pair, strict=True)
            )
            difference, count = f"{gap:.2g} (limit {CLOSE})", sum(map(len, sums))
        rates = [count / max(side["seconds"][0], TICK) for side in (own, other)]
        ratios = [
            max(two, TICK) / max(one, TICK) for one, two in zip(own["seconds"], other["seconds"], strict=True)
        ]
        limit = f" (limit {FASTER})" if task == "xnli" else ""
        scores = f"{own['score']:.6f}", f"{other['metrics'][f'{metric},none']:.6f}"
        speeds = f"{rates[0]:.2f}", f"{rates[1]:.2f}", f"{ratios[0]:.2f}, {ratios[1]:.2f}{limit}"
        table.add_row(task, *scores, difference, *speeds)
        faster[task] = ratios[0]
    Console(width=130).print(table)
    for task, ratio in faster.items():
        least = FASTER if task == "xnli" else None
        record(f"{task} with a decoder: answers/s of lm-eval's", ratio, least, least=True)
    for task, gap in gaps.items():
        record(f"{task} with a decoder: largest difference from lm-eval", gap, CLOSE)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print; without lm-eval or a model, say what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument(
        "--data", default=os.environ.get("HARNESS_DATA"), help="folder with the published data"
    )
    parser.add_argument("--model", default="models/smollm2", help="folder of a decoder")
    parser.add_argument("--python", default=".venv-peers/bin/python", help="interpreter that has lm-eval")
    parser.add_argument("--items", type=int, default=60, help="items of XNLI and of XCOPA")
    parser.add_argument("--questions", type=int, default=16, help="items of XQuAD")
    parser.add_argument("--max-tokens", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=16, help="lm-eval's")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args(arguments)
    for path, maker in ((given.python, "bench"), (given.model, "models")):
        if not Path(path).exists():
            print(f"The scores of a decoder are not compared: there is no {path}; make {maker} makes it.")
            return
    torch.set_num_threads(given.threads)
    counts = (given.items, given.items, given.questions)
    items = made_up(*counts) if given.data is None else published(Path(given.data), *counts)
    ours = measure(given.model, items, given.max_tokens)
    job = {
        "job": "evaluate",
        "model": str(Path(given.model).resolve()),
        "documents": items.documents(),
        "max_tokens": given.max_tokens,
        "batch_size": given.batch_size,
        "threads": given.threads,
    }
    theirs = ask(given.python, job)
    kind = "made-up" if given.data is None else "published"
    print(f"{given.model}, {kind} items, lm-eval at batch {given.batch_size}, {given.threads} thread(s)")
    compare(ours, theirs)


if __name__ == "__main__":
    main()
