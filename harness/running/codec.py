"""Requests and answers as bytes: what names a request by its content, and how its answer is written down.

Every ability has a `Form`. Numbers survive exactly: floats of arrays as their float32 bytes, others as the shortest
decimal that gives the same float again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from harness.models.capabilities import Choice, EmbedOptions, SpanAnswer, SpanQuestion, TextInput
from harness.models.requests import (
    Ability,
    Generated,
    GenerateOptions,
    LikelihoodAnswer,
    LikelihoodRequest,
    MaskRequest,
    Prompt,
    Turn,
)
from harness.storage.redaction import clean_text

KEY_BYTES = 16
SOURCE_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How the requests and answers of one ability are written."""

    content: Callable[[Any], Any]
    """Request -> plain JSON values, all that the answer may depend on."""
    length: Callable[[Any], int]
    """Request -> characters of its text."""
    encode: Callable[[Any], bytes]
    """Answer -> bytes."""
    decode: Callable[[bytes], Any]
    group: Callable[[Any], Hashable] | None = None
    """Request -> what requests that are asked together share."""
    clean: Callable[[Any], Any] = lambda answer: answer
    """Answer -> the same without secrets and lone surrogates in what the model wrote."""
    is_row: bool = False
    """Whether an answer is a row of numbers, which all together make an array."""
    is_sound: Callable[[Any], bool] = lambda _: True
    """Whether an answer may be kept: one that is not finite is given on, so that the cell fails, and forgotten."""


def request_keys(
    source: bytes, ability: Ability, arguments: Mapping[str, Any], requests: Sequence[Any]
) -> list[bytes]:
    """Return a 16-byte digest of every request: of the model, of what is asked, and of the rendered request."""
    common = blake2b(digest_size=KEY_BYTES)
    common.update(source)
    common.update(json.dumps([ability, argument_content(arguments)], ensure_ascii=True).encode())
    content = FORMS[ability].content
    dump = _ENCODER.encode
    keys = []
    for request in requests:
        key = common.copy()
        key.update(dump(content(request)).encode("utf-8", "surrogatepass"))
        keys.append(key.digest())
    return keys


def source_digest(identity: Mapping[str, str]) -> bytes:
    """Return an 8-byte digest of what makes a model's answers what they are."""
    text = json.dumps(dict(sorted(identity.items())), ensure_ascii=False)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=SOURCE_BYTES).digest()


