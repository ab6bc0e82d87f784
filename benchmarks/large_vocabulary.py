"""A vocabulary of 250,000 words: requests per second and memory of a decoder's log-probabilities, against lm-eval.

A Llama of hidden size 64 with random weights ranks three short choices after each of 64 contexts, by default in batches
of 64 texts here and of 16 there. Each side runs in a process of its own, which measures its memory. The limits are 20
times lm-eval's requests per CPU second, and 1 GB above the weights; the sums must agree within 1e-3. Whole sentences
after an empty context, every token of which is scored, are also shown, without a limit.
Run: make bench, or python -m benchmarks.large_vocabulary [--contexts N] [--batch-size N] [--peer-batch-size N]
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.decoder_items import WORDS, made_up
from benchmarks.lm_eval_peer import MEGABYTE, ask, peak_memory, resident_memory, timed
from benchmarks.measuring import record
from benchmarks.tiny_decoder import write_decoder

VOCABULARY = 250_000
HIDDEN = 64
FASTER = 20
MOST_MEGABYTES = 1000
CLOSE = 1e-3


def short_choices(contexts: int, *, seed: int = 0) -> list[tuple[str, str]]:
    """Return contexts of some 60 words, each with three choices of one to three words."""
    generator = random.Random(seed)
    requests = []
    for _ in range(contexts):
        context = " ".join(generator.choices(WORDS, k=generator.randint(50, 70)))
        for size in (1, 2, 3):
            requests.append((context, " " + " ".join(generator.choices(WORDS, k=size))))
    return requests


def whole_sentences(contexts: int, *, seed: int = 0) -> list[tuple[str, str]]:
    """Return XNLI's choices under lm-eval's prompt: whole sentences after an empty context."""
    items = made_up(contexts, 0, 0, seed=seed).xnli
    return [
        ("", f" {premise}, right? {word}, {hypothesis}")
        for premise, hypothesis, _ in items
        for word in ("Yes", "Also", "No")
    ]


def rank(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sums of given requests, the seconds, and the memory in MB before and at most."""
    import torch

    from harness.models.options import parse_options
    from harness.models.requests import LikelihoodRequest
    from harness_hf import harness_register_adapters

    torch.set_num_threads(job["threads"])
    [entry] = [
        entry for entry in harness_register_adapters() if entry.name == job.get("adapter", "hf-causal")
    ]
    given = {"device": "cpu", "dtype": "float32"}
    given |= {name: str(job[name]) for name in ("batch_tokens",) if name in job}
    options = parse_options(entry, given)
    adapter: Any = entry.open(entry.describe_model(job["model"], options), options)
    ready = resident_memory()
    requests = [LikelihoodRequest(context=context, continuation=text) for context, text in job["requests"]]
    seconds: dict[str, list[float]] = {}
    answers = timed(adapter.loglikelihood, seconds)(requests)
    sums = [answer.total for answer in answers]
    return {"sums": sums, "seconds": seconds["loglikelihood"], "ready": ready, "peak": peak_memory()}


def compare(title: str, ours: Mapping[str, Any], theirs: Mapping[str, Any], weights: float) -> None:
    """Print requests a second and memory of both sides, and their ratios."""
    rows = (("harness", ours), ("lm-eval", theirs))
    table = Table(
        "", "requests/CPU s", "CPU s", "wall s", "ready MB", "peak MB", "above weights MB", title=title
    )
    rates = []
    for name, side in rows:
        rates.append(len(side["sums"]) / side["seconds"][0])
        numbers = [f"{value:.2f}" for value in side["seconds"]]
        memory = [f"{side[key]:,.0f}" for key in ("ready", "peak")]
        table.add_row(name, f"{rates[-1]:.1f}", *numbers, *memory, f"{side['peak'] - weights:,.0f}")
    Console(width=110).print(table)
    gap = max(abs(one - two) for one, two in zip(ours["sums"], theirs["sums"], strict=True))
    has_limit = title.startswith("Short")
    ratio = rates[0] / rates[1]
    record(f"{title}, requests/CPU s of lm-eval's", ratio, FASTER if has_limit else None, least=True)
    record(
        f"{title}: memory above the weights",
        ours["peak"] - weights,
        MOST_MEGABYTES if has_limit else None,
        unit=" MB",
    )
    record(f"{title}: largest difference from lm-eval", gap, CLOSE)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print; without lm-eval, say what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--python", default=".venv-peers/bin/python", help="interpreter that has lm-eval")
    parser.add_argument("--contexts", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=64, help="texts at once, ours")
    parser.add_argument("--peer-batch-size", type=int, default=16, help="lm-eval's")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args(arguments)
    if not Path(given.python).exists():
        print(f"The large vocabulary is not measured: there is no {given.python}; make bench makes it.")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases = {
            "Short choices, 250,000 words": short_choices(given.contexts),
            "Whole sentences, 250,000 words": whole_sentences(given.contexts // 2),
        }
        texts = [context + text for requests in cases.values() for context, text in requests]
        write_decoder(folder, texts, vocabulary=VOCABULARY, hidden=HIDDEN)
        weights = (folder / "model.safetensors").stat().st_size / MEGABYTE
        print(
            f"Weights {weights:.0f} MB; batch {given.batch_size}, lm-eval's {given.peer_batch_size}; "
            f"{given.threads} thread(s)"
        )
        for title, requests in cases.items():
            job = {"model": str(folder), "requests": requests, "threads": given.threads}
            tokens = given.batch_size * _longest(folder, requests)
            ours = rank_in_process({**job, "batch_tokens": tokens})
            theirs = ask(given.python, {**job, "job": "rank", "batch_size": given.peer_batch_size})
            compare(title, ours, theirs, weights)


def _longest(folder: Path, requests: Sequence[tuple[str, str]]) -> int:
    """Return the tokens of the longest request, so that a batch is counted in texts."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    return max(len(ids) for ids in tokenizer([context + text for context, text in requests])["input_ids"])


def rank_in_process(job: Mapping[str, Any]) -> Any:
    """Return what `rank` returns, in a process of its own."""
    words = [sys.executable, "-m", "benchmarks.large_vocabulary", "--rank"]
    done = subprocess.run(words, input=json.dumps(job), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Ranking failed: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


if __name__ == "__main__":
    if sys.argv[1:] == ["--rank"]:
        print(json.dumps(rank(json.load(sys.stdin))))
    else:
        main()
