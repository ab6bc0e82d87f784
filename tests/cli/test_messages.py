"""The sentences of typical errors, as a user reads them, with the kind of error and the exit status.

The golden file is the only place that holds wording: other tests assert types, fields and names. After a change that
is meant: ``HARNESS_UPDATE_GOLDEN=1 python -m pytest -n 0 tests/cli/test_messages.py``, and read the diff.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.cli.main import run_command

Cli = Callable[..., tuple[int, str, str]]

GOLDEN = Path(__file__).with_name("golden") / "messages.txt"
UPDATE = "HARNESS_UPDATE_GOLDEN"
PROMPT = "$ harness "
MASKS = (
    (re.compile(r"\b[0-9a-f]{12,64}\b"), "#" * 12),
    (re.compile(r"(/[\w.-]+)+/cwd\b"), "CWD"),
    (re.compile(r"\[Errno \d+\]"), "[Errno #]"),
)
KIND = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)(?=: |$)", re.MULTILINE)
"""The last line of a traceback: the type of the error, then what it says."""

MODEL = "--model baseline:majority --data sample"
XNLI = f"eval --tasks xnli:de {MODEL}"
MOODS = "--tasks moods --tasks-from moods.yaml --model baseline:majority --data data"

WRONG_USAGE = f"""
evl
tasks valdate
{XNLI} --limt 3
{XNLI} more
report
eval
eval --tasks , {MODEL}
eval --tasks
eval --tasks xnly {MODEL}
eval --tasks q* {MODEL}
eval --tasks xnli:sx {MODEL}
{XNLI} --train-languages zzz
{XNLI} --select-on zzz
tasks show xnly
tasks list --language sx
languages xx
{XNLI} --tasks-from absent.yaml
tasks validate absent.yaml
eval --tasks xnli
eval --tasks xnli --model majority
eval --tasks xnli --model hf:
eval --tasks xnli --model baselin:x
eval --tasks xnli --model baseline:majorty
models basline
models baseline:majorty
{XNLI} -o ngram=3
{XNLI} -o ngrams=x
{XNLI} -o ngrams=99
{XNLI} -o ngrams
{XNLI} -o =3
{XNLI} --protocol zero_shot
{XNLI} --method haed
{XNLI} --recipe quik
{XNLI} --seeds a,b
{XNLI} --seeds 1.5
{XNLI} --seeds -1
{XNLI} --seeds ,
{XNLI} --limit x
{XNLI} --limit 0
{XNLI} --train-limit -5
eval --tasks xnli --model baseline:majority --data absent
{XNLI} --data absent
{XNLI} --config absent.yaml
{XNLI} --json absent/x.json
tasks schema --output absent/x.json
report absent
report .
score absent
""".strip().splitlines()
"""Found before anything is printed or written: status 2 and one line."""

LATE = f"""
{XNLI} --languages sw
{XNLI} --languages Swahili
eval --tasks xquad:sw {MODEL}
{XNLI} --protocol frozen
{XNLI} --protocol translate_train
{XNLI} --protocol in_language
{XNLI} --method embed
plan --tasks xnli:de {MODEL} --json absent/x.json
tasks list --json absent/x.json
""".strip().splitlines()
"""Found after the plan or the table has been printed: status 2, and the message is the last line."""

OTHERS = f"""
eval {MOODS} --output run
eval --resume run --limit 3
eval --resume run --languages de
eval --resume absent
eval --resume changed-data
eval --resume no-manifest
{XNLI} --reuse absent
{XNLI} --locked absent.lock
{XNLI} --shard 3/2
{XNLI} --shard two
{XNLI} --num-processes 0
{XNLI} --batch-tokens 0
{XNLI} --shots -1
{XNLI} --protocol prompted --prompt nothing
{XNLI} --variants nothing
{XNLI} --variants tt --translator nothing
{XNLI} --gold absent.tsv
{XNLI} --config config.yaml
eval --tasks xnli:de --model hf:absent/model --data sample
eval --tasks xnli:de --model vllm:http://127.0.0.1:9/v1 --data sample
tasks validate faulty.yaml
tasks validate no-yaml.yaml
plan --tasks faulty --tasks-from faulty.yaml {MODEL}
plan --tasks moods --tasks-from moods.yaml --tasks-from moods-again.yaml {MODEL}
eval --tasks moods --tasks-from moods.yaml --model baseline:majority --data empty
eval --tasks moods --tasks-from moods.yaml --model baseline:majority --data bad-label
report run --format makdown
report damaged
score run --metrics acuracy
score run --metrics f1
score run --metrics evaluate:accuracy
merge run run --output merged
merge run other --output merged
merge run
compare run
compare run absent
compare run other --tasks nothing
compare run other --metric nothing
diagnose run --attributes lenght
diagnose run --edges nothing
board
board --from-published nothing --output board.html
board run absent --site board
journal verify absent
checklist generate nothing
checklist lint absent
treebank stats absent.conllu
treebank stats bad.conllu
submission export run exported
submission score --predictions absent --gold absent
gap run
translate --tasks xnli:sw --variants tt --translator nothing --data sample
translate --tasks xnli:sw --variants qq --translator reverse --data sample
annotate report absent
new tsk acme
new task Acme-Task
new language moods
lock xnly
""".strip().splitlines()
"""Resumed and merged runs, faulty files, reports, and the commands of plugins."""

WITHOUT_PACKAGES = {"score run --metrics evaluate:accuracy --allow-code": "evaluate"}
"""Commands whose optional package is not installed: one that is imported in every run, also after other tests."""

COMMANDS = [*WRONG_USAGE, *LATE, *OTHERS, *WITHOUT_PACKAGES]

SPEC = """\
task: moods
kind: sequence_classification
version: 1
description: d
citation: c
license: l
inputs: [text]
labels: [good, bad]
metrics: [accuracy]
transfer: {stages: [moods]}
languages:
  en: {train: {local: train.jsonl, reader: jsonl}, test: {local: en.jsonl, reader: jsonl}}
  de: {test: {local: de.jsonl, reader: jsonl}}
