"""OpenAI's Responses API (``/responses``): its requests, and its answers in the form of ``/chat/completions``.

Fields: https://platform.openai.com/docs/api-reference/responses. It takes no stop strings and no seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness import AdapterError
from harness.models import Turn
from harness_vllm.answers import Answer, read_answer
from harness_vllm.completions import chat_messages


class Part(Answer):
    """A piece of a message, of the reasoning or of its summary."""

    text: str = ""


class Output(Answer):
    """A message or a reasoning; tools are not used."""

    type: str
    content: list[Part] | None = None
    summary: list[Part] | None = None


class Details(Answer):
    """Counts of the written tokens by their role."""

    reasoning_tokens: int | None = None


class Used(Answer):
    """How many tokens were read and written."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    output_tokens_details: Details | None = None


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
    details = usage.output_tokens_details or Details()
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
