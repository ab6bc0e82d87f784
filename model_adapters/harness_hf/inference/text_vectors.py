"""Vectors of texts and of words from a network's hidden states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from harness import AdapterError, EmbedOptions, FloatArray, Side, UsageError
from harness.models.requests import Call
from harness_hf.inference.answer_stream import Procedure
from harness_hf.inference.batching import Encoded
from harness_hf.inference.session import CHUNK, Inputs, ModelSession
from harness_hf.inference.template import SubwordCounting, subword_ids
from harness_hf.inference.word_vectors import EncoderReading, WordVectors, pool, read_layer, resolve_layer
from harness_hf.model_folder import Pooling

__all__ = [
    "EmbedPlan",
    "TextVectors",
    "row_procedure",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedPlan:
    """How a text becomes a vector, decided from the request, the options and the folder."""

    pooling: Pooling
    layer: int
    limit: int
    """Pieces a text is cut at, special pieces included."""
    prefix: str


class TextVectors(SubwordCounting, WordVectors):
    """Reads an opened model's hidden states; adapters of bare models inherit `embed` and `hidden_states`."""

    _session: ModelSession

    def _encoder_reading(self) -> EncoderReading:
        session = self._session

        def read(
            encoded: Sequence[Encoded], layers: Sequence[int]
        ) -> Iterator[tuple[list[int], list[torch.Tensor]]]:
            def forward(inputs: Inputs) -> list[torch.Tensor]:
                states = session.backbone(**inputs, output_hidden_states=True).hidden_states
                return [states[layer] for layer in layers]

            return session.run(encoded, forward, ability="hidden_states")

        return EncoderReading(
            template=session.single,
            limit=session.length_limit(),
            width=session.width,
            read=read,
        )

    def embed(self, texts: Sequence[str], *, side: Side, options: EmbedOptions | None = None) -> FloatArray:
        """Return float32 vectors of shape (texts, dimension) with unit rows."""
        call = Call(ability="embed", arguments={"side": side, "options": options})
        return self._rows(call, texts, CHUNK, self._session.width)

    def procedure(self, call: Call) -> Procedure:
        """Return how a call's requests are answered: here those of `embed`."""
        if call.ability != "embed":
            return super().procedure(call)
        session = self._session
        plan = self.plan(call.arguments["side"], call.arguments.get("options") or EmbedOptions())
        if plan.pooling == "pooler" and plan.layer != session.depth:
            raise UsageError(
                f"Pooling 'pooler' reads the last layer, {session.depth}; layer {plan.layer} was asked for."
            )

        def forward(inputs: Inputs) -> FloatArray:
            if plan.pooling == "pooler":
                vectors = session.backbone(**inputs).pooler_output.float()
            else:
                states = read_layer(session.backbone, inputs, plan.layer, session.depth)
                vectors = pool(states, inputs["attention_mask"].to(states.device), plan.pooling)
            unit: FloatArray = torch.nn.functional.normalize(vectors, dim=-1).cpu().numpy()
            return unit

        def prepare(texts: Sequence[str]) -> list[Encoded]:
            return session.encode([plan.prefix + text for text in texts], None, plan.limit)

        return row_procedure(session, call, prepare, forward, "vectors")

    def plan(self, side: Side, options: EmbedOptions) -> EmbedPlan:
        """Return how a text of `side` becomes a vector; raises `UsageError` for what the model does not have."""
        session = self._session
        own_limit = session.options.max_length or session.sentence_files.max_length
        layer = session.options.layer if options.layer is None else options.layer
        return EmbedPlan(
            pooling=self._pooling(options.pooling),
            layer=resolve_layer(layer, session.depth),
            limit=session.length_limit(options.max_length or own_limit),
            prefix=self._prefix(side) if options.prefixes else "",
        )

    def text_room(self, texts: int, options: EmbedOptions | None = None) -> int | None:
        """Return how many pieces a query has room for after its prefix; see `CutsTexts`."""
        plan = self.plan("query", options or EmbedOptions())
        # A piece may hold the end of the prefix and the beginning of a text, so a word follows it.
        alone, prefixed = subword_ids(self._session, ["a", plan.prefix + "a"])
        return plan.limit - self._session.single.size - len(prefixed) + len(alone)

    def _pooling(self, asked: Pooling | None) -> Pooling:
        """Return the pooling of the request, the options or the model folder, where it is possible."""
        files = self._session.sentence_files
        pooling = asked or self._session.options.pooling
        if pooling is None and files.unsupported_pooling:
            raise AdapterError(
                f"The model {self._session.ref!r} asks for {files.unsupported_pooling} pooling, "
                "which this adapter does not have.",
                hint="Pass -o pooling=mean (or cls, last, pooler).",
            )
        return self._require_pooler(pooling or files.pooling or "mean")

    def _require_pooler(self, pooling: Pooling) -> Pooling:
        """Return `pooling`; raises `UsageError` for 'pooler' where its weights are not trained."""
        if pooling == "pooler" and not self._session.has_pooler:
            raise UsageError(
                f"{self._session.ref!r} has no trained pooler weights, which pooling 'pooler' needs.",
                hint="Pass -o pooling=mean or -o pooling=cls.",
            )
        return pooling

    def _prefix(self, side: Literal["query", "passage"]) -> str:
        options, files = self._session.options, self._session.sentence_files
        given = options.query_prefix if side == "query" else options.passage_prefix
        declared = files.query_prefix if side == "query" else files.passage_prefix
        return declared if given is None else given


def row_procedure(
    session: ModelSession,
    call: Call,
    prepare: Callable[[Sequence[Any]], Sequence[Encoded]],
    forward: Callable[[Inputs], FloatArray],
    what: str,
) -> Procedure:
    """Return a procedure whose requests are one sequence each, answered by one row of what `forward` returns."""

    def answer(encoded: Sequence[Encoded]) -> Iterator[tuple[list[int], list[FloatArray]]]:
        for rows, values in session.run(encoded, forward, ability=call.ability, stopping=call.stopping):
            session.require_finite(values, what)
            yield rows, list(values)

    return Procedure(prepare=prepare, answer=answer)
