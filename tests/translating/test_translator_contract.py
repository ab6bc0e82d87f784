"""The translators that need no model keep the contract, and one that breaks it is caught."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from harness.data.translation.services import Translation, TranslatorEntry
from harness.testing import SENTENCES
from harness.testing.translator_contract import TranslatorContract
from harness_translation import harness_register_translators

from .conftest import Counting


class PlainContract(TranslatorContract):
    name: str

    @pytest.fixture(scope="class")
    @classmethod
    def entry(cls) -> TranslatorEntry:
        return next(entry for entry in harness_register_translators() if entry.name == cls.name)

    @pytest.fixture(scope="class")
    @classmethod
    def ref(cls) -> str:
        return ""


class TestIdentity(PlainContract):
    name = "identity"


class TestReverse(PlainContract):
    name = "reverse"


class TestFile(PlainContract):
    name = "file"
    answers_any_text = False

    @pytest.fixture(scope="class")
    @classmethod
    def ref(cls, tmp_path_factory: pytest.TempPathFactory) -> str:
        path = tmp_path_factory.mktemp("file") / "translations.jsonl"
        rows = [
            {"source": "en", "target": "sw", "text": text, "translation": text.upper()} for text in SENTENCES
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return str(path)


class TestRoute(PlainContract):
    name = "route"

    @pytest.fixture(scope="class")
    @classmethod
    def ref(cls, tmp_path_factory: pytest.TempPathFactory) -> str:
        path = tmp_path_factory.mktemp("route") / "routes.yaml"
        path.write_text("routes: {'en->sw': reverse, '*': identity}\n", encoding="utf-8")
        return str(path)


class Careless(Counting):
    """Forgets the last segment, and numbers its answers."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self._fault = fault

    def translate(self, segments: Sequence[str], source: str, target: str) -> list[Translation]:
        if self._fault == "fewer":
            return super().translate(segments, source, target)[:-1]
        return [Translation(text=f"{number} {text}") for number, text in enumerate(segments)]


def test_a_careless_translator_is_caught() -> None:
    contract, pair = TranslatorContract(), ("en", "sw")
    contract.test_each_segment_gets_one_answer(Counting(), pair, SENTENCES)
    contract.test_neither_order_nor_company_changes_an_answer(Counting(), pair, SENTENCES)
    with pytest.raises(AssertionError, match="8 translations of 9 segments"):
        contract.test_each_segment_gets_one_answer(Careless("fewer"), pair, SENTENCES)
    with pytest.raises(AssertionError):
        contract.test_neither_order_nor_company_changes_an_answer(Careless("numbers"), pair, SENTENCES)
