"""A model behind vLLM's completions: ranks continuations, writes text, counts tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.capabilities import (
    Generated,
    GenerateOptions,
    LikelihoodAnswer,
    LikelihoodRequest,
    Prompt,
    Turn,
)
from harness.errors import AdapterError, CapabilityError
from harness_vllm.client import Refusal
from harness_vllm.ranking import Form, Ids, ScoredPrompt, read_scores, scoring_payload
from harness_vllm.session import ServerSession
from harness_vllm.tokenizing import Boundary, Tokenizer, cut_continuation, cut_prompt, token_ids
from harness_vllm.writing import (
    Written,
    chat_messages,
    check_constraint,
    constraint_fields,
    read_written,
    sampling_fields,
)

__all__ = ["GeneratingModel"]

NEUTRAL: Mapping[str, Any] = {
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""Sampling that a server would else take from the model folder's generation_config.json."""


class GeneratingModel:
    """`ScoresContinuations`, `Generates` and `CountsTokens` over HTTP.

    Args:
        session: The connection to the server, and the server itself where it is ours.
        tokenizer: The model's tokenizer.
        form: How log-probabilities of prompts are asked for; None finds out with the first request.
        prompts_per_request: At most so many prompts are ranked in one request.
    """

    def __init__(
        self, session: ServerSession, tokenizer: Tokenizer, *, form: Form | None, prompts_per_request: int
    ) -> None:
        self._session = session
        self._tokenizer = tokenizer
        self._form = form
        self._prompts_per_request = prompts_per_request
        self._completions = session.url("/completions")

    def identity(self) -> Mapping[str, str]:
        """Return model, server version and options as text."""
        return self._session.identity()

    def close(self) -> None:
        """End the connections, and the server where it is ours; a second call does nothing."""
        self._session.close()

    # Ranking --------------------------------------------------------------------------------------------

    def loglikelihood(self, requests: Sequence[LikelihoodRequest]) -> list[LikelihoodAnswer]:
        """Return per-token log-probabilities of every continuation; prompts of the same tokens are sent once."""
        if not requests:
            return []
        # Threads help where the server tokenises; here they would only take turns.
        each = self._session.map if self._tokenizer.remote else map
        splits = list(each(self._split, requests))
        prompts = list(dict.fromkeys(split.ids for split in splits))
        if self._form is None:
            self._form = self._find_form(prompts[0])
        scores = dict(zip(prompts, self._score_all(prompts), strict=True))
        return [
            _answer(request, split, scores[split.ids])
            for request, split in zip(requests, splits, strict=True)
        ]

    def _split(self, request: LikelihoodRequest) -> Boundary:
        if not request.continuation:
            raise AdapterError(
                f"The continuation of {request.context[-40:]!r} is empty, so it cannot be scored."
            )
        split = self._tokenizer.split(request.context, request.continuation)
        # The server wants room for one token behind the prompt.
        limit = None if self._session.context_length is None else self._session.context_length - 1
        return cut_continuation(split, limit, len(self._tokenizer.prefix), request.continuation)

    def _score_all(self, prompts: Sequence[Ids]) -> list[ScoredPrompt]:
        share = -(-len(prompts) // self._session.concurrency)
        size = max(1, min(self._prompts_per_request, share))
        batches = [prompts[start : start + size] for start in range(0, len(prompts), size)]
        return [scored for batch in self._session.map(self._score, batches) for scored in batch]

    def _score(self, prompts: Sequence[Ids]) -> list[ScoredPrompt]:
        form = self._form or "prompt_logprobs"
        answer = self._session.client.post(
            "/completions", scoring_payload(self._session.model, prompts, form)
        )
        return read_scores(answer, prompts, form, self._completions)

    def _find_form(self, prompt: Ids) -> Form:
        """Return the form that a server of unknown kind understands."""
        payload = scoring_payload(self._session.model, [prompt], "prompt_logprobs")
        try:
            answer = self._session.client.post("/completions", payload)
        except Refusal as refusal:
            if refusal.status in (400, 422) and "prompt_logprobs" in refusal.told:
                return "echo"
            raise
        choices = answer.get("choices") if isinstance(answer, dict) else None
        first = choices[0] if isinstance(choices, list) and choices else None
        known = isinstance(first, dict) and first.get("prompt_logprobs") is not None
        return "prompt_logprobs" if known else "echo"

    # Generation -----------------------------------------------------------------------------------------

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        """Return one text a prompt; raises `CapabilityError` for a conversation where there is no chat template."""
        return self._session.map(self._generate, list(zip(prompts, options, strict=True)))

    def _generate(self, item: tuple[Prompt, GenerateOptions]) -> Generated:
        prompt, options = item
        context = self._session.context_length
        if context is not None and options.max_tokens >= context:
            raise AdapterError(
                f"No prompt is left room by max_tokens={options.max_tokens}: the server takes {context} tokens in all.",
                hint="Ask for fewer tokens, or start the server with a larger max_model_len.",
            )
        if isinstance(prompt, str):
            written = self._complete(self._tokenizer.encode(prompt), options)
        else:
            written = self._converse(prompt, options)
        check_constraint(written.generated, options, self._completions)
        return written.generated

    def _complete(self, ids: Ids, options: GenerateOptions) -> Written:
        limit = self._prompt_limit(options)
        ids, truncated = cut_prompt(ids, limit, len(self._tokenizer.prefix))
        answer = self._session.client.post("/completions", {**self._fields(options), "prompt": list(ids)})
        return read_written(answer, options, self._completions, truncated=truncated)

    def _converse(self, turns: Sequence[Turn], options: GenerateOptions) -> Written:
        payload = {**self._fields(options), "messages": chat_messages(turns)}
        limit = self._prompt_limit(options)
        try:
            answer = self._session.client.post("/chat/completions", payload)
        except Refusal as refusal:
            if "chat template" in refusal.told.lower():
                raise _no_template(self._session.model) from refusal
            ids = self._chat_ids(turns) if refusal.status == 400 and limit is not None else ()
            if limit is None or len(ids) <= limit:
                raise
            return self._complete(ids, options)
        written = read_written(answer, options, self._session.url("/chat/completions"))
        # A server that finds too little room writes less than was asked for, without a word.
        if limit is not None and written.prompt_tokens is not None and written.prompt_tokens > limit:
            return self._complete(self._chat_ids(turns), options)
        return written

    def _fields(self, options: GenerateOptions) -> dict[str, Any]:
        constraint = constraint_fields(options, guided=self._session.guided)
        return {"model": self._session.model, **NEUTRAL, **sampling_fields(options), **constraint}

    def _prompt_limit(self, options: GenerateOptions) -> int | None:
        context = self._session.context_length
        return None if context is None else context - options.max_tokens

    # Lengths --------------------------------------------------------------------------------------------

    def token_counts(self, prompts: Sequence[Prompt]) -> list[int]:
        """Return how many tokens every prompt has, special tokens and chat template included."""
        return self._session.map(self._count, list(prompts))

    def context_length(self) -> int | None:
        """Return how many tokens prompt and answer may have together, None where the server does not say."""
        return self._session.context_length

    def _count(self, prompt: Prompt) -> int:
        return len(self._tokenizer.encode(prompt) if isinstance(prompt, str) else self._chat_ids(prompt))

    def _chat_ids(self, turns: Sequence[Turn]) -> Ids:
        payload = {
            "model": self._session.model,
            "messages": chat_messages(turns),
            "add_generation_prompt": True,
        }
        try:
            answer = self._session.client.post_root("/tokenize", payload)
        except Refusal as refusal:
            if "chat template" in refusal.told.lower():
                raise _no_template(self._session.model) from refusal
            raise
        return tuple(token_ids(answer, self._session.client))


def _answer(request: LikelihoodRequest, split: Boundary, scored: ScoredPrompt) -> LikelihoodAnswer:
    # The first token of a prompt has no number, so numbers lie one place to the left.
    first = split.start - 1
    return LikelihoodAnswer(
        token_logprobs=scored.logprobs[first:],
        is_greedy=all(scored.likeliest[first:]),
        byte_length=len(request.continuation.encode("utf-8")),
        truncated=split.truncated,
        straddles=split.straddles,
    )


def _no_template(model: str) -> CapabilityError:
    return CapabilityError(
        f"The model {model!r} has no chat template, so it takes no conversations.",
        hint="Run without --chat, or give the server one: -o server_args='--chat-template FILE'",
    )
