"""Stages of a fit: two that share a head, what they are trained and selected on, and the notes about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import harness_baseline.model
from harness.models.capabilities import Head
from harness.reporting.overview.summary import summarise
from harness.storage.run_folder import Run

from .conftest import DataFolder, MakePlan, RunTasks

Fits = list[tuple[int, tuple[str, ...], bool]]


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> Fits:
    """What was trained: (examples, names of the choices, whether the model had been fitted before)."""
    found: Fits = []
    original = harness_baseline.model.Baseline.fit

    def counted(self: Any, train: Any, validation: Any, spec: Any, options: Any) -> Any:
        assert (spec.head, spec.labels) == (Head.MULTIPLE_CHOICE, ())
        found.append((len(train), train[0].names, hasattr(self, "choose")))
        return original(self, train, validation, spec, options)

    monkeypatch.setattr(harness_baseline.model.Baseline, "fit", counted)
    return found


def _lines(*records: Mapping[str, Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def _copa(count: int, question: str = "cause", **fields: Any) -> str:
    return _lines(
        *(
            {
                "premise": f"It was number {number}.",
                "choice1": f"One came before {number}.",
                "choice2": f"Two came before {number}.",
                "question": question,
                "label": number % 2,
                "idx": number,
                **fields,
            }
            for number in range(count)
        )
    )


def _siqa(count: int) -> str:
    return _lines(
        *(
            {
                "context": f"Kim had {number} cats.",
                "question": "Why?",
                **{f"answer{letter}": f"{letter} {number}" for letter in "ABC"},
                "correct": "ABC"[number % 3],
            }
            for number in range(count)
        )
    )


@pytest.fixture
def released(data_folder: DataFolder) -> Path:
    """Tiny files in the released layout; as released, without Social IQa's training file."""
    return data_folder(
        {
            "xcopa/data/et/test.et.jsonl": _copa(8),
            "xcopa/data/tr/test.tr.jsonl": _copa(4) + "".join(_copa(8, "effect").splitlines(True)[4:]),
            "xcopa/copa-en/train-en.jsonl": _copa(6),
            "xcopa/copa-en/val-en.jsonl": _copa(5),
            "siqa/socialIQa_v1.4_dev.jsonl": _siqa(7),
        }
    )


def _reused(run: Run) -> list[tuple[str, bool]]:
    return [(stage["stage"], stage["reused"]) for fit in run.results.fits.values() for stage in fit.stages]


def test_two_stages_train_one_head_in_turn(run: RunTasks, released: Path, fits: Fits) -> None:
    finished = run("xcopa:et+tr", data=released, train_limit=None)
    assert fits == [
        (7, ("answerA", "answerB", "answerC"), False),
        (6, ("choice1", "choice2"), True),
    ]
    assert [fit.title for fit in finished.results.fits.values()] == ["siqa (en) then copa (en), seed 42"]
    assert [(cell.status, cell.n) for cell in finished.cells] == [("ok", 5), ("ok", 5)]


def test_the_first_stage_is_found_again_where_only_the_second_changed(
    run: RunTasks, released: Path, fits: Fits
) -> None:
    first = run("xcopa:et", data=released, train_limit=None)
    (released / "xcopa/copa-en/train-en.jsonl").write_text(_copa(9), encoding="utf-8")
    second = run("xcopa:et", data=released, train_limit=None)
    assert [count for count, _, _ in fits] == [7, 6, 9]
    assert _reused(first) == [("siqa", False), ("copa", False)]
    assert _reused(second) == [("siqa", True), ("copa", False)]
    third = run("xcopa:tr", data=released, train_limit=None)
    assert (len(fits), _reused(third)) == (3, [("siqa", True), ("copa", True)])


def test_a_dev_set_that_is_the_training_set_chooses_no_checkpoint(
    make_plan: MakePlan, data_folder: DataFolder, released: Path
) -> None:
    plan = make_plan("xcopa:et", data=released)
    [siqa, copa] = plan.fits[0].stages
    assert siqa.validation is None
    assert copa.validation is not None
    assert [found.files.stands_in for _, found in siqa.train] == [True]
    [note] = plan.notes
    assert note.startswith("siqa: its dev set ")
    assert "the last checkpoint is kept" in note
    # With the training file the dev set is one again.
    folder = data_folder({"siqa/socialIQa_v1.4_trn.jsonl": _siqa(3)})
    plan = make_plan("xcopa:et", data=folder)
    [siqa, _] = plan.fits[0].stages
    assert siqa.validation is not None
    assert siqa.validation[1].files.paths == (folder / "siqa/socialIQa_v1.4_dev.jsonl",)
    assert plan.notes == ()


def test_the_note_reaches_the_results_and_the_report(run: RunTasks, released: Path) -> None:
    finished = run("xcopa:et", data=released)
    [fit] = finished.results.fits.values()
    [note] = [note for note in finished.results.notes if note.startswith("siqa: its dev set ")]
    assert [stage["note"] for stage in fit.stages] == [note, ""]
    assert [stage["validation"]["examples"] for stage in fit.stages] == [0, 5]
    assert note in summarise([finished]).notes


