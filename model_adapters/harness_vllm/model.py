"""Models behind servers: completions, chat, and vLLM's ``/embeddings`` of a server with ``--runner pooling``."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from harness import AdapterError, CapabilityError
from harness.models import (
    Answered,
    Call,
    EmbedOptions,
    FloatArray,
    Generated,
    GenerateOptions,
    LikelihoodAnswer,
    LikelihoodRequest,
    Prompt,
    ReasoningOptions,
    Side,
    SubwordCount,
    SystemTurns,
    Turn,
)
from harness_vllm.answers import Embeddings, read_answer
from harness_vllm.client import StatusError
from harness_vllm.completions import (
    Asked,
    Unasked,
    Written,
    as_chat,
    chat_fields,
    chat_messages,
    check_constraint,
    constraint_fields,
    read_written,
    responses_payload,
)
from harness_vllm.options import ChatOptions
from harness_vllm.ranking import NEUTRAL, Ids, Ranker
from harness_vllm.session import ServerModel, ServerSession, ability_error, in_order, one_by_one
from harness_vllm.tokenizing import Tokenizer, cut_prompt, token_ids

TEXTS_PER_REQUEST = 32


class GeneratingModel(ServerModel):
    """`ScoresContinuations`, `Generates` and `CountsTokens` over HTTP.

    Args:
        session: The connection to the server, and the server itself where the adapter started it.
        tokenizer: The model's tokenizer.
        ranker: Ranks continuations.
        reasoning: How the model reasons before it answers.
    """

    def __init__(
        self,
        session: ServerSession,
        tokenizer: Tokenizer,
        *,
        ranker: Ranker,
        reasoning: ReasoningOptions,
    ) -> None:
        super().__init__(session)
        self._reasoning = reasoning
        self._opens: bool | None = None
        self._texts, self._conversations = Unasked(), Unasked()
        self._tokenizer = tokenizer
        self._ranker = ranker
        self._system = SystemTurns(session.model)

    @property
    def _completions(self) -> str:
        """The address of this thread's last request, for messages."""
        return self._session.url("/completions")

    def stream(self, call: Call, blocks: Sequence[Sequence[Any]]) -> Generator[Answered, None, None]:
        """Yield the answers of `loglikelihood` or `generate`, one by one; raises as they do, after the others."""
        if call.ability == "generate":
            return one_by_one(self._session, self._generate, call, blocks)
        if call.ability == "loglikelihood":
            return self._ranker.rank(call, blocks)
        raise ability_error(self._session.model, call.ability)

    def loglikelihood(self, requests: Sequence[LikelihoodRequest]) -> list[LikelihoodAnswer]:
        """Return per-token log-probabilities of every continuation; prompts of the same tokens are sent once."""
        return in_order(self.stream(Call(ability="loglikelihood"), [requests]), len(requests))

    def notices(self) -> Sequence[str]:
        """Return a sentence for each server that was dropped, and how log-probabilities were read."""
        return [*super().notices(), *self._ranker.notices(), *self._system.notices()]

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
        request = Asked.of(self._reasoning, options, opened=opened)
        if request.expects and not isinstance(prompt, str):
            generated = self._converse(prompt, options, request).generated
        else:
            unasked = self._texts if isinstance(prompt, str) else self._conversations
            generated = unasked.ask(lambda attempt: self._write(prompt, options, attempt).generated, request)
        generated = request.judged(generated, lambda text: len(self._tokenizer.pieces(text)))
        check_constraint(generated, options, self._completions)
        return generated

    def _write(self, prompt: Prompt, options: GenerateOptions, request: Asked) -> Written:
        if isinstance(prompt, str):
            return self._complete(self._tokenizer.encode(prompt), options, request)
        return self._converse(prompt, options, request)

    def _complete(self, ids: Ids, options: GenerateOptions, request: Asked) -> Written:
        limit = self._prompt_limit(options)
        ids, truncated = cut_prompt(ids, limit, len(self._tokenizer.prefix))
        fields = self._fields(options, request, len(ids))
        answer = self._session.client.post("/completions", {**fields, "prompt": list(ids)})
        return read_written(answer, self._completions, truncated=truncated, reading=request.reading)

    def _converse(self, turns: tuple[Turn, ...], options: GenerateOptions, request: Asked) -> Written:
        return self._system.send(
            turns, lambda sent: self._send_turns(sent, options, request), self._template_ids
        )

    def _send_turns(self, turns: tuple[Turn, ...], options: GenerateOptions, request: Asked) -> Written:
        length = len(self._chat_ids(turns)) if request.has_budget and self._session.context_length else 0
        limit = self._prompt_limit(options)
        if limit is not None and length > limit:
            return self._complete(self._chat_ids(turns), options, request)
        fields = self._fields(options, request, length)
        payload = {**fields, **chat_fields(self._reasoning), "messages": chat_messages(turns)}
        try:
            answer = self._session.client.post("/chat/completions", payload)
        except StatusError as error:
            if "chat template" in error.reason.lower():
                raise _no_template(self._session.model) from error
            ids = self._chat_ids(turns) if error.status == 400 and limit is not None else ()
            if limit is None or len(ids) <= limit:
                raise
            return self._complete(ids, options, request)
        written = read_written(answer, self._session.url("/chat/completions"), reading=request.reading)
        # A server that finds too little room writes less than requested, without a warning.
        if limit is not None and written.prompt_tokens is not None and written.prompt_tokens > limit:
            return self._complete(self._chat_ids(turns), options, request)
        return written

    def _opens_reasoning(self, turns: tuple[Turn, ...]) -> bool:
        """Return whether the chat template itself writes the mark before the reasoning, as that of DeepSeek-R1."""
        if self._opens is None:
            markers = self._reasoning.markers()
            try:
                ids = self._chat_ids(turns)
                ends = [
                    self._tokenizer.pieces(marker.start + end) for marker in markers for end in ("", "\n")
                ]
            except (AdapterError, CapabilityError):  # a server without this route, or a chat template
                ids, ends = (), []
            self._opens = any(ids[-len(end) :] == end for end in ends if end)
        return self._opens

    def _fields(self, options: GenerateOptions, request: Asked, length: int) -> dict[str, Any]:
        """Return the fields of a request whose prompt has so many tokens."""
        constraint = constraint_fields(options, guided=self._session.guided)
        context = self._session.context_length
        room = None if context is None else context - length
        sampling = request.fields(room)
        # The marks may be special tokens, which vLLM else omits.
        marks = {"skip_special_tokens": False} if request.has_budget else {}
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
        tokens = (
            self._session.map(pieces, list(texts))
            if self._tokenizer.remote
            else [pieces(text) for text in texts]
        )
        return [
            SubwordCount(tokens=len(ids), unknown=None if unknown is None else ids.count(unknown))
            for ids in tokens
        ]

    def context_length(self) -> int | None:
        """Return how many tokens prompt and answer may have together, None where the server does not say."""
        return self._session.context_length

    def _count(self, prompt: Prompt) -> int:
        return len(self._tokenizer.encode(prompt) if isinstance(prompt, str) else self._chat_ids(prompt))

    def _chat_ids(self, turns: tuple[Turn, ...]) -> Ids:
        return self._system.send(turns, self._template_ids, self._template_ids)

    def _template_ids(self, turns: tuple[Turn, ...]) -> Ids:
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


