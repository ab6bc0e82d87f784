"""Knowledge in all languages equals what straight counts over the records and independent formulas give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from harness.analysis.consistency import independent_spread, knowledge, loss_correlation
from harness.api import evaluate
from harness.reporting.languages.consistency import knowledge_rows, read_knowledge
from harness.storage.run_folder import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("knowledge") / "run"
    return evaluate("xnli:en+de+sw", "baseline:random", data="sample", output=folder, train_limit=10)


def verdicts(run: Run) -> dict[str, dict[str, bool]]:
    """Return by language and item id whether the answer is right, straight from the records."""
    return {
        cell.language: {
            record.id: record.prediction["label"] == record.reference for record in run.records(cell)
        }
        for cell in run.cells
        if cell.status == "ok"
    }


def test_shares_are_counts_of_the_same_items(run: Run) -> None:
    from sklearn.metrics import cohen_kappa_score

    [task] = knowledge(run)
    by_language = verdicts(run)
    english = by_language["en"]
    for language in task.languages:
        right = by_language[language.code]
        assert language.answered.value == pytest.approx(np.mean(list(right.values())))
        if language.code == "en":
            assert (language.lost, language.gained, language.kappa) == (None, None, None)
            continue
        assert language.lost is not None
        assert language.gained is not None
        assert language.kappa is not None
        assert language.lost.value == pytest.approx(
            np.mean([not right[name] for name in english if english[name]])
        )
        assert language.lost.n == sum(english.values())
        assert language.gained.value == pytest.approx(
            np.mean([right[name] for name in english if not english[name]])
        )
        kappa = cohen_kappa_score([english[name] for name in english], [right[name] for name in english])
        assert language.kappa.value == pytest.approx(kappa)
    assert task.lost is not None
    losses = [language.lost.value for language in task.languages if language.lost is not None]
    assert task.lost.value == pytest.approx(np.mean(losses))
    over_languages = task.lost_over_languages
    assert over_languages.se == pytest.approx(np.std(losses, ddof=1) / np.sqrt(len(losses)))


def test_items_name_the_languages_that_answer_them(run: Run) -> None:
    [task] = knowledge(run)
    by_language = verdicts(run)
    assert task.answered_in == {
        name: tuple(code for code in by_language if by_language[code][name]) for name in by_language["en"]
    }
    counts = [len(codes) for codes in task.answered_in.values()]
    assert task.spread == tuple(counts.count(k) / len(counts) for k in range(4))
    assert task.everywhere.value == pytest.approx(task.spread[-1])
    items = [row for row in knowledge_rows(run) if row["scope"] == "item"]
    assert {row["item"]: tuple(row["answered"]) for row in items} == task.answered_in
    assert all({*row["answered"], *row["missed"]} == {"en", "de", "sw"} for row in items)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_independent_answers_have_the_poisson_binomial_distribution(accuracies: list[float]) -> None:
    spread = independent_spread(np.array(accuracies))
    assert spread.sum() == pytest.approx(1)
    assert spread @ np.arange(len(spread)) == pytest.approx(sum(accuracies))
    assert spread[-1] == pytest.approx(np.prod(accuracies))
    assert spread[0] == pytest.approx(np.prod(1 - np.array(accuracies)))


def test_a_model_that_answers_alike_loses_nothing(tmp_path: Path) -> None:
    run = evaluate("xnli:en+de", "baseline:majority", data="sample", output=tmp_path / "run", train_limit=10)
    [task] = knowledge(run)
    assert task.lost is not None
    assert task.lost.value == 0
    assert task.spread[1] == 0
    assert task.everywhere.value == pytest.approx(task.languages[0].answered.value)


def test_losses_go_with_a_property() -> None:
    losses = {"de": 0.1, "fr": 0.2, "sw": 0.5, "th": 0.4, "ur": 0.6, "en": 0.0}
    tokens = {"de": 0.3, "fr": 0.4, "sw": 0.9, "th": 1.2, "ur": 1.5, "zz": 9.0, "en": 0.0}
    correlation = loss_correlation(losses, "tokens", tokens)
    assert correlation is not None
    assert (correlation.property, correlation.languages) == ("tokens", 6)
    # Ranks 1 2 3 5 4 6 against 1 2 3 4 5 6: 1 - 6 * 2 / (6 * 35).
    assert correlation.value == pytest.approx(1 - 12 / 210)
    assert -1 < correlation.low < correlation.value < correlation.high < 1
    assert loss_correlation(dict.fromkeys(losses, 0.5), "tokens", tokens) is None
    assert loss_correlation({"de": 0.1, "sw": 0.2}, "tokens", tokens) is None


def test_the_correlation_interval_covers() -> None:
    rng = np.random.default_rng(4)
    covered = 0
    for _ in range(400):
        x = rng.standard_normal(20)
        y = 0.6 * x + 0.8 * rng.standard_normal(20)
        codes = [str(number) for number in range(20)]
        correlation = loss_correlation(
            dict(zip(codes, x.tolist(), strict=True)), "p", dict(zip(codes, y.tolist(), strict=True))
        )
        assert correlation is not None
        # Spearman's rho of a bivariate normal with correlation 0.6 (Pearson 1907).
        covered += correlation.low <= 6 / np.pi * np.arcsin(0.3) <= correlation.high
    assert 0.92 <= covered / 400 <= 0.98


def test_wide_tasks_are_in_the_rows_only(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.reporting.languages.consistency._WIDEST", 2)
    report = read_knowledge([run])
    assert report is not None
    assert (len(report.blocks), len(report.notes)) == (0, 1)
    assert {row["scope"] for row in report.rows()} == {"task", "language", "number of languages", "item"}


def test_a_run_with_one_language_has_none(tmp_path: Path) -> None:
    run = evaluate("xnli:en", "baseline:majority", data="sample", output=tmp_path / "run", train_limit=10)
    assert read_knowledge([run]) is None
