"""Overall scores of suites: what counts, what is missing, and what is never mixed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from harness.planning.run_config import RunConfig, data_options
from harness.running.session import prepare
from harness.running.summaries import suite_summaries
from harness.scores.suites import aggregate_suites
from harness.storage.results import SuiteSummary
from tests.builders import make_cell, scored

SUITE: dict[str, Any] = {
    "suite": "mine",
    "protocol": "zero_shot_transfer",
    "tasks": ["nli", "qa", "find", "seek"],
    "categories": {"classification": ["nli"], "answers": ["qa"], "retrieval": ["find", "seek"]},
    "languages": {"nli": ["en", "de"], "qa": ["en"], "find": ["de"], "seek": ["de"]},
}
HEADLINES = {"nli": ["acc"], "qa": ["f1", "em"], "find": ["map"], "seek": ["map"], "aside": ["acc"]}
SPECS: dict[str, Any] = {
    task: {
        "metrics": [*headline, "further"],
        "headline": headline,
        "source": "en",
        "languages": {code: ["x", "Latn"] for code in ("en", "de", "sw")},
    }
    for task, headline in HEADLINES.items()
}


def _cell(task: str, language: str, *values: float, **fields: Any) -> dict[str, Any]:
    headline = dict(zip(HEADLINES[task], values, strict=True))
    return make_cell(task, language, {**headline, "further": 0.0}, **fields)


def _whole(**fields: Any) -> list[dict[str, Any]]:
    return [
        _cell("nli", "en", 0.9, **fields),
        _cell("nli", "de", 0.7, **fields),
        _cell("qa", "en", 0.6, 0.4, **fields),
        _cell("find", "de", 0.3, **fields),
        _cell("seek", "de", 0.1, **fields),
    ]


def _suites(*cells: Mapping[str, Any], **changed: Any) -> list[dict[str, Any]]:
    suite = SuiteSummary.model_validate({**SUITE, **changed})
    return [score.to_json() for score in aggregate_suites(scored(cells, SPECS), [suite])]


def test_the_overall_score_is_the_mean_of_categories_and_the_flat_one_of_tasks() -> None:
    [row] = _suites(*_whole(), _cell("aside", "en", 1.0))
    assert row["paper"]["categories"] == pytest.approx(
        {"classification": 0.8, "answers": 0.5, "retrieval": 0.2}
    )
    assert row["paper"]["value"] == pytest.approx(fmean([0.8, 0.5, 0.2]))
    assert row["flat"]["value"] == pytest.approx(fmean([0.8, 0.5, 0.3, 0.1]))
    assert (row["complete"], row["missing"], row["extended"]) == (True, [], None)
    assert (row["suite"], row["protocol"], row["view"]) == ("mine", "zero_shot_transfer", {})
    assert row["methods"] == dict.fromkeys(SUITE["tasks"], "head")


def test_without_a_task_there_is_no_overall_score() -> None:
    [row] = _suites(*_whole()[:-1])
    assert (row["paper"]["value"], row["flat"]["value"]) == (None, None)
    assert (row["missing"], row["complete"]) == (["seek"], False)
    assert row["paper"]["categories"] == {
        "classification": pytest.approx(0.8),
        "answers": pytest.approx(0.5),
        "retrieval": None,
    }


def test_a_task_without_one_of_its_headline_metrics_has_no_score() -> None:
    cells = _whole()
    del cells[2]["metrics"]["f1"], cells[2]["metrics"]["em"]
    [row] = _suites(*cells)
    assert row["missing"] == ["qa"]


def test_fewer_languages_give_a_score_that_is_not_complete() -> None:
    [row] = _suites(*(cell for cell in _whole() if (cell["task"], cell["language"]) != ("nli", "de")))
    assert row["paper"]["categories"]["classification"] == pytest.approx(0.9)
    assert (row["complete"], row["missing"]) == (False, [])
    assert row["tasks"]["nli"] == {"languages": 1, "of": 2}


def test_views_are_never_mixed() -> None:
    """The variant of one task does not complete the suite with the original of the others."""
    variant = [_cell("nli", code, 0.1, view={"variant": "other"}) for code in ("en", "de")]
    [plain] = _suites(*_whole(), *variant)
    assert (plain["view"], plain["complete"]) == ({}, True)
    assert plain["paper"]["categories"]["classification"] == pytest.approx(0.8)
    # Nor do they do so together where neither is whole.
    assert [row["missing"] for row in _suites(*variant, *_whole()[2:])] == [["nli"]]
    # Where all of a run has a view, the suite has it too.
    [other] = _suites(*variant)
    assert (other["view"], other["missing"]) == ({"variant": "other"}, ["qa", "find", "seek"])
    assert (other["paper"]["value"], other["flat"]["value"]) == (None, None)


def test_a_task_counts_with_the_values_of_its_axes_that_the_suite_takes() -> None:
    """The axis is in no view of the suite, and other values of it are in no average."""
    crossed = [
        _cell("nli", code, value, view={"inputs": inputs})
        for inputs, value in (("full", 0.8), ("part", 0.1))
        for code in ("en", "de")
    ]
    [row] = _suites(*_whole()[2:], *crossed, views={"nli": {"inputs": "full"}})
    assert (row["view"], row["missing"], row["complete"]) == ({}, [], True)
    assert row["paper"]["categories"]["classification"] == pytest.approx(0.8)


def test_another_protocol_has_a_row_where_no_task_is_missing() -> None:
    frozen = _whole(protocol="frozen")
    assert [row["protocol"] for row in _suites(*_whole(), *frozen)] == ["zero_shot_transfer", "frozen"]
    assert [row["protocol"] for row in _suites(*_whole(), *frozen[1:])] == ["zero_shot_transfer", "frozen"]
    assert [row["protocol"] for row in _suites(*_whole(), *frozen[:-1])] == ["zero_shot_transfer"]
    # A run without the suite's own protocol has the other's row, which names what is missing.
    [row] = _suites(*frozen[:-1])
    assert (row["protocol"], row["missing"], row["paper"]["value"]) == ("frozen", ["seek"], None)


def test_added_languages_count_in_the_extended_score_alone() -> None:
    [row] = _suites(*_whole(), _cell("nli", "sw", 0.2))
    assert row["paper"]["categories"]["classification"] == pytest.approx(0.8)
    assert row["tasks"]["nli"] == {"languages": 2, "of": 2}
    added = fmean([0.9, 0.7, 0.2])
    assert row["extended"]["paper"]["value"] == pytest.approx(fmean([added, 0.5, 0.2]))
    assert row["extended"]["flat"]["value"] == pytest.approx(fmean([added, 0.5, 0.3, 0.1]))
    assert row["extended"]["flat"]["ci_method"] is None  # these cells have no standard errors


def test_a_task_with_only_added_languages_is_missing() -> None:
    cells = [cell for cell in _whole() if cell["task"] != "qa"]
    [row] = _suites(*cells, _cell("qa", "sw", 0.6, 0.4))
    assert (row["missing"], row["complete"]) == (["qa"], False)
    assert row["tasks"]["qa"] == {"languages": 0, "of": 1}
    assert row["extended"]["paper"]["value"] == pytest.approx(0.5)


def test_seeds_are_averaged_before_languages() -> None:
    other = [{**cell, "seed": 2, "metrics": {**cell["metrics"]}} for cell in _whole()]
    for cell in other:
        cell["metrics"] = {name: {"value": score["value"] / 2} for name, score in cell["metrics"].items()}
    [row] = _suites(*_whole(), *other)
    assert row["paper"]["value"] == pytest.approx(0.5 * 0.75)


def test_a_run_of_no_task_of_the_suite_has_no_row() -> None:
    assert _suites(_cell("aside", "en", 1.0)) == []


FRAGMENT = """\
extends: xnli
languages:
  yo:
    provenance: human-translated
    name: Yoruba
    test: {local: "yoruba/{language}.tsv", reader: tsv, columns: [premise, hypothesis, label]}
