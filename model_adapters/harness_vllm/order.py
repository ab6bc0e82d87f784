"""Whether a server's log-probabilities of prompts depend on the order of requests, as in vLLM issue 42019.

Under prefix caching, some versions of vLLM give stale numbers for the cached part of a prompt
(https://github.com/vllm-project/vllm/issues/42019).
"""

from __future__ import annotations

from harness import AdapterError
from harness_vllm.client import Client
from harness_vllm.scoring import Form, Ids, ScoredPrompt, read_scores, scoring_payload

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
