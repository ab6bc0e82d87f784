"""Generation through completions, chat completions and OpenAI's Responses API: requests, and checks of answers.

A model that reasons first gets one limit for both parts, and no stop in the reasoning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness import AdapterError, CapabilityError
from harness.models import (
    KNOWN_MARKERS,
    Generated,
    GenerateOptions,
    Markers,
    ReasoningOptions,
    Turn,
    split_reasoning,
    within_stops,
)
from harness_vllm.answers import Answer, Choice, WrittenTokens, read_answer, read_choices

FINISHED = frozenset({"stop"})
CUT = frozenset({"length", "content_filter"})
MARKS = 16
"""Tokens of the marks and the space around them, which the server counts with the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One answer of a server, and how long it says that the prompt was."""

    generated: Generated
    prompt_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the reasoning in an answer is found."""

    markers: Sequence[Markers] = KNOWN_MARKERS
    opened: bool = False
    """Whether the prompt ends with the mark before it."""
    stop: tuple[str, ...] = ()
    """Stop strings of the answer: servers may ignore them, and are not sent those that would end the reasoning."""
    limit: int | None = None
    """The most tokens of a text without reasoning; None where the request left room for reasoning."""


def _sampling_fields(options: GenerateOptions) -> dict[str, Any]:
    """Return the fields of a request that say how text is sampled; all are OpenAI's."""
    fields: dict[str, Any] = {
        "max_tokens": options.max_tokens,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "seed": options.seed,
    }
    return {**fields, "stop": list(options.stop)} if options.stop else fields


def constraint_fields(options: GenerateOptions, *, guided: bool) -> dict[str, Any]:
    """Return vLLM's field for a constraint: ``structured_outputs``, or ``guided_*`` before vLLM 0.12."""
    values = {
        "choice": None if options.choices is None else list(options.choices),
        "regex": options.regex,
        "json": options.json_schema,
    }
    constraints = {name: value for name, value in values.items() if value is not None}
    if len(constraints) > 1:
        raise CapabilityError(
            f"Text can be constrained in one way at a time, not by {' and '.join(constraints)}."
        )
    if not constraints:
        return {}
    return (
        {f"guided_{name}": value for name, value in constraints.items()}
        if guided
        else {"structured_outputs": constraints}
    )


def chat_messages(turns: Sequence[Turn]) -> list[dict[str, str]]:
    """Return a conversation as a chat endpoint takes it."""
    return [{"role": turn.role, "content": turn.text} for turn in turns]


def read_written(
    answer: Any, url: str, *, truncated: bool = False, reading: Reading | None = None
) -> Written:
    """Return the one text of an answer; raises `AdapterError` for an answer that does not fit what was asked."""
    reading = reading or Reading()
    [choice], usage = read_choices(answer, 1, url)
    if choice.message is None and choice.text is None:
        raise AdapterError(f"The server at {url} answered without a text.")
    if usage.completion_tokens is None:
        raise AdapterError(
            f"The server at {url} answered without a count of written tokens (usage.completion_tokens)."
        )
    if choice.finish_reason not in FINISHED | CUT:
        raise AdapterError(
            f"The server at {url} stopped writing because of {choice.finish_reason!r}, not at an end or a limit."
        )
    reasoning, text = _parts(choice, reading)
    details = usage.completion_tokens_details
    counted = 0 if details is None else details.reasoning_tokens or 0
    limited = text
    if reasoning is None and reading.limit is not None:
        limited = _within_limit(text, usage.completion_tokens - counted, reading.limit)
    answered, is_stopped = within_stops(limited, reading.stop)
    generated = Generated(
        text=answered,
        tokens=usage.completion_tokens,
        finished=is_stopped or (choice.finish_reason in FINISHED and limited == text),
        truncated=truncated,
        reasoning=reasoning,
        reasoning_tokens=counted if reasoning is None else counted or None,
    )
    return Written(generated=generated, prompt_tokens=usage.prompt_tokens)


