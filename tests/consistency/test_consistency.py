"""Consistency between languages equals what straight computations from the formulas give."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.analysis.consistency import (
    Consistency,
    consistencies,
    kappa_values,
    rank_consistency,
    rank_weights,
)
from harness.api import evaluate
from harness.reporting.languages.consistency import consistency_rows, read_consistency
from harness.statistics.interval import clustered_mean
from harness.storage.run_folder import Run

InstallPlugin = Callable[..., Path]
NOISE = Path(__file__).with_name("noise_adapter.py")
DATA = os.environ.get("HARNESS_TEST_DATA")


def published_rankc(ranking: Sequence[Any], other: Sequence[Any]) -> float:
    """Return RankC of one item from two rankings, best first, as section 3 of the paper writes it."""
    size = len(ranking)
    exponents = [math.exp(size - j) for j in range(1, size + 1)]
    total = 0.0
    for j in range(1, size + 1):
        both = set(ranking[:j]) & set(other[:j])
        total += exponents[j - 1] / sum(exponents) * len(both) / j
    return total


def places(ranking: Sequence[int], width: int) -> list[int]:
    found = [0] * width
    for rank, candidate in enumerate(ranking, start=1):
        found[candidate] = rank
    return found


def test_rankc_is_that_of_the_paper() -> None:
    rng = np.random.default_rng(5)
    sizes = [2, 3, 5, 10, 10, 4]
    one = [list(rng.permutation(size)) for size in sizes]
    other = [list(rng.permutation(size)) for size in sizes]
    found = rank_consistency(
        np.array([places(own, 10) for own in one]), np.array([places(own, 10) for own in other])
    )
    assert found.tolist() == pytest.approx([published_rankc(*pair) for pair in zip(one, other, strict=True)])
    same = np.array([places(own, 10) for own in one])
    assert rank_consistency(same, same).tolist() == pytest.approx([1.0] * 6)
    assert rank_weights(3).tolist() == pytest.approx(
        [math.exp(k) / (math.e + math.exp(2) + math.exp(3)) for k in (3, 2, 1)]
    )


@pytest.mark.thorough
def test_kappa_is_that_of_sklearn_with_the_usual_error() -> None:
    from sklearn.metrics import cohen_kappa_score

    rng = np.random.default_rng(3)
    one = rng.integers(0, 3, 400)
    other = np.where(rng.random(400) < 0.6, one, rng.integers(0, 3, 400))
    values = kappa_values(one, other)
    assert values is not None
    assert values.mean() == pytest.approx(cohen_kappa_score(one, other))
    # The asymptotic standard error of Fleiss, Cohen and Everitt (1969), from the shares of the table.
    table = np.histogram2d(one, other, bins=3)[0] / 400
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    observed, chance = np.trace(table), float(rows @ columns)
    kappa = (observed - chance) / (1 - chance)
    diagonal = sum(table[k, k] * (1 - (rows[k] + columns[k]) * (1 - kappa)) ** 2 for k in range(3))
    others = sum(table[j, k] * (columns[j] + rows[k]) ** 2 for j in range(3) for k in range(3) if j != k)
    variance = diagonal + (1 - kappa) ** 2 * others - (kappa - chance * (1 - kappa)) ** 2
    assert values.std() / 20 == pytest.approx(math.sqrt(variance / 400) / (1 - chance), rel=1e-9)
    assert kappa_values(np.zeros(5, dtype=np.int64), np.zeros(5, dtype=np.int64)) is None
    unread = np.array([0, 1, -1, -1])
    read = kappa_values(unread, np.array([0, 1, -1, 0]))
    assert read is not None
    # 2 of 4 are equal; chance: 1/4 * 2/4 + 1/4 * 1/4.
    assert read.mean() == pytest.approx((0.5 - 0.1875) / (1 - 0.1875))


def measured(run: Run, task: str) -> tuple[Consistency, dict[str, dict[str, Any]]]:
    [found] = [one for one in consistencies(run) if one.task == task]
    records = {
        cell.language: {record.id: record for record in run.records(cell)}
        for cell in run.cells
        if cell.status == "ok" and cell.task == task
    }
    return found, records


def check_rankings(run: Run) -> None:
    """Compare every pair of languages with values that are computed from the records one by one."""
    found, records = measured(run, "bmlama")
    assert len(found.pairs) == len(records) * (len(records) - 1) // 2
    for pair in found.pairs:
        one, other = (records[code] for code in pair.languages)
        rankcs, same, correct = [], [], []
        for name in one.keys() & other.keys():
            outputs = [own[name].prediction for own in (one, other)]
            rankings = [np.argsort([-score for score in own["scores"]]).tolist() for own in outputs]
            rankcs.append(published_rankc(*rankings))
            chosen = [own["forms"].index(own["label"]) if own["label"] else None for own in outputs]
            same.append(chosen[0] == chosen[1] is not None)
            right = [own["label"] == own["forms"][0] for own in outputs]
            correct.append(right[0] == right[1])
        for name, values in (("rank", rankcs), ("same", same), ("correct", correct)):
            measure = pair.measures[name]
            assert measure.value == pytest.approx(np.mean(values))
            assert measure.n == len(values)
            interval = clustered_mean(np.array(values, dtype=float), [None] * len(values))
            if interval.se:
                assert measure.interval.se == pytest.approx(interval.se)
    means = [pair.measures["rank"].value for pair in found.pairs]
    assert found.means["rank"].value == pytest.approx(np.mean(means))
    low, high = found.means["rank"].interval.low, found.means["rank"].interval.high
    assert low is not None
    assert high is not None
    assert low < found.means["rank"].value < high


@pytest.mark.thorough
def test_a_run_on_the_sample(install_plugin: InstallPlugin, tmp_path: Path) -> None:
    install_plugin("noise_adapter", NOISE.read_text(encoding="utf-8"))
    run = evaluate("bmlama", "noise:it", data="sample", method="rank", output=tmp_path / "run")
    check_rankings(run)
    rows = consistency_rows(run)
    assert {row["measure"] for row in rows} == {"same", "correct", "rank"}
    assert sum(row["scope"] == "pair" for row in rows) == 3 * 10
    report = read_consistency([run])
    assert report is not None
    assert (report.details_only, len(report.blocks)) == (True, 2)


@pytest.mark.thorough
@pytest.mark.skipif(DATA is None, reason="needs HARNESS_TEST_DATA")
def test_bmlama_as_it_is_published(install_plugin: InstallPlugin, tmp_path: Path) -> None:
    install_plugin("noise_adapter", NOISE.read_text(encoding="utf-8"))
    run = evaluate("bmlama:en+es+he+zh", "noise:it", data=str(DATA), limit=200, output=tmp_path / "run")
    assert {cell.n for cell in run.cells if cell.status == "ok"} == {200}
    check_rankings(run)


def test_rankings_with_equal_scores_are_no_rankings(install_plugin: InstallPlugin, tmp_path: Path) -> None:
    ranker = Path(__file__).parents[1] / "running" / "ranking_adapter.py"
    install_plugin("ranking_adapter", ranker.read_text(encoding="utf-8"))
    # Its scores per token are all equal: rankings by the order of the file would agree in all languages.
    run = evaluate("bmlama:en+es", "ranks:it", data="sample", output=tmp_path / "run")
    [found] = consistencies(run)
    assert set(found.means) == {"same", "correct"}
    assert found.means["same"].value == 0


def test_labels_agree_or_not(tmp_path: Path) -> None:
    run = evaluate("xnli:en+de+sw", "baseline:random", data="sample", output=tmp_path / "run", train_limit=10)
    found, records = measured(run, "xnli")
    for pair in found.pairs:
        one, other = (records[code] for code in pair.languages)
        same = [one[name].prediction["label"] == other[name].prediction["label"] for name in one]
        assert pair.measures["same"].value == pytest.approx(np.mean(same))
    assert set(found.means) == {"same", "kappa", "correct"}
    assert [pair.languages for pair in found.pairs] == list(itertools.combinations(found.languages, 2))


def test_a_task_in_many_languages_is_left_out_of_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = evaluate("xnli:en+de+sw", "baseline:random", data="sample", output=tmp_path / "run", train_limit=10)
    monkeypatch.setattr("harness.reporting.languages.consistency._WIDEST", 2)
    report = read_consistency([run])
    assert report is not None
    [note] = report.notes
    assert "xnli has 3 languages and is left out" in note
    assert (len(report.blocks), len(report.rows())) == (0, 3 * 4)


def test_words_are_not_compared_between_languages(tmp_path: Path) -> None:
    run = evaluate("xquad:en+de", "baseline:random", data="sample", output=tmp_path / "run", train_limit=10)
    [found] = consistencies(run)
    assert set(found.means) == {"correct"}


def test_a_run_with_one_language_has_none(tmp_path: Path) -> None:
    run = evaluate("xnli:en", "baseline:majority", data="sample", output=tmp_path / "run", train_limit=10)
    assert consistencies(run) == []
    assert read_consistency([run]) is None


def test_a_language_without_translations_is_paired_with_no_other(trained_sample_run: Run) -> None:
    run = Run(trained_sample_run.path)
    task = run.manifest.tasks["xnli"]
    run.manifest = run.manifest.changed(tasks={**run.manifest.tasks, "xnli": task.changed(unpaired=["de"])})
    [before] = [each for each in consistencies(trained_sample_run) if each.task == "xnli"]
    [after] = [each for each in consistencies(run) if each.task == "xnli"]
    assert set(before.languages) - set(after.languages) == {"de"}
