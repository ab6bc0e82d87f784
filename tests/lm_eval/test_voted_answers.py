"""Questions whose answers have votes are read as the authors' evaluation of BLEnD takes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import DataError
from harness_lm_eval.voted_answers import READER


def question(
    *answers: list[str], idk: int = 0, no_answer: int = 0, not_applicable: int = 0
) -> dict[str, Any]:
    votes = {"idk": idk, "no-answer": no_answer, "not-applicable": not_applicable}
    annotations = [{"answers": texts, "en_answers": ["rice"], "count": 1} for texts in answers]
    return {"question": "Was?", "en_question": "What?", "annotations": annotations, "idks": votes}


def written(folder: Path, records: Any) -> list[Path]:
    path = folder / "UK_data.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    return [path]


def test_all_answers_of_a_question_count_once_and_blank_ones_never(tmp_path: Path) -> None:
    paths = written(tmp_path, {"a-1": question(["Reis", "Bohnen"], ["Reis", " ", ""])})
    [row] = READER.read(paths, {})
    answers = [{"text": "Reis", "start": -1}, {"text": "Bohnen", "start": -1}]
    assert row.fields == {"id": "a-1", "context": "", "question": "Was?", "answers": answers}
    [english] = READER.read(paths, {"question": "en_question"})
    assert english.fields["question"] == "What?"


def test_questions_that_too_many_could_not_answer_are_skipped(tmp_path: Path) -> None:
    records = {
        "kept": question(["Reis"], idk=4, no_answer=1, not_applicable=1),
        "unknown": question(["Reis"], idk=5),
        "unusable": question(["Reis"], no_answer=1, not_applicable=2),
        "none": question(),
        "blank": question([""]),
    }
    assert [row.fields["id"] for row in READER.read(written(tmp_path, records), {})] == ["kept"]


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "expected an object whose keys are ids of questions"),
        ({"a": 1}, "record 1: expected an object"),
        ({"a": {"annotations": [{"answers": ["x"]}]}}, "record 1: expected a column 'idks'"),
    ],
)
def test_a_fault_names_the_record(records: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        list(READER.read(written(tmp_path, records), {}))
