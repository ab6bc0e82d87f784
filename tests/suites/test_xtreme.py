"""The suite of XTREME's tasks for encoders: its languages, metrics and published systems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.analysis.coverage import suite_coverage
from harness.models.capabilities import Head, ModelDescription, TrainingSettings
from harness.planning.run_config import RunConfig, data_options
from harness.running.manifest import suite_summaries
from harness.running.session import open_session, prepare
from harness.scores.aggregation import aggregate_suites, overall, task_scores
from harness.specs.documents import resolve_settings
from harness.specs.selection import select
from harness.storage.results import SuiteScore, SuiteSummary, TaskScore

CATALOG = open_session().catalog
SUITE = CATALOG.suite("xtreme")
PUBLISHED = {spec.label: spec for spec in CATALOG.published_for("xtreme")}
PRINTED = {
    "mDistilBERT": 56.5,
    "mMiniLM": 67.1,
    "mmBERT-small": 68.6,
    "XLM-R base": 70.4,
    "mGTE base": 71.1,
    "mmBERT base": 72.8,
}
COUNTS = {
    "xnli": 15,
    "pawsx": 7,
    "xcopa": 11,
    "xquad": 11,
    "mlqa": 7,
    "tydiqa": 9,
    "wikiann": 40,
    "udpos": 33,
}
"""Hu et al. (2020), and XCOPA's own languages."""
ADDED_LATER = {"udpos": {"lt", "pl", "ro", "uk", "wo"}, "wikiann": set("az gu lt pa pl qu ro uk".split())}
"""By XTREME-R."""


def test_languages_are_those_of_xtreme() -> None:
    coverage = suite_coverage(CATALOG, "xtreme")
    assert {task: coverage.total(task) for task in SUITE.tasks} == COUNTS
    assert len(coverage.languages) == 40 + len({"ht", "qu"})
    for task, added in ADDED_LATER.items():
        assert set(CATALOG.languages_of(task)) - set(SUITE.languages[task]) == added


def test_a_selection_runs_the_languages_of_its_suites() -> None:
    alone = {item.entry.spec.task: item for item in select(CATALOG, ["xtreme"])}
    assert {name: len(item.languages) for name, item in alone.items()} == COUNTS
    assert {name: len(item.published) for name, item in alone.items()} == COUNTS
    both = {item.entry.spec.task: item for item in select(CATALOG, ["xtreme", "xtreme_r"])}
    assert (len(both["wikiann"].languages), len(both["wikiann"].published)) == (48, 48)
    [picked] = select(CATALOG, ["xtreme:lt"])[6:7]
    assert (picked.entry.spec.task, picked.languages, len(picked.published)) == ("wikiann", ("lt",), 48)
    named = {item.entry.spec.task: item for item in select(CATALOG, ["xtreme"], ["lt", "de"])}
    assert named["wikiann"].languages == ("de",)


@pytest.mark.parametrize("label", PRINTED)
def test_a_printed_average_is_the_plain_mean_of_the_cells(label: str) -> None:
    spec = PUBLISHED[label]
    scores = task_scores(spec.scores, {task: tuple(spec.scores[task]) for task in SUITE.tasks})
    found = overall(scores, SUITE.tasks, SUITE.categories)
    assert found.paper == pytest.approx(found.flat)
    assert found.flat == pytest.approx(PRINTED[label], abs=0.05 + 1e-9), "rounded to one decimal"
    assert spec.overall == PRINTED[label]
    assert spec.languages == {}, "the table has no cells by language"
    assert {"xquad", "mlqa", "udpos"} <= set(spec.comparable)
    assert set(PUBLISHED) == set(PRINTED)


def _score(task: str, metric: str, *, headline: bool, **by_language: float) -> TaskScore:
    return TaskScore.model_validate(
        {
            "task": task,
            "protocol": "zero_shot_transfer",
            "method": "head",
            "view": {},
            "metric": metric,
            "headline": headline,
            "value": sum(by_language.values()) / len(by_language),
            "se": 0.01,
            "ci": [0.0, 1.0],
            "languages": len(by_language),
            "by_language": by_language,
        }
    )


def _suite_score(**fields: Any) -> SuiteScore:
    rows = [
        _score("qa", "f1", headline=True, en=0.8, de=0.6),
        _score("qa", "em", headline=True, en=0.4, de=0.2),
        _score("ner", "chunk_f1", headline=True, en=0.9, lt=0.1, yo=0.5),
    ]
    known = {"tasks": ["qa", "ner"], "languages": {"qa": ["en", "de"], "ner": ["en"]}, **fields}
    suite = SuiteSummary.model_validate({"suite": "mine", "protocol": "zero_shot_transfer", **known})
    [found] = aggregate_suites(rows, [suite])
    return found


