"""Multiple choice: phrases and labels on their way in, scores on their way out, and what is rejected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from harness.data.records import MultipleChoiceExample, Row
from harness.errors import ContractError, DataError
from harness.kinds.choices import METHODS, MULTIPLE_CHOICE as KIND
from harness.kinds.kind import ReadContext, read_examples
from harness.kinds.methods import MethodContext
from harness.languages.table import known_languages
from harness.models.capabilities import Choice
from harness.models.requests import FloatArray
from harness.running.session import Session

PHRASES = {"question": {"cause": "What was the cause?", "effect": "What was the effect?"}}


def _item(**fields: Any) -> dict[str, Any]:
    given = {"id": "7", "premise": "It rained.", "choice1": "Wet.", "choice2": "Dry.", "question": "effect"}
    return {**given, "label": 0, **fields}


def _read(*items: dict[str, Any], **fields: Any) -> list[MultipleChoiceExample]:
    given: dict[str, Any] = {
        "owner": "mine",
        "language": "et",
        "split": "test",
        "inputs": ("premise", "question"),
        "labels": ("choice1", "choice2"),
        "label_map": {"0": "choice1", "1": "choice2"},
        "phrases": PHRASES,
    }
    rows = [Row(fields=item, path="f.jsonl", line=line) for line, item in enumerate(items, start=1)]
    examples = read_examples(KIND, rows, ReadContext(**{**given, **fields}))
    return [example for example in examples if isinstance(example, MultipleChoiceExample)]


def test_a_value_in_the_file_becomes_the_words_that_a_model_reads() -> None:
    [effect, cause] = _read(_item(), _item(id="8", question="cause"))
    assert effect.context == "It rained. What was the effect?"
    assert cause.context == "It rained. What was the cause?"
    # The file's value is kept as well: reports and diagnosis distinguish causes from effects.
    assert effect.inputs == {"premise": "It rained.", "question": "effect"}
    assert effect.choices == ("Wet.", "Dry.")
    [plain] = _read(_item(question="Why?"), phrases={})
    assert plain.context == "It rained. Why?"


@pytest.mark.parametrize("value", ["Cause", "cause ", "", "reason"])
def test_an_unknown_value_is_rejected_with_its_place(value: str) -> None:
    with pytest.raises(DataError, match=rf"f\.jsonl:2: the field 'question' of 'mine' is {value!r}"):
        _read(_item(), _item(id="8", question=value))


def test_labels_are_mapped_to_the_fields_of_the_choices() -> None:
    examples = _read(_item(), _item(id="8", label=1), _item(id="9", label="choice2"))
    assert [example.label for example in examples] == [0, 1, 1]
    assert [KIND.reference(example) for example in examples] == ["choice1", "choice2", "choice2"]
    with pytest.raises(DataError, match=r"f\.jsonl:1: .*'2'.* choice1, choice2"):
        _read(_item(label=2))
    [unlabelled] = _read(_item(label=None))
    assert (unlabelled.label, KIND.reference(unlabelled)) == (None, None)
    item = _item()
    del item["choice2"]
    with pytest.raises(DataError, match=r"f\.jsonl:1: expected the text field 'choice2' of 'mine'"):
        _read(item)


class _Chooser:
    def __init__(self, scores: list[list[float]]) -> None:
        self._scores = scores
        self.asked: list[Choice] = []

    def choose(self, inputs: Sequence[Choice]) -> list[FloatArray]:
        self.asked += inputs
        return [np.asarray(row, dtype=np.float32) for row in self._scores]


def _predict(session: Session, scores: list[list[float]]) -> tuple[list[Any], _Chooser]:
    context = MethodContext(
        spec=session.catalog.task("xcopa").spec,
        language=known_languages().get("et"),
        protocol="zero_shot_transfer",
        seed=42,
    )
    chooser = _Chooser(scores)
    [head] = [method for method in METHODS if (method.kind, method.name) == (KIND.name, "head")]
    predictions = head.predict(chooser, _read(_item(), _item(id="8")), context)
    return [(prediction.id, prediction.output) for prediction in predictions], chooser


def test_the_best_choice_is_answered_by_the_name_of_its_field(session: Session) -> None:
    answers, chooser = _predict(session, [[0.1, 0.9], [2.0, -1.0]])
    assert answers == [
        ("7", {"label": "choice2", "scores": [0.1, 0.9]}),
        ("8", {"label": "choice1", "scores": [2.0, -1.0]}),
    ]
    assert chooser.asked[0] == Choice(context="It rained. What was the effect?", choices=("Wet.", "Dry."))


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([[0.1, 0.9]], r"choose\(\) returned 1 answers to 2 items\."),
        ([[0.1, 0.9], [0.1]], r"for the 2 choices of '8'\."),
        ([[0.1, float("nan")], [0.1, 0.9]], r"for the 2 choices of '7'\."),
    ],
)
def test_broken_answers_are_rejected(session: Session, scores: list[list[float]], message: str) -> None:
    with pytest.raises(ContractError, match=message):
        _predict(session, scores)