def _within_limit(text: str, tokens: int, limit: int) -> str:
    """Return the text that a server would have written had it kept to its limit of tokens.

    Its tokens are taken to be equally long, since only their number is known. A text has no more tokens than bytes:
    what else was counted is reasoning that the server does not show.
    """
    tokens = min(tokens, len(text.encode("utf-8", "replace")))
    return text if tokens <= limit + 1 else text[: len(text) * limit // tokens]  # 1: the end token


def _parts(choice: Choice, reading: Reading) -> tuple[str | None, str]:
    """Return the reasoning, None where there is none, and the answer; a server may have separated them itself."""
    message = choice.message
    if message is None:
        split = split_reasoning(choice.text or "", reading.markers, opened=reading.opened)
        return split.reasoning, split.answer
    if separated := message.reasoning or message.reasoning_content:
        return separated.strip(), (message.content or "").lstrip()
    split = split_reasoning(message.content or "", reading.markers, opened=reading.opened)
    return split.reasoning, split.answer


def check_constraint(generated: Generated, options: GenerateOptions, url: str) -> None:
    """Raise `AdapterError` where a whole text breaks its constraint: the server does not know constraints.

    A text that was cut, at the token limit or at a stop string, cannot be judged.
    """
    if not generated.finished or options.stop:
        return
    text = generated.text
    if options.choices is not None:
        is_met = text in options.choices
    elif options.regex is not None:
        is_met = _matches(options.regex, text)
    elif options.json_schema is not None:
        is_met = _is_json(text)
    else:
        return
    if not is_met:
        raise AdapterError(
            f"The server at {url} ignored the constraint on its text: it wrote {text[:80]!r}.",
            hint="Use vLLM, or generate without constraints.",
        )


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.fullmatch(pattern, text) is not None
    except re.error:
        return True  # another dialect of regular expressions, which only the server can judge


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


class Part(Answer):
    """A piece of a message, of the reasoning or of its summary."""

    text: str = ""


class Output(Answer):
    """A message or a reasoning; tools are not used."""

    type: str
    content: list[Part] | None = None
    summary: list[Part] | None = None


class Used(Answer):
    """How many tokens were read and written."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    output_tokens_details: WrittenTokens | None = None


class Incomplete(Answer):
    """Why the text ends early."""

    reason: str | None = None


class Response(Answer):
    """The answer of ``/responses``."""

    status: str
    output: list[Output]
    usage: Used | None = None
    incomplete_details: Incomplete | None = None


def responses_payload(
    model: str, turns: Sequence[Turn], fields: dict[str, Any], effort: str | None
) -> dict[str, Any]:
    """Return the request of a conversation; `fields` are those of chat completions, without a limit's own name."""
    sampling: dict[str, Any] = {name: fields[name] for name in ("temperature", "top_p") if name in fields}
    payload: dict[str, Any] = {"model": model, "input": chat_messages(turns), "store": False, **sampling}
    payload["max_output_tokens"] = fields["max_tokens"]
    if effort is not None:
        payload["reasoning"] = {"effort": effort, "summary": "auto"}
    if (schema := fields.get("response_format")) is not None:
        payload["text"] = {"format": {"type": "json_schema", **schema["json_schema"]}}
    return payload


def as_chat(answer: Any, url: str) -> dict[str, Any]:
    """Return the answer as ``/chat/completions`` gives it; the reasoning is its text, or else its summary.

    Raises `AdapterError` for one that does not fit, and for one that failed.
    """
    response = read_answer(Response, answer, url)
    reason = None if response.incomplete_details is None else response.incomplete_details.reason
    cut = "length" if reason == "max_output_tokens" else reason
    endings: dict[str, str | None] = {"completed": "stop", "incomplete": cut}
    if response.status not in endings:
        raise AdapterError(f"The server at {url} gave an answer with the status {response.status!r}.")
    thoughts = [item for item in response.output if item.type == "reasoning"]
    reasoning = [content.text for item in thoughts for content in item.content or item.summary or ()]
    texts = [
        content.text for item in response.output if item.type == "message" for content in item.content or ()
    ]
    usage = response.usage or Used()
    details = usage.output_tokens_details or WrittenTokens()
    return {
        "choices": [
            {
                "message": {"content": "".join(texts), "reasoning": "\n".join(reasoning) or None},
                "finish_reason": endings[response.status],
            }
        ],
        "usage": {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "completion_tokens_details": {"reasoning_tokens": details.reasoning_tokens},
        },
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request, with or without room for reasoning."""

    options: GenerateOptions
    budget: int
    expects: bool
    """Whether the user, or the chat template, makes the model reason."""
    has_budget: bool
    reading: Reading

    @classmethod
    def of(cls, reasoning: ReasoningOptions, options: GenerateOptions, *, opened: bool = False) -> Asked:
        """Return a request that leaves room for reasoning."""
        markers = reasoning.markers(options.reasoning_markers)
        return cls(
            options=options,
            budget=reasoning.budget,
            expects=opened or reasoning.reasons,
            has_budget=True,
            reading=Reading(markers=markers, opened=opened, stop=options.stop),
        )

    def without_budget(self) -> Asked:
        """Return the same request of a model that does not reason."""
        limited = replace(self.reading, limit=self.options.max_tokens)
        return replace(self, has_budget=False, reading=limited)

    def fields(self, room: int | None) -> dict[str, Any]:
        """Return how the text is sampled, within so many tokens of prompt and answer."""
        options = self.options
        if self.has_budget:
            tokens = self.budget + options.max_tokens
            most = tokens if room is None else max(options.max_tokens, min(tokens, room))
            options = replace(options, max_tokens=most, stop=())
        return _sampling_fields(options)

    def judged(self, generated: Generated, count: Callable[[str], int] | None = None) -> Generated:
        """Return an answer whose parts are within their limits, or that is not finished.

        Args:
            generated: As the server wrote it.
            count: Counts the tokens of the reasoning, for servers that do not.
        """
        if generated.reasoning is None:
            return generated
        tokens = generated.reasoning_tokens
        if tokens is None and count is not None:
            tokens = (
                generated.tokens if not generated.text else min(count(generated.reasoning), generated.tokens)
            )
        if tokens is None:
            return generated
        if tokens > self.budget:
            return replace(generated, text="", finished=False, reasoning_tokens=tokens)
        fits = generated.tokens - tokens <= self.options.max_tokens + MARKS or bool(self.options.stop)
        return replace(generated, finished=generated.finished and fits, reasoning_tokens=tokens)


class Unasked:
    """Asks a model without a wish for reasoning, and the next item as the last one answered."""

    def __init__(self) -> None:
        self._reasons = False

    def ask(self, write: Callable[[Asked], Generated], request: Asked) -> Generated:
        """Return the answer with room for reasoning where the model reasons, else the usual one.

        It is asked a second time where the first request was the other one: stop strings and the limit of the answer
        may have ended the reasoning, or not have ended the answer.
        """
        first = request if self._reasons else request.without_budget()
        generated = write(first)
        if (generated.reasoning is not None) != first.has_budget:
            generated = write(request.without_budget() if first.has_budget else request)
        self._reasons = generated.reasoning is not None
        return generated


def chat_fields(reasoning: ReasoningOptions, *, counting: bool = False) -> dict[str, Any]:
    """Return the fields of a conversation that say whether and how much the model reasons.

    `counting` is for requests that only count its tokens, which know the template's variables alone.
    """
    variables = reasoning.template_variables()
    if counting:
        return {"chat_template_kwargs": variables} if variables else {}
    effort = variables.pop("reasoning_effort", None)
    fields: dict[str, Any] = {"chat_template_kwargs": variables} if variables else {}
    return fields if effort is None else {**fields, "reasoning_effort": effort}
