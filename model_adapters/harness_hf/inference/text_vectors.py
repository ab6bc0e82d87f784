"""Vectors of texts and of words from a network's hidden states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from harness import AdapterError, UsageError, near_names
from harness.models import Call, EmbedOptions, FloatArray, Side
from harness_hf.inference.answer_stream import Procedure
from harness_hf.inference.batching import Encoded
from harness_hf.inference.sentence_modules import unit_rows
from harness_hf.inference.session import CHUNK, Inputs, ModelSession
from harness_hf.inference.template import SubwordCounting, subword_ids
from harness_hf.inference.word_vectors import EncoderReading, WordVectors, pool, read_layer, resolve_layer
from harness_hf.model_folder import DenseModule, Pooling


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedPlan:
    """How a text becomes a vector, decided from the request, the options and the folder."""

    pooling: tuple[Pooling, ...]
    """Ways of pooling, whose vectors are joined."""
    layer: int
    limit: int
    """Pieces a text is cut at, special pieces included."""
    prefix: str
    pools_prefix: bool = True
    modules: tuple[DenseModule | None, ...] = ()
    """What follows pooling; None divides a vector by its length."""
    dimensions: int | None = None
    """How many of the first numbers of a vector are kept."""

    def width(self, states: int) -> int:
        """Return the length of a vector that is made of states of this length."""
        dense = [module.width for module in self.modules if module is not None]
        length = dense[-1] if dense else states * len(self.pooling)
        return min(length, self.dimensions or length)


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
        width = self.plan(side, options or EmbedOptions()).width(self._session.width)
        return self._rows(call, texts, CHUNK, width)

    def procedure(self, call: Call) -> Procedure:
        """Return how a call's requests are answered: here those of `embed`."""
        if call.ability != "embed":
            return super().procedure(call)
        session = self._session
        plan = self.plan(call.arguments["side"], call.arguments.get("options") or EmbedOptions())
        if "pooler" in plan.pooling and plan.layer != session.depth:
            raise UsageError(
                f"Pooling 'pooler' reads the last layer, {session.depth}; layer {plan.layer} was asked for."
            )
        skipped = 0 if plan.pools_prefix else self._prefix_size(plan.prefix)
        modules = [session.open_module(module) for module in plan.modules]

        def forward(inputs: Inputs) -> FloatArray:
            vectors = self._pooled(inputs, plan, skipped)
            for module in modules:
                vectors = module(vectors)
            unit: FloatArray = unit_rows(vectors[:, : plan.dimensions]).cpu().numpy()
            return unit

        def prepare(texts: Sequence[str]) -> list[Encoded]:
            return session.encode([session.cased(plan.prefix + text) for text in texts], None, plan.limit)

        return row_procedure(session, call, prepare, forward, "vectors")

    def _pooled(self, inputs: Inputs, plan: EmbedPlan, skipped: int) -> torch.Tensor:
        session = self._session
        if plan.pooling == ("pooler",):
            pooled: torch.Tensor = session.backbone(**inputs).pooler_output.float()
            return pooled
        states = read_layer(session.backbone, inputs, plan.layer, session.depth)
        mask = inputs["attention_mask"].to(states.device)
        return torch.cat([pool(states, mask, way, skipped) for way in plan.pooling], dim=-1)

    def plan(self, side: Side, options: EmbedOptions) -> EmbedPlan:
        """Return how a text of `side` becomes a vector; raises `UsageError` for what the model does not have.

        What follows pooling in the model folder was trained on its own pooling of the last layer, so it is used with
        that only.
        """
        session, files = self._session, self._session.sentence_files
        own_limit = session.options.max_length or files.max_length
        layer = resolve_layer(
            session.options.layer if options.layer is None else options.layer, session.depth
        )
        pooling = self._pooling(options.pooling)
        is_own = pooling == files.pooling and layer == session.depth
        return EmbedPlan(
            pooling=pooling,
            layer=layer,
            limit=session.length_limit(options.max_length or own_limit),
            prefix=self._prefix(side) if options.prefixes else "",
            pools_prefix=files.pools_prompt,
            modules=files.modules if is_own else (),
            dimensions=files.dimensions if is_own else None,
        )

    def text_room(self, texts: int, options: EmbedOptions | None = None) -> int | None:
        """Return how many pieces a query has room for after its prefix; see `CutsTexts`."""
        plan = self.plan("query", options or EmbedOptions())
        # A piece may hold the end of the prefix and the beginning of a text, so a word follows it.
        alone, prefixed = subword_ids(self._session, ["a", plan.prefix + "a"])
        return plan.limit - self._session.whole_text.size - len(prefixed) + len(alone)

    def _prefix_size(self, prefix: str) -> int:
        """Return how many pieces of a text belong to its prefix, the special ones before it included."""
        if not prefix:
            return 0
        (ids,) = subword_ids(self._session, [self._session.cased(prefix)])
        return len(self._session.whole_text.before) + len(ids)

    def _pooling(self, requested: Pooling | None) -> tuple[Pooling, ...]:
        """Return the pooling of the request, the options or the model folder, where it is possible."""
        files = self._session.sentence_files
        pooling = requested or self._session.options.pooling
        if self.reads_left_to_right and pooling in ("cls", "pooler"):
            # The first token of a decoder has seen nothing of the text.
            raise UsageError(
                f"Pooling {pooling!r} is for encoders; {self._session.ref!r} is a decoder.",
                hint="Use mean or last.",
            )
        if pooling is not None:
            return (self._require_pooler(pooling),)
        if files.unsupported:
            raise AdapterError(
                f"The model {self._session.ref!r} asks for {files.unsupported} to embed, "
                "which this adapter does not have.",
                hint="Pass -o pooling=mean (or cls, last, pooler).",
            )
        return files.pooling or ("mean",)

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
        prefix = options.query_prefix if side == "query" else options.passage_prefix
        prompt = options.query_prompt if side == "query" else options.passage_prompt
        if prompt is None:
            return files.prefix(side) if prefix is None else prefix
        if prompt not in files.prompts:
            near = near_names(prompt, files.prompts)
            prompts = f"Known: {', '.join(sorted(files.prompts)) or 'none'}."
            raise UsageError(
                f"The model {self._session.ref!r} has no prompt named {prompt!r}.",
                hint=f"Did you mean {near[0]!r}? {prompts}" if near else prompts,
            )
        return files.prompts[prompt]


def row_procedure(
    session: ModelSession,
    call: Call,
    prepare: Callable[[Sequence[Any]], Sequence[Encoded]],
    forward: Callable[[Inputs], FloatArray],
    values_name: str,
) -> Procedure:
    """Return a procedure whose requests are one sequence each, answered by one row of what `forward` returns."""

    def answer(encoded: Sequence[Encoded]) -> Iterator[tuple[list[int], list[FloatArray]]]:
        for rows, values in session.run(encoded, forward, ability=call.ability, stopping=call.stopping):
            session.require_finite(values, values_name)
            yield rows, list(values)

    return Procedure(prepare=prepare, answer=answer)
