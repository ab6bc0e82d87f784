"""A model behind an OpenAI-like ``/chat/completions``, which only generates text."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from harness import CapabilityError, Generated, GenerateOptions, Prompt, Turn
from harness.models.requests import Ability, Answered, Call
from harness_vllm.session import ServerSession, ability_error, in_order, one_by_one
from harness_vllm.writing import chat_messages, check_constraint, read_written, sampling_fields

__all__ = ["ChatModel"]


class ChatModel:
    """`Generates` over HTTP; a plain text is sent as one user turn.

    Args:
        session: The connection to the endpoint.
        token_limit_field: What the endpoint calls the limit of written tokens.
    """

    def __init__(self, session: ServerSession, *, token_limit_field: str) -> None:
        self._session = session
        self._token_limit_field = token_limit_field
        self._url = session.url("/chat/completions")

    def identity(self) -> Mapping[str, str]:
        """Return model and options as text, never the key."""
        return self._session.identity()

    def close(self) -> None:
        """End the connections; a second call does nothing."""
        self._session.close()

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        """Return one text per prompt; raises `CapabilityError` for a constraint other than a JSON schema."""
        pairs = list(zip(prompts, options, strict=True))
        return in_order(self.stream(Call(ability="generate"), [pairs]), len(pairs))

    def block_characters(self, ability: Ability) -> int | None:
        """Return None: the server makes its own batches."""
        return None

    def stream(self, call: Call, blocks: Sequence[Sequence[Any]]) -> Generator[Answered, None, None]:
        """Yield what `generate` returns, one answer at a time; raises as it does, after the other answers."""
        if call.ability != "generate":
            raise ability_error(self._session.model, call.ability)
        return one_by_one(self._session, self._generate, call, blocks)

    def _generate(self, item: tuple[Prompt, GenerateOptions]) -> Generated:
        prompt, options = item
        turns = (Turn(role="user", text=prompt),) if isinstance(prompt, str) else prompt
        fields = sampling_fields(options)
        fields[self._token_limit_field] = fields.pop("max_tokens")
        payload = {
            "model": self._session.model,
            "messages": chat_messages(turns),
            **fields,
            **_response_format(options),
        }
        generated = read_written(self._session.client.post("/chat/completions", payload), options, self._url)
        check_constraint(generated.generated, options, self._url)
        return generated.generated


def _response_format(options: GenerateOptions) -> dict[str, Any]:
    """Return OpenAI's field for a JSON schema; it has none for choices or regular expressions."""
    if options.choices is not None or options.regex is not None:
        what = "choices" if options.choices is not None else "a regular expression"
        raise CapabilityError(
            f"A chat endpoint cannot constrain text by {what}.",
            hint="Run without --constrained, or use vllm:URL.",
        )
    if options.json_schema is None:
        return {}
    schema = {"name": "answer", "schema": options.json_schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}
