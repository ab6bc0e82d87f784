"""The adapter of sequence-to-sequence models: it scores and writes texts, embeds them, and can be fitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import CapabilityError, UsageError
from harness.models import (
    Adapter,
    AdapterOptions,
    Call,
    EmbedOptions,
    FitOptions,
    HeadSpec,
    LikelihoodAnswer,
    LikelihoodRequest,
    ModelDescription,
    Prompt,
    Side,
)
from harness_hf.description import Family, find_architecture
from harness_hf.fit_record import read_record
from harness_hf.inference.answer_stream import Procedure
from harness_hf.inference.text_vectors import EmbedPlan, TextWriter
from harness_hf.inference.word_vectors import Words, WordWindow
from harness_hf.model_folder import read_config, resolve_folder
from harness_hf.options import Seq2SeqOptions
from harness_hf.seq2seq.fitting import fit_pairs, open_fit
from harness_hf.seq2seq.generation import TargetRequest, encode_prompts, score_targets, write_texts
from harness_hf.seq2seq.session import Seq2SeqSession, Source


def open_seq2seq(description: ModelDescription, options: AdapterOptions) -> Adapter:
    """Load the described sequence-to-sequence model, fitted or not; raises `AdapterError`."""
    assert isinstance(options, Seq2SeqOptions)
    folder = resolve_folder(description.ref, options, description.revision)
    find_architecture(read_config(str(folder), options), options, Family.SEQ2SEQ)
    record = read_record(folder)
    return Seq2Seq(Seq2SeqSession(ref=description.ref, folder=folder, options=options, record=record))


class Seq2Seq(TextWriter):
    """A sequence-to-sequence model, bare or fitted on text pairs: both have the same capabilities."""

    fits_together = True
    _session: Seq2SeqSession

    def __init__(self, session: Seq2SeqSession) -> None:
        self._session = session
        self._record = session.record

    def loglikelihood(self, requests: Sequence[LikelihoodRequest]) -> list[LikelihoodAnswer]:
        """Return per-token log-probabilities of every continuation as the decoder's output.

        The context is the encoder's input, and may be empty; contexts that are equal are encoded once. The
        decoder reads its start token and what the tokenizer puts before an output (the language code of
        mBART); neither is scored, nor is the end token unless the option ``score_eos`` says so, which then
        comes last. No token straddles context and continuation. Raises `UsageError` for a continuation
        without a token.
        """
        return super().loglikelihood(requests)

    def procedure(self, call: Call) -> Procedure:
        """Return how a call's requests are answered."""
        session = self._session
        if call.ability == "loglikelihood":
            end = self._scored_end()
            return Procedure(
                prepare=lambda requests: _encode_requests(session, requests, end),
                answer=lambda encoded: _score_requests(session, encoded, call),
            )
        if call.ability == "generate":
            return Procedure(
                prepare=lambda pairs: encode_prompts(
                    session, [prompt for prompt, _ in pairs], [options for _, options in pairs]
                ),
                answer=lambda writings: write_texts(session, writings, call),
            )
        return super().procedure(call)

    def token_counts(self, prompts: Sequence[Prompt]) -> list[int]:
        """Return how many tokens every encoder input has before it is cut, special tokens included."""
        session = self._session
        with session.tokenizing:
            texts = iter(session.source_tokens([prompt for prompt in prompts if isinstance(prompt, str)]))
            return [
                len(next(texts) if isinstance(prompt, str) else session.chat_tokens(prompt))
                for prompt in prompts
            ]

    def context_length(self) -> int | None:
        """Return at how many tokens an encoder input is cut; the answer takes none of them."""
        return self._session.length_limit()

    def plan(self, side: Side, options: EmbedOptions) -> EmbedPlan:
        """Return how a text becomes a vector: by the mean of the encoder's states that are not padding.

        XTREME-R embeds with mT5 so (Ruder et al. 2021, footnote 7). Raises `UsageError` for another pooling.
        """
        if options.pooling not in (None, "mean"):
            raise UsageError(f"The adapter 'hf-seq2seq' embeds with pooling 'mean', not {options.pooling!r}.")
        return super().plan(side, options)

    def fit(
        self, train: Sequence[Any], validation: Sequence[Any], spec: HeadSpec, options: FitOptions
    ) -> Adapter:
        """Fine-tune a copy of this model on text pairs; see `harness_hf.seq2seq.fitting.fit_pairs`."""
        fit_pairs(self._session, train, validation, spec, options)
        return self.load_fit(options.directory, spec)

    def load_fit(self, directory: Path, spec: HeadSpec) -> Adapter:
        """Return the fitted model that `fit` saved into `directory`; raises `AdapterError` for any other."""
        return Seq2Seq(open_fit(directory, spec, self._session.options))

    def _windows(self, sentences: Sequence[Words], *, sentence_vector: bool) -> list[WordWindow]:
        session = self._session
        if not session.tokenizer.is_fast:
            raise CapabilityError(
                f"The model {session.ref!r} has no fast tokenizer, which the hidden states of words need.",
                hint="Choose a model whose folder has a tokenizer.json.",
            )
        return super()._windows(sentences, sentence_vector=sentence_vector)

    def _scored_end(self) -> tuple[int, ...]:
        session = self._session
        if session.options.score_eos and not session.ends:
            raise UsageError(f"The model {session.ref!r} has no end token.", hint="Omit -o score_eos=true.")
        return session.ends[:1] if session.options.score_eos else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scorable:
    """Requests with their inputs, equal ones once, and their outputs."""

    requests: Sequence[LikelihoodRequest]
    sources: Sequence[Source]
    targets: Sequence[TargetRequest]


def _encode_requests(
    session: Seq2SeqSession, requests: Sequence[LikelihoodRequest], end: Sequence[int]
) -> _Scorable:
    contexts = {text: number for number, text in enumerate(dict.fromkeys(item.context for item in requests))}
    tokens = session.target_tokens([request.continuation for request in requests])
    for request, ids in zip(requests, tokens, strict=True):
        if not ids:
            raise UsageError(f"The continuation {request.continuation!r} has no token that can be scored.")
    targets = [
        TargetRequest(source=contexts[request.context], tokens=[*ids, *end])
        for request, ids in zip(requests, tokens, strict=True)
    ]
    sources = session.sources(list(contexts), session.length_limit())
    return _Scorable(requests=requests, sources=sources, targets=targets)


def _score_requests(
    session: Seq2SeqSession, scorable: _Scorable, call: Call
) -> Iterator[tuple[list[int], list[LikelihoodAnswer]]]:
    for numbers, scores in score_targets(session, scorable.sources, scorable.targets, call):
        yield (
            numbers,
            [
                LikelihoodAnswer(
                    token_logprobs=scored.logprobs,
                    is_greedy=scored.is_greedy,
                    byte_length=len(scorable.requests[number].continuation.encode()),
                    truncated=scorable.sources[scorable.targets[number].source].truncated,
                )
                for number, scored in zip(numbers, scores, strict=True)
            ],
        )
