"""Variants, axes and releases in specs: what they mean and what is rejected."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.running.session import Session
from harness.specs.schema import Release

Problems = Callable[[str], list[str]]

TASK = """\
task: mine
kind: sequence_classification
version: 1
description: x
citation: someone2020
license: cc0-1.0
inputs: [text]
labels: ["yes", "no"]
metrics: [accuracy]
splits:
  test: {local: "mine/{language}.tsv", reader: tsv, columns: [text, label]}
languages: {en: {}, de: {}}
"""


def test_a_task_with_all_three_is_right(problems: Problems) -> None:
    more = """\
axes: {genre: [news, talk]}
releases: {v1: 100, v2: {counts: {en: 5}}}
variants:
  repaired:
    description: x
    splits: {test: {local: "mine/repaired-{language}-{genre}.tsv", columns: [text, label]}}
"""
    task = TASK.replace("{language}.tsv", "{language}-{genre}.tsv")
    assert problems(task + more.replace("v1: 100", "v1: {counts: 100}")) == []


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        (
            "variants: {original: {description: x, splits: {test: {local: a.tsv}}}}",
            "'original' names the task's own",
        ),
        ("variants: {v: {description: x, splits: {}}}", "variants.v.splits"),
        ("variants: {v: {description: x, splits: {tset: {local: a.tsv}}}}", "variants.v.splits"),
        ("variants: {V 1: {description: x, splits: {test: {local: a.tsv}}}}", "variants"),
        ("releases: {v1: {counts: 0}}", "releases.v1.counts"),
        ("releases: {v1: {counts: {en: -1}}}", "releases.v1.counts.en"),
        ("releases: {v1: {counts: {English: 1}}}", "releases.v1.counts"),
        ("axes: {Genre: [a]}", "axes"),
        ("axes: {genre: [a b]}", "axes.genre"),
    ],
)
def test_faults_are_reported(problems: Problems, more: str, fault: str) -> None:
    found = problems(TASK + more)
    assert found
    assert any(fault in line for line in found), found


def test_a_release_has_one_number_for_all_languages_or_one_for_each() -> None:
    assert Release(counts=500).count("qu") == 500
    by_language = Release(counts={"en": 5})
    assert (by_language.count("en"), by_language.count("de")) == (5, None)


def test_every_shipped_variant_and_axis_can_be_planned(session: Session) -> None:
    found = {
        name: (set(spec.variants), {axis: len(values) for axis, values in spec.axes.items()})
        for name in session.catalog.names("task")
        if (spec := session.catalog.task(name).spec).variants or spec.axes
    }
    assert found == {
        "mlqa_cross": (set(), {"question_language": 7}),
        "polymath": (set(), {"level": 2}),
        "vyakarana_gcm": (set(), {"treebank": 3, "inputs": 2}),
        "vyakarana_pos": (set(), {"treebank": 3}),
        "vyakarana_pos_rows": (set(), {"treebank": 3}),
        "vyakarana_stdp": (set(), {"treebank": 3}),
        "vyakarana_sva": (set(), {"treebank": 3, "inputs": 3}),
        "wikiann": ({"unlabelled_test"}, {}),
        "xcopa": ({"aligned_question"}, {}),
    }
