"""Texts in Latin letters, of languages that have others, are found, counted, and kept, skipped or written anew."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.languages.detection import is_romanised
from harness.storage.run_folder import Run

Cli = Callable[..., tuple[int, str, str]]
Log = Callable[[], Counter[str]]
HINDI = (("मैं घर गया।", "वह घर पर है।"), ("Maine pizza khatam kiya, 2 minute mein!", "उसने पिज़्ज़ा खाया।"))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["Maine Pizza ko 2 minutes khatam kiya.", "pizza"], True),
        (["मैं pizza खाता हूँ", "café", "2020", "...", ""], False),
    ],
)
def test_the_rule_of_the_paper(texts: list[str], expected: bool) -> None:
    assert [is_romanised(text) for text in texts] == [expected] * len(texts)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "xnli").mkdir(parents=True)
    for code, rows in (("hi", HINDI), ("en", (("I went home.", "He is home."), ("I ate.", "He ate pizza.")))):
        text = "".join(f"{premise}\t{hypothesis}\tneutral\n" for premise, hypothesis in rows)
        (folder / "xnli" / f"test-{code}.tsv").write_text(text, encoding="utf-8")
    (folder / "multinli").mkdir()
    (folder / "multinli" / "mnli-train.tsv").write_text(
        "It is.\tIt is not.\tcontradiction\n" * 4, encoding="utf-8"
    )
    return folder


def translated(cli: Cli, data: Path, folder: Path, *given: str) -> tuple[str, list[list[str]]]:
    selection = ("--tasks", "xnli:hi", "--data", data, "--variants", "tt,te", "--translator", "m=mortal")
    status, out, err = cli("translate", *selection, "--output", folder, *given)
    assert status == 0, err
    lines = (folder / "xnli" / "tt-m" / "hi.jsonl").read_text(encoding="utf-8").splitlines()
    return out, [[json.loads(line)["premise"], json.loads(line)["hypothesis"]] for line in lines]


def test_they_are_kept_and_counted_or_skipped(cli: Cli, log: Log, data: Path, tmp_path: Path) -> None:
    out, rows = translated(cli, data, tmp_path / "kept")
    assert "hi: 1 of 4 texts are romanised." in out
    assert rows == [[f"en {text}" for text in row] for row in HINDI]
    [romanised] = (tmp_path / "kept" / "romanised.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(romanised) == {"language": "hi", "text": HINDI[1][0], "changed": HINDI[1][0]}
    assert json.loads((tmp_path / "kept" / "card.json").read_text(encoding="utf-8"))["romanised"] == 1
    _, rows = translated(cli, data, tmp_path / "skipped", "--romanised", "skip")
    assert rows == [[f"en {text}" for text in HINDI[0]]]
    selection = ("--tasks", "xnli:hi", "--data", data, "--translator", "m=mortal")
    assert cli("translate", *selection, "--romanised", "skipp")[0] == 2


def test_a_translator_writes_them_in_their_script(cli: Cli, log: Log, data: Path, tmp_path: Path) -> None:
    _, rows = translated(cli, data, tmp_path / "anew", "--romanised", "reverse")
    native = " ".join(reversed(HINDI[1][0].split()))
    assert rows == [[f"en {text}" for text in HINDI[0]], [f"en {native}", f"en {HINDI[1][1]}"]]
    [found] = (tmp_path / "anew" / "romanised.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(found)["changed"] == native
    card = json.loads((tmp_path / "anew" / "card.json").read_text(encoding="utf-8"))
    [tt] = [split for split in card["splits"] if split["variant"] == "tt"]
    chain = [(step["step"], step["id"]) for step in tt["chain"]]
    assert chain == [("en->hi", "reverse"), ("hi->en", "mortal 1")]


def test_a_run_records_it(cli: Cli, log: Log, data: Path, tmp_path: Path) -> None:
    status, _, err = cli(
        *("eval", "--tasks", "xnli:hi", "--data", data, "--variants", "tt", "--translator", "m=mortal"),
        *("--model", "baseline:random", "--romanised", "reverse", "--output", tmp_path / "run"),
    )
    assert status == 0, err
    assert "hi: 1 of 4 texts are romanised." in err
    assert "hi: 1 of 4 texts are romanised." in Run(tmp_path / "run").results.notes
    [cell] = Run(tmp_path / "run").cells
    assert cell.data["translated"]["romanised"] == "reverse"
