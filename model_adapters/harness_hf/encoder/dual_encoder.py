"""Dual encoder: one network for queries and passages, trained to put a query next to its passage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from harness import AdapterError, DataError, TrainingError
from harness.data import RetrievalPair
from harness.models import EmbedOptions, FloatArray, Side, TrainingSettings
from harness_hf.encoder.adapter import Encoder, EncoderSession
from harness_hf.fit_record import SCALE_NAME, FitRecord
from harness_hf.heads import open_bare, save_backbone
from harness_hf.inference.session import Inputs
from harness_hf.inference.text_vectors import EmbedPlan
from harness_hf.inference.word_vectors import pool, resolve_layer
from harness_hf.training.batches import Feature, HeadTraining

if TYPE_CHECKING:
    from harness_hf.encoder.heads import Heads

INITIAL_SCALE = 100.0
SCORE_CHUNK = 1024
"""Queries of the dev set that are compared with all its passages at once."""


class DualEncoder(Encoder):
    """An encoder that was trained on pairs of a query and its passage.

    It embeds as it was trained, whatever the options of the adapter and the folder's sentence-transformers
    files say: pooling of the fit, last layer, queries and passages cut at their own lengths, and the prefixes
    of the fit. The `EmbedOptions` of a call have precedence.
    """

    def __init__(self, session: EncoderSession, record: FitRecord | None, fitter: Heads) -> None:
        super().__init__(session, record, fitter)
        if record is None:
            raise AdapterError(
                f"The folder {str(session.folder)!r} has no record of how its dual encoder was trained.",
                hint="Delete it; the model will be fitted again.",
            )
        self._fit = record

    def plan(self, side: Side, options: EmbedOptions) -> EmbedPlan:
        """Return how a text of `side` becomes a vector."""
        session, fit = self._session, self._fit
        trained = fit.settings.max_query_length if side == "query" else fit.max_length
        prefix = fit.query_prefix if side == "query" else fit.passage_prefix
        return EmbedPlan(
            pooling=(self._require_pooler(options.pooling or fit.pooling or fit.settings.pooling),),
            layer=resolve_layer("last" if options.layer is None else options.layer, session.depth),
            limit=session.length_limit(options.max_length or trained),
            prefix=prefix if options.prefixes else "",
        )


class DualEncoderNetwork(torch.nn.Module):
    """One encoder for both sides and one learned scale, as the public dual encoder of XTREME-R has them.

    The logits are ``scale * Q A^T`` for unit vectors of the queries Q and the answers A of a batch; the loss
    is the cross entropy of each query's own answer among them, in this direction only, and equal answers are
    not masked. Source: google-research/xtreme at 838c13b, dual encoder of LAReQA and Mewsli-X; the scale is a
    plain parameter that starts at 100.
    """

    def __init__(self, encoder: Any, settings: TrainingSettings, scale: float = INITIAL_SCALE) -> None:
        super().__init__()
        self.encoder = encoder
        # One number in a row: torch does not shard a scalar.
        self.scale = torch.nn.Parameter(torch.tensor([scale], dtype=torch.float32))
        self.pooling = settings.pooling
        self._no_split_modules = getattr(encoder, "_no_split_modules", None)

    @property
    def base_model(self) -> Any:
        """The encoder without the scale."""
        return self.encoder

    def vectors(self, inputs: Inputs) -> torch.Tensor:
        """Return float32 unit vectors of shape (batch, dimension)."""
        output = self.encoder(**inputs)
        if self.pooling == "pooler":
            pooled = output.pooler_output.float()
        else:
            pooled = pool(output.last_hidden_state, inputs["attention_mask"], self.pooling)
        return torch.nn.functional.normalize(pooled, dim=-1)

    def forward(self, query: Inputs, passage: Inputs) -> dict[str, torch.Tensor]:
        """Return the vectors of pairs as logits, of shape (pairs, 2, dimension), and the scale."""
        vectors = torch.stack([self.vectors(query), self.vectors(passage)], dim=1)
        return {"logits": vectors, "scale": self.scale.sum()}

    def save_pretrained(self, directory: Path, state_dict: Mapping[str, torch.Tensor] | None = None) -> None:
        """Write the encoder, or only its low-rank matrices, and the scale next to it.

        `state_dict` has the whole weights where those of the network are divided over processes. A pooler that was not
        trained is omitted.
        """
        weights = dict(self.state_dict() if state_dict is None else state_dict)
        scale = weights.pop("scale")
        encoder_weights = {name.removeprefix("encoder."): value for name, value in weights.items()}
        if self.pooling != "pooler":
            encoder_weights = {
                name: value for name, value in encoder_weights.items() if not name.startswith("pooler.")
            }
        save_backbone(self.encoder, directory, encoder_weights)
        save_file({"scale": scale.detach().cpu().reshape(1)}, Path(directory) / SCALE_NAME)


def contrast(vectors: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return the loss of the pairs of a whole batch, from their vectors of shape (pairs, 2, dimension)."""
    queries, answers = vectors.unbind(dim=1)
    # Under autocast the product would be rounded to 16 bits, and then multiplied by 100.
    with torch.autocast(device_type=queries.device.type, enabled=False):
        logits = queries @ answers.T * scale
        targets = torch.arange(len(queries), device=queries.device)
        return torch.nn.functional.cross_entropy(logits, targets)


