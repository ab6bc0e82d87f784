"""Scores of an encoder-decoder: requests per CPU second against lm-eval, which runs the encoder for every choice.

A T5 with random weights ranks four short choices after each context of some 300 words; the encoder is run once per
context here. The sums must agree within 1e-3.
Run: make bench, or python -m benchmarks.seq2seq_scores [--items N] [--batch-size N]
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

from benchmarks.decoder_items import WORDS
from benchmarks.large_vocabulary import rank_in_process
from benchmarks.lm_eval_peer import ask
from benchmarks.measuring import record

CHOICES, CONTEXT_WORDS = 4, 300
FASTER, CLOSE = 2.0, 1e-3


def write_model(folder: Path) -> None:
    """Write a T5 of some millions of weights and a tokenizer that has a token for every word."""
    special = ["<pad>", "</s>", "<unk>"]
    words = [*special, *dict.fromkeys(WORDS)]
    tokenizer = Tokenizer(models.WordLevel({word: row for row, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    names = dict(zip(("pad_token", "eos_token", "unk_token"), special, strict=True))
    fast: Any = PreTrainedTokenizerFast
    fast(tokenizer_object=tokenizer, model_max_length=512, **names).save_pretrained(folder)
    torch.manual_seed(0)
    made: Any = T5Config
    config = made(
        vocab_size=len(words),
        d_model=256,
        d_kv=64,
        d_ff=1024,
        num_layers=4,
        num_heads=4,
        decoder_start_token_id=0,
    )
    T5ForConditionalGeneration(config).save_pretrained(folder)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print; without lm-eval, say what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--python", default=".venv-peers/bin/python", help="interpreter that has lm-eval")
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=16, help="lm-eval's")
    given = parser.parse_args(arguments)
    if not Path(given.python).exists():
        print(f"Encoder-decoders are not measured: there is no {given.python}; make bench makes it.")
        return
    generator = random.Random(0)
    requests = []
    for _ in range(given.items):
        context = " ".join(generator.choices(WORDS, k=CONTEXT_WORDS))
        requests += [
            (context, " " + " ".join(generator.choices(WORDS, k=size))) for size in range(1, CHOICES + 1)
        ]
    with tempfile.TemporaryDirectory() as name:
        write_model(Path(name))
        job = {"model": name, "requests": requests, "threads": 1}
        ours = rank_in_process({**job, "adapter": "hf-seq2seq"})
        theirs = ask(given.python, {**job, "job": "rank", "batch_size": given.batch_size})
    gap = max(abs(one - two) for one, two in zip(ours["sums"], theirs["sums"], strict=True))
    print(json.dumps({"harness": ours["seconds"], "lm-eval": theirs["seconds"]}))
    ratio = theirs["seconds"][0] / ours["seconds"][0]
    record("encoder-decoder: requests/CPU s of lm-eval's", ratio, FASTER, least=True)
    record("encoder-decoder: largest difference from lm-eval", gap, CLOSE)


if __name__ == "__main__":
    main()
