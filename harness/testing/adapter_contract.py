"""The contract of a model adapter as a test class to inherit: checks of its declaration, fits, states and answers.

An adapter's author gives the fixtures `entry` and `ref`, and overrides the others where needed; fixtures are
of class scope or wider::

    from harness.testing.adapter_contract import AdapterContract

    class TestMyAdapter(AdapterContract):
        @pytest.fixture(scope="class")
        @classmethod
        def entry(cls) -> AdapterEntry:
            return MY_ENTRY

        @pytest.fixture(scope="class")
        @classmethod
        def ref(cls) -> str:
            return "tiny-model"

Checks of a capability or a head that the model does not declare are skipped, with the reason. The model is
trained about three times a head on a dozen examples; `training_settings` says how long.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import CapabilityError, TrainingError
from harness.models.adapters import AdapterEntry
from harness.models.capabilities import (
    HEAD_CAPABILITY,
    Adapter,
    Capability,
    FitOptions,
    Fits,
    Head,
    ModelDescription,
    capability_protocols,
)
from harness.models.requests import CoversWords, FloatArray, HasUntrained
from harness.testing.answer_check import AnswerChecks, StreamChecks, SubwordChecks, WritingChecks
from harness.testing.contract_setting import ContractSetting, ModelFixture, TrainingSet, implemented
from harness.testing.probe import PROBES, agree

_HEAVY = ("datasets", "pandas", "tensorflow", "torch", "transformers", "vllm")

_every_head = pytest.mark.parametrize("head", list(Head), ids=lambda head: head.value)

_DESCRIBE = """
import json, sys
from harness.models.adapters import AdapterEntry
from harness.models.options import parse_options
entry, ref, options, heavy = json.loads(sys.argv[1])
before = set(sys.modules)
entry = AdapterEntry(**entry)
entry.describe_model(ref, parse_options(entry, options))
print(json.dumps([name for name in heavy if name in set(sys.modules) - before]))
"""
_PICKLES = frozenset({".bin", ".ckpt", ".joblib", ".pickle", ".pkl", ".pt", ".pth"})
_STATE_TOLERANCE = 1e-4
_STATES_PROBE = PROBES[Capability.EXPOSES_HIDDEN_STATES]
_STATE_SEEDS = (3, 4)


class DeclarationChecks(ContractSetting):
    """Comparison of the description by `describe` with the opened model."""

    def test_description_is_of_this_adapter_and_model(
        self, entry: AdapterEntry, ref: str, description: ModelDescription
    ) -> None:
        """The description carries the adapter's name, and the ref as it was given."""
        identity = (description.adapter, description.ref)
        assert identity == (entry.name, ref), f"{entry.name}:{ref} describes itself as {identity!r}."

    def test_describing_imports_no_model_library(
        self, entry: AdapterEntry, ref: str, options: Mapping[str, str]
    ) -> None:
        """Describing a model imports none of the heavy libraries, so that planning is fast."""
        fields = {name: getattr(entry, name) for name in ("name", "target", "describe", "options", "summary")}
        answer = subprocess.run(
            [sys.executable, "-c", _DESCRIBE, json.dumps([fields, ref, dict(options), _HEAVY])],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        assert answer.returncode == 0, f"{entry.name}:{ref} cannot be described alone:\n{answer.stderr}"
        imported = json.loads(answer.stdout.splitlines()[-1])
        assert not imported, f"Describing {entry.name}:{ref} imports {', '.join(imported)}."

    def test_model_does_what_it_declares(self, model_fixture: ModelFixture) -> None:
        """The opened model has the method of every capability that the description offers."""
        missing = _checkable(model_fixture.description.offers) - implemented(model_fixture.bare)
        assert not missing, f"{model_fixture.name} declares {_names(missing)}, but has no such method."

    def test_model_declares_what_it_does(self, model_fixture: ModelFixture) -> None:
        """The opened model has no capability that the description hides from the planner."""
        extra = implemented(model_fixture.bare) - model_fixture.description.offers
        assert not extra, f"{model_fixture.name} does not declare {_names(extra)}, but has the method."

    def test_heads_declare_their_capability(self, model_fixture: ModelFixture) -> None:
        """A model that can be fitted offers `Fits`, and after each head what that head is for."""
        description = model_fixture.description
        if description.after_fit:
            assert Capability.FITS in description.offers, (
                f"{model_fixture.name} has heads, but offers no Fits."
            )
        for head, offers in description.after_fit.items():
            required = HEAD_CAPABILITY[head]
            assert required in offers, (
                f"{model_fixture.name} fitted with {head.value} does not offer {required.value}."
            )

    @_every_head
    def test_fitted_model_is_what_was_declared(self, model_fixture: ModelFixture, head: Head) -> None:
        """The model fitted with a head has exactly the declared capabilities."""
        if model_fixture.training_set(head) is None:
            pytest.skip(f"{model_fixture.name} is not fitted with {head.value}")
        offers = implemented(model_fixture.fitted(head)[0])
        declared = _checkable(model_fixture.description.after_fit[head])
        assert offers == declared, (
            f"{model_fixture.name} fitted with {head.value} has {_names(offers)}, but declares {_names(declared)}."
        )

    def test_identity_is_stable_text(self, model_fixture: ModelFixture) -> None:
        """The identity is a non-empty mapping of texts to texts, the same whenever the model is opened."""
        identity = model_fixture.bare.identity()
        assert identity, f"{model_fixture.name} has an empty identity."
        for key, value in identity.items():
            assert isinstance(key, str), (
                f"The identity of {model_fixture.name} has the key {key!r}, not a text."
            )
            assert isinstance(value, str), (
                f"The identity of {model_fixture.name} has {key!r}: {value!r}, not a text."
            )
        again, opened = model_fixture.bare.identity(), model_fixture.open().identity()
        assert dict(again) == dict(identity), f"{model_fixture.name} changes its identity from call to call."
        assert dict(opened) == dict(identity), (
            f"{model_fixture.name} changes its identity when it is opened again."
        )

    def test_closing_twice_is_fine(self, model_fixture: ModelFixture) -> None:
        """A second `close` does nothing."""
        model = model_fixture.open()
        model.close()
        try:
            model.close()
        except Exception as error:
            pytest.fail(f"{model_fixture.name} cannot be closed twice: {error!r}")


def _checkable(capabilities: frozenset[Capability]) -> frozenset[Capability]:
    return capabilities & frozenset(capability_protocols())


def _names(capabilities: frozenset[Capability]) -> str:
    return ", ".join(sorted(capability.value for capability in capabilities)) or "nothing"


class FitChecks(ContractSetting):
    """Checks of the results of `fit` and `load_fit`."""

    @_every_head
    def test_fitting_twice_gives_the_same(self, model_fixture: ModelFixture, head: Head) -> None:
        """Two fits on the same examples with the same seed give the same answers."""
        training_set = _training_set(model_fixture, head)
        first, second = model_fixture.fitted(head)[0], model_fixture.fit(head)[0]
        _check_alike(model_fixture.name, training_set, first, second, "is fitted twice with one seed")

    @_every_head
    def test_saved_fit_answers_alike(self, model_fixture: ModelFixture, head: Head) -> None:
        """A newly opened model reads the fit back, gives the same answers and has the same identity."""
        training_set = _training_set(model_fixture, head)
        fitted, loaded = model_fixture.fitted(head)[0], model_fixture.load(head)
        _check_alike(model_fixture.name, training_set, fitted, loaded, "is saved and read back")
        assert dict(loaded.identity()) == dict(fitted.identity()), (
            f"{model_fixture.name} fitted with {head.value} has another identity when it is read back."
        )

    @_every_head
    def test_saved_fit_holds_no_pickle(self, model_fixture: ModelFixture, head: Head) -> None:
        """The folder of the fit holds files, and none of a format that runs code when it is read."""
        _training_set(model_fixture, head)
        files = [path for path in model_fixture.fitted(head)[1].rglob("*") if path.is_file()]
        assert files, f"{model_fixture.name} fitted with {head.value} saves nothing."
        pickles = sorted(path.name for path in files if path.suffix in _PICKLES)
        assert not pickles, f"{model_fixture.name} fitted with {head.value} saves {', '.join(pickles)}."

    @_every_head
    def test_fitting_changes_the_identity(self, model_fixture: ModelFixture, head: Head) -> None:
        """A fitted model is not taken for the one that it came from."""
        _training_set(model_fixture, head)
        fitted = model_fixture.fitted(head)[0].identity()
        assert dict(fitted) != dict(model_fixture.bare.identity()), (
            f"{model_fixture.name} keeps its identity when it is fitted with {head.value}."
        )

    @_every_head
    def test_fitting_leaves_the_model_alone(self, model_fixture: ModelFixture, head: Head) -> None:
        """The model that `fit` was called on still answers as before."""
        _training_set(model_fixture, head)
        declared = sorted(model_fixture.description.offers & implemented(model_fixture.bare))
        offers = [PROBES[capability] for capability in declared if capability in PROBES]
        if not offers:
            pytest.skip(f"{model_fixture.name} answers nothing as it stands")
        model, labels = model_fixture.open(), model_fixture.description.labels
        before = [probe.ask(model, probe.requests, labels) for probe in offers]
        model_fixture.fit(head, model)
        for probe, answers in zip(offers, before, strict=True):
            again = probe.ask(model, probe.requests, labels)
            assert all(agree(earlier, later) for earlier, later in zip(answers, again, strict=True)), (
                f"{model_fixture.name} changes its {probe.capability.value} answers when {head.value} is fitted."
            )

    @_every_head
    def test_fitting_on_nothing_is_rejected(
        self, model_fixture: ModelFixture, head: Head, tmp_path: Path
    ) -> None:
        """Without a training example, `fit` raises `TrainingError`."""
        training_set = _training_set(model_fixture, head)
        model = model_fixture.open()
        assert isinstance(model, Fits)
        options = FitOptions(directory=tmp_path, settings=training_set.settings, seed=0)
        try:
            model.fit([], [], training_set.spec, options)
        except TrainingError:
            return
        except Exception as error:
            pytest.fail(f"{model_fixture.name} fitted with {head.value} on nothing raises {error!r}.")
        pytest.fail(f"{model_fixture.name} lets itself be fitted with {head.value} on no example.")


def _training_set(model_fixture: ModelFixture, head: Head) -> TrainingSet:
    training_set = model_fixture.training_set(head)
    if training_set is None:
        pytest.skip(f"{model_fixture.name} is not fitted with {head.value}")
    return training_set


def _check_alike(name: str, training_set: TrainingSet, one: Adapter, other: Adapter, when: str) -> None:
    probe = PROBES[HEAD_CAPABILITY[training_set.spec.head]]
    labels = training_set.spec.labels
    asks = [probe.ask]
    if training_set.spec.head is Head.DUAL_ENCODER:
        asks.append(_embed_passages)
    for ask in asks:
        first: Any = ask(one, probe.requests, labels)
        second: Any = ask(other, probe.requests, labels)
        for request, before, after in zip(probe.requests, first, second, strict=True):
            assert agree(before, after), (
                f"{name} fitted with {training_set.spec.head.value} answers {request!r} differently when it {when}."
            )


def _embed_passages(model: Any, requests: Sequence[Any], labels: Sequence[str]) -> Any:
    return model.embed(requests, side="passage")


class StateChecks(ContractSetting):
    """Checks of the hidden states that a model exposes for sentences."""

    def test_the_vector_of_the_sentence_stands_first(self, model_fixture: ModelFixture) -> None:
        """With `sentence_vector` there is one vector more, and those of the words stay as they are."""
        sentences = [*_STATES_PROBE.requests, *_STATES_PROBE.unusual.values(), ()]
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
                states[-1, 0]
                for states in _states(under_test.model, _STATES_PROBE.requests, sentence_vector=True)
            ]
            alike = [
                words
                for words, vector in zip(_STATES_PROBE.requests[1:], vectors[1:], strict=True)
                if _close(vectors[0], vector)
            ]
            assert not alike, (
                f"{under_test.name} gives {alike[0]!r} the same vector as {_STATES_PROBE.requests[0]!r}."
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
        sentences = [*_STATES_PROBE.requests, *_STATES_PROBE.unusual.values(), ()]
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
        before = _states(model, _STATES_PROBE.requests)
        identities = [dict(model.identity())]
        drawn = [before]
        for seed in _STATE_SEEDS:
            twin, again = model.untrained(seed), model.untrained(seed)
            drawn.append(_states(twin, _STATES_PROBE.requests))
            identities.append(dict(twin.identity()))
            assert _all_close(drawn[-1], _states(again, _STATES_PROBE.requests)), (
                "The same seed gives other weights."
            )
            twin.close()
            again.close()
        assert _all_close(before, _states(model, _STATES_PROBE.requests)), "The model changed with its twin."
        for first, second in ((0, 1), (0, 2), (1, 2)):
            assert identities[first] != identities[second], "Two models have the same identity."
            assert not _all_close(drawn[first], drawn[second]), "Two models have the same states."


def _states(model: Any, sentences: Sequence[Any], **options: Any) -> list[FloatArray]:
    streamed = dict(model.hidden_states(sentences, [0, model.layer_count() - 1], **options))
    assert sorted(streamed) == list(range(len(sentences))), "Some sentences have no states."
    return [streamed[number] for number in range(len(sentences))]


def _close(one: Any, other: Any) -> bool:
    return bool(np.allclose(one, other, rtol=_STATE_TOLERANCE, atol=_STATE_TOLERANCE))


def _all_close(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return all(_close(first, second) for first, second in zip(one, other, strict=True))


class AdapterContract(
    DeclarationChecks, AnswerChecks, WritingChecks, StateChecks, StreamChecks, SubwordChecks, FitChecks
):
    """Checks that an adapter declares what it does and does what it declares."""
