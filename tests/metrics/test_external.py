"""Modules of Hugging Face's evaluate: what they get, what is taken from them, and that they run only when allowed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.api import evaluate
from harness.cli.main import run_command
from harness.errors import MissingExtraError, UsageError
from harness.metrics import external
from harness.metrics.metric import Metric, MetricContext
from harness.running.session import open_session

pytestmark = pytest.mark.thorough


MODULE = """\
import datasets
import evaluate


class Share(evaluate.Metric):
    def _info(self):
        features = datasets.Features({"predictions": datasets.Value("int32"), "references": datasets.Value("int32")})
        return evaluate.MetricInfo(description="d", citation="c", inputs_description="i", features=features)

    def _compute(self, predictions, references):
        right = sum(one == two for one, two in zip(predictions, references))
        return {"share": right / len(references), "items": len(references)}
"""
VALUE = SimpleNamespace(dtype="string")
LISTS = SimpleNamespace()


class Planted:
    """A loaded module that keeps what it was given."""

    def __init__(self, result: Any, references: Any = VALUE) -> None:
        self.result, self.features = result, {"predictions": VALUE, "references": references}
        self.got: dict[str, Any] = {}

    def compute(self, **given: Any) -> Any:
        self.got = given
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.fixture
def metric_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Planted], Metric]:
    def make(module: Planted) -> Metric:
        monkeypatch.setattr(external, "_load", lambda name: module)
        return external.evaluate_family(allow_code=True)("evaluate:x")

    return make


MakeMetric = Callable[[Planted], Metric]
LABELS = MetricContext(language="de", labels=("a", "b"))


def test_labels_become_their_positions(metric_of: MakeMetric) -> None:
    module = Planted({"name": "x", "score": 0.25, "other": 0.5})
    result = metric_of(module).compute([{"label": "b"}, {"label": None}], ["a", "b"], LABELS)
    assert (result.value, result.items, result.counts) == (0.25, None, None)
    assert module.got == {"predictions": [1, -1], "references": [0, 1]}
    with pytest.raises(ValueError, match=r"'c'.* a, b"):
        metric_of(module).compute([{"label": "c"}], ["a"], LABELS)


def test_texts_go_with_all_gold_texts_where_the_module_takes_lists(metric_of: MakeMetric) -> None:
    predictions, references = [{"text": "x"}, {"text": ""}], [["x", "y"], ["z"]]
    one, several = Planted({"score": 1}), Planted({"score": 1}, LISTS)
    metric_of(one).compute(predictions, references, MetricContext(language="de"))
    assert one.got == {"predictions": ["x", ""], "references": ["x", "z"]}
    metric_of(several).compute(predictions, references, MetricContext(language="de"))
    assert several.got["references"] == references
    tags = Planted({"f1": 0.5})
    metric_of(tags).compute([["NOUN", "VERB"]], [["NOUN", "DET"]], MetricContext(language="de"))
    assert tags.got == {"predictions": [["NOUN", "VERB"]], "references": [["NOUN", "DET"]]}


def test_options_are_passed_and_percentages_named(metric_of: MakeMetric) -> None:
    module = Planted({"f1": 25.0})
    options = {"evaluate:x": "percent", "evaluate:x.average": "macro", "other": "y"}
    context = MetricContext(language="de", labels=("a",), options=options)
    assert metric_of(module).compute([{"label": "a"}], ["a"], context).value == 0.25
    assert module.got["average"] == "macro"
    assert set(module.got) == {"predictions", "references", "average"}


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"score": 34.0}, "expected a fraction from the module, found 34; .*'NAME: percent'"),
        ({"score": float("nan")}, "expected a fraction"),
        ({"text": "x", "yes": True}, "expected a mapping with a number"),
        (None, "expected a mapping with a number"),
        (RuntimeError("no\nway"), "the module raised RuntimeError: no way"),
    ],
)
def test_what_is_no_score_is_rejected(metric_of: MakeMetric, result: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        metric_of(Planted(result)).compute([{"label": "a"}], ["a"], LABELS)


def test_a_family_has_names_of_modules_and_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    ready = external.evaluate_family(allow_code=True)("evaluate:x").ready
    assert ready is not None
    metrics = open_session().registry.metrics
    assert "evaluate:accuracy" in metrics
    assert not any(name in metrics for name in ("evaluate:", "evaluate", "evaluat:accuracy"))
    with pytest.raises(MissingExtraError, match=r"multilingual-harness\[evaluate\]"):
        ready()


# Through the commands -----------------------------------------------------------------------------------

SPEC = """\
task: mood
kind: sequence_classification
version: 1
description: d
citation: c
license: l
inputs: [text]
labels: [good, bad]
metrics: [accuracy, "evaluate:./share"]
transfer: {stages: [mood], recipe: quick}
splits:
  train: {sample: mood.jsonl}
  validation: {sample: mood.jsonl}
  test: {sample: mood.jsonl}
