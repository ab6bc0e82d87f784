"""Checks of the options of written texts: constraints, stop strings, temperature and seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from harness.errors import AdapterError, CapabilityError
from harness.models.capabilities import Capability, Constraint
from harness.models.options import AdapterOptions, SamplingOptions
from harness.models.requests import Call, Generated, GenerateOptions, Streams
from harness.testing.contract_setting import ContractSetting
from harness.testing.examples import SENTENCES
from harness.testing.model_fixture import ModelFixture
from harness.testing.probe import MAX_TOKENS
from harness.testing.stream_check import collect_stream

SCHEMA = {"type": "object", "properties": {"answer": {"enum": [42]}}, "required": ["answer"]}
CONSTRAINED: Mapping[Constraint, Sequence[tuple[GenerateOptions, tuple[str, ...]]]] = {
    "choices": [(GenerateOptions(choices=names), names) for names in (("Yes", "no"), ("ja", "NEIN"))],
    "regex": [(GenerateOptions(regex="4[23]"), ("42", "43"))],
    "json_schema": [
        (GenerateOptions(json_schema=SCHEMA | {"additionalProperties": False}), ('{"answer":42}',))
    ],
}
"""Options that each constraint is tried with, in one batch, and the texts that they allow."""
GREEDY = GenerateOptions(max_tokens=MAX_TOKENS)
SEEDS = range(4)

Request = tuple[str, GenerateOptions]
Write = Callable[[Sequence[Request], bool], list[Generated]]
"""Called with requests and whether their options are declared; returns nothing where undeclared ones are rejected."""


class WritingChecks(ContractSetting):
    """A text obeys the options of its own request, in a list and in a stream.

    `ModelDescription.constraints` declares constraints, an options class derived from `SamplingOptions` declares stop
    strings and sampling. An adapter may reject with `CapabilityError` what it does not declare, but not ignore it.
    """

    @pytest.mark.parametrize("constraint", list(CONSTRAINED))
    def test_text_keeps_to_its_constraint(self, model_fixture: ModelFixture, constraint: Constraint) -> None:
        """A text is, letter by letter, one that its constraint allows; of JSON without spaces, or cut, a beginning."""
        requests = [(prompt, *case) for prompt in SENTENCES for case in CONSTRAINED[constraint]]
        declared = constraint in (model_fixture.description.constraints or ())
        for name, write in _writers(model_fixture):
            answers = write([(prompt, options) for prompt, options, _ in requests], declared)
            for (_, _, allowed), answer in zip(requests, answers, strict=False):
                text = "".join(answer.text.split()) if constraint == "json_schema" else answer.text
                begins = not answer.finished and any(complete.startswith(text) for complete in allowed)
                assert text in allowed or begins, (
                    f"{name} writes {answer.text!r} where its {constraint} allow {', '.join(allowed)}; raise "
                    "CapabilityError where the model cannot keep to them."
                )

    def test_text_ends_before_its_stop_strings(
        self, model_fixture: ModelFixture, parsed_options: AdapterOptions
    ) -> None:
        """A text ends before the earliest stop string, also before one inside of its first token."""
        for name, write in _writers(model_fixture):
            plain = write([(prompt, GREEDY) for prompt in SENTENCES], True)
            texts = {prompt: answer.text for prompt, answer in zip(SENTENCES, plain, strict=True)}
            requests = [(key, replace(GREEDY, stop=stops)) for key in texts for stops in _stops(texts[key])]
            answers = write(requests, isinstance(parsed_options, SamplingOptions))
            for (prompt, options), answer in zip(requests, answers, strict=False):
                expected = texts[prompt][: min(texts[prompt].find(stop) for stop in options.stop)].strip()
                assert (answer.text.strip(), answer.finished) == (expected, True), (
                    f"{name} writes {answer.text!r} (finished: {answer.finished}) with the stop strings "
                    f"{options.stop}, and {texts[prompt]!r} without; expected {expected!r}, finished."
                )

    def test_text_varies_with_the_seed_where_it_is_sampled(
        self, model_fixture: ModelFixture, parsed_options: AdapterOptions
    ) -> None:
        """A text depends on the seed at a high temperature, not at 0, and never on anything else but its request."""
        declared = isinstance(parsed_options, SamplingOptions)
        for name, write in _writers(model_fixture):
            assert not _varies(name, write, 0.0, True), f"{name} depends on the seed at temperature 0."
            # Some models are certain at 1; 10 is the highest temperature of `SamplingOptions`.
            varies = any(_varies(name, write, temperature, declared) for temperature in (1.0, 10.0))
            assert varies or not declared, f"{name} ignores temperature or seed, which its options declare."


def _varies(name: str, write: Write, temperature: float, declared: bool) -> bool:
    """Return whether some seeds write other texts than others; fails where one seed does."""
    drawing = [replace(GREEDY, temperature=temperature, seed=seed) for seed in SEEDS]
    requests = [(prompt, options) for options in drawing for prompt in SENTENCES]
    texts = [answer.text for answer in write(requests, declared)]
    again = [answer.text for answer in write(requests[::-1], declared)][::-1]
    assert texts == again, f"{name} writes other texts with the same seeds at temperature {temperature:g}."
    return texts != texts[: len(SENTENCES)] * (len(texts) // len(SENTENCES))


def _writers(model_fixture: ModelFixture) -> Iterator[tuple[str, Write]]:
    """Yield the ways in which each model writes, with a name: its method, and its stream where it has one."""
    for under_test in model_fixture.models_under_test(Capability.GENERATES):
        yield under_test.name, partial(_write, under_test.model, streams=False)
        if isinstance(under_test.model, Streams):
            yield f"{under_test.name} in a stream", partial(_write, under_test.model, streams=True)


def _write(model: Any, requests: Sequence[Request], declared: bool, *, streams: bool) -> list[Generated]:
    try:
        if streams:
            blocks = [requests[first : first + 5] for first in range(0, len(requests), 5)]
            answers = collect_stream(model.stream(Call(ability="generate"), blocks), "The model")
            return [answers[number] for number in range(len(requests))]
        return list(model.generate(*zip(*requests, strict=True))) if requests else []
    except (AdapterError, CapabilityError):
        if declared:
            raise
        return []


def _stops(text: str) -> Iterator[tuple[str, ...]]:
    """Yield stop strings of a text from its start, from inside of its first token, and from its middle."""
    # A blank stop string does not end the space before an answer, and \ufffd may be a part of a later letter.
    pieces = [text[start : start + 2] for start in (0, 1, len(text) // 2)]
    pieces = [piece for piece in pieces if piece.strip() and "\ufffd" not in piece]
    yield from ((piece,) for piece in pieces)
    if len(text) > 3 and len(pieces) > 1:
        yield from ((pieces[0], pieces[-1]), (pieces[-1], pieces[0]))