def argument_content(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call as plain JSON values."""
    return {name: _plain(value) for name, value in sorted(arguments.items())}


_DENSE, _SPARSE = b"d", b"s"
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, EmbedOptions):
        return [value.pooling, value.layer, value.max_length, value.prefixes]
    return list(value) if isinstance(value, tuple) else value


def _prompt(prompt: Prompt) -> Any:
    return prompt if isinstance(prompt, str) else [[turn.role, turn.text] for turn in prompt]


def _prompt_length(prompt: Prompt) -> int:
    return len(prompt) if isinstance(prompt, str) else sum(len(turn.text) for turn in prompt)


def _generation(request: tuple[str | tuple[Turn, ...], GenerateOptions]) -> list[Any]:
    prompt, options = request
    schema = None if options.json_schema is None else dict(options.json_schema)
    # A greedy answer does not depend on the seed of the item, so that a text that is asked twice is asked once.
    chance = None if options.temperature == 0 else [options.temperature, options.top_p, options.seed]
    marks = [] if options.reasoning_markers is None else [options.reasoning_markers]
    languages = [] if options.languages is None else [{"languages": options.languages}]
    constraint = [options.choices, options.regex, schema]
    return [_prompt(prompt), options.max_tokens, options.stop, chance, *constraint, *marks, *languages]


def _json(value: Any) -> bytes:
    return _ENCODER.encode(value).encode("utf-8", "surrogatepass")


def _parsed(body: bytes) -> Any:
    return json.loads(body.decode("utf-8", "surrogatepass"))


def _row_bytes(row: Any) -> bytes:
    """Return a row of numbers; one that is mostly zero, as counts of n-grams are, without its zeros."""
    values = np.ascontiguousarray(row, dtype=np.float32).reshape(-1)
    bits = values.view(np.uint32)  # -0.0 is kept
    if 2 * np.count_nonzero(bits) >= len(values):
        return _DENSE + values.tobytes()
    positions = np.flatnonzero(bits)
    head = np.array([len(values), len(positions)], dtype="<u4").tobytes()
    return _SPARSE + head + positions.astype("<u4").tobytes() + values[positions].tobytes()


def _row(body: bytes) -> Any:
    if body[:1] == _DENSE:
        return np.frombuffer(body, dtype=np.float32, offset=1)
    size, count = np.frombuffer(body, dtype="<u4", count=2, offset=1).tolist()
    values = np.zeros(size, dtype=np.float32)
    positions = np.frombuffer(body, dtype="<u4", count=count, offset=9)
    values[positions] = np.frombuffer(body, dtype=np.float32, count=count, offset=9 + 4 * count)
    return values


def _span_bytes(answer: SpanAnswer) -> bytes:
    return _json([answer.text, answer.start, answer.end, answer.score, answer.truncated])


def _span(body: bytes) -> SpanAnswer:
    text, start, end, score, truncated = _parsed(body)
    return SpanAnswer(text=clean_text(text), start=start, end=end, score=score, truncated=truncated)


def _likelihood_bytes(answer: LikelihoodAnswer) -> bytes:
    flags = [answer.is_greedy, answer.byte_length, answer.truncated, answer.straddles]
    return _json([answer.token_logprobs, *flags])


def _likelihood(body: bytes) -> LikelihoodAnswer:
    logprobs, greedy, length, truncated, straddles = _parsed(body)
    return LikelihoodAnswer(
        token_logprobs=tuple(logprobs),
        is_greedy=greedy,
        byte_length=length,
        truncated=truncated,
        straddles=straddles,
    )


def _cleaned(answer: Any) -> Any:
    """Return an answer with a text as it may be kept; another type of answer fails where it is used."""
    text = getattr(answer, "text", None)
    cleaned = clean_text(text) if isinstance(text, str) else text
    return answer if cleaned == text else replace(answer, text=cleaned)


def _cleaned_writing(answer: Any) -> Any:
    """Return a written answer as it may be kept, its reasoning included."""
    reasoning = getattr(answer, "reasoning", None)
    return _cleaned(
        replace(answer, reasoning=clean_text(reasoning)) if isinstance(reasoning, str) else answer
    )


def _generated_bytes(answer: Generated) -> bytes:
    thought = [] if answer.reasoning is None else [answer.reasoning, answer.reasoning_tokens]
    return _json([answer.text, answer.tokens, answer.finished, answer.truncated, *thought])


def _generated(body: bytes) -> Generated:
    text, tokens, finished, truncated, *thought = _parsed(body)
    reasoning, reasoning_tokens = thought or (None, 0)
    return Generated(
        text=clean_text(text),
        tokens=tokens,
        finished=finished,
        truncated=truncated,
        reasoning=None if reasoning is None else clean_text(reasoning),
        reasoning_tokens=reasoning_tokens,
    )


def _is_finite(values: Any) -> bool:
    return bool(np.isfinite(np.asarray(values, dtype=np.float64)).all())


def _text_content(item: TextInput) -> list[str | None]:
    return [item.text, item.text_pair]


def _choice_content(item: Choice) -> list[Any]:
    return [item.context, item.choices]


def _question_content(item: SpanQuestion) -> list[str]:
    return [item.id, item.question, item.context]


def _continuation_content(item: LikelihoodRequest) -> list[str]:
    return [item.context, item.continuation]


def _mask_content(item: MaskRequest) -> list[str]:
    return [item.before, item.form, item.after]


FORMS: Mapping[Ability, Form] = {
    "classify": Form(
        content=_text_content,
        length=lambda item: len(item.text) + len(item.text_pair or ""),
        encode=_row_bytes,
        decode=_row,
        is_row=True,
        is_sound=_is_finite,
    ),
    "choose": Form(
        content=_choice_content,
        length=lambda item: len(item.context) * len(item.choices) + sum(map(len, item.choices)),
        encode=_json,
        decode=lambda body: tuple(_parsed(body)),
        is_sound=_is_finite,
    ),
    "tag": Form(
        content=list,
        length=lambda tokens: sum(map(len, tokens)) + len(tokens),
        encode=_json,
        decode=_parsed,
    ),
    "extract_spans": Form(
        content=_question_content,
        length=lambda item: len(item.question) + len(item.context),
        encode=_span_bytes,
        decode=_span,
        clean=_cleaned,
        is_sound=lambda answer: _is_finite(answer.score),
    ),
    "embed": Form(
        content=lambda text: text,
        length=len,
        encode=_row_bytes,
        decode=_row,
        is_row=True,
        is_sound=_is_finite,
    ),
    "loglikelihood": Form(
        content=_continuation_content,
        length=lambda item: len(item.context) + len(item.continuation),
        encode=_likelihood_bytes,
        decode=_likelihood,
        group=lambda item: item.context,
        is_sound=lambda answer: _is_finite(answer.token_logprobs),
    ),
    "fill_masks": Form(
        content=_mask_content,
        length=lambda item: len(item.before) + len(item.form) + len(item.after),
        encode=_likelihood_bytes,
        decode=_likelihood,
        group=lambda item: (item.before, item.after),
        is_sound=lambda answer: _is_finite(answer.token_logprobs),
    ),
    "generate": Form(
        content=_generation,
        length=lambda request: _prompt_length(request[0]),
        encode=_generated_bytes,
        decode=_generated,
        clean=_cleaned_writing,
    ),
}
