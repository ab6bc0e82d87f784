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
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cli.main import run_command
from tests.conftest import Cli

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

MOODS = "--tasks moods --tasks-from moods.yaml --model baseline:majority --data data"


def _commands(group: str) -> list[str]:
    """Return the commands below a heading of the list."""
    text = GOLDEN.with_name("error_commands.txt").read_text(encoding="utf-8")
    return text.partition(f"[{group}]\n")[2].partition("\n\n")[0].strip().splitlines()


WRONG_USAGE = _commands("wrong usage")
"""Found before anything is printed or written: status 2 and one line."""
LATE = _commands("late")
"""Found after the plan or the table has been printed: status 2, and the message is the last line."""
OTHERS = _commands("others")
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
