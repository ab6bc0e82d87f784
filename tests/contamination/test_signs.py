"""Signs of cells: what is asked, what is not readable, and a model that was trained on the items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.contamination import material, trained_signs
from harness import AdapterError
from harness.models import Generated, LikelihoodAnswer, LikelihoodRequest, Prompt
from harness_contamination.signs import Sign, halves, measure_signs, min_k, overlap, sign_rows

WORDS = ["river", "lamp", "door", "bread", "stone", "chair", "paper", "rope", "glass", "field"]
MADE = [
    f"{number} {WORDS[number % 10]}s are by the {WORDS[number * 7 // 3 % 10]} and the {WORDS[number * 3 // 2 % 10]}."
    for number in np.random.default_rng(0).choice(np.arange(100, 1000), 78, replace=False).tolist()
]
TEXTS, FRESH = MADE[:48], MADE[48:]


class Memory:
    """Prefers the neighbours that it knows, and completes the texts that it knows."""

    def __init__(self, known: Sequence[str] = ()) -> None:
        self.known = list(known)
        self.asked: list[str] = []

    def loglikelihood(self, requests: Sequence[LikelihoodRequest]) -> list[LikelihoodAnswer]:
        texts = [request.continuation for request in requests]
        self.asked += texts
        seen = "\n".join(self.known)
        pairs = [zip(text.split("\n"), text.split("\n")[1:], strict=False) for text in texts]
        return [
            LikelihoodAnswer(
                token_logprobs=(hash_of(text), float(sum("\n".join(pair) in seen for pair in own))),
                is_greedy=False,
                byte_length=1,
            )
            for text, own in zip(texts, pairs, strict=True)
        ]

    def standard_scores(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        return [(float(text in self.known) + hash_of(text),) for text in texts]

    def token_counts(self, prompts: Sequence[Prompt]) -> list[int]:
        return [len(str(prompt)) for prompt in prompts]

    def context_length(self) -> int | None:
        return None

    def generate(self, prompts: Sequence[Prompt], options: Any) -> list[Generated]:
        texts = [
            next((own[len(str(prompt)) :] for own in self.known if own.startswith(str(prompt))), "?")
            for prompt in prompts
        ]
        return [Generated(text=text, tokens=1, finished=True) for text in texts]


def hash_of(text: str) -> float:
    """Return a small number that depends on the text alone."""
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest()) / 2**36


def measured(adapter: Any, **changes: Any) -> dict[str, Sign]:
    cell = replace(material(TEXTS, FRESH), **changes)
    return {sign.sign: sign for sign in measure_signs(adapter, cell, 10)}


def test_what_a_model_has_seen_is_found() -> None:
    known, new = measured(Memory(TEXTS)), measured(Memory())
    for name, sign in known.items():
        assert sign.p is not None and sign.p < 0.001, name
        assert sign.unreadable == "", name
        assert sign.false_positive_rate is not None and sign.false_positive_rate < 0.15, name
        other = new[name]
        assert other.p is not None and other.p > 0.05, name
    assert known["completion"].measured.startswith("48 of 48 near exact, fresh 0 of 30; AUC 1.00")


def test_shards_are_scored_in_the_order_of_the_file_first() -> None:
    adapter = Memory()
    sign = measured(adapter, drawn=[0, 2, 3, 4, 5])["order"]
    assert adapter.asked[::11] == ["\n".join(TEXTS[start : start + 8]) for start in (0, 16, 24, 32, 40)]
    assert all(sorted(text.split("\n")) == sorted(TEXTS[:8]) for text in adapter.asked[:11])
    assert (sign.items, sign.detail["shards"]) == (40, [0, 2, 3, 4, 5])


def test_a_file_whose_neighbours_are_alike_is_not_readable() -> None:
    texts = [f"{WORDS[n // 2 % 10] * 3} {n}" for n in range(48)]
    sign = {one.sign: one for one in measure_signs(Memory(texts), material(texts), 10)}["order"]
    assert sign.p is not None and sign.p < 0.001
    assert sign.model_free_p is not None and sign.model_free_p < 0.001
    assert sign.unreadable
    [low, high] = sign_rows([sign, replace(sign, p=0.5)])
    assert low["reading"] == f"Not readable: {sign.unreadable}."
    assert high["reading"] == "No evidence."


def test_without_a_reference_there_is_no_p() -> None:
    signs = measured(Memory(TEXTS), fresh=FRESH[:9])
    assert [signs[name].p for name in ("min-k++", "completion")] == [None, None]
    assert "9 fresh texts" in signs["min-k++"].unreadable
    assert signs["completion"].measured == "48 of 48 near exact, fresh 0 of 9"
    assert signs["order"].p is not None
    assert "2 shards of 8 items" in measured(Memory(), drawn=[0, 1])["order"].unreadable


def test_fresh_texts_of_another_sort_are_not_readable() -> None:
    signs = measured(Memory(TEXTS), fresh=[f"Kesho tutaenda sokoni mara ya {n}." for n in range(30)])
    assert signs["min-k++"].p is not None and signs["min-k++"].p < 0.001
    assert signs["min-k++"].unreadable and signs["completion"].unreadable


def test_an_adapter_with_fewer_abilities_and_one_that_fails_have_reasons() -> None:
    class Scores:
        def loglikelihood(self, requests: Sequence[LikelihoodRequest]) -> list[LikelihoodAnswer]:
            raise AdapterError("Too long.")

    signs = measured(Scores())
    assert [signs[name].p for name in signs] == [None, None, None]
    assert signs["order"].unreadable == "Too long"
    assert "hf-causal" in signs["min-k++"].unreadable


def test_holm_counts_all_tests() -> None:
    sign = Sign(task="t", language="sw", sign="order", items=40, data={})
    signs = [replace(sign, p=p) for p in (0.01, 0.04, 0.03)] + [replace(sign, p=0.001, unreadable="alike")]
    rows = sign_rows([*signs, replace(sign, unreadable="too short")])
    assert [row["p_holm"] for row in rows] == pytest.approx([0.03, 0.06, 0.06, 0.004, None])
    assert [row["reading"].split()[0] for row in rows] == ["Evidence:", "No", "No", "Not", "Not"]


def test_halves_and_overlap() -> None:
    assert halves("one two three four") == ("one two three", " four")
    assert halves("猫坐在门边的垫子上") == ("猫坐在门边", "的垫子上")
    for text in ("one two three four", "猫坐在门边的垫子上", "a", "ab "):
        assert "".join(halves(text)) == text
    assert overlap("and so  three four!", " three four") == 1.0
    assert overlap("xx three", "three four") == 0.5
    assert overlap("", "three") == 0.0


def test_min_k_takes_the_lowest_fifth() -> None:
    assert min_k([5.0, -1.0, 3.0, -3.0, 2.0, 0.0, 1.0, 9.0, 8.0, 7.0]) == -2.0
    assert min_k([4.0, 2.0]) == 2.0


@pytest.mark.thorough
def test_a_model_that_was_trained_on_the_items_is_found_and_other_items_are_not(tmp_path: Path) -> None:
    seen, unseen = trained_signs(tmp_path, steps=140)
    assert [row["reading"].split()[0] for row in sign_rows(seen)] == ["Evidence:"] * 3
    assert [row["reading"] for row in sign_rows(unseen)] == ["No evidence."] * 3
