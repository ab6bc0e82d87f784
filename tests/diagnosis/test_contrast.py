"""A bucket against the rest, against a regression with clustered errors, scikit-learn and scipy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from harness.analysis.diagnosis import DiagnosisOptions, diagnose
from harness.metrics.classification import macro_f1_from_counts, weighted_f1_from_counts
from harness.metrics.metric import ratio_from_counts
from harness.registry.registry import Registry
from harness.statistics import evaluated
from tests.diagnosis.conftest import MakeRun, question, sentence


def _rows(
    make_run: MakeRun, registry: Registry, records: Any, task: str, attribute: str, name: str = "run"
) -> list[dict[str, Any]]:
    found = diagnose([make_run(name, {(task, "en"): records})], registry, DiagnosisOptions())
    return [row for row in found.rows("single") if row["attribute"] == attribute]


def _regression(scores: Any, inside: Any, clusters: Any) -> tuple[float, float]:
    """Return the slope on being inside and its standard error: the sandwich over clusters, times G / (G - 1)."""
    design = np.stack([np.ones(len(scores)), inside], axis=1)
    inverse = np.linalg.inv(design.T @ design)
    slope = inverse @ design.T @ scores
    residuals = scores - design @ slope
    names = np.unique(clusters)
    sums = [design[clusters == name].T @ residuals[clusters == name] for name in names]
    meat = sum(np.outer(own, own) for own in sums)
    covariance = inverse @ meat @ inverse * len(names) / (len(names) - 1)
    return float(slope[1]), float(np.sqrt(covariance[1, 1]))


@pytest.mark.parametrize("clustered", [False, True])
def test_the_difference_of_means_is_that_of_a_regression(
    make_run: MakeRun, registry: Registry, clustered: bool
) -> None:
    random = np.random.default_rng(3)
    scores = random.integers(0, 10, 160) / 9
    keys = random.integers(0, 40, 160) if clustered else np.arange(160)
    records = [
        question(str(n), n, float(score), cluster=f"c{key}" if clustered else None)
        for n, (score, key) in enumerate(zip(scores, keys, strict=True), start=1)
    ]
    rows = _rows(make_run, registry, records, "xquad", "qLen")
    assert len(rows) == 4
    mixed = (scores + (scores == 1)) / 2
    words = np.arange(1, 161)
    for row in rows:
        above = words >= row["low"] if row["low_closed"] else words > row["low"]
        inside = above & (words <= row["high"])
        slope, se = _regression(mixed, inside.astype(float), keys)
        freedom = len(set(keys.tolist())) - 1
        reach = stats.t.ppf(0.975, freedom) * se
        assert row["difference"] == pytest.approx(slope)
        assert row["rest"] == pytest.approx(mixed[~inside].mean())
        assert row["difference_ci"] == pytest.approx([slope - reach, slope + reach])
        assert row["p"] == pytest.approx(2 * stats.t.sf(abs(slope) / se, freedom))


def test_q_is_that_of_scipy_over_all_tested_buckets(make_run: MakeRun, registry: Registry) -> None:
    random = np.random.default_rng(8)
    records = [question(str(n), n, float(n < 50) * random.integers(0, 10) / 9) for n in range(1, 161)]
    found = diagnose([make_run("a", {("xquad", "en"): records})], registry, DiagnosisOptions())
    tested = [row for row in found.rows("single") if row["p"] is not None]
    expected = stats.false_discovery_control([row["p"] for row in tested])
    assert [row["q"] for row in tested] == pytest.approx(expected.tolist())
    assert any(row["significant"] for row in tested)
    assert all(row["significant"] == (row["q"] <= 0.05) for row in tested)
    small = _rows(make_run, registry, records[:100], "xquad", "qLen", "small")
    assert {row["n"] for row in small} == {25}
    assert all(row["p"] is row["q"] is None and not row["significant"] for row in small)
    assert all(row["difference"] is not None for row in small)


def test_a_bucket_that_is_all_wrong_has_a_bound_and_a_test(make_run: MakeRun, registry: Registry) -> None:
    """Every PER is missed and every LOC is found: no resample changes that, and yet the bounds are not 0."""
    records = [
        sentence(str(n), "a b", "O B-LOC" if n % 2 else "O O", "O B-LOC" if n % 2 else "B-PER O")
        for n in range(80)
    ]
    rows = {row["bucket"]: row for row in _rows(make_run, registry, records, "wikiann", "tag")}
    missed = rows["PER"]
    assert (missed["value"], missed["rest"], missed["n"]) == (0.0, 1.0, 40)
    bound = stats.binomtest(0, 40).proportion_ci(method="wilson")
    assert missed["ci"] == pytest.approx([0.0, bound.high])
    assert missed["ci_method"] == "wilson"
    half = np.hypot(bound.high, bound.high)
    assert missed["difference_ci"] == pytest.approx([-1 - half, -1 + half], rel=1e-6)
    assert missed["significant"]


def test_set_level_differences_are_those_of_the_scores(make_run: MakeRun, registry: Registry) -> None:
    random = np.random.default_rng(2)
    records = []
    for n in range(120):
        tag = "PER" if n % 3 else "LOC"
        right = random.random() < (0.2 if tag == "PER" else 0.9)
        records.append(sentence(str(n), "a b", f"B-{tag} O" if right else "O O", f"B-{tag} O"))
    rows = {row["bucket"]: row for row in _rows(make_run, registry, records, "wikiann", "tag")}
    assert rows["PER"]["difference"] == pytest.approx(rows["PER"]["value"] - rows["LOC"]["value"])
    assert rows["PER"]["rest"] == pytest.approx(rows["LOC"]["value"])
    low, high = rows["PER"]["difference_ci"]
    assert low < rows["PER"]["difference"] < high < 0
    assert rows["PER"]["significant"]


@pytest.mark.parametrize("from_counts", [weighted_f1_from_counts, macro_f1_from_counts, ratio_from_counts])
def test_scores_of_many_sums_at_once_are_those_one_by_one(from_counts: Any) -> None:
    random = np.random.default_rng(1)
    width = 2 if from_counts is ratio_from_counts else 12
    totals = random.integers(0, 4, (5, 3, width)).astype(np.float64)
    totals[0, 0] = 0
    found = evaluated(from_counts, totals)
    expected = [[from_counts(row) for row in rows] for rows in totals]
    assert found == pytest.approx(np.array(expected))
