"""The attention that the pieces of texts get, joined over layers and heads while the network runs.

Only one row of scores per text is kept: a hook on every layer joins that layer's weights into the row and drops
them. In networks that let the attention function be chosen, the function below computes the first row and leaves
the rest to PyTorch's fused kernel, so that no matrix of length x length is made; in others one layer's matrix at a time
exists ("eager"). A network that does not declare where its layers return weights, such as DeBERTa, is run with
``output_attentions``, which keeps those of all layers of a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from harness import CapabilityError
from harness.models import AttentionOptions, SegmentAttention, TextAttention, TextInput
from harness_hf.encoder.adapter import EncoderSession
from harness_hf.inference.pieces import Encoded, piece_offsets
from harness_hf.inference.session import CHUNK, Inputs

FIRST_ROW = "harness_first_row"
"""The name under which transformers knows our attention function."""
_AttentionSource = tuple[type[torch.nn.Module], int]
"""Where the layers of a network return their weights: a class of modules, and the place in what these return."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Located:
    """The pieces of an input, and their places in its texts."""

    encoded: Encoded
    positions: tuple[tuple[int, ...], ...]
    """By segment: the position of every piece in the sequence."""
    spans: tuple[tuple[tuple[int, int], ...], ...]
    """By segment: the offsets of every piece."""
    truncated: bool


def stream_attentions(
    session: EncoderSession, inputs: Sequence[TextInput], options: AttentionOptions
) -> Iterator[tuple[int, TextAttention]]:
    """Yield (index of the input, its pieces' scores), in any order.

    Inputs are cut at the model's own limit, or ``-o max_length``, the longer text of a pair first. Raises
    `CapabilityError` where the network does not return its attention.
    """
    source = _attention_source(session)
    for start in range(0, len(inputs), CHUNK):
        located = _locate(session, inputs[start : start + CHUNK], session.length_limit())

        def forward(batch: Inputs) -> Any:
            return _joined_rows(session, batch, source, options)

        for rows, scores in session.run([text.encoded for text in located], forward, ability="attentions"):
            session.require_finite(scores, "attentions")
            for row, number in enumerate(rows):
                yield start + number, _answer(located[number], scores[row].tolist())


def _answer(located: _Located, scores: Sequence[float]) -> TextAttention:
    segments = [
        SegmentAttention(
            starts=tuple(start for start, _ in spans),
            ends=tuple(end for _, end in spans),
            scores=tuple(scores[position] for position in positions),
        )
        for positions, spans in zip(located.positions, located.spans, strict=True)
    ]
    return TextAttention(segments=tuple(segments), truncated=located.truncated)


def _locate(session: EncoderSession, inputs: Sequence[TextInput], limit: int) -> list[_Located]:
    located: list[_Located] = []
    with session.tokenizing:
        for item in inputs:
            # Offsets take many times the memory of pieces; one input at a time lets them go.
            texts = (item.text,) if item.text_pair is None else (item.text, item.text_pair)
            encoding = session.tokenizer(
                *texts,
                truncation="longest_first",
                max_length=limit,
                return_attention_mask=False,
                return_token_type_ids=True,
                return_offsets_mapping=True,
            )
            segments, offsets = encoding.sequence_ids(0), encoding["offset_mapping"]
            positions = tuple(
                tuple(position for position, segment in enumerate(segments) if segment == number)
                for number in range(len(texts))
            )
            located.append(
                _Located(
                    encoded=Encoded(encoding["input_ids"], encoding["token_type_ids"]),
                    positions=positions,
                    spans=tuple(
                        # What is cut off belongs to no piece.
                        tuple(
                            piece_offsets(
                                text[: offsets[indices[-1]][1]] if indices else "",
                                [offsets[p] for p in indices],
                            )
                        )
                        for text, indices in zip(texts, positions, strict=True)
                    ),
                    truncated=bool(encoding.encodings[0].overflowing),
                )
            )
    return located


