"""Error rates and power of contamination signs: python -m benchmarks.contamination [--model FOLDER] [--data-sets N].

False positives are counted on texts that are made here, so no model has seen them. For power, a tiny model is trained
on some of them. The seeds are fixed.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy import stats
from transformers import AutoModelForCausalLM, AutoTokenizer

from benchmarks.tiny_decoder import write_decoder
from harness.models.requests import LikelihoodRequest
from harness_contamination.signs import (
    Material,
    Sign,
    difference_p,
    measure_signs,
    min_k,
    order_test,
    random_orders,
    rank_test,
)
from harness_hf.causal.adapter import Causal, open_causal
from harness_hf.description import describe_causal
from harness_hf.options import CausalOptions

Floats = npt.NDArray[np.float64]
SHARDS, SIZE, ORDERS = 8, 8, 10
SCORED = 600
"""Texts of each sort that Min-K%++ scores; data sets are drawn from them."""
DRAWN = 50
NAMES = (
    "Amina Bongani Chidi Dalisu Efua Farida Gebre Halima Itai Jomo Kofi Lindiwe Musa Nia Obi Paulo".split()
)
ACTS = "bought sold carried counted found lost painted repaired borrowed hid washed measured".split()
THINGS = "baskets lamps chairs drums kettles ladders mirrors ropes stools tents wheels windows".split()
PLACES = "market river school station bridge workshop harbour garden library bakery mill tower".split()


def open_model(folder: Path) -> Causal:
    """Return an opened decoder."""
    options = CausalOptions(device="cpu")
    adapter = open_causal(describe_causal(str(folder), options), options)
    assert isinstance(adapter, Causal)
    return adapter


def make_texts(random: np.random.Generator, count: int) -> list[str]:
    """Return different sentences, in random order."""
    texts: dict[str, None] = {}
    while len(texts) < count:
        name, other = random.choice(NAMES, 2, replace=False)
        act, thing, place = (random.choice(words) for words in (ACTS, THINGS, PLACES))
        texts[f"{name} {act} {random.integers(2, 999)} {thing} near the {place} with {other}."] = None
    return list(texts)


def material(texts: Sequence[str], fresh: Sequence[str] = ()) -> Material:
    """Return texts as a cell."""
    shards = [texts[start : start + SIZE] for start in range(0, len(texts), SIZE)]
    return Material(
        task="made", language="en", shards=shards, drawn=range(len(shards)), data={}, fresh=tuple(fresh)
    )


def order_scores(model: Causal, shards: Sequence[Sequence[str]], orders: int) -> Floats:
    """Return log-likelihoods of shape (shards, 1 + orders)."""
    asked = [
        LikelihoodRequest(context="", continuation="\n".join(own[at] for at in one))
        for number, own in enumerate(shards)
        for one in random_orders(len(own), orders, number)
    ]
    return np.array([one.total for one in model.loglikelihood(asked)]).reshape(len(shards), -1)


def made_orders(model: Causal, count: int) -> list[float]:
    """Return the p of item order in data sets that are all made anew."""
    random = np.random.default_rng(1)
    shards = [make_texts(random, SIZE) for _ in range(SHARDS * count)]
    values = order_scores(model, shards, ORDERS)
    return [order_test(own)[1] for own in np.split(values, count)]


def drawn_orders(model: Causal, count: int) -> list[float]:
    """Return the p of item order in data sets that are drawn from 20 shards with 16 random orders each."""
    random = np.random.default_rng(2)
    bank = order_scores(model, [make_texts(random, SIZE) for _ in range(20)], 15)
    found = []
    for _ in range(count):
        rows = random.choice(len(bank), SHARDS, replace=False)
        found.append(order_test(random.permuted(bank[rows], axis=1)[:, : ORDERS + 1])[1])
    return found


def reference_rows(model: Causal, count: int) -> Iterator[tuple[str, list[float]]]:
    """Yield the p of Min-K%++ of texts that no model has seen, against each sort of reference."""
    random = np.random.default_rng(3)
    items = make_texts(random, SCORED)
    scores = [min_k(own) for own in model.standard_scores(items)]
    halves = (_drawn(scores, random, 2 * DRAWN) for _ in range(count))
    yield "fresh texts of the same source", [rank_test(own[:DRAWN], own[DRAWN:])[1] for own in halves]
    changed = {
        "the items with other numbers": [
            re.sub(r"\d+", str(random.integers(1000, 9999)), text) for text in items
        ],
        "the items with their words shuffled": [
            " ".join(random.permutation(text.split()).tolist()) for text in items
        ],
    }
    for name, copies in changed.items():
        others = [min_k(own) for own in model.standard_scores(copies)]
        pairs = ((_drawn(scores, random, DRAWN), _drawn(others, random, DRAWN)) for _ in range(count))
        yield name, [rank_test(*pair)[1] for pair in pairs]


def _drawn(scores: Sequence[float], random: np.random.Generator, count: int) -> list[float]:
    return [scores[at] for at in random.choice(len(scores), count, replace=False)]


def differences(count: int) -> list[float]:
    """Return the p of the check without a model, of texts from one source."""
    random = np.random.default_rng(4)
    made = (make_texts(random, 2 * DRAWN) for _ in range(count))
    return [difference_p(texts[:DRAWN], texts[DRAWN:]) for texts in made]


def train(folder: Path, texts: Sequence[str], steps: int, window: int = 128) -> None:
    """Train the model in a folder on texts in their order, a line each, and save it."""
    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = torch.tensor(tokenizer("\n".join(texts))["input_ids"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    random = np.random.default_rng(5)
    for _ in range(steps):
        starts = random.integers(0, max(1, len(ids) - window), size=8)
        batch = torch.stack([ids[start : start + window] for start in starts])
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(folder)


def trained_signs(folder: Path, steps: int = 200) -> list[list[Sign]]:
    """Return the signs of a tiny model for 64 items that it was trained on in order, and for 64 others."""
    texts = make_texts(np.random.default_rng(7), 3 * SHARDS * SIZE)
    seen, unseen, fresh = texts[:64], texts[64:128], texts[128:]
    write_decoder(folder, texts, window=512)
    train(folder, seen, steps)
    model = open_model(folder)
    try:
        return [list(measure_signs(model, material(own, fresh), ORDERS)) for own in (seen, unseen)]
    finally:
        model.close()


def report(name: str, p: Sequence[float]) -> None:
    """Print how often p is small, and whether it looks uniform."""
    share = np.mean(np.asarray(p) <= 0.05)
    uniform = stats.kstest(p, "uniform").pvalue
    print(f"| {name} | {len(p)} | {share:.1%} | {uniform:.2g} |", flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Print the tables of docs/contamination.md."""
    parser = argparse.ArgumentParser(description="Error rates and power of contamination signs.")
    parser.add_argument("--model", type=Path, help="folder of a real decoder; the tiny ones are always run")
    parser.add_argument("--data-sets", type=int, default=200)
    given = parser.parse_args(arguments)
    started, count = time.perf_counter(), given.data_sets
    print(
        "| test on texts that no model has seen | data sets | p <= 0.05 | uniform (KS p) |\n|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_decoder(folder, make_texts(np.random.default_rng(0), 500), window=512)
        rows: list[tuple[str, Path, Callable[[Causal, int], list[float]]]] = [
            ("tiny random Llama", folder, made_orders)
        ]
        if given.model is not None:
            rows.append((given.model.name, given.model, drawn_orders))
        for title, own, orders in rows:
            model = open_model(own)
            report(f"{title}: item order", orders(model, count))
            for sort, p in reference_rows(model, count):
                report(f"{title}: Min-K%++ against {sort}", p)
            model.close()
    report("no model: fresh texts of the same source differ", differences(count))
    with tempfile.TemporaryDirectory() as name:
        for title, signs in zip(("trained on them", "other items"), trained_signs(Path(name)), strict=True):
            for sign in signs:
                print(
                    f"{title}: {sign.sign}: {sign.measured}, p {sign.p:.3g}, FPR {sign.false_positive_rate}"
                )
    print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
