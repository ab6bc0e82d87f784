"""The options of the adapter of sequence-to-sequence models."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from harness_hf.options import EncoderOptions

__all__ = ["Seq2SeqOptions"]


class Seq2SeqOptions(EncoderOptions):
    """Options of ``hf-seq2seq``: those of an encoder, and how the decoder is asked."""

    max_length: int | None = Field(
        default=None,
        ge=8,
        description="Tokens the encoder's input is cut at; by default what a fit was trained with, "
        "what tokenizer and config allow, or 1,024.",
    )
    pooling: Literal["mean"] | None = Field(
        default=None, description="How the encoder's vectors become one: always their mean."
    )
    truncation_side: Literal["left", "right"] = Field(
        default="left",
        description="Which end of a too long input is cut off, in training as well; "
        "right keeps a task prefix and cuts the context.",
    )
    score_eos: bool = Field(
        default=False,
        description="Whether the log-likelihood of a continuation includes the end token after it.",
    )
    source_language: str | None = Field(
        default=None,
        description="Language code of the input, for tokenizers that put one there (mBART, NLLB).",
    )
    target_language: str | None = Field(
        default=None, description="Language code of the output, for tokenizers that put one there."
    )
