"""Several labels and graded pairs: rows become examples, and heads, answers and vectors become predictions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness import ContractError, DataError
from harness.data import Row
from harness.data.origin import Origin
from harness.data.readers.reader import wanted_records
from harness.kinds import ReadContext
from harness.models import FloatArray, TextInput
from harness.running.session import open_session
from harness_semeval import multilabel, relatedness
from harness_semeval.relatedness import SEMREL

LABELS = ("anger", "fear", "joy")
SETS = multilabel.label_sets(LABELS)


def labelled(**fields: Any) -> multilabel.MultilabelExample:
    context = ReadContext(owner="t", language="en", split="test", inputs=("text",), labels=SETS)
    row = Row(fields={"id": "1", "text": "Hello.", **fields}, path="file", line=1)
    example = multilabel.KIND.example(row, 1, context)
    assert isinstance(example, multilabel.MultilabelExample)
    return example


def pair(**fields: Any) -> relatedness.GradedPair:
    grades = ("0", "0.25", "0.5", "0.75", "1")
    context = ReadContext(owner="t", language="en", split="test", inputs=("a", "b"), labels=grades)
    row = Row(fields={"id": "1", "a": "One.", "b": "Two.", **fields}, path="file", line=1)
    example = relatedness.KIND.example(row, 1, context)
    assert isinstance(example, relatedness.GradedPair)
    return example


class Model:
    """Gives fixed scores, and vectors of the length of a text."""

    def __init__(self, scores: Any) -> None:
        self._scores = scores

    def classify(self, inputs: Sequence[TextInput], labels: Sequence[str]) -> FloatArray:
        return np.asarray(self._scores, dtype=np.float32)

    def embed(self, texts: Sequence[str], *, side: str) -> FloatArray:
        return np.array([[1.0, 0.0] if len(text) == 4 else [0.6, 0.8] for text in texts], dtype=np.float32)


def context(labels: Sequence[str]) -> Any:
    return SimpleNamespace(spec=SimpleNamespace(label_names=tuple(labels)))


def by_name(methods: Sequence[Any], name: str) -> Any:
    return next(method.predict for method in methods if method.name == name)


def test_all_sets_of_labels_are_outputs_of_the_head() -> None:
    assert SETS == (
        *("none", "joy", "fear", "fear+joy"),
        *("anger", "anger+joy", "anger+fear", "anger+fear+joy"),
    )
    assert multilabel.base_labels(SETS) == list(LABELS)


def test_columns_become_a_set_and_a_missing_one_is_not_annotated() -> None:
    example = labelled(anger=1, fear=None, joy="0")
    assert example.label == "anger"
    assert multilabel.KIND.reference(example) == {"labels": ["anger"], "annotated": ["anger", "joy"]}
    assert multilabel.KIND.reference(labelled(anger=0, joy=0)) == {
        "labels": [],
        "annotated": ["anger", "joy"],
    }
    assert multilabel.KIND.reference(labelled()) is None


def test_a_mark_is_0_or_1() -> None:
    with pytest.raises(DataError, match="expected 0 or 1 in the column 'fear', found 2"):
        labelled(anger=1, fear=2, joy=0)


def test_a_label_has_the_probability_of_all_sets_with_it() -> None:
    """No set has half of the probability, and joy is in two of them."""
    shares = {"none": 0.3, "joy": 0.3, "fear+joy": 0.3, "anger": 0.1}
    scores = np.log([[shares.get(name, 1e-9) for name in SETS]])
    predict = by_name(multilabel.METHODS, "head")
    [prediction] = predict(Model(scores), [labelled(anger=1, fear=0, joy=0)], context(SETS))
    assert prediction.output["labels"] == ["joy"]
    assert prediction.output["scores"] == pytest.approx([0.1, 0.3, 0.6], abs=1e-5)


def test_scores_of_another_shape_are_a_fault_of_the_adapter() -> None:
    predict = by_name(multilabel.METHODS, "head")
    with pytest.raises(ContractError, match=r"expected finite ones of shape \(1, 8\)"):
        predict(Model([[0.0, 1.0]]), [labelled(anger=1)], context(SETS))


@pytest.mark.parametrize(
    ("text", "labels", "is_read"),
    [
        ("Joy, anger", ["anger", "joy"], True),
        ("none", [], True),
        ("The writer enjoys it", [], False),
    ],
)
def test_written_labels_are_whole_words(text: str, labels: list[str], is_read: bool) -> None:
    output, is_parsed = multilabel._read(labelled(anger=1, fear=0, joy=1), text)
    assert (output["labels"], is_parsed) == (labels, is_read)


def test_a_grade_is_kept_and_its_nearest_is_trained_on() -> None:
    example = pair(score="0.6")
    assert (example.label, relatedness.KIND.reference(example)) == ("0.5", 0.6)
    assert relatedness.KIND.reference(pair()) is None


@pytest.mark.parametrize("score", ["1.5", "high"])
def test_a_grade_is_on_the_scale(score: str) -> None:
    with pytest.raises(DataError, match="expected a grade from 0 to 1 in 'score'"):
        pair(score=score)


def test_a_head_gives_the_expected_grade() -> None:
    predict = by_name(relatedness.METHODS, "head")
    scores = np.log([[0.5, 1e-9, 1e-9, 1e-9, 0.5]])
    [prediction] = predict(Model(scores), [pair(score=1)], context(pair().labels))
    assert prediction.output["grade"] == pytest.approx(0.5)


def test_vectors_give_the_cosine() -> None:
    predict = by_name(relatedness.METHODS, "embed")
    same, other = predict(Model(None), [pair(score=1), pair(score=0, b="Three.")], context(()))
    assert (same.output["grade"], other.output["grade"]) == (1.0, pytest.approx(0.6))


@pytest.mark.parametrize(
    ("text", "grade", "is_read"), [("0,8", 0.8, True), ("7 of 10: 0.7", 0.7, True), ("very", 0.0, False)]
)
def test_the_first_number_on_the_scale_is_read(text: str, grade: float, is_read: bool) -> None:
    output, is_parsed = relatedness._read_grade(pair(), text)
    assert (output["grade"], is_parsed) == (grade, is_read)


def test_both_sentences_of_a_cell_are_read(tmp_path: Path) -> None:
    """As the files of most languages, of Hindi, of Afrikaans and of Punjabi have them."""
    path = tmp_path / "x_test.csv"
    path.write_text(
        'Text,Score,PairID\n"One.\nTwo.",0.5,a\n"""One.""\n""Two.""",1.0,b\n"One.\tTwo.",0.25,c\n',
        encoding="utf-8",
    )
    rows = [dict(row.fields) for row in SEMREL.rows([path], {})]
    assert [row["id"] for row in rows] == ["a", "b", "c"]
    assert all((row["sentence1"], row["sentence2"]) == ("One.", "Two.") for row in rows)
    path.write_text('PairID,Text,Score\na,"One. Two.",0.5\n', encoding="utf-8")
    with pytest.raises(DataError, match="expected two sentences on two lines"):
        list(SEMREL.rows([path], {}))


@pytest.mark.parametrize(
    ("language", "identifiers", "expected"),
    [
        ("de", ["deu_test_track_a_1", "deu_test_track_c_1"], ["deu_test_track_a_1"]),
        ("en", ["eng_test_track1_1", "eng_test_track_c_1"], ["eng_test_track1_1"]),
        ("zu", ["zul_test_track_c_1"], ["zul_test_track_c_1"]),
    ],
)
def test_the_hub_gives_each_text_of_brighter_once(
    language: str, identifiers: list[str], expected: list[str]
) -> None:
    """Its test files hold the items of two tracks with the same texts; four languages are only in track C."""
    origin = Origin.of(open_session().catalog.task("brighter"))
    source = origin.source(language, "test")
    assert source is not None
    files = next(ref.hub for ref in origin.refs(language, "test", source))
    assert files is not None
    condition = wanted_records(files.options)
    assert condition is not None
    assert [name for name in identifiers if condition.holds({"id": name}, "row")] == expected
