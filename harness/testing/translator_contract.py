"""The contract of a translator as a test class to inherit.

A translator's author gives the fixtures `entry` and `ref`, and overrides the others where needed; fixtures are of
class scope or wider::

    from harness.testing.translator_contract import TranslatorContract

    class TestMyTranslator(TranslatorContract):
        @pytest.fixture(scope="class")
        @classmethod
        def entry(cls) -> TranslatorEntry:
            return MY_ENTRY

        @pytest.fixture(scope="class")
        @classmethod
        def ref(cls) -> str:
            return "tiny-model"
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from harness.data.translation.services import Translation, Translator, TranslatorContext, TranslatorEntry
from harness.running.session import open_session
from harness.testing.examples import SENTENCES, UNUSUAL_TEXTS


class TranslatorContract:
    """Checks that a translator answers every segment in order, whatever the batch, and identifies itself."""

    answers_any_text = True
    """False for translators that look up a fixed set of texts: unusual ones are not asked for."""

    @pytest.fixture(scope="class")
    @classmethod
    def pair(cls) -> tuple[str, str]:
        """Return source and target of a pair that the translator has."""
        return ("en", "sw")

    @pytest.fixture(scope="class")
    @classmethod
    def segments(cls) -> Sequence[str]:
        """Return texts that the translator can translate, of several lengths."""
        return tuple(SENTENCES)

    @pytest.fixture(scope="class")
    @classmethod
    def context(cls) -> TranslatorContext:
        """Return the context that the factory is called with."""
        return open_session().registry

    @pytest.fixture(scope="class")
    @classmethod
    def translator(cls, entry: TranslatorEntry, ref: str, context: TranslatorContext) -> Iterator[Translator]:
        """Open the translator for all checks; close it after the last one."""
        translator = entry.open(ref, context)
        yield translator
        translator.close()

    def test_it_is_declared_as_a_user_writes_it(self, entry: TranslatorEntry) -> None:
        """The name has no colon, comma or equals sign, there is a summary, and examples begin with the name."""
        assert entry.name and not set(entry.name) & set(":,= "), (
            f"{entry.name!r} cannot be used with --translator."
        )
        assert entry.summary, f"{entry.name!r} has no summary."
        for example in entry.examples:
            assert example.partition(":")[0] == entry.name, (
                f"The example {example!r} names another translator."
            )

    def test_what_it_is_can_be_written_down(self, translator: Translator) -> None:
        """Its description is plain JSON, names the model and the engine, and stays the same while it is open."""
        info = translator.info()
        json.dumps(info.to_json())
        assert info.id and info.engine and info.engine_version
        assert translator.info().fingerprint == info.fingerprint

    def test_it_has_the_pair(self, translator: Translator, pair: tuple[str, str]) -> None:
        """It supports the pair that the checks are made with."""
        assert translator.supports(*pair) is True

    def test_each_segment_gets_one_answer(
        self, translator: Translator, pair: tuple[str, str], segments: Sequence[str]
    ) -> None:
        """There are as many translations as segments, each with a text and how it ended."""
        for sources in (segments, segments[:1]):
            answers = translator.translate(sources, *pair)
            assert len(answers) == len(sources), f"{len(answers)} translations of {len(sources)} segments."
            for answer in answers:
                translation: Any = answer
                assert isinstance(translation, Translation)
                assert isinstance(translation.text, str)
                assert answer.finish in {"stop", "length"}

    def test_no_segment_gets_no_answer(self, translator: Translator, pair: tuple[str, str]) -> None:
        """An empty list is answered with an empty list."""
        assert translator.translate([], *pair) == []

    def test_neither_order_nor_company_changes_an_answer(
        self, translator: Translator, pair: tuple[str, str], segments: Sequence[str]
    ) -> None:
        """A segment gets the translation that it gets alone: the store asks for every text once, in its own order."""
        if not translator.info().deterministic:
            pytest.skip("it says of itself that it is not deterministic")
        answers = translator.translate(segments, *pair)
        backwards = translator.translate(segments[::-1], *pair)[::-1]
        alone = [answer for segment in segments for answer in translator.translate([segment], *pair)]
        assert [answer.text for answer in backwards] == [answer.text for answer in answers]
        assert [answer.text for answer in alone] == [answer.text for answer in answers]

    def test_unusual_texts_are_answered(self, translator: Translator, pair: tuple[str, str]) -> None:
        """Decomposed letters, right-to-left text, emoji and line breaks raise nothing."""
        if not self.answers_any_text:
            pytest.skip("it translates a fixed set of texts")
        texts = [text for text in UNUSUAL_TEXTS.values() if text.strip()]
        assert len(translator.translate(texts, *pair)) == len(texts)

    def test_opened_again_it_is_the_same(
        self,
        entry: TranslatorEntry,
        ref: str,
        context: TranslatorContext,
        translator: Translator,
        pair: tuple[str, str],
        segments: Sequence[str],
    ) -> None:
        """A second one has the same fingerprint, translates alike, and can be closed twice."""
        again = entry.open(ref, context)
        assert again.info().fingerprint == translator.info().fingerprint
        if translator.info().deterministic:
            texts = [answer.text for answer in translator.translate(segments[:2], *pair)]
            assert [answer.text for answer in again.translate(segments[:2], *pair)] == texts
        again.close()
        again.close()
