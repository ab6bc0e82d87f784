"""The task keeps the contract of the harness's own tasks; the kind, the metric and the baseline do what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sacrebleu.metrics.chrf import CHRF

from harness import CapabilityError, DataError, evaluate
from harness.data import Row
from harness.kinds import ReadContext, read_examples
from harness.metrics import MetricContext
from harness.models import AdapterEntry, AdapterOptions, GenerateOptions
from harness.testing import AdapterContract, SpecContract
from machine_translation import COPY
from machine_translation.copying import Copy
from machine_translation.kind import KIND
from machine_translation.metric import chrf_pp

GERMAN = MetricContext(language="de")
CONTEXT = ReadContext(owner="phrases", language="de", split="test")


class TestPhrases(SpecContract):
    sample_languages = 4
    sample_scripts = 2
    sample_items = 12

    @pytest.fixture
    def task(self) -> str:
        return "phrases"


class TestCopy(AdapterContract):
    @pytest.fixture(scope="class")
    @classmethod
    def entry(cls) -> AdapterEntry:
        return COPY

    @pytest.fixture(scope="class")
    @classmethod
    def ref(cls) -> str:
        return "prompt"


def test_the_baseline_is_scored_with_an_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    run = evaluate("phrases", "copy:prompt", data="sample", output=tmp_path / "run")
    assert {cell.language: cell.n for cell in run.cells} == {"de": 12, "es": 12, "pt": 12, "ru": 12}
    for cell in run.cells:
        score = cell.metrics["chrf_pp"]
        assert score.ci is not None
        assert score.value is not None
        assert 0 < score.ci[0] < score.value < score.ci[1] < 0.3
        assert "bootstrap" in str(score.ci_method)


def test_the_metric_is_that_of_sacrebleu() -> None:
    texts = ["Die Katze schläft.", "Wo ist sie?", ""]
    references = ["Die Katze schläft auf dem Dach.", "Wo ist er?", "Ja."]
    result = chrf_pp([{"text": text} for text in texts], references, GERMAN)
    assert result.value == pytest.approx(CHRF(word_order=2).corpus_score(texts, [references]).score / 100)
    assert result.counts is not None
    assert result.counts.shape[0] == 3


def test_gold_scores_100_and_nothing_0() -> None:
    gold = ["Die Katze schläft.", "Wo ist sie?"]
    assert chrf_pp([{"text": text} for text in gold], gold, GERMAN).value == pytest.approx(1)
    assert chrf_pp([{"text": ""}, {"text": ""}], gold, GERMAN).value == 0


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        ([{"text": "a"}], ["a", "b"], "found 1 and 2"),
        ([{"label": "a"}], ["a"], "item 0: expected a prediction with the key 'text'"),
    ],
)
def test_what_does_not_fit_together_is_rejected(
    predictions: list[dict[str, str]], references: list[str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        chrf_pp(predictions, references, GERMAN)


def test_an_item_may_have_no_translation() -> None:
    rows = [Row(fields={"source": "Yes."}, path="de.jsonl", line=1)]
    (item,) = read_examples(KIND, rows, CONTEXT)
    assert (item.id, item.source, KIND.reference(item)) == ("1", "Yes.", None)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (" ", "de.jsonl:7: the field 'target' of 'phrases' is empty"),
        (3, "de.jsonl:7: expected the text field"),
    ],
)
def test_a_wrong_translation_is_reported_with_its_line(target: object, message: str) -> None:
    rows = [Row(fields={"source": "Yes.", "target": target}, path="de.jsonl", line=7)]
    with pytest.raises(DataError, match=re.escape(message)):
        read_examples(KIND, rows, CONTEXT)


def test_the_baseline_writes_at_most_what_it_may() -> None:
    model = Copy(COPY.describe_model("prompt", AdapterOptions()), AdapterOptions())
    (answer,) = model.generate(["one two three"], [GenerateOptions(max_tokens=2)])
    assert (answer.text, answer.tokens, answer.finished) == ("one two", 2, False)
    with pytest.raises(CapabilityError, match="'copy'"):
        model.generate(["one"], [GenerateOptions(choices=("a", "b"))])