"""
FAULTY_SPEC = """\
task: faulty
kind: span_extraction
version: one
description: d
citation: c
licence: l
metrics: [f1]
languages:
  en:
    test: {loacl: a}
"""
ITEMS = '{"text": "fine", "label": "good"}\n{"text": "poor", "label": "bad"}\n'


def _write_files(folder: Path) -> None:
    files = {
        "moods.yaml": SPEC,
        "moods-again.yaml": SPEC,
        "faulty.yaml": FAULTY_SPEC,
        "no-yaml.yaml": "task: [a\n",
        "config.yaml": "tasks: xnli\nlimits: 3\n",
        "bad.conllu": "1\tdog\tdog\n\n",
        "empty/readme": "",
        **{f"{data}/{name}.jsonl": ITEMS for data in ("data", "bad-label") for name in ("train", "en", "de")},
        "bad-label/de.jsonl": ITEMS.replace('"bad"', '"bda"'),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with specs, data, and runs of which some are damaged."""
    folder = tmp_path_factory.mktemp("messages") / "cwd"
    folder.mkdir()
    _write_files(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(folder.parent / "cache"))
        patch.chdir(folder)
        assert run_command(["eval", *MOODS.split(), "--output", "run"]) == 0
        assert run_command(["eval", *MOODS.split(), "--limit", "1", "--output", "other"]) == 0
        for name in ("changed-data", "no-manifest", "damaged"):
            shutil.copytree("run", name)
        _damage(folder)
        yield folder


def _damage(folder: Path) -> None:
    (folder / "no-manifest/manifest.json").unlink()
    (folder / "damaged/results.json").write_text('{"schema": 1', encoding="utf-8")
    path = folder / "changed-data/manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    for split in manifest["resolved"]["data"]:
        split["digest"] = "0" * len(split["digest"])
    path.write_text(json.dumps(manifest), encoding="utf-8")


def _blocks() -> dict[str, str]:
    """Return the block of each command in the golden file."""
    text = GOLDEN.read_text(encoding="utf-8") if GOLDEN.exists() else ""
    blocks = [block.strip("\n") for block in text.split("\n\n") if block.strip()]
    return {block.partition("\n")[0].removeprefix(PROMPT): block for block in blocks}


def _sentences(err: str) -> tuple[str, str]:
    """Return the kind of the error and its message; "-" where it is no exception that ends the command."""
    before, marked, message = f"\n{err}".rpartition("\nError: ")
    if not marked:
        failed = [line for line in err.splitlines() if " failed: " in line]
        return "-", "\n".join(failed) or err.strip()
    kinds = KIND.findall(before) if "Traceback (most recent call last)" in before else []
    return kinds[-1] if kinds else "-", f"Error: {message.strip()}"


def _check(command: str, status: int, err: str) -> None:
    """Compare one block with the golden file, or write it there."""
    kind, message = _sentences(err)
    for pattern, mask in MASKS:
        message = pattern.sub(mask, message)
    found = f"{PROMPT}{command}\n{status} {kind}\n{message}"
    if os.environ.get(UPDATE):
        blocks = {**_blocks(), command: found}
        kept = [blocks[name] for name in COMMANDS if name in blocks]
        GOLDEN.write_text("\n\n".join(kept) + "\n", encoding="utf-8")
    assert found == _blocks().get(command), f"if that is meant, run with {UPDATE}=1"


@pytest.mark.parametrize("command", WRONG_USAGE)
def test_wrong_usage(cli: Cli, command: str) -> None:
    status, out, err = cli(*command.split())
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert list(Path.cwd().iterdir()) == [], "nothing is left behind"


@pytest.mark.parametrize("command", LATE)
def test_what_the_plan_shows_to_be_impossible(cli: Cli, command: str) -> None:
    status, _, err = cli(*command.split())
    assert status == 2
    assert err.splitlines()[-1].startswith("Error: ")
    assert list(Path.cwd().iterdir()) == [], "nothing is left behind"


@pytest.mark.parametrize("command", COMMANDS)
def test_message(cli: Cli, prepared: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    if command in {*OTHERS, *WITHOUT_PACKAGES}:
        shutil.copytree(prepared, Path.cwd(), dirs_exist_ok=True)
    if command in WITHOUT_PACKAGES:
        monkeypatch.setitem(sys.modules, WITHOUT_PACKAGES[command], None)
    status, _, err = cli("--debug", *command.split())
    assert status in {1, 2}
    _check(command, status, err)


def test_the_golden_file_holds_these_commands_only() -> None:
    assert list(_blocks()) == COMMANDS
    assert len(set(COMMANDS)) == len(COMMANDS)
