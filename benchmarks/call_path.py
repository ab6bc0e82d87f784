"""The way of one evaluation: functions from the shell to the model, and types made on it, against lm-eval and mteb.

Each program evaluates a tiny random model on XNLI's English sample in a process of its own: the harness and lm-eval by
their commands, mteb, whose command takes published tasks alone, by `mteb.evaluate`. Run: python -m benchmarks.call_path
[--peer PATH/TO/python] [--list]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measuring import record

ITEMS = Path("task_specs/harness_task_specs/sample/xnli/en.jsonl")
LABELS = ("entailment", "neutral", "contradiction")
TRACER = Path(__file__).with_name("call_path_tracer.py")
FRAMES, TYPES = 16, 70
"""The most of the harness with a fine-tuned classifier."""


def write_classifier(folder: Path, texts: Iterable[str]) -> None:
    """Write a BERT of random weights with XNLI's three labels, and a tokenizer with the words of `texts`."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = sorted({word for text in texts for word in text.lower().split()})
    vocabulary = {word: number for number, word in enumerate([*special, *words])}
    tokenizer: Any = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")],
    )
    names = {f"{word}_token": f"[{word.upper()}]" for word in ("pad", "unk", "cls", "sep", "mask")}
    fast: Any = PreTrainedTokenizerFast
    fast(tokenizer_object=tokenizer, model_max_length=64, **names).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=64,
        id2label=dict(enumerate(LABELS)),
        label2id={label: number for number, label in enumerate(LABELS)},
    )
    BertForSequenceClassification(config).save_pretrained(folder)


def trace(python: str, program: str, *arguments: str) -> dict[str, Any]:
    """Return the functions and types of one evaluation; raises `RuntimeError` with the end of a failed one's output."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        done = subprocess.run(
            [python, str(TRACER), str(answer), program, *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": folder, "HARNESS_CACHE": folder},
        )
        if not answer.is_file():
            raise RuntimeError(f"{program} failed: {(done.stderr or done.stdout)[-2000:]}")
        traced: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
        return traced


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--peer", default=".venv-peers/bin/python", help="Python that has lm-eval and mteb")
    parser.add_argument("--list", action="store_true", help="name the functions and types of the harness")
    given = parser.parse_args(arguments)
    from benchmarks.tiny_decoder import write_decoder

    rows = [json.loads(line) for line in ITEMS.read_text(encoding="utf-8").splitlines()]
    texts = [row[field] for row in rows for field in ("premise", "hypothesis")]
    with tempfile.TemporaryDirectory() as name:
        encoder, decoder, documents = (Path(name) / part for part in ("encoder", "decoder", "xnli.jsonl"))
        write_classifier(encoder, texts)
        write_decoder(decoder, texts)
        numbered = [{**row, "label": LABELS.index(row["label"])} for row in rows]
        documents.write_text("".join(json.dumps(row) + "\n" for row in numbered), encoding="utf-8")
        evaluations = {
            "harness, classifier": trace(sys.executable, "harness", str(encoder)),
            "harness, decoder": trace(sys.executable, "harness", str(decoder)),
        }
        if Path(given.peer).exists():
            evaluations["lm-eval, decoder"] = trace(given.peer, "lm-eval", str(decoder), str(documents))
            evaluations["mteb, encoder"] = trace(given.peer, "mteb", str(encoder), str(documents))
        else:
            print(f"No peer at {given.peer}; make bench installs it. Our own paths only.")
    table = Table("", "frames", "with the adapter", "types", title="From the shell to the model")
    for label, traced in evaluations.items():
        inner = [function for function in traced["functions"] if not function.startswith("harness_")]
        table.add_row(label, *map(str, (len(inner), len(traced["functions"]), len(traced["types"]))))
    Console(width=110).print(table)
    traced = evaluations["harness, classifier"]
    if given.list:
        print(" -> ".join(traced["functions"]), *traced["types"], sep="\n")
    inner = [function for function in traced["functions"] if not function.startswith("harness_")]
    record("frames from the shell to the adapter", len(inner), FRAMES)
    record("types made by one evaluation", len(traced["types"]), TYPES)


if __name__ == "__main__":
    main()
