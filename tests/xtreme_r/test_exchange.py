from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.data.records import Prediction
from harness.errors import DataError, UsageError
from harness_xtreme_r.submission.exchange import read_predictions, write_predictions
from harness_xtreme_r.submission.layout import TASKS

IDS = ["7", "8", "9"]
ENGLISH = ["c", "a", "b"]
OUTPUTS: dict[str, list[Any]] = {
    "xnli": [{"label": label} for label in ("neutral", "entailment", "contradiction")],
    "pawsx": [{"label": label} for label in ("0", "1", "1")],
    "xcopa": [{"label": label} for label in ("choice1", "choice2", "choice2")],
    "udpos": [["DET", "NOUN"], ["VERB"], ["X"]],
    "panx": [["B-PER"], ["O", "I-LOC"], ["O"]],
    "xquad": [{"text": "cat"}, {"text": ""}, {"text": "獅子"}],
    "mlqa": [{"text": "cat"}, {"text": ""}, {"text": "獅子"}],
    "tydiqa": [{"text": "cat"}, {"text": ""}, {"text": "獅子"}],
    "tatoeba": [{"candidate": "8"}, {"candidate": "8"}, {"candidate": "7"}],
    "mewslix": [{"candidates": ids, "further": []} for ids in (["Q1", "Q2"], [], ["Q3"])],
}


def predictions(name: str, outputs: list[Any] | None = None) -> list[Prediction]:
    return [Prediction(id=key, output=out) for key, out in zip(IDS, outputs or OUTPUTS[name], strict=True)]


@pytest.mark.parametrize("name", TASKS)
def test_round_trip(name: str, tmp_path: Path) -> None:
    english = ENGLISH if name == "tatoeba" else None
    path = write_predictions(TASKS[name], tmp_path, "fi", predictions(name), english=english)
    assert path.parent == tmp_path / name
    assert read_predictions(TASKS[name], path, IDS, english=english) == predictions(name)


def test_tatoeba_is_written_in_the_order_of_the_sorted_english_lines(tmp_path: Path) -> None:
    path = write_predictions(TASKS["tatoeba"], tmp_path, "fi", predictions("tatoeba"), english=ENGLISH)
    assert path.read_text(encoding="utf-8") == "1\n0\n1\n"  # the candidates of "a", "b", "c"


def test_scores_and_offsets_are_not_exported(tmp_path: Path) -> None:
    outputs = [{"text": "cat", "start": 3, "end": 6, "score": 0.5}] * 3
    path = write_predictions(TASKS["xquad"], tmp_path, "fi", predictions("xquad", outputs))
    assert [p.output for p in read_predictions(TASKS["xquad"], path, IDS)] == [{"text": "cat"}] * 3


@pytest.mark.parametrize(
    ("name", "empty"), [("xquad", {"text": None}), ("mewslix", {"candidates": [], "further": []})]
)
def test_an_absent_id_is_an_unparsed_prediction(name: str, empty: dict[str, Any], tmp_path: Path) -> None:
    path = write_predictions(TASKS[name], tmp_path, "fi", predictions(name)[:2])
    assert read_predictions(TASKS[name], path, IDS)[2] == Prediction(id="9", output=empty, unparsed=True)


def test_the_choices_of_xcopa_are_numbered_from_0(tmp_path: Path) -> None:
    outputs = [{"label": "choice2", "scores": [0.1, 0.9]}, {"label": "choice1"}, {"label": "choice2"}]
    path = write_predictions(TASKS["xcopa"], tmp_path, "et", predictions("xcopa", outputs))
    assert path.read_text(encoding="utf-8") == '{"label": 1}\n{"label": 0}\n{"label": 1}\n'


@pytest.mark.parametrize("label", ["choice3", 1])
def test_an_answer_that_is_no_choice_is_rejected(label: Any, tmp_path: Path) -> None:
    outputs = [*OUTPUTS["xcopa"][:2], {"label": label}]
    message = rf"xcopa: item '9': expected the answer 'choice1' or 'choice2', found {label!r}"
    with pytest.raises(DataError, match=message):
        write_predictions(TASKS["xcopa"], tmp_path, "et", predictions("xcopa", outputs))


def test_of_a_ranking_the_candidates_are_written_and_not_those_after_them(tmp_path: Path) -> None:
    ranked = [f"Q{number}" for number in range(25)]
    outputs = [{"candidates": ranked[:20], "further": ranked[20:]}] * 3
    path = write_predictions(TASKS["mewslix"], tmp_path, "ta", predictions("mewslix", outputs))
    found = read_predictions(TASKS["mewslix"], path, IDS)
    assert [p.output for p in found] == [{"candidates": ranked[:20], "further": []}] * 3


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([f"Q{number}" for number in range(21)], "expected at most 20 entity ids, found 21"),
        (["Q1", "Q2", "Q1"], "expected every entity id once, found 'Q1' 2 times"),
    ],
)
def test_a_faulty_ranking_is_neither_written_nor_read(ids: list[str], message: str, tmp_path: Path) -> None:
    outputs = [*OUTPUTS["mewslix"][:2], {"candidates": ids, "further": []}]
    with pytest.raises(DataError, match=rf"test-ta.json: id '9': {message}"):
        write_predictions(TASKS["mewslix"], tmp_path, "ta", predictions("mewslix", outputs))
    path = TASKS["mewslix"].path(tmp_path, "ta")
    assert not path.exists()
    path.parent.mkdir()
    path.write_text(json.dumps({"7": ["Q1"], "9": ids}), encoding="utf-8")
    with pytest.raises(DataError, match=rf"test-ta.json: id '9': {message}"):
        read_predictions(TASKS["mewslix"], path, IDS)


def test_a_question_without_an_answer_is_skipped(tmp_path: Path) -> None:
    outputs: list[Any] = [{"text": None}, {"text": "x"}, {"text": "y"}]
    path = write_predictions(TASKS["xquad"], tmp_path, "fi", predictions("xquad", outputs))
    assert [p.unparsed for p in read_predictions(TASKS["xquad"], path, IDS)] == [True, False, False]


@pytest.mark.parametrize(("name", "key"), [("xnli", "label"), ("xcopa", "label"), ("tatoeba", "candidate")])
def test_a_missing_line_is_rejected(name: str, key: str, tmp_path: Path) -> None:
    outputs = [*OUTPUTS[name][:2], {key: None}]
    with pytest.raises(DataError, match=r"item '9' has no answer, and its file has a line for every item"):
        write_predictions(TASKS[name], tmp_path, "fi", predictions(name, outputs), english=ENGLISH)


def test_rejects_other_counts_and_names_the_file(tmp_path: Path) -> None:
    path = write_predictions(TASKS["xnli"], tmp_path, "fi", predictions("xnli"))
    with pytest.raises(DataError, match=r"test-fi.tsv: xnli: expected 2 items, found 3"):
        read_predictions(TASKS["xnli"], path, IDS[:2])


def test_tatoeba_needs_the_english_sentences(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'tatoeba' are ordered by the English sentences"):
        write_predictions(TASKS["tatoeba"], tmp_path, "fi", predictions("tatoeba"))
