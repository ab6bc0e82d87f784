"""Checks of adapters that stream answers: the same answers, each one once, and none after a stop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, repeat
from types import MappingProxyType
from typing import Any

import pytest

from harness.models.capabilities import Capability
from harness.models.requests import Ability, Call, GenerateOptions, Streams
from harness.testing.contract_setting import ContractSetting, ModelFixture, ModelUnderTest
from harness.testing.probe import MAX_TOKENS, PROBES, Probe, agree

ABILITIES: Mapping[Capability, Ability] = MappingProxyType(
    {
        Capability.CLASSIFIES: "classify",
        Capability.CHOOSES_BEST: "choose",
        Capability.TAGS: "tag",
        Capability.EXTRACTS_SPANS: "extract_spans",
        Capability.EMBEDS: "embed",
        Capability.SCORES_CONTINUATIONS: "loglikelihood",
        Capability.FILLS_MASKS: "fill_masks",
        Capability.GENERATES: "generate",
    }
)
ROUNDING = 1e-5
"""How far an answer may be from the one that the method gives, absolutely and relatively."""

every_ability = pytest.mark.parametrize("capability", list(ABILITIES), ids=lambda one: one.value)


class StreamChecks(ContractSetting):
    """Checks of the answers of `Streams.stream` against those of the methods."""

    @every_ability
    def test_streamed_answers_are_those_of_the_method(
        self, model_fixture: ModelFixture, capability: Capability
    ) -> None:
        """Every request gets its answer once, however the requests are cut into blocks."""
        for under_test, probe, call in _streaming(model_fixture, capability):
            requests = [*probe.requests, *probe.unusual.values()]
            expected = probe.ask(under_test.model, requests, under_test.labels)
            for size in (len(requests) // 2 + 1, 3):
                answers = collect_stream(
                    under_test.model.stream(call, _blocks(call, requests, size)), under_test.name
                )
                missing = set(range(len(requests))) - set(answers)
                assert not missing, (
                    f"{under_test.name} streams no answer to {len(missing)} of {len(requests)} requests in blocks "
                    f"of {size}."
                )
                for index, request in enumerate(requests):
                    assert agree(expected[index], answers[index], tolerance=ROUNDING), (
                        f"{under_test.name} answers {request!r} differently when it is streamed in blocks of {size}."
                    )

    @every_ability
    def test_nothing_asked_streams_nothing(self, model_fixture: ModelFixture, capability: Capability) -> None:
        """A call without blocks has no answers."""
        for under_test, _, call in _streaming(model_fixture, capability):
            answers = collect_stream(under_test.model.stream(call, []), under_test.name)
            assert not answers, f"{under_test.name} streams {len(answers)} answers to no request."

    @every_ability
    def test_stopping_ends_a_stream(self, model_fixture: ModelFixture, capability: Capability) -> None:
        """No batch begins once `stopping` says so, and what was answered before is right."""
        for under_test, probe, call in _streaming(model_fixture, capability):
            blocks = _blocks(call, probe.requests, 1)
            answers = collect_stream(
                under_test.model.stream(replace(call, stopping=lambda: True), blocks), under_test.name
            )
            assert not answers, (
                f"{under_test.name} streams {len(answers)} answers although it was to stop at once."
            )
            stopping = chain([False, False], repeat(True)).__next__
            stream = under_test.model.stream(replace(call, stopping=stopping), blocks)
            expected = probe.ask(under_test.model, probe.requests, under_test.labels)
            for index, answer in collect_stream(stream, under_test.name).items():
                assert agree(expected[index], answer, tolerance=ROUNDING), (
                    f"{under_test.name} answers {probe.requests[index]!r} differently before it stops."
                )

    @every_ability
    def test_a_stream_may_be_closed(self, model_fixture: ModelFixture, capability: Capability) -> None:
        """After a stream is closed before its end, the model answers as before."""
        for under_test, probe, call in _streaming(model_fixture, capability):
            expected = probe.ask(under_test.model, probe.requests, under_test.labels)
            stream = under_test.model.stream(call, _blocks(call, probe.requests, 1))
            next(stream)
            stream.close()
            again = probe.ask(under_test.model, probe.requests, under_test.labels)
            for request, before, after in zip(probe.requests, expected, again, strict=True):
                assert agree(before, after), (
                    f"{under_test.name} answers {request!r} differently after a stream was closed."
                )

    @every_ability
    def test_blocks_have_one_size(self, model_fixture: ModelFixture, capability: Capability) -> None:
        """`block_characters` is a positive number, or None, and the same before and after answers."""
        for under_test, probe, call in _streaming(model_fixture, capability):
            before = under_test.model.block_characters(call.ability)
            probe.ask(under_test.model, probe.requests, under_test.labels)
            after = under_test.model.block_characters(call.ability)
            assert before is None or (type(before) is int and before > 0), (
                f"The blocks of {under_test.name} have {before!r} characters; expected a positive number or None."
            )
            assert after == before, (
                f"{under_test.name} changes the size of its blocks from {before} to {after}."
            )


def _streaming(
    model_fixture: ModelFixture, capability: Capability
) -> Iterator[tuple[ModelUnderTest, Probe, Call]]:
    """Return the models that have the capability and stream; skip the check where there is none."""
    probe = PROBES[capability]
    models_under_test = [
        candidate
        for candidate in model_fixture.models_under_test(capability)
        if isinstance(candidate.model, Streams)
    ]
    if not models_under_test:
        pytest.skip(f"{model_fixture.name} does not stream {capability.value}")
    for under_test in models_under_test:
        arguments: dict[str, Any] = {}
        if capability is Capability.CLASSIFIES:
            arguments = {"labels": under_test.labels}
        elif capability is Capability.EMBEDS:
            arguments = {"side": "query", "options": None}
        yield under_test, probe, Call(ability=ABILITIES[capability], arguments=arguments)


def _blocks(call: Call, requests: Sequence[Any], size: int) -> list[Sequence[Any]]:
    """Return blocks of `size` requests in the form of a stream."""
    if call.ability == "generate":
        requests = [(prompt, GenerateOptions(max_tokens=MAX_TOKENS)) for prompt in requests]
    return [requests[start : start + size] for start in range(0, len(requests), size)]


def collect_stream(stream: Iterator[Any], name: str) -> dict[int, Any]:
    """Return the answers of a stream by the numbers of their requests; fails where an answer comes twice."""
    answers: dict[int, Any] = {}
    for answered in stream:
        assert len(answered.indices) == len(answered.answers), (
            f"{name} streams {len(answered.answers)} answers for {len(answered.indices)} requests."
        )
        for index, answer in zip(answered.indices, answered.answers, strict=True):
            assert index not in answers, f"{name} streams the answer {index} twice."
            answers[index] = answer
    return answers
