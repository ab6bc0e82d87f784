"""Labels of words and sentences, and their counts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, strategies as st

from harness.data.readers.conllu import Sentence, TreebankError, read_sentences
from harness_vyakarana.code_switch import respell, spelling_variants
from harness_vyakarana.colorless import generate_file
from harness_vyakarana.donors import MODES
from harness_vyakarana.grammar import Grammar
from harness_vyakarana.labels import (
    agreement_items,
    case_labels,
    depth_label,
    pos_labels,
    strict_agreement_items,
)
from harness_vyakarana.treebank import Job


@st.composite
def trees(draw: st.DrawFn) -> list[int]:
    """Heads of a random tree under a random numbering of its words."""
    count = draw(st.integers(1, 12))
    order = draw(st.permutations(range(1, count + 1)))
    heads = [0] * count
    for position, number in enumerate(order[1:], start=1):
        heads[number - 1] = order[draw(st.integers(0, position - 1))]
    return heads


def read(heads: Sequence[int]) -> Sentence | None:
    """Return the sentence of these heads, or None if they are no tree."""
    lines = [f"{number}\ta\t_\tX\t_\t_\t{head}\t_\t_\t_\n" for number, head in enumerate(heads, start=1)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.conllu"
        path.write_text("".join(lines) + "\n")
        try:
            return next(read_sentences(path))
        except TreebankError:
            return None


def naive_depth(heads: Sequence[int], number: int) -> int:
    head = heads[number - 1]
    return 0 if head == 0 else 1 + naive_depth(heads, head)


@given(trees())
def test_depth_is_the_longest_path(heads: list[int]) -> None:
    sentence = read(heads)
    assert sentence is not None
    assert depth_label(sentence) == max(naive_depth(heads, number) for number in range(1, len(heads) + 1))


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6))
def test_what_is_no_tree_is_found(heads: list[int]) -> None:
    heads = [min(head, len(heads)) for head in heads]

    def reaches_root(number: int) -> bool:
        for _ in heads:
            number = heads[number - 1]
            if number == 0:
                return True
        return False

    is_tree = heads.count(0) == 1 and all(map(reaches_root, range(1, len(heads) + 1)))
    assert (read(heads) is not None) == is_tree


def test_labels_of_a_sentence(hindi: tuple[Sentence, ...]) -> None:
    sentence = hindi[2]  # मेरी बहन पुराने बाज़ार से लौटी थी ।
    assert pos_labels(sentence) == ["PRON", "NOUN", "ADJ", "NOUN", "ADP", "VERB", "AUX", "PUNCT"]
    assert case_labels(sentence) == ["Acc,Gen", "Nom", "Acc", "Acc", None, None, None, None]
    assert depth_label(sentence) == 2
    (item,) = agreement_items(sentence)
    assert (item.word, item.label) == (5, "Sing-Fem")
    (strict,) = strict_agreement_items(sentence)
    assert (strict.subject, strict.attractors) == (1, 1)


def test_an_ergative_subject_is_no_strict_item(hindi: tuple[Sentence, ...]) -> None:
    assert [item.label for item in agreement_items(hindi[0])] == ["Sing-Fem"]
    assert strict_agreement_items(hindi[0]) == []


SIZES = {"train": (480, 7956, 3256), "dev": (320, 5052, 2200), "test": (1596, 25304, 11472)}
"""Sentences, words and items of case marking by split of CG-TTB."""
SOURCES = {"train": "test", "dev": "dev", "test": "train"}


def size(path: Path) -> tuple[int, int, int]:
    sentences = list(read_sentences(path))
    cases = sum(label is not None for sentence in sentences for label in case_labels(sentence))
    return len(sentences), sum(len(sentence.words) for sentence in sentences), cases


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


@pytest.mark.parametrize(
    ("word", "others"),
    [
        ("nahin", {"naahin", "naheen", "nahi"}),
        ("phir", {"pir", "fir", "pheer"}),
        ("zyada", {"zyaada", "jyada", "zada"}),
        ("vetri", {"wetri", "vetree"}),
        ("baat", {"bat"}),
        ("k", set()),
        (".", set()),
        ("12", set()),
    ],
)
def test_variants(word: str, others: set[str]) -> None:
    assert set(spelling_variants(word)) == others


def test_all_variants_are_alike_likely() -> None:
    picked = [respell("nahin", place / 999) for place in range(999)]
    assert {word: picked.count(word) for word in spelling_variants("nahin")} == dict.fromkeys(
        spelling_variants("nahin"), 333
    )


@given(st.text(), st.floats(0, 1, exclude_max=True))
def test_any_word_is_respelt_without_vanishing(word: str, share: float) -> None:
    other = respell(word, share)
    assert bool(other) == bool(word)
    assert (other == word) == (not spelling_variants(word))