def load_dual_encoder(
    session: EncoderSession, settings: TrainingSettings, *, keep_head: bool
) -> DualEncoderNetwork:
    """Return a float32 copy of the session's encoder to train; the scale is new unless `keep_head`.

    A pooler that is missing in the checkpoint is freshly initialised. Raises `TrainingError` for a decoder with any
    pooling but the mean.
    """
    if session.reads_left_to_right and settings.pooling != "mean":
        raise TrainingError(
            f"A dual encoder with pooling {settings.pooling!r} cannot be made of {session.ref!r}: the first token of a "
            "decoder has seen nothing of the text.",
            hint="Take a recipe whose dual_encoder settings say pooling: mean, as 'lora' and 'quick' do.",
        )
    encoder = open_bare(session, settings)
    scale = _read_scale(session.folder / SCALE_NAME) if keep_head else INITIAL_SCALE
    return DualEncoderNetwork(encoder, settings, scale)


def prepare_dual_encoder(
    session: EncoderSession,
    train: Sequence[RetrievalPair],
    validation: Sequence[RetrievalPair],
    settings: TrainingSettings,
) -> HeadTraining:
    """Return the training inputs of a dual encoder; raises `DataError` for a pair with a blank text.

    Checkpoints are compared by the share of dev queries whose nearest among all passages of the dev set is
    their own: accuracy within batches would depend on how the dev set is batched.
    """

    def collate(features: list[Any]) -> dict[str, Any]:
        return {
            "query": session.pad([feature.sequences[0] for feature in features]),
            "passage": session.pad([feature.sequences[1] for feature in features]),
            "labels": torch.tensor([feature.targets["labels"] for feature in features], dtype=torch.long),
        }

    return HeadTraining(
        train=_features(session, train, settings),
        validation=_features(session, validation, settings),
        collate=collate,
        decide=lambda vectors, _: vectors,
        score=lambda vectors, passages: top1_accuracy(np.asarray(vectors), np.asarray(passages)),
        metric="top1_accuracy",
        contrast=contrast,
    )


def top1_accuracy(vectors: FloatArray, passages: Any) -> float:
    """Return the share of queries whose nearest passage is their own, or one with the same text.

    `vectors` has the shape (pairs, 2, dimension), query and passage; `passages` numbers the distinct passages
    of shape (pairs,). Passages are compared by dot product, the first one at ties.
    """
    queries, answers = vectors[:, 0], vectors[:, 1]
    right = 0
    for start in range(0, len(queries), SCORE_CHUNK):
        nearest = (queries[start : start + SCORE_CHUNK] @ answers.T).argmax(axis=1)
        right += int((passages[nearest] == passages[start : start + SCORE_CHUNK]).sum())
    return right / len(queries)


def _features(
    session: EncoderSession, pairs: Sequence[RetrievalPair], settings: TrainingSettings
) -> list[Feature]:
    numbers: dict[str, int] = {}
    for pair in pairs:
        for name, text in (("query", pair.query), ("passage", pair.passage)):
            if not text.strip():
                raise DataError(f"The pair {pair.id!r} has a blank {name}.")
        numbers.setdefault(pair.passage, len(numbers))
    options = session.options
    before_query, before_passage = options.query_prefix or "", options.passage_prefix or ""
    queries = session.encode(
        [before_query + pair.query for pair in pairs],
        None,
        min(settings.max_query_length, session.limit),
    )
    passages = session.encode([before_passage + pair.passage for pair in pairs], None, settings.max_length)
    return [
        Feature((query, passage), {"labels": numbers[pair.passage]})
        for query, passage, pair in zip(queries, passages, pairs, strict=True)
    ]


def _read_scale(path: Path) -> float:
    """Return the saved scale; raises `AdapterError` where the file is missing or damaged."""
    try:
        weights: Mapping[str, torch.Tensor] = load_file(path)
        return float(weights["scale"])
    except (OSError, SafetensorError, KeyError, RuntimeError) as error:
        raise AdapterError(
            f"The file {str(path)!r} does not hold the scale of a dual encoder.",
            hint="Delete the folder; the model will be fitted again.",
        ) from error
