"""The adapter of decoders: log-probabilities, generation, token counts, embeddings and hidden states."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.models import (
    Adapter,
    AdapterOptions,
    Call,
    FitOptions,
    GenerateOptions,
    HeadSpec,
    LikelihoodRequest,
    ModelDescription,
    Prompt,
)
from harness_hf.causal.generation import Writings, encode_prompts, write_texts
from harness_hf.causal.likelihood import Continuations, score_continuations
from harness_hf.causal.session import CausalSession
from harness_hf.description import Family, find_architecture, writes_no_text
from harness_hf.fit_record import read_record
from harness_hf.inference.session import CHUNK, Procedure
from harness_hf.inference.text_vectors import TextWriter
from harness_hf.model_folder import read_config, resolve_folder
from harness_hf.options import CausalOptions

if TYPE_CHECKING:
    from harness_hf.encoder.heads import Heads

UNBOUNDED = 10**9
"""Tokenizers declare a length of 1e30 where they have none."""


def open_causal(description: ModelDescription, options: AdapterOptions) -> Adapter:
    """Load the described decoder, one that only embeds without the layer that writes; raises `AdapterError`."""
    assert isinstance(options, CausalOptions)
    folder = resolve_folder(description.ref, options, description.revision)
    architecture = find_architecture(read_config(str(folder), options), options, Family.CAUSAL)
    record = read_record(folder)
    if record is not None:
        return _heads().open(description.ref, folder, record, options)
    if writes_no_text(architecture, folder):
        return _heads().open_bare(description.ref, folder, options)
    return Causal(CausalSession(ref=description.ref, folder=folder, options=options))


def _heads() -> Heads:
    """Return the module that fits decoders and opens fitted ones; a prompted run never imports it."""
    from harness_hf.causal.heads import DECODER_HEADS

    return DECODER_HEADS


class Causal(TextWriter):
    """A bare decoder run by transformers, which can be fitted with a head."""

    _session: CausalSession
    reads_left_to_right = True
    fits_together = True

    def __init__(self, session: CausalSession) -> None:
        self._session = session

    def procedure(self, call: Call) -> Procedure:
        """Return how a call's requests are answered."""
        session = self._session
        if call.ability == "loglikelihood":

            def encode(requests: Sequence[LikelihoodRequest]) -> Continuations:
                contexts = [request.context for request in requests]
                return Continuations.encode(session, contexts, [request.continuation for request in requests])

            return Procedure(
                prepare=encode, answer=lambda continuations: score_continuations(session, continuations, call)
            )
        if call.ability == "generate":

            def encode_pairs(pairs: Sequence[tuple[Prompt, GenerateOptions]]) -> Writings:
                return encode_prompts(
                    session, [prompt for prompt, _ in pairs], [options for _, options in pairs]
                )

            return Procedure(
                prepare=encode_pairs, answer=lambda writings: write_texts(session, writings, call)
            )
        return super().procedure(call)

    def standard_scores(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        """Return for every token of every text how likely it is against all other tokens: (log p - mean) / sd.

        Mean and standard deviation are those of log p under the model's distribution there, as Min-K%++ needs (Zhang et
        al. 2024, arXiv 2404.02936). Raises `AdapterError` for a text without tokens or longer than the context window.
        """
        call = Call(ability="loglikelihood", arguments={"standardised": True})
        requests = [LikelihoodRequest(context="", continuation=text) for text in texts]
        return [answer.token_logprobs for answer in self._answers(call, requests, CHUNK)]

    def fit(
        self, train: Sequence[Any], validation: Sequence[Any], spec: HeadSpec, options: FitOptions
    ) -> Adapter:
        """Fine-tune a copy of this model with the head of `spec`; see `harness_hf.encoder.heads.Heads.fit`."""
        from harness_hf.causal.heads import DecoderSession

        return _heads().fit(DecoderSession.of(self._session), train, validation, spec, options)

    def load_fit(self, directory: Path, spec: HeadSpec) -> Adapter:
        """Return the fitted model that `fit` saved into `directory`; raises `AdapterError` for any other."""
        return _heads().load(directory, spec, self._session.options)

    def token_counts(self, prompts: Sequence[Prompt]) -> list[int]:
        """Return how many tokens every prompt has, special tokens and chat template included."""
        with self._session.tokenizing:
            return [len(ids) for ids in self._session.tokens.encode_prompts(prompts)]

    def context_length(self) -> int | None:
        """Return how many tokens prompt and answer may have together, None where there is no limit."""
        window = self._session.window
        return window if window < UNBOUNDED else None
