"""Errors of resuming a run or reusing its answers: other data, specs, models, a folder in use."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.storage.files import file_digest
from harness.storage.run_folder import Run

from ..conftest import Cli
from .command import wait_until
from .conftest import TASKS
from .evaluation import answers, requests
from .mood_spec import MOOD

Edit = Callable[[Path, Callable[[Any], None]], None]
RUN = Path("run")
REUSE = "--reuse run"
SPEC = f"""\
{MOOD.replace("task: mood", "task: moods")}transfer: {{stages: [moods]}}
languages:
  en: {{train: {{local: train.jsonl, reader: jsonl}}, test: {{local: en.jsonl, reader: jsonl}}}}
  de: {{test: {{local: de.jsonl, reader: jsonl}}}}
"""
MOODS = (
    "eval",
    "--tasks",
    "moods",
    "--tasks-from",
    "moods.yaml",
    "--data",
    "data",
    "--model",
    "baseline:majority",
)
READ_DIFFERENTLY = "changed since the run began: the same files are read in another way"
ITEMS = '{"text": "fine", "label": "good"}\n{"text": "poor", "label": "bad"}\n'


def _rejected(cli: Cli, *further: str, status: int = 2) -> str:
    before = {path: path.read_bytes() for path in RUN.rglob("*") if path.is_file()}
    found, _, err = cli("eval", "--resume", "run", *further)
    assert found == status, err
    assert "Traceback" not in err
    assert {path: path.read_bytes() for path in RUN.rglob("*") if path.is_file()} == before
    return err


def _evaluate_moods(cli: Cli, spec: str = SPEC) -> None:
    """Run a task of its own in the working folder."""
    Path("data").mkdir()
    Path("moods.yaml").write_text(spec, encoding="utf-8")
    for name in ("train", "en", "de"):
        Path(f"data/{name}.jsonl").write_text(ITEMS, encoding="utf-8")
    status, _, err = cli(*MOODS, "--output", "run")
    assert status == 0, err


# Data, specs, versions, models ------------------------------------------------------------------------


@pytest.fixture
def moods(cli: Cli) -> Mapping[str, Path]:
    """Files of a run of a task of its own."""
    _evaluate_moods(cli)
    return {"spec": Path("moods.yaml"), "en": Path("data/en.jsonl"), "train": Path("data/train.jsonl")}


@pytest.mark.parametrize("name", ["en", "train"])
def test_a_data_file_changed(moods: Mapping[str, Path], cli: Cli, name: str) -> None:
    moods[name].write_text(ITEMS.replace("poor", "bad!"), encoding="utf-8")
    err = _rejected(cli, status=1)
    digests = re.search(r"\(digest ([0-9a-f]{12,64}) then, ([0-9a-f]{12,64}) now\)", err)
    assert digests is not None
    assert digests[1] != digests[2]
    assert f"The data of 'moods' in 'en' ({'test' if name == 'en' else 'train'}) changed" in err
    assert REUSE in err
    moods[name].write_text(ITEMS, encoding="utf-8")
    assert cli("eval", "--resume", "run")[0] == 0


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("en.jsonl, ", "en.jsonl, label_map: {fine: good}, ", f"'moods' in 'en' (test) {READ_DIFFERENTLY}"),
        ("license: cc0-1.0", "license: other", "The document of the task 'moods' changed"),
        ("de: {test: {local: de.jsonl, reader: jsonl}}", "", "The document of the task 'moods' changed"),
        ("version: 1", "version: 2", "The document of the task 'moods' changed"),
        ("[good, bad]", "[bad, good]", "The document of the task 'moods' changed"),
    ],
)
def test_a_spec_changed(moods: Mapping[str, Path], cli: Cli, before: str, after: str, message: str) -> None:
    assert before in SPEC
    moods["spec"].write_text(SPEC.replace(before, after), encoding="utf-8")
    err = _rejected(cli)
    assert message in err
    assert REUSE in err


def test_a_data_file_is_gone(moods: Mapping[str, Path], cli: Cli) -> None:
    moods["en"].unlink()
    err = _rejected(cli)
    assert "first at moods:en: " in err
    assert REUSE in err


def test_a_cell_without_answers_may_be_fixed(moods: Mapping[str, Path], cli: Cli) -> None:
    """A fragment's language failed for its spec: fixing the spec is what --resume waits for."""
    Path("data/wo.jsonl").write_text(ITEMS, encoding="utf-8")
    fragment = Path("wo.yaml")
    broken = (
        "extends: moods\nlanguages:\n  wo: {provenance: native, test: {local: wo.jsonl, reader: conllu}}\n"
    )
    fragment.write_text(broken, encoding="utf-8")
    status, _, err = cli(*MOODS, "--tasks-from", "wo.yaml", "--output", "new")
    assert status == 1, err
    first = Run(Path("new")).manifest.resolved["data"]
    fragment.write_text(broken.replace("conllu", "jsonl"), encoding="utf-8")
    status, _, err = cli("eval", "--resume", "new")
    assert status == 0, err
    assert "2 of 3 cells are done already." in err
    run = Run(Path("new"))
    assert [cell.status for cell in run.cells] == ["ok", "ok", "ok"]
    changed = [split["language"] for split in run.manifest.resolved["data"] if split not in first]
    assert changed == ["wo"]
    # Now it has answers, and is guarded as the others are, also where its score is lost.
    for file in Path("new/cells").glob("*.json"):
        file.unlink()
    fragment.write_text(broken, encoding="utf-8")
    status, _, err = cli("eval", "--resume", "new")
    assert status == 2
    assert f"The data of 'moods' in 'wo' (test) {READ_DIFFERENTLY}" in err
    assert "--reuse new" in err


