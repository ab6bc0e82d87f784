"""The answers of servers as typed records: what is read of them, and an error that names a field of another type."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness import AdapterError

ROUNDING = 1e-3
"""A log-probability above 0 by less than this is 0."""
SHOWN = 60
"""Characters of a wrong value that an error shows."""

Logprob = Annotated[float, Field(allow_inf_nan=False, le=ROUNDING)]
Number = Annotated[float, Field(allow_inf_nan=False)]


class Answer(BaseModel):
    """Base of all answers: a number as text is an error, further fields are ignored."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class TokenScore(Answer):
    """A token of a prompt, as ``prompt_logprobs`` gives it."""

    logprob: Logprob
    rank: Annotated[int, Field(ge=1)]


class EchoTable(Answer):
    """The tokens of an echoed prompt."""

    token_logprobs: list[Logprob | None] | None = None
    top_logprobs: list[dict[str, Logprob] | None] | None = None
    tokens: list[Any] | None = None


class Message(Answer):
    """Message of a chat endpoint; None is a refusal, or thoughts alone."""

    content: str | None = None
    reasoning: str | None = None
    """What a reasoning parser of the server took out of the text; vLLM's name since 0.12."""
    reasoning_content: str | None = None
    """The same in older versions, and at other servers."""


class Choice(Answer):
    """One text, or one scored prompt."""

    index: int = 0
    text: str | None = None
    message: Message | None = None
    finish_reason: str | None = None
    prompt_token_ids: list[int] | None = None
    prompt_logprobs: list[dict[str, TokenScore] | None] | None = None
    logprobs: EchoTable | None = None


class WrittenTokens(Answer):
    """Counts of the written tokens by their role."""

    reasoning_tokens: int | None = None


class Usage(Answer):
    """How many tokens were read and written."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    completion_tokens_details: WrittenTokens | None = None


class Choices(Answer):
    """The answer of ``/completions`` and ``/chat/completions``."""

    choices: list[Choice]
    usage: Usage | None = None


class Embedding(Answer):
    """The vector of one text."""

    index: int
    embedding: Annotated[list[Number], Field(min_length=1)]


class Embeddings(Answer):
    """The answer of ``/embeddings``."""

    data: list[Embedding] = []


class Tokens(Answer):
    """The answer of ``/tokenize``."""

    tokens: list[int]


class ServedModel(Answer):
    """One entry of ``/models``."""

    name: str = Field(alias="id")
    context_length: int | None = Field(default=None, alias="max_model_len")
    """Tokens of prompt and answer together; None where the server does not say."""
    root: str | None = None
    """Folder or hub id that vLLM loaded it from."""
    parent: str | None = None
    """Name of the model that a LoRA adapter changes."""


class Models(Answer):
    """The answer of ``/models``."""

    data: list[ServedModel]


T = TypeVar("T", bound=Answer)


def read_answer(record: type[T], answer: Any, url: str, *, hint: str | None = None) -> T:
    """Return a server's answer as a record; raises `AdapterError` that names the first field that does not fit."""
    try:
        return record.model_validate(answer)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    field = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in first["loc"]).lstrip(".")
    if first["type"] == "missing":
        raise AdapterError(f"The server at {url} answered without {field}.", hint=hint)
    actual, expected = first["input"], first["msg"].removeprefix("Input ")
    raise AdapterError(
        f"The server at {url} gave {str(actual)[:SHOWN]!r} ({type(actual).__name__}) as {field or 'its answer'}; "
        f"it {expected}.",
        hint=hint,
    )


def read_choices(answer: Any, count: int, url: str) -> tuple[list[Choice], Usage]:
    """Return the choices for `count` prompts in the order of the prompts; raises `AdapterError` for any others."""
    completion = read_answer(Choices, answer, url)
    if len(completion.choices) != count:
        raise AdapterError(
            f"The server at {url} gave {len(completion.choices)} choices for {count} prompts.",
            hint="If it takes only one prompt per request, pass -o prompts_per_request=1."
            if count > 1
            else None,
        )
    ordered = sorted(completion.choices, key=lambda choice: choice.index)
    if [choice.index for choice in ordered] != list(range(count)):
        raise AdapterError(f"The server at {url} numbered its {count} choices wrongly.")
    return ordered, completion.usage or Usage()
