"""Answers of collapsed models: one value for nearly all items, and answers that only look so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from harness.data.records import Prediction
from harness.kinds.choices import MultipleChoiceSpec, SequenceClassificationSpec
from harness.reporting.overview.run_remarks import FEWEST, collapse_lines, majority_lines
from harness.running.cell_counts import AnswerSpread
from harness.storage.results import CellResult

LABELS = ["entailment", "neutral", "contradiction"]


def _collapse(outputs: Sequence[Any], gold: Sequence[Any], *, unparsed: bool = False) -> dict[str, Any]:
    return _spread(outputs, gold, unparsed=unparsed).to_json()


def _spread(outputs: Sequence[Any], gold: Sequence[Any], *, unparsed: bool = False) -> AnswerSpread:
    spread = AnswerSpread()
    predictions = [
        Prediction(id=str(number), output=output, unparsed=unparsed) for number, output in enumerate(outputs)
    ]
    spread.add(predictions[:3], gold[:3])
    spread.add(predictions[3:], gold[3:])
    return spread


@pytest.mark.parametrize(
    ("output", "gold", "expected"),
    [
        ({"label": "neutral", "scores": [0.1, 0.8, 0.1]}, LABELS * 10, ("neutral", 30, "items")),
        ({"label": "1"}, ["1", "2", "3", "4"] * 8, ("1", 32, "items")),
        ({"text": "", "start": -1, "end": -1}, [["der Hund"], ["die Katze"]] * 4, ("", 8, "items")),
        ({"text": "5 apples", "value": "5"}, [str(number) for number in range(20)], ("5", 20, "items")),
        ({"candidate": "c7", "similarity": 1.0}, [f"c{number}" for number in range(9)], (None, 9, "items")),
        (
            {"candidates": ["p1", "p2"]},
            [{"targets": [f"p{number}"], "languages": []} for number in range(9)],
            (None, 9, "items"),
        ),
        ({"spans": []}, [[[0, 3, "PER"]], [[4, 9, "LOC"]]] * 4, ([], 8, "items")),
        (["NOUN", "NOUN"], [["DET", "NOUN"], ["PRON", "VERB"]] * 6, ("NOUN", 24, "words")),
        (["O", "O", "O", "O"], [["O", "B-PER", "O", "O"]] * 12, ("O", 48, "words")),
    ],
)
def test_one_answer_for_all_items_is_a_collapse(
    output: Any, gold: list[Any], expected: tuple[Any, int, str]
) -> None:
    answer, count, unit = expected
    found = _collapse([output] * len(gold), gold)
    assert found == {"answer": answer, "count": count, "of": count, "unit": unit}
    assert _collapse([output] * len(gold), gold, unparsed=True) == {}
    assert _collapse([output] * len(gold), [None] * len(gold)) == {}


def test_nearly_all_is_enough_and_a_few_items_are_not() -> None:
    nearly = [{"label": "neutral"}] * 58 + [{"label": "entailment"}] * 2
    assert _collapse(nearly, LABELS * 20)["count"] == 58
    assert _collapse([{"label": "neutral"}] * 3, LABELS) == {}


@given(st.lists(st.sampled_from(LABELS), min_size=1, max_size=80), st.booleans())
def test_right_answers_are_no_collapse(gold: list[str], is_skewed: bool) -> None:
    gold = ["neutral"] * (19 * len(gold)) + gold if is_skewed else gold
    assert _collapse([{"label": label} for label in gold], gold) == {}


@given(st.permutations(LABELS * 12))
def test_the_order_of_items_does_not_matter(gold: list[str]) -> None:
    assert _collapse([{"label": "neutral"}] * 36, gold)["of"] == 36


def test_a_line_sums_the_languages_and_names_those_that_are_not_all() -> None:
    def cell(code: str, answer: str | None) -> CellResult:
        collapse = None if answer is None else {"answer": answer, "count": 60, "of": 60, "unit": "items"}
        return CellResult(task="xnli", language=code, status="ok", metrics={}, n=60, collapse=collapse)

    codes = ["en", "de", "hi", "sw", "zh"]
    assert collapse_lines([cell(code, "neutral") for code in codes]) == ["xnli: 'neutral' for all 300 items"]
    mixed = [cell("en", None), cell("de", "neutral"), cell("sw", "neutral")]
    assert collapse_lines(mixed) == ["xnli de sw: 'neutral' for all 120 items"]
    assert collapse_lines([cell("en", None)]) == []


def _answered(code: str, answers: Sequence[str], gold: Sequence[str]) -> CellResult:
    spread = _spread([{"label": label} for label in answers], gold)
    return CellResult(
        task="xnli",
        language=code,
        status="ok",
        metrics={},
        n=len(gold),
        collapse=spread.to_json() or None,
        majority=spread.majority() or None,
    )


@given(st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), min_size=1, max_size=300))
def test_the_majority_is_compared_on_the_same_items(pairs: list[tuple[str, str]]) -> None:
    answers, gold = zip(*pairs, strict=True)
    found = _answered("en", answers, gold).majority
    assert found is not None
    assert found["constant"] == max(map(gold.count, LABELS)) == gold.count(found["answer"])
    assert found["right"] == sum(answer == right for answer, right in pairs)
    assert found["both"] == sum(answer == right == found["answer"] for answer, right in pairs)
    cell = CellResult(task="xnli", language="en", status="ok", metrics={}, n=len(gold), majority=found)
    differences = np.array([(answer == right) - (right == found["answer"]) for answer, right in pairs])
    low = differences.mean() - 1.959963984540054 * differences.std() / len(pairs) ** 0.5
    if abs(low) > 1e-9:
        assert bool(majority_lines([cell])) == (len(pairs) >= FEWEST and low < 0)


@pytest.mark.parametrize(
    ("gold", "answers", "is_remarked"),
    [
        (LABELS * 100, LABELS[1:] * 150, True),  # a random set
        (LABELS * 100, ["neutral"] * 300, False),  # the remark of a collapse says more
        (LABELS * 100, (LABELS + ["neutral"] * 3) * 50, False),
        (LABELS * 10, LABELS[1:] * 15, False),  # too few items
        (["yes"] * 180 + ["no"] * 20, ["yes"] * 170 + ["no"] * 10 + ["yes"] * 10 + ["no"] * 10, True),
        (["yes"] * 180 + ["no"] * 20, ["yes"] * 180 + ["no"] * 20, False),
    ],
)
def test_answers_no_better_than_the_commonest_label_are_remarked(
    gold: list[str], answers: list[str], is_remarked: bool
) -> None:
    cell = _answered("en", answers[: len(gold)], gold)
    assert len(majority_lines([cell])) == is_remarked
    right = _answered("de", gold, gold)
    assert [line.startswith("xnli en: ") for line in majority_lines([cell, right])] == [True] * is_remarked


def test_languages_that_are_better_together_have_no_remark() -> None:
    gold = LABELS * 40
    answers = [*gold[:11], *LABELS[1:] * 60][: len(gold)]
    cells = [_answered(code, answers, gold) for code in ("en", "de", "sw", "ur", "hi", "zh", "ar", "el")]
    assert majority_lines(cells[:1])
    assert majority_lines(cells) == []


@pytest.mark.parametrize(
    ("output", "gold"),
    [(["O", "O"], ["O", "B-PER"]), ({"text": ""}, ["a"]), ({"candidate": "c1"}, "c2"), ({"spans": []}, [])],
)
def test_only_labels_have_a_majority(output: Any, gold: Any) -> None:
    assert _spread([output] * 9, [gold] * 9).majority() == {}
    assert _spread([{"label": "a"}] * 9, ["a"] * 9, unparsed=True).majority() == {}


@pytest.mark.parametrize(
    ("fields", "level"),
    [
        ({"labels": ("a", "b", "c", "d")}, 0.25),
        ({"labels": ("a", "b"), "chance": 0.4}, 0.4),
        ({"labels": ("a", "b"), "metrics": ("macro_f1", "accuracy")}, None),
        ({"labels": ("A", "B", "C"), "fewer_choices": True}, None),
        ({}, None),
    ],
)
def test_a_task_has_its_chance_level_from_its_labels(fields: dict[str, Any], level: float | None) -> None:
    model = MultipleChoiceSpec if "fewer_choices" in fields else SequenceClassificationSpec
    spec = model.model_construct(**{"metrics": ("accuracy",), "chance": None, **fields})
    assert spec.chance_level == level
