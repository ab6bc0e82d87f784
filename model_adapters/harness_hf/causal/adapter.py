"""The adapter of decoders: log-probabilities, generation, token counts, embeddings and hidden states."""

from __future__ import annotations

from collections.abc import Sequence

from harness import (
    Adapter,
    AdapterOptions,
    EmbedOptions,
    GenerateOptions,
    LikelihoodRequest,
    ModelDescription,
    Prompt,
    Side,
    UsageError,
)
from harness.models.requests import Call
from harness_hf.architecture import Family
from harness_hf.causal.generation import Writings, encode_prompts, write_texts
from harness_hf.causal.likelihood import Continuations, score_continuations
from harness_hf.causal.session import CausalSession
from harness_hf.description import find_architecture
from harness_hf.inference.answer_stream import Procedure
from harness_hf.inference.text_vectors import EmbedPlan
from harness_hf.inference.writing import TextWriter
from harness_hf.model_folder import read_config, resolve_folder
from harness_hf.options import CausalOptions

__all__ = ["Causal", "open_causal"]

UNBOUNDED = 10**9
"""Tokenizers declare a length of 1e30 where they have none."""


def open_causal(description: ModelDescription, options: AdapterOptions) -> Adapter:
    """Load the described decoder; raises `AdapterError`."""
    assert isinstance(options, CausalOptions)
    folder = resolve_folder(description.ref, options, description.revision)
    find_architecture(read_config(str(folder), options), options, Family.CAUSAL)
    return Causal(CausalSession(ref=description.ref, folder=folder, options=options))


class Causal(TextWriter):
    """A decoder run by transformers."""

    _session: CausalSession
    reads_left_to_right = True

    def __init__(self, session: CausalSession) -> None:
        self._session = session

    def procedure(self, call: Call) -> Procedure:
        """Return how a call's requests are answered."""
        session = self._session
        if call.ability == "loglikelihood":

            def encode(requests: Sequence[LikelihoodRequest]) -> Continuations:
                contexts = [request.context for request in requests]
                return Continuations.encode(session, contexts, [one.continuation for one in requests])

            return Procedure(prepare=encode, answer=lambda asked: score_continuations(session, asked, call))
        if call.ability == "generate":

            def encode_pairs(pairs: Sequence[tuple[Prompt, GenerateOptions]]) -> Writings:
                return encode_prompts(
                    session, [prompt for prompt, _ in pairs], [options for _, options in pairs]
                )

            return Procedure(
                prepare=encode_pairs, answer=lambda writings: write_texts(session, writings, call)
            )
        return super().procedure(call)

    def token_counts(self, prompts: Sequence[Prompt]) -> list[int]:
        """Return how many tokens every prompt has, special tokens and chat template included."""
        with self._session.tokenizing:
            return [len(ids) for ids in self._session.tokens.encode_prompts(prompts)]

    def context_length(self) -> int | None:
        """Return how many tokens prompt and answer may have together, None where there is no limit."""
        window = self._session.window
        return window if window < UNBOUNDED else None

    def plan(self, side: Side, options: EmbedOptions) -> EmbedPlan:
        """Return how a text becomes a vector.

        Pooling is the mean over all tokens, or the last token's state, which alone has seen the whole text.
        Raises `UsageError` for any other: the first token of a decoder has seen nothing of it.
        """
        pooling = options.pooling or self._session.options.pooling
        if pooling in ("cls", "pooler"):
            raise UsageError(
                f"Pooling {pooling!r} is for encoders; {self._session.ref!r} is a decoder.",
                hint="Use mean or last.",
            )
        return super().plan(side, options)
