"""A fit is made once, found again, and made anew when anything that made it changes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import harness_baseline.model
from harness.storage.run_folder import Run

from .conftest import DataFolder, RunTasks

ROWS = (
    "He sleeps.\tHe is awake.\tcontradiction\n"
    "He sleeps.\tHe is asleep.\tentailment\n"
    "He sleeps.\tHe is old.\tneutral\n"
)


def _digests(run: Run) -> set[str | None]:
    return {cell.fit for cell in run.cells}


def _stages(run: Run) -> list[Mapping[str, Any]]:
    return [stage for fit in run.results.fits.values() for stage in fit.stages]


def test_the_second_run_trains_nothing(run: RunTasks, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(["xnli:de", "udpos:de"])

    def no_training(*_: Any, **__: Any) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(harness_baseline.model.Baseline, "fit", no_training)
    second = run(["xnli:de", "udpos:de"])
    assert [cell.status for cell in second.cells] == ["ok", "ok"]
    assert _digests(second) == _digests(first)
    assert [stage["reused"] for stage in _stages(first)] == [False, False]
    assert [stage["reused"] for stage in _stages(second)] == [True, True]
    for before, after in zip(_stages(first), _stages(second), strict=True):
        assert before["train"] == after["train"]
        assert before["settings"] == after["settings"]
    assert [cell.metrics for cell in first.cells] == [cell.metrics for cell in second.cells]


def test_what_makes_a_fit_is_in_its_digest(run: RunTasks, data_folder: DataFolder) -> None:
    names = ("train-en", "dev-en", "dev-sw", "test-de")
    folder = data_folder({f"xnli/{name}.tsv": ROWS for name in names})

    def digest(model: str = "baseline:majority", **settings: Any) -> str:
        [found] = _digests(run("xnli:de", model, **{"data": folder, "train_limit": None, **settings}))
        return str(found)

    digests = {
        "as it is": digest(),
        "seed": digest(seeds=(1,)),
        "settings": digest(recipe="xtreme_r"),
        "limit": digest(train_limit=2),
        "model": digest("baseline:random"),
        "option": digest(options={"ngrams": "2"}),
    }
    assert digest() == digests["as it is"]
    assert digest(limit=1) == digests["as it is"], "what is tested does not change what was trained"
    train = folder / "xnli/train-en.tsv"
    train.write_text(ROWS + "He eats.\tHe is hungry.\tneutral\n", encoding="utf-8")
    digests["training file"] = digest()
    train.write_text(ROWS, encoding="utf-8")
    os.utime(train, ns=(1, 1))
    assert digest() == digests["as it is"], "the bytes count, not the time of the file"
    (folder / "xnli/dev-en.tsv").write_text(ROWS.replace("old", "young"), encoding="utf-8")
    digests["dev file"] = digest()
    digests["dev language"] = digest(select_on="sw")
    assert len(set(digests.values())) == len(digests), digests


@pytest.mark.usefixtures("planted")
def test_a_limit_on_training_takes_exactly_so_many_items_and_all_of_the_dev_set(
    run: RunTasks, data_folder: DataFolder, tmp_path: Path
) -> None:
    folder = data_folder({f"xnli/{name}.tsv": ROWS for name in ("train-en", "dev-en", "test-de")})
    for limit, expected in ((2, "2 3"), (99, "3 3"), (None, "3 3")):
        finished = run("xnli:de", "planted:fit", data=folder, train_limit=limit)
        [digest] = _digests(finished)
        assert digest is not None
        assert (tmp_path / "cache/fits" / digest / "weights.txt").read_text(encoding="utf-8") == expected
        [stage] = _stages(finished)
        assert f"{stage['train']['examples']} {stage['validation']['examples']}" == expected


def test_training_data_may_repeat_ids_and_test_data_may_not(run: RunTasks, data_folder: DataFolder) -> None:
    lines = "".join(
        f'{{"id": "1", "premise": "a", "hypothesis": "b", "label": "{label}"}}\n'
        for label in ("entailment", "neutral")
    )
    folder = data_folder({"mine/train.jsonl": lines, "mine/test.jsonl": lines})
    spec = (
        "{}: {}\nkind: sequence_classification\nversion: 1\ndescription: d\ncitation: c\nlicense: l\n"
        "inputs: [premise, hypothesis]\nlabels: [entailment, neutral]\n"
    )
    (folder / "set.yaml").write_text(
        spec.format("training", "set")
        + "languages: {en: {train: {local: mine/train.jsonl, reader: jsonl}}}\n",
        encoding="utf-8",
    )
    (folder / "task.yaml").write_text(
        spec.format("task", "mine") + "metrics: [accuracy]\ntransfer: {stages: [set]}\n"
        "languages: {de: {test: {local: mine/test.jsonl, reader: jsonl}}}\n",
        encoding="utf-8",
    )
    finished = run("mine", "baseline:majority", data=folder, tasks_from=(folder,))
    [cell] = finished.cells
    file = folder / "mine/test.jsonl"
    assert cell.reason.startswith(f"{file}:2: the item id '1' was already used at {file}:1; ")
    assert len(finished.results.fits) == 1


def test_training_data_without_labels_is_rejected(run: RunTasks, data_folder: DataFolder) -> None:
    folder = data_folder({"udpos/train-en.tsv": "dog\nbarks\n\n", "udpos/test-de.tsv": "Hund\tNOUN\n\n"})
    [cell] = run("udpos:de", data=folder).cells
    assert cell.reason == "The training set 'udpos' has items without labels."


def test_an_unfinished_fit_is_not_taken_for_a_fit(run: RunTasks, tmp_path: Path) -> None:
    first = run("xnli:de")
    [digest] = _digests(first)
    folder = tmp_path / "cache/fits"
    (folder / str(digest)).rename(folder / f".{digest}.unfinished")
    second = run("xnli:de")
    [stage] = _stages(second)
    assert stage["reused"] is False
    assert [cell.metrics for cell in first.cells] == [cell.metrics for cell in second.cells]
