"""Generation through ``/completions`` and ``/chat/completions``: the requests, and checks of the answers."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness import (
    AdapterError,
    CapabilityError,
    Generated,
    GenerateOptions,
    Turn,
)
from harness.models.reasoning import KNOWN_MARKERS, Markers, split_reasoning
from harness_vllm.answers import Choice, read_choices

__all__ = [
    "Form",
    "Reading",
    "ScoredPrompt",
    "Written",
    "chat_messages",
    "check_constraint",
    "constraint_fields",
    "read_scores",
    "read_written",
    "sampling_fields",
    "scoring_payload",
]

FINISHED = frozenset({"stop"})
CUT = frozenset({"length", "content_filter"})


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
    """Stop strings that the server was not sent, since they would end the reasoning."""


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
    found = [place for stop in reading.stop if (place := text.find(stop)) >= 0]
    details = usage.completion_tokens_details
    counted = 0 if details is None else details.reasoning_tokens or 0
    generated = Generated(
        text=text[: min(found)] if found else text,
        tokens=usage.completion_tokens,
        finished=bool(found) or choice.finish_reason in FINISHED,
        truncated=truncated,
        reasoning=reasoning,
        reasoning_tokens=0 if reasoning is None else counted or None,
    )
    return Written(generated=generated, prompt_tokens=usage.prompt_tokens)


def _parts(choice: Choice, reading: Reading) -> tuple[str | None, str]:
    """Return the reasoning, None where there is none, and the answer; a server may have separated them itself."""
    message = choice.message
    if message is None:
        found = split_reasoning(choice.text or "", reading.markers, opened=reading.opened)
        return found.reasoning, found.answer
    if separated := message.reasoning or message.reasoning_content:
        return separated.strip(), (message.content or "").lstrip()
    found = split_reasoning(message.content or "", reading.markers, opened=reading.opened)
    return found.reasoning, found.answer


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


Form = Literal["prompt_logprobs", "echo"]
Ids = tuple[int, ...]

NAMED_ID = "token_id:"
"""What vLLM puts before an id in place of a token's text, with ``--return-tokens-as-token-ids``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPrompt:
    """Numbers of every token of a prompt but the first, which has none."""

    logprobs: tuple[float, ...]
    likeliest: tuple[bool, ...]
    """Whether the token is the one that the model would have chosen."""


def scoring_payload(model: str, prompts: Sequence[Ids], form: Form) -> dict[str, Any]:
    """Return the request for the log-probabilities of prompts, given as token ids.

    ``prompt_logprobs: 0`` is vLLM's own and gives the prompt's tokens alone, with their ranks; ``echo`` with
    ``logprobs: 1`` is the older form of OpenAI's completions.
    """
    wanted: dict[str, Any] = (
        {"prompt_logprobs": 0} if form == "prompt_logprobs" else {"echo": True, "logprobs": 1}
    )
    prompt = [list(ids) for ids in prompts] if len(prompts) > 1 else list(prompts[0])
    return {"model": model, "prompt": prompt, "max_tokens": 1, "temperature": 0, **wanted}


def read_scores(answer: Any, prompts: Sequence[Ids], form: Form, url: str) -> list[ScoredPrompt]:
    """Return the numbers of every prompt; raises `AdapterError` for an answer that does not fit what was asked."""
    choices, usage = read_choices(answer, len(prompts), url)
    count = sum(map(len, prompts))
    if usage.prompt_tokens not in (None, count):  # it put one before the prompt, for example
        raise _other_tokens(url, f"usage.prompt_tokens={usage.prompt_tokens} instead of {count}")
    read = _from_prompt_logprobs if form == "prompt_logprobs" else _from_echo
    scored = []
    for choice, ids in zip(choices, prompts, strict=True):
        if choice.prompt_token_ids not in (None, list(ids)):
            raise _other_tokens(url, "other ids in prompt_token_ids")
        scored.append(read(choice, ids, url))
    return scored


def _from_prompt_logprobs(choice: Choice, ids: Ids, url: str) -> ScoredPrompt:
    entries = choice.prompt_logprobs
    if entries is None:
        raise AdapterError(
            f"The server at {url} gives no log-probabilities of prompts.",
            hint="If it knows echo with logprobs, pass -o scoring=echo; a chat endpoint is for openai:URL.",
        )
    if len(entries) != len(ids):
        raise _other_tokens(url, f"{len(entries)} tokens instead of {len(ids)}")
    own = [(entry or {}).get(str(token)) for entry, token in zip(entries[1:], ids[1:], strict=True)]
    scores = [score for score in own if score is not None]
    if len(scores) < len(own):
        position = own.index(None) + 1
        raise _other_tokens(
            url, f"no log-probability and rank of token {ids[position]} in prompt_logprobs[{position}]"
        )
    return ScoredPrompt(
        logprobs=tuple(min(score.logprob, 0.0) for score in scores),
        likeliest=tuple(score.rank == 1 for score in scores),
    )


def _from_echo(choice: Choice, ids: Ids, url: str) -> ScoredPrompt:
    table = choice.logprobs
    numbers, best = (None, None) if table is None else (table.token_logprobs, table.top_logprobs)
    if table is None or numbers is None or best is None:
        raise AdapterError(
            f"The server at {url} gives no log-probabilities of prompts, neither as prompt_logprobs nor by echo.",
            hint="Use a server that does, vLLM for one; a chat endpoint is for openai:URL.",
        )
    # One token more than the prompt's: the server generates one.
    if len(numbers) not in (len(ids), len(ids) + 1) or len(best) != len(numbers):
        raise _other_tokens(url, f"{len(numbers)} tokens instead of {len(ids)}")
    _check_token_names(table.tokens or (), ids, url)
    logprobs, likeliest = [], []
    for position in range(1, len(ids)):
        value, top = numbers[position], best[position]
        if value is None or not top:
            raise _other_tokens(url, f"no log-probability or no likeliest tokens at logprobs[{position}]")
        logprobs.append(min(value, 0.0))
        likeliest.append(logprobs[-1] >= min(max(top.values()), 0.0))
    return ScoredPrompt(logprobs=tuple(logprobs), likeliest=tuple(likeliest))


def _check_token_names(names: Sequence[Any], ids: Ids, url: str) -> None:
    """Raise `AdapterError` where names of tokens that hold their ids, as ``token_id:17``, are not the prompt's.

    Names that are texts are not compared: servers write the bytes of a token in several ways.
    """
    for position, (name, token) in enumerate(zip(names, ids, strict=False)):
        if isinstance(name, str) and name.startswith(NAMED_ID) and name != f"{NAMED_ID}{token}":
            raise _other_tokens(url, f"{name!r} in logprobs.tokens[{position}] instead of token {token}")


def _other_tokens(url: str, found: str) -> AdapterError:
    return AdapterError(f"The server at {url} did not score the tokens that it was sent: it gave {found}.")
