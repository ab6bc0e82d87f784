"""Fine-tune a sequence-to-sequence model on text pairs, save the result, and open its session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from harness import CapabilityError, DataError
from harness.data import TextPair
from harness.models import FitOptions, Head, HeadSpec, TrainingSettings
from harness_hf.fit_record import require_record
from harness_hf.heads import load_trainable
from harness_hf.inference.batching import Encoded, pad_batch
from harness_hf.options import Seq2SeqOptions
from harness_hf.seq2seq.session import Seq2SeqSession
from harness_hf.training.batches import Feature, HeadTraining

IGNORED = -100
"""Label of padding, which the loss skips."""
EVALUATION_BATCH = 8
"""Small: the logits of a dev batch have targets x vocabulary numbers."""


def fit_pairs(
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


def open_fit(directory: Path, spec: HeadSpec, options: Seq2SeqOptions) -> Seq2SeqSession:
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
