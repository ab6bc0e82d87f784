"""Every bad input ends in one sentence that names the thing and the next step, and in the right exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Cli = Callable[..., tuple[int, str, str]]

MODEL = "--model baseline:majority --data sample"
XNLI = f"eval --tasks xnli:de {MODEL}"


@pytest.mark.parametrize(
    "command", ["eval --tasks xnly --model baseline:majority", "--debug eval --tasks xnly"]
)
def test_the_traceback_is_shown_only_on_request(cli: Cli, command: str) -> None:
    status, _, err = cli(*command.split())
    assert status == 2
    assert ("Traceback (most recent call last)" in err) == ("--debug" in command)
    assert err.splitlines()[-1].startswith("Error: No ")


def test_debug_may_stand_anywhere(cli: Cli) -> None:
    status, _, err = cli("models", "basline", "--debug")
    assert status == 2
    assert "Traceback (most recent call last)" in err


def test_help_without_a_command_is_wrong_usage_and_with_one_is_not(cli: Cli) -> None:
    assert cli()[0] == 2
    assert cli("--help")[0] == cli("-h")[0] == cli("help")[0] == 0
    assert cli()[1] == cli("--help")[1]
    for command in ("eval", "plan", "score", "report", "tasks", "models", "plugins", "languages"):
        status, out, err = cli(command, "--help")
        assert (status, err) == (0, "")
        assert f"harness {command}" in out


def test_a_spec_with_several_faults_shows_all_of_them_with_lines(cli: Cli) -> None:
    Path("mine.yaml").write_text(
        "task: mine\nkind: span_extraction\nversion: one\ndescription: d\ncitation: c\nlicence: l\n"
        "metrics: [f1]\nlanguages:\n  en:\n    test: {loacl: a}\n",
        encoding="utf-8",
    )
    faults = [
        "line 3: version: Input should be a valid integer, found 'one'",
        "line 6: licence: unknown key 'licence'; did you mean 'license'?",
        "line 10: languages.en.test.loacl: unknown key 'loacl'; did you mean 'local'?",
    ]
    status, out, err = cli("tasks", "validate", "mine.yaml")
    assert (status, out) == (2, "")
    assert err.splitlines() == ["mine.yaml: 3 faults", *(f"  {fault}" for fault in faults)]
    status, _, err = cli("plan", "--tasks", "mine", *MODEL.split(), "--tasks-from", "mine.yaml")
    assert status == 2
    assert err.splitlines() == ["Error: mine.yaml has 3 faults:", *(f"  {fault}" for fault in faults)]


def test_an_unknown_metric_in_a_spec_stops_the_run(cli: Cli) -> None:
    Path("mine.yaml").write_text(
        "task: mine\nkind: span_extraction\nversion: 1\ndescription: d\ncitation: c\nlicense: l\n"
        "metrics: [f1, exact_mach]\nlanguages: {en: {test: {sample: a}}}\n",
        encoding="utf-8",
    )
    status, _, err = cli("eval", "--tasks", "mine", *MODEL.split(), "--tasks-from", "mine.yaml")
    assert status == 2
    assert err.splitlines()[0] == "Error: mine.yaml has 1 fault:"
    assert err.splitlines()[1].startswith(
        "  line 7: metrics.1: No metric named 'exact_mach'. Did you mean 'exact"
    )


def test_unknown_and_unfit_metrics_of_score(cli: Cli) -> None:
    given = ("--limit", "2", "--train-limit", "20", "--output", "run")
    assert cli(*XNLI.split(), *given)[0] == 0
    before = Path("run/results.json").read_bytes()
    for metrics, message in (
        ("acuracy", "No metric named 'acuracy'. Did you mean 'accuracy'"),
        ("f1", "The metric 'f1' scores span_extraction; this run has sequence_classification."),
    ):
        status, out, err = cli("score", "run", "--metrics", metrics)
        assert (status, out) == (2, "")
        assert err.startswith(f"Error: {message}")
    assert Path("run/results.json").read_bytes() == before
    status, _, err = cli("report", "run", "--format", "makdown")
    assert (status, err) == (2, "Error: No report format named 'makdown'. Did you mean 'markdown'?\n")


# Faulty data: the cell fails with file and line, the others stay, the status is 1 --------------------------

_TSV = "He sleeps.\tHe is awake.\tcontradiction\n"
_CONLLU = "# sent_id = 1\n1\tdog\tdog\tNOUN\t_\t_\t0\troot\t_\t_\n\n"


def _squad(answer: str, start: int) -> str:
    question = {"id": "q1", "question": "Wer?", "answers": [{"text": answer, "answer_start": start}]}
    paragraph = {"context": "Anna schläft.", "qas": [question]}
    return json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": [paragraph]}]})


FAULTY = [
    (
        "xnli",
        "xnli/test-de.tsv",
        _TSV + "one\ttwo\n",
        "{file}:2: expected 3 columns (premise, hypothesis, label), found 2.",
    ),
    ("xnli", "xnli/test-de.tsv", _TSV + "a\tb\tc\td\n", "{file}:2: expected 3 columns"),
    (
        "xnli",
        "xnli/test-de.tsv",
        _TSV + "a\tb\tneutrall\n",
        "{file}:2: unknown label 'neutrall'",
    ),
    (
        "xnli",
        "xnli/test-de.tsv",
        _TSV.encode() + b"Stra\xdfe\tb\tneutral\n",
        "{file}:2: expected UTF-8, found the",
    ),
    ("xnli", "xnli/test-de.tsv", "", "The test split of 'xnli' in 'de' holds no items."),
    (
        "udpos",
        "udpos/test-de.tsv",
        "Hund\tNOUN\nbellt\tVERBB\n\n",
        "'VERBB'",
    ),
    (
        "udpos",
        "udpos/test-de.tsv",
        "Hund\tNOUN\nbellt\n\n",
        "{file}:2: expected a word, a tab and a tag, found 1",
    ),
    ("udpos", "udpos/test-de.tsv", "", "The test split of 'udpos' in 'de' holds no items."),
    ("xquad", "xquad/xquad.de.json", _squad("Berta", 0), "'Berta'"),
    ("xquad", "xquad/xquad.de.json", _squad("Anna", 3), "'Anna'"),
    ("xquad", "xquad/xquad.de.json", '{"data": [}', "{file}:1: expected JSON, found a fault at column 11"),
    ("xquad", "xquad/xquad.de.json", '{"data": []}', "The test split of 'xquad' in 'de' holds no items."),
]


@pytest.mark.parametrize(("task", "name", "content", "reason"), FAULTY)
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


def test_token_and_tag_counts_that_differ(cli: Cli) -> None:
    Path("data").mkdir()
    sentences = [
        {"tokens": ["Hund", "bellt"], "tags": ["NOUN", "VERB"]},
        {"tokens": ["Hund", "bellt"], "tags": ["NOUN"]},
    ]
    Path("data/de.jsonl").write_text("\n".join(map(json.dumps, sentences)) + "\n", encoding="utf-8")
    Path("mine.yaml").write_text(
        "task: mine\nkind: token_tagging\nversion: 1\ndescription: d\ncitation: c\nlicense: l\nlabels: [NOUN, VERB]\n"
        "metrics: [token_accuracy]\ntransfer: {stages: [mine]}\nlanguages:\n"
        "  de: {train: {local: de.jsonl, reader: jsonl}, test: {local: de.jsonl, reader: jsonl}}\n",
        encoding="utf-8",
    )
    status, _, err = cli(
        *("eval", "--tasks", "mine", "--tasks-from", "mine.yaml", "--model", "baseline:majority"),
        *("--data", "data", "--protocol", "in_language", "--output", "run"),
    )
    assert status == 1
    assert "mine:de failed: data/de.jsonl:2: the sentence has 2 tokens and 1 tags." in err


@pytest.mark.parametrize(("given", "right"), [("data/xnli", "data"), ("up", "up/data")])
def test_a_data_folder_one_level_off_is_reported_with_the_right_one(cli: Cli, given: str, right: str) -> None:
    Path(right, "xnli").mkdir(parents=True)
    for code in ("de", "fr"):
        Path(right, f"xnli/test-{code}.tsv").write_text(_TSV, encoding="utf-8")
    status, _, err = cli(
        "eval", "--tasks", "xnli:de,xnli:fr", "--model", "baseline:majority", "--data", given
    )
    assert status == 2
    assert err.splitlines()[-1] == (
        "Error: Nothing is left to run. (1) No data of 'xnli' in 'de' (test): looked for xnli/test-de.tsv in "
        f"{given}. It is in {right}: run with --data {right}. (Likewise: fr.)"
    )


def test_no_training_split(cli: Cli) -> None:
    Path("data/xnli").mkdir(parents=True)
    Path("data/xnli/test-de.tsv").write_text(_TSV, encoding="utf-8")
    status, _, err = cli("eval", "--tasks", "xnli:de", "--model", "baseline:majority", "--data", "data")
    assert status == 2
    assert err.splitlines()[-1] == (
        "Error: Nothing is left to run. (1) No data of 'mnli' in 'en' (train): looked for xnli/train-en.tsv or "
        "multinli/mnli-train.tsv or multinli/mnli-train.sample10k.tsv in data. Put it there, or run with --data "
        "hub (facebook/xnli, en, train)."
    )
