"""Checks of what belongs to hidden states: sentence vectors, masked words, coverage, and twins with random weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from harness.errors import CapabilityError
from harness.models.capabilities import Capability
from harness.models.requests import CoversWords, FloatArray, HasUntrained
from harness.testing.contract_setting import ContractSetting, ModelFixture
from harness.testing.probe import PROBES

_TOLERANCE = 1e-4
_PROBE = PROBES[Capability.EXPOSES_HIDDEN_STATES]
_SEEDS = (3, 4)


class StateChecks(ContractSetting):
    """Checks of the hidden states that a model exposes for sentences."""

    def test_the_vector_of_the_sentence_stands_first(self, model_fixture: ModelFixture) -> None:
        """With `sentence_vector` there is one vector more, and those of the words stay as they are."""
        sentences = [*_PROBE.requests, *_PROBE.unusual.values(), ()]
        for under_test in model_fixture.models_under_test(Capability.EXPOSES_HIDDEN_STATES):
            plain = _states(under_test.model, sentences)
            extended = _states(under_test.model, sentences, sentence_vector=True)
            for words, word_states, all_states in zip(sentences, plain, extended, strict=True):
                expected = (2, len(words) + 1, word_states.shape[2])
                assert all_states.shape == expected, (
                    f"{under_test.name} gives {words!r} the shape {all_states.shape}, expected {expected}."
                )
                assert np.isfinite(all_states).all(), (
                    f"{under_test.name} gives {words!r} a vector that is not finite."
                )
                assert _close(all_states[:, 1:], word_states), (
                    f"{under_test.name} gives the words of {words!r} other vectors with `sentence_vector=True`."
                )

    def test_the_vector_of_the_sentence_depends_on_it(self, model_fixture: ModelFixture) -> None:
        """Different sentences have different vectors in the last layer."""
        for under_test in model_fixture.models_under_test(Capability.EXPOSES_HIDDEN_STATES):
            vectors = [
                states[-1, 0] for states in _states(under_test.model, _PROBE.requests, sentence_vector=True)
            ]
            alike = [
                words
                for words, vector in zip(_PROBE.requests[1:], vectors[1:], strict=True)
                if _close(vectors[0], vector)
            ]
            assert not alike, (
                f"{under_test.name} gives {alike[0]!r} the same vector as {_PROBE.requests[0]!r}."
            )

    def test_a_masked_word_has_a_vector_or_is_rejected(self, model_fixture: ModelFixture) -> None:
        """None has a vector that is not that of a word, or raises `CapabilityError`."""
        for under_test in model_fixture.models_under_test(Capability.EXPOSES_HIDDEN_STATES):
            try:
                (masked,) = _states(under_test.model, [("a", None, "b")])
            except CapabilityError:
                continue
            (plain,) = _states(under_test.model, [("a", "b", "b")])
            assert masked.shape == plain.shape, f"{under_test.name} loses the masked word."
            assert masked[:, 1].any() and not _close(masked[:, 1], plain[:, 1]), (
                f"{under_test.name} gives a masked word the vector of another."
            )

    def test_coverage_names_the_words_without_a_vector(self, model_fixture: ModelFixture) -> None:
        """The words that `word_coverage` calls empty are those with zeros."""
        sentences = [*_PROBE.requests, *_PROBE.unusual.values(), ()]
        for under_test in model_fixture.models_under_test(Capability.EXPOSES_HIDDEN_STATES):
            if not isinstance(under_test.model, CoversWords):
                pytest.skip(f"{under_test.name} does not say what its hidden states cover")
            covered = under_test.model.word_coverage(sentences)
            assert len(covered) == len(sentences), f"{under_test.name} loses the coverage of sentences."
            for words, cover, states in zip(
                sentences, covered, _states(under_test.model, sentences), strict=True
            ):
                zeros = tuple(np.flatnonzero(~states.any(axis=(0, 2))).tolist())
                assert cover.empty == zeros, (
                    f"{under_test.name} calls the words {cover.empty} of {words!r} empty, but {zeros} have no vector."
                )

    def test_an_untrained_twin_is_another_model(self, model_fixture: ModelFixture) -> None:
        """Its states depend on the seed alone, its identity names it, and the model itself stays as it was."""
        if Capability.EXPOSES_HIDDEN_STATES not in model_fixture.description.offers:
            pytest.skip(f"{model_fixture.name} does not offer {Capability.EXPOSES_HIDDEN_STATES.value}")
        model: Any = model_fixture.bare
        has_twin = isinstance(model, HasUntrained)
        if not has_twin:
            pytest.skip(f"{model_fixture.name} has no twin with random weights")
        before = _states(model, _PROBE.requests)
        identities = [dict(model.identity())]
        drawn = [before]
        for seed in _SEEDS:
            twin, again = model.untrained(seed), model.untrained(seed)
            drawn.append(_states(twin, _PROBE.requests))
            identities.append(dict(twin.identity()))
            assert _all_close(drawn[-1], _states(again, _PROBE.requests)), (
                "The same seed gives other weights."
            )
            twin.close()
            again.close()
        assert _all_close(before, _states(model, _PROBE.requests)), "The model changed with its twin."
        for first, second in ((0, 1), (0, 2), (1, 2)):
            assert identities[first] != identities[second], "Two models have the same identity."
            assert not _all_close(drawn[first], drawn[second]), "Two models have the same states."


def _states(model: Any, sentences: Sequence[Any], **options: Any) -> list[FloatArray]:
    streamed = dict(model.hidden_states(sentences, [0, model.layer_count() - 1], **options))
    assert sorted(streamed) == list(range(len(sentences))), "Some sentences have no states."
    return [streamed[number] for number in range(len(sentences))]


def _close(one: Any, other: Any) -> bool:
    return bool(np.allclose(one, other, rtol=_TOLERANCE, atol=_TOLERANCE))


def _all_close(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return all(_close(first, second) for first, second in zip(one, other, strict=True))
