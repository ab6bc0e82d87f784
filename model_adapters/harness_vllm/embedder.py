"""A model behind vLLM's ``/embeddings``: a server with ``--runner pooling``."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from harness import AdapterError, CapabilityError
from harness.models import Answered, Call, EmbedOptions, FloatArray, Side
from harness_vllm.answers import Embeddings, read_answer
from harness_vllm.client import StatusError
from harness_vllm.session import ServerModel, ServerSession, ability_error, in_order

TEXTS_PER_REQUEST = 32


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
