"""Faults of documents, each with its line; variants, axes and releases."""

from __future__ import annotations

from typing import get_args

import pytest

from harness.errors import SpecError
from harness.models.capabilities import Head, TrainingSettings
from harness.specs.documents import FragmentSpec, HeadName, RecipeSpec, SettingsPatch
from harness.specs.loading import read_yaml
from harness.specs.schema import (
    Release,
    Source,
    SuiteSpec,
)
from harness.specs.validating import validate_document
from tests.specs.conftest import Problems

FAULTY_TASK = """\
task: mine
kind: sequence_classification
version: 0
descripton: x
citation: 5
license: l
inputs: [a, b, c]
labels: [x]
metrics: []
parralel: true
chance: 1.5
protocols: [frozen, zero_shot]
transfer: {source: en, stages: [], recpie: quick}
splits:
  tset: {local: a.tsv}
  test:
    local: [{pth: a.tsv}, b.tsv, {path: [x.tsv, 5], split: tets}]
    colums: [a, b]
    options: {header: true}
    hub: {pth: x, split: test}
languages:
  en: {}
  sw:
    provenance: human
    tset: {local: b.tsv}
    test:
      hub:
        path: a
        split: b
        revison: null
  english: {test: {local: a}}
  de:
    script: latin
"""


def test_all_faults_of_a_file_are_reported_each_with_its_line(problems: Problems) -> None:
    found = problems(FAULTY_TASK)
    expected = [
        "line 3: version: Input should be greater than or equal to 1, found 0",
        "line 4: descripton: unknown key 'descripton'; did you mean 'description'?",
        "line 5: citation: Input should be a valid string, found 5",
        "line 7: inputs: ",
        "line 8: labels: ",
        "line 9: metrics: ",
        "line 10: parralel: unknown key 'parralel'; did you mean 'parallel'?",
        "line 11: chance: Input should be less than or equal to 1, found 1.5",
        "line 12: protocols.1: ",
        "line 13: transfer.stages: ",
        "line 13: transfer.recpie: unknown key 'recpie'; did you mean 'recipe'?",
        "line 15: splits.tset: ",
        "line 17: splits.test.local.0: the key 'path' is missing",
        "line 17: splits.test.local.0.pth: unknown key 'pth'; did you mean 'path'?",
        "line 17: splits.test.local.2.path.1: Input should be a valid string, found 5",
        "line 17: splits.test.local.2.split: ",
        "line 18: splits.test.colums: unknown key 'colums'; did you mean 'columns'?",
        "line 19: splits.test.options.header: Input should be a valid string, found True",
        "line 20: splits.test.hub: the key 'path' is missing",
        "line 20: splits.test.hub.pth: unknown key 'pth'; did you mean 'path'?",
        "line 24: languages.sw.provenance: ",
        "line 25: languages.sw.tset: unknown key 'tset'; did you mean 'test'?",
        "line 30: languages.sw.test.hub.revison: unknown key 'revison'; did you mean 'revision'?",
        "line 31: languages.english: ",
        "line 33: languages.de.script: ",
    ]
    assert len(found) == len(expected)
    for message, beginning in zip(found, expected, strict=True):
        assert message.startswith(beginning)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("settings: {epoch: 3}", "line 4: settings.epoch: unknown key 'epoch'; did you mean 'epochs'?"),
        ("settings: {learning_rate: -1}", "line 4: settings.learning_rate: Input should be greater than 0"),
        ("settings: {batch_size: 2.5}", "line 4: settings.batch_size: Input should be a valid integer"),
        ("settings: {}\nheads: {clasification: {epochs: 1}}", "line 5: heads.clasification: Input should be"),
        (
            "settings: {}\nheads:\n  tagging: {learnin_rate: 1}",
            "line 6: heads.tagging.learnin_rate: unknown key 'learnin_rate'; did you mean 'learning_rate'?",
        ),
        ("settings: {}\nlarge_heads: {tags: {}}", "line 5: large_heads.tags: Input should be"),
    ],
)
def test_faults_of_a_recipe(problems: Problems, text: str, expected: str) -> None:
    [problem] = problems(f"recipe: mine\ndescription: x\nsource: y\n{text}\n")
    assert problem.startswith(expected)