def test_only_the_metrics_and_languages_of_the_suite_count() -> None:
    found = _suite_score(metrics={"qa": ["f1"]}, others={"ner": ["lt"]})
    assert found.flat.value == pytest.approx((0.7 + 0.9) / 2)
    assert found.extended is not None, "yo was added by others, lt was not"
    assert found.extended.languages == {"ner": ["yo"]}
    assert found.extended.flat.value == pytest.approx((0.7 + 0.7) / 2)
    assert found.flat.ci is None, "the error of NER's mean is known with lt alone"
    assert _suite_score(others={"ner": ["lt"]}).flat.value == pytest.approx((0.5 + 0.9) / 2)


def test_a_manifest_says_which_languages_do_not_count(tmp_path: Path) -> None:
    def summary(*tasks: str) -> SuiteSummary:
        config = RunConfig(tasks=tasks, model="baseline:majority", data=data_options(["sample"]))
        return next(item for item in suite_summaries(prepare(config).plan) if item.suite == "xtreme")

    alone, both = summary("xtreme"), summary("xtreme", "xtreme_r")
    assert alone.others == {}
    assert {task: set(codes) for task, codes in both.others.items()} == ADDED_LATER
    assert alone.languages == both.languages
    assert alone.metrics == {"xquad": ["f1"], "mlqa": ["mlqa_f1"], "tydiqa": ["f1"]}


def _settings(head: Head, stage: str, layers: int = 12) -> TrainingSettings:
    model = ModelDescription(adapter="a", ref="r", offers=frozenset(), layers=layers)
    return resolve_settings(CATALOG.recipe("mgte"), head, stage, model)


MGTE: dict[tuple[Head, str], dict[str, Any]] = {
    (Head.CLASSIFICATION, "mnli"): {"learning_rate": 2e-5, "epochs": 3, "max_length": 128, "batch_size": 32},
    (Head.CLASSIFICATION, "pawsx"): {"learning_rate": 2e-5, "epochs": 2, "warmup_share": 0.0},
    (Head.MULTIPLE_CHOICE, "siqa"): {"learning_rate": 2e-5, "epochs": 5, "warmup_share": 0.0},
    (Head.MULTIPLE_CHOICE, "copa"): {"learning_rate": 2e-5, "epochs": 5},
    (Head.TAGGING, "wikiann"): {"epochs": 10, "batch_size": 32},
    (Head.TAGGING, "udpos"): {"epochs": 10, "max_length": 128},
    (Head.SPAN_EXTRACTION, "squad"): {"learning_rate": 3e-5, "epochs": 3, "max_length": 384, "stride": 128},
    (Head.SPAN_EXTRACTION, "tydiqa"): {"learning_rate": 3e-5, "weight_decay": 1e-4, "batch_size": 32},
    (Head.DUAL_ENCODER, "squad_sentences"): {
        "learning_rate": 2e-5, "epochs": 3, "batch_size": 16, "max_query_length": 96, "max_length": 256,
        "pooling": "cls",
    },
    (Head.DUAL_ENCODER, "mewsli_x_pairs"): {
        "epochs": 2, "batch_size": 64, "max_query_length": 64, "max_length": 64, "pooling": "cls"
    },
}  # fmt: skip
"""izhx/nlu-evals, scripts at b8193ba."""


@pytest.mark.parametrize(("head", "stage"), MGTE)
def test_the_recipe_of_mgte(head: Head, stage: str) -> None:
    found = _settings(head, stage)
    assert {name: getattr(found, name) for name in MGTE[head, stage]} == MGTE[head, stage]
    assert (found.select_best, found.warmup_steps) == (False, 0)
    assert found == _settings(head, stage, layers=24), "large models have the same settings"


def test_a_language_that_a_suite_does_not_list_is_named() -> None:
    chosen = {item.entry.spec.task: item for item in select(CATALOG, ["xtreme"], ["lt", "de"])}
    assert chosen["wikiann"].languages == chosen["udpos"].languages == ("de",)
    assert chosen["wikiann"].unlisted == chosen["udpos"].unlisted == ("lt",)
    assert chosen["xnli"].unlisted == ()
    assert chosen["xnli"].missing == ("lt",)
    (alone,) = select(CATALOG, ["wikiann"], ["lt", "de"])
    assert (alone.languages, alone.unlisted) == (("lt", "de"), ())
