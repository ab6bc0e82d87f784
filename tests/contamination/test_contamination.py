"""Signs of contamination: measured, tested, and shown by the command."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks.contamination import make_texts, material, trained_signs
from benchmarks.tiny_decoder import write_decoder
from harness import AdapterError
from harness.models import Generated, LikelihoodAnswer, LikelihoodRequest, Prompt
from harness_contamination.signs import (
    Sign,
    difference_p,
    halves,
    measure_signs,
    min_k,
    order_rate,
    order_test,
    overlap,
    random_orders,
    rank_rate,
    rank_test,
    sign_rows,
    similarity,
)

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


def test_orders_are_those_of_the_file_and_permutations_that_a_shard_always_gets() -> None:
    orders = random_orders(8, 20, 3)
    assert orders[0] == list(range(8))
    assert all(sorted(one) == orders[0] for one in orders)
    assert len({tuple(one) for one in orders}) > 15
    assert random_orders(8, 20, 3) == orders != random_orders(8, 20, 4)


def test_item_order_is_the_paper_s_t_test() -> None:
    values = np.random.default_rng(0).normal(size=(12, 21))
    values[:, 0] += 0.5
    advantage = values[:, 0] - values[:, 1:].mean(axis=1)
    expected = stats.ttest_1samp(advantage, 0.0, alternative="greater")
    assert order_test(values) == pytest.approx((advantage.mean(), expected.pvalue))
    assert order_test(np.ones((6, 3))) == (0.0, 0.5)


def test_item_order_is_uniform_under_random_orders_and_its_rate_is_measured() -> None:
    random = np.random.default_rng(1)
    # Skewed, with a level of its own for every shard.
    sets = random.gamma(2.0, size=(400, 8, 11)) + 10 * random.normal(size=(400, 8, 1))
    p = [order_test(values)[1] for values in sets]
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(0.05, abs=0.035)
    rates = [order_rate(values) for values in sets[:60]]
    assert np.mean(rates) == pytest.approx(np.mean(np.array(p) <= 0.05), abs=0.035)


def test_the_rate_ignores_the_order_of_the_file() -> None:
    values = np.random.default_rng(2).normal(size=(10, 21))
    found = values.copy()
    found[:, 0] += 50
    assert order_test(found)[1] < 1e-6
    assert order_rate(found) == order_rate(values)


def test_ranks() -> None:
    items, fresh = [3.0, 1.0, 2.0, 5.0], [1.0, 0.0, 4.0]
    pairs = [1.0 if a > b else 0.5 if a == b else 0.0 for a, b in product(items, fresh)]
    auc, p = rank_test(items, fresh)
    assert auc == pytest.approx(np.mean(pairs))
    assert p == pytest.approx(stats.mannwhitneyu(items, fresh, alternative="greater").pvalue)
    assert rank_rate(np.random.default_rng(3).normal(size=60).tolist()) == pytest.approx(0.05, abs=0.03)
    assert rank_rate([0.0] * 20) == 0.0


def test_similarity_is_jaccard_of_trigrams() -> None:
    texts = ["maji ya moto", "maji", "猫坐在垫子上", "a", "maji ya moto"]
    grams = [{text[at : at + 3] for at in range(max(1, len(text) - 2))} for text in texts]
    expected = [[len(one & other) / len(one | other) for other in grams] for one in grams]
    assert similarity(texts) == pytest.approx(np.array(expected))


def test_texts_of_another_sort_differ_without_a_model_and_those_of_one_source_do_not() -> None:
    random = np.random.default_rng(4)
    words = ["river", "lamp", "door", "bread", "stone", "chair", "paper", "rope"]
    one = [" ".join(random.choice(words, 6)) for _ in range(240)]
    p = np.array(
        [difference_p(one[start : start + 12], one[start + 12 : start + 24]) for start in range(0, 240, 24)]
    )
    assert np.median(p) > 0.1
    assert difference_p(one[:20], [f"{text} in 2026" for text in one[20:40]]) < 0.01


Cli = Callable[..., tuple[int, str, str]]
SAMPLE = (
    "contamination",
    "--tasks",
    "xcopa:sw+it",
    "--data",
    "sample",
    "--shard-items",
    "2",
    "--permutations",
    "3",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import numpy as np

    folder = tmp_path_factory.mktemp("tiny")
    write_decoder(folder, make_texts(np.random.default_rng(0), 60))
    return folder


def test_rows_have_what_repeats_them(cli: Cli, folder: Path, tmp_path: Path) -> None:
    fresh, found, again = (tmp_path / name for name in ("fresh.tsv", "found.json", "again.json"))
    fresh.write_text(
        "\n".join(f"sw\tLeo tumenunua vitabu {number} vipya." for number in range(12)), encoding="utf-8"
    )
    asked = (*SAMPLE, "--model", f"hf:{folder}", "-o", "device=cpu", "--fresh", fresh)
    status, _, err = cli(*asked, "--json", found)
    assert status == 0, err
    rows = json.loads(found.read_text(encoding="utf-8"))
    cells = [(row["task"], row["language"], row["sign"]) for row in rows]
    assert cells == [
        ("xcopa", code, sign) for code in ("sw", "it") for sign in ("order", "min-k++", "completion")
    ]
    for row in rows:
        assert row["settings"] == {"shard_items": 2, "permutations": 3, "seed": 0, "limit": None}
        assert row["model"]["adapter"] == "hf-causal"
        assert len(row["data"]["digest"]) == 64
    swahili = {row["sign"]: row for row in rows[:3]}
    assert all(0 <= row["p"] <= row["p_holm"] <= 1 for row in swahili.values())
    assert [len(own) for own in swahili["order"]["detail"]["log_likelihoods"]] == [4] * (
        len(swahili["order"]["detail"]["shards"])
    )
    assert len(swahili["min-k++"]["detail"]["fresh_scores"]) == 12
    assert [row["p"] for row in rows[4:]] == [None, None], "Italian has no fresh texts"
    assert cli(*asked, "--json", again)[0] == 0
    assert json.loads(again.read_text(encoding="utf-8")) == rows


def test_a_limit_takes_whole_shards_of_neighbours(cli: Cli, folder: Path, tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    asked = (*SAMPLE, "--languages", "sw", "--model", f"hf:{folder}", "-o", "device=cpu", "--limit", "5")
    assert cli(*asked, "--json", found)[0] == 0
    rows = json.loads(found.read_text(encoding="utf-8"))
    assert {row["items"] for row in rows} == {4}
    assert "2 shards of 2 items" in rows[0]["reading"]


def test_a_model_without_probabilities_is_an_error(cli: Cli) -> None:
    status, _, err = cli(*SAMPLE, "--model", "baseline:majority")
    assert status == 2
    assert "baseline:majority" in err


@pytest.mark.parametrize("line", ["sw Leo ni siku njema.", "\tLeo", "sw\t "])
def test_a_fault_of_the_fresh_texts_is_named(cli: Cli, tmp_path: Path, line: str) -> None:
    fresh = tmp_path / "fresh.tsv"
    fresh.write_text(f"sw\tHabari za leo.\n{line}\n", encoding="utf-8")
    status, _, err = cli(*SAMPLE, "--model", "baseline:majority", "--fresh", fresh)
    assert status == 2
    assert "fresh.tsv:2" in err
    status, _, err = cli(*SAMPLE, "--model", "baseline:majority", "--fresh", tmp_path / "absent.tsv")
    assert (status, "absent.tsv" in err) == (2, True)


def test_without_items_there_is_nothing_to_test(cli: Cli, folder: Path, tmp_path: Path) -> None:
    status, out, err = cli(
        "contamination", "--tasks", "xcopa:sw", "--model", f"hf:{folder}", "--data", tmp_path
    )
    assert (status, out) == (2, "")
    assert "skipped: xcopa:sw" in err
