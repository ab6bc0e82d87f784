"""Checks of sub-words: `CountsSubwords` and `CutsTexts`, which an adapter may have, and where its pieces are."""

from __future__ import annotations

import pytest

from harness.models.capabilities import Capability, EmbedOptions, ExposesAttentions, SpanQuestion, TextInput
from harness.models.requests import CountsSubwords, CutsTexts
from harness.testing.contract_setting import ContractSetting
from harness.testing.model_fixture import ModelFixture

TEXTS = (
    "The cat sleeps.",
    "नमस्ते दुनिया",
    "",
    "東京は今日も晴れです。",
    "The cat sleeps.",
    "e\u0301 \u200f\u05d0",
)


class SubwordChecks(ContractSetting):
    """Checks of a model's sub-words of texts."""

    def test_subwords_are_counted_text_by_text(self, model_fixture: ModelFixture) -> None:
        """There is one count per text, whatever other texts are in the batch; an empty text has no token."""
        model = _counting(model_fixture)
        counts = model.subword_counts(TEXTS)
        assert len(counts) == len(TEXTS), (
            f"{model_fixture.name} gives {len(counts)} counts to {len(TEXTS)} texts."
        )
        assert model.subword_counts([]) == [], f"{model_fixture.name} counts something in no text."
        for text, count in zip(TEXTS, counts, strict=True):
            assert model.subword_counts([text]) == [count], (
                f"{model_fixture.name} counts {text!r} otherwise when alone."
            )
            assert (count.tokens > 0) == bool(text), (
                f"{model_fixture.name} makes {count.tokens} tokens of {text!r}."
            )
            assert count.unknown is None or 0 <= count.unknown <= count.tokens, (
                f"{model_fixture.name} finds {count.unknown} unknown tokens among the {count.tokens} of {text!r}."
            )

    def test_no_special_token_is_counted(self, model_fixture: ModelFixture) -> None:
        """A text twice, parted by a space, has about twice its tokens: nothing is added to each text."""
        model = _counting(model_fixture)
        once, often = model.subword_counts(["cat", " ".join(["cat"] * 64)])
        assert abs(often.tokens - 64 * once.tokens) <= 64, (
            f"{model_fixture.name} makes {once.tokens} tokens of a word and {often.tokens} of 64 of them."
        )

    def test_room_is_a_number_of_subwords(self, model_fixture: ModelFixture) -> None:
        """An adapter that embeds says how long a query may be, or that there is no limit."""
        model = model_fixture.bare
        if not isinstance(model, CutsTexts) or Capability.EMBEDS not in model_fixture.description.offers:
            pytest.skip(f"{model_fixture.name} does not say how long a text may be")
        room = model.text_room(1, EmbedOptions())
        assert room is None or room > 0, f"{model_fixture.name} has room for {room} sub-words."

    def test_pieces_leave_no_visible_character_out(self, model_fixture: ModelFixture) -> None:
        """The pieces of attention cover all words, and a context of one letter is its own answer."""
        model, text = model_fixture.bare, "I saw a cat , b ."
        if isinstance(model, ExposesAttentions):
            ((_, attention),) = model.attentions([TextInput(text=text)])
            (segment,) = attention.segments
            pieces = zip(segment.starts, segment.ends, strict=True)
            covered = {position for start, end in pieces for position in range(start, end)}
            assert covered >= {position for position, letter in enumerate(text) if letter != " "}, (
                f"{model_fixture.name} has no piece for some letters of {text!r}, only for {sorted(covered)}."
            )
        for under_test in model_fixture.models_under_test(Capability.EXTRACTS_SPANS):
            for context in ("b", " b", "\n\u0431"):
                question = SpanQuestion(id="letter", question="Which letter?", context=context)
                (answer,) = under_test.model.extract_spans([question])
                assert answer.text == context.strip(), (
                    f"{under_test.name} answers {answer.text!r} from the context {context!r}."
                )


def _counting(model_fixture: ModelFixture) -> CountsSubwords:
    model = model_fixture.bare
    if not isinstance(model, CountsSubwords):
        pytest.skip(f"{model_fixture.name} does not count sub-words")
    return model