def _no_template(model: str) -> CapabilityError:
    return CapabilityError(
        f"The model {model!r} has no chat template, so it takes no conversations.",
        hint="Run without --chat, or give the server one: -o server_args='--chat-template FILE'",
    )


class ChatModel(ServerModel):
    """`Generates` over HTTP; a plain text is sent as one user turn.

    Args:
        session: The connection to the endpoint.
        options: Of the adapter: which interface, and how the model reasons before it answers.
    """

    def __init__(self, session: ServerSession, options: ChatOptions) -> None:
        super().__init__(session)
        self._options = options
        self._path = "/responses" if options.api == "responses" else "/chat/completions"
        self._unasked = Unasked()
        self._system = SystemTurns(session.model)

    def notices(self) -> Sequence[str]:
        """Return a sentence for each server that was dropped, and where system texts were moved."""
        return [*super().notices(), *self._system.notices()]

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        """Return one text per prompt; raises `CapabilityError` for a constraint other than a JSON schema."""
        pairs = list(zip(prompts, options, strict=True))
        return in_order(self.stream(Call(ability="generate"), [pairs]), len(pairs))

    def stream(self, call: Call, blocks: Sequence[Sequence[Any]]) -> Generator[Answered, None, None]:
        """Yield the answers of `generate`, one at a time; raises as it does, after the other answers."""
        if call.ability != "generate":
            raise ability_error(self._session.model, call.ability)
        return one_by_one(self._session, self._generate, call, blocks)

    def _generate(self, item: tuple[Prompt, GenerateOptions]) -> Generated:
        prompt, options = item
        turns = (Turn(role="user", text=prompt),) if isinstance(prompt, str) else prompt
        request = Asked.of(self._options, options)
        if request.expects:
            generated = self._post(turns, options, request)
        else:
            generated = self._unasked.ask(lambda attempt: self._post(turns, options, attempt), request)
        generated = request.judged(generated)
        check_constraint(generated, options, self._session.url(self._path))
        return generated

    def _post(self, turns: tuple[Turn, ...], options: GenerateOptions, request: Asked) -> Generated:
        return self._system.send(turns, lambda sent: self._send_turns(sent, options, request), None)

    def _send_turns(self, turns: tuple[Turn, ...], options: GenerateOptions, request: Asked) -> Generated:
        session, chosen = self._session, self._options
        fields = {**request.fields(session.context_length), **_response_format(options)}
        if chosen.api == "responses":
            payload = responses_payload(session.model, turns, fields, chosen.reasoning_effort)
            answer = as_chat(session.client.post(self._path, payload), session.url(self._path))
            return read_written(answer, session.url(self._path), reading=request.reading).generated
        fields[chosen.token_limit_field] = fields.pop("max_tokens")
        payload = {
            "model": session.model,
            "messages": chat_messages(turns),
            **fields,
            **chat_fields(chosen),
        }
        answer = session.client.post(self._path, payload)
        return read_written(answer, session.url(self._path), reading=request.reading).generated


