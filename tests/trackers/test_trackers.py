"""Runs that are logged to a tracker: what it gets, when, and that its faults cost nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import harness_trackers
from harness.api import evaluate
from harness.errors import MissingExtraError, UnknownNameError
from harness.registry.declarations import Tracker
from harness.scores.table import read_scores
from harness.storage.redaction import add_secret
from harness.storage.run_folder import Run
from harness_trackers import harness_register_trackers

Cli = Callable[..., tuple[int, str, str]]
InstallPlugin = Callable[..., Path]
SOURCE = Path(__file__).with_name("diary.py")
EVAL = ("eval", "--data", "sample", "--model", "baseline:char-ngram", "--recipe", "quick", "--output", "run")
XNLI = (*EVAL, "--tasks", "xnli:en+de+sw")


@dataclass
class Diary:
    """What the tracker was given."""

    path: Path

    def calls(self, *names: str) -> list[Any]:
        """Return the contents of the calls of some names, in their order."""
        text = self.path.read_text(encoding="utf-8") if self.path.is_file() else ""
        return [content for call, content in map(json.loads, text.splitlines()) if call in names]


@pytest.fixture
def diary(install_plugin: InstallPlugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Diary:
    """Return the diary of a tracker that is installed."""
    files = {"diary.py": SOURCE.read_text(encoding="utf-8"), "diary_absent.py": "import no_such_package\n"}
    install_plugin("diary", files)
    monkeypatch.setenv("DIARY", str(tmp_path / "diary"))
    for name in ("DIARY_FAILS", "DIARY_STOPS"):
        monkeypatch.delenv(name, raising=False)
    return Diary(tmp_path / "diary")


def _stored(path: str = "run") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(path) / "results.json").read_text(encoding="utf-8"))
    return found


def test_nothing_is_opened_without_the_option(cli: Cli, diary: Diary) -> None:
    assert cli(*XNLI)[0] == 0
    assert diary.calls("open", "log", "finish", "close") == []
    assert json.loads(Path("run/manifest.json").read_text(encoding="utf-8")).get("trackers", {}) == {}


def test_a_tracker_gets_each_cell_then_the_means_the_table_and_the_file(cli: Cli, diary: Diary) -> None:
    status, _, err = cli(*XNLI, "--log", "diary")
    assert status == 0
    assert "The run is logged to diary: in the diary" in err
    stored = _stored()
    expected = []
    for cell in stored["cells"]:
        metric, name = cell["metrics"]["accuracy"], f"xnli/{cell['language']}/accuracy"
        low, high = metric["ci"]
        expected.append({name: metric["value"], f"{name}_low": low, f"{name}_high": high})
    assert diary.calls("log") == expected
    [finish] = diary.calls("finish")
    [mean] = [row for row in stored["tasks"] if row["metric"] == "accuracy"]
    assert finish["values"] == {
        "xnli/mean/accuracy": pytest.approx(
            fmean(cell["metrics"]["accuracy"]["value"] for cell in stored["cells"])
        ),
        "xnli/mean/accuracy_low": mean["ci"][0],
        "xnli/mean/accuracy_high": mean["ci"][1],
    }
    assert Path(finish["file"]) == Path("run/results.json")
    assert [(row["language"], row["metric"], row["n"]) for row in finish["table"]] == [
        (cell["language"], name, cell["n"]) for cell in stored["cells"] for name in cell["metrics"]
    ]
    assert diary.calls("close") == [True]


def test_the_configuration_says_how_the_run_was_made(cli: Cli, diary: Diary) -> None:
    assert cli(*XNLI, "--seeds", "7", "--log", "diary")[0] == 0
    [opened] = diary.calls("open")
    cells = {cell["language"]: cell for cell in _stored()["cells"]}
    assert (opened["name"], opened["id"]) == ("run", None)
    assert opened["config"] == {
        **opened["config"],
        "model": "baseline:char-ngram",
        "adapter": "baseline",
        "seeds": [7],
        "protocols": ["zero_shot_transfer"],
        "tasks": {
            "xnli": {
                "version": 1,
                "languages": ["en", "de", "sw"],
                "data": {code: cell["data"]["digest"] for code, cell in cells.items()},
            }
        },
    }


def test_cells_of_one_language_and_task_have_names_of_their_own(cli: Cli, diary: Diary) -> None:
    assert cli(*EVAL, "--tasks", "xnli:sw", "--seeds", "1,2", "--log", "diary")[0] == 0
    names = [list(values) for values in diary.calls("log")]
    assert [own[0] for own in names] == ["xnli/sw/accuracy/seed-1", "xnli/sw/accuracy/seed-2"]
    [finish] = diary.calls("finish")
    assert "xnli/mean/accuracy" in finish["values"]


def test_baselines_are_not_logged(cli: Cli, diary: Diary) -> None:
    assert cli(*EVAL, "--tasks", "xnli:sw", "--with-baselines", "--log", "diary")[0] == 0
    assert Path("run/baselines").is_dir()
    assert (len(diary.calls("open")), len(diary.calls("log")), len(diary.calls("finish"))) == (1, 1, 1)


def test_a_resumed_run_goes_on_in_the_same_log(
    cli: Cli, diary: Diary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIARY_STOPS", "1")
    assert cli(*XNLI, "--log", "diary")[0] == 130
    assert diary.calls("close") == [False]
    assert diary.calls("finish") == []
    monkeypatch.delenv("DIARY_STOPS")
    assert cli("eval", "--resume", "run")[0] == 0
    assert [opened["id"] for opened in diary.calls("open")] == [None, "id of run"]
    logged = [name for values in diary.calls("log") for name in values if name.endswith("accuracy")]
    assert len(logged) == len(set(logged)), "no cell is logged twice"
    assert {"xnli/en/accuracy", "xnli/sw/accuracy"} <= set(logged)
    assert diary.calls("close") == [False, True]


def test_a_finished_run_can_be_logged_afterwards(cli: Cli, diary: Diary) -> None:
    assert cli(*XNLI)[0] == 0
    assert cli("eval", "--resume", "run", "--log", "diary")[0] == 0
    assert [next(iter(values)) for values in diary.calls("log")] == [
        f"xnli/{code}/accuracy" for code in ("en", "de", "sw")
    ]
    assert len(diary.calls("finish")) == 1
    assert cli("eval", "--resume", "run")[0] == 0
    assert len(diary.calls("log")) == 3, "the tracker has these cells"


@pytest.mark.parametrize("call", ["log", "finish", "close"])
def test_a_tracker_that_fails_loses_nothing(
    cli: Cli, diary: Diary, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    monkeypatch.setenv("DIARY_FAILS", call)
    status, _, err = cli(*XNLI, "--log", "diary")
    assert status == 0
    assert f"The tracker 'diary' could not log this: ConnectionError: no {call} today." in err
    assert [cell["status"] for cell in _stored()["cells"]] == ["ok"] * 3
    assert diary.calls(call) == []
    assert len(diary.calls("log", "finish", "close")) == {"log": 2, "finish": 4, "close": 4}[call]


def test_a_tracker_that_fails_leaves_the_others_alone(
    cli: Cli, diary: Diary, install_plugin: InstallPlugin
) -> None:
    install_plugin(
        "brittle",
        "from harness import hookimpl; from harness.registry import Tracker\n"
        "class Brittle:\n"
        "    id, place = 'x', 'y'\n"
        "    def __init__(self, run): run.config.clear()\n"
        "    def log(self, values): values.clear(); raise SystemExit(3)\n"
        "    def finish(self, results): results.table.clear(); results.values.clear()\n"
        "    def close(self, *, finished): raise ValueError\n"
        "@hookimpl\n"
        "def harness_register_trackers(): return [Tracker(name='a', target='brittle:Brittle')]\n",
    )
    assert cli(*XNLI, "--log", "a,diary")[0] == 0
    assert diary.calls("open")[0]["config"]["model"] == "baseline:char-ngram"
    assert [len(values) for values in diary.calls("log")] == [3, 3, 3]
    [finish] = diary.calls("finish")
    assert len(finish["values"]) == 3
    assert len(finish["table"]) >= 3


def test_a_tracker_that_cannot_be_opened_stops_a_new_run_before_it_begins(
    cli: Cli, diary: Diary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIARY_FAILS", "open")
    status, _, err = cli(*XNLI, "--log", "diary")
    assert status == 2
    assert "The tracker 'diary' cannot be opened: ConnectionError: no open today." in err
    assert not Path("run/manifest.json").exists()
    monkeypatch.delenv("DIARY_FAILS")
    assert cli(*XNLI, "--log", "diary")[0] == 0, "the same command works once the tracker does"
    monkeypatch.setenv("DIARY_FAILS", "open")
    status, _, err = cli("eval", "--resume", "run")
    assert status == 0
    assert "The run continues without it." in err


@pytest.mark.parametrize(("name", "near"), [("diray", "diary"), ("wandbb", "wandb"), ("ml-flow", "mlflow")])
def test_an_unknown_tracker_is_an_error_before_anything_else(
    cli: Cli, diary: Diary, name: str, near: str
) -> None:
    status, _, err = cli(*XNLI, "--log", name)
    assert status == 2
    assert f"Did you mean {near!r}?" in err
    assert not Path("run").exists()
    with pytest.raises(UnknownNameError):
        evaluate("xnli:sw", "baseline:majority", data="sample", log=name, output=Path("run"))
    assert diary.calls("open") == []


def test_a_missing_package_is_an_error_before_anything_else(diary: Diary, cli: Cli) -> None:
    status, _, err = cli(*XNLI, "--log", "diary", "--log", "absent")
    assert status == 2
    assert "pip install 'multilingual-harness[wandb]'" in err
    assert diary.calls("open") == []
    assert not Path("run").exists()
    with pytest.raises(MissingExtraError):
        evaluate("xnli:sw", "baseline:majority", data="sample", log=["absent"], output=Path("run"))


def test_secrets_are_hidden(diary: Diary, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.storage.redaction._forms", {})
    add_secret("char-ngram")  # the name of the model, as if it were a key
    assert cli(*XNLI, "--log", "diary")[0] == 0
    [opened] = diary.calls("open")
    assert opened["config"]["model"] == "baseline:***"
    assert "char-ngram" not in json.dumps(opened)


def test_scores_are_one_row_per_cell_and_metric(sample_run: Run) -> None:
    stored = json.loads((sample_run.path / "results.json").read_text(encoding="utf-8"))
    rows = read_scores([sample_run]).to_dicts()
    expected = [
        (cell["task"], cell["language"], cell["status"], name, found["value"], *(found["ci"] or (None, None)))
        for cell in stored["cells"]
        for name, found in (cell["metrics"] or {None: {"value": None, "ci": None}}).items()
    ]
    names = ("task", "language", "status", "metric", "value", "low", "high")
    assert [tuple(row[name] for name in names) for row in rows] == expected
    assert {row["script"] for row in rows if row["language"] == "sw"} == {"Latn"}
    assert any(row["metric"] is None and row["reason"] for row in rows)


@pytest.mark.parametrize("tracker", harness_register_trackers(), ids=lambda tracker: tracker.name)
def test_a_tracker_opens_the_log_of_its_name(tracker: Tracker) -> None:
    module, _, name = tracker.target.partition(":")
    assert module == f"harness_trackers.{tracker.name}_log"
    file = Path(harness_trackers.__file__).with_name(f"{tracker.name}_log.py")
    assert f"class {name}:" in file.read_text(encoding="utf-8")
