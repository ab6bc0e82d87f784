"""Texts that a decoder writes, and choices after a shared beginning, against transformers and lm-eval.

Three comparisons with the same weights in float32, in CPU seconds, the contenders in turns:
16 prompts that get 256 tokens each: at least 0.95 of the tokens per second of the faster of `model.generate` and
lm-eval, both with batches of 16; 64 prompts that get 16 to 256 tokens: at least 1.5 of it; 200 items with 4 choices
and 5 shots: at least 3 times lm-eval's requests per second (a small Llama with random weights).
Run: make bench, or python -m benchmarks.decoder_generation [--model DIR] [--tokens N] [--items N] [--rounds N]
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from transformers import AutoTokenizer

from benchmarks.decoder_items import WORDS
from benchmarks.lm_eval_peer import ask
from benchmarks.measuring import record
from benchmarks.tiny_decoder import write_decoder
from harness.models import GenerateOptions, LikelihoodRequest
from harness_hf.causal.adapter import open_causal
from harness_hf.description import describe_causal
from harness_hf.options import CausalOptions

BATCH = 16
SHOTS, CHOICES = 5, 4
LIMITS = {"equal": 0.95, "drawn": 1.5, "prefixes": 3.0}
ROW_NAMES = {
    "equal": "texts of one length: tokens/s of the faster of model.generate and lm-eval",
    "drawn": "texts of drawn lengths: tokens/s of the faster of model.generate and lm-eval",
    "prefixes": "choices after 5 shots: requests/s of lm-eval's",
}
NEVER = "<|never written|>"
Work = tuple[list[str], list[int]]
"""Prompts, and the tokens that each is to get."""


def sentence(generator: random.Random, least: int, most: int) -> str:
    """Return a sentence of so many random words."""
    return " ".join(generator.choices(WORDS, k=generator.randint(least, most))).capitalize() + "."


def make_work(prompts: int, tokens: int, *, drawn: bool, seed: int = 0) -> Work:
    """Return prompts of 10 to 40 words; they get `tokens` each, or a 16th of it up to all of it where drawn."""
    generator = random.Random(seed)
    texts = [sentence(generator, 10, 40) for _ in range(prompts)]
    return texts, [generator.randint(tokens // 16, tokens) if drawn else tokens for _ in texts]


def make_requests(items: int, seed: int = 0) -> list[tuple[str, str]]:
    """Return contexts with the same shots before the item's own question, and its choices."""
    generator = random.Random(seed)
    shots = "\n\n".join(
        f"{sentence(generator, 20, 40)}\nAnswer: {sentence(generator, 3, 8)}" for _ in range(SHOTS)
    )
    contexts = [f"{shots}\n\n{sentence(generator, 20, 40)}\nAnswer:" for _ in range(items)]
    return [(context, f" {sentence(generator, 3, 8)}") for context in contexts for _ in range(CHOICES)]


def open_model(folder: str) -> Any:
    """Return our adapter over a model folder, which never ends a text by itself."""
    options = CausalOptions(device="cpu", dtype="float32")
    model: Any = open_causal(describe_causal(folder, options), options)
    model._session.end_tokens = frozenset
    return model


def static_batches(work: Work) -> list[tuple[list[str], int]]:
    """Return batches of 16 prompts, with the tokens that the longest text of each takes."""
    prompts, counts = work
    starts = range(0, len(prompts), BATCH)
    return [(prompts[start : start + BATCH], max(counts[start : start + BATCH])) for start in starts]


def writers(folder: str, python: str, work: Work) -> dict[str, Callable[[], float]]:
    """Return by name what writes the texts and returns the CPU seconds."""
    model = open_model(folder)
    # The same network, so that both read the same memory.
    network, tokenizer = model._session.network, AutoTokenizer.from_pretrained(folder, padding_side="left")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token

    def ours() -> None:
        answers = model.generate(work[0], [GenerateOptions(max_tokens=count) for count in work[1]])
        assert [answer.tokens for answer in answers] == work[1]

    def static() -> None:
        for prompts, count in static_batches(work):
            encoded = tokenizer(prompts, return_tensors="pt", padding=True)
            network.generate(
                **encoded,
                max_new_tokens=count,
                min_new_tokens=count,
                do_sample=False,
                pad_token_id=tokenizer.pad_token_id,
            )

    def peer() -> float:
        requests = [
            (prompt, {"until": [NEVER], "max_gen_toks": count, "min_new_tokens": count, "do_sample": False})
            for prompts, count in static_batches(work)
            for prompt in prompts
        ]
        return float(ask_peer(folder, python, "write", requests)["seconds"][0])

    return {"harness": timed(ours), "model.generate": timed(static), **peer_if_any(python, peer)}


