"""The contract of model adapters, against the stand-in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.models.adapters import AdapterEntry
from harness.testing.adapter_contract import AdapterContract
from harness_vllm import harness_register_adapters

pytestmark = pytest.mark.thorough


class StandInContract(AdapterContract):
    name = "vllm"

    @pytest.fixture(scope="class")
    @classmethod
    def entry(cls) -> AdapterEntry:
        return next(entry for entry in harness_register_adapters() if entry.name == cls.name)

    @pytest.fixture(scope="class")
    @classmethod
    def ref(cls, class_stand_in: Any) -> Iterator[str]:
        yield class_stand_in.url


class TestRanker(StandInContract):
    @pytest.fixture(scope="class")
    @classmethod
    def options(cls, folders: dict[str, Path]) -> Mapping[str, str]:
        return {"tokenizer": str(folders["plain"])}


class TestEmbedder(StandInContract):
    @pytest.fixture(scope="class")
    @classmethod
    def options(cls) -> Mapping[str, str]:
        return {"runner": "pooling"}


class TestChat(StandInContract):
    name = "openai"
