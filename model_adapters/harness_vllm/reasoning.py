"""How a model behind a server is asked where it reasons first: one limit for both parts, and no stop in the reasoning.

Servers have one limit for all that is written, and look for stop strings in all of it. So a request that leaves room
for reasoning has the limits of both parts together and no stop strings. Every answer is cut at its stop strings here:
some servers ignore them, and some the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from harness.models import Generated, GenerateOptions, ReasoningOptions
from harness_vllm.completions import Reading, sampling_fields


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
        return sampling_fields(options)

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


MARKS = 16
"""Tokens of the marks and the space around them, which the server counts with the answer."""


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