languages: {en: {}}
"""
ROWS = """\
{"id": "1", "text": "yes", "label": "good"}
{"id": "2", "text": "no", "label": "bad"}
{"id": "3", "text": "nah", "label": "bad"}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a task whose spec names the module in it."""
    files = {"share/share.py": MODULE, "mood.yaml": SPEC, "sample/mood.jsonl": ROWS}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_spec_with_a_program_is_valid_and_not_run_unless_allowed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def loaded(name: str) -> None:
        raise AssertionError("it was loaded")

    monkeypatch.setattr(external, "_load", loaded)
    what = ["--tasks", "mood", "--tasks-from", "mood.yaml", "--model", "baseline:random", "--data", "sample"]
    assert run_command(["tasks", "validate", "mood.yaml"]) == 0
    assert run_command(["plan", *what]) == 0
    capsys.readouterr()
    assert run_command(["eval", *what, "--output", "run"]) == 2
    expected = "The metric 'evaluate:./share' is a program, which runs only with --allow-code."
    assert expected in capsys.readouterr().err
    assert not (folder / "run").exists()
    (folder / "config.yaml").write_text("allow_code: true\n", encoding="utf-8")
    assert run_command(["eval", *what, "--config", "config.yaml"]) == 2
    assert "allow_code" in capsys.readouterr().err
    with pytest.raises(UsageError, match="only with --allow-code"):
        evaluate("mood", "baseline:random", tasks_from=(folder / "mood.yaml",), data="sample")


def _commands(folder: Path, *commands: Sequence[str]) -> tuple[list[int], str]:
    """Run command lines in one process of their own, since evaluate takes long to import: statuses and stderr."""
    script = f"from harness.cli.main import run_command\nprint('\\n', [run_command(line) for line in {commands!r}])"
    environment = {**os.environ, "HF_HOME": str(folder / "hf"), "HARNESS_CACHE": str(folder / "cache")}
    finished = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env=environment,
    )
    return json.loads(finished.stdout.splitlines()[-1]), finished.stderr


def test_a_local_module_scores_a_run_when_it_is_allowed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("evaluate")
    what = ["--tasks", "mood", "--tasks-from", "mood.yaml", "--model", "baseline:random", "--data", "sample"]
    statuses, err = _commands(
        folder,
        ["eval", *what, "--output", "run", "--allow-code", "--json", "rows.json"],
        ["score", "run", "--allow-code", "--metrics", "evaluate:./shar"],
    )
    assert statuses == [0, 1], err
    assert "Error: The module of the metric 'evaluate:./shar' cannot be loaded: FileNotFoundError: " in err
    rows = json.loads((folder / "rows.json").read_text(encoding="utf-8"))
    values = {row["metric"]: row["value"] for row in rows}
    assert set(values) == {"accuracy", "evaluate:./share"}
    assert values["evaluate:./share"] == pytest.approx(values["accuracy"])
    capsys.readouterr()
    assert run_command(["score", "run"]) == 2
    assert "only with --allow-code" in capsys.readouterr().err
