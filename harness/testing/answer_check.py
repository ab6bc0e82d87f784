"""Checks of answers: counts, order, form, numbers, Unicode, batches, writing, sub-words and streams.

Streamed answers are the same answers, each one once, and none after a stop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from harness.data.records import TaggedSentence
from harness.errors import AdapterError, CapabilityError
from harness.models.capabilities import (
    Capability,
    Constraint,
    EmbedOptions,
    ExposesAttentions,
    Head,
    SpanQuestion,
    TextInput,
)
from harness.models.options import AdapterOptions, SamplingOptions
from harness.models.requests import (
    Ability,
    Call,
    CountsSubwords,
    CutsTexts,
    Generated,
    GenerateOptions,
    Streams,
)
from harness.testing.contract_setting import ContractSetting, ModelFixture, ModelUnderTest, implemented
from harness.testing.examples import SENTENCES
from harness.testing.probe import MAX_TOKENS, PROBES, Probe, agree, is_finite

_every_capability = pytest.mark.parametrize(
    "probe", PROBES.values(), ids=lambda probe: probe.capability.value
)
_ABILITIES: Mapping[Capability, Ability] = MappingProxyType(
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
_ROUNDING = 1e-5
"""How far an answer may be from the one that the method gives, absolutely and relatively."""
_every_ability = pytest.mark.parametrize("capability", list(_ABILITIES), ids=lambda one: one.value)


class AnswerChecks(ContractSetting):
    """Checks of the model's answers, as it stands and fitted with each head."""

    @_every_capability
    def test_each_request_gets_one_answer(self, model_fixture: ModelFixture, probe: Probe) -> None:
        """There are as many answers as requests, also for a single request."""
        for under_test in model_fixture.models_under_test(probe.capability):
            for requests in (probe.requests, probe.requests[:1]):
                count, name = len(_ask(probe, under_test, requests)), probe.capability.value
                assert count == len(requests), (
                    f"{under_test.name} gives {count} answers to {len(requests)} {name} requests."
                )

    @_every_capability
    def test_no_request_gets_no_answer(self, model_fixture: ModelFixture, probe: Probe) -> None:
        """An empty list is answered with an empty list, or an array without rows."""
        for under_test in model_fixture.models_under_test(probe.capability):
            answers = _ask(probe, under_test, [])
            assert len(answers) == 0, f"{under_test.name} gives {len(answers)} answers to no request."

    @_every_capability
    def test_answers_have_the_right_form(self, model_fixture: ModelFixture, probe: Probe) -> None:
        """Types, shapes and offsets are those of the protocol."""
        for under_test in model_fixture.models_under_test(probe.capability):
            answers = _ask(probe, under_test, probe.requests)
            _check_container(probe, under_test, answers)
            for request, answer in zip(probe.requests, answers, strict=False):
                fault = probe.fault(answer, request, under_test.labels)
                assert fault is None, f"An answer of {under_test.name} to {request!r} {fault}."

    @_every_capability
    def test_answers_are_finite(self, model_fixture: ModelFixture, probe: Probe) -> None:
        """No score is NaN or infinite."""
        for under_test in model_fixture.models_under_test(probe.capability):
            for request, answer in zip(probe.requests, _ask(probe, under_test, probe.requests), strict=False):
                assert is_finite(answer), (
                    f"{under_test.name} answers {request!r} with a number that is not finite."
                )

    @_every_capability
    def test_order_is_kept(self, model_fixture: ModelFixture, probe: Probe) -> None:
        """Requests in reverse order get the answers in reverse order."""
        for under_test in model_fixture.models_under_test(probe.capability):
            answers = _ask(probe, under_test, probe.requests)
            backwards = list(_ask(probe, under_test, probe.requests[::-1]))[::-1]
            _check_same(under_test, probe.requests, answers, backwards, "in another order")

    @_every_capability
    def test_batch_size_changes_nothing(self, model_fixture: ModelFixture, probe: Probe) -> None:
        """A request asked alone gets the answer that it gets among others."""
        for under_test in model_fixture.models_under_test(probe.capability):
            answers = _ask(probe, under_test, probe.requests)
            alone = [answer for request in probe.requests for answer in _ask(probe, under_test, [request])]
            _check_same(under_test, probe.requests, answers, alone, "alone")

    @_every_capability
    def test_asking_again_changes_nothing(self, model_fixture: ModelFixture, probe: Probe) -> None:
        """The same requests get the same answers from the same model."""
        for under_test in model_fixture.models_under_test(probe.capability):
            answers = _ask(probe, under_test, probe.requests)
            again = _ask(probe, under_test, probe.requests)
            _check_same(under_test, probe.requests, answers, again, "again")

    @_every_capability
    def test_opening_again_changes_nothing(self, model_fixture: ModelFixture, probe: Probe) -> None:
        """The same requests get the same answers from the model opened a second time."""
        if probe.capability not in model_fixture.description.offers & implemented(model_fixture.bare):
            pytest.skip(f"{model_fixture.name} does not offer {probe.capability.value} as it stands")
        labels = model_fixture.description.labels
        first = ModelUnderTest(name=model_fixture.name, model=model_fixture.bare, labels=labels)
        second = ModelUnderTest(name=model_fixture.name, model=model_fixture.open(), labels=labels)
        answers, again = _ask(probe, first, probe.requests), _ask(probe, second, probe.requests)
        _check_same(first, probe.requests, answers, again, "after being opened again")

    @_every_capability
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
            answers = _collect_stream(model.stream(Call(ability="generate"), blocks), "The model")
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