def rankers(folder: str, python: str, requests: Sequence[tuple[str, str]]) -> dict[str, Callable[[], float]]:
    """Return by name what scores the choices and returns the CPU seconds; the sums must be equal."""
    model = open_model(folder)
    sums: list[float] = []

    def ours() -> None:
        asked = [LikelihoodRequest(context=context, continuation=choice) for context, choice in requests]
        sums[:] = [answer.total for answer in model.loglikelihood(asked)]

    def peer() -> float:
        answer = ask_peer(folder, python, "rank", requests)
        assert max(abs(one - other) for one, other in zip(sums, answer["sums"], strict=True)) < 1e-3
        return float(answer["seconds"][0])

    return {"harness": timed(ours), **peer_if_any(python, peer)}


def peer_if_any(python: str, peer: Callable[[], float]) -> dict[str, Callable[[], float]]:
    """Return lm-eval by its name, where it is installed."""
    if Path(python).exists():
        return {"lm-eval": peer}
    print(f"lm-eval is not compared: there is no {python}; make bench makes it.")
    return {}


def ask_peer(folder: str, python: str, job: str, requests: Sequence[Any]) -> Any:
    """Return lm-eval's answer to a job."""
    given = {"job": job, "model": folder, "batch_size": BATCH, "threads": 1, "requests": requests}
    return ask(python, given)


def timed(run: Callable[[], None]) -> Callable[[], float]:
    """Return a function that runs `run` and returns its CPU seconds."""

    def seconds() -> float:
        started = time.process_time()
        run()
        return time.process_time() - started

    return seconds


def compare(title: str, contenders: Mapping[str, Callable[[], float]], units: int, rounds: int) -> float:
    """Measure the contenders in turns and print; return our rate as a multiple of the fastest other's."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            seconds[name].append(run())
    rates = {name: units / statistics.median(values) for name, values in seconds.items()}
    ours = rates["harness"]
    table = Table(title, "median CPU s", "per CPU s", "ours as a multiple")
    for name, rate in rates.items():
        table.add_row(name, f"{units / rate:.2f}", f"{rate:,.1f}", f"{ours / rate:.2f}")
    Console(width=110).print(table)
    return ours / max((rate for name, rate in rates.items() if name != "harness"), default=ours)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--model", default="models/smollm2")
    parser.add_argument("--python", default=".venv-peers/bin/python", help="of an environment with lm-eval")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--prompts", type=int, default=64, help="of the comparison with drawn lengths")
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=list(LIMITS))
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    ratios = {}
    for name in ("equal", "drawn"):
        if given.only in (None, name) and Path(given.model).exists():
            drawn = name == "drawn"
            work = make_work(given.prompts if drawn else BATCH, given.tokens, drawn=drawn)
            title = f"{len(work[0])} prompts, {min(work[1])} to {max(work[1])} tokens"
            contenders = writers(str(Path(given.model).resolve()), given.python, work)
            ratios[name] = compare(title, contenders, sum(work[1]), given.rounds)
    if given.only in (None, "prefixes") and Path(given.python).exists():
        requests = make_requests(given.items)
        with tempfile.TemporaryDirectory() as folder:
            write_decoder(Path(folder), [text for pair in requests for text in pair], hidden=256)
            title = f"{given.items} items, {CHOICES} choices, {SHOTS} shots"
            ratios["prefixes"] = compare(
                title, rankers(folder, given.python, requests), len(requests), given.rounds
            )
    for name, ratio in ratios.items():
        record(ROW_NAMES[name], ratio, LIMITS[name], least=True)


if __name__ == "__main__":
    main()
