"""Formats of submissions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import DataError, UsageError
from harness_xtreme_r.submission.formats import TASKS, FilePair, GoldItem

CONTENTS: dict[str, tuple[Any, str]] = {
    "xnli": (["contradiction", "neutral", "entailment"], "contradiction\nneutral\nentailment\n"),
    "pawsx": (["0", "1", "1"], "0\n1\n1\n"),
    "xcopa": ([0, 1], '{"label": 0}\n{"label": 1}\n'),
    "udpos": ([["DET", "NOUN"], ["VERB"]], "DET\nNOUN\n\nVERB\n"),
    "panx": ([["B-PER", "I-PER", "O"], ["O"]], "B-PER\nI-PER\nO\n\nO\n"),
    "tatoeba": ([2, 0, 1], "2\n0\n1\n"),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_round_trip(name: str, tmp_path: Path) -> None:
    content, text = CONTENTS[name]
    task = TASKS[name]
    path = task.path(tmp_path, "sw")
    task.format.write(path, content)
    assert path == tmp_path / name / f"test-sw.{'jsonl' if name == 'xcopa' else 'tsv'}"
    assert path.read_bytes() == text.encode()
    assert task.format.read_predictions(path) == content
    assert task.format.read_gold(path) == content


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("change", ["\ufeff{}", "{}\n\n", "{}  \n"])
def test_harmless_differences(name: str, change: str, tmp_path: Path) -> None:
    content, text = CONTENTS[name]
    path = tmp_path / "test-sw.tsv"
    path.write_bytes(change.format(text).replace("\n", "\r\n").encode())
    assert TASKS[name].format.read_predictions(path) == content


@pytest.mark.parametrize(
    ("name", "text", "content"),
    [
        ("xnli", 'A "premise"\tA hypothesis\tcontradictory\nB\tC\tneutral\n', ["contradiction", "neutral"]),
        ("pawsx", "A\tB\t1\nC\tD\t0\n", ["1", "0"]),
        ("xcopa", '{"premise": "p", "choice1": "a", "label": 1, "idx": 0, "changed": false}\n', [1]),
        ("udpos", "The\tDET\ncat\tNOUN\n\nRuns\tVERB\n\n", [["DET", "NOUN"], ["VERB"]]),
        ("udpos", "\u2028\tPUNCT\n\u00a0\tX\n", [["PUNCT", "X"]]),
        ("panx", "en:12:30\tO\nen:Ann\tB-PER\n", [["O", "B-PER"]]),
    ],
)
def test_gold_may_hold_the_texts(name: str, text: str, content: Any, tmp_path: Path) -> None:
    path = tmp_path / "test-en.tsv"
    path.write_text(text, encoding="utf-8")
    assert TASKS[name].format.read_gold(path) == content


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("xnli", "neutral\nentailed\n", r":2: .* found 'entailed'. Did you mean 'entailment'\?"),
        ("xnli", "neutral\n\nneutral\n", ":2: expected contradiction, entailment or neutral, found ''"),
        ("xnli", "premise\thypothesis\tneutral\n", ":1: expected contradiction"),
        ("xnli", "", ":1: expected at least one item, found an empty file"),
        ("pawsx", "0\n2\n", ":2: expected 0 or 1, found '2'"),
        ("xcopa", '{"label": 0}\n{"label": 2}\n', ":2: expected an object"),
        ("xcopa", '{"label": true}\n', ":1: expected an object"),
        ("xcopa", '{"label": "0"}\n', ":1: expected an object"),
        ("xcopa", "0\n", ":1: expected an object"),
        ("xcopa", "{label: 0}\n", ":1: expected an object .*Expecting property name"),
        ("tatoeba", "1\n-2\n", ":2: expected the 0-based number of a sentence, found '-2'"),
        ("tatoeba", "1.0\n", ":1: expected the 0-based number"),
        ("tatoeba", "1\n\n2\n", ":2: expected the 0-based number"),
        ("udpos", "DET\nNOUNS\n", ":2: expected a universal part-of-speech tag such as NOUN, found 'NOUNS'"),
        ("udpos", "The\tDET\n", ":1: expected one tag and no word, found 2 columns"),
        ("panx", "O\n\nPER\n", ":3: expected O or an entity tag such as B-PER, found 'PER'"),
        ("panx", "\n\n", ":1: expected at least one item"),
    ],
)
def test_rejects_malformed_files(name: str, text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "test-en.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        TASKS[name].format.read_predictions(path)
    path.write_text("The\tDET\ncat\t\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"test-en.tsv:2: .*found ''"):
        TASKS["udpos"].format.read_gold(path)


@pytest.mark.parametrize("name", CONTENTS)
def test_rejects_what_is_not_utf_8(name: str, tmp_path: Path) -> None:
    path = tmp_path / "test-en.tsv"
    path.write_bytes(CONTENTS[name][1].encode() + b"\xff\n")
    line = CONTENTS[name][1].count("\n") + 1
    with pytest.raises(DataError, match=f":{line}: expected UTF-8, found the byte 0xff"):
        TASKS[name].format.read_predictions(path)
    with pytest.raises(DataError, match=r"expected a readable file"):
        TASKS[name].format.read_predictions(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("xnli", ["neutral", ""], ":2: expected contradiction"),
        ("xcopa", [3], ":1: expected an object"),
        ("tatoeba", [-1], ":1: expected the 0-based number"),
        ("udpos", [["DET"], ["noun"]], ":3: expected a universal"),
        ("udpos", [["DET"], []], "the last one with a tag"),
    ],
)
def test_writes_nothing_malformed(name: str, content: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "out"
    with pytest.raises(DataError, match=message):
        TASKS[name].format.write(path, content)
    assert not path.exists()
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="out"):
        TASKS["xnli"].format.write(tmp_path / "file" / "out", ["neutral"])


@pytest.mark.parametrize("name", ["xnli", "pawsx", "xcopa", "tatoeba"])
def test_rejects_other_counts(name: str) -> None:
    content = CONTENTS[name][0]
    files = FilePair(predictions=Path("p/test-en.tsv"), gold=Path("g/test-en.tsv"))
    expected = rf"p/test-en.tsv:{len(content) - 1}: expected {len(content)} lines, .*g/test-en.tsv, found"
    with pytest.raises(DataError, match=expected):
        TASKS[name].format.pair(content[:-1], content, files)


def test_rejects_sentences_of_other_lengths() -> None:
    files = FilePair(predictions=Path("p.tsv"), gold=Path("g.tsv"))
    gold = [["DET", "NOUN"], [], ["VERB", "NOUN"]]
    pair = TASKS["udpos"].format.pair
    assert pair(gold, gold, files).references == gold
    with pytest.raises(DataError, match=r"p.tsv:5: expected 2 tags in sentence 3, as in g.tsv, found 1"):
        pair([["DET", "NOUN"], [], ["VERB"]], gold, files)
    with pytest.raises(DataError, match=r"p.tsv: expected 3 sentences, as in g.tsv, found 2; the first 2"):
        pair(gold[:2], gold, files)


def test_two_blank_lines_hold_an_empty_sentence(tmp_path: Path) -> None:
    path = tmp_path / "test-en.tsv"
    path.write_text("DET\n\n\nNOUN\n", encoding="utf-8")
    assert TASKS["udpos"].format.read_predictions(path) == [["DET"], [], ["NOUN"]]


def test_counting_from_one_is_noticed() -> None:
    files = FilePair(predictions=Path("p.tsv"), gold=Path("g.tsv"))
    pair = TASKS["tatoeba"].format.pair
    assert "1 lines of p.tsv hold numbers above 2, such as 3" in pair([3, 1, 2], [2, 0, 1], files).note
    assert pair([1, 1, 2], [2, 0, 1], files).note == ""
    assert pair([367, 9], [367, 258], files).note == ""  # gold of a subset counts in the whole set


@pytest.mark.parametrize("language", ["", "../x", "de/x", "de.tsv", "DE", "german"])
def test_rejects_paths_as_languages(language: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Expected a language code"):
        TASKS["xnli"].path(tmp_path, language)


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


@pytest.mark.parametrize("name", [*ANSWER_TASKS, "mewslix"])
def test_answers_and_rankings_round_trip(name: str, tmp_path: Path) -> None:
    answers: dict[str, Any] = {"a": "der Löwe", "b": "", "c": "獅子"}
    content = answers if name in ANSWER_TASKS else {"m獅子": ["Q1", "Q2"], "m2": []}
    path = TASKS[name].path(tmp_path, "de")
    TASKS[name].format.write(path, content)
    assert path.name == "test-de.json"
    assert "獅子" in path.read_text(encoding="utf-8")
    assert TASKS[name].format.read_predictions(path) == content


@pytest.mark.parametrize("name", ANSWER_TASKS)
@pytest.mark.parametrize(
    "content",
    [
        squad(question("a", "cat", "a cat"), question("b", "dog")),
        {"a": ["cat", "a cat"], "b": ["dog"]},
        {"a": ["cat", "a cat"], "b": "dog"},
    ],
)
def test_gold_answers_and_entities(name: str, content: Any, tmp_path: Path) -> None:
    gold = TASKS[name].format.read_gold(saved(tmp_path, content))
    assert gold == [GoldItem(id="a", references=("cat", "a cat")), GoldItem(id="b", references=("dog",))]
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
        ("xquad", '{"a": "x",\n"b" "y"}', ":2: .*JSON"),
        ("xquad", '{"a": "x", "a": "y"}', "'a' repeated"),
        ("xquad", "[]", ":1: .*list"),
        ("xquad", {"a": ["x"]}, r"id 'a': .*\['x'\]"),
        ("xquad", {"a": None}, "id 'a': .*None"),
        ("xquad", {"data": squad(question("a", "x"))["data"]}, "id 'data'"),
        ("mewslix", {"a": "Q1"}, "id 'a': .*'Q1'"),
        ("mewslix", {"a": ["Q1", 2]}, "id 'a': .*found 2 "),
    ],
)
def test_rejects_malformed_predictions(name: str, content: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        TASKS[name].format.read_predictions(saved(tmp_path, content))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("xquad", squad(question("a")), "id 'a': .*at least one gold answer"),
        ("xquad", squad(question("a", ""), question("b", "")), "only empty ones"),
        ("xquad", squad(question(7, "x")), "question 7: .*found 7"),
        ("xquad", squad({"id": "a", "question": "q"}), "SQuAD .*'answers'"),
        ("xquad", {"data": {"a": "x"}}, "SQuAD"),
        ("xquad", {"data": []}, ":1: expected at least one question"),
        ("xquad", {}, ":1: expected at least one question"),
        ("xquad", {"a": []}, "id 'a': .*at least one gold answer"),
        ("xquad", {"a": 3}, "id 'a': .*found 3"),
        ("mewslix", {"a": ["Q1", "Q2"]}, "id 'a': .*found 2"),
        ("mewslix", {"a": []}, "id 'a': .*found 0"),
        ("mewslix", {}, ":1: expected at least one mention"),
    ],
)
def test_rejects_malformed_gold(name: str, content: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        TASKS[name].format.read_gold(saved(tmp_path, content))


def test_a_question_asked_twice_counts_twice(tmp_path: Path) -> None:
    gold = TASKS["tydiqa"].format.read_gold(saved(tmp_path, squad(question("a", "x"), question("a", "y"))))
    assert TASKS["tydiqa"].format.pair({"a": "y"}, gold, FILES).outputs == ["y", "y"]