"""


def test_a_language_of_a_fragment_counts_in_no_published_average(tmp_path: Path) -> None:
    (tmp_path / "yoruba.yaml").write_text(FRAGMENT, encoding="utf-8")
    row = "He sleeps.\\tHe is awake.\\tcontradiction\\n"
    for name in ("xnli/train-en", "xnli/test-en", "yoruba/yo"):
        (tmp_path / f"data/{name}.tsv").parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"data/{name}.tsv").write_text(row, encoding="utf-8")
    config = RunConfig(
        tasks=("xtreme_r",),
        model="baseline:majority",
        tasks_from=(tmp_path / "yoruba.yaml",),
        data=data_options([tmp_path / "data"]),
    )
    plan = prepare(config).plan
    assert [cell.language.code for cell in plan.cells if cell.spec.task == "xnli"] == ["en", "yo"]
    [suite] = suite_summaries(plan)
    assert len(suite.languages["xnli"]) == 15
    assert "yo" not in suite.languages["xnli"]
    assert {task: len(codes) for task, codes in suite.languages.items()} == {
        **{"xnli": 15, "xcopa": 11, "udpos": 38, "wikiann": 48, "xquad": 11},
        **{"mlqa": 7, "tydiqa": 9, "mewslix": 11, "lareqa": 11, "tatoeba": 41},
    }
