"""A model behind vLLM's completions: ranks continuations, writes text, counts tokens."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

from harness import (
    AdapterError,
    CapabilityError,
    Generated,
    GenerateOptions,
    LikelihoodAnswer,
    LikelihoodRequest,
    Prompt,
    SubwordCount,
    Turn,
)
from harness.models.options import ReasoningOptions
from harness.models.requests import Answered, Call
from harness_vllm.answers import read_choices
from harness_vllm.client import StatusError
from harness_vllm.completions import (
    Form,
    Ids,
    ScoredPrompt,
    Written,
    chat_messages,
    check_constraint,
    constraint_fields,
    read_scores,
    read_written,
    scoring_payload,
)
from harness_vllm.reasoning import Asked, chat_fields
from harness_vllm.session import ServerModel, ServerSession, ability_error, in_order, one_by_one
from harness_vllm.tokenizing import Boundary, Tokenizer, cut_continuation, cut_prompt, token_ids

__all__ = ["ChatModel", "GeneratingModel"]

NEUTRAL: Mapping[str, Any] = {
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""Sampling that a server would else take from the model folder's generation_config.json."""

_Batch = Mapping[Ids, Sequence[int]]
"""Prompts of one request, each with the indices of what it answers."""


class GeneratingModel(ServerModel):
    """`ScoresContinuations`, `Generates` and `CountsTokens` over HTTP.

    Args:
        session: The connection to the server, and the server itself where the adapter started it.
        tokenizer: The model's tokenizer.
        form: The form of requests for log-probabilities of prompts; None finds the form with the first request.
        prompts_per_request: The most prompts that are ranked in one request.
        reasoning: How the model reasons before it answers.
    """

    def __init__(
        self,
        session: ServerSession,
        tokenizer: Tokenizer,
        *,
        form: Form | None,
        prompts_per_request: int,
        reasoning: ReasoningOptions,
    ) -> None:
        super().__init__(session)
        self._reasoning = reasoning
        self._opens: bool | None = None
        self._tokenizer = tokenizer
        self._form = form
        self._prompts_per_request = prompts_per_request

    @property
    def _completions(self) -> str:
        """The address of this thread's last request, for messages."""
        return self._session.url("/completions")

    def stream(self, call: Call, blocks: Sequence[Sequence[Any]]) -> Generator[Answered, None, None]:
        """Yield what `loglikelihood` or `generate` returns, one by one; raises as they do, after the other answers."""
        if call.ability == "generate":
            return one_by_one(self._session, self._generate, call, blocks)
        if call.ability == "loglikelihood":
            return self._rank(call, blocks)
        raise ability_error(self._session.model, call.ability)

    # Ranking --------------------------------------------------------------------------------------------

    def loglikelihood(self, requests: Sequence[LikelihoodRequest]) -> list[LikelihoodAnswer]:
        """Return per-token log-probabilities of every continuation; prompts of the same tokens are sent once."""
        return in_order(self.stream(Call(ability="loglikelihood"), [requests]), len(requests))

    def _rank(
        self, call: Call, blocks: Sequence[Sequence[LikelihoodRequest]]
    ) -> Generator[Answered, None, None]:
        requests = [request for block in blocks for request in block]
        splits = self._split_all(requests, call)
        if call.stopping() or not requests:
            return
        if self._form is None:
            forms = dict(self._session.stream(self._find_form, [splits[0].ids], call.stopping))
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
                found = {
                    index: _answer(requests[index], splits[index], scored[ids])
                    for ids, indices in batches[number].items()
                    for index in indices
                }
                yield Answered(indices=list(found), answers=list(found.values()))

    def _split_all(self, requests: Sequence[LikelihoodRequest], call: Call) -> Sequence[Boundary]:
        """Return the tokens of every request; fewer where the user stops the run."""
        if not self._tokenizer.remote:
            # Threads would only take turns here.
            return [self._split(request) for request in requests]
        found = dict(self._session.stream(self._split, requests, call.stopping))
        return [found[index] for index in sorted(found)]

    def _split(self, request: LikelihoodRequest) -> Boundary:
        if not request.continuation:
            raise AdapterError(
                f"The continuation of {request.context[-40:]!r} is empty, so it cannot be scored."
            )
        split = self._tokenizer.split(request.context, request.continuation)
        # The server needs room for one token after the prompt.
        limit = None if self._session.context_length is None else self._session.context_length - 1
        return cut_continuation(split, limit, len(self._tokenizer.prefix), request.continuation)

    def _batches(self, splits: Sequence[Boundary], block: range) -> list[_Batch]:
        """Return what is sent together of a block: prompts, each once, with the requests that they answer."""
        requests: dict[Ids, list[int]] = {}
        for index in block:
            requests.setdefault(splits[index].ids, []).append(index)
        share = -(-len(requests) // self._session.concurrency)
        size = max(1, min(self._prompts_per_request, share))
        prompts = iter(requests.items())
        return [dict(islice(prompts, size)) for _ in range(0, len(requests), size)]

    def _score(self, batch: _Batch) -> dict[Ids, ScoredPrompt]:
        form, prompts = self._form or "prompt_logprobs", list(batch)
        answer = self._session.client.post(
            "/completions", scoring_payload(self._session.model, prompts, form)
        )
        return dict(zip(prompts, read_scores(answer, prompts, form, self._completions), strict=True))

    def _find_form(self, prompt: Ids) -> Form:
        """Return the form that a server of unknown kind understands."""
        payload = scoring_payload(self._session.model, [prompt], "prompt_logprobs")
        try:
            answer = self._session.client.post("/completions", payload)
        except StatusError as error:
            if error.status in (400, 422) and "prompt_logprobs" in error.reason:
                return "echo"
            raise
        [choice], _ = read_choices(answer, 1, self._completions)
        return "prompt_logprobs" if choice.prompt_logprobs is not None else "echo"

    # Generation -----------------------------------------------------------------------------------------

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        """Return one text per prompt; raises `CapabilityError` for a conversation where there is no chat template."""
        pairs = list(zip(prompts, options, strict=True))
        return in_order(self.stream(Call(ability="generate"), [pairs]), len(pairs))

    def _generate(self, item: tuple[Prompt, GenerateOptions]) -> Generated:
        prompt, options = item
        context = self._session.context_length
        if context is not None and options.max_tokens >= context:
            raise AdapterError(
                f"max_tokens={options.max_tokens} leaves no room for a prompt: "
                f"the server takes {context} tokens in all.",
                hint="Ask for fewer tokens, or start the server with a larger max_model_len.",
            )
        opened = not isinstance(prompt, str) and self._opens_reasoning(prompt)
        asked = Asked.of(self._reasoning, options, opened=opened)
        if asked.expects and not isinstance(prompt, str):
            written = self._converse(prompt, options, asked)
        else:
            written = self._write(prompt, options, asked.without_budget())
            if written.generated.reasoning is not None:
                # It reasons unasked: the stop strings and the limit of the answer may have ended the reasoning.
                written = self._write(prompt, options, asked)
        generated = asked.judged(written.generated, lambda text: len(self._tokenizer.pieces(text)))
        check_constraint(generated, options, self._completions)
        return generated

    def _write(self, prompt: Prompt, options: GenerateOptions, asked: Asked) -> Written:
        if isinstance(prompt, str):
            return self._complete(self._tokenizer.encode(prompt), options, asked)
        return self._converse(prompt, options, asked)

    def _complete(self, ids: Ids, options: GenerateOptions, asked: Asked) -> Written:
        limit = self._prompt_limit(options)
        ids, truncated = cut_prompt(ids, limit, len(self._tokenizer.prefix))
        fields = self._fields(options, asked, len(ids))
        answer = self._session.client.post("/completions", {**fields, "prompt": list(ids)})
        return read_written(answer, self._completions, truncated=truncated, reading=asked.reading)

    def _converse(self, turns: Sequence[Turn], options: GenerateOptions, asked: Asked) -> Written:
        length = len(self._chat_ids(turns)) if asked.has_budget and self._session.context_length else 0
        limit = self._prompt_limit(options)
        if limit is not None and length > limit:
            return self._complete(self._chat_ids(turns), options, asked)
        fields = self._fields(options, asked, length)
        payload = {**fields, **chat_fields(self._reasoning), "messages": chat_messages(turns)}
        try:
            answer = self._session.client.post("/chat/completions", payload)
        except StatusError as error:
            if "chat template" in error.reason.lower():
                raise _no_template(self._session.model) from error
            ids = self._chat_ids(turns) if error.status == 400 and limit is not None else ()
            if limit is None or len(ids) <= limit:
                raise
            return self._complete(ids, options, asked)
        written = read_written(answer, self._session.url("/chat/completions"), reading=asked.reading)
        # A server that finds too little room writes less than requested, without a warning.
        if limit is not None and written.prompt_tokens is not None and written.prompt_tokens > limit:
            return self._complete(self._chat_ids(turns), options, asked)
        return written

    def _opens_reasoning(self, turns: Sequence[Turn]) -> bool:
        """Return whether the chat template itself writes the mark before the reasoning, as that of DeepSeek-R1."""
        if self._opens is None:
            markers = self._reasoning.markers()
            try:
                ids = self._chat_ids(turns)
                ends = [self._tokenizer.pieces(one.start + end) for one in markers for end in ("", "\n")]
            except (AdapterError, CapabilityError):  # a server without this route, or a chat template
                ids, ends = (), []
            self._opens = any(ids[-len(end) :] == end for end in ends if end)
        return self._opens

    def _fields(self, options: GenerateOptions, asked: Asked, length: int) -> dict[str, Any]:
        """Return the fields of a request whose prompt has so many tokens."""
        constraint = constraint_fields(options, guided=self._session.guided)
        context = self._session.context_length
        room = None if context is None else context - length
        sampling = asked.fields(room)
        # The marks may be special tokens, which vLLM else omits.
        marks = {"skip_special_tokens": False} if asked.has_budget else {}
        return {"model": self._session.model, **NEUTRAL, **sampling, **constraint, **marks}

    def _prompt_limit(self, options: GenerateOptions) -> int | None:
        context = self._session.context_length
        return None if context is None else context - options.max_tokens

    # Lengths --------------------------------------------------------------------------------------------

    def token_counts(self, prompts: Sequence[Prompt]) -> list[int]:
        """Return how many tokens every prompt has, special tokens and chat template included."""
        return self._session.map(self._count, list(prompts))

    def subword_counts(self, texts: Sequence[str]) -> list[SubwordCount]:
        """Return the tokens of each text without special tokens; one request per text where the server counts."""
        pieces, unknown = self._tokenizer.pieces, self._tokenizer.unknown
        found = (
            self._session.map(pieces, list(texts))
            if self._tokenizer.remote
            else [pieces(text) for text in texts]
        )
        return [
            SubwordCount(tokens=len(ids), unknown=None if unknown is None else ids.count(unknown))
            for ids in found
        ]

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
            **chat_fields(self._reasoning, counting=True),
        }
        try:
            answer = self._session.client.post_root("/tokenize", payload)
        except StatusError as error:
            if "chat template" in error.reason.lower():
                raise _no_template(self._session.model) from error
            raise
        return tuple(token_ids(answer, self._session.client))


