from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import DataError
from harness_xtreme_r.submission.formats import FilePair, GoldItem
from harness_xtreme_r.submission.layout import TASKS

FILES = FilePair(predictions=Path("p.json"), gold=Path("g.json"))
ANSWER_TASKS = ("xquad", "mlqa", "tydiqa")


def squad(*questions: dict[str, Any]) -> dict[str, Any]:
    return {"version": "1.1", "data": [{"paragraphs": [{"context": "c", "qas": list(questions)}]}]}


def question(key: Any, *texts: Any) -> dict[str, Any]:
    return {"id": key, "question": "q", "answers": [{"text": text, "answer_start": 0} for text in texts]}


def saved(tmp_path: Path, content: Any) -> Path:
    path = tmp_path / "test-en.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ANSWER_TASKS)
def test_answers_round_trip(name: str, tmp_path: Path) -> None:
    answers = {"a": "der Löwe", "b": "", "c": "獅子"}
    path = TASKS[name].path(tmp_path, "de")
    TASKS[name].format.write(path, answers)
    assert path.name == "test-de.json"
    assert "獅子" in path.read_text(encoding="utf-8")
    assert TASKS[name].format.read_predictions(path) == answers


def test_rankings_round_trip(tmp_path: Path) -> None:
    rankings = {"m1": ["Q1", "Q2"], "m2": []}
    path = TASKS["mewslix"].path(tmp_path, "de")
    TASKS["mewslix"].format.write(path, rankings)
    assert TASKS["mewslix"].format.read_predictions(path) == rankings


@pytest.mark.parametrize("name", ANSWER_TASKS)
@pytest.mark.parametrize(
    "content",
    [
        squad(question("a", "cat", "a cat"), question("b", "dog")),
        {"a": ["cat", "a cat"], "b": ["dog"]},
        {"a": ["cat", "a cat"], "b": "dog"},
    ],
)
def test_gold_answers(name: str, content: Any, tmp_path: Path) -> None:
    gold = TASKS[name].format.read_gold(saved(tmp_path, content))
    assert gold == [GoldItem(id="a", references=("cat", "a cat")), GoldItem(id="b", references=("dog",))]


def test_gold_entities(tmp_path: Path) -> None:
    gold = TASKS["mewslix"].format.read_gold(saved(tmp_path, {"m1": ["Q1 "]}))
    assert gold == [GoldItem(id="m1", references=("Q1",))]


def test_missing_and_extra_ids() -> None:
    gold = [GoldItem(id="a", references=("x",)), GoldItem(id="b", references=("y",))]
    paired = TASKS["xquad"].format.pair({"b": "y", "z": "?"}, gold, FILES)
    assert paired.outputs == [None, "y"]
    assert (paired.missing, paired.extra) == (("a",), ("z",))
    assert TASKS["mewslix"].format.pair({"b": ["y"]}, gold, FILES).outputs == [[], ["y"]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("xquad", '{"a": "x",\n"b" "y"}', ":2: .* found broken JSON: Expecting ':' delimiter"),
        ("xquad", '{"a": "x", "a": "y"}', "expected every id once, found 'a' repeated"),
        ("xquad", "[]", ":1: expected an object of question id and answer text, found a JSON list"),
        ("xquad", {"a": ["x"]}, r"id 'a': expected an answer text, found \['x'\]"),
        ("xquad", {"a": None}, "id 'a': expected an answer text, found None"),
        ("xquad", squad(question("a", "x")), "id 'version'|id 'data'"),
        ("mewslix", {"a": "Q1"}, "id 'a': expected a list of entity ids, found 'Q1'"),
        ("mewslix", {"a": ["Q1", 2]}, "id 'a': expected a list of entity ids, found 2 among them"),
    ],
)
def test_rejects_malformed_predictions(name: str, content: Any, message: str, tmp_path: Path) -> None:
    if name == "xquad" and isinstance(content, dict) and "version" in content:
        del content["version"]
    with pytest.raises(DataError, match=message):
        TASKS[name].format.read_predictions(saved(tmp_path, content))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "xquad",
            squad(question("a")),
            "id 'a': expected at least one gold answer, .* original file as gold",
        ),
        ("xquad", squad(question("a", ""), question("b", "")), "found only empty ones. Prepared test files"),
        ("xquad", squad(question(7, "x")), "question 7: expected texts, found 7 among them"),
        ("xquad", squad({"id": "a", "question": "q"}), "SQuAD layout .*KeyError: 'answers'"),
        ("xquad", {"data": {"a": "x"}}, "SQuAD layout .*TypeError"),
        ("xquad", {"data": []}, ":1: expected at least one question, found none"),
        ("xquad", {}, ":1: expected at least one question, found none"),
        ("xquad", {"a": []}, "id 'a': expected at least one gold answer"),
        ("xquad", {"a": 3}, "id 'a': expected answer texts, found 3"),
        ("mewslix", {"a": ["Q1", "Q2"]}, "id 'a': expected exactly one gold entity, found 2"),
        ("mewslix", {"a": []}, "id 'a': expected exactly one gold entity, found 0"),
        ("mewslix", {}, ":1: expected at least one mention"),
    ],
)
def test_rejects_malformed_gold(name: str, content: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        TASKS[name].format.read_gold(saved(tmp_path, content))


def test_a_question_asked_twice_counts_twice(tmp_path: Path) -> None:
    gold = TASKS["tydiqa"].format.read_gold(saved(tmp_path, squad(question("a", "x"), question("a", "y"))))
    assert TASKS["tydiqa"].format.pair({"a": "y"}, gold, FILES).outputs == ["y", "y"]
