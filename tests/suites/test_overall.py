"""The overall score is the mean of category means; a suite with a hole has no overall score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from harness.errors import UsageError
from harness.scores.aggregation import overall, task_scores

Categories = dict[str, list[str]]
Scores = dict[str, float | None]


@st.composite
def suites(draw: st.DrawFn) -> tuple[Categories, Scores]:
    """Return categories that hold every task once, and a score for every task."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    categories = {f"c{index}": [f"t{index}_{i}" for i in range(size)] for index, size in enumerate(sizes)}
    tasks = [task for names in categories.values() for task in names]
    values = draw(st.lists(st.integers(0, 1000), min_size=len(tasks), max_size=len(tasks)))
    return categories, {task: value / 10 for task, value in zip(tasks, values, strict=True)}


def exact_mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, start=Fraction(0)) / len(values)


def exact(scores: Mapping[str, float | None], names: Sequence[str]) -> Fraction:
    return exact_mean([Fraction(str(scores[name])) for name in names])


@given(suites())
def test_the_score_of_a_complete_suite(suite: tuple[Categories, Scores]) -> None:
    categories, scores = suite
    found = overall({"another": 99.0, **scores}, list(scores), categories)
    means = {name: exact(scores, names) for name, names in categories.items()}
    assert found.missing == ()
    assert found.categories == pytest.approx({name: float(mean) for name, mean in means.items()})
    assert found.paper == pytest.approx(float(exact_mean(list(means.values()))))
    assert found.flat == pytest.approx(float(exact(scores, list(scores))))


@given(suites(), st.data())
def test_a_missing_task_leaves_no_overall_score(
    suite: tuple[Categories, Scores], data: st.DataObject
) -> None:
    categories, scores = suite
    tasks = list(scores)
    lost = data.draw(st.sets(st.sampled_from(tasks), min_size=1))
    absent = data.draw(st.booleans())
    known: Scores = {task: value for task, value in scores.items() if task not in lost}
    given_scores = known if absent else {**known, **dict.fromkeys(lost)}
    found = overall(given_scores, tasks, categories)
    assert (found.paper, found.flat) == (None, None)
    assert found.missing == tuple(task for task in tasks if task in lost)
    complete = overall(scores, tasks, categories)
    for name, names in categories.items():
        assert found.categories[name] == (None if lost & set(names) else complete.categories[name])


def test_categories_weigh_their_tasks() -> None:
    found = overall({"a": 10.0, "b": 20.0, "c": 90.0}, ["a", "b", "c"], {"x": ["a", "b"], "y": ["c"]})
    assert (found.paper, found.flat) == (52.5, 40.0)
    assert found.categories == {"x": 15.0, "y": 90.0}
    assert overall({"a": 10.0}, ["a"], {}).paper is None, "there are no categories"


@pytest.mark.parametrize("categories", [{"x": ["a"]}, {"x": ["a", "b"], "y": ["a"]}, {"x": ["a", "b", "c"]}])
def test_categories_that_do_not_hold_every_task_once_are_rejected(categories: Categories) -> None:
    with pytest.raises(UsageError, match="expected each of a, b once"):
        overall({"a": 1.0, "b": 2.0}, ["a", "b"], categories)


def test_the_scores_of_tasks() -> None:
    headlines = {"xquad": ("f1", "exact_match"), "xnli": ("accuracy",), "tydiqa": ("f1", "exact_match")}
    scores = {"xquad": {"f1": 80.0, "exact_match": 60.0}, "tydiqa": {"f1": 90.1}, "pawsx": {"accuracy": 1.0}}
    assert task_scores(scores, headlines) == {"xquad": 70.0, "xnli": None, "tydiqa": None}
    assert task_scores({"xquad": {"f1": 77.2, "exact_match": 61.6, "other": 0.0}}, headlines)["xquad"] == 69.4
    assert task_scores({"xnli": {"accuracy": 79.2}}, {"xnli": ()}) == {"xnli": None}
