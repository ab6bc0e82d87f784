"""The options of the adapters, as ``-o key=value`` gives them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from harness.models import AdapterOptions, ReasoningOptions, SamplingOptions


class ModelOptions(AdapterOptions):
    """How any model folder or hub id is found, loaded and run, and how its texts become vectors."""

    revision: str | None = None
    """Branch, tag or commit of a hub model."""
    device: str = "auto"
    """Where the model runs: auto (a GPU where there is one), cpu, cuda, cuda:1 ... or mps (Apple)."""
    device_map: Literal["auto", "balanced", "sequential"] | None = None
    """How a model larger than one device is divided over all that there are, as accelerate names the ways; by default
    it is on one.
    """
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Precision of inference; auto is float32 on a CPU and the checkpoint's own on a GPU."""
    batch_tokens: int | None = Field(default=None, ge=1)
    """Pieces in a batch, padding included; by default 1,024 on a CPU, and what free memory holds on a GPU and where
    text is written.
    """
    max_length: int | None = Field(default=None, ge=8)
    """Pieces a text is cut at; by default what the model can take. Fitted heads keep their recipe's."""
    pooling: Literal["mean", "cls", "last", "pooler"] | None = None
    """How vectors of pieces become one; by default as the model folder says, or mean."""
    layer: int | Literal["last", "xtreme_r"] = "last"
    """Layer that embeddings are read from: 0 is the embedding layer."""
    query_prefix: str | None = None
    """Text put before queries; by default as the model folder says, or none."""
    passage_prefix: str | None = None
    """Text put before passages; by default as the model folder says, or none."""
    query_prompt: str | None = None
    """Name of the model folder's prompt that is put before queries."""
    passage_prompt: str | None = None
    """Name of the model folder's prompt that is put before passages."""
    attn_implementation: Literal["eager", "sdpa", "flash_attention_2"] | None = None
    """Attention kernel; by default the one transformers prefers."""
    trust_remote_code: bool = False
    """Whether Python code that the model repository ships may run."""
    convert_weights: bool = False
    """Whether pickled weights are converted once to safetensors, in the cache of the harness."""
    local_files_only: bool = False
    """Whether a hub model is only looked for among what is already downloaded."""

    @field_validator("device")
    @classmethod
    def _require_device(cls, device: str) -> str:
        if re.fullmatch(r"auto|cpu|mps|cuda(:\d{1,3})?", device) is None:
            raise ValueError("expected auto, cpu, cuda, cuda:NUMBER or mps")
        return device

    @field_validator("device_map")
    @classmethod
    def _require_one_placement(cls, device_map: str | None, info: ValidationInfo) -> str | None:
        device = info.data.get("device", "auto")
        if device_map is not None and device != "auto":
            raise ValueError(f"it chooses the devices itself, so omit device={device}")
        return device_map

    @field_validator("query_prompt", "passage_prompt")
    @classmethod
    def _require_one_prefix(cls, prompt: str | None, info: ValidationInfo) -> str | None:
        prefix = f"{str(info.field_name).partition('_')[0]}_prefix"
        if prompt is not None and info.data.get(prefix) is not None:
            raise ValueError(f"it names the text that {prefix} gives, so omit one of them")
        return prompt


class EncoderOptions(ModelOptions):
    """Options of ``hf-encoder``."""

    labels: str | None = None
    """NAME,NAME,...: what the outputs of a fine-tuned classifier mean, in their order, where its config.json says
    LABEL_0, LABEL_1.
    """

    mixed_precision: Literal["auto", "no", "bf16", "fp16"] = "auto"
    """Precision while training, where weights stay in float32; auto is bf16 on a GPU that has it and no on a CPU."""
    accelerate: Path | None = None
    """Configuration file of accelerate (accelerate config --config_file FILE) for training on several processes:
    sharding, mixed precision, number of processes.
    """
    train_batch_tokens: int = Field(default=8192, ge=1)
    """Pieces of a training step at once (examples x max_length); gradients accumulate."""
    train_parts: int | None = Field(default=None, ge=1)
    """Parts that a training step is cut into at least, and processes can share with the same dropout; by default 4 on
    a CPU and one per process on GPUs.
    """
    train_checkpoint_minutes: float = Field(default=10.0, ge=0.0)
    """Minutes between checkpoints of a training; 0 makes one every step."""

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names that `labels` gives to a head's outputs; empty where it is not given."""
        return () if self.labels is None else tuple(name.strip() for name in self.labels.split(","))


class CausalOptions(EncoderOptions, ReasoningOptions):
    """Options of ``hf-causal``: those of an encoder, which fine-tuning reads, and how the decoder is asked."""

    chat_template: Path | None = None
    """File with a Jinja chat template to use in place of the model's own."""
    share_prefixes: bool = True
    """Whether texts with a common beginning are run through it once; false gives the same answers more slowly."""


class Seq2SeqOptions(EncoderOptions, SamplingOptions):
    """Options of ``hf-seq2seq``: those of an encoder, and how the decoder is asked."""

    max_length: int | None = Field(default=None, ge=8)
    """Tokens the encoder's input is cut at; by default what a fit was trained with, what tokenizer and config allow,
    or 1,024.
    """
    pooling: Literal["mean"] | None = None
    """How the encoder's vectors become one: always their mean."""
    truncation_side: Literal["left", "right"] = "left"
    """Which end of a too long input is cut off, in training as well; right keeps a task prefix and cuts the context."""
    score_eos: bool = False
    """Whether the log-likelihood of a continuation includes the end token after it."""
    source_language: str | None = None
    """Language code of the input, for tokenizers that put one there (mBART, NLLB)."""
    target_language: str | None = None
    """Language code of the output, for tokenizers that put one there."""
