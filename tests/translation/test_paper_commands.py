"""The commands that ``docs/gaps.md`` gives for the tables and figures of the paper, run on the sample."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaModel

from tests.docs.page import DOCS

pytestmark = pytest.mark.thorough

SMALL = {
    "eval": "--data sample --recipe quick --limit 6 --train-limit 30 --languages en,de,hi,sw,ur",
    "annotate": "--data sample --size 4",
}
SCORES = """table\ttask\tmetric\tmodel\ttrain\tsplit\tvariant\ttranslator\tlang\tvalue
1\txnli\tacc\tm\tORIG\ttest\tZS\t\ten\t89.3
1\txnli\tacc\tm\tORIG\ttest\tZS\t\tsw\t72.7
"""


def _save_encoder(folder: Path) -> Path:
    """Save a random RoBERTa whose pieces are bytes, so that it reads every script."""
    make: Any = PreTrainedTokenizerFast
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    pieces = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE(vocab={piece: number for number, piece in enumerate(pieces)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    names = {
        "bos": "<s>",
        "cls": "<s>",
        "sep": "</s>",
        "eos": "</s>",
        "pad": "<pad>",
        "unk": "<unk>",
        "mask": "<mask>",
    }
    fast = make(
        tokenizer_object=tokenizer,
        model_max_length=1024,
        **{f"{key}_token": value for key, value in names.items()},
    )
    torch.manual_seed(4)
    network = RobertaModel(
        RobertaConfig(
            vocab_size=len(fast),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=1026,
            initializer_range=0.5,
        )
    )
    network.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def _commands() -> list[str]:
    page = (DOCS / "gaps.md").read_text(encoding="utf-8")
    table = page.partition("## The paper's tables and figures")[2]
    return re.findall(r"`(harness [^`]+)`", table)


def test_every_command_of_the_paper_runs(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    encoder = _save_encoder(tmp_path / "encoder")
    (tmp_path / "scores.tsv").write_text(SCORES, encoding="utf-8")
    given = {
        "MODEL": f"hf:{encoder}",
        "TRANSLATOR": "r=reverse,i=identity",
        "ENCODER": str(encoder),
        "SCORES": "scores.tsv",
    }
    commands = _commands()
    assert len(commands) > 12
    for command in commands:
        _, *words = shlex.split(re.sub(r",ur\b", "", command))  # The sample has no Urdu.
        arguments = [re.sub(r"\b[A-Z]{5,}\b", lambda name: given[name[0]], word) for word in words]
        status, out, err = cli(*arguments, *shlex.split(SMALL.get(arguments[0], "")))
        assert status == 0, (command, out, err)
    for name in ("gap-curves.svg", "table1.tex"):
        assert (tmp_path / name).is_file()
