from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from harness.errors import MissingExtraError, UnknownNameError, UsageError
from harness.models.capabilities import HEAD_CAPABILITY, Capability, Head
from harness.models.options import parse_options
from harness_baseline import BASELINE, description, harness_register_adapters
from harness_baseline.description import BaselineOptions


def test_hook_declares_the_adapter() -> None:
    assert harness_register_adapters() == [BASELINE]
    assert BASELINE.name == "baseline"


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


def test_importing_the_plugin_imports_none_of_its_working_modules() -> None:
    code = (
        "import sys, harness_baseline; "
        "print([name for name in sys.modules if name.startswith('harness_baseline.')"
        " or name in ('torch', 'scipy', 'sklearn')])"
    )
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


def test_opening_the_baseline_imports_neither_scipy_nor_sklearn() -> None:
    code = (
        "import sys; import harness_baseline.model; print([name for name in ('torch', 'scipy', 'sklearn')"
        " if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
