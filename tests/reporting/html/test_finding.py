"""Differences, sentences and the choice of worst items, against values worked out apart from the code."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from harness.reporting.languages.language import findings, shortfalls
from harness.reporting.overview.means import Estimate, contrast, score_of
from harness.reporting.overview.summary import read_material
from harness.reporting.render.page import html_blocks
from harness.reporting.weakness.diagnosis import Weakness, page_blocks
from harness.reporting.weakness.items import first_rank, severity, worst
from harness.storage.records import ItemRecord

from .conftest import make_cell as cell

Make = Callable[..., Any]
NONE = Weakness(runs=((),), pairs=(), titles={"qLen": "words of the question"}, notes=())


def _estimate(value: float, se: float) -> Estimate:
    return Estimate(value=value, se=se, interval=(value - 1.96 * se, value + 1.96 * se), draws=100)


def test_symmetric_intervals_give_the_usual_difference() -> None:
    found = contrast(_estimate(0.7, 0.03), _estimate(0.5, 0.04))
    assert found is not None
    assert found.difference == pytest.approx(0.2)
    assert (found.low, found.high) == pytest.approx((0.2 - 1.96 * 0.05, 0.2 + 1.96 * 0.05))
    assert found.p == pytest.approx(2 * stats.norm.sf(4.0))


def test_intervals_cover_the_difference() -> None:
    """Two Wilson intervals of 60 items each: the interval of their difference holds 95 % of the time."""
    rng, hits, runs, n = np.random.default_rng(7), 0, 2000, 60
    truth = 0.9 - 0.7
    for _ in range(runs):
        ends = []
        for share in (0.9, 0.7):
            right = int(rng.binomial(n, share))
            kept = stats.binomtest(right, n).proportion_ci(method="wilson")
            value = right / n
            se = math.sqrt(max(value * (1 - value), 1e-9) / n)
            ends.append(Estimate(value=value, se=se, interval=(kept.low, kept.high), draws=n))
        found = contrast(*ends)
        assert found is not None
        hits += found.low <= truth <= found.high
    assert 0.935 <= hits / runs <= 0.97


def test_without_an_interval_there_is_no_contrast() -> None:
    assert contrast(Estimate(value=0.5), _estimate(0.4, 0.1)) is None
    assert contrast(_estimate(0.5, 0.0), _estimate(0.4, 0.0)) is None


def _weak(language: str, value: float, half: float = 0.06, **fields: Any) -> dict[str, Any]:
    """Return a cell with a score and its interval."""
    score = {"value": value, "se": half / 2, "ci": [value - half, value + half], "ci_method": "t"}
    return {**cell(language), "metrics": {"accuracy": {**score, **fields}}}


def test_a_language_far_behind_the_others_has_a_sentence(write_run: Make) -> None:
    material = read_material([write_run(cell("de"), cell("en"), _weak("sw", 0.2))])
    found = findings(material, NONE)
    assert list(found) == ["sw"]
    assert found["sw"][0].startswith("xnli: Swahili scores 30.0 points lower (acc) than")
    [one] = shortfalls(material, NONE)
    assert one.difference == pytest.approx(-0.3)
    few = write_run(cell("de"), cell("en"), _weak("sw", 0.2, clusters=8))
    assert findings(read_material([few]), NONE) == {}


def test_a_language_that_gets_nothing_right_has_a_sentence(write_run: Make) -> None:
    """A set-level score of 0 has no bootstrap interval; the Wilson bound of 100 items wrong says enough."""
    weak = _weak("sw", 0.0, se=None, ci=None, ci_method="constant")
    material = read_material([write_run(cell("de"), cell("en"), weak)])
    [one] = shortfalls(material, NONE)
    assert one.language == "sw"
    assert one.difference == pytest.approx(-0.5)
    estimate = score_of(material.runs[0], material.columns[0], "sw")
    assert estimate is not None
    bound = stats.binomtest(0, 100).proportion_ci(method="wilson").high
    assert estimate.interval == pytest.approx((0.0, bound))
    assert estimate.se == pytest.approx(bound / stats.norm.ppf(0.975))


def _bucket(
    name: str, low: float | None, high: float | None, difference: float, **changes: Any
) -> dict[str, Any]:
    half = 1.96 * 0.03
    row: dict[str, Any] = {
        "kind": "single", "task": "xquad", "language": "de", "view": {}, "protocol": "p", "method": "span",
        "system": "m", "attribute": "qLen",
        "level": "item", "bucket": name, "low": low, "high": high, "low_closed": name == "XS", "n": 100,
        "metric": "f1", "value": 0.5, "se": 0.03, "ci": [0.44, 0.56], "rest": 0.5 - difference,
        "difference": difference, "difference_ci": [difference - half, difference + half], "p": 1e-4,
        "q": 0.002, "significant": True,
    }  # fmt: skip
    return row | changes


def _weakness(*rows: dict[str, Any]) -> Weakness:
    ends = {"qLen": ("shortest questions", "longest questions")}
    return Weakness(runs=(rows,), pairs=(), titles=NONE.titles, notes=(), ends=ends)


def test_a_bucket_below_the_rest_is_said_in_words(write_run: Make) -> None:
    material = read_material([write_run(cell("de"))])
    rows = (_bucket("XS", 2, 7, 0.1), _bucket("S", 7, 9, -0.05), _bucket("XL", 14, 30, -0.3))
    [sentence] = findings(material, _weakness(*rows))["de"]
    assert sentence.startswith(
        "xquad, German: longest questions (14, 30]: 30.0 points below the rest (24.1 to"
    )
    quiet = [dict(row, significant=False) for row in rows]
    assert findings(material, _weakness(*quiet)) == {}


def test_further_buckets_are_bounded_and_counted() -> None:
    """Of 70 buckets, 5 of which are significant: these are drawn, 20 others listed, the rest counted."""
    rows = [
        _bucket(f"b{place}", None, None, (70 - place) / 100, significant=place < 5, language=None)
        for place in range(70)
    ]
    text = str(html_blocks(page_blocks(["m"], _weakness(*rows))))
    assert "5 of 70 tested differences are significant" in text
    assert text.count("<circle") == 5
    assert text.count('<th scope="row">') == 20
    assert text.index("part 6 of 70") < text.index("part 25 of 70"), "the largest first"
    assert "part 26 of 70" not in text
    assert "45 more: harness diagnose RUN --json FILE." in text


def test_of_many_labels_the_most_frequent_confusions_are_shown() -> None:
    shared = {"task": "udpos", "view": {}, "protocol": "p", "method": "head", "system": "m"}
    shared |= {"kind": "confusion"}
    labels = [f"L{place}" for place in range(9)]
    rows = [
        {**shared, "language": code, "gold": gold, "predicted": given, "n": 100 if gold == given else n}
        for code, n in (("de", 1), ("sw", 2))
        for gold in labels
        for given in (gold, "L0")
    ]
    rows.append({**shared, "language": "de", "gold": "L8", "predicted": None, "n": 50})
    weakness = Weakness(runs=(tuple(rows),), pairs=(), titles={}, notes=())
    text = str(html_blocks(page_blocks(["m"], weakness)))
    assert (
        '<th scope="row">L8</th><td>unreadable</td><td class="n">50 of 253</td><td class="n">19.8</td>'
        in text
    )
    assert '<td>L0</td><td class="n">3 of 203</td><td class="n">1.5</td>' in text
    assert '<th scope="row">L0</th>' not in text, "a right label is no confusion"


def test_languages_below_the_others_come_before_buckets(write_run: Make) -> None:
    material = read_material([write_run(cell("de"), cell("en"), _weak("sw", 0.3))])
    found = findings(material, _weakness(_bucket("XS", 2, 7, 0.4), _bucket("XL", 14, 30, -0.4)))
    assert list(found) == ["sw", "de"]


def _record(**changes: Any) -> ItemRecord:
    fields: dict[str, Any] = {
        "id": "1", "inputs_digest": "", "prediction": None, "reference": None, "scores": {}, "cluster": None,
        "group": None, "tags": {}, "flags": {},
    }  # fmt: skip
    return ItemRecord(**{**fields, **changes})


@pytest.mark.parametrize(
    ("kind", "prediction", "gold", "scores", "expected"),
    [
        ("sequence_classification", {"label": "a"}, "a", {}, None),
        ("sequence_classification", {"label": "a", "scores": [0.9, 0.1]}, "b", {}, (0.9, 0.0)),
        ("sequence_classification", {"label": None}, "b", {}, (0.0, 0.0)),
        ("token_tagging", ["X", "Y", "Z"], ["X", "X", "X"], {}, (2.0, 2 / 3)),
        ("token_tagging", ["X"], ["X", "X"], {}, (1.0, 0.5)),
        ("ranked_retrieval", {"candidates": ["a", "b"]}, {"targets": ["b"]}, {}, (2.0, 0.0)),
        ("ranked_retrieval", {"candidates": ["a"], "further": ["c"]}, {"targets": ["x"]}, {}, (3.0, 0.0)),
        ("ranked_retrieval", {"candidates": ["a"]}, {"targets": ["a"]}, {}, None),
        ("span_extraction", {"text": "a", "score": 2.5}, ["b"], {"f1": 0.25}, (0.75, 2.5)),
        ("span_extraction", {"text": "a"}, ["a"], {"f1": 1.0}, None),
        ("text_marking", {"spans": []}, [[0, 1, "X"]], {"f1": [0.0, 0.0, 1.0]}, (1.0, 0.0)),
        ("span_extraction", {"text": "a"}, None, {"f1": 0.0}, None),
    ],
)
def test_how_wrong_an_answer_is(
    kind: str, prediction: Any, gold: Any, scores: Any, expected: tuple[float, float] | None
) -> None:
    found = severity(_record(prediction=prediction, reference=gold, scores=scores), kind, ["f1"])
    assert found == (None if expected is None else pytest.approx(expected))


def test_the_worst_come_first_and_equals_in_their_order() -> None:
    records = [
        _record(id=str(number), prediction={"text": ""}, reference=["b"], scores={"f1": value})
        for number, value in enumerate((0.5, 0.0, 1.0, 0.0, 0.2))
    ]
    assert [record.id for record in worst(records, "span_extraction", ["f1"], 3)] == ["1", "3", "4"]


def test_an_answer_without_a_ranking_has_no_rank() -> None:
    assert first_rank({"label": "a"}, "a") is None