def test_faults_of_an_embedding(problems: Problems) -> None:
    found = problems(
        "task: mine\nkind: bitext_retrieval\nversion: 1\ndescription: x\ncitation: c\nlicense: l\n"
        "metrics: [top1_accuracy]\nlanguages: {de: {test: {sample: x}}}\n"
        "embedding:\n  frozen: {poolng: mean}\n  frozn: {}\n"
    )
    assert found[0] == "line 10: embedding.frozen.poolng: unknown key 'poolng'; did you mean 'pooling'?"
    assert found[1].startswith("line 11: embedding.frozn: Input should be 'zero_shot_transfer'")
    assert len(found) == 2


def test_faults_of_a_suite_and_of_a_fragment() -> None:
    suite = "suite: s\ndescription: d\ncitation: c\nprotocol: frozen\ntasks: [a]\ncategories: {x: [a, b]}\n"
    with pytest.raises(SpecError, match="categories name b, "):
        validate_document(SuiteSpec, read_yaml(suite, "s.yaml"))
    fragment = "extends: xnli\nlanguages:\n  yo:\n    provenence: native\n    test: {local: a}\n"
    with pytest.raises(
        SpecError, match=r"line 4: languages\.yo\.provenence: unknown key.*did you mean 'provenance'"
    ):
        validate_document(FragmentSpec, read_yaml(fragment, "f.yaml"))


def test_a_language_without_any_split_is_reported(problems: Problems) -> None:
    [problem] = problems(
        "task: mine\nkind: bitext_retrieval\nversion: 1\ndescription: x\ncitation: c\nlicense: l\n"
        "metrics: [top1_accuracy]\nlanguages: {de: {test: {sample: x}}, fr: {provenance: native}, sw: }\n"
    )
    assert problem.endswith("no split is given for fr, sw: add it there or under 'splits'")


def test_a_score_metric_is_one_of_the_metrics(problems: Problems) -> None:
    [problem] = problems(
        "task: mine\nkind: span_extraction\nversion: 1\ndescription: x\ncitation: c\nlicense: l\n"
        "metrics: [f1]\nscore_metrics: [exact_match]\nlanguages: {de: {test: {sample: x}}}\n"
    )
    assert problem.startswith("line 8: score_metrics: exact_match is not among 'metrics'")


def test_an_unknown_kind_is_reported_with_its_line(problems: Problems) -> None:
    found = problems("task: mine\nkind: sequence_clasification\n")
    assert found[-1] == (
        "line 2: kind: No task kind named 'sequence_clasification'. "
        "Did you mean 'sequence_classification' or 'multilabel_classification'?"
    )
    assert "the key 'labels' is missing" in found


@pytest.mark.parametrize("text", ["a: 1\n", "task: x\nsuite: y\n", "task: 5\n", "task: [x]\n"])
def test_a_document_of_no_sort_is_reported(problems: Problems, text: str) -> None:
    [problem] = problems(text)
    assert problem.startswith("line 1: expected exactly one of 'task: NAME', 'training: NAME'")


def test_a_split_given_for_a_language_replaces_the_common_one() -> None:
    text = (
        "extends: xnli\nlanguages:\n  yo: {provenance: native, test: {local: [{path: a}, b]}}\n"
        "  sw: {provenance: native, test: null, validation: {sample: s}}\n"
    )
    spec = validate_document(FragmentSpec, read_yaml(text, "f.yaml"))
    source = spec.entries["yo"].test
    assert source is not None
    assert [item.paths for item in source.alternatives] == [("a",), ("b",)]
    assert spec.entries["sw"].test is None
    assert Source(local="x").alternatives[0].paths == ("x",)
    assert Source().alternatives == ()


def test_names_that_are_written_twice_in_the_code_agree() -> None:
    assert set(get_args(HeadName)) == {head.value for head in Head}
    assert set(SettingsPatch.model_fields) == set(TrainingSettings.__slots__)
    assert set(RecipeSpec.model_fields) >= {"settings", "heads", "stages"}


CONDITIONED_TASK = """\
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
    task = CONDITIONED_TASK.replace("{language}.tsv", "{language}-{genre}.tsv")
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
def test_faults_of_conditions_are_reported(problems: Problems, more: str, fault: str) -> None:
    found = problems(CONDITIONED_TASK + more)
    assert found
    assert any(fault in line for line in found), found


def test_a_release_has_one_number_for_all_languages_or_one_for_each() -> None:
    assert Release(counts=500).count("qu") == 500
    by_language = Release(counts={"en": 5})
    assert (by_language.count("en"), by_language.count("de")) == (5, None)
