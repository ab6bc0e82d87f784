"""A tiny random classifier, and runs of it on the shipped sample."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from harness.api import evaluate
from harness.storage.run_folder import Run

LABELS = ("contradiction", "entailment", "neutral")
CORPUS = [
    "The cat sat on the warm mat, and the dog slept near the door.",
    "She bought two books at the market because her brother asked for them.",
    "Der Hund schläft neben der Tür, die Katze sitzt auf der Matte.",
    "猫坐在门边的垫子上。",
    "Paka ameketi kwenye mkeka karibu na mlango.",
    "我们的人是在有了不这他你就说也要去大来到和上会一个",
]
ENTRY_POINTS = """[harness]
translation = harness_translation
[harness.commands]
overlap = harness_translation.overlap.command:app
"""


def vocabulary(special: Sequence[str]) -> dict[str, int]:
    """Return every second word of the corpus and all characters: a trained one differs from process to process."""
    words = sorted({word for text in CORPUS for word in re.findall(r"\w+", text.lower())})
    characters = sorted({character for word in words for character in word})
    pieces = [*special, *words[::2], *characters, *(f"##{character}" for character in characters)]
    return {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}


def save_classifier(folder: Path) -> Path:
    """Save a random BERT classifier whose heads look at different pieces.

    Of what it gets right, some items share a premise, so that intervals have clusters.
    """
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(vocabulary(special), unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = dict(zip(("pad", "unk", "cls", "sep", "mask"), special, strict=True))
    make: Any = PreTrainedTokenizerFast
    fast = make(
        tokenizer_object=tokenizer,
        model_max_length=128,
        **{f"{key}_token": value for key, value in names.items()},
    )
    torch.manual_seed(4)
    network = BertForSequenceClassification(
        BertConfig(
            vocab_size=len(fast),
            hidden_size=32,
            num_hidden_layers=3,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=128,
            id2label=dict(enumerate(LABELS)),
            label2id={label: number for number, label in enumerate(LABELS)},
            initializer_range=0.5,
        )
    )
    network.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def classifier_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_classifier(tmp_path_factory.mktemp("classifier"))


@pytest.fixture
def translation_plugin(install_plugin: Any) -> Iterator[None]:
    """The plugin under test, installed unless the environment has it already."""
    known = {point.name for point in importlib.metadata.entry_points(group="harness.commands")}
    if "overlap" not in known:
        points = ENTRY_POINTS
        if "translation" in {point.name for point in importlib.metadata.entry_points(group="harness")}:
            points = points.partition("\n[harness.commands]")[1].lstrip() + points.partition("commands]")[2]
        install_plugin("with_overlap", "", entry_points=points)
    yield


@pytest.fixture(scope="session")
def frozen_run(classifier_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of the classifier as it stands, on the sample of XNLI in English, Swahili and Chinese."""
    folder = tmp_path_factory.mktemp("runs") / "frozen"
    return evaluate(
        "xnli",
        f"hf:{classifier_folder}",
        languages=("en", "sw", "zh"),
        data="sample",
        protocols=("frozen",),
        output=folder,
    )
