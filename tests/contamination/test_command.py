"""``harness contamination`` on the sample items, with a tiny decoder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.contamination import make_texts
from benchmarks.tiny_decoder import write_decoder

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
