"""Micro averages, matrices with their two halves, and the gap to humans."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.builders import make_cell, scored

CODES = ("ar", "de", "en", "hi")
SPEC: dict[str, Any] = {
    "metrics": ["map"],
    "headline": ["map"],
    "source": "en",
    "languages": {code: ["Indo-European", "Latn"] for code in CODES},
}


def _cell(language: str, value: float, n: int = 100, groups: Any = None, **fields: Any) -> dict[str, Any]:
    score: dict[str, Any] = {"value": value}
    if groups is not None:
        score["groups"] = {code: {"value": found, "n": count} for code, (found, count) in groups.items()}
    usual = {"protocol": "frozen", "method": "embed", "fit": "none", "n": n}
    return make_cell("lareqa", language, {"map": score}, **{**usual, **fields})


def _row(*cells: dict[str, Any], **spec: Any) -> dict[str, Any]:
    [row] = scored(cells, {"lareqa": {**SPEC, **spec}})
    return row.to_json()


@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=30), min_size=1, max_size=4))
def test_micro_is_the_mean_over_all_items(items: list[list[int]]) -> None:
    cells = [_cell(code, fmean(scores), n=len(scores)) for code, scores in zip(CODES, items, strict=False)]
    row = _row(*cells)
    assert row["micro"] == pytest.approx(float(np.mean(np.concatenate(items))))
    assert row["value"] == pytest.approx(fmean(fmean(scores) for scores in items))


def test_micro_weighs_a_language_once_for_all_seeds() -> None:
    cells = [_cell("de", value, n=300, seed=seed) for seed, value in enumerate((0.2, 0.4))]
    assert _row(*cells, _cell("en", 1.0, n=100))["micro"] == pytest.approx((300 * 0.3 + 100 * 1.0) / 400)


def test_micro_is_unknown_without_numbers_of_items() -> None:
    assert _row(_cell("de", 0.5, n=0))["micro"] is None


def test_lareqa_of_table_14_is_micro_averaged() -> None:
    """One same-language pair in eleven: 58.2 and 12.1 give the 16.3 that the paper prints."""
    codes = [f"l{number}" for number in range(11)]
    languages = {code: ["x", "Latn"] for code in codes}
    cells = [
        _cell(code, 0.0, n=1190, groups={other: (0.582 if other == code else 0.121, 1190) for other in codes})
        for code in codes
    ]
    row = _row(*cells, languages=languages)
    assert row["same_language"] == pytest.approx({"macro": 0.582, "micro": 0.582})
    assert row["cross_language"] == pytest.approx({"macro": 0.121, "micro": 0.121})
    counts = [(score["value"], score["n"]) for fields in row["matrix"].values() for score in fields.values()]
    everywhere = sum(value * n for value, n in counts) / sum(n for _, n in counts)
    assert everywhere == pytest.approx((1 * 0.582 + 10 * 0.121) / 11)
    assert round(everywhere * 100, 2) == 16.29


def test_mewsli_x_of_table_14_weighs_by_mentions() -> None:
    """3,617 of 15,000 mentions have an entity described in their language: 85.7 and 25.8 give 40.2."""
    same, other = {"de": 1617, "en": 2000}, {"de": 6000, "en": 5383}
    cells = [
        _cell(
            code,
            0.0,
            n=same[code] + other[code],
            groups={code: (0.857, same[code]), "fr": (0.258, other[code])},
        )
        for code in ("de", "en")
    ]
    row = _row(*cells)
    share = sum(same.values()) / 15_000
    assert share == pytest.approx(0.2411, abs=5e-5)
    total = row["same_language"]["micro"] * share + row["cross_language"]["micro"] * (1 - share)
    assert round(total * 100, 2) == 40.24


FIELDS = st.tuples(st.floats(0, 1), st.integers(1, 50))


@given(st.dictionaries(st.tuples(st.sampled_from(CODES), st.sampled_from(CODES)), FIELDS, min_size=1))
def test_the_halves_of_a_matrix_are_its_diagonal_and_the_rest(fields: dict[tuple[str, str], Any]) -> None:
    cells = []
    for code in dict.fromkeys(code for code, _ in fields):
        groups = {group: field for (language, group), field in fields.items() if language == code}
        cells.append(_cell(code, 0.0, groups=groups))
    row = _row(*cells)
    for name, is_same in (("same_language", True), ("cross_language", False)):
        half = [field for (code, group), field in fields.items() if (code == group) is is_same]
        if not half:
            assert row[name] is None
            continue
        values, weights = zip(*half, strict=True)
        assert row[name]["macro"] == pytest.approx(float(np.mean(values)))
        assert row[name]["micro"] == pytest.approx(float(np.average(values, weights=weights)))
    assert {(code, group) for code, found in row["matrix"].items() for group in found} == set(fields)


def test_a_field_is_the_mean_over_seeds_with_the_observations_of_one() -> None:
    cells = [
        _cell("de", 0.0, groups={"de": (value, 40), "en": (0.5, 7)}, seed=seed)
        for seed, value in enumerate((0.2, 0.6))
    ]
    row = _row(*cells)
    assert row["matrix"] == {
        "de": {"de": {"value": pytest.approx(0.4), "n": 40}, "en": {"value": 0.5, "n": 7}}
    }


def test_a_metric_without_groups_has_no_matrix() -> None:
    row = _row(_cell("de", 0.5))
    assert not {"matrix", "same_language", "cross_language"} & set(row)


def test_the_gap_to_humans_is_their_score_minus_the_mean() -> None:
    cells = [_cell("en", 0.9), _cell("de", 0.5)]
    assert _row(*cells, human={"map": 0.975})["human_gap"] == pytest.approx(0.275)
    assert _row(*cells, human={"map": 0.6})["human_gap"] == pytest.approx(-0.1)
    assert _row(*cells, human={"other": 0.6})["human_gap"] is None
    assert _row(*cells)["human_gap"] is None


def test_the_gap_to_humans_needs_every_published_language() -> None:
    cells = [_cell("en", 0.9), _cell("de", 0.5)]
    assert _row(*cells, human={"map": 0.9}, published_languages=["en", "de", "sw"])["human_gap"] is None
    assert _row(*cells, human={"map": 0.9}, published_languages=["en", "de"])["human_gap"] is not None
