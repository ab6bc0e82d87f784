"""The adapter of sequence-to-sequence models: it scores and writes texts, embeds them, and can be fitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from harness import AdapterError, CapabilityError, DataError, UsageError
from harness.data import TextPair, Translation, TranslatorContext, TranslatorInfo
from harness.languages import Language
from harness.models import (
    Adapter,
    AdapterOptions,
    Call,
    EmbedOptions,
    FitOptions,
    GenerateOptions,
    Head,
    HeadSpec,
    LikelihoodAnswer,
    LikelihoodRequest,
    ModelDescription,
    Prompt,
    Side,
    TrainingSettings,
    parse_options,
)
from harness_hf.description import Family, find_architecture
from harness_hf.fit_record import folder_identity, library_versions, read_record, require_record
from harness_hf.heads import load_trainable
from harness_hf.inference.pieces import Encoded, pad_batch
from harness_hf.inference.session import Procedure
from harness_hf.inference.text_vectors import EmbedPlan, TextWriter
from harness_hf.inference.word_vectors import Words, WordWindow
from harness_hf.loading import read_tokenizer
from harness_hf.model_folder import read_config, resolve_folder
from harness_hf.options import Seq2SeqOptions
from harness_hf.seq2seq.generation import TargetRequest, encode_prompts, score_targets, write_texts
from harness_hf.seq2seq.session import SCHEMES, Seq2SeqSession, Source, find_scheme
from harness_hf.training.batches import Feature, HeadTraining

IGNORED = -100
"""Label of padding, which the loss skips."""
EVALUATION_BATCH = 8
"""Small: the logits of a dev batch have targets x vocabulary numbers."""
MOST_TOKENS = 512
"""Longest output; NLLB was trained on sentences."""


def _fit_pairs(
    session: Seq2SeqSession,
    train: Sequence[TextPair],
    validation: Sequence[TextPair],
    spec: HeadSpec,
    options: FitOptions,
) -> None:
    """Train a copy of the session's network on pairs of source and target, and save the result.

    The loss is the mean cross entropy of the target tokens, end token included, of an optimiser step, however
    the step is split to fit the memory. Dropout is what the checkpoint's config says. Sources are at most
    ``settings.max_length`` tokens, targets ``settings.max_target_length``. With the same seed, data and
    settings the weights on a CPU are the same to the bit, and but for rounding also with another number of processes.

    Raises `TrainingError` without training examples, when the loss is not finite, or when the folder already
    holds a fit; `DataError` for a pair without a target token; `CapabilityError` for another head.
    """
    from harness_hf.training.loop import fit_and_save

    if spec.head is not Head.TEXT_TO_TEXT:
        raise CapabilityError(
            f"A sequence-to-sequence model cannot be fitted with a {spec.head.value} head; "
            f"it can with {Head.TEXT_TO_TEXT.value}."
        )
    fit_and_save(
        session,
        train,
        validation,
        spec,
        options,
        prepare=lambda: prepare_pairs(session, train, validation, options.settings),
        load=lambda: load_trainable(session, spec, options.settings, keep_head=True),
        limits={"max_length": session.within_positions(options.settings.max_length)},
        # The folder of a low-rank adapter gets no configuration otherwise; here it is the one that it has already.
        copy_files=lambda: session.network.config.save_pretrained(options.directory),
    )


def _open_fit(directory: Path, spec: HeadSpec, options: Seq2SeqOptions) -> Seq2SeqSession:
    """Return the session of a finished fit on text pairs; raises `AdapterError` for any other folder."""
    record = require_record(directory, spec.head)
    return Seq2SeqSession(ref=str(directory), folder=directory, options=options, record=record)


def prepare_pairs(
    session: Seq2SeqSession,
    train: Sequence[TextPair],
    validation: Sequence[TextPair],
    settings: TrainingSettings,
) -> HeadTraining:
    """Return the training inputs of text pairs.

    Checkpoints are compared by exact match: the share of dev pairs whose target, end token included, is what
    greedy decoding gives. That is so exactly where every target token is the likeliest one after those before
    it, so that no text has to be written for it.
    """
    start = session.prefix[0]

    def collate(features: list[Any]) -> dict[str, Any]:
        inputs = _on_cpu(session, [feature.sequences[0] for feature in features])
        targets = [feature.targets["labels"] for feature in features]
        decoder = _on_cpu(session, [Encoded([start, *labels[:-1]]) for labels in targets])
        labels = decoder["input_ids"].new_full(decoder["input_ids"].shape, IGNORED)
        for row, ids in enumerate(targets):
            labels[row, : len(ids)] = torch.tensor(ids)
        return {
            **inputs,
            "decoder_input_ids": decoder["input_ids"],
            "decoder_attention_mask": decoder["attention_mask"],
            "labels": labels,
        }

    return HeadTraining(
        train=_features(session, train, settings),
        validation=_features(session, validation, settings),
        collate=collate,
        decide=_is_greedy,
        score=lambda right, _: float(np.mean(right)),
        metric="exact_match",
        loss=token_loss,
        target_pieces=settings.max_target_length,
        evaluation_batch=EVALUATION_BATCH,
    )


def token_loss(outputs: Any, labels: torch.Tensor, num_items_in_batch: Any = None) -> torch.Tensor:
    """Return the cross entropy of a batch, summed and divided by the target tokens of the whole step."""
    logits = outputs["logits"].float()
    total = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), labels.to(logits.device).flatten(), ignore_index=IGNORED, reduction="sum"
    )
    count = (labels != IGNORED).sum() if num_items_in_batch is None else num_items_in_batch
    loss: torch.Tensor = total / count
    return loss


def _is_greedy(logits: Any, labels: torch.Tensor) -> torch.Tensor:
    """Return which targets of a batch greedy decoding gives, of shape (batch,)."""
    scores = logits[0] if isinstance(logits, tuple) else logits
    right: torch.Tensor = ((scores.argmax(dim=-1) == labels) | (labels == IGNORED)).all(dim=-1)
    return right


def _features(
    session: Seq2SeqSession, pairs: Sequence[TextPair], settings: TrainingSettings
) -> list[Feature]:
    sources = session.sources([pair.source for pair in pairs], session.within_positions(settings.max_length))
    affixes = session.target_affixes
    limit = min(settings.max_target_length, session.target_limit or settings.max_target_length)
    room = max(1, limit - affixes.size)
    features = []
    for pair, source, ids in zip(
        pairs, sources, session.target_tokens([pair.target for pair in pairs]), strict=True
    ):
        labels = list(affixes.wrap(ids[:room]).input_ids)
        if not labels:
            raise DataError(f"The pair {pair.id!r} has no token in its target {pair.target!r}.")
        features.append(Feature((source.encoded,), {"labels": labels}))
    return features


def _on_cpu(session: Seq2SeqSession, rows: Sequence[Encoded]) -> dict[str, torch.Tensor]:
    return dict(pad_batch(rows, session.pad_id, ("input_ids", "attention_mask")))


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
        """Fine-tune a copy of this model on text pairs; see `harness_hf.seq2seq.adapter.fit_pairs`."""
        _fit_pairs(self._session, train, validation, spec, options)
        return self.load_fit(options.directory, spec)

    def load_fit(self, directory: Path, spec: HeadSpec) -> Adapter:
        """Return the fitted model that `fit` saved into `directory`; raises `AdapterError` for any other."""
        return Seq2Seq(_open_fit(directory, spec, self._session.options))

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


class Seq2SeqTranslator:
    """Translates between all languages whose codes the model knows; it is opened at the first segment."""

    def __init__(self, ref: str, options: Seq2SeqOptions, context: TranslatorContext) -> None:
        model = read_config(ref, options)
        self._ref = ref
        self._options = options
        self._languages = context.languages
        self._folder = resolve_folder(ref, options, model.revision)
        self._revision = model.revision
        self._open: Seq2Seq | None = None
        self._vocabulary = self._read_vocabulary()
        self._scheme = find_scheme(self._vocabulary, context.languages.get("en"))
        if self._scheme is None:
            raise AdapterError(
                f"The model {ref!r} has no language tokens that are known here; expected one of "
                f"{', '.join(repr(scheme.codes(context.languages.get('en'))[0]) for scheme in SCHEMES)}.",
                hint="Take an NLLB, M2M100, mBART-50 or MADLAD checkpoint, or write a translator plugin.",
            )
        self._identity = self._describe()

    def info(self) -> TranslatorInfo:
        """Return digests, versions and the settings of the decoding, which is greedy."""
        return self._identity

    def supports(self, source: str, target: str) -> bool:
        """Whether the vocabulary has tokens for both languages (MADLAD: for the target)."""
        assert self._scheme is not None
        codes = (target,) if self._scheme.is_prefix else (source, target)
        return all(code in self._languages and bool(self._token(code)) for code in codes)

    def translate(self, segments: Sequence[str], source: str, target: str) -> list[Translation]:
        """Return the translations; a segment longer than the model's input is cut, which counts as truncated."""
        options = GenerateOptions(max_tokens=MOST_TOKENS, languages=(source, target))
        answers = self._opened().generate(segments, [options] * len(segments))
        return [
            Translation(
                text=answer.text.strip(),
                finish="stop" if answer.finished and not answer.truncated else "length",
                target_tokens=answer.tokens,
            )
            for answer in answers
        ]

    def close(self) -> None:
        """Free the model; a second call does nothing."""
        if self._open is not None:
            self._open.close()
        self._open = None

    def _token(self, code: str) -> str:
        assert self._scheme is not None
        language: Language = self._languages.get(code)
        return self._scheme.token(language, self._vocabulary) or ""

    def _opened(self) -> Seq2Seq:
        if self._open is None:
            self._open = Seq2Seq(Seq2SeqSession(ref=self._ref, folder=self._folder, options=self._options))
        return self._open

    def _read_vocabulary(self) -> frozenset[str]:
        """Return the tokens of the vocabulary, those of languages among them."""
        safe = self._options.model_copy(update={"trust_remote_code": False})
        tokenizer = read_tokenizer(self._folder, self._ref, safe)
        names = getattr(tokenizer, "lang_code_to_token", None) or {}
        return frozenset(tokenizer.get_vocab()) | frozenset(names.values())

    def _describe(self) -> TranslatorInfo:
        versions = library_versions()
        return TranslatorInfo(
            id=self._ref,
            engine="transformers",
            engine_version=versions.get("transformers", ""),
            revision=self._revision,
            decoding={
                "strategy": "greedy",
                "max_tokens": MOST_TOKENS,
                "max_length": self._options.max_length,
                **folder_identity(self._folder),
            },
            precision=self._options.dtype,
        )


def open_translator(ref: str, context: TranslatorContext) -> Seq2SeqTranslator:
    """Return the translator of a model folder or hub id; ``PATH?dtype=float16&device=cuda`` passes options on.

    Raises `UsageError` for a model or option that is not there, `AdapterError` for one that is no translator.
    """
    path, _, query = ref.partition("?")
    if not path:
        raise UsageError(
            "The translator 'hf-seq2seq' needs a model.",
            hint="Such as: hf-seq2seq:facebook/nllb-200-distilled-600M",
        )
    fields = dict(field.partition("=")[::2] for field in query.split("&") if field)
    entry = context.adapters.get("hf-seq2seq")
    options = parse_options(entry, fields)
    assert isinstance(options, Seq2SeqOptions)
    return Seq2SeqTranslator(path, options, context)
