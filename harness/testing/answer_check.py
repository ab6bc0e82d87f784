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
from harness.testing.probe import PROBES, Probe, agree, is_finite
from harness.testing.workshop import Subject, Workshop

__all__ = ["AnswerChecks"]

every_capability = pytest.mark.parametrize("probe", PROBES.values(), ids=lambda probe: probe.capability.value)


class AnswerChecks(ContractSetting):
    """What the model answers, as it stands and fitted with each head."""

    @every_capability
    def test_each_request_gets_one_answer(self, workshop: Workshop, probe: Probe) -> None:
        """There are as many answers as requests, also for a single request."""
        for subject in _subjects(workshop, probe.capability):
            for requests in (probe.requests, probe.requests[:1]):
                count, name = len(_ask(probe, subject, requests)), probe.capability.value
                assert count == len(requests), (
                    f"{subject.name} gives {count} answers to {len(requests)} {name} requests."
                )

    @every_capability
    def test_no_request_gets_no_answer(self, workshop: Workshop, probe: Probe) -> None:
        """An empty list is answered with an empty list, or an array without rows."""
        for subject in _subjects(workshop, probe.capability):
            answers = _ask(probe, subject, [])
            assert len(answers) == 0, f"{subject.name} gives {len(answers)} answers to no request."

    @every_capability
    def test_answers_have_the_right_form(self, workshop: Workshop, probe: Probe) -> None:
        """Types, shapes and offsets are those of the protocol."""
        for subject in _subjects(workshop, probe.capability):
            answers = _ask(probe, subject, probe.requests)
            _check_container(probe, subject, answers)
            for request, answer in zip(probe.requests, answers, strict=False):
                fault = probe.fault(answer, request, subject.labels)
                assert fault is None, f"An answer of {subject.name} to {request!r} {fault}."

    @every_capability
    def test_answers_are_finite(self, workshop: Workshop, probe: Probe) -> None:
        """No score is NaN or infinite."""
        for subject in _subjects(workshop, probe.capability):
            for request, answer in zip(probe.requests, _ask(probe, subject, probe.requests), strict=False):
                assert is_finite(answer), (
                    f"{subject.name} answers {request!r} with a number that is not finite."
                )

    @every_capability
    def test_order_is_kept(self, workshop: Workshop, probe: Probe) -> None:
        """Requests in reverse order get the answers in reverse order."""
        for subject in _subjects(workshop, probe.capability):
            answers = _ask(probe, subject, probe.requests)
            backwards = list(_ask(probe, subject, probe.requests[::-1]))[::-1]
            _check_same(subject, probe.requests, answers, backwards, "in another order")

    @every_capability
    def test_batch_size_changes_nothing(self, workshop: Workshop, probe: Probe) -> None:
        """A request asked alone gets the answer that it gets among others."""
        for subject in _subjects(workshop, probe.capability):
            answers = _ask(probe, subject, probe.requests)
            alone = [answer for request in probe.requests for answer in _ask(probe, subject, [request])]
            _check_same(subject, probe.requests, answers, alone, "alone")

    @every_capability
    def test_asking_again_changes_nothing(self, workshop: Workshop, probe: Probe) -> None:
        """The same requests get the same answers from the same model."""
        for subject in _subjects(workshop, probe.capability):
            answers = _ask(probe, subject, probe.requests)
            again = _ask(probe, subject, probe.requests)
            _check_same(subject, probe.requests, answers, again, "again")

    @every_capability
    def test_opening_again_changes_nothing(self, workshop: Workshop, probe: Probe) -> None:
        """The same requests get the same answers from the model opened a second time."""
        if probe.capability not in workshop.description.offers & implemented(workshop.bare):
            pytest.skip(f"{workshop.name} does not offer {probe.capability.value} as it stands")
        labels = workshop.description.labels
        first = Subject(name=workshop.name, model=workshop.bare, labels=labels)
        second = Subject(name=workshop.name, model=workshop.open(), labels=labels)
        answers, again = _ask(probe, first, probe.requests), _ask(probe, second, probe.requests)
        _check_same(first, probe.requests, answers, again, "after being opened again")

    @every_capability
    def test_unusual_text_is_answered(self, workshop: Workshop, probe: Probe) -> None:
        """Empty, decomposed, right-to-left, invisible and very long texts get answers of the right form."""
        for subject in _subjects(workshop, probe.capability):
            answers = _ask(probe, subject, list(probe.unusual.values()))
            assert len(answers) == len(probe.unusual), f"{subject.name} loses answers to unusual texts."
            for (name, request), answer in zip(probe.unusual.items(), answers, strict=True):
                fault = probe.fault(answer, request, subject.labels)
                assert fault is None, f"The answer of {subject.name} to the request {name!r} {fault}."
                assert is_finite(answer), f"{subject.name} answers the request {name!r} with NaN or infinity."

    @pytest.mark.parametrize("side", ["query", "passage"])
    def test_vectors_have_length_one(self, workshop: Workshop, side: str) -> None:
        """The rows of `embed` are unit vectors on both sides, also for unusual texts."""
        probe = PROBES[Capability.EMBEDS]
        for subject in _subjects(workshop, Capability.EMBEDS):
            texts = [*probe.requests, *probe.unusual.values()]
            lengths = np.linalg.norm(np.asarray(subject.model.embed(texts, side=side), np.float64), axis=1)
            worst = int(np.abs(lengths - 1).argmax())
            assert abs(lengths[worst] - 1) < 1e-3, (
                f"{subject.name} embeds {texts[worst][:40]!r} as a {side} of length {lengths[worst]:.4f}."
            )

    def test_labels_may_come_in_any_order(self, workshop: Workshop) -> None:
        """The columns of `classify` follow the labels that were asked for."""
        probe = PROBES[Capability.CLASSIFIES]
        for subject in _subjects(workshop, Capability.CLASSIFIES):
            scores = subject.model.classify(probe.requests, subject.labels)
            swapped = subject.model.classify(probe.requests, subject.labels[::-1])
            assert agree(scores, swapped[:, ::-1]), (
                f"{subject.name} ignores the order of the labels asked for."
            )

    def test_tags_are_those_of_the_training_data(self, workshop: Workshop) -> None:
        """Every tag occurs in the training data, or among the labels of a model that came fitted."""
        probe = PROBES[Capability.TAGS]
        lesson = workshop.lesson(Head.TAGGING)
        for subject in _subjects(workshop, Capability.TAGS):
            known = set(workshop.description.labels)
            if lesson is not None and subject.model is not workshop.bare:
                sentences = [item for item in lesson.examples if isinstance(item, TaggedSentence)]
                known = {tag for sentence in sentences for tag in sentence.tags or ()}
            requests = [*probe.requests, *probe.unusual.values()]
            unknown = {tag for tags in subject.model.tag(requests) for tag in tags} - known
            assert not unknown, (
                f"{subject.name} gives the tags {sorted(unknown)}, which it cannot have learnt."
            )


def _subjects(workshop: Workshop, capability: Capability) -> list[Subject]:
    subjects = workshop.subjects(capability)
    if not subjects:
        pytest.skip(f"{workshop.name} does not offer {capability.value}")
    return subjects


def _ask(probe: Probe, subject: Subject, requests: Sequence[Any]) -> Any:
    return probe.ask(subject.model, requests, subject.labels)


def _check_container(probe: Probe, subject: Subject, answers: Any) -> None:
    if probe.dtype is None:
        assert isinstance(answers, list), (
            f"{subject.name} returns a {type(answers).__name__}, expected a list."
        )
        return
    assert isinstance(answers, np.ndarray), (
        f"{subject.name} returns a {type(answers).__name__}, expected an array."
    )
    assert answers.dtype == probe.dtype, (
        f"{subject.name} returns {answers.dtype} numbers, expected {probe.dtype}."
    )


def _check_same(subject: Subject, requests: Sequence[Any], one: Any, other: Any, when: str) -> None:
    assert len(one) == len(other), (
        f"{subject.name} gives {len(one)} answers, and {len(other)} when asked {when}."
    )
    for request, first, second in zip(requests, one, other, strict=False):
        assert agree(first, second), f"{subject.name} answers {request!r} differently when asked {when}."
