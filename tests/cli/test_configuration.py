from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.cli.configuration import make_config
from harness.storage.run_folder import Run

Cli = Callable[..., tuple[int, str, str]]

FULL = """
tasks: [xnli, udpos]
languages: de, sw
model: baseline:char-ngram
option: {ngrams: 3, seed: 1}
data: sample
protocol: zero_shot_transfer
seeds: [1, 2]
recipe: quick
limit: 3
train-limit: 20
train_languages: en
with_baselines: true
output: run
method: null
"""


def _write(text: str | bytes) -> None:
    Path("run.yaml").write_bytes(text.encode() if isinstance(text, str) else text)


def test_a_file_says_all_that_the_command_line_can_say(cli: Cli) -> None:
    _write(FULL)
    status, _, _ = cli("eval", "--config", "run.yaml")
    assert status == 0
    config: dict[str, Any] = Run(Path("run")).manifest.config
    assert config["tasks"] == ["xnli", "udpos"]
    assert config["languages"] == ["de", "sw"]
    assert config["model"] == "baseline:char-ngram"
    assert config["options"] == {"ngrams": "3", "seed": "1"}
    assert config["data"] == {"mode": "sample", "folders": []}
    assert config["protocols"] == ["zero_shot_transfer"]
    assert (config["seeds"], config["recipe"], config["limit"], config["train_limit"]) == (
        [1, 2],
        "quick",
        3,
        20,
    )
    assert (config["train_languages"], config["with_baselines"]) == (["en"], True)
    assert Path("run/baselines/majority/results.json").is_file()


def test_the_command_line_wins_over_the_file(cli: Cli) -> None:
    _write(FULL)
    status, out, _ = cli(
        "plan", "--config", "run.yaml", "--tasks", "xquad:de", "--seeds", "7", "--json", "plan.json"
    )
    assert status == 0
    assert "char-ngram (baseline): 1 cell" in out
    [cell] = json.loads(Path("plan.json").read_text(encoding="utf-8"))
    assert (cell["task"], cell["seed"]) == ("xquad", 7)


def test_options_of_a_model_are_added_to_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("tasks: xnli\nmodel: baseline:majority\noptions: {alpha: a, beta: b}\n", encoding="utf-8")
    config = make_config({"options": ["beta=c", "trust_remote_code=true"]}, file)
    assert config.options == {"alpha": "a", "beta": "c", "trust_remote_code": "true"}


def test_plan_takes_the_file_of_eval(cli: Cli) -> None:
    _write(FULL)
    assert cli("plan", "--config", "run.yaml")[0] == 0
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        (
            "limt: 3\ntask: xnli\n",
            ["line 1: limt: unknown key; did you mean 'limit'?", "line 2: task: unknown key"],
        ),
        ("limit: abc\n", ["line 1: limit: expected a whole number, found 'abc'"]),
        ("limit: true\n", ["line 1: limit: expected a whole number, found True"]),
        ("limit: 1.5\n", ["line 1: limit: expected a whole number, found 1.5"]),
        ("tasks: 5\n", ["line 1: tasks: expected a text or a list of texts, found 5"]),
        ("languages: [no, 1]\n", ["line 1: languages: expected a text or a list of texts, found ['no', 1]"]),
        ("model: [a]\n", ["line 1: model: expected a text, found ['a']"]),
        ("with_baselines: 'no'\n", ["line 1: with_baselines: expected true or false, found 'no'"]),
        ("seeds: {a: 1}\n", ["line 1: seeds: expected a whole number or a list of them, found {'a': 1}"]),
        ("options: 5\n", ["line 1: options: expected a mapping of keys to values"]),
        (
            "a: 1\nprotocol: frozen\nprotocols: frozen\n",
            ["line 1: a: unknown key", "line 3: protocols: is given twice under two spellings"],
        ),
        ("limit: 3\nlimit: 4\n", ["line 2: the key 'limit' is given twice (first on line 1)"]),
        ("- a\n", ["line 1: expected a mapping of keys to values"]),
    ],
)
def test_all_faults_of_a_file_are_reported_with_their_lines(cli: Cli, text: str, faults: list[str]) -> None:
    _write(text)
    for command in ("eval", "plan"):
        status, out, err = cli(command, "--config", "run.yaml")
        assert (status, out) == (2, "")
        head, *printed = err.splitlines()
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        assert head == f"Error: run.yaml has {count}:"
        assert len(printed) == len(faults)
        for line, fault in zip(printed, faults, strict=True):
            assert line.startswith(f"  {fault}")


def test_a_file_that_is_no_text_is_reported(cli: Cli) -> None:
    _write("tasks: caf\xe9".encode("latin-1"))
    status, _, err = cli("plan", "--config", "run.yaml")
    assert status == 2
    assert err.startswith("Error: The configuration file 'run.yaml' is not UTF-8: ")


@pytest.mark.parametrize("seeds", ["3", "3,4", "[3, 4]"])
def test_seeds_may_be_written_in_three_ways(cli: Cli, seeds: str) -> None:
    _write(f"tasks: xnli:de\nmodel: baseline:majority\ndata: sample\nseeds: {seeds}\n")
    status, out, _ = cli("plan", "--config", "run.yaml")
    assert status == 0
    assert ("seeds 3, 4: " if "4" in seeds else "seed 3: ") in out


def test_data_folders_come_from_the_environment_where_none_are_given(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("one", "two"):
        Path(folder, "xnli").mkdir(parents=True)
    for path in ("one/xnli/train-en.tsv", "two/xnli/test-de.tsv"):
        Path(path).write_text("a\tb\tneutral\n", encoding="utf-8")
    monkeypatch.setenv("HARNESS_DATA", "one:two")
    status, out, _ = cli("plan", "--tasks", "xnli:de", "--model", "baseline:majority", "--details")
    assert status == 0
    assert "xnli/test-de.tsv in two" in out
    monkeypatch.setenv("HARNESS_DATA", "one:three")
    status, _, err = cli("plan", "--tasks", "xnli:de", "--model", "baseline:majority")
    assert (status, err.startswith("Error: The data folder 'three' does not exist.")) == (2, True)
    assert cli("plan", "--tasks", "xnli:de", "--model", "baseline:majority", "--data", "sample")[0] == 0
