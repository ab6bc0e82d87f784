from __future__ import annotations

from collections.abc import Mapping

import pytest

from harness.models.adapters import AdapterEntry
from harness.testing.adapter_contract import AdapterContract
from harness_baseline import BASELINE


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
