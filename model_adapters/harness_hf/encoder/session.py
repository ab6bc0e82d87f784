"""An opened encoder: its network with or without a head, and its templates of one text and of a pair."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness import Head
from harness_hf.identity import folder_identity, library_versions
from harness_hf.inference.session import ModelSession, drawn_weights
from harness_hf.inference.template import read_templates
from harness_hf.loading import load_tokenizer, require_fitting_vocabulary
from harness_hf.options import EncoderOptions
from harness_hf.placement import load_placed

__all__ = ["EncoderSession"]

ANSWER_OPTIONS = (
    "max_length",
    "pooling",
    "layer",
    "query_prefix",
    "passage_prefix",
    "attn_implementation",
    "mixed_precision",
    "train_batch_tokens",
    "train_parts",
)
"""Options that change answers, and so belong to the identity."""


class EncoderSession(ModelSession):
    """Owns the tokenizer and the network of an encoder, with a head or without."""

    options: EncoderOptions

    def __init__(self, *, ref: str, folder: Path, options: EncoderOptions, head: Head | None) -> None:
        self.head = head
        tokenizer = load_tokenizer(folder, ref, options)
        network, has_pooler = load_placed(folder, ref, head, options)
        require_fitting_vocabulary(ref, tokenizer, network)
        super().__init__(
            ref=ref,
            folder=folder,
            options=options,
            tokenizer=tokenizer,
            network=network,
            has_pooler=has_pooler,
        )
        self.single, self.pair = read_templates(tokenizer)

    def identity(self) -> Mapping[str, str]:
        """Return digests, precision, versions and options as text."""
        chosen = {f"option.{name}": str(getattr(self.options, name)) for name in ANSWER_OPTIONS}
        return {
            "adapter": "hf-encoder",
            "head": str(self.head or "none"),
            "device": self.device.type,
            "dtype": self.dtype,
            **folder_identity(self.folder),
            **library_versions(),
            **chosen,
            **drawn_weights(self.random_seed),
        }