class StreamChecks(ContractSetting):
    """Checks of the answers of `Streams.stream` against those of the methods."""

    @_every_ability
    def test_streamed_answers_are_those_of_the_method(
        self, model_fixture: ModelFixture, capability: Capability
    ) -> None:
        """Every request gets its answer once, however the requests are cut into blocks."""
        for under_test, probe, call in _streaming(model_fixture, capability):
            requests = [*probe.requests, *probe.unusual.values()]
            expected = probe.ask(under_test.model, requests, under_test.labels)
            for size in (len(requests) // 2 + 1, 3):
                answers = _collect_stream(
                    under_test.model.stream(call, _blocks(call, requests, size)), under_test.name
                )
                missing = set(range(len(requests))) - set(answers)
                assert not missing, (
                    f"{under_test.name} streams no answer to {len(missing)} of {len(requests)} requests in blocks "
                    f"of {size}."
                )
                for index, request in enumerate(requests):
                    assert agree(expected[index], answers[index], tolerance=_ROUNDING), (
                        f"{under_test.name} answers {request!r} differently when it is streamed in blocks of {size}."
                    )

    @_every_ability
    def test_nothing_asked_streams_nothing(self, model_fixture: ModelFixture, capability: Capability) -> None:
        """A call without blocks has no answers."""
        for under_test, _, call in _streaming(model_fixture, capability):
            answers = _collect_stream(under_test.model.stream(call, []), under_test.name)
            assert not answers, f"{under_test.name} streams {len(answers)} answers to no request."

    @_every_ability
    def test_stopping_ends_a_stream(self, model_fixture: ModelFixture, capability: Capability) -> None:
        """No batch begins once `stopping` says so, and what was answered before is right."""
        for under_test, probe, call in _streaming(model_fixture, capability):
            blocks = _blocks(call, probe.requests, 1)
            answers = _collect_stream(
                under_test.model.stream(replace(call, stopping=lambda: True), blocks), under_test.name
            )
            assert not answers, (
                f"{under_test.name} streams {len(answers)} answers although it was to stop at once."
            )
            stopping = chain([False, False], repeat(True)).__next__
            stream = under_test.model.stream(replace(call, stopping=stopping), blocks)
            expected = probe.ask(under_test.model, probe.requests, under_test.labels)
            for index, answer in _collect_stream(stream, under_test.name).items():
                assert agree(expected[index], answer, tolerance=_ROUNDING), (
                    f"{under_test.name} answers {probe.requests[index]!r} differently before it stops."
                )

    @_every_ability
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

    @_every_ability
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
        yield under_test, probe, Call(ability=_ABILITIES[capability], arguments=arguments)


def _blocks(call: Call, requests: Sequence[Any], size: int) -> list[Sequence[Any]]:
    """Return blocks of `size` requests in the form of a stream."""
    if call.ability == "generate":
        requests = [(prompt, GenerateOptions(max_tokens=MAX_TOKENS)) for prompt in requests]
    return [requests[start : start + size] for start in range(0, len(requests), size)]


def _collect_stream(stream: Iterator[Any], name: str) -> dict[int, Any]:
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
