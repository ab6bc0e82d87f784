from __future__ import annotations

from statistics import fmean, stdev
from typing import Any

import pytest

from tests.builders import make_cell, scored

SPEC: dict[str, Any] = {
    "metrics": ["f1", "exact_match"],
    "headline": ["f1", "exact_match"],
    "source": "en",
    "languages": {
        "en": ["Indo-European", "Latn"],
        "de": ["Indo-European", "Latn"],
        "hi": ["Indo-European", "Deva"],
        "sw": ["Niger-Congo", "Latn"],
    },
}


def _cell(language: str, value: float | None = None, **fields: Any) -> dict[str, Any]:
    metrics = {} if value is None else {"f1": value, "exact_match": value}
    return make_cell("xquad", language, metrics, **fields)


def _row(*cells: dict[str, Any], metric: str = "f1", **spec: Any) -> dict[str, Any]:
    rows = [score.to_json() for score in scored(cells, {"xquad": {**SPEC, **spec}})]
    [row] = [row for row in rows if row["metric"] == metric]
    return row


def test_a_task_scores_the_unweighted_mean_over_languages() -> None:
    row = _row(_cell("en", 0.9), _cell("de", 0.8), _cell("hi", 0.4), _cell("sw", 0.1))
    assert row["value"] == pytest.approx((0.9 + 0.8 + 0.4 + 0.1) / 4)
    assert (row["languages"], row["headline"], row["missing"], row["seeds"]) == (4, True, [], 1)
    assert (row["task"], row["protocol"], row["method"], row["view"]) == (
        *("xquad", "zero_shot_transfer", "head"),
        {},
    )


def test_the_number_of_items_does_not_weigh() -> None:
    small, large = _cell("en", 1.0, n=1), _cell("de", 0.0, n=10_000)
    assert _row(small, large)["value"] == 0.5


def test_the_transfer_gap_is_the_source_minus_the_mean_of_the_others() -> None:
    row = _row(_cell("en", 0.9), _cell("de", 0.8), _cell("hi", 0.4))
    assert row["transfer_gap"] == pytest.approx(0.9 - 0.6)
    assert _row(_cell("en", 0.2), _cell("de", 0.8))["transfer_gap"] == pytest.approx(-0.6)


@pytest.mark.parametrize(
    "cells",
    [[_cell("de", 0.8), _cell("hi", 0.4)], [_cell("en", 0.9)]],
    ids=["no source", "only the source"],
)
def test_there_is_no_gap_without_both_sides(cells: list[dict[str, Any]]) -> None:
    assert _row(*cells)["transfer_gap"] is None


def test_there_is_no_gap_for_a_task_without_a_source() -> None:
    assert _row(_cell("en", 0.9), _cell("de", 0.8), source=None)["transfer_gap"] is None


def test_means_by_family_and_script() -> None:
    row = _row(_cell("en", 0.9), _cell("de", 0.8), _cell("hi", 0.4), _cell("sw", 0.1))
    assert row["by_family"] == pytest.approx({"Indo-European": fmean([0.9, 0.8, 0.4]), "Niger-Congo": 0.1})
    assert row["by_script"] == pytest.approx({"Deva": 0.4, "Latn": fmean([0.9, 0.8, 0.1])})
    assert list(row["by_script"]) == ["Deva", "Latn"]


def test_seeds_of_a_language_are_averaged_first() -> None:
    cells = [
        _cell(language, value, seed=seed)
        for language, values in {"en": (0.9, 0.7), "de": (0.5, 0.6)}.items()
        for seed, value in enumerate(values)
    ]
    row = _row(*cells)
    assert row["value"] == pytest.approx((0.8 + 0.55) / 2)
    assert (row["languages"], row["seeds"]) == (2, 2)
    assert row["seed_sd"] == pytest.approx(stdev([(0.9 + 0.5) / 2, (0.7 + 0.6) / 2]))
    assert row["transfer_gap"] == pytest.approx(0.8 - 0.55)


def test_languages_with_different_seeds_have_no_spread() -> None:
    assert _row(_cell("en", 0.9), _cell("de", 0.5), _cell("de", 0.6))["seed_sd"] is None
    assert _row(_cell("en", 0.9), _cell("de", 0.5))["seed_sd"] is None


def test_what_failed_or_was_skipped_is_missing_and_not_zero() -> None:
    row = _row(
        _cell("en", 0.9),
        _cell("de", status="failed"),
        _cell("hi", status="skipped"),
        _cell("sw"),  # predicted, but the test file has no labels
    )
    assert (row["value"], row["languages"], row["missing"]) == (0.9, 1, ["de", "hi", "sw"])


def test_a_language_that_another_seed_has_is_not_missing() -> None:
    assert _row(_cell("en", 0.9), _cell("de", 0.5), _cell("de", status="failed"))["missing"] == []


def test_protocols_methods_and_views_are_never_mixed() -> None:
    cells = [
        _cell("en", 0.1),
        _cell("en", 0.2, protocol="frozen"),
        _cell("en", 0.3, method="rank"),
        _cell("en", 0.4, view={"select_on": "sw"}),
        _cell("en", 0.5, view={"a": "1", "b": "2"}),
        _cell("de", 0.7, view={"b": "2", "a": "1"}),
    ]
    rows = [row for row in scored(cells, {"xquad": SPEC}) if row.metric == "f1"]
    assert [row.value for row in rows] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.6])
    assert rows[-1].view == {"a": "1", "b": "2"}


def test_rows_name_the_fits_of_their_cells() -> None:
    assert _row(_cell("en", 0.1, fit="b"), _cell("de", 0.1, fit="a"))["fit"] == ["a", "b"]


def test_a_metric_missing_in_some_cells_is_averaged_over_the_others() -> None:
    cell = _cell("de", 0.5)
    del cell["metrics"]["exact_match"]
    row = _row(_cell("en", 0.9), cell, metric="exact_match")
    assert (row["value"], row["languages"]) == (0.9, 1)


def test_nothing_scored_has_no_rows() -> None:
    assert scored([_cell("en", status="failed")], {"xquad": SPEC}) == []