def _answer(request: LikelihoodRequest, split: Boundary, scored: ScoredPrompt) -> LikelihoodAnswer:
    # The first token of a prompt has no log-probability, so all are shifted by one to the left.
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


class ChatModel(ServerModel):
    """`Generates` over HTTP; a plain text is sent as one user turn.

    Args:
        session: The connection to the endpoint.
        token_limit_field: What the endpoint calls the limit of written tokens.
        reasoning: How the model reasons before it answers.
    """

    def __init__(
        self, session: ServerSession, *, token_limit_field: str, reasoning: ReasoningOptions
    ) -> None:
        super().__init__(session)
        self._reasoning = reasoning
        self._token_limit_field = token_limit_field

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        """Return one text per prompt; raises `CapabilityError` for a constraint other than a JSON schema."""
        pairs = list(zip(prompts, options, strict=True))
        return in_order(self.stream(Call(ability="generate"), [pairs]), len(pairs))

    def stream(self, call: Call, blocks: Sequence[Sequence[Any]]) -> Generator[Answered, None, None]:
        """Yield what `generate` returns, one answer at a time; raises as it does, after the other answers."""
        if call.ability != "generate":
            raise ability_error(self._session.model, call.ability)
        return one_by_one(self._session, self._generate, call, blocks)

    def _generate(self, item: tuple[Prompt, GenerateOptions]) -> Generated:
        prompt, options = item
        turns = (Turn(role="user", text=prompt),) if isinstance(prompt, str) else prompt
        asked = Asked.of(self._reasoning, options)
        generated = self._post(turns, options, asked if asked.expects else asked.without_budget())
        if generated.reasoning is not None and not asked.expects:
            # It reasons unasked: the stop strings and the limit of the answer may have ended the reasoning.
            generated = self._post(turns, options, asked)
        generated = asked.judged(generated)
        check_constraint(generated, options, self._session.url("/chat/completions"))
        return generated

    def _post(self, turns: Sequence[Turn], options: GenerateOptions, asked: Asked) -> Generated:
        context = self._session.context_length
        fields = asked.fields(context)
        fields[self._token_limit_field] = fields.pop("max_tokens")
        payload = {
            "model": self._session.model,
            "messages": chat_messages(turns),
            **fields,
            **chat_fields(self._reasoning),
            **_response_format(options),
        }
        answer = self._session.client.post("/chat/completions", payload)
        url = self._session.url("/chat/completions")
        return read_written(answer, url, reading=asked.reading).generated


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
