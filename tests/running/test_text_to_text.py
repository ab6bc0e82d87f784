"""Text-to-text training: examples become pairs of texts by the prompt that also asks afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.data.records import TextPair
from harness.models.capabilities import Head

from .conftest import DataFolder, MakePlan, RunTasks

Calls = Callable[[], list[tuple[str, Any]]]


def _fits(found: list[tuple[str, Any]]) -> list[Any]:
    return [asked for name, asked in found if name == "fit"]


def test_pairs_are_those_of_mt5_and_the_same_text_asks_afterwards(run: RunTasks, take_calls: Calls) -> None:
    finished = run("xnli:de", "asks:fits", options={"says": "1|2"}, train_limit=None)
    found = take_calls()
    [(train, validation, spec)] = _fits(found)
    assert (spec.head, spec.labels, spec.inputs) == (Head.TEXT_TO_TEXT, (), ("premise", "hypothesis"))
    assert len(train) == 504
    assert validation
    assert all(type(pair) is TextPair for pair in (*train, *validation))
    by_id = {pair.id: pair for pair in train}
    assert by_id["1-e"].source == (
        "xnli: premise: Lukas sold his old tent and bought a larger one. "
        "hypothesis: Lukas no longer has the old tent."
    )
    assert [by_id[name].target for name in ("1-e", "1-n", "1-c")] == ["0", "1", "2"]
    prompts = [asked[0] for name, asked in found if name == "write"]
    assert len(prompts) == 5
    assert all(prompt.startswith("xnli: premise: ") and " hypothesis: " in prompt for prompt in prompts)
    [cell] = finished.cells
    assert (cell.protocol, cell.method, cell.view) == ("zero_shot_transfer", "generate", {})
    assert (cell.prompt or {})["name"] == "xnli/mt5"
    said = {record.prediction["label"] for record in finished.records(cell)}
    assert said <= {"neutral", "contradiction"}


@pytest.mark.parametrize(
    ("task", "source", "target"),
    [
        ("udpos", "pos: ", "_"),
        ("wikiann", "tag: ", ""),
        ("xquad", "question: ", ""),
        ("xcopa", "copa choice1: ", "choice"),
    ],
)
def test_other_kinds_have_pairs_too(
    run: RunTasks, take_calls: Calls, task: str, source: str, target: str
) -> None:
    code = "sw" if task == "xcopa" else "de"
    run(f"{task}:{code}", "asks:fits")
    train, _, _ = _fits(take_calls())[-1]
    assert len(train) == 30
    assert all(pair.source.startswith(source) and target in pair.target for pair in train)


def test_another_prompt_is_another_fit(make_plan: MakePlan, take_calls: Calls) -> None:
    def key(**settings: Any) -> str:
        [fit] = make_plan("xnli:de", model="asks:fits", **settings).fits
        return fit.key

    keys = [key(), key(prompt=("mega",)), key(prompt=("default",))]
    assert len(set(keys)) == 3
    assert key(prompt=("mt5",)) == keys[0]
    # What only changes how a model is asked trains nothing anew.
    assert key(shots=3, constrained=True) == keys[0]


def test_a_fitted_model_gets_no_shots(make_plan: MakePlan, take_calls: Calls) -> None:
    [cell] = make_plan("xnli:de", model="asks:fits", shots=3).cells
    assert cell.prompt is not None
    assert (cell.prompt.shots, cell.prompt.pool, dict(cell.view)) == (0, None, {})


def test_a_fit_is_reused(run: RunTasks, take_calls: Calls) -> None:
    first = run("xnli:de", "asks:fits")
    assert len(_fits(take_calls())) == 1
    second = run("xnli:sw", "asks:fits")
    assert _fits(take_calls()) == []
    assert list(first.results.fits) == list(second.results.fits)
    run("xnli:de", "asks:fits", prompt="mega")
    assert len(_fits(take_calls())) == 1


def test_a_training_set_without_the_format_is_skipped(make_plan: MakePlan, take_calls: Calls) -> None:
    plan = make_plan("udpos_raw:de", model="asks:fits", prompt=("mega",))
    assert plan.cells == ()
    [reason] = {skip.reason for skip in plan.skipped}
    assert "No prompt of 'udpos_raw' named 'mega'" in reason


def test_unlabelled_training_items_are_rejected(
    run: RunTasks, take_calls: Calls, data_folder: DataFolder, tmp_path: Path
) -> None:
    rows = [{"id": "1", "text": "t", "label": "a"}, {"id": "2", "text": "u"}]
    lines = [json.dumps(row) + "\n" for row in rows]
    folder = data_folder({"train-en.jsonl": lines[1], "test-en.jsonl": lines[0]})
    (tmp_path / "mine.yaml").write_text(
        "task: mine\nkind: sequence_classification\nversion: 1\ndescription: d\ncitation: c\nlicense: l\n"
        "inputs: [text]\nlabels: [a, b]\nmetrics: [accuracy]\ntransfer: {source: en, stages: [mine]}\n"
        "splits:\n  train: {local: 'train-{language}.jsonl', reader: jsonl}\n"
        "  test: {local: 'test-{language}.jsonl', reader: jsonl}\nlanguages: {en: {}}\n",
        encoding="utf-8",
    )
    (tmp_path / "prompt.yaml").write_text(
        "prompt: mine/mt5\ntasks: [mine]\nkind: sequence_classification\nformulation: generation\n"
        "description: d\nsource: s\nitem: 'mine: {text}'\nanswer: '{label}'\n"
        "literals: {mul: {provenance: native, words: {label.a: x, label.b: y}}}\n",
        encoding="utf-8",
    )
    files = (tmp_path / "mine.yaml", tmp_path / "prompt.yaml")
    [cell] = run("mine:en", "asks:fits", data=folder, tasks_from=files).cells
    assert (cell.status, cell.reason) == ("failed", "The training set 'mine' has items without labels.")
    assert _fits(take_calls()) == []
    (folder / "train-en.jsonl").write_text(lines[0], encoding="utf-8")
    [cell] = run("mine:en", "asks:fits", data=folder, tasks_from=files, options={"says": "x"}).cells
    assert (cell.status, cell.metrics["accuracy"].value) == ("ok", 1.0)
    [(train, _, _)] = _fits(take_calls())
    assert train == [TextPair(id="1", source="mine: t", target="x")]
