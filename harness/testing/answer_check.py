"""Checks of the answers of every capability: counts, order, form, numbers, Unicode, batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from harness.data.records import TaggedSentence
from harness.models.capabilities import Capability, Head
from harness.testing.contract_setting import ContractSetting
from harness.testing.declaration_check import implemented
from harness.testing.model_fixture import ModelFixture, ModelUnderTest
from harness.testing.probe import PROBES, Probe, agree, is_finite

every_capability = pytest.mark.parametrize("probe", PROBES.values(), ids=lambda probe: probe.capability.value)


class AnswerChecks(ContractSetting):
    """Checks of the model's answers, as it stands and fitted with each head."""

    @every_capability
    def test_each_request_gets_one_answer(self, model_fixture: ModelFixture, probe: Probe) -> None:
        """There are as many answers as requests, also for a single request."""
        for under_test in model_fixture.models_under_test(probe.capability):
            for requests in (probe.requests, probe.requests[:1]):
                count, name = len(_ask(probe, under_test, requests)), probe.capability.value
                assert count == len(requests), (
                    f"{under_test.name} gives {count} answers to {len(requests)} {name} requests."
                )

    @every_capability
    def test_no_request_gets_no_answer(self, model_fixture: ModelFixture, probe: Probe) -> None:
        """An empty list is answered with an empty list, or an array without rows."""
        for under_test in model_fixture.models_under_test(probe.capability):
            answers = _ask(probe, under_test, [])
            assert len(answers) == 0, f"{under_test.name} gives {len(answers)} answers to no request."

    @every_capability
    def test_answers_have_the_right_form(self, model_fixture: ModelFixture, probe: Probe) -> None:
        """Types, shapes and offsets are those of the protocol."""
        for under_test in model_fixture.models_under_test(probe.capability):
            answers = _ask(probe, under_test, probe.requests)
            _check_container(probe, under_test, answers)
            for request, answer in zip(probe.requests, answers, strict=False):
                fault = probe.fault(answer, request, under_test.labels)
                assert fault is None, f"An answer of {under_test.name} to {request!r} {fault}."

    @every_capability
    def test_answers_are_finite(self, model_fixture: ModelFixture, probe: Probe) -> None:
        """No score is NaN or infinite."""
        for under_test in model_fixture.models_under_test(probe.capability):
            for request, answer in zip(probe.requests, _ask(probe, under_test, probe.requests), strict=False):
                assert is_finite(answer), (
                    f"{under_test.name} answers {request!r} with a number that is not finite."
                )

    @every_capability
    def test_order_is_kept(self, model_fixture: ModelFixture, probe: Probe) -> None:
        """Requests in reverse order get the answers in reverse order."""
        for under_test in model_fixture.models_under_test(probe.capability):
            answers = _ask(probe, under_test, probe.requests)
            backwards = list(_ask(probe, under_test, probe.requests[::-1]))[::-1]
            _check_same(under_test, probe.requests, answers, backwards, "in another order")

    @every_capability
    def test_batch_size_changes_nothing(self, model_fixture: ModelFixture, probe: Probe) -> None:
        """A request asked alone gets the answer that it gets among others."""
        for under_test in model_fixture.models_under_test(probe.capability):
            answers = _ask(probe, under_test, probe.requests)
            alone = [answer for request in probe.requests for answer in _ask(probe, under_test, [request])]
            _check_same(under_test, probe.requests, answers, alone, "alone")

    @every_capability
    def test_asking_again_changes_nothing(self, model_fixture: ModelFixture, probe: Probe) -> None:
        """The same requests get the same answers from the same model."""
        for under_test in model_fixture.models_under_test(probe.capability):
            answers = _ask(probe, under_test, probe.requests)
            again = _ask(probe, under_test, probe.requests)
            _check_same(under_test, probe.requests, answers, again, "again")

    @every_capability
    def test_opening_again_changes_nothing(self, model_fixture: ModelFixture, probe: Probe) -> None:
        """The same requests get the same answers from the model opened a second time."""
        if probe.capability not in model_fixture.description.offers & implemented(model_fixture.bare):
            pytest.skip(f"{model_fixture.name} does not offer {probe.capability.value} as it stands")
        labels = model_fixture.description.labels
        first = ModelUnderTest(name=model_fixture.name, model=model_fixture.bare, labels=labels)
        second = ModelUnderTest(name=model_fixture.name, model=model_fixture.open(), labels=labels)
        answers, again = _ask(probe, first, probe.requests), _ask(probe, second, probe.requests)
        _check_same(first, probe.requests, answers, again, "after being opened again")

    @every_capability
    def test_unusual_text_is_answered(self, model_fixture: ModelFixture, probe: Probe) -> None:
        """Empty, decomposed, right-to-left, invisible and very long texts get answers of the right form."""
        for under_test in model_fixture.models_under_test(probe.capability):
            answers = _ask(probe, under_test, list(probe.unusual.values()))
            assert len(answers) == len(probe.unusual), f"{under_test.name} loses answers to unusual texts."
            for (name, request), answer in zip(probe.unusual.items(), answers, strict=True):
                fault = probe.fault(answer, request, under_test.labels)
                assert fault is None, f"The answer of {under_test.name} to the request {name!r} {fault}."
                assert is_finite(answer), (
                    f"{under_test.name} answers the request {name!r} with NaN or infinity."
                )

    @pytest.mark.parametrize("side", ["query", "passage"])
    def test_vectors_have_length_one(self, model_fixture: ModelFixture, side: str) -> None:
        """The rows of `embed` are unit vectors on both sides, also for unusual texts."""
        probe = PROBES[Capability.EMBEDS]
        for under_test in model_fixture.models_under_test(Capability.EMBEDS):
            texts = [*probe.requests, *probe.unusual.values()]
            lengths = np.linalg.norm(np.asarray(under_test.model.embed(texts, side=side), np.float64), axis=1)
            worst = int(np.abs(lengths - 1).argmax())
            assert abs(lengths[worst] - 1) < 1e-3, (
                f"{under_test.name} embeds {texts[worst][:40]!r} as a {side} of length {lengths[worst]:.4f}."
            )

    def test_labels_may_come_in_any_order(self, model_fixture: ModelFixture) -> None:
        """The columns of `classify` follow the labels that were asked for."""
        probe = PROBES[Capability.CLASSIFIES]
        for under_test in model_fixture.models_under_test(Capability.CLASSIFIES):
            scores = under_test.model.classify(probe.requests, under_test.labels)
            swapped = under_test.model.classify(probe.requests, under_test.labels[::-1])
            assert agree(scores, swapped[:, ::-1]), (
                f"{under_test.name} ignores the order of the labels asked for."
            )

    def test_tags_are_those_of_the_training_data(self, model_fixture: ModelFixture) -> None:
        """Every tag occurs in the training data, or among the labels of a model that came fitted."""
        probe = PROBES[Capability.TAGS]
        training_set = model_fixture.training_set(Head.TAGGING)
        for under_test in model_fixture.models_under_test(Capability.TAGS):
            allowed = set(model_fixture.description.labels)
            if training_set is not None and under_test.model is not model_fixture.bare:
                sentences = [item for item in training_set.examples if isinstance(item, TaggedSentence)]
                allowed = {tag for sentence in sentences for tag in sentence.tags or ()}
            requests = [*probe.requests, *probe.unusual.values()]
            unknown = {tag for tags in under_test.model.tag(requests) for tag in tags} - allowed
            assert not unknown, (
                f"{under_test.name} gives the tags {sorted(unknown)}, which it cannot have learnt."
            )


def _ask(probe: Probe, under_test: ModelUnderTest, requests: Sequence[Any]) -> Any:
    return probe.ask(under_test.model, requests, under_test.labels)


def _check_container(probe: Probe, under_test: ModelUnderTest, answers: Any) -> None:
    if probe.dtype is None:
        assert isinstance(answers, list), (
            f"{under_test.name} returns a {type(answers).__name__}, expected a list."
        )
        return
    assert isinstance(answers, np.ndarray), (
        f"{under_test.name} returns a {type(answers).__name__}, expected an array."
    )
    assert answers.dtype == probe.dtype, (
        f"{under_test.name} returns {answers.dtype} numbers, expected {probe.dtype}."
    )


def _check_same(under_test: ModelUnderTest, requests: Sequence[Any], one: Any, other: Any, when: str) -> None:
    assert len(one) == len(other), (
        f"{under_test.name} gives {len(one)} answers, and {len(other)} when asked {when}."
    )
    for request, first, second in zip(requests, one, other, strict=False):
        assert agree(first, second), f"{under_test.name} answers {request!r} differently when asked {when}."
