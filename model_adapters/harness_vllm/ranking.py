"""Log-probabilities of prompts through ``/completions``: the requests, and checks of the answers."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness import AdapterError

__all__ = ["Form", "ScoredPrompt", "read_choices", "read_scores", "scoring_payload"]

Form = Literal["prompt_logprobs", "echo"]
Ids = tuple[int, ...]

NAMED_ID = "token_id:"
"""What vLLM puts before an id in place of a token's text, with ``--return-tokens-as-token-ids``."""
ROUNDING = 1e-3
"""A log-probability above 0 by less than this is 0."""
LARGEST = sys.float_info.max
SHOWN = 60
"""Characters of a wrong value that an error shows."""


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
    choices = read_choices(answer, len(prompts), url)
    _check_count(answer, sum(map(len, prompts)), url)
    read = _from_prompt_logprobs if form == "prompt_logprobs" else _from_echo
    scored = []
    for choice, ids in zip(choices, prompts, strict=True):
        _check_ids(choice, ids, url)
        scored.append(read(choice, ids, url))
    return scored


def read_choices(answer: Any, count: int, url: str) -> list[Mapping[str, Any]]:
    """Return the choices for `count` prompts in the order of the prompts; raises `AdapterError` for any others."""
    found = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(found, list) or not all(isinstance(choice, dict) for choice in found):
        raise AdapterError(f"The server at {url} answered without a list of choices.")
    if len(found) != count:
        raise AdapterError(
            f"The server at {url} gave {len(found)} choices for {count} prompts.",
            hint="If it takes only one prompt per request, pass -o prompts_per_request=1.",
        )
    indices = [choice.get("index") for choice in found]
    if any(type(index) is not int for index in indices) or sorted(indices) != list(range(count)):
        raise AdapterError(f"The server at {url} numbered its {count} choices wrongly.")
    return sorted(found, key=lambda choice: int(choice["index"]))


def _check_count(answer: Mapping[str, Any], count: int, url: str) -> None:
    """Raise `AdapterError` where the server counted other tokens: it put one before the prompt, for example."""
    usage = answer.get("usage")
    counted = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    if counted is not None and (type(counted) is not int or counted != count):
        raise _other_tokens(url, f"usage.prompt_tokens={counted!r} instead of {count}")


def _check_ids(choice: Mapping[str, Any], ids: Ids, url: str) -> None:
    """Raise `AdapterError` where a server that names the ids of a prompt names others."""
    named = choice.get("prompt_token_ids")
    if named is not None and (not isinstance(named, list) or _as_ids(named) != ids):
        raise _other_tokens(url, "other ids in prompt_token_ids")


def _as_ids(values: Sequence[Any]) -> Ids | None:
    return tuple(values) if all(type(value) is int for value in values) else None


def _from_prompt_logprobs(choice: Mapping[str, Any], ids: Ids, url: str) -> ScoredPrompt:
    entries = choice.get("prompt_logprobs")
    if not isinstance(entries, list):
        raise AdapterError(
            f"The server at {url} gives no log-probabilities of prompts.",
            hint="If it knows echo with logprobs, pass -o scoring=echo; a chat endpoint is for openai:URL.",
        )
    if len(entries) != len(ids):
        raise _other_tokens(url, f"{len(entries)} tokens instead of {len(ids)}")
    logprobs, likeliest = [], []
    for position, (entry, token) in enumerate(zip(entries[1:], ids[1:], strict=True), start=1):
        scored = entry.get(str(token)) if isinstance(entry, dict) else None
        if not isinstance(scored, dict):
            raise _other_tokens(
                url, f"no log-probability and rank of token {token} in prompt_logprobs[{position}]"
            )
        field = f"prompt_logprobs[{position}]"
        logprobs.append(_logprob(scored.get("logprob"), f"{field}.logprob", url))
        rank = scored.get("rank")
        if type(rank) is not int or rank < 1:
            raise _wrong_value(url, f"{field}.rank", rank, "a whole number from 1")
        likeliest.append(rank == 1)
    return ScoredPrompt(logprobs=tuple(logprobs), likeliest=tuple(likeliest))


def _from_echo(choice: Mapping[str, Any], ids: Ids, url: str) -> ScoredPrompt:
    table = choice.get("logprobs")
    table = table if isinstance(table, dict) else {}
    numbers, best = table.get("token_logprobs"), table.get("top_logprobs")
    if not isinstance(numbers, list) or not isinstance(best, list):
        raise AdapterError(
            f"The server at {url} gives no log-probabilities of prompts, neither as prompt_logprobs nor by echo.",
            hint="Use a server that does, vLLM for one; a chat endpoint is for openai:URL.",
        )
    # One token more than the prompt's: the server generates one.
    if len(numbers) not in (len(ids), len(ids) + 1) or len(best) != len(numbers):
        raise _other_tokens(url, f"{len(numbers)} tokens instead of {len(ids)}")
    _check_token_names(table.get("tokens"), ids, url)
    logprobs, likeliest = [], []
    for position in range(1, len(ids)):
        field = f"logprobs.token_logprobs[{position}]"
        logprobs.append(_logprob(numbers[position], field, url))
        field, top = f"logprobs.top_logprobs[{position}]", best[position]
        if not isinstance(top, dict) or not top:
            raise _wrong_value(url, field, top, "the log-probabilities of the likeliest tokens")
        likeliest.append(logprobs[-1] >= max(_logprob(number, field, url) for number in top.values()))
    return ScoredPrompt(logprobs=tuple(logprobs), likeliest=tuple(likeliest))


def _check_token_names(names: Any, ids: Ids, url: str) -> None:
    """Raise `AdapterError` where names of tokens that hold their ids, as ``token_id:17``, are not the prompt's.

    Names that are texts are not compared: servers write the bytes of a token in several ways.
    """
    for position, (name, token) in enumerate(
        zip(names if isinstance(names, list) else (), ids, strict=False)
    ):
        if isinstance(name, str) and name.startswith(NAMED_ID) and name != f"{NAMED_ID}{token}":
            raise _other_tokens(url, f"{name!r} in logprobs.tokens[{position}] instead of token {token}")


def _logprob(value: Any, field: str, url: str) -> float:
    """Return a log-probability; raises `AdapterError` for anything but a finite number up to 0."""
    is_number = type(value) in (int, float) and -LARGEST < value <= ROUNDING
    if not is_number:  # NaN fails both comparisons
        raise _wrong_value(url, field, value, "a finite number up to 0")
    return min(float(value), 0.0)


def _wrong_value(url: str, field: str, value: Any, expected: str) -> AdapterError:
    return AdapterError(
        f"The server at {url} gave {str(value)[:SHOWN]!r} ({type(value).__name__}) as {field}; expected {expected}.",
        hint="Its log-probabilities cannot be used: use another server, or see its log.",
    )


def _other_tokens(url: str, found: str) -> AdapterError:
    return AdapterError(f"The server at {url} did not score the tokens that it was sent: it gave {found}.")
