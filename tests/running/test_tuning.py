"""``harness tune``: a grid on the English dev set, kept as a recipe that a run uses and shows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.errors import UnknownNameError, UsageError
from harness.reporting.overview.run_remarks import run_remarks
from harness.running.tuning import AT_THE_END, find_targets, read_grid

from .conftest import Cli, RunTasks

BASE = """\
recipe: base
description: Keeps the last checkpoint.
source: this test
settings: {learning_rate: 1.0e-4, epochs: 2, batch_size: 8, select_best: false}
"""
GRID = "learning_rate=1e-5,3e-5,5e-5"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, install_plugin: Callable[..., Path]) -> Path:
    """Install the adapter, write a recipe, and work in a folder."""
    source = Path(__file__).with_name("tunable_adapter.py").read_text(encoding="utf-8")
    install_plugin("tunable_adapter", source)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "base.yaml").write_text(BASE, encoding="utf-8")
    return work


def _tune(cli: Cli, *more: str, model: str = "tunable:one", grid: str = GRID) -> tuple[int, str, str]:
    given = ["--tasks", "xnli:de", "--data", "sample", "--train-limit", "30", "--grid", grid]
    return cli("tune", "--model", model, *given, *more)


def _trainings() -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = sys.modules["tunable_adapter"].FITS
    return found


def _recipe(folder: Path, name: str = "tuned-one") -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((folder / f"{name}.yaml").read_text(encoding="utf-8"))
    return read


def test_the_best_setting_becomes_a_recipe_whose_fits_are_reused(
    cli: Cli, folder: Path, run: RunTasks
) -> None:
    status, out, err = _tune(cli, "--recipe", "quick", "--seeds", "1,2")
    assert status == 0, err
    recipe = _recipe(folder)
    assert recipe["stages"]["mnli"]["learning_rate"] == 3e-5
    [tuned] = recipe["tuned"]["fits"]
    assert [score["dev"] for score in tuned["scores"]] == pytest.approx([0.3, 0.5, 0.3])
    assert tuned["chosen"] == {"learning_rate": 3e-5}
    assert [len(score["fits"]) for score in tuned["scores"]] == [2, 2, 2]
    assert recipe["tuned"]["model"] == {"adapter": "tunable", "ref": "one"}
    assert len(_trainings()) == 6
    assert "6 trainings" in out
    assert "harness eval --tasks xnli:de --model tunable:one" in out

    given = {"tasks_from": [folder / "tuned-one.yaml"], "recipe": "tuned-one", "seeds": (1, 2)}
    finished = run("xnli:de", "tunable:one", **given)
    assert len(_trainings()) == 6, "the chosen fits are in the cache"
    stages = [stage for fit in finished.results.fits.values() for stage in fit.stages]
    assert [stage["reused"] for stage in stages] == [True, True]
    assert [stage["validation"]["score"] for stage in stages] == [0.5, 0.5]
    assert {stage["digest"] for stage in stages} == set(tuned["scores"][1]["fits"])
    assert [stage["tuned"]["same_fit"] for stage in stages] == [True, True]
    shown = " ".join(remark.text for remark in run_remarks(finished))
    assert "learning_rate=3e-05 was chosen on the English dev set" in shown
    assert "learning_rate=1e-05 30.0, learning_rate=3e-05 50.0" in shown

    other = run("xnli:de", "tunable:another", **given)
    stages = [stage for fit in other.results.fits.values() for stage in fit.stages]
    assert [stage["tuned"]["same_fit"] for stage in stages] == [False, False]
    assert any(remark.brief.endswith("were chosen for another fit") for remark in run_remarks(other))


def test_a_recipe_that_keeps_the_last_checkpoint_is_measured_once_at_the_end(cli: Cli, folder: Path) -> None:
    status, _, err = _tune(cli, "--recipe", "base", "--tasks-from", "base.yaml")
    assert status == 0, err
    assert [(item["select_best"], item["eval_steps"]) for item in _trainings()] == [(True, AT_THE_END)] * 3
    assert _recipe(folder)["stages"]["mnli"] == {
        "learning_rate": 3e-5,
        "eval_steps": AT_THE_END,
        "select_best": True,
    }


def test_large_models_have_their_own_settings(cli: Cli, folder: Path, run: RunTasks) -> None:
    assert _tune(cli, "--recipe", "xtreme_r", model="tunable:large")[0] == 0
    recipe = _recipe(folder, "tuned-large")
    assert recipe["large_stages"]["mnli"] == {"learning_rate": 3e-5}
    before = len(_trainings())
    run("xnli:de", "tunable:large", tasks_from=[folder / "tuned-large.yaml"], recipe="tuned-large")
    assert len(_trainings()) == before


def test_nothing_is_trained_twice_and_the_cost_comes_first(cli: Cli, folder: Path) -> None:
    status, out, _ = _tune(cli, "--recipe", "quick", "--dry-run")
    # 30 examples in batches of 32, two epochs, three settings.
    assert (status, "3 trainings, 6 steps in all" in out) == (0, True)
    assert (_trainings(), list(folder.glob("tuned*"))) == ([], [])
    assert _tune(cli, "--recipe", "quick", grid="learning_rate=1e-5,3e-5")[0] == 0
    out = _tune(cli, "--recipe", "quick")[1]
    assert "1 training, 2 more in the cache, 2 steps in all" in out
    assert len(_trainings()) == 3


def test_a_setting_that_cannot_be_trained_is_recorded(cli: Cli, folder: Path) -> None:
    status, _, _ = _tune(cli, "--recipe", "quick", grid="learning_rate=2,3e-5")
    failed, fine = _recipe(folder)["tuned"]["fits"][0]["scores"]
    assert (status, failed.get("dev"), fine["dev"]) == (0, None, 0.5)
    assert failed["failure"] == "The loss is NaN at step 3."
    assert _tune(cli, "--recipe", "quick", grid="learning_rate=2,3")[0] != 0


@pytest.mark.parametrize("model", ["tunable:silent", "baseline:char-ngram"])
def test_a_model_without_dev_scores_cannot_be_tuned(cli: Cli, folder: Path, model: str) -> None:
    status, _, err = _tune(cli, "--recipe", "quick", model=model)
    assert status != 0
    assert "reports no score on the dev set" in err
    assert list(folder.glob("tuned*")) == []


def test_a_grid_is_read_with_the_types_of_a_recipe() -> None:
    assert read_grid(["learning_rate=1e-5, 2e-5,1e-5", "epochs=2,3", "pooling=cls,mean"]) == {
        "learning_rate": (1e-5, 2e-5),
        "epochs": (2.0, 3.0),
        "pooling": ("cls", "mean"),
    }


@pytest.mark.parametrize(
    ("grid", "kind"),
    [
        ([], UsageError),
        (["learning_rate"], UsageError),
        (["learning_rate="], UsageError),
        (["learning_rate=fast"], UsageError),
        (["learning_rate=-1"], UsageError),
        (["epochs=1", "epochs=2"], UsageError),
        (["select_best=true,false"], UsageError),
        (["learning_rat=1e-5"], UnknownNameError),
    ],
)
def test_a_broken_grid_raises(grid: list[str], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        read_grid(grid)


def test_only_english_dev_sets_choose(
    make_plan: Callable[..., Any], data_folder: Callable[[Mapping[str, str]], Path]
) -> None:
    grid = read_grid([GRID])
    [target] = find_targets(make_plan("xnli:de", model="baseline:char-ngram"), grid)
    assert (target.stages, len(target.trials), target.obstacle) == (("mnli",), 3, "")
    rows = "He sleeps.\tHe is awake.\tcontradiction\n"
    names = ("train-en", "dev-sw", "test-de")
    data = data_folder({f"xnli/{name}.tsv": rows for name in names})
    settings = {"model": "baseline:char-ngram", "data": data}
    [target] = find_targets(make_plan("xnli:de", **settings, select_on="sw"), grid)
    assert (target.trials, "'sw'" in target.obstacle) == ((), True)
    [target] = find_targets(make_plan("xnli:de", **settings), grid)
    assert (target.trials, "no English dev set" in target.obstacle) == ((), True)


def test_a_plan_without_fits_cannot_be_tuned(make_plan: Callable[..., Any]) -> None:
    plan = make_plan("xnli:de", model="baseline:majority", protocols=("prompted",))
    with pytest.raises(UsageError):
        find_targets(plan, read_grid([GRID]))