def test_another_version_of_the_harness(done: Any, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.running.start.installed_version", lambda _: "9.9")
    err = _rejected(cli)
    version = Run(RUN).manifest.versions["multilingual-harness"]
    assert f"version {version} " in err
    assert "version 9.9" in err
    assert REUSE in err


SCORER = """
from harness import hookimpl
from harness.metrics import Metric, MetricResult
from local_scorer.value import VALUE

def compute(predictions, references, context):
    return MetricResult(value=VALUE, items=None)

@hookimpl
def harness_register_metrics():
    kinds = frozenset({"sequence_classification"})
    return [Metric(name="ours", compute=compute, kinds=kinds, description="d", source="s", signature=lambda _: "v2")]
"""


@pytest.mark.parametrize("change", ["plugin 'local_scorer'", "metric 'ours' in 'de'", "source"])
def test_another_version_of_a_metric(
    change: str, cli: Cli, install_plugin: Callable[..., Path], edit: Edit
) -> None:
    """The table of a run has one metric under a name, whether the version or the code alone changed."""
    files = {"local_scorer/__init__.py": SCORER, "local_scorer/value.py": "VALUE = 1.0"}
    site = install_plugin("local_scorer", files)
    _evaluate_moods(cli, SPEC.replace("[accuracy]", "[accuracy, ours]"))
    code = Run(RUN).manifest.code
    assert code.pop("plugin 'local_scorer'").startswith("local-scorer 1.0 (")
    assert code == {"metric 'ours' in 'en'": "v2", "metric 'ours' in 'de'": "v2"}
    edit(RUN / "manifest.json", lambda manifest: manifest["code"].update({"metric 'unused' in 'de'": "v1"}))
    assert cli("eval", "--resume", "run")[0] == 0
    if change == "source":
        (site / "local_scorer/value.py").write_text("VALUE = 0.1", encoding="utf-8")
    else:
        edit(RUN / "manifest.json", lambda manifest: manifest["code"].update({change: "0.9"}))
    err = _rejected(cli)
    assert ("local_scorer" if change == "source" else change) in err
    assert REUSE in err


def test_an_option_that_this_version_does_not_know(done: Any, cli: Cli, edit: Edit) -> None:
    edit(RUN / "manifest.json", lambda manifest: manifest["config"].update(colour="red"))
    assert "'colour'" in _rejected(cli)


def test_what_changes_no_answer_may_change(done: Any, cli: Cli) -> None:
    assert cli("eval", "--resume", "run", "-o", "dimension=64")[0] == 0
    done.assert_equal(RUN)


@pytest.mark.parametrize("change", [("-o", "dimension=64"), ("--model", "baseline:majority")])
def test_another_model_may_not_answer_what_is_left(done: Any, cli: Cli, change: tuple[str, str]) -> None:
    """Only a model that is opened can be compared."""
    shutil.rmtree(RUN / "cells")
    status, _, err = cli("eval", "--resume", "run", *change)
    assert status == 2
    assert "Error: The model is not the one that the run 'run' began with: " in err
    assert REUSE in err


# The command line -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("tasks", "xnli"), ("limit", "3"), ("data", "sample"), ("seeds", "1"), ("chat", None)),
        *(("output", "other"), ("shard", "1/2"), ("locked", "lock.yaml"), ("config", "eval.yaml")),
    ],
)
def test_options_with_resume(done: Any, cli: Cli, name: str, value: str | None) -> None:
    err = _rejected(cli, f"--{name}", *([] if value is None else [value]))
    assert err.startswith("Error: --resume ")
    assert f"--{name} " in err


def test_no_run(cli: Cli) -> None:
    Path("empty").mkdir()
    for name in ("nowhere", "empty"):
        status, _, err = cli("eval", "--resume", name)
        assert status == 2
        assert f"Error: The folder '{name}' is no run: it has no manifest.json." in err
    assert not Path("nowhere").exists()
    assert list(Path("empty").iterdir()) == []


def test_a_manifest_that_is_damaged(done: Any, cli: Cli) -> None:
    file = RUN / "manifest.json"
    file.write_bytes(file.read_bytes()[:500])
    assert "run/manifest.json cannot be read: " in _rejected(cli, status=1)