def test_a_missing_dev_set_is_reported_where_a_checkpoint_would_be_chosen(
    make_plan: MakePlan, released: Path
) -> None:
    (released / "xcopa/copa-en/val-en.jsonl").unlink()
    plan = make_plan("xcopa:et", data=released, recipe="quick")
    assert plan.fits[0].stages[1].settings.select_best
    siqa, copa = plan.notes
    assert siqa.startswith("siqa: its dev set ")
    assert copa.startswith("copa: no dev set was found")


def test_nothing_is_reported_where_no_checkpoint_is_chosen_anyway(
    make_plan: MakePlan, data_folder: DataFolder, tmp_path: Path
) -> None:
    folder = data_folder(
        {"mlqa/MLQA_V1/test/test-context-de-question-de.json": "{}", "squad/train-v1.1.json": "{}"}
    )
    plan = make_plan("mlqa:de", data=folder)
    [stage] = plan.fits[0].stages
    assert (stage.validation, stage.settings.select_best, plan.notes) == (None, False, ())


# Variants -----------------------------------------------------------------------------------------------


def _views(run: Run) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (cell.language, cell.view.get("variant", "original")): {
            record.id: record for record in run.records(cell)
        }
        for cell in run.cells
        if cell.status == "ok"
    }


def test_the_aligned_variant_repairs_the_question_of_the_same_items(run: RunTasks, released: Path) -> None:
    finished = run(
        "xcopa:et+tr", data=released, variants=("original", "aligned_question", "original"), limit=None
    )
    assert len(finished.cells) == 4  # named twice, run once
    views = _views(finished)
    assert list(views) == [(code, name) for code in ("et", "tr") for name in ("original", "aligned_question")]
    for (code, _), records in views.items():
        assert list(records) == [str(number) for number in range(8)], code

    def differing(code: str) -> list[str]:
        old, new = views[code, "original"], views[code, "aligned_question"]
        return [name for name in old if old[name].inputs_digest != new[name].inputs_digest]

    assert differing("et") == []
    assert differing("tr") == ["4", "5", "6", "7"]
    assert [record.reference for record in views["tr", "aligned_question"].values()] == [
        *("choice1", "choice2"),
    ] * 4
    rows = {json.dumps(row.view): row.languages for row in finished.results.tasks}
    assert rows == {"{}": 2, '{"variant": "aligned_question"}': 2}


def test_a_limit_takes_the_same_items_of_both_versions(run: RunTasks, released: Path) -> None:
    finished = run("xcopa:et+tr", data=released, variants=("original", "aligned_question"), limit=3)
    kept = {tuple(records) for records in _views(finished).values()}
    assert len(kept) == 1


def test_an_unknown_variant_is_skipped_with_those_that_there_are(make_plan: MakePlan, released: Path) -> None:
    plan = make_plan("xcopa:et", "xnli:de", data=released, variants=("original", "aligned"))
    assert [(cell.title, cell.view) for cell in plan.cells] == [("xcopa:et", {})]
    reasons = [skip.reason for skip in plan.skipped if "has no variant" in skip.reason]
    assert reasons == [
        "task 'xcopa' has no variant 'aligned'; it has: original, aligned_question",
        "task 'xnli' has no variant 'aligned'; it has: original",
    ]


def test_without_original_only_the_variant_is_run(run: RunTasks, make_plan: MakePlan, released: Path) -> None:
    plan = make_plan("xcopa:et+tr", data=released, variants=("aligned_question",))
    assert [cell.view for cell in plan.cells] == [{"variant": "aligned_question"}] * 2
    assert [path.name for path in plan.cells[1].test.files.paths] == ["test.tr.jsonl", "test.et.jsonl"]
    assert len({cell.digest for cell in plan.cells}) == 2
    [cell] = run("xcopa:tr", data=released, variants="aligned_question", protocols="zero_shot_transfer").cells
    assert (cell.status, cell.view) == ("ok", {"variant": "aligned_question"})


def test_a_broken_cause_or_effect_fails_the_cell_with_its_place(run: RunTasks, released: Path) -> None:
    path = released / "xcopa/data/tr/test.tr.jsonl"
    path.write_text(_copa(8, "reason"), encoding="utf-8")
    finished = run("xcopa:et+tr", data=released)
    assert [cell.status for cell in finished.cells] == ["ok", "failed"]
    assert finished.cells[1].reason == (
        f"{path}:1: the field 'question' of 'xcopa' is 'reason'; expected 'cause' or 'effect'."
    )


def test_unlabelled_choices_are_predicted_and_not_scored(run: RunTasks, released: Path) -> None:
    (released / "xcopa/data/et/test.et.jsonl").write_text(_copa(8, label=None), encoding="utf-8")
    finished = run("xcopa:et", data=released)
    [cell] = finished.cells
    assert (cell.status, cell.n, cell.metrics) == ("ok", 5, {})
    assert {record.reference for record in finished.records(cell)} == {None}
