"""`harness watch`: every checkpoint once, whole ones alone, and a curve for each language."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

from harness.errors import UnknownNameError, UsageError
from harness.registry.registry import Registry
from harness.running.session import open_session
from harness.storage.run_folder import Run
from harness_watch import following
from harness_watch.checkpoint import LAST_FILE, CheckpointFolder, Evaluations
from harness_watch.command import app
from harness_watch.following import curve_rows, curves
from tests.hf.conftest import wordpiece

LABELS = dict(enumerate(("contradiction", "entailment", "neutral")))
Save = Callable[..., Path]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "POLL", 0.05)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return wordpiece()


@pytest.fixture
def training(tmp_path: Path) -> Path:
    (tmp_path / "training").mkdir()
    return tmp_path / "training"


@pytest.fixture
def save(tokenizer: Any, training: Path) -> Save:
    """A function that writes a checkpoint as the Trainer does, its last file at the end."""

    def write(step: int, *, whole: bool = True) -> Path:
        folder = training / f"checkpoint-{step}"
        torch.manual_seed(step)
        config = BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=16,
            initializer_range=2.0,
            id2label=LABELS,
            label2id={name: place for place, name in LABELS.items()},
        )
        BertForSequenceClassification(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        if whole:
            (folder / LAST_FILE).write_text(json.dumps({"global_step": step}), encoding="utf-8")
        return folder

    return write


def _watch(training: Path, *further: str) -> int:
    arguments = [training, "--tasks", "xnli:sw+de", "--data", "sample", "-o", "device=cpu", *further]
    status: int = app([str(item) for item in arguments], standalone_mode=False)
    return status


def _names(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.glob("checkpoint-*/results.json"))


def test_each_checkpoint_is_evaluated_once(training: Path, save: Save, tmp_path: Path) -> None:
    save(20), save(100), save(3, whole=False)
    (training / "checkpoint-x").mkdir()
    rows = tmp_path / "rows.json"
    assert _watch(training, "--once", "--json", str(rows)) == 0
    runs = training / "_watch"
    assert _names(runs) == ["checkpoint-100", "checkpoint-20"]
    written = {path: path.stat().st_mtime_ns for path in runs.glob("*/results.json")}
    curve = json.loads(rows.read_text(encoding="utf-8"))
    assert {row["language"] for row in curve} == {"sw", "de", "mean"}
    assert [row["model"] for row in curve if row["language"] == "sw"] == ["checkpoint-20", "checkpoint-100"]
    assert all(row["ci"][0] <= row["value"] <= row["ci"][1] for row in curve)
    assert (runs / following.FIGURE).read_text(encoding="utf-8").startswith("<svg")
    save(200)
    assert _watch(training, "--once") == 0
    assert {path: path.stat().st_mtime_ns for path in written} == written
    assert _names(runs) == ["checkpoint-100", "checkpoint-20", "checkpoint-200"]


def test_a_curve_is_that_of_the_runs(training: Path, save: Save, registry: Registry) -> None:
    save(1), save(2), save(3)
    _watch(training, "--once")
    runs = [Run(training / "_watch" / f"checkpoint-{step}") for step in (1, 2, 3)]
    drawn = curves(runs, registry.metrics)
    assert [curve.language for curve in drawn] == ["sw", "de", "mean"]
    for curve in drawn[:2]:
        cells = [next(cell for cell in run.cells if cell.language == curve.language) for run in runs]
        assert [step.value for step in curve.series.steps] == [
            cell.metrics["accuracy"].value for cell in cells
        ]
        assert [step.ci for step in curve.series.steps] == [cell.metrics["accuracy"].ci for cell in cells]
        for at in (1, 2):
            half = curve.series.half(at - 1, at)
            assert half is not None
            change = curve.series.steps[at].value - curve.series.steps[at - 1].value
            assert curve.moved(at) == ("" if abs(change) <= half else "+" if change > 0 else "-")
    assert len(curve_rows(drawn)) == 9


def test_it_ends_at_a_step(training: Path, save: Save) -> None:
    save(10), save(20), save(30)
    assert _watch(training, "--until", "20") == 0
    assert _names(training / "_watch") == ["checkpoint-10", "checkpoint-20"]


def test_it_waits_for_checkpoints_that_are_being_written(training: Path, save: Save) -> None:
    def write() -> None:
        time.sleep(0.3)
        folder = save(7, whole=False)
        time.sleep(0.3)
        (folder / LAST_FILE).write_text("{", encoding="utf-8")
        time.sleep(0.2)
        (folder / LAST_FILE).write_text("{}", encoding="utf-8")

    writer = threading.Thread(target=write)
    writer.start()
    assert _watch(training, "--until", "7") == 0
    writer.join()
    assert _names(training / "_watch") == ["checkpoint-7"]
    assert [cell.status for cell in Run(training / "_watch" / "checkpoint-7").cells] == ["ok", "ok"]


def test_it_ends_when_nothing_comes(training: Path, save: Save) -> None:
    started = time.monotonic()
    assert _watch(training, "--idle", "0.5") == 0
    assert 0.5 <= time.monotonic() - started < 30


def test_a_killed_evaluation_is_resumed(training: Path, save: Save) -> None:
    save(1), save(2)
    assert _watch(training, "--until", "1") == 0
    run = training / "_watch" / "checkpoint-1"
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    results["cells"][1] |= {
        "status": "skipped",
        "reason": "the run was stopped before this cell",
        "metrics": {},
    }
    (run / "results.json").write_text(json.dumps(results), encoding="utf-8")
    assert _watch(training, "--once") == 0
    assert [cell.status for cell in Run(run).cells] == ["ok", "ok"]
    assert Run(run).results.run.resumed == 1
    (training / "_watch" / "checkpoint-2" / "results.json").unlink()
    assert _watch(training, "--once") == 0
    assert _names(training / "_watch") == ["checkpoint-1", "checkpoint-2"]


def test_a_curve_has_one_set_of_options(training: Path, save: Save) -> None:
    save(1)
    assert _watch(training, "--once") == 0
    with pytest.raises(UsageError, match="limit"):
        _watch(training, "--once", "--limit", "3")
    assert _watch(training, "--once", "--limit", "3", "--output", str(training / "others")) == 0


def test_a_checkpoint_that_cannot_be_opened_does_not_end_the_watch(
    training: Path, save: Save, capsys: pytest.CaptureFixture[str]
) -> None:
    (save(1) / "model.safetensors").write_bytes(b"broken")
    save(2)
    assert _watch(training, "--once") == 1
    assert "checkpoint-1" in capsys.readouterr().err
    cells = Run(training / "_watch" / "checkpoint-1").cells
    assert all(cell.is_stopped for cell in cells)
    assert [cell.status for cell in Run(training / "_watch" / "checkpoint-2").cells] == ["ok", "ok"]


def test_a_checkpoint_may_be_deleted_before_its_turn(training: Path, save: Save) -> None:
    session = open_session()
    first = save(1)
    from harness.planning.run_config import RunConfig
    from harness.progress import Progress
    from harness_watch.checkpoint import Checkpoint, GoneError

    config = RunConfig.read({"tasks": "xnli:sw", "data": "sample", "model": f"hf:{training}"})
    shutil.rmtree(first)
    with pytest.raises(GoneError):
        Evaluations(training / "_watch", config, session).evaluate(
            Checkpoint(folder=first, step=1), Progress()
        )


def test_what_is_no_folder_of_checkpoints(training: Path, save: Save) -> None:
    folder = save(5)
    with pytest.raises(UsageError, match="one checkpoint"):
        CheckpointFolder(folder)
    with pytest.raises(UsageError, match="is a file"):
        CheckpointFolder(folder / LAST_FILE)
    with pytest.raises(UsageError, match="no folder"):
        _watch(training / "other", "--once")
    with pytest.raises(UnknownNameError, match="nothing-like-it"):
        _watch(training / "later", "--tasks", "nothing-like-it")


def test_a_checkpoint_is_complete_once_nothing_of_it_grows(tmp_path: Path) -> None:
    folder, watched = tmp_path / "checkpoint-10", CheckpointFolder(tmp_path)
    folder.mkdir()
    (folder / "trainer_state.json").write_text("{}", encoding="utf-8")
    states = [watched.look()]
    (folder / "model.safetensors").write_bytes(b"half")
    states += [watched.look(), watched.look()]
    assert [len(look.growing) for look in states] == [1, 1, 0]
    assert [len(look.complete) for look in states] == [0, 0, 1]