def test_results_that_are_missing_or_damaged_are_rewritten(done: Any, cli: Cli) -> None:
    file = RUN / "results.json"
    file.unlink()
    for expected in (2, 1):
        status, _, err = cli("report", "run")
        assert status == expected
        assert err.endswith("harness eval --resume run\n")
        file.write_text("", encoding="utf-8")
    assert cli("eval", "--resume", "run")[0] == 0
    done.assert_equal(RUN)
    assert cli("report", "run")[0] == 0


# Reusing answers --------------------------------------------------------------------------------------


def test_the_answers_of_an_equal_model_are_reused(done: Any, cli: Cli) -> None:
    assert cli(*done.command, "--reuse", "run", "--output", "second")[0] == 0
    done.assert_equal(Path("second"))
    assert requests(Path("second")) == {"planned": done.planned, "asked": 0, "reused": done.planned}
    assert answers(Path("second")) == 0
    # A resumed run finds what it reuses, wherever the command is run, and reuses nothing second-hand.
    shutil.rmtree("second/cells")
    second = Path("second").absolute()
    Path("elsewhere").mkdir()
    os.chdir("elsewhere")
    status, _, err = cli("eval", "--resume", second)
    assert status == 0, err
    done.assert_equal(second)
    assert requests(second)["asked"] == 0


def test_a_part_of_the_answers_is_reused(done: Any, cli: Cli) -> None:
    """More items of the same: only the new ones are asked."""
    command = [item if item != "6" else "9" for item in done.command]
    assert cli(*command, "--reuse", "run", "--output", "more")[0] == 0
    counts = requests(Path("more"))
    assert 0 < counts["asked"] < counts["planned"] - done.planned + 7
    assert counts["reused"] >= done.planned - 6


@pytest.mark.parametrize(
    ("change", "asked"),
    [((), 0), (("-o", "ngrams=3"), 6), (("--train-limit", "29"), 6), (("--seeds", "1"), 6)],
)
def test_another_model_is_asked_everything(done: Any, cli: Cli, change: tuple[str, ...], asked: int) -> None:
    command = (*("xnli:de" if item == TASKS else item for item in done.command), *change)
    status, _, err = cli(*command, "--reuse", "run", "--output", "second")
    assert status == 0, err
    assert requests(Path("second")) == {"planned": 6, "asked": asked, "reused": 6 - asked}


def test_a_folder_without_answers_is_rejected_before_anything_is_written(done: Any, cli: Cli) -> None:
    Path("empty").mkdir()
    for name in ("empty", "nowhere"):
        status, _, err = cli(*done.command, "--reuse", name, "--output", "second")
        assert status == 2
        assert f"The folder '{name}' has no journal, so no answers can be reused." in err
        assert not Path("second").exists()


# Two commands -----------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_two_commands_on_one_folder(cli: Cli, flaky: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.running.start.LOCK_PATIENCE", 0.3)
    command = (
        *("eval", "--tasks", "xnli:de", "--model", "flaky:it", "--data", "sample", "--limit", "4"),
        *("--output", "run"),
    )
    path = os.pathsep.join([str(flaky), os.environ.get("PYTHONPATH", "")])
    first = subprocess.Popen(
        [sys.executable, "-m", "harness", *command],
        env={**os.environ, "FLAKY_SLEEP": "0.1", "PYTHONPATH": path},
    )
    try:
        wait_until((RUN / "manifest.json").exists, "start of the run")
        first.send_signal(signal.SIGSTOP)
        holder = f"is in use by process {first.pid} on host {socket.gethostname()}, since "
        for second in (command, ("eval", "--resume", "run")):
            status, _, err = cli(*second)
            assert status == 2
            assert f"Error: The run folder 'run' {holder}" in err
    finally:
        first.send_signal(signal.SIGCONT)
        assert first.wait(60) == 0
    assert not (RUN / "run.lock").exists()
    assert cli("eval", "--resume", "run")[0] == 0
    assert "already holds a run" in cli(*command)[2]


def test_the_lock_of_a_killed_run_is_no_obstacle(done: Any, cli: Cli) -> None:
    content = f'{{"pid": 1, "host": "{socket.gethostname()}", "since": "long ago"}}'
    (RUN / "run.lock").write_text(content, encoding="utf-8")
    assert cli("eval", "--resume", "run")[0] == 0
    assert not (RUN / "run.lock").exists()


def test_the_lock_is_free_after_an_error(done: Any, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("harness.running.start.installed_version", lambda _: "9.9")
        _rejected(cli)
    assert cli("eval", "--resume", "run")[0] == 0


def test_a_file_that_changes_without_changing_its_size_has_another_digest(tmp_path: Path) -> None:
    file = tmp_path / "data.tsv"
    file.write_bytes(b"a\tb\n")
    before = file_digest(file)
    os.utime(file, ns=(0, 0))
    with file.open("r+b") as opened:
        opened.write(b"a\tc\n")
    assert file_digest(file) != before
