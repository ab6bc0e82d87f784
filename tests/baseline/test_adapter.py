"""The adapter of the baselines: its contract, its description, and the state of a fit."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.data.records import (
    Answer,
    ClassificationExample,
    Example,
    MultipleChoiceExample,
    SpanExample,
    TaggedSentence,
)
from harness.errors import AdapterError, MissingExtraError, TrainingError, UnknownNameError, UsageError
from harness.models.adapters import AdapterEntry
from harness.models.capabilities import HEAD_CAPABILITY, Capability, Head, HeadSpec, TextInput
from harness.models.options import parse_options
from harness.testing.adapter_contract import AdapterContract
from harness.testing.examples import head_spec, training_examples
from harness_baseline import BASELINE, description
from harness_baseline.description import BaselineOptions
from harness_baseline.model import Baseline

SPEC = head_spec(Head.CLASSIFICATION)
Open = Callable[..., Baseline]


@pytest.fixture
def saved(fit: Any, tmp_path: Path) -> Path:
    fit("char-ngram", training_examples(Head.CLASSIFICATION), SPEC, directory=tmp_path)
    return tmp_path


def test_a_fit_is_small_and_read_back_exactly(saved: Path, fit: Any, open_baseline: Open) -> None:
    assert {path.name for path in saved.iterdir()} == {"harness_fit.json", "weights.safetensors"}
    assert sum(path.stat().st_size for path in saved.iterdir()) < 100_000
    content = json.loads((saved / "harness_fit.json").read_text(encoding="utf-8"))
    assert (content["head"], content["labels"], content["seed"]) == ("classification", ["no", "yes"], 1)
    loaded: Any = open_baseline("char-ngram").load_fit(saved, SPEC)
    again, other = (
        fit("char-ngram", training_examples(Head.CLASSIFICATION), SPEC, seed=seed) for seed in (1, 2)
    )
    items = [TextInput(text="The cat sleeps.", text_pair="The cat is asleep.")]
    np.testing.assert_array_equal(loaded.classify(items, SPEC.labels), again.classify(items, SPEC.labels))
    assert loaded.identity() == again.identity() != other.identity()


@pytest.mark.parametrize(
    ("ref", "spec", "options", "words"),
    [
        ("majority", SPEC, {}, "'char-ngram'.*'majority'"),
        ("char-ngram", head_spec(Head.TAGGING), {}, "has head"),
        ("char-ngram", HeadSpec(head=Head.CLASSIFICATION, labels=("yes", "no")), {}, "has labels"),
        ("char-ngram", SPEC, {"ngrams": "3"}, "has options"),
    ],
)
def test_the_fit_of_another_model_is_rejected(
    saved: Path, open_baseline: Open, ref: str, spec: HeadSpec, options: dict[str, str], words: str
) -> None:
    with pytest.raises(AdapterError, match=words):
        open_baseline(ref, **options).load_fit(saved, spec)


@pytest.mark.parametrize("content", [b"", b"not weights", b"exchanged", None])
def test_damaged_or_missing_files_are_rejected(
    saved: Path, open_baseline: Open, content: bytes | None
) -> None:
    weights = saved / "weights.safetensors"
    if content is None:
        weights.unlink()
    else:
        weights.write_bytes(weights.read_bytes()[:-1] + b"x" if content == b"exchanged" else content)
    with pytest.raises(AdapterError, match="cannot be read" if content is None else "is damaged"):
        open_baseline("char-ngram").load_fit(saved, SPEC)
    (saved / "harness_fit.json").unlink()
    with pytest.raises(AdapterError, match="cannot be read"):
        open_baseline("char-ngram").load_fit(saved, SPEC)


@pytest.mark.parametrize("ref", ["majority", "random"])
def test_a_fit_without_weights_is_one_json_file(
    ref: str, fit: Any, open_baseline: Open, tmp_path: Path
) -> None:
    fitted = fit(ref, training_examples(Head.CLASSIFICATION), SPEC, directory=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["harness_fit.json"]
    assert open_baseline(ref).load_fit(tmp_path, SPEC).identity() == fitted.identity()


BAD: list[tuple[Head, Example, str]] = [
    (Head.CLASSIFICATION, ClassificationExample(id="x", inputs={"premise": "a"}, label="no"), "hypothesis"),
    (
        Head.CLASSIFICATION,
        ClassificationExample(id="x", inputs={"premise": "a", "hypothesis": "b"}, label="yess"),
        "'yes'",
    ),
    (Head.TAGGING, TaggedSentence(id="x", tokens=("a", "b"), tags=("NOUN",)), "2 tokens, but 1 tags"),
    (Head.TAGGING, TaggedSentence(id="x", tokens=("a",), tags=None), "no tags"),
    (
        Head.MULTIPLE_CHOICE,
        MultipleChoiceExample(id="x", context="", choices=("a",), label=1),
        "1, but 1 choices",
    ),
    (
        Head.SPAN_EXTRACTION,
        SpanExample(id="x", question="?", context="abc", answers=(Answer(text="c", start=1),)),
        "'c' at 1, .*'b'",
    ),
    (Head.SPAN_EXTRACTION, SpanExample(id="x", question="?", context="abc", answers=()), "no answer"),
    (Head.CLASSIFICATION, Example(id="x"), "ClassificationExample"),
]


@pytest.mark.parametrize("ref", ["majority", "random", "char-ngram"])
@pytest.mark.parametrize(("head", "example", "words"), BAD)
def test_bad_training_examples_are_named(
    fit: Any, ref: str, head: Head, example: Example, words: str
) -> None:
    with pytest.raises(TrainingError, match=words):
        fit(ref, [example], head_spec(head))


def test_every_example_is_described() -> None:
    for example in BASELINE.examples:
        description = BASELINE.describe_model(example.partition(":")[2], BaselineOptions())
        assert description.offers == {Capability.FITS, Capability.EMBEDS}
        assert set(description.after_fit) == set(Head) - {Head.TEXT_TO_TEXT}
        for head, offers in description.after_fit.items():
            assert offers == {Capability.FITS, Capability.EMBEDS, HEAD_CAPABILITY[head]}


def test_unknown_ref_names_the_near_one() -> None:
    with pytest.raises(UnknownNameError, match=r"'charngram'.*Did you mean 'char-ngram'\?"):
        BASELINE.describe_model("charngram", BaselineOptions())


@pytest.mark.parametrize(
    ("given", "words"), [({"dimensions": "8"}, "dimension"), ({"dimension": "0"}, "'dimension'")]
)
def test_bad_options_are_named(given: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_options(BASELINE, given)


@pytest.mark.parametrize(
    ("module", "prefixes"),
    [
        ("harness_baseline", ("harness_baseline.", "torch", "scipy", "sklearn")),
        ("harness_baseline.model", ("torch", "scipy", "sklearn")),
    ],
)
def test_importing_the_plugin_imports_no_library(module: str, prefixes: tuple[str, ...]) -> None:
    code = f"import sys, {module}; print([name for name in sys.modules if name.startswith({prefixes})])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize("package", ["sklearn", "safetensors"])
def test_a_missing_package_is_named_with_the_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(description, "find_spec", lambda name: None if name == package else found(name))
    with pytest.raises(MissingExtraError) as caught:
        BASELINE.describe_model("char-ngram", BaselineOptions())
    assert package in caught.value.message
    assert "multilingual-harness[baselines]" in (caught.value.hint or "")
    for ref in ("majority", "random"):
        assert BASELINE.describe_model(ref, BaselineOptions()).ref == ref


class BaselineContract(AdapterContract):
    name: str

    @pytest.fixture(scope="class")
    @classmethod
    def entry(cls) -> AdapterEntry:
        return BASELINE

    @pytest.fixture(scope="class")
    @classmethod
    def ref(cls) -> str:
        return cls.name

    @pytest.fixture(scope="class")
    @classmethod
    def options(cls) -> Mapping[str, str]:
        return {"dimension": "256"}


class TestMajority(BaselineContract):
    name = "majority"


class TestRandom(BaselineContract):
    name = "random"


class TestCharNgram(BaselineContract):
    name = "char-ngram"
