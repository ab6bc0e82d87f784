"""How the contract asks each capability, and how it reads the answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from harness.data.records import MultipleChoiceExample, SpanExample, TaggedSentence
from harness.models.capabilities import Capability, Choice, Head, SpanAnswer, SpanQuestion, TextInput
from harness.models.requests import (
    Generated,
    GenerateOptions,
    LikelihoodAnswer,
    LikelihoodRequest,
    MaskRequest,
    TextAttention,
)
from harness.testing.examples import SENTENCES, UNUSUAL_TEXTS, training_examples

MAX_TOKENS = 8
_TOLERANCE = 1e-4
"""How far two answers to the same request may be apart, absolutely and relatively."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """The requests of one capability, and what its answers have to look like."""

    capability: Capability
    requests: tuple[Any, ...]
    """Ordinary requests whose answers differ."""
    unusual: Mapping[str, Any]
    """One request for each of `UNUSUAL_TEXTS`, and others, by what is unusual about them."""
    ask: Callable[[Any, Sequence[Any], Sequence[str]], Any]
    """Called as ``ask(model, requests, labels)``; returns what the model returned."""
    fault: Callable[[Any, Any, Sequence[str]], str | None]
    """Called as ``fault(answer, request, labels)``; says what is wrong with the form of one answer."""
    dtype: str | None = None
    """Type of the array that the capability returns; None where it returns a list."""


def agree(one: Any, other: Any, *, tolerance: float = _TOLERANCE) -> bool:
    """Return whether two answers to the same request are the same, up to rounding."""
    if isinstance(one, np.ndarray):
        return one.shape == np.shape(other) and _close(one, other, tolerance)
    if isinstance(one, SpanAnswer):
        same = (one.text, one.start, one.end) == (other.text, other.start, other.end)
        return same and _close(one.score, other.score, tolerance)
    if isinstance(one, LikelihoodAnswer):
        alike = one.byte_length == other.byte_length
        return alike and agree(one.token_logprobs, other.token_logprobs, tolerance=tolerance)
    if isinstance(one, TextAttention):
        bounds = [(segment.starts, segment.ends) for segment in one.segments]
        alike = bounds == [(segment.starts, segment.ends) for segment in other.segments]
        return (
            alike and one.truncated == other.truncated and _close(_weights(one), _weights(other), tolerance)
        )
    if isinstance(one, tuple) and all(isinstance(value, float) for value in one):
        return len(one) == len(other) and _close(one, other, tolerance)
    return bool(one == other)


def _close(one: Any, other: Any, tolerance: float) -> bool:
    # NaN equals NaN here: that it must not occur is a check of its own.
    return bool(np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True))


def _weights(answer: TextAttention) -> list[float]:
    return [score for segment in answer.segments for score in segment.scores]


def is_finite(answer: Any) -> bool:
    """Return whether all numbers of an answer are finite."""
    if isinstance(answer, TextAttention):
        return bool(np.isfinite(_weights(answer)).all())
    if isinstance(answer, SpanAnswer):
        return bool(np.isfinite(answer.score))
    if isinstance(answer, LikelihoodAnswer):
        return bool(np.isfinite(answer.token_logprobs).all())
    if isinstance(answer, np.ndarray | tuple):
        return bool(np.isfinite(np.asarray(answer, dtype=np.float64)).all())
    return True


# How each capability is asked -------------------------------------------------------------------------


def _hidden_states(model: Any, requests: Sequence[Any], labels: Sequence[str]) -> Any:
    layers = [0, model.layer_count() - 1]
    streamed = list(model.hidden_states(requests, layers))
    return [vectors for _, vectors in sorted(streamed, key=lambda pair: pair[0])]


# What is wrong with the form of an answer ---------------------------------------------------------------


def _row_fault(answer: Any, request: Any, labels: Sequence[str]) -> str | None:
    if answer.shape != (len(labels),):
        return f"has the shape {answer.shape}, expected ({len(labels)},), one score a label"
    return None


def _choice_fault(answer: Any, request: Choice, labels: Sequence[str]) -> str | None:
    if not isinstance(answer, tuple) or len(answer) != len(request.choices):
        return f"is {answer!r}, expected a tuple of {len(request.choices)} scores"
    if not all(isinstance(value, float) for value in answer):
        return f"is {answer!r}, expected Python floats"
    return None


def _tag_fault(answer: Any, request: Sequence[str], labels: Sequence[str]) -> str | None:
    if not isinstance(answer, list) or not all(isinstance(value, str) for value in answer):
        return f"is {answer!r}, expected a list of tags"
    if len(answer) != len(request):
        return f"has {len(answer)} tags for {len(request)} tokens"
    return None


def _span_fault(answer: Any, request: SpanQuestion, labels: Sequence[str]) -> str | None:
    if not isinstance(answer, SpanAnswer):
        return f"is a {type(answer).__name__}, expected a SpanAnswer"
    if answer.text == "":
        return (
            None
            if (answer.start, answer.end) == (-1, -1)
            else f"is empty, but at {answer.start}:{answer.end}"
        )
    excerpt = request.context[answer.start : answer.end] if answer.start >= 0 else ""
    if excerpt != answer.text:
        return f"is {answer.text!r} at {answer.start}:{answer.end}, where the context has {excerpt!r}"
    return None


def _vector_fault(answer: Any, request: Any, labels: Sequence[str]) -> str | None:
    if answer.ndim != 1 or not answer.size:
        return f"has the shape {answer.shape}, expected one vector"
    return None


def _states_fault(answer: Any, request: Sequence[str], labels: Sequence[str]) -> str | None:
    if not isinstance(answer, np.ndarray) or answer.dtype != np.float32:
        return "is not an array of float32"
    if answer.ndim != 3 or answer.shape[:2] != (2, len(request)):
        return f"has the shape {answer.shape}, expected (2, {len(request)}, dimension)"
    return None


def _attention_fault(answer: Any, request: TextInput, labels: Sequence[str]) -> str | None:
    if not isinstance(answer, TextAttention):
        return f"is a {type(answer).__name__}, expected a TextAttention"
    texts = [request.text] if request.text_pair is None else [request.text, request.text_pair]
    if len(answer.segments) != len(texts):
        return f"has {len(answer.segments)} segments for {len(texts)} texts"
    for segment, text in zip(answer.segments, texts, strict=True):
        if not len(segment.starts) == len(segment.ends) == len(segment.scores):
            return (
                f"has {len(segment.starts)} starts, {len(segment.ends)} ends and {len(segment.scores)} scores"
            )
        if any(
            not 0 <= start <= end <= len(text)
            for start, end in zip(segment.starts, segment.ends, strict=True)
        ):
            return f"has a piece outside of the {len(text)} characters of its text"
        if any(not -_TOLERANCE <= score <= 1 + _TOLERANCE for score in segment.scores):
            return "has a score outside of 0 to 1"
    return None


def _likelihood_fault(answer: Any, request: Any, labels: Sequence[str]) -> str | None:
    if not isinstance(answer, LikelihoodAnswer):
        return f"is a {type(answer).__name__}, expected a LikelihoodAnswer"
    if not answer.token_logprobs:
        return f"has no token for the continuation {request.continuation!r}"
    if max(answer.token_logprobs) > _TOLERANCE:
        return f"has the log-probability {max(answer.token_logprobs)}, which is above 0"
    return None


def _mask_fault(answer: Any, request: MaskRequest, labels: Sequence[str]) -> str | None:
    if isinstance(answer, LikelihoodAnswer) and not answer.token_logprobs:
        return None  # the vocabulary need not have the form
    return _likelihood_fault(answer, request, labels)


def _text_fault(answer: Any, request: Any, labels: Sequence[str]) -> str | None:
    if not isinstance(answer, Generated):
        return f"is a {type(answer).__name__}, expected a Generated"
    return (
        None if 0 <= answer.tokens <= MAX_TOKENS else f"has {answer.tokens} tokens, asked were {MAX_TOKENS}"
    )


def _count_fault(answer: Any, request: Any, labels: Sequence[str]) -> str | None:
    return None if type(answer) is int and answer >= 0 else f"is {answer!r}, expected a number of tokens"


# The requests -----------------------------------------------------------------------------------------


def _questions() -> tuple[SpanQuestion, ...]:
    examples = [item for item in training_examples(Head.SPAN_EXTRACTION) if isinstance(item, SpanExample)]
    return tuple(SpanQuestion(id=item.id, question=item.question, context=item.context) for item in examples)


def _unusual_questions() -> dict[str, SpanQuestion]:
    questions = {
        name: SpanQuestion(id=name, question="Who?", context=text) for name, text in UNUSUAL_TEXTS.items()
    }
    context = "Anna lives in Lagos."
    for name in ("empty", "emoji", "very long"):
        questions[f"{name} question"] = SpanQuestion(id=name, question=UNUSUAL_TEXTS[name], context=context)
    return questions


def _sentences() -> tuple[tuple[str, ...], ...]:
    examples = [item for item in training_examples(Head.TAGGING) if isinstance(item, TaggedSentence)]
    return tuple(item.tokens for item in examples)


def _unusual_sentences() -> dict[str, tuple[str, ...]]:
    sentences = {name: tuple(text.split()) for name, text in UNUSUAL_TEXTS.items()}
    return sentences | {"invisible token": ("a", "\u200b", "b"), "one long token": ("á" * 600, "b")}


def _choices() -> tuple[Choice, ...]:
    examples = training_examples(Head.MULTIPLE_CHOICE)
    items = [item for item in examples if isinstance(item, MultipleChoiceExample)]
    return tuple(Choice(context=item.context, choices=item.choices) for item in items)


_SHORT_TEXTS = {name: text for name, text in UNUSUAL_TEXTS.items() if name != "very long"}
"""Texts that may be a form: their pieces are masked together, so they have to fit into the model."""

_PROBES = (
    Probe(
        capability=Capability.CLASSIFIES,
        requests=tuple(
            TextInput(text=first, text_pair=second)
            for first, second in zip(SENTENCES, SENTENCES[::-1], strict=True)
        ),
        unusual={name: TextInput(text=text, text_pair=text) for name, text in UNUSUAL_TEXTS.items()},
        ask=lambda model, requests, labels: model.classify(requests, labels),
        fault=_row_fault,
        dtype="float32",
    ),
    Probe(
        capability=Capability.CHOOSES_BEST,
        requests=_choices(),
        unusual={name: Choice(context=text, choices=(text, "a")) for name, text in UNUSUAL_TEXTS.items()},
        ask=lambda model, requests, labels: model.choose(requests),
        fault=_choice_fault,
    ),
    Probe(
        capability=Capability.TAGS,
        requests=_sentences(),
        unusual=_unusual_sentences(),
        ask=lambda model, requests, labels: model.tag(requests),
        fault=_tag_fault,
    ),
    Probe(
        capability=Capability.EXTRACTS_SPANS,
        requests=_questions(),
        unusual=_unusual_questions(),
        ask=lambda model, requests, labels: model.extract_spans(requests),
        fault=_span_fault,
    ),
    Probe(
        capability=Capability.EMBEDS,
        requests=SENTENCES,
        unusual=UNUSUAL_TEXTS,
        ask=lambda model, requests, labels: model.embed(requests, side="query"),
        fault=_vector_fault,
        dtype="float32",
    ),
    Probe(
        capability=Capability.EXPOSES_HIDDEN_STATES,
        requests=_sentences(),
        unusual=_unusual_sentences(),
        ask=_hidden_states,
        fault=_states_fault,
    ),
    Probe(
        capability=Capability.EXPOSES_ATTENTIONS,
        requests=tuple(
            TextInput(text=first, text_pair=second)
            for first, second in zip(SENTENCES, SENTENCES[::-1], strict=True)
        ),
        unusual={
            **{name: TextInput(text=text, text_pair=text) for name, text in UNUSUAL_TEXTS.items()},
            "no pair": TextInput(text=SENTENCES[0]),
        },
        ask=lambda model, requests, labels: [
            attention for _, attention in sorted(model.attentions(requests), key=lambda pair: pair[0])
        ],
        fault=_attention_fault,
    ),
    Probe(
        capability=Capability.SCORES_CONTINUATIONS,
        requests=tuple(LikelihoodRequest(context=text, continuation=" yes") for text in SENTENCES),
        unusual={
            name: LikelihoodRequest(context=text, continuation=" yes") for name, text in UNUSUAL_TEXTS.items()
        },
        ask=lambda model, requests, labels: model.loglikelihood(requests),
        fault=_likelihood_fault,
    ),
    Probe(
        capability=Capability.FILLS_MASKS,
        requests=tuple(MaskRequest(before=f"{text} ", form="yes", after=" .") for text in SENTENCES),
        unusual={
            **{
                name: MaskRequest(before=text, form=" yes", after=f" {text}")
                for name, text in UNUSUAL_TEXTS.items()
            },
            **{f"{name} form": MaskRequest(before="so ", form=text) for name, text in _SHORT_TEXTS.items()},
        },
        ask=lambda model, requests, labels: model.fill_masks(requests),
        fault=_mask_fault,
    ),
    Probe(
        capability=Capability.GENERATES,
        requests=SENTENCES,
        unusual=UNUSUAL_TEXTS,
        ask=lambda model, requests, labels: model.generate(
            requests, [GenerateOptions(max_tokens=MAX_TOKENS)] * len(requests)
        ),
        fault=_text_fault,
    ),
    Probe(
        capability=Capability.COUNTS_TOKENS,
        requests=SENTENCES,
        unusual=UNUSUAL_TEXTS,
        ask=lambda model, requests, labels: model.token_counts(requests),
        fault=_count_fault,
    ),
)

PROBES: Mapping[Capability, Probe] = MappingProxyType({probe.capability: probe for probe in _PROBES})
"""How every capability but `Fits` is asked."""
