"""Every bad input ends in one sentence that names the thing and the next step, and in the right exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Cli


@pytest.mark.parametrize(
    "command",
    ["eval --tasks xnly --model baseline:majority", "--debug eval --tasks xnly", "models basline --debug"],
)
def test_the_traceback_is_shown_only_on_request(cli: Cli, command: str) -> None:
    status, _, err = cli(*command.split())
    assert status == 2
    assert ("Traceback (most recent call last)" in err) == ("--debug" in command)
    assert err.splitlines()[-1].startswith("Error: No ")


def test_help_without_a_command_is_wrong_usage_and_with_one_is_not(cli: Cli) -> None:
    assert cli()[0] == 2
    assert cli("--help")[0] == cli("-h")[0] == cli("help")[0] == 0
    assert cli()[1] == cli("--help")[1]
    for command in ("eval", "plan", "score", "report", "tasks", "models", "plugins", "languages"):
        status, out, err = cli(command, "--help")
        assert (status, err) == (0, "")
        assert f"harness {command}" in out


# Faulty data: the cell fails with file and line, the others stay, the status is 1 --------------------------

_TSV = "He sleeps.\tHe is awake.\tcontradiction\n"
_CONLLU = "# sent_id = 1\n1\tdog\tdog\tNOUN\t_\t_\t0\troot\t_\t_\n\n"


def _squad(answer: str, start: int) -> str:
    question = {"id": "q1", "question": "Wer?", "answers": [{"text": answer, "answer_start": start}]}
    paragraph = {"context": "Anna schläft.", "qas": [question]}
    return json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": [paragraph]}]})


@pytest.mark.parametrize(
    ("task", "name", "content", "reason"),
    [
        ("xnli", "xnli/test-de.tsv", _TSV + "one\ttwo\n", "{file}:2: expected 3 columns"),
        ("xnli", "xnli/test-de.tsv", _TSV + "a\tb\tneutrall\n", "{file}:2: unknown label 'neutrall'"),
        ("xnli", "xnli/test-de.tsv", _TSV.encode() + b"Stra\xdfe\tb\tneutral\n", "{file}:2: expected UTF-8"),
        ("udpos", "udpos/test-de.tsv", "Hund\tNOUN\nbellt\tVERBB\n\n", "'VERBB'"),
        ("xquad", "xquad/xquad.de.json", _squad("Anna", 3), "'Anna'"),
        ("xquad", "xquad/xquad.de.json", '{"data": []}', "The test split of 'xquad' in 'de' holds no items."),
    ],
)
def test_faulty_data(cli: Cli, task: str, name: str, content: str | bytes, reason: str) -> None:
    good = {
        "xnli/train-en.tsv": _TSV,
        "xnli/test-sw.tsv": _TSV,
        "udpos/train-en.tsv": "dog\tNOUN\n\n",
        "udpos/test-fr.tsv": "chien\tNOUN\n\n",
        "squad/train-v1.1.json": _squad("Anna", 0),
        "xquad/xquad.ar.json": _squad("Anna", 0),
    }
    for path, text in {**good, name: content}.items():
        Path("data", path).parent.mkdir(parents=True, exist_ok=True)
        Path("data", path).write_bytes(text.encode() if isinstance(text, str) else text)
    other = {"xnli": "sw", "udpos": "fr", "xquad": "ar"}[task]
    status, out, err = cli(
        *("eval", "--tasks", f"{task}:de+{other}", "--model", "baseline:majority", "--data", "data"),
        *("--output", "run", "--json", "rows.json"),
    )
    assert status == 1
    assert "Traceback" not in out + err
    rows = {row["language"]: row for row in json.loads(Path("rows.json").read_text(encoding="utf-8"))}
    assert (rows["de"]["status"], rows[other]["status"]) == ("failed", "ok")
    assert reason.format(file=f"data/{name}") in rows["de"]["reason"]
    assert f"data/{name}" in rows["de"]["reason"] or "holds no items" in rows["de"]["reason"]
    assert f"{task}:de failed: " in err


@pytest.mark.parametrize(("given", "right"), [("data/xnli", "data"), ("up", "up/data")])
def test_a_data_folder_one_level_off_is_reported_with_the_right_one(cli: Cli, given: str, right: str) -> None:
    Path(right, "xnli").mkdir(parents=True)
    for code in ("de", "fr"):
        Path(right, f"xnli/test-{code}.tsv").write_text(_TSV, encoding="utf-8")
    status, _, err = cli(
        "eval", "--tasks", "xnli:de,xnli:fr", "--model", "baseline:majority", "--data", given
    )
    assert status == 2
    assert err.endswith(f"It is in {right}: run with --data {right}. (Likewise: fr.)\n")


def test_no_training_split(cli: Cli) -> None:
    Path("data/xnli").mkdir(parents=True)
    Path("data/xnli/test-de.tsv").write_text(_TSV, encoding="utf-8")
    status, _, err = cli("eval", "--tasks", "xnli:de", "--model", "baseline:majority", "--data", "data")
    assert status == 2
    assert "(1) No data of 'mnli' in 'en' (train): looked for xnli/train-en.tsv or " in err.splitlines()[-1]
