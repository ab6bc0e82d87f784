"""Generation through ``/completions`` and ``/chat/completions``: the requests, and checks of the answers."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness import AdapterError, CapabilityError, Generated, GenerateOptions, Turn

__all__ = [
    "Written",
    "chat_messages",
    "check_constraint",
    "constraint_fields",
    "read_written",
    "sampling_fields",
]

FINISHED = frozenset({"stop"})
CUT = frozenset({"length", "content_filter"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One answer of a server, and how long it says that the prompt was."""

    generated: Generated
    prompt_tokens: int | None


def sampling_fields(options: GenerateOptions) -> dict[str, Any]:
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
    given = {name: value for name, value in values.items() if value is not None}
    if len(given) > 1:
        raise CapabilityError(f"Text can be constrained in one way at a time, not by {' and '.join(given)}.")
    if not given:
        return {}
    return (
        {f"guided_{name}": value for name, value in given.items()}
        if guided
        else {"structured_outputs": given}
    )


def chat_messages(turns: Sequence[Turn]) -> list[dict[str, str]]:
    """Return a conversation as a chat endpoint takes it."""
    return [{"role": turn.role, "content": turn.text} for turn in turns]


def read_written(answer: Any, options: GenerateOptions, url: str, *, truncated: bool = False) -> Written:
    """Return the one text of an answer; raises `AdapterError` for an answer that does not fit what was asked."""
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        count = len(choices) if isinstance(choices, list) else "no"
        raise AdapterError(f"The server at {url} gave {count} choices for one prompt.")
    choice = choices[0]
    message = choice.get("message")
    text = message.get("content") if isinstance(message, dict) else choice.get("text")
    usage = answer.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    tokens, reason = usage.get("completion_tokens"), choice.get("finish_reason")
    if text is None and isinstance(message, dict):
        text = ""  # a refusal, or thoughts alone
    if not isinstance(text, str) or type(tokens) is not int:
        missing = "text" if not isinstance(text, str) else "count of written tokens (usage.completion_tokens)"
        raise AdapterError(f"The server at {url} answered without a {missing}.")
    if reason not in FINISHED | CUT:
        raise AdapterError(
            f"The server at {url} stopped writing because of {reason!r}, not at an end or a limit."
        )
    generated = Generated(text=text, tokens=tokens, finished=reason in FINISHED, truncated=truncated)
    prompt_tokens = usage.get("prompt_tokens")
    return Written(generated=generated, prompt_tokens=prompt_tokens if type(prompt_tokens) is int else None)


def check_constraint(generated: Generated, options: GenerateOptions, url: str) -> None:
    """Raise `AdapterError` where a whole text breaks its constraint: the server does not know constraints.

    A text that was cut, at the token limit or at a stop string, cannot be judged.
    """
    if not generated.finished or options.stop:
        return
    text = generated.text
    if options.choices is not None:
        kept = text in options.choices
    elif options.regex is not None:
        kept = _matches(options.regex, text)
    elif options.json_schema is not None:
        kept = _is_json(text)
    else:
        return
    if not kept:
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
