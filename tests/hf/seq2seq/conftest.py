"""Tiny random encoder-decoders: T5 and mT5 with relative positions, BART with 64 learned ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    MT5Config,
    MT5ForConditionalGeneration,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from harness.data.records import TextPair
from harness_hf.description import describe_seq2seq
from harness_hf.options import Seq2SeqOptions
from harness_hf.seq2seq.adapter import open_seq2seq

TEXTS = [
    "The cat sat on the warm mat, and the dog slept near the door.",
    "one two three four yes no red green blue",
    "Der Hund schläft neben der Tür, die Katze sitzt auf der Matte.",
    "यह एक छोटा वाक्य है और बिल्ली चटाई पर बैठी है।",
    "Кошка сидит на тёплом коврике у двери.",
    "猫坐在门边的垫子上。",
]
BART_POSITIONS = 64
NUMBERS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier"}
THINGS = {"cats": "Katzen", "dogs": "Hunde", "mats": "Matten", "doors": "Türen"}


def sentencepiece(special: Sequence[str], template: str, names: dict[str, str]) -> Any:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=list(special), unk_token="<unk>", show_progress=False
    )
    words = " ".join([*NUMBERS, *THINGS, *NUMBERS.values(), *THINGS.values()])
    tokenizer.train_from_iterator([*TEXTS, words, words], trainer)
    used = [(token, special.index(token)) for token in template.split() if token != "$A"]
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=used)
    make: Any = PreTrainedTokenizerFast
    return make(tokenizer_object=tokenizer, **names)


def save_t5(folder: Path, config_class: Any, model_class: Any, **changes: Any) -> None:
    special = ["<pad>", "</s>", "<unk>"]
    names = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    tokenizer = sentencepiece(special, "$A </s>", names)
    config = config_class(
        vocab_size=len(tokenizer) + 4,
        d_model=32,
        d_kv=16,
        d_ff=64,
        num_layers=2,
        num_heads=2,
        decoder_start_token_id=0,
        **changes,
    )
    torch.manual_seed(0)
    model_class(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def save_bart(folder: Path) -> None:
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    names = dict(zip(("bos_token", "pad_token", "eos_token", "unk_token"), special, strict=True))
    tokenizer = sentencepiece(special, "<s> $A </s>", names)
    config = BartConfig(
        vocab_size=len(tokenizer),
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=BART_POSITIONS,
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=2,
        init_std=0.3,
    )
    torch.manual_seed(0)
    network = BartForConditionalGeneration(config)
    torch.nn.init.normal_(network.final_logits_bias, std=2.0)
    network.generation_config.forced_bos_token_id = 0
    network.generation_config.forced_eos_token_id = None
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.fixture(scope="session")
def seq2seq_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of untrained models by family."""
    root = tmp_path_factory.mktemp("seq2seq")
    save_t5(root / "t5", T5Config, T5ForConditionalGeneration)
    gated = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
    save_t5(root / "mt5", MT5Config, MT5ForConditionalGeneration, **gated)
    save_bart(root / "bart")
    return {name: root / name for name in ("t5", "mt5", "bart")}


@pytest.fixture(scope="session")
def open_seq2seq_folder() -> Callable[..., Any]:
    """A function that opens a folder with the adapter's options."""

    def open_(folder: Path, **options: Any) -> Any:
        given = Seq2SeqOptions(**options)
        return open_seq2seq(describe_seq2seq(str(folder), given), given)

    return open_


@pytest.fixture(params=["t5", "mt5", "bart"])
def seq2seq(
    request: pytest.FixtureRequest,
    seq2seq_folders: dict[str, Path],
    open_seq2seq_folder: Callable[..., Any],
) -> Any:
    """An untrained model of each family."""
    return open_seq2seq_folder(seq2seq_folders[request.param])


@pytest.fixture
def t5(seq2seq_folders: dict[str, Path], open_seq2seq_folder: Callable[..., Any]) -> Any:
    """An untrained T5."""
    return open_seq2seq_folder(seq2seq_folders["t5"])


@pytest.fixture(scope="session")
def phrases() -> list[TextPair]:
    """Sixteen English phrases; the German ones have their words the other way round."""
    return [
        TextPair(id=f"{number} {thing}", source=f"{number} {thing}", target=f"{other} {german}")
        for number, german in NUMBERS.items()
        for thing, other in THINGS.items()
    ]
