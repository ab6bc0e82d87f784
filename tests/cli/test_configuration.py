"""Settings of a run from its file, the environment and the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli.option import make_config
from harness.storage.run_folder import Run
from tests.conftest import Cli

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
    status, out, err = cli("plan", "--config", "run.yaml")
    assert (status, out) == (2, "")
    _, *printed = err.splitlines()
    assert len(printed) == len(faults)
    assert all(line.startswith(f"  {fault}") for line, fault in zip(printed, faults, strict=True))
    _write("tasks: caf\xe9".encode("latin-1"))
    status, _, err = cli("plan", "--config", "run.yaml")
    assert (status, "is not UTF-8" in err) == (2, True)


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


GIVEN = ("--model", "baseline:majority", "--recipe", "quick")


def _copa(name: str, question: str) -> None:
    path = Path("data/xcopa") / name
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = {"premise": "p", "choice1": "a", "choice2": "b"}
    lines = [json.dumps({**texts, "question": question, "label": n % 2, "idx": n}) + "\n" for n in range(4)]
    path.write_text("".join(lines), encoding="utf-8")


def _released() -> None:
    _copa("data/et/test.et.jsonl", "cause")
    _copa("data/tr/test.tr.jsonl", "effect")
    for split in ("train", "val"):
        _copa(f"copa-en/{split}-en.jsonl", "cause")
    path = Path("data/siqa/socialIQa_v1.4_trn.jsonl")
    path.parent.mkdir()
    answers = {f"answer{letter}": letter for letter in "ABC"}
    path.write_text(json.dumps({"context": "c", "question": "q", **answers, "correct": "A"}) + "\n")


def test_both_versions_of_a_task_stand_side_by_side(cli: Cli) -> None:
    _released()
    arguments = ("--tasks", "xcopa:tr", "--data", "data", "--variants", "original,aligned_question")
    status, out, err = cli("eval", *GIVEN, *arguments, "--out", "run")
    assert status == 0, err
    run = Run(Path("run"))
    assert [cell.view for cell in run.cells] == [{}, {"variant": "aligned_question"}]
    assert run.manifest.config["variants"] == ["original", "aligned_question"]
    assert "variant=aligned_question" in out


def test_the_configuration_file_names_variants_too(cli: Cli) -> None:
    _released()
    Path("run.yaml").write_text(
        "tasks: xcopa:tr\nmodel: baseline:majority\ndata: data\nvariants: aligned_question\nwith-published: false\n",
        encoding="utf-8",
    )
    status, _, err = cli("plan", "--config", "run.yaml", "--json", "plan.json")
    assert status == 0, err
    [cell] = json.loads(Path("plan.json").read_text(encoding="utf-8"))
    assert cell["view"] == {"variant": "aligned_question"}
    Path("run.yaml").write_text("variants: 5\nwith_published: often\n", encoding="utf-8")
    status, _, err = cli("plan", "--config", "run.yaml")
    assert status == 2
    assert "variants: expected a text or a list of texts, found 5" in " ".join(err.split())
    assert "with_published: expected true or false, found 'often'" in " ".join(err.split())


def test_a_variant_that_no_task_has_leaves_nothing_to_run(cli: Cli) -> None:
    status, _, err = cli("eval", *GIVEN, "--tasks", "xcopa:tr", "--data", "sample", "--variants", "aligned")
    assert status != 0
    assert "task 'xcopa' has no variant 'aligned'; it has: original, aligned_question" in " ".join(
        err.split()
    )