def _response_format(options: GenerateOptions) -> dict[str, Any]:
    """Return OpenAI's field for a JSON schema; it has none for choices or regular expressions."""
    if options.choices is not None or options.regex is not None:
        constraint = "choices" if options.choices is not None else "a regular expression"
        raise CapabilityError(
            f"A chat endpoint cannot constrain text by {constraint}.",
            hint="Run without --constrained, or use vllm:URL.",
        )
    if options.json_schema is None:
        return {}
    schema = {"name": "answer", "schema": options.json_schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


class EmbeddingModel(ServerModel):
    """`Embeds` over HTTP.

    Args:
        session: The connection to the server, and the server itself where the adapter started it.
        prefixes: Texts put before queries and passages.
        pooling: The pooling of a server that the adapter started; None where the server decides.
    """

    def __init__(self, session: ServerSession, *, prefixes: Mapping[Side, str], pooling: str | None) -> None:
        super().__init__(session)
        self._prefixes = prefixes
        self._pooling = pooling

    @property
    def _url(self) -> str:
        """The address of this thread's last request, for messages."""
        return self._session.url("/embeddings")

    def embed(self, texts: Sequence[str], *, side: Side, options: EmbedOptions | None = None) -> FloatArray:
        """Return float32 vectors of shape (texts, dimension) with unit rows; long texts are cut at their end.

        Raises `CapabilityError` for a layer or pooling that the server does not give.
        """
        call = Call(ability="embed", arguments={"side": side, "options": options})
        rows = in_order(self.stream(call, [texts]), len(texts))
        return np.stack(rows) if rows else np.zeros((0, 0), np.float32)

    def stream(self, call: Call, blocks: Sequence[Sequence[Any]]) -> Generator[Answered, None, None]:
        """Yield the vectors of `embed`, one request's texts at a time; raises as it does."""
        if call.ability != "embed":
            raise ability_error(self._session.model, call.ability)
        options: EmbedOptions = call.arguments.get("options") or EmbedOptions()
        self._check(options)
        prefix = self._prefixes[call.arguments["side"]] if options.prefixes else ""
        return self._batches(call, blocks, prefix, options)

    def _batches(
        self, call: Call, blocks: Sequence[Sequence[str]], prefix: str, options: EmbedOptions
    ) -> Generator[Answered, None, None]:
        batches, firsts, first = [], [], 0
        for block in blocks:
            for start in range(0, len(block), TEXTS_PER_REQUEST):
                texts = [prefix + text for text in block[start : start + TEXTS_PER_REQUEST]]
                batches.append(self._payload(texts, options))
                firsts.append(first + start)
            first += len(block)
        length: int | None = None
        with closing(self._session.stream(self._ask, batches, call.stopping)) as stream:
            for number, vectors in stream:
                length = length or vectors.shape[1]
                if vectors.shape[1] != length:
                    raise AdapterError(
                        f"The model {self._session.model!r} returned vectors of different lengths."
                    )
                indices = range(firsts[number], firsts[number] + len(vectors))
                yield Answered(indices=indices, answers=list(vectors))

    def _check(self, options: EmbedOptions) -> None:
        if options.layer not in (None, "last"):
            raise CapabilityError(
                f"A vLLM server embeds from the last layer, not from the layer {options.layer!r}.",
                hint="Use hf:MODEL, which reads any layer.",
            )
        if options.pooling is not None and options.pooling != self._pooling:
            raise CapabilityError(
                f"The server pools by {self._pooling or 'what its model folder says'}, not by {options.pooling!r}.",
                hint=f"Let the adapter start it with -o pooling={options.pooling}, or use hf:MODEL.",
            )

    def _payload(self, texts: list[str], options: EmbedOptions) -> dict[str, Any]:
        limit, context = options.max_length, self._session.context_length
        if limit is not None and context is not None:
            limit = min(limit, context)
        return {
            "model": self._session.model,
            "input": texts,
            "encoding_format": "float",
            "truncate_prompt_tokens": -1 if limit is None else limit,
            "truncation_side": "right",
        }

    def _ask(self, payload: Mapping[str, Any]) -> FloatArray:
        try:
            answer = self._session.client.post("/embeddings", payload)
        except StatusError as error:
            if error.status != 404:
                raise
            raise AdapterError(
                f"The server at {self._url} does not embed ({error.reason}).",
                hint="vLLM embeds when it was started with --runner pooling.",
            ) from error
        texts = payload["input"]
        embeddings = sorted(read_answer(Embeddings, answer, self._url).data, key=lambda entry: entry.index)
        if [entry.index for entry in embeddings] != list(range(len(texts))):
            raise AdapterError(
                f"The server at {self._url} gave {len(embeddings)} vectors for {len(texts)} texts."
            )
        if len({len(entry.embedding) for entry in embeddings}) != 1:
            raise AdapterError(f"The server at {self._url} returned vectors of different lengths.")
        vectors = np.array([entry.embedding for entry in embeddings])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        bad = ~(np.isfinite(lengths[:, 0]) & (lengths[:, 0] > 0))
        if bad.any():
            text = texts[int(bad.argmax())]
            raise AdapterError(
                f"The server at {self._url} returned a zero or non-finite vector for {text[:60]!r}."
            )
        return np.asarray(vectors / lengths, np.float32)