# The network ------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _RunningRow:
    """The scores of a batch, shape (batch, length), joined layer by layer."""

    options: AttentionOptions
    mask: torch.Tensor
    """Shape (batch, length): 1 where a position is no padding."""
    joined: torch.Tensor | None = None
    layers: int = 0

    def add(self, weights: torch.Tensor) -> None:
        """Take the weights of a layer, of shape (batch, heads, rows, length); the first row may be the only one."""
        if self.options.row == "first":
            rows = weights[:, :, 0].float()
        else:
            mask = self.mask[:, None, :, None].to(torch.float32)
            rows = (weights.float() * mask).sum(dim=2) / mask.sum(dim=2)
        scores = rows.amax(dim=1) if self.options.over == "max" else rows.mean(dim=1)
        self.layers += 1
        if self.joined is None:
            self.joined = scores
        else:
            self.joined = (
                torch.maximum(self.joined, scores) if self.options.over == "max" else self.joined + scores
            )

    def scores(self) -> torch.Tensor:
        """Return the scores over all layers."""
        assert self.joined is not None
        return self.joined if self.options.over == "max" else self.joined / self.layers


def _joined_rows(
    session: EncoderSession, batch: Inputs, source: _AttentionSource | None, options: AttentionOptions
) -> Any:
    backbone = session.backbone
    running = _RunningRow(options=options, mask=batch["attention_mask"])
    if source is None:
        with _implementation(session, "eager"):
            weights = getattr(backbone(**batch, output_attentions=True), "attentions", None)
        if not weights or any(layer is None for layer in weights):
            raise _no_attention_error(session)
        for layer in weights:
            running.add(layer)
        return running.scores().cpu().numpy()
    kind, index = source
    modules = [module for module in backbone.modules() if isinstance(module, kind)]

    def take(module: Any, arguments: Any, output: Any) -> None:
        running.add(output[index])

    fused = (
        options.row == "first"
        and bool(backbone._supports_attention_backend)
        and bool(backbone._supports_sdpa)
    )
    with _implementation(session, FIRST_ROW if fused else "eager"):
        hooks = [module.register_forward_hook(take) for module in modules]
        try:
            backbone(**batch)
        finally:
            for hook in hooks:
                hook.remove()
    return running.scores().cpu().numpy()


def _attention_source(session: EncoderSession) -> _AttentionSource | None:
    """Return where a network declares that its layers return attention weights; None where it does not."""
    backbone = session.backbone
    recorded: Any = (getattr(backbone, "_can_record_outputs", None) or {}).get("attentions")
    layer = recorded if isinstance(recorded, type) else getattr(recorded, "target_class", None)
    if layer is None or sum(isinstance(module, layer) for module in backbone.modules()) != session.depth:
        return None
    return layer, getattr(recorded, "index", 1)


def _no_attention_error(session: EncoderSession) -> CapabilityError:
    return CapabilityError(
        f"The model {session.ref!r} ({session.backbone.config.model_type}) does not return its attention in a way that "
        "this adapter knows.",
        hint="Use an encoder such as BERT, XLM-R or mBERT.",
    )


@contextmanager
def _implementation(session: EncoderSession, name: str) -> Iterator[None]:
    """Let the network compute attention as named, and afterwards as before."""
    backbone = session.backbone
    before = backbone.config._attn_implementation
    backbone.set_attn_implementation(name)
    try:
        yield
    finally:
        backbone.set_attn_implementation(before)


def _first_row_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **further: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the output of fused attention and the weights of the first row, of shape (batch, heads, 1, length)."""
    output, _ = sdpa_attention_forward(
        module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **further
    )
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    scores = torch.matmul(query[:, :, :1], key.transpose(2, 3)).float() * scale
    if attention_mask is not None:
        mask = attention_mask[:, :, :1]
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return output, torch.softmax(scores, dim=-1)


AttentionInterface.register(FIRST_ROW, _first_row_attention)
AttentionMaskInterface.register(FIRST_ROW, sdpa_mask)
