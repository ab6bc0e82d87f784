from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.models.adapters import AdapterEntry
from harness.models.capabilities import Head, TrainingSettings
from harness.testing.adapter_contract import AdapterContract
from harness_hf import harness_register_adapters

from .conftest import DECODERS


def _entry(name: str) -> AdapterEntry:
    return next(entry for entry in harness_register_adapters() if entry.name == name)


class TestEncoder(AdapterContract):
    """A bare BERT in the quick tier; all other families are in ``test_families.py``."""

    thorough = frozenset({"test_fitting_twice_gives_the_same"})

    @pytest.fixture(scope="class")
    @classmethod
    def entry(cls) -> AdapterEntry:
        return _entry("hf-encoder")

    @pytest.fixture(scope="class")
    @classmethod
    def ref(cls, folders: dict[str, Path]) -> str:
        return str(folders["bert"])


@pytest.mark.thorough
class TestMaskedLanguageModel(AdapterContract):
    @pytest.fixture(scope="class")
    @classmethod
    def entry(cls) -> AdapterEntry:
        return _entry("hf-encoder")

    @pytest.fixture(scope="class")
    @classmethod
    def ref(cls, masked_folders: dict[str, Path]) -> str:
        return str(masked_folders["bert"])


@pytest.mark.thorough
class TestDecoder(AdapterContract):
    @pytest.fixture(scope="class")
    @classmethod
    def entry(cls) -> AdapterEntry:
        return _entry("hf-causal")

    @classmethod
    def training_settings(cls, head: Head) -> TrainingSettings:
        # The first token of a decoder, which pooling 'pooler' reads, has seen nothing of the text.
        return replace(super().training_settings(head), pooling="mean")

    @pytest.fixture(scope="class", params=DECODERS)
    @classmethod
    def ref(cls, request: pytest.FixtureRequest, decoder_folders: dict[str, Path]) -> str:
        return str(decoder_folders[request.param])
