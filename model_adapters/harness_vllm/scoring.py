"""Log-probabilities of given tokens through ``/completions``: the requests, and checks of the answers.

They are read from whole prompts, or from the token that is written next after a prompt. Under prefix caching, some
versions of vLLM give stale numbers for the cached part of a prompt
(https://github.com/vllm-project/vllm/issues/42019), so their order is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness import AdapterError
from harness_vllm.answers import Choice, read_choices
from harness_vllm.client import Client

Form = Literal["prompt_logprobs", "echo"]
Ids = tuple[int, ...]

NAMED_ID = "token_id:"
"""What vLLM puts before an id in place of a token's text, with ``--return-tokens-as-token-ids``."""


NEUTRAL = {
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""Sampling that a server would else take from the model folder's generation_config.json."""
TOP = 20
"""Likeliest tokens that vLLM returns at most by default (``--max-logprobs``)."""
LOWEST = -9000.0
"""vLLM writes -9999 for minus infinity, which it also gives to the padding of its table of tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPrompt:
    """Numbers of the last tokens of a prompt: of every token but the first, which has none, or of the last one."""

    logprobs: tuple[float, ...]
    likeliest: tuple[bool, ...]
    """Whether the token is the one that the model would have chosen."""
    next_token: bool = False
    """Whether the last token was read as the token written next after the others."""


def scoring_payload(model: str, prompts: Sequence[Ids], form: Form) -> dict[str, Any]:
    """Return the request for the log-probabilities of prompts, given as token ids.

    ``prompt_logprobs: 0`` is vLLM's own and gives the prompt's tokens alone, with their ranks; ``echo`` with
    ``logprobs: 1`` is the older form of OpenAI's completions.
    """
    fields: dict[str, Any] = (
        {"prompt_logprobs": 0} if form == "prompt_logprobs" else {"echo": True, "logprobs": 1}
    )
    prompt = [list(ids) for ids in prompts] if len(prompts) > 1 else list(prompts[0])
    return {"model": model, "prompt": prompt, "max_tokens": 1, "temperature": 0, **fields}


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
    _check_numbers([number for prompt in scored for number in prompt.logprobs], url)
    return scored


def _check_numbers(logprobs: Sequence[float], url: str) -> None:
    """Raise `AdapterError` where all log-probabilities are 0, as if every token were certain."""
    if logprobs and not any(logprobs):
        raise AdapterError(
            f"The server at {url} gives all {len(logprobs)} tokens of a request the log-probability 0, so it "
            "does not compute them, and all choices would be equal.",
            hint="Use a server that computes log-probabilities of prompts, vLLM for one.",
        )


def _from_prompt_logprobs(choice: Choice, ids: Ids, url: str) -> ScoredPrompt:
    entries = choice.prompt_logprobs
    if entries is None:
        raise AdapterError(
            f"The server at {url} gives no log-probabilities of prompts.",
            hint="If it knows echo with logprobs, pass -o scoring=echo; a chat endpoint is for openai:URL.",
        )
    if len(entries) != len(ids):
        raise _other_tokens(url, f"{len(entries)} tokens instead of {len(ids)}")
    optional_scores = [
        (entry or {}).get(str(token)) for entry, token in zip(entries[1:], ids[1:], strict=True)
    ]
    scores = [score for score in optional_scores if score is not None]
    if len(scores) < len(optional_scores):
        position = optional_scores.index(None) + 1
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


def _other_tokens(url: str, difference: str) -> AdapterError:
    return AdapterError(
        f"The server at {url} did not score the tokens that it was sent: it gave {difference}."
    )


def next_token_payload(model: str, contexts: Sequence[Ids], tokens: Iterable[int]) -> dict[str, Any]:
    """Return the request for the log-probabilities that tokens have right after each context.

    ``logprob_token_ids`` names them, and leaves the distribution as it is; a version of vLLM without that field
    answers with the likeliest tokens.
    """
    prompt = [list(ids) for ids in contexts] if len(contexts) > 1 else list(contexts[0])
    return {
        "model": model,
        "prompt": prompt,
        "max_tokens": 1,
        "temperature": 0,
        **NEUTRAL,
        "logprobs": TOP,
        "logprob_token_ids": sorted(tokens),
        "return_tokens_as_token_ids": True,
    }


def read_next_tokens(answer: Any, contexts: Sequence[Ids], url: str) -> list[dict[int, float]]:
    """Return the log-probabilities by token after each context, that of the likeliest token among them.

    A table without token ids is empty. Raises `AdapterError` for an answer that does not fit what was asked.
    """
    choices, usage = read_choices(answer, len(contexts), url)
    count = sum(map(len, contexts))
    if usage.prompt_tokens not in (None, count):
        raise _other_tokens(url, f"usage.prompt_tokens={usage.prompt_tokens} instead of {count}")
    return [_table(choice) for choice in choices]


def _table(choice: Choice) -> dict[int, float]:
    tops = None if choice.logprobs is None else choice.logprobs.top_logprobs
    if not tops or not tops[0]:
        return {}
    numbers = {name.removeprefix(NAMED_ID): number for name, number in tops[0].items() if NAMED_ID in name}
    return {
        int(name): min(number, 0.0)
        for name, number in numbers.items()
        if name.isdecimal() and number > LOWEST
    }


LONGEST = 288
"""Tokens of a prompt at most: two blocks of the cache, which has 16 tokens a block on GPUs and 128 on CPUs."""
NOISE = 0.5
"""What rounding may change: logits of bfloat16 are 0.125 apart between 16 and 32. Stale numbers are anything."""


def require_order(
    client: Client, model: str, *, form: Form, ids: Ids, limit: int | None, prompts_per_request: int
) -> None:
    """Raise `AdapterError` where a server gives a prompt other numbers after other prompts.

    Three prompts are scored in two orders, each order with a repetition; two of them share a prefix.

    Args:
        client: The server.
        model: Its name of the model.
        form: The form of requests.
        ids: Tokens of any text.
        limit: The most tokens of a prompt.
        prompts_per_request: The most prompts of a request.
    """
    length = min(LONGEST, limit or LONGEST)
    body = (ids * (length // len(ids) + 1))[:length]
    first, second, third = body, (*body[:-2], *body[:2]), body[::-1]
    scores: dict[Ids, list[ScoredPrompt]] = {}
    for order in ((first, second, third, first), (third, second, first, second)):
        for start in range(0, len(order), prompts_per_request):
            prompts = order[start : start + prompts_per_request]
            url = client.address.url(client.address.base + "/completions")
            answer = client.post("/completions", scoring_payload(model, prompts, form))
            for prompt, scored in zip(prompts, read_scores(answer, prompts, form, url), strict=True):
                scores.setdefault(prompt, []).append(scored)
    differences = (
        abs(number - again)
        for same in scores.values()
        for scored in same[1:]
        for number, again in zip(same[0].logprobs, scored.logprobs, strict=True)
    )
    worst = max(differences, default=0.0)
    if worst > NOISE:
        raise AdapterError(
            f"The server at {client.address} gives the same prompt other log-probabilities after other prompts: they "
            f"differ by up to {worst:.2g} (vLLM issue 42019), so nothing is ranked by it.",
            hint="Start it with --no-enable-prefix-caching.",
        )
