"""The adapter of sequence-to-sequence models: it scores and writes texts, embeds them, and can be fitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from harness import (
    Adapter,
    AdapterError,
    AdapterOptions,
    CapabilityError,
    EmbedOptions,
    FitOptions,
    FloatArray,
    Generated,
    GenerateOptions,
    HeadSpec,
    LikelihoodAnswer,
    LikelihoodRequest,
    ModelDescription,
    Prompt,
    Side,
    UsageError,
)
from harness.models.requests import Call
from harness_hf.fit_record import read_record
from harness_hf.inference.answer_stream import Procedure
from harness_hf.inference.batching import Encoded
from harness_hf.inference.pooling import pool, read_layer, resolve_layer
from harness_hf.inference.session import CHUNK
from harness_hf.inference.subwords import SubwordCounting, subword_ids
from harness_hf.inference.template import Template
from harness_hf.inference.word_vectors import EncoderReading, WordVectors
from harness_hf.model_folder import read_config, resolve_folder
from harness_hf.seq2seq.description import require_seq2seq
from harness_hf.seq2seq.fitting import fit_pairs, open_fit
from harness_hf.seq2seq.generation import encode_prompts, write_texts
from harness_hf.seq2seq.options import Seq2SeqOptions
from harness_hf.seq2seq.scoring import Target, score_targets
from harness_hf.seq2seq.session import Seq2SeqSession, Source

__all__ = ["Seq2Seq", "open_seq2seq"]


def open_seq2seq(description: ModelDescription, options: AdapterOptions) -> Adapter:
    """Load the described sequence-to-sequence model, fitted or not; raises `AdapterError`."""
    assert isinstance(options, Seq2SeqOptions)
    folder = resolve_folder(description.ref, options, description.revision)
    require_seq2seq(read_config(str(folder), options), options)
    record = read_record(folder)
    return Seq2Seq(Seq2SeqSession(ref=description.ref, folder=folder, options=options, record=record))


class Seq2Seq(SubwordCounting, WordVectors):
    """A sequence-to-sequence model, bare or fitted on text pairs: both have the same capabilities."""

    fits_together = True
    _session: Seq2SeqSession

    def __init__(self, session: Seq2SeqSession) -> None:
        self._session = session

    def identity(self) -> Mapping[str, str]:
        """Return the identity of the answers: weights digest, precision, versions, options."""
        return self._session.identity()

    def notices(self) -> Sequence[str]:
        """Return what a user should know about how the model was trained and asked, in sentences."""
        record = self._session.record
        return [*(record.notices() if record is not None else ()), *super().notices()]

    def close(self) -> None:
        """Free the network; a second call does nothing."""
        self._session.close()

    def loglikelihood(self, requests: Sequence[LikelihoodRequest]) -> list[LikelihoodAnswer]:
        """Return per-token log-probabilities of every continuation as the decoder's output.

        The context is the encoder's input, and may be empty; contexts that are equal are encoded once. The
        decoder reads its start token and what the tokenizer puts before an output (the language code of
        mBART); neither is scored, nor is the end token unless the option ``score_eos`` says so, which then
        comes last. No token straddles context and continuation. Raises `UsageError` for a continuation
        without a token.
        """
        return self._answers(Call(ability="loglikelihood"), requests, CHUNK)

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        """Return one text per prompt: greedy, or sampled by the request's own seed.

        A text ends at the end token, at a stop string, at ``max_tokens`` or at the decoder's last position.
        Beams, penalties and lengths of the checkpoint's generation config are not used; tokens that it
        forbids stay forbidden. Of `choices` the likeliest complete answer is returned, its end token included.
        Raises `CapabilityError` for another constraint, for sampling among choices, and for a conversation
        where the tokenizer has no chat template.
        """
        if len(prompts) != len(options):
            raise UsageError(
                f"There are {len(prompts)} prompts and {len(options)} options; one each is expected."
            )
        return self._answers(Call(ability="generate"), list(zip(prompts, options, strict=True)), CHUNK)

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
        return self._embedding(call) if call.ability == "embed" else super().procedure(call)

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

    def text_room(self, texts: int, options: EmbedOptions | None = None) -> int | None:
        """Return how many tokens a query has room for after its prefix; see `CutsTexts`."""
        session, chosen = self._session, options or EmbedOptions()
        prefix = self._prefix("query") if chosen.prefixes else ""
        alone, prefixed = subword_ids(session, ["a", prefix + "a"])
        limit = session.length_limit(chosen.max_length)
        return limit - len(session.source_affixes) - len(prefixed) + len(alone)

    def embed(self, texts: Sequence[str], *, side: Side, options: EmbedOptions | None = None) -> FloatArray:
        """Return float32 vectors of shape (texts, dimension) with unit rows.

        They are means of the encoder's states over all positions that are not padding, as XTREME-R embeds
        with mT5 (Ruder et al. 2021, footnote 7). Raises `UsageError` for another pooling, or a layer that is
        not there.
        """
        call = Call(ability="embed", arguments={"side": side, "options": options})
        return self._rows(call, texts, CHUNK, self._width())

    def _embedding(self, call: Call) -> Procedure:
        session, chosen = self._session, call.arguments.get("options") or EmbedOptions()
        if chosen.pooling not in (None, "mean"):
            raise UsageError(f"The adapter 'hf-seq2seq' embeds with pooling 'mean', not {chosen.pooling!r}.")
        layer = resolve_layer(session.options.layer if chosen.layer is None else chosen.layer, session.depth)
        limit = session.length_limit(chosen.max_length)
        prefix = self._prefix(call.arguments["side"]) if chosen.prefixes else ""

        def answer(sources: Sequence[Source]) -> Iterator[tuple[list[int], list[FloatArray]]]:
            def forward(batch: list[int]) -> FloatArray:
                inputs = session.pad([sources[one].encoded for one in batch])
                states = read_layer(session.encoder, inputs, layer, session.depth)
                pooled = pool(states, inputs["attention_mask"].to(states.device), "mean")
                unit: FloatArray = torch.nn.functional.normalize(pooled, dim=-1).cpu().numpy()
                return unit

            for batch, vectors in session.run([len(one.encoded) for one in sources], forward, call):
                if not np.isfinite(vectors).all():
                    raise AdapterError(
                        f"The model {session.ref!r} returned vectors that are not finite, in {session.dtype}.",
                        hint="Pass -o dtype=float32.",
                    )
                yield batch, list(vectors)

        return Procedure(
            prepare=lambda texts: session.sources([prefix + text for text in texts], limit), answer=answer
        )

    def fit(
        self, train: Sequence[Any], validation: Sequence[Any], spec: HeadSpec, options: FitOptions
    ) -> Adapter:
        """Fine-tune a copy of this model on text pairs; see `harness_hf.seq2seq.fitting.fit_pairs`."""
        fit_pairs(self._session, train, validation, spec, options)
        return self.load_fit(options.directory, spec)

    def load_fit(self, directory: Path, spec: HeadSpec) -> Adapter:
        """Return the fitted model that `fit` saved into `directory`; raises `AdapterError` for any other."""
        return Seq2Seq(open_fit(directory, spec, self._session.options))

    def _encoder_reading(self) -> EncoderReading:
        session = self._session
        if not session.tokenizer.is_fast:
            raise CapabilityError(
                f"The model {session.ref!r} has no fast tokenizer, which the hidden states of words need.",
                hint="Choose a model whose folder has a tokenizer.json.",
            )
        before, after = session.source_affixes.before, session.source_affixes.after
        template = Template(
            before=before,
            between=(),
            after=after,
            before_types=(0,) * len(before),
            between_types=(),
            after_types=(0,) * len(after),
            first_type=0,
            second_type=0,
        )

        def read(
            encoded: Sequence[Encoded], layers: Sequence[int]
        ) -> Iterator[tuple[list[int], list[torch.Tensor]]]:
            def forward(batch: list[int]) -> list[torch.Tensor]:
                inputs = session.pad([encoded[one] for one in batch])
                states = session.encoder(**inputs, output_hidden_states=True).hidden_states
                return [states[layer] for layer in layers]

            call = Call(ability="embed")
            return session.run([len(one) for one in encoded], forward, call)

        limit = session.length_limit()
        return EncoderReading(template=template, limit=limit, width=self._width(), read=read)

    def _scored_end(self) -> tuple[int, ...]:
        session = self._session
        if session.options.score_eos and not session.ends:
            raise UsageError(f"The model {session.ref!r} has no end token.", hint="Omit -o score_eos=true.")
        return session.ends[:1] if session.options.score_eos else ()

    def _prefix(self, side: Side) -> str:
        options = self._session.options
        return (options.query_prefix if side == "query" else options.passage_prefix) or ""

    def _width(self) -> int:
        config = self._session.network.config
        return int((getattr(config, "encoder", None) or config).hidden_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scorable:
    """Requests with their inputs, equal ones once, and their outputs."""

    requests: Sequence[LikelihoodRequest]
    sources: Sequence[Source]
    targets: Sequence[Target]


def _encode_requests(
    session: Seq2SeqSession, requests: Sequence[LikelihoodRequest], end: Sequence[int]
) -> _Scorable:
    contexts = {text: number for number, text in enumerate(dict.fromkeys(one.context for one in requests))}
    tokens = session.target_tokens([request.continuation for request in requests])
    for request, ids in zip(requests, tokens, strict=True):
        if not ids:
            raise UsageError(f"The continuation {request.continuation!r} has no token that can be scored.")
    targets = [
        Target(source=contexts[request.context], tokens=[*ids, *end])
        for request, ids in zip(requests, tokens, strict=True)
    ]
    sources = session.sources(list(contexts), session.length_limit())
    return _Scorable(requests=requests, sources=sources, targets=targets)


def _score_requests(
    session: Seq2SeqSession, asked: _Scorable, call: Call
) -> Iterator[tuple[list[int], list[LikelihoodAnswer]]]:
    for numbers, scores in score_targets(session, asked.sources, asked.targets, call):
        yield (
            numbers,
            [
                LikelihoodAnswer(
                    token_logprobs=scored.logprobs,
                    is_greedy=scored.is_greedy,
                    byte_length=len(asked.requests[number].continuation.encode()),
                    truncated=asked.sources[asked.targets[number].source].truncated,
                )
                for number, scored in zip(numbers, scores, strict=True)
            ],
        )
