from __future__ import annotations

from pathlib import Path

import pytest

from harness.models.adapters import AdapterEntry
from harness.testing.adapter_contract import AdapterContract
from harness_hf import harness_register_adapters

pytestmark = pytest.mark.thorough


class TestContract(AdapterContract):
    @pytest.fixture(scope="class")
    @classmethod
    def entry(cls) -> AdapterEntry:
        return next(entry for entry in harness_register_adapters() if entry.name == "hf-seq2seq")

    @pytest.fixture(scope="class", params=["mt5", "bart"], ids=["relative positions", "learned positions"])
    @classmethod
    def ref(cls, request: pytest.FixtureRequest, seq2seq_folders: dict[str, Path]) -> str:
        return str(seq2seq_folders[request.param])
