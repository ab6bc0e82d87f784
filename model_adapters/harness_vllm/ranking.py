"""Continuations ranked by log-probabilities through ``/completions``: requests, what is sent together, and checks.

A server is checked before the first request.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from harness import AdapterError
from harness.models import Answered, Call, LikelihoodAnswer, LikelihoodRequest
from harness_vllm.answers import Choice, read_choices
from harness_vllm.client import Client, NoAnswer, StatusError
from harness_vllm.session import ServerSession
from harness_vllm.tokenizing import PROBE, Boundary, Tokenizer, cut_continuation

_Form = Literal["prompt_logprobs", "echo"]
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
LONGEST = 288
"""Tokens of a prompt at most: two blocks of the cache, which has 16 tokens a block on GPUs and 128 on CPUs."""
NOISE = 0.5
"""What rounding may change: logits of bfloat16 are 0.125 apart between 16 and 32. Stale numbers are anything."""
Scoring = Literal["auto", "prompt_logprobs", "echo", "next_token"]
SAME = 1e-3
"""Log-probabilities of the two ways that differ by no more are the same."""
CHECKED = 24
"""Tokens of the context of the check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPrompt:
    """Numbers of the last tokens of a prompt: of every token but the first, which has none, or of the last one."""

    logprobs: tuple[float, ...]
    likeliest: tuple[bool, ...]
    """Whether the token is the one that the model would have chosen."""
    next_token: bool = False
    """Whether the last token was read as the token written next after the others."""


def _scoring_payload(model: str, prompts: Sequence[Ids], form: _Form) -> dict[str, Any]:
    """Return the request for the log-probabilities of prompts, given as token ids.

    ``prompt_logprobs: 0`` is vLLM's own and gives the prompt's tokens alone, with their ranks; ``echo`` with
    ``logprobs: 1`` is the older form of OpenAI's completions.
    """
    fields: dict[str, Any] = (
        {"prompt_logprobs": 0} if form == "prompt_logprobs" else {"echo": True, "logprobs": 1}
    )
    prompt = [list(ids) for ids in prompts] if len(prompts) > 1 else list(prompts[0])
    return {"model": model, "prompt": prompt, "max_tokens": 1, "temperature": 0, **fields}


def read_scores(answer: Any, prompts: Sequence[Ids], form: _Form, url: str) -> list[ScoredPrompt]:
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


def _next_token_payload(model: str, contexts: Sequence[Ids], tokens: Iterable[int]) -> dict[str, Any]:
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


def _read_next_tokens(answer: Any, contexts: Sequence[Ids], url: str) -> list[dict[int, float]]:
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


def _require_order(
    client: Client, model: str, *, form: _Form, ids: Ids, limit: int | None, prompts_per_request: int
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
            answer = client.post("/completions", _scoring_payload(model, prompts, form))
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
        self._form: _Form | None = None
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

    def _score_whole(self, prompts: Sequence[Ids], form: _Form | None = None) -> list[ScoredPrompt]:
        used = form or self._form or "prompt_logprobs"
        answer = self._session.client.post(
            "/completions", _scoring_payload(self._session.model, prompts, used)
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
        payload = _next_token_payload(self._session.model, contexts, tokens)
        answer = self._session.client.post("/completions", payload)
        return _read_next_tokens(answer, contexts, self._url)

    @property
    def _url(self) -> str:
        return self._session.url("/completions")

    # Before the first request ---------------------------------------------------------------------------

    def _prepare(self, prompt: Ids) -> _Form:
        """Return the form of requests, and find out what else the server can do.

        Raises `AdapterError` for a server whose log-probabilities depend on the order of requests.
        """
        forms: Mapping[str, _Form] = {"echo": "echo", "prompt_logprobs": "prompt_logprobs"}
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

    def _find_form(self, prompt: Ids) -> _Form:
        """Return the form that a server of unknown kind understands."""
        payload = _scoring_payload(self._session.model, [prompt], "prompt_logprobs")
        try:
            answer = self._session.client.post("/completions", payload)
        except StatusError as error:
            if error.status in (400, 422) and "prompt_logprobs" in error.reason:
                return "echo"
            raise
        [choice], _ = read_choices(answer, 1, self._url)
        return "prompt_logprobs" if choice.prompt_logprobs is not None else "echo"

    def _require_order(self, form: _Form) -> None:
        ids, limit = self._tokenizer.pieces(PROBE), self._limit()
        for client in self._session.client.clients:
            try:
                _require_order(
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
