"""Means over languages, seeds, groups and suites."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from harness.planning.run_config import RunConfig, data_options
from harness.running.manifest import suite_summaries
from harness.running.session import prepare
from harness.scores.aggregation import aggregate_suites
from harness.storage.results import SuiteSummary
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


def test_a_task_scores_unweighted_means_over_languages() -> None:
    row = _row(
        _cell("en", 0.9, fit="b", n=1),
        _cell("de", 0.8, fit="a", n=10_000),
        _cell("hi", 0.4),
        _cell("sw", 0.1),
    )
    assert row["value"] == pytest.approx((0.9 + 0.8 + 0.4 + 0.1) / 4)
    assert (row["languages"], row["headline"], row["missing"], row["seeds"]) == (4, True, [], 1)
    assert (row["task"], row["protocol"]) == ("xquad", "zero_shot_transfer")
    assert (row["method"], row["view"], row["fit"]) == ("head", {}, ["a", "b", "f0"])
    assert row["by_family"] == pytest.approx({"Indo-European": fmean([0.9, 0.8, 0.4]), "Niger-Congo": 0.1})
    assert row["by_script"] == pytest.approx({"Deva": 0.4, "Latn": fmean([0.9, 0.8, 0.1])})
    assert list(row["by_script"]) == ["Deva", "Latn"]


@pytest.mark.parametrize(
    ("scores", "spec", "gap"),
    [
        ({"en": 0.9, "de": 0.8, "hi": 0.4}, {}, 0.9 - 0.6),
        ({"en": 0.2, "de": 0.8}, {}, -0.6),
        ({"de": 0.8, "hi": 0.4}, {}, None),
        ({"en": 0.9}, {}, None),
        ({"en": 0.9, "de": 0.8}, {"source": None}, None),
    ],
)
def test_the_transfer_gap_is_the_source_minus_the_mean_of_the_others(
    scores: dict[str, float], spec: dict[str, Any], gap: float | None
) -> None:
    row = _row(*(_cell(code, value) for code, value in scores.items()), **spec)
    assert row["transfer_gap"] == (gap if gap is None else pytest.approx(gap))


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
    assert _row(*cells[1:])["seed_sd"] is None, "languages with different seeds have no spread"
    assert _row(_cell("en", 0.9), _cell("de", 0.5))["seed_sd"] is None


def test_what_failed_or_was_skipped_is_missing_and_not_zero() -> None:
    failed = _cell("de", status="failed")
    unlabelled = _cell("sw")  # predicted, but the test file has no labels
    row = _row(_cell("en", 0.9), failed, _cell("hi", status="skipped"), unlabelled)
    assert (row["value"], row["languages"], row["missing"]) == (0.9, 1, ["de", "hi", "sw"])
    assert _row(_cell("en", 0.9), _cell("de", 0.5), failed)["missing"] == [], "another seed has it"
    assert scored([failed], {"xquad": SPEC}) == []
    partial = _cell("de", 0.5)
    del partial["metrics"]["exact_match"]
    row = _row(_cell("en", 0.9), partial, metric="exact_match")
    assert (row["value"], row["languages"]) == (0.9, 1)


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


CODES = ("ar", "de", "en", "hi")
GROUP_SPEC: dict[str, Any] = {
    "metrics": ["map"],
    "headline": ["map"],
    "source": "en",
    "languages": {code: ["Indo-European", "Latn"] for code in CODES},
}


def _group_cell(
    language: str, value: float, n: int = 100, groups: Any = None, **fields: Any
) -> dict[str, Any]:
    score: dict[str, Any] = {"value": value}
    if groups is not None:
        score["groups"] = {code: {"value": found, "n": count} for code, (found, count) in groups.items()}
    usual = {"protocol": "frozen", "method": "embed", "fit": "none", "n": n}
    return make_cell("lareqa", language, {"map": score}, **{**usual, **fields})


def _group_row(*cells: dict[str, Any], **spec: Any) -> dict[str, Any]:
    [row] = scored(cells, {"lareqa": {**GROUP_SPEC, **spec}})
    return row.to_json()


@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=30), min_size=1, max_size=4))
def test_micro_is_the_mean_over_all_items(items: list[list[int]]) -> None:
    cells = [
        _group_cell(code, fmean(scores), n=len(scores)) for code, scores in zip(CODES, items, strict=False)
    ]
    row = _group_row(*cells)
    assert row["micro"] == pytest.approx(float(np.mean(np.concatenate(items))))
    assert row["value"] == pytest.approx(fmean(fmean(scores) for scores in items))


def test_micro_weighs_a_language_once_for_all_seeds() -> None:
    cells = [_group_cell("de", value, n=300, seed=seed) for seed, value in enumerate((0.2, 0.4))]
    row = _group_row(*cells, _group_cell("en", 1.0, n=100))
    assert row["micro"] == pytest.approx((300 * 0.3 + 100 * 1.0) / 400)
    assert not {"matrix", "same_language", "cross_language"} & set(row), "the metric has no groups"
    assert _group_row(_group_cell("de", 0.5, n=0))["micro"] is None


def test_lareqa_of_table_14_is_micro_averaged() -> None:
    """One same-language pair in eleven: 58.2 and 12.1 give the 16.3 that the paper prints."""
    codes = [f"l{number}" for number in range(11)]
    languages = {code: ["x", "Latn"] for code in codes}
    cells = [
        _group_cell(
            code, 0.0, n=1190, groups={other: (0.582 if other == code else 0.121, 1190) for other in codes}
        )
        for code in codes
    ]
    row = _group_row(*cells, languages=languages)
    assert row["same_language"] == pytest.approx({"macro": 0.582, "micro": 0.582})
    assert row["cross_language"] == pytest.approx({"macro": 0.121, "micro": 0.121})
    counts = [(score["value"], score["n"]) for fields in row["matrix"].values() for score in fields.values()]
    everywhere = sum(value * n for value, n in counts) / sum(n for _, n in counts)
    assert everywhere == pytest.approx((1 * 0.582 + 10 * 0.121) / 11)
    assert round(everywhere * 100, 2) == 16.29


def test_mewsli_x_of_table_14_weighs_by_mentions() -> None:
    """3,617 of 15,000 mentions have an entity described in their language: 85.7 and 25.8 give 40.2."""
    same, other = {"de": 1617, "en": 2000}, {"de": 6000, "en": 5383}
    cells = []
    for code in ("de", "en"):
        groups = {code: (0.857, same[code]), "fr": (0.258, other[code])}
        cells.append(_group_cell(code, 0.0, n=same[code] + other[code], groups=groups))
    row = _group_row(*cells)
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
        cells.append(_group_cell(code, 0.0, groups=groups))
    row = _group_row(*cells)
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
        _group_cell("de", 0.0, groups={"de": (value, 40), "en": (0.5, 7)}, seed=seed)
        for seed, value in enumerate((0.2, 0.6))
    ]
    own = {"value": pytest.approx(0.4), "n": 40}
    assert _group_row(*cells)["matrix"] == {"de": {"de": own, "en": {"value": 0.5, "n": 7}}}


@pytest.mark.parametrize(
    ("spec", "gap"),
    [
        ({"human": {"map": 0.975}}, 0.275),
        ({"human": {"map": 0.6}}, -0.1),
        ({"human": {"other": 0.6}}, None),
        ({}, None),
        ({"human": {"map": 0.9}, "published_languages": ["en", "de"]}, 0.2),
        ({"human": {"map": 0.9}, "published_languages": ["en", "de", "sw"]}, None),
    ],
)
def test_the_gap_to_humans_is_their_score_minus_the_mean(spec: dict[str, Any], gap: float | None) -> None:
    row = _group_row(_group_cell("en", 0.9), _group_cell("de", 0.5), **spec)
    assert row["human_gap"] == (gap if gap is None else pytest.approx(gap))


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


def _suite_cell(task: str, language: str, *values: float, **fields: Any) -> dict[str, Any]:
    headline = dict(zip(HEADLINES[task], values, strict=True))
    return make_cell(task, language, {**headline, "further": 0.0}, **fields)


def _whole(**fields: Any) -> list[dict[str, Any]]:
    return [
        _suite_cell("nli", "en", 0.9, **fields),
        _suite_cell("nli", "de", 0.7, **fields),
        _suite_cell("qa", "en", 0.6, 0.4, **fields),
        _suite_cell("find", "de", 0.3, **fields),
        _suite_cell("seek", "de", 0.1, **fields),
    ]


def _suites(*cells: Mapping[str, Any], **changed: Any) -> list[dict[str, Any]]:
    suite = SuiteSummary.model_validate({**SUITE, **changed})
    return [score.to_json() for score in aggregate_suites(scored(cells, SPECS), [suite])]


def test_the_overall_score_is_the_mean_of_categories_and_the_flat_one_of_tasks() -> None:
    [row] = _suites(*_whole(), _suite_cell("aside", "en", 1.0))
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
    categories = row["paper"]["categories"]
    assert categories.pop("retrieval") is None
    assert categories == pytest.approx({"classification": 0.8, "answers": 0.5})
    cells = _whole()
    del cells[2]["metrics"]["f1"], cells[2]["metrics"]["em"]
    [row] = _suites(*cells)
    assert row["missing"] == ["qa"], "it has none of its headline metrics"
    assert _suites(_suite_cell("aside", "en", 1.0)) == [], "no task is of the suite"


def test_fewer_languages_give_a_score_that_is_not_complete() -> None:
    [row] = _suites(*(cell for cell in _whole() if (cell["task"], cell["language"]) != ("nli", "de")))
    assert row["paper"]["categories"]["classification"] == pytest.approx(0.9)
    assert (row["complete"], row["missing"]) == (False, [])
    assert row["tasks"]["nli"] == {"languages": 1, "of": 2}


def test_views_are_never_mixed() -> None:
    """The variant of one task does not complete the suite with the original of the others."""
    variant = [_suite_cell("nli", code, 0.1, view={"variant": "other"}) for code in ("en", "de")]
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
        _suite_cell("nli", code, value, view={"inputs": inputs})
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
    [row] = _suites(*_whole(), _suite_cell("nli", "sw", 0.2))
    assert row["paper"]["categories"]["classification"] == pytest.approx(0.8)
    assert row["tasks"]["nli"] == {"languages": 2, "of": 2}
    added = fmean([0.9, 0.7, 0.2])
    assert row["extended"]["paper"]["value"] == pytest.approx(fmean([added, 0.5, 0.2]))
    assert row["extended"]["flat"]["value"] == pytest.approx(fmean([added, 0.5, 0.3, 0.1]))
    assert row["extended"]["flat"]["ci_method"] is None  # these cells have no standard errors


def test_a_task_with_only_added_languages_is_missing() -> None:
    cells = [cell for cell in _whole() if cell["task"] != "qa"]
    [row] = _suites(*cells, _suite_cell("qa", "sw", 0.6, 0.4))
    assert (row["missing"], row["complete"]) == (["qa"], False)
    assert row["tasks"]["qa"] == {"languages": 0, "of": 1}
    assert row["extended"]["paper"]["value"] == pytest.approx(0.5)


def test_seeds_are_averaged_before_languages() -> None:
    other = [{**cell, "seed": 2, "metrics": {**cell["metrics"]}} for cell in _whole()]
    for cell in other:
        cell["metrics"] = {name: {"value": score["value"] / 2} for name, score in cell["metrics"].items()}
    [row] = _suites(*_whole(), *other)
    assert row["paper"]["value"] == pytest.approx(0.5 * 0.75)


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
