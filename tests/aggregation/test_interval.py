"""Intervals of means over languages and of suites, from those of cells and from records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from harness.metrics.chunk import f1_from_counts
from harness.running.session import open_session
from harness.scores.aggregation import aggregate_suites
from harness.scores.task_intervals import add_task_intervals, task_intervals
from harness.statistics import clustered_mean
from harness.storage.records import ItemRecord
from harness.storage.results import CellResult, RunResults, SuiteSummary, TaskScore, TaskSummary
from harness.storage.run_folder import Run
from tests.builders import make_cell, scored

SPEC: dict[str, Any] = {
    "metrics": ["m"],
    "headline": ["m"],
    "source": "en",
    "languages": {code: ["x", "Latn"] for code in ("en", "de", "sw")},
}
METRICS = open_session().registry.metrics


def _cell(language: str, metric: str = "m", value: float = 0.5, **fields: Any) -> dict[str, Any]:
    kept: dict[str, Any] = {
        name: fields.pop(name) for name in ("se", "ci", "ci_method", "clusters") if name in fields
    }
    return make_cell("nli", language, {metric: {"value": value, **kept}}, **fields)


def _row(cells: Sequence[dict[str, Any]], **spec: Any) -> dict[str, Any]:
    [row] = scored(cells, {"nli": {**SPEC, **spec}})
    return row.to_json()


def test_languages_that_are_drawn_apart_add_their_variances() -> None:
    cells = [
        _cell("en", value=0.8, se=0.03, ci_method="t", clusters=101),
        _cell("de", value=0.6, se=0.04, ci_method="clustered t", clusters=51),
    ]
    row = _row(cells)
    se = math.sqrt(0.03**2 + 0.04**2) / 2
    freedom = (0.03**2 + 0.04**2) ** 2 / (0.03**4 / 100 + 0.04**4 / 50)
    reach = stats.t.ppf(0.975, freedom) * se
    assert (row["se"], row["ci_method"]) == (pytest.approx(se), "stratified t")
    assert row["ci"] == pytest.approx([0.7 - reach, 0.7 + reach])


def test_one_language_has_the_interval_of_its_cell() -> None:
    kept: dict[str, Any] = {"se": 0.1, "ci": [0.3, 0.7], "ci_method": "wilson", "clusters": 24}
    row = _row([_cell("en", **kept)])
    assert {name: row[name] for name in kept} == kept


@pytest.mark.parametrize("method", ["one cluster", None])
def test_a_language_without_an_error_leaves_the_mean_without(method: str | None) -> None:
    cells = [_cell("en", se=0.03, ci=[0.4, 0.6], ci_method="t", clusters=9), _cell("de", ci_method=method)]
    assert (_row(cells)["se"], _row(cells)["ci"], _row(cells)["ci_method"]) == (None, None, method)
    # Items that all score the same vary by nothing.
    constant = [cells[0], _cell("de", ci_method="constant")]
    assert _row(constant)["se"] == pytest.approx(0.015)


# From records ------------------------------------------------------------------------------------------


def _record(
    name: str, scores: dict[str, Any], reference: int | None = 1, cluster: str | None = None
) -> ItemRecord:
    return ItemRecord(
        id=name, inputs_digest="d", prediction=None, reference=reference, scores=scores, cluster=cluster,
        group=None, tags={}, flags={},
    )  # fmt: skip


def _write(
    folder: Run, cells: Sequence[dict[str, Any]], scores: Sequence[Sequence[Any]], cluster_size: int = 0
) -> None:
    """Write the records of cells, with an unlabelled one each."""
    for cell, own in zip(cells, scores, strict=True):
        metric = next(iter(cell["metrics"]))
        records = [
            _record(str(n), {metric: score}, cluster=str(n // cluster_size) if cluster_size else None)
            for n, score in enumerate(own)
        ]
        path = folder.records_of(CellResult.model_validate(cell))
        folder.write_records(path, [*records, _record("u", {}, None)])


def _from_records(folder: Run, cells: Sequence[dict[str, Any]], **spec: Any) -> dict[str, Any]:
    specs = {"nli": TaskSummary.model_validate({**SPEC, **spec})}
    typed = [CellResult.model_validate(cell) for cell in cells]
    [row] = task_intervals(scored(cells, specs), typed, specs, folder.records_of, METRICS)
    return row.to_json()


def test_translations_of_an_item_are_drawn_together(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    hardness = random.random(40)
    scores = [(hardness < ease).astype(float) for ease in (0.9, 0.6, 0.4)]
    cells = []
    for code, own in zip(("en", "de", "sw"), scores, strict=True):
        kept: dict[str, Any] = {"se": float(stats.sem(own)), "ci_method": "t", "clusters": 40}
        cells.append(_cell(code, value=float(own.mean()), **kept, digest=f"d{code}"))
    folder = Run.at(tmp_path)
    _write(folder, cells, [own.tolist() for own in scores])
    joint = _from_records(folder, cells, parallel=True)
    # With the same items in all languages it is the interval of the items' means over languages.
    expected = clustered_mean(np.mean(scores, axis=0), [None] * 40)
    assert joint["se"] == pytest.approx(expected.se)
    assert joint["ci"] == pytest.approx([expected.low, expected.high])
    assert (joint["ci_method"], joint["clusters"]) == ("clustered t", 40)
    apart = _from_records(folder, cells)
    assert apart["se"] < 0.75 * joint["se"]
    # Items of a cluster, in any of the languages, are one draw.
    _write(folder, cells, [own.tolist() for own in scores], cluster_size=4)
    grouped = _from_records(folder, cells, parallel=True)
    expected = clustered_mean(np.mean(scores, axis=0), [str(number // 4) for number in range(40)])
    assert (grouped["se"], grouped["clusters"]) == (pytest.approx(expected.se), 10)


def test_seeds_are_averaged_item_by_item(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    scores = random.random((3, 30))
    cells = [
        _cell("de", value=float(own.mean()), seed=seed, digest=f"d{seed}") for seed, own in enumerate(scores)
    ]
    folder = Run.at(tmp_path)
    _write(folder, cells, scores.tolist())
    row = _from_records(folder, cells)
    # Seeds are a second source of variance; what they share with items counts once (Cameron et al. 2011).
    apart = scores - scores.mean(axis=0) - scores.mean(axis=1, keepdims=True) + scores.mean()
    items = max(0.0, float(stats.sem(scores.mean(axis=0))) ** 2 - np.square(apart).sum() / (29 * 2 * 3 * 30))
    seeds = scores.mean(axis=1).var(ddof=1) / 3
    se = math.sqrt(items + seeds)
    many, few = (float(stats.t.ppf(0.975, freedom)) for freedom in (29, 2))
    reach = (items * many + seeds * few) / se
    assert row["se"] == pytest.approx(se)
    assert row["ci"] == pytest.approx([scores.mean() - reach, scores.mean() + reach])
    assert row["over_seeds"]["de"]["ci"] == pytest.approx(row["ci"])
    assert row["seed_sd"] == pytest.approx(float(np.std(scores.mean(axis=1), ddof=1)))
    _write(folder, cells[:1], [scores[0][:-1].tolist()])
    assert _from_records(folder, cells)["ci_method"] == "items differ between seeds"
    folder.records_of(CellResult.model_validate(cells[1])).unlink()
    assert _from_records(folder, cells)["ci_method"] == "records are missing"


def test_languages_of_a_parallel_task_are_compared_item_by_item(tmp_path: Path) -> None:
    random = np.random.default_rng(6)
    hardness = random.random(200)
    scores = [(hardness < ease).astype(float) for ease in (0.8, 0.75, 0.7)]
    cells = []
    for code, own in zip(("en", "de", "sw"), scores, strict=True):
        kept: dict[str, Any] = {"se": float(stats.sem(own)), "ci": [0.6, 0.85], "clusters": 200}
        cells.append(_cell(code, value=float(own.mean()), **kept, digest=code))
    folder = Run.at(tmp_path)
    _write(folder, cells, [own.tolist() for own in scores])
    row = _from_records(folder, cells, parallel=True)
    for code, own in zip(("de", "sw"), scores[1:], strict=True):
        paired = stats.ttest_rel(own, scores[0])
        found = row["from_source"][code]
        assert found["value"] == pytest.approx(np.mean(own - scores[0]))
        assert found["p"] == pytest.approx(paired.pvalue)
        assert found["ci"] == pytest.approx(list(paired.confidence_interval()))
        assert found["ci_method"] == "paired t"
    gap = stats.ttest_1samp(scores[0] - (scores[1] + scores[2]) / 2, 0)
    assert row["transfer_gap_interval"]["value"] == pytest.approx(row["transfer_gap"])
    assert row["transfer_gap_interval"]["ci"] == pytest.approx(list(gap.confidence_interval()))
    # Items that are others in every language are not paired: MOVER of equal distances is that of the errors.
    apart = _from_records(folder, cells)
    found = apart["from_source"]["de"]
    below = math.hypot(scores[1].mean() - 0.6, 0.85 - scores[0].mean())
    assert found["ci"][0] == pytest.approx(found["value"] - below)
    assert (found["ci_method"], found["p"] > row["from_source"]["de"]["p"]) == ("independent", True)
    unpaired = _from_records(folder, cells, parallel=True, unpaired=["sw"])
    methods = {code: own["ci_method"] for code, own in unpaired["from_source"].items()}
    assert methods == {"de": "paired t", "sw": "independent t"}


def test_set_level_metrics_of_parallel_languages_are_compared_in_the_same_resamples(tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    first = _tags(random, 0.7)
    second = [[max(0.0, right - float(random.random() < 0.2)), gold, given] for right, gold, given in first]
    cells = [
        _cell(code, metric="chunk_f1", value=f1_from_counts(np.sum(own, axis=0)), digest=code)
        for code, own in (("en", first), ("de", second))
    ]
    folder = Run.at(tmp_path)
    _write(folder, cells, [first, second])
    row = _from_records(folder, cells, metrics=["chunk_f1"], headline=["chunk_f1"], parallel=True)
    # Every sentence has three gold and three given chunks, so that F1 is the mean of the shares.
    paired = stats.ttest_rel(np.array(first)[:, 0] / 3, np.array(second)[:, 0] / 3)
    gap = row["transfer_gap_interval"]
    assert gap["ci"] == pytest.approx(list(paired.confidence_interval()), abs=0.01)
    assert gap["ci_method"] == "paired cluster bootstrap"


def _tags(random: np.random.Generator, right: float) -> list[list[float]]:
    return [[float(random.binomial(3, right)), 3.0, 3.0] for _ in range(60)]


@pytest.mark.parametrize("parallel", [True, False])
def test_set_level_metrics_are_resampled_jointly(tmp_path: Path, parallel: bool) -> None:
    random = np.random.default_rng(5)
    codes = ["en", "de"] if parallel else ["en", "en"]
    first = _tags(random, 0.7)
    cells = [
        _cell(code, metric="chunk_f1", value=0.7, seed=seed, digest=f"d{seed}")
        for seed, code in enumerate(codes)
    ]
    folder = Run.at(tmp_path)
    _write(folder, cells, [first, first])
    row = _from_records(folder, cells, metrics=["chunk_f1"], headline=["chunk_f1"], parallel=parallel)
    # Both are the same answers: their mean varies as one of them does.
    shares = np.array(first)[:, 0] / 3
    assert row["se"] == pytest.approx(float(stats.sem(shares)), rel=0.1)
    assert (row["ci_method"], row["draws"], row["clusters"]) == (
        "cluster bootstrap" if parallel else "bootstrap",
        1_000,
        60,
    )
    assert row["ci"][0] < f1_from_counts(np.sum(first, axis=0)) < row["ci"][1]
    assert row == _from_records(folder, cells, metrics=["chunk_f1"], headline=["chunk_f1"], parallel=parallel)


# Suites ------------------------------------------------------------------------------------------------


SUITE: dict[str, Any] = {
    "suite": "s",
    "protocol": "p",
    "tasks": ["nli", "qa", "ner"],
    "categories": {"one": ["nli"], "two": ["qa", "ner"]},
    "languages": {"nli": ["en"], "qa": ["en"], "ner": ["en"]},
}


def _suite_rows(**errors: float | None) -> list[TaskScore]:
    rows = []
    for task, error in errors.items():
        for metric in ("f1", "em") if task == "qa" else ("m",):
            row = _row([_cell("en", value=0.5, se=error, ci_method="t", clusters=50)])
            rows.append(TaskScore.model_validate({**row, "task": task, "metric": metric, "headline": True}))
    return rows


def _suite(rows: Sequence[TaskScore]) -> dict[str, Any]:
    [suite] = aggregate_suites(rows, [SuiteSummary.model_validate(SUITE)])
    return suite.to_json()


def test_a_suite_adds_the_variances_of_its_tasks() -> None:
    rows = _suite_rows(nli=0.02, qa=0.04, ner=0.03)
    suite = _suite(rows)
    paper = math.sqrt((0.02 / 2) ** 2 + (0.04 / 4) ** 2 + (0.03 / 4) ** 2)
    flat = math.sqrt(0.02**2 + 0.04**2 + 0.03**2) / 3
    assert suite["paper"]["se"] == pytest.approx(paper)
    assert suite["paper"]["ci"] == pytest.approx([0.5 - 1.959964 * paper, 0.5 + 1.959964 * paper])
    assert suite["flat"]["se"] == pytest.approx(flat)
    assert suite["flat"]["ci_method"] == "normal, tasks independent"
    reach = 1.959964 * math.hypot(0.04, 0.03) / 2
    assert suite["paper"]["category_intervals"]["two"] == pytest.approx([0.5 - reach, 0.5 + reach])


def _shared_suite(folder: Run, ids: Sequence[Sequence[str]], data: Sequence[str]) -> dict[str, Any]:
    """Return the suite of three tasks whose items have the same answers and these ids and data."""
    random = np.random.default_rng(8)
    scores = (random.random(50) < 0.6).astype(float)
    cells, specs = [], {}
    for task, names, digest in zip(("nli", "qa", "ner"), ids, data, strict=True):
        kept = {"se": float(stats.sem(scores)), "ci": [0.4, 0.8], "ci_method": "t", "clusters": 50}
        fields = {"digest": task, "data": {"digest": digest}}
        cells.append(make_cell(task, "en", {"m": {"value": float(scores.mean()), **kept}}, **fields))
        specs[task] = TaskSummary.model_validate(SPEC)
        records = [_record(name, {"m": score}) for name, score in zip(names, scores.tolist(), strict=True)]
        folder.write_records(folder.records_of(CellResult.model_validate(cells[-1])), records)
    results = RunResults.model_validate({"cells": cells, "tasks": scored(cells, specs), "suites": []})
    suites = [SuiteSummary.model_validate(SUITE)]
    [found] = add_task_intervals(results, specs, suites, folder.records_of, METRICS).suites
    return {"items": float(stats.sem(scores)), **found.to_json()}


def test_tasks_that_share_their_items_add_their_errors(tmp_path: Path) -> None:
    rows = [str(number) for number in range(50)]
    long = [f"a-long-item-name-{number}" for number in range(50)]
    apart = _shared_suite(Run.at(tmp_path / "apart"), [rows] * 3, ["x", "y", "z"])
    assert apart["flat"]["se"] == pytest.approx(apart["items"] / math.sqrt(3))
    assert apart["flat"]["ci_method"] == "normal, tasks independent"
    # The same answers to the same items vary as one of them, whether their data or their ids are the same.
    for name, ids, data in (("data", [rows] * 3, ["x"] * 3), ("ids", [long] * 3, ["x", "y", "z"])):
        shared = _shared_suite(Run.at(tmp_path / name), ids, data)
        assert shared["flat"]["se"] == pytest.approx(shared["items"])
        assert shared["paper"]["se"] == pytest.approx(shared["items"])
        assert shared["flat"]["ci_method"] == "normal, shared items"
        ends = shared["paper"]["category_intervals"]["two"]
        assert ends[1] - ends[0] == pytest.approx(2 * 1.959964 * shared["items"])
    # Two of three: qa and ner.
    pair = _shared_suite(Run.at(tmp_path / "pair"), [rows, long, long], ["x", "y", "z"])
    assert pair["flat"]["se"] == pytest.approx(pair["items"] * math.sqrt(1 + 4) / 3)


def test_a_suite_with_a_task_without_error_has_no_interval() -> None:
    suite = _suite(_suite_rows(nli=0.02, qa=None, ner=0.03))
    assert suite["paper"]["value"] == 0.5
    assert (suite["paper"]["se"], suite["flat"]["ci"]) == (None, None)
    ends = suite["paper"]["category_intervals"]
    assert [own is None for own in ends.values()] == [False, True]


def test_results_without_such_tasks_need_no_records() -> None:
    cells = [_cell("en", se=0.1, ci=[0.3, 0.7], ci_method="t", clusters=9)]
    specs = {"nli": TaskSummary.model_validate({**SPEC, "parallel": True})}
    results = RunResults.model_validate({"cells": cells, "tasks": scored(cells, specs), "suites": []})
    assert add_task_intervals(results, specs, [], lambda _: pytest.fail("read"), METRICS) == results
