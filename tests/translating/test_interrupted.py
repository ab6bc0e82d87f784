"""Commands with a translator that dies in the middle: they continue, and nothing is translated twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.storage.run_folder import Run

pytestmark = pytest.mark.thorough

Cli = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).resolve().parents[2]
SELECTION = ("--tasks", "xnli:sw", "--data", "sample", "--translator", "m=mortal")
EVAL = ("eval", *SELECTION, "--model", "baseline:char-ngram", "--recipe", "quick", "--train-limit", "30")
VARIANTS = ("--variants", "zs,tt,te,bt", "--limit", "6")


def test_translate_continues(
    cli: Cli, log: Callable[[], Counter[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MORTAL_BATCHES", "4")
    status, _, err = cli("translate", *SELECTION)
    assert status != 0
    assert all(part in err for part in ("'m'", "sw->en", "RuntimeError: the power is gone."))
    assert sum(log().values()) == 12
    monkeypatch.delenv("MORTAL_BATCHES")
    status, out, _ = cli("translate", *SELECTION)
    assert status == 0
    # 32 texts in both languages, and the way back of the English ones.
    assert (len(log()), set(log().values())) == (96, {1})
    status, out, _ = cli("translate", *SELECTION, "--dry-run")
    assert [line.split()[2:4] for line in out.splitlines()[2:]] == [["96", "64"], ["96", "32"]]
    assert [line.split()[4:] for line in out.splitlines()[2:]] == [["0", "0"]] * 2


def test_a_run_continues(
    cli: Cli, log: Callable[[], Counter[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MORTAL_BATCHES", "3")
    folder = tmp_path / "run"
    status, _, err = cli(*EVAL, *VARIANTS, "--output", folder)
    assert status != 0
    assert "the power is gone" in err
    monkeypatch.delenv("MORTAL_BATCHES")
    status, out, _ = cli("eval", "--resume", folder)
    assert status == 0, out
    assert set(log().values()) == {1}
    whole = tmp_path / "whole"
    assert cli(*EVAL, *VARIANTS, "--output", whole)[0] == 0
    assert metrics(folder) == metrics(whole)
    assert len(metrics(folder)) == 4
    assert set(Run(folder).manifest.translators) == {"mortal sw->en", "mortal en->sw"}


def test_another_translator_of_the_same_name_is_rejected(
    cli: Cli, log: Callable[[], Counter[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    assert cli(*EVAL, "--variants", "tt", "--limit", "2", "--output", folder)[0] == 0
    monkeypatch.setenv("MORTAL_VERSION", "2")
    status, _, err = cli("eval", "--resume", folder)
    assert status == 2
    assert "mortal sw->en" in err


def test_a_fit_is_made_anew_by_another_translator(
    cli: Cli, log: Callable[[], Counter[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    train = ("--train-variant", "t-train", "--limit", "2")
    reused: list[bool] = []
    for version in ("1", "1", "2"):
        monkeypatch.setenv("MORTAL_VERSION", version)
        status, _, err = cli(*EVAL, *train, "--verbose", "--output", tmp_path / f"run-{len(reused)}")
        assert status == 0, err
        reused.append("Reusing the fit" in err)
    assert reused == [False, True, False]


def test_shards_are_merged_and_locked(cli: Cli, log: Callable[[], Counter[str]], tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    two = (*EVAL[:-2], "--train-limit", "30", "--translator", "r=reverse", *VARIANTS)
    assert cli(*two, "--output", whole)[0] == 0
    parts = [tmp_path / "part-1", tmp_path / "part-2"]
    for number, part in enumerate(parts, start=1):
        assert cli(*two, "--shard", f"{number}/2", "--output", part)[0] == 0
    merged = tmp_path / "merged"
    status, _, err = cli("merge", *parts, "--output", merged)
    assert status == 0, err
    assert metrics(merged) == metrics(whole)
    assert len(metrics(merged)) == 7
    assert Run(merged).manifest.translators == Run(whole).manifest.translators
    selection = "xnli --languages sw --variants zs,tt,te,bt --data sample --recipe quick".split()
    for named in ([whole], selection):
        lock = tmp_path / "xnli.lock.json"
        status, _, err = cli("lock", *named, "--output", lock)
        assert status == 0, err
        views = [(item["language"], item["view"]) for item in json.loads(lock.read_text())["data"]]
        assert ("sw", {}) in views
        for item in (("sw", "tt"), ("en", "te"), ("en", "bt")):
            assert (item[0], {"variant": item[1]}) in views
        status, _, err = cli(*two, "--locked", lock, "--output", tmp_path / f"locked-{len(named)}")
        assert status == 0, err


def test_runs_of_different_training_sets_or_translators_are_not_merged(
    cli: Cli, log: Callable[[], Counter[str]], tmp_path: Path
) -> None:
    runs = {name: tmp_path / name for name in ("orig", "b-train", "other")}
    assert cli(*EVAL, "--limit", "2", "--variants", "tt", "--output", runs["orig"])[0] == 0
    changed = ("--train-variant", "b-train", "--limit", "2", "--variants", "tt")
    assert cli(*EVAL, *changed, "--output", runs["b-train"])[0] == 0
    other = tuple("m=reverse" if item == "m=mortal" else item for item in EVAL)
    assert cli(*other, "--limit", "2", "--variants", "te", "--output", runs["other"])[0] == 0
    for name, expected in (
        ("b-train", "they differ in the setting 'train_variant'"),
        ("other", "what the translator 'm' is"),
    ):
        status, _, err = cli("merge", runs["orig"], runs[name], "--output", tmp_path / "merged")
        assert status == 2
        assert expected in err


def test_two_processes_translate_once(
    log: Callable[[], Counter[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    pytest.importorskip("accelerate")
    packages = (ROOT / name for name in ("", "plugins", "model_adapters", "task_specs"))
    folders = [tmp_path / "site" / "mortal-translator", *packages]
    paths = [*map(str, folders), os.environ.get("PYTHONPATH", "")]
    variants = ("--variants", "zs,tt", "--limit", "4", "--train-limit", "10")
    finished = subprocess.run(
        [sys.executable, "-m", "harness", *EVAL, *variants, "--num-processes", "2", "--output", "run"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert set(log().values()) == {1}
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "other-cache"))
    alone = tmp_path / "alone"
    assert cli(*EVAL, *variants, "--output", alone)[0] == 0
    assert metrics(tmp_path / "run") == metrics(alone)


def metrics(folder: Path) -> dict[str, Any]:
    return {
        json.dumps([cell.language, cell.view]): (cell.n, cell.metrics["accuracy"].value)
        for cell in Run(folder).cells
        if cell.status == "ok"
    }


def test_baselines_and_plans_translate_nothing_again(
    cli: Cli, log: Callable[[], Counter[str]], tmp_path: Path
) -> None:
    given = ("--tasks", "xnli:sw", "--data", "sample", "--translator", "m=mortal", "--variants", "tt,bt")
    status, _, err = cli("plan", *given, "--model", "baseline:random", "--power")
    assert status == 0, err
    assert not (tmp_path / "asked.jsonl").exists()
    run = tmp_path / "run"
    status, _, err = cli("eval", *given, "--model", "baseline:random", "--with-baselines", "--output", run)
    assert status == 0, err
    assert set(log().values()) == {1}
    for folder in (run, *(run / "baselines").iterdir()):
        assert set(Run(folder).manifest.translators) == {"mortal sw->en", "mortal en->sw"}
    [note] = [note for note in Run(run).results.notes if note.startswith("m en->sw: of 32 translations")]
    assert " ".join(note.split()) in " ".join(err.split())
