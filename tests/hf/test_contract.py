from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.models.adapters import AdapterEntry
from harness.models.capabilities import Head, TrainingSettings
from harness.testing.adapter_contract import AdapterContract
from harness_hf import harness_register_adapters


class EncoderContract(AdapterContract):
    family: str

    @pytest.fixture(scope="class")
    @classmethod
    def entry(cls) -> AdapterEntry:
        return next(entry for entry in harness_register_adapters() if entry.name == "hf-encoder")

    @pytest.fixture(scope="class")
    @classmethod
    def ref(cls, folders: dict[str, Path]) -> str:
        return str(folders[cls.family])


class TestWordpiece(EncoderContract):
    family = "bert"
    thorough = frozenset({"test_fitting_twice_gives_the_same"})


@pytest.mark.thorough
class TestSentencepiece(EncoderContract):
    family = "xlm-roberta"


@pytest.mark.thorough
class TestMaskedLanguageModel(EncoderContract):
    family = "bert"

    @pytest.fixture(scope="class")
    @classmethod
    def ref(cls, masked_folders: dict[str, Path]) -> str:
        return str(masked_folders[cls.family])


@pytest.mark.thorough
@pytest.mark.slow
class TestByteLevel(EncoderContract):
    family = "roberta"


class DecoderContract(AdapterContract):
    family: str

    @pytest.fixture(scope="class")
    @classmethod
    def entry(cls) -> AdapterEntry:
        return next(entry for entry in harness_register_adapters() if entry.name == "hf-causal")

    @classmethod
    def training_settings(cls, head: Head) -> TrainingSettings:
        # The first token of a decoder, which pooling 'pooler' reads, has seen nothing of the text.
        return replace(super().training_settings(head), pooling="mean")

    @pytest.fixture(scope="class")
    @classmethod
    def ref(cls, decoder_folders: dict[str, Path]) -> str:
        return str(decoder_folders[cls.family])


@pytest.mark.thorough
class TestLlama(DecoderContract):
    family = "llama"


@pytest.mark.thorough
class TestGpt2(DecoderContract):
    family = "gpt2"
