"""Log-probabilities of prompts through ``/completions``: the requests, and checks of the answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness import AdapterError

__all__ = ["Form", "ScoredPrompt", "read_choices", "read_scores", "scoring_payload"]

Form = Literal["prompt_logprobs", "echo"]
Ids = tuple[int, ...]


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
    read = _from_prompt_logprobs if form == "prompt_logprobs" else _from_echo
    return [read(choice, ids, url) for choice, ids in zip(choices, prompts, strict=True)]


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
    if sorted(choice.get("index", -1) for choice in found) != list(range(count)):
        raise AdapterError(f"The server at {url} numbered its {count} choices wrongly.")
    return sorted(found, key=lambda choice: int(choice["index"]))


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
        try:
            scored = entry[str(token)]
            logprobs.append(_finite(scored["logprob"], url))
            likeliest.append(int(scored["rank"]) == 1)
        except (KeyError, TypeError, ValueError) as error:
            raise _other_tokens(url, f"no log-probability and rank of token {token} at {position}") from error
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
    returned = choice.get("prompt_token_ids")
    if returned is not None and tuple(returned) != ids:
        raise _other_tokens(url, "other token ids")
    try:
        logprobs = tuple(_finite(number, url) for number in numbers[1 : len(ids)])
        highest = [max(map(float, top.values())) for top in best[1 : len(ids)]]
    except (AttributeError, TypeError, ValueError) as error:
        raise _other_tokens(url, "a token without a log-probability") from error
    likeliest = tuple(number >= top for number, top in zip(logprobs, highest, strict=True))
    return ScoredPrompt(logprobs=logprobs, likeliest=likeliest)


def _finite(number: Any, url: str) -> float:
    value = float(number)
    if not math.isfinite(value) or value > 1e-3:
        raise AdapterError(f"The server at {url} gave {value} as a log-probability.")
    return min(value, 0.0)


def _other_tokens(url: str, found: str) -> AdapterError:
    return AdapterError(f"The server at {url} did not score the tokens that it was sent: it gave {found}.")
