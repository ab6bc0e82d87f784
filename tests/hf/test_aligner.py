"""The aligner of hidden states against its definition, written out over single texts and pieces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from harness.data.translation.services import WordPair
from harness.errors import UsageError
from harness_hf.encoder.aligner import EncoderAligner, link_words, open_aligner

PAIRS = [
    WordPair(
        source=tuple("The cat sat on the mat".split()), target=tuple("Paka ameketi kwenye mkeka".split())
    ),
    WordPair(source=tuple("good bad one".split()), target=tuple("Der Hund schläft neben".split())),
    WordPair(source=("yes",), target=("猫", "坐", "在")),
    WordPair(source=(), target=("no",)),
]


@pytest.fixture(scope="module", params=["bert", "xlm-roberta"])
def folder(request: pytest.FixtureRequest, folders: dict[str, Path]) -> Path:
    return folders[request.param]


@pytest.fixture(scope="module")
def aligner(folder: Path) -> Iterator[EncoderAligner]:
    opened = open_aligner(f"hf:{folder}")
    yield opened
    opened.close()


def written_out(folder: Path, pair: WordPair, layer: int) -> dict[tuple[int, int], float]:
    """The rule of Dou and Neubig (2021), section 2.1, and awesome-align's probability."""
    load: Any = AutoModel
    make: Any = AutoTokenizer
    network, tokenizer = load.from_pretrained(folder).eval(), make.from_pretrained(folder)
    vectors, owners = [], []
    for words in (pair.source, pair.target):
        pieces = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in words]
        owners.append([number for number, own in enumerate(pieces) for _ in own])
        ids = [tokenizer.cls_token_id, *[piece for own in pieces for piece in own], tokenizer.sep_token_id]
        with torch.inference_mode():
            states = network(torch.tensor([ids]), output_hidden_states=True).hidden_states[layer][0, 1:-1]
        vectors.append(states.double())
    products = vectors[0] @ vectors[1].T
    forward, backward = products.softmax(dim=1), products.softmax(dim=0)
    a = (products / len(owners[1]) ** 0.5).softmax(dim=1)
    b = (products / len(owners[0]) ** 0.5).softmax(dim=0)
    found: dict[tuple[int, int], float] = {}
    for i, one in enumerate(owners[0]):
        for j, other in enumerate(owners[1]):
            if forward[i, j] > 0.001 and backward[i, j] > 0.001:
                probability = float(2 * a[i, j] * b[i, j] / (a[i, j] + b[i, j]))
                found[one, other] = max(found.get((one, other), 0.0), probability)
    return found


def test_links_are_those_of_the_definition(folder: Path, aligner: EncoderAligner) -> None:
    assert aligner.layer == 4, "depth / 2 + 2"
    found = aligner.align(PAIRS)
    for pair, alignment in zip(PAIRS[:3], found, strict=False):
        expected = written_out(folder, pair, 4)
        assert expected, "the case would show nothing"
        own = {(link.source, link.target): link.probability for link in alignment.links}
        assert list(own) == list(expected), "the same links in the same order"
        assert list(own.values()) == pytest.approx(list(expected.values()), abs=1e-4)
    assert found[3].links == ()


def test_a_pair_does_not_depend_on_the_others(aligner: EncoderAligner) -> None:
    together = aligner.align(PAIRS)
    for pair, alignment in zip(PAIRS, together, strict=True):
        (alone,) = aligner.align([pair])
        assert [(link.source, link.target) for link in alone.links] == [
            (link.source, link.target) for link in alignment.links
        ]


def test_sentences_longer_than_the_model_are_aligned_whole(aligner: EncoderAligner) -> None:
    words = tuple("The cat sat on the warm mat and the dog slept near the door".split()) * 6
    (found,) = aligner.align([WordPair(source=words, target=words)])
    assert {link.source for link in found.links} == set(range(len(words)))


def test_equal_vectors_are_linked_to_themselves() -> None:
    vectors = np.eye(3, dtype=np.float32) * 10
    found = link_words(vectors, vectors, [0, 1, 1], [0, 0, 1])
    assert [(link.source, link.target) for link in found] == [(0, 0), (1, 0), (1, 1)]
    assert all(link.probability > 0.99 for link in found)


def test_the_layer_may_be_named(folder: Path) -> None:
    opened = open_aligner(f"hf:{folder}@2")
    assert opened.layer == 2
    assert opened.identity()["aligner.layer"] == "2"
    opened.close()


@pytest.mark.parametrize("reference", ["vllm:x", "hf:x@two"])
def test_other_references_are_rejected(reference: str) -> None:
    with pytest.raises(UsageError):
        open_aligner(reference)
