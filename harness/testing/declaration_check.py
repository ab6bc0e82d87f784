"""Checks that an adapter declares what it is and does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from harness.models.adapters import AdapterEntry
from harness.models.capabilities import (
    HEAD_CAPABILITY,
    Capability,
    Head,
    ModelDescription,
    capability_protocols,
)
from harness.testing.contract_setting import ContractSetting, ModelFixture

_HEAVY = ("datasets", "pandas", "tensorflow", "torch", "transformers", "vllm")

_DESCRIBE = """
import json, sys
from harness.models.adapters import AdapterEntry
from harness.models.options import parse_options
entry, ref, options, heavy = json.loads(sys.argv[1])
before = set(sys.modules)
entry = AdapterEntry(**entry)
entry.describe_model(ref, parse_options(entry, options))
print(json.dumps([name for name in heavy if name in set(sys.modules) - before]))
"""


def implemented(model: Any) -> frozenset[Capability]:
    """Return the capabilities whose protocol the model satisfies."""
    protocols = capability_protocols()
    return frozenset(capability for capability, protocol in protocols.items() if isinstance(model, protocol))


class DeclarationChecks(ContractSetting):
    """Comparison of the description by `describe` with the opened model."""

    def test_description_is_of_this_adapter_and_model(
        self, entry: AdapterEntry, ref: str, description: ModelDescription
    ) -> None:
        """The description carries the adapter's name, and the ref as it was given."""
        identity = (description.adapter, description.ref)
        assert identity == (entry.name, ref), f"{entry.name}:{ref} describes itself as {identity!r}."

    def test_describing_imports_no_model_library(
        self, entry: AdapterEntry, ref: str, options: Mapping[str, str]
    ) -> None:
        """Describing a model imports none of the heavy libraries, so that planning is fast."""
        fields = {name: getattr(entry, name) for name in ("name", "target", "describe", "options", "summary")}
        answer = subprocess.run(
            [sys.executable, "-c", _DESCRIBE, json.dumps([fields, ref, dict(options), _HEAVY])],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        assert answer.returncode == 0, f"{entry.name}:{ref} cannot be described alone:\n{answer.stderr}"
        imported = json.loads(answer.stdout.splitlines()[-1])
        assert not imported, f"Describing {entry.name}:{ref} imports {', '.join(imported)}."

    def test_model_does_what_it_declares(self, model_fixture: ModelFixture) -> None:
        """The opened model has the method of every capability that the description offers."""
        missing = _checkable(model_fixture.description.offers) - implemented(model_fixture.bare)
        assert not missing, f"{model_fixture.name} declares {_names(missing)}, but has no such method."

    def test_model_declares_what_it_does(self, model_fixture: ModelFixture) -> None:
        """The opened model has no capability that the description hides from the planner."""
        extra = implemented(model_fixture.bare) - model_fixture.description.offers
        assert not extra, f"{model_fixture.name} does not declare {_names(extra)}, but has the method."

    def test_heads_declare_their_capability(self, model_fixture: ModelFixture) -> None:
        """A model that can be fitted offers `Fits`, and after each head what that head is for."""
        description = model_fixture.description
        if description.after_fit:
            assert Capability.FITS in description.offers, (
                f"{model_fixture.name} has heads, but offers no Fits."
            )
        for head, offers in description.after_fit.items():
            required = HEAD_CAPABILITY[head]
            assert required in offers, (
                f"{model_fixture.name} fitted with {head.value} does not offer {required.value}."
            )

    @pytest.mark.parametrize("head", list(Head), ids=lambda head: head.value)
    def test_fitted_model_is_what_was_declared(self, model_fixture: ModelFixture, head: Head) -> None:
        """The model fitted with a head has exactly the declared capabilities."""
        if model_fixture.training_set(head) is None:
            pytest.skip(f"{model_fixture.name} is not fitted with {head.value}")
        offers = implemented(model_fixture.fitted(head)[0])
        declared = _checkable(model_fixture.description.after_fit[head])
        assert offers == declared, (
            f"{model_fixture.name} fitted with {head.value} has {_names(offers)}, but declares {_names(declared)}."
        )

    def test_identity_is_stable_text(self, model_fixture: ModelFixture) -> None:
        """The identity is a non-empty mapping of texts to texts, the same whenever the model is opened."""
        identity = model_fixture.bare.identity()
        assert identity, f"{model_fixture.name} has an empty identity."
        for key, value in identity.items():
            assert isinstance(key, str), (
                f"The identity of {model_fixture.name} has the key {key!r}, not a text."
            )
            assert isinstance(value, str), (
                f"The identity of {model_fixture.name} has {key!r}: {value!r}, not a text."
            )
        again, opened = model_fixture.bare.identity(), model_fixture.open().identity()
        assert dict(again) == dict(identity), f"{model_fixture.name} changes its identity from call to call."
        assert dict(opened) == dict(identity), (
            f"{model_fixture.name} changes its identity when it is opened again."
        )

    def test_closing_twice_is_fine(self, model_fixture: ModelFixture) -> None:
        """A second `close` does nothing."""
        model = model_fixture.open()
        model.close()
        try:
            model.close()
        except Exception as error:
            pytest.fail(f"{model_fixture.name} cannot be closed twice: {error!r}")


def _checkable(capabilities: frozenset[Capability]) -> frozenset[Capability]:
    return capabilities & frozenset(capability_protocols())


def _names(capabilities: frozenset[Capability]) -> str:
    return ", ".join(sorted(capability.value for capability in capabilities)) or "nothing"
