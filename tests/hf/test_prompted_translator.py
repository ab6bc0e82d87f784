"""The translator `llm` over a tiny untrained decoder: the contract, and the prompt that it writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.data.translation.services import TranslatorContext, TranslatorEntry
from harness.errors import CapabilityError, UsageError
from harness.models.requests import Generated
from harness.running.session import open_session
from harness.testing.translator_contract import TranslatorContract
from harness_translation import harness_register_translators
from harness_translation.variants.translators import PROMPT, PromptedTranslator, open_prompted


class TestPrompted(TranslatorContract):
    @pytest.fixture(scope="class")
    @classmethod
    def entry(cls) -> TranslatorEntry:
        return next(entry for entry in harness_register_translators() if entry.name == "llm")

    @pytest.fixture(scope="class")
    @classmethod
    def ref(cls, decoder_folders: dict[str, Path]) -> str:
        return f"hf-causal:{decoder_folders['llama']}?max_tokens=12"


@pytest.fixture
def context() -> TranslatorContext:
    return open_session().registry


class Recorder:
    """Writes the last line of every prompt."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def identity(self) -> dict[str, str]:
        return {"model": "recorder"}

    def generate(self, prompts: Sequence[str], options: Sequence[Any]) -> list[Generated]:
        self.prompts += prompts
        assert {(item.stop, item.max_tokens) for item in options} == {(("\n",), 256)}
        return [
            Generated(text=f" {prompt.splitlines()[-1]} ", finished=number == 0, tokens=3)
            for number, prompt in enumerate(prompts)
        ]

    def close(self) -> None:
        pass


def test_the_prompt_names_both_languages_and_keeps_to_one_line(context: TranslatorContext) -> None:
    recorder: Any = Recorder()
    answers = PromptedTranslator(recorder, "recorder:x", context).translate(["A\n house.", "B"], "en", "sw")
    assert recorder.prompts[0] == PROMPT.format(source="English", target="Swahili", text="A house.")
    assert [(item.text, item.finish) for item in answers] == [("Swahili:", "stop"), ("Swahili:", "length")]


def test_models_that_write_nothing_are_rejected(context: TranslatorContext) -> None:
    with pytest.raises(CapabilityError, match="char-ngram"):
        open_prompted("baseline:char-ngram", context)
    with pytest.raises(UsageError, match="smollm2"):
        open_prompted("smollm2", context)
    with pytest.raises(UsageError, match=r"max_tokens.*none"):
        open_prompted("hf-causal:models/smollm2?max_tokens=none", context)
