"""The sizes of CG-TTB (Patil et al. 2021, table 3): of the released files, and of those that we generate."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.data.readers.conllu import read_sentences
from harness_vyakarana.colorless import generate_file
from harness_vyakarana.donors import MODES
from harness_vyakarana.grammar import Grammar
from harness_vyakarana.labels import case_labels
from harness_vyakarana.treebank import Job

SIZES = {"train": (480, 7956, 3256), "dev": (320, 5052, 2200), "test": (1596, 25304, 11472)}
"""Sentences, words and items of case marking by split of CG-TTB."""
SOURCES = {"train": "test", "dev": "dev", "test": "train"}


def size(path: Path) -> tuple[int, int, int]:
    sentences = list(read_sentences(path))
    cases = sum(label is not None for sentence in sentences for label in case_labels(sentence))
    return len(sentences), sum(len(sentence.words) for sentence in sentences), cases


@pytest.mark.parametrize("split", ["train", "dev"])
def test_released_files(data_root: Path, split: str) -> None:
    assert size(data_root / f"vyakarana/tamil/CG-TTB/{split}.conllu") == SIZES[split]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("split", sorted(SIZES))
def test_generated_files(
    data_root: Path, tmp_path: Path, grammars: dict[str, Grammar], split: str, mode: str
) -> None:
    source = data_root / f"ud/UD_Tamil-TTB/ta_ttb-ud-{SOURCES[split]}.conllu"
    target = tmp_path / "made.conllu"
    report = generate_file(Job(source=source, target=target, language="ta"), grammars["ta"], mode)
    assert size(target) == SIZES[split]
    assert report.dropped == (split == "test")
