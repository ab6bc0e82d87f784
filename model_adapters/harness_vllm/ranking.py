"""Continuations ranked through ``/completions``: what is sent together, and the checks before the first request."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from harness import AdapterError
from harness.models import Answered, Call, LikelihoodAnswer, LikelihoodRequest
from harness_vllm.answers import read_choices
from harness_vllm.client import NoAnswer, StatusError
from harness_vllm.scoring import (
    Form,
    Ids,
    ScoredPrompt,
    next_token_payload,
    read_next_tokens,
    read_scores,
    require_order,
    scoring_payload,
)
from harness_vllm.session import ServerSession
from harness_vllm.tokenizing import PROBE, Boundary, Tokenizer, cut_continuation

Scoring = Literal["auto", "prompt_logprobs", "echo", "next_token"]
SAME = 1e-3
"""Log-probabilities of the two ways that differ by no more are the same."""
CHECKED = 24
"""Tokens of the context of the check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """Prompts of one request, each with the indices of what it answers."""

    requests: Mapping[Ids, Sequence[int]]
    next_token: bool = False
    """Whether the prompts lose their last tokens, which are read from the token written next."""


class Ranker:
    """Reads log-probabilities of continuations from a server.

    Args:
        session: The connection to the server.
        tokenizer: The model's tokenizer.
        scoring: How log-probabilities are requested; ``auto`` finds the form with the first request.
        prompts_per_request: The most prompts that are ranked in one request.
        orderly: Whether the server cannot mix up prompts (vLLM issue 42019), so that this is not checked.
    """

    def __init__(
        self,
        session: ServerSession,
        tokenizer: Tokenizer,
        *,
        scoring: Scoring,
        prompts_per_request: int,
        orderly: bool,
    ) -> None:
        self._session = session
        self._tokenizer = tokenizer
        self._scoring = scoring
        self._prompts_per_request = prompts_per_request
        self._orderly = orderly
        self._form: Form | None = None
        self._reads_next = False
        self._difference: float | None = None
        """Between both ways in the check; None where it was not made or the server cannot read the next token."""
        self._read = {True: 0, False: 0}

    def notices(self) -> Sequence[str]:
        """Return how log-probabilities were read, where it was not from whole prompts as always."""
        if self._difference is None:
            return []
        difference = f"the two ways differed by {self._difference:.1g} in a check"
        if not self._reads_next:
            return [f"All continuations were scored as whole prompts, not by their next token: {difference}."]
        if not (read := self._read[True]):
            return []
        remainder = ", the others as whole prompts" if self._read[False] else ""
        return [
            f"{read} of {read + self._read[False]} continuations were scored by the next token of their "
            f"context{remainder}: {difference}."
        ]

    def rank(
        self, call: Call, blocks: Sequence[Sequence[LikelihoodRequest]]
    ) -> Generator[Answered, None, None]:
        """Yield the answers as they come; prompts of the same tokens are sent once."""
        requests = [request for block in blocks for request in block]
        splits = self._split_all(requests, call)
        if call.stopping() or not requests:
            return
        if self._form is None:
            forms = dict(self._session.stream(self._prepare, [splits[0].ids], call.stopping))
            if not forms:  # the user stops the run
                return
            self._form = forms[0]
        batches: list[_Batch] = []
        first = 0
        for block in blocks:
            batches += self._batches(splits, range(first, first + len(block)))
            first += len(block)
        with closing(self._session.stream(self._score, batches, call.stopping)) as stream:
            for number, scored in stream:
                answers = {
                    index: _answer(requests[index], splits[index], scored[ids])
                    for ids, indices in batches[number].requests.items()
                    for index in indices
                }
                for ids, indices in batches[number].requests.items():
                    self._read[scored[ids].next_token] += len(indices)
                yield Answered(indices=list(answers), answers=list(answers.values()))

    def _split_all(self, requests: Sequence[LikelihoodRequest], call: Call) -> Sequence[Boundary]:
        """Return the tokens of every request; fewer where the user stops the run."""
        if not self._tokenizer.remote:
            # Threads would only take turns here.
            return [self._split(request) for request in requests]
        splits = dict(self._session.stream(self._split, requests, call.stopping))
        return [splits[index] for index in sorted(splits)]

    def _split(self, request: LikelihoodRequest) -> Boundary:
        if not request.continuation:
            raise AdapterError(
                f"The continuation of {request.context[-40:]!r} is empty, so it cannot be scored."
            )
        split = self._tokenizer.split(request.context, request.continuation)
        return cut_continuation(split, self._limit(), len(self._tokenizer.prefix), request.continuation)

    def _limit(self) -> int | None:
        # The server needs room for one token after the prompt.
        length = self._session.context_length
        return None if length is None else length - 1

    def _batches(self, splits: Sequence[Boundary], block: range) -> list[_Batch]:
        """Return the batches of a block; choices of one token after one context are one prompt."""
        requests: dict[Ids, list[int]] = {}
        contexts: dict[Ids, dict[Ids, None]] = {}
        for index in block:
            split = splits[index]
            requests.setdefault(split.ids, []).append(index)
            if self._reads_next and split.start == len(split.ids) - 1:
                contexts.setdefault(split.ids[:-1], {})[split.ids] = None
        choices = [list(prompts) for prompts in contexts.values() if len(prompts) > 1]
        apart = {ids for prompts in choices for ids in prompts}
        singles = [[ids] for ids in requests if ids not in apart]
        return [
            _Batch(requests={ids: requests[ids] for ids in prompts}, next_token=next_token)
            for groups, next_token in ((choices, True), (singles, False))
            for prompts in self._shares(groups)
        ]

    def _shares(self, groups: Sequence[Sequence[Ids]]) -> list[list[Ids]]:
        """Return the prompts of each request; one group costs the server one prompt."""
        size = max(1, min(self._prompts_per_request, -(-len(groups) // self._session.concurrency)))
        remaining = iter(groups)
        return [
            [ids for group in islice(remaining, size) for ids in group] for _ in range(0, len(groups), size)
        ]

    def _score(self, batch: _Batch) -> dict[Ids, ScoredPrompt]:
        prompts = list(batch.requests)
        scores = self._score_next(prompts) if batch.next_token else {}
        unscored = [ids for ids in prompts if ids not in scores]
        for first in range(0, len(unscored), self._prompts_per_request):
            chunk = unscored[first : first + self._prompts_per_request]
            scores |= zip(chunk, self._score_whole(chunk), strict=True)
        return scores

    def _score_whole(self, prompts: Sequence[Ids], form: Form | None = None) -> list[ScoredPrompt]:
        used = form or self._form or "prompt_logprobs"
        answer = self._session.client.post(
            "/completions", scoring_payload(self._session.model, prompts, used)
        )
        return read_scores(answer, prompts, used, self._url)

    def _score_next(self, prompts: Sequence[Ids]) -> dict[Ids, ScoredPrompt]:
        """Return the prompts whose last token is in the server's answer."""
        contexts = list(dict.fromkeys(ids[:-1] for ids in prompts))
        tables = dict(zip(contexts, self._next_tables(contexts, {ids[-1] for ids in prompts}), strict=True))
        scores = {}
        for ids in prompts:
            table = tables[ids[:-1]]
            if (number := table.get(ids[-1])) is not None:
                scores[ids] = ScoredPrompt(
                    logprobs=(number,), likeliest=(number >= max(table.values()),), next_token=True
                )
        return scores

    def _next_tables(self, contexts: Sequence[Ids], tokens: set[int]) -> list[dict[int, float]]:
        payload = next_token_payload(self._session.model, contexts, tokens)
        answer = self._session.client.post("/completions", payload)
        return read_next_tokens(answer, contexts, self._url)

    @property
    def _url(self) -> str:
        return self._session.url("/completions")

    # Before the first request ---------------------------------------------------------------------------

    def _prepare(self, prompt: Ids) -> Form:
        """Return the form of requests, and find out what else the server can do.

        Raises `AdapterError` for a server whose log-probabilities depend on the order of requests.
        """
        forms: Mapping[str, Form] = {"echo": "echo", "prompt_logprobs": "prompt_logprobs"}
        form = forms.get(self._scoring) or self._find_form(prompt)
        if not self._orderly:
            self._require_order(form)
        if form == "prompt_logprobs" and self._scoring != form:
            self._difference = self._compare()
            self._reads_next = self._difference is not None and (
                self._scoring == "next_token" or self._difference <= SAME
            )
        if self._scoring == "next_token" and not self._reads_next:
            raise AdapterError(
                f"The server at {self._url} does not give the log-probabilities of the next token by token id.",
                hint="Run without -o scoring=next_token.",
            )
        return form

    def _find_form(self, prompt: Ids) -> Form:
        """Return the form that a server of unknown kind understands."""
        payload = scoring_payload(self._session.model, [prompt], "prompt_logprobs")
        try:
            answer = self._session.client.post("/completions", payload)
        except StatusError as error:
            if error.status in (400, 422) and "prompt_logprobs" in error.reason:
                return "echo"
            raise
        [choice], _ = read_choices(answer, 1, self._url)
        return "prompt_logprobs" if choice.prompt_logprobs is not None else "echo"

    def _require_order(self, form: Form) -> None:
        ids, limit = self._tokenizer.pieces(PROBE), self._limit()
        for client in self._session.client.clients:
            try:
                require_order(
                    client,
                    self._session.model,
                    form=form,
                    ids=ids,
                    limit=limit,
                    prompts_per_request=self._prompts_per_request,
                )
            except NoAnswer:
                # One that is gone is dropped with the first request that it leaves unanswered.
                if len(self._session.client.clients) == 1:
                    raise

    def _compare(self) -> float | None:
        """Return how far the next token's log-probabilities are from those of whole prompts; None without them."""
        limit = self._limit()
        ids = (*self._tokenizer.prefix, *self._tokenizer.pieces(PROBE))[: min(CHECKED, limit or CHECKED)]
        context, tokens = ids[:-1], {ids[0], ids[-1]}
        try:
            [table] = self._next_tables([context], tokens) if context else [{}]
        except StatusError as error:
            if error.status in (400, 422):  # it knows the field or so many tokens not
                return None
            raise
        numbers = list(table.items())[: self._prompts_per_request]
        if not numbers:
            return None
        scored = self._score_whole([(*context, token) for token, _ in numbers], "prompt_logprobs")
        return max(
            abs(prompt.logprobs[-1] - number) for prompt, (_, number) in zip(scored, numbers, strict=True)
        )


def _answer(request: LikelihoodRequest, split: Boundary, scored: ScoredPrompt) -> LikelihoodAnswer:
    count = len(split.ids) - split.start
    return LikelihoodAnswer(
        token_logprobs=scored.logprobs[-count:],
        is_greedy=all(scored.likeliest[-count:]),
        byte_length=len(request.continuation.encode("utf-8")),
        truncated=split.truncated,
        straddles=split.straddles,
    )
