from __future__ import annotations

from pathlib import Path

import pytest

from harness.models.adapters import AdapterEntry
from harness.testing.adapter_contract import AdapterContract
from harness_hf import harness_register_adapters

pytestmark = pytest.mark.thorough


class Seq2SeqContract(AdapterContract):
    family: str

    @pytest.fixture(scope="class")
    @classmethod
    def entry(cls) -> AdapterEntry:
        return next(entry for entry in harness_register_adapters() if entry.name == "hf-seq2seq")

    @pytest.fixture(scope="class")
    @classmethod
    def ref(cls, seq2seq_folders: dict[str, Path]) -> str:
        return str(seq2seq_folders[cls.family])


class TestRelativePositions(Seq2SeqContract):
    family = "mt5"


class TestLearnedPositions(Seq2SeqContract):
    family = "bart"
