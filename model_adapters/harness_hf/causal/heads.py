"""Decoders with a head: read from left to right, padded on the right, with a separator between two texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.models import Head
from harness_hf.causal.session import CausalSession, padding_token
from harness_hf.encoder.adapter import EncoderSession
from harness_hf.encoder.classification import LabelScorer
from harness_hf.encoder.heads import ADAPTERS, Heads
from harness_hf.inference.pieces import Encoded, SpecialTokens, pad_batch, plain_pieces, read_templates
from harness_hf.inference.session import Inputs
from harness_hf.loading import open_tokenizer
from harness_hf.options import CausalOptions

SEPARATOR = "\n"
"""What is put between two texts where the tokenizer puts nothing."""
INPUTS = ("input_ids", "attention_mask")


class DecoderSession(EncoderSession):
    """Owns the tokenizer and the network of a decoder that is read as an encoder is."""

    options: CausalOptions
    adapter = "hf-causal"
    reads_left_to_right = True

    @classmethod
    def of(cls, session: CausalSession) -> DecoderSession:
        """Return the session of a bare decoder that is open already, without its output layer."""
        return cls(
            ref=session.ref,
            folder=session.folder,
            options=session.options,
            head=None,
            network=session.network.base_model,
        )

    def open_tokenizer(self, folder: Path, ref: str, options: Any) -> Any:
        """Return the fast tokenizer of a folder."""
        return open_tokenizer(folder, ref, options, reason="offsets and words need one")

    def find_templates(self) -> tuple[SpecialTokens, SpecialTokens]:
        """Return the special tokens around one text and around a pair, which a line break separates at least."""
        single, pair = read_templates(self.tokenizer)
        if pair.between:
            return single, pair
        separator = self.tokenizer(SEPARATOR, add_special_tokens=False)["input_ids"]
        return single, single.separated_by(separator or [self.pad_id])

    @property
    def pad_id(self) -> int:
        """The token that batches are padded with."""
        return padding_token(self.tokenizer, self.network)

    def pad(self, batch: Sequence[Encoded]) -> Inputs:
        """Return the model inputs of a batch, padded on the right to its longest sequence."""
        return pad_batch(batch, self.pad_id, INPUTS)

    def encode(self, texts: Sequence[str], pairs: Sequence[str] | None, max_length: int) -> list[Encoded]:
        """Return the tokens of texts or pairs of texts, the ends cut off above `max_length`, the longer one's first."""
        if not texts:
            return []
        first = plain_pieces(self.tokenizer, texts)
        if pairs is None:
            room = max(1, max_length - self.single.size)
            encoded = [self.single.wrap(ids[:room]) for ids in first]
        else:
            room = max(2, max_length - self.pair.size)
            encoded = [
                self.pair.wrap(*_cut_pair(ids, pair_ids, room))
                for ids, pair_ids in zip(first, plain_pieces(self.tokenizer, pairs), strict=True)
            ]
        # A network reads at least one token.
        return [sequence if len(sequence) else Encoded([self.pad_id]) for sequence in encoded]


def _cut_pair(first: list[int], second: list[int], room: int) -> tuple[list[int], list[int]]:
    """Return both texts with `room` tokens together at most; the longer one is cut first."""
    half = room // 2
    if len(first) <= half:
        return first, second[: room - len(first)]
    if len(second) <= half:
        return first[: room - len(second)], second
    return (first, second) if len(first) + len(second) <= room else (first[: room - half], second[:half])


DECODER_HEADS = Heads(DecoderSession, {**ADAPTERS, Head.CLASSIFICATION: LabelScorer})
"""Fits decoders with any head and opens fitted ones."""
