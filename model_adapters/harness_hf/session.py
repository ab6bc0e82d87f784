"""An opened model: its tokenizer, its network, and how both are run over many texts."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch

from harness.capabilities import Head
from harness.errors import AdapterError
from harness_hf.batching import Encoded, length_sorted_batches, pad_batch
from harness_hf.identity import folder_identity, library_versions
from harness_hf.loading import load_network, load_tokenizer, piece_limit
from harness_hf.options import EncoderOptions, ModelOptions
from harness_hf.sentence_files import read_sentence_files
from harness_hf.template import Template, read_templates

__all__ = ["CHUNK", "EncoderSession", "ModelSession", "choose_device", "choose_dtype"]

CHUNK = 16_384
"""Texts that are tokenised and sorted by length together; bounds the memory that pieces take."""

BATCH_TOKENS: Mapping[str, int] = {"cpu": 1024, "cuda": 16_384}
"""Pieces in a batch: on a CPU small batches stay in its caches (measured: 8,192 takes a third longer)."""

ANSWER_OPTIONS = (
    "max_length",
    "pooling",
    "layer",
    "query_prefix",
    "passage_prefix",
    "attn_implementation",
    "mixed_precision",
    "train_batch_tokens",
)
"""Options that change answers, and so belong to the identity."""

Result = TypeVar("Result")
Inputs = Mapping[str, torch.Tensor]


class ModelSession:
    """Owns the tokenizer and the network of one model folder."""

    options: ModelOptions
    single: Template

    def __init__(
        self, *, ref: str, folder: Path, options: ModelOptions, tokenizer: Any, network: Any, has_pooler: bool
    ) -> None:
        self.ref = ref
        self.folder = folder
        self.options = options
        self.device = choose_device(options.device)
        self.tokenizer = tokenizer
        self.has_pooler = has_pooler
        self._network: Any = network.to(self.device).eval()
        self.dtype = str(network.dtype).removeprefix("torch.")
        self.depth = int(network.config.num_hidden_layers)
        """The number of transformer layers."""
        self.limit = piece_limit(network.config, tokenizer)
        """The most pieces of a sequence, special pieces included."""
        self.sentence_files = read_sentence_files(folder)
        self._inputs = _input_names(network, tokenizer)

    @property
    def network(self) -> Any:
        """The network with its head; raises `AdapterError` once the session is closed."""
        if self._network is None:
            raise AdapterError(f"The model {self.ref!r} has been closed.")
        return self._network

    @property
    def backbone(self) -> Any:
        """The network without its head."""
        return self.network.base_model

    def close(self) -> None:
        """Free the network; a second call does nothing."""
        if self._network is None:
            return
        self._network = None
        if self.device.type == "cuda":
            gc.collect()
            torch.cuda.empty_cache()

    def length_limit(self, wanted: int | None = None) -> int:
        """Return how many pieces a sequence may have: `wanted`, else the option's, within the model's."""
        return min(wanted or self.options.max_length or self.limit, self.limit)

    def encode(self, texts: Sequence[str], pairs: Sequence[str] | None, max_length: int) -> list[Encoded]:
        """Return the pieces of texts or pairs of texts, the longer one cut first above `max_length`."""
        if not texts:
            return []
        encoded = self.tokenizer(
            list(texts),
            list(pairs) if pairs is not None else None,
            truncation="longest_first",
            max_length=max_length,
            return_attention_mask=False,
            return_token_type_ids=True,
        )
        rows = zip(encoded["input_ids"], encoded["token_type_ids"], strict=True)
        return [Encoded(ids, types) for ids, types in rows]

    def pad(self, batch: Sequence[Encoded]) -> Inputs:
        """Return the model inputs of a batch, padded to its longest sequence."""
        return pad_batch(batch, self.tokenizer.pad_token_id, self._inputs)

    def run(
        self, encoded: Sequence[Encoded], forward: Callable[[Inputs], Result]
    ) -> Iterator[tuple[list[int], Result]]:
        """Yield (indices, what `forward` returned for them) for batches of similar length, in any order."""
        lengths = [len(one) for one in encoded]
        budget = self.options.batch_tokens or BATCH_TOKENS[self.device.type]
        for batch in length_sorted_batches(lengths, budget):
            yield from self._run_batch(encoded, batch, forward)

    def _run_batch(
        self, encoded: Sequence[Encoded], batch: list[int], forward: Callable[[Inputs], Result]
    ) -> Iterator[tuple[list[int], Result]]:
        """Run one batch, in halves where the accelerator has too little memory for it."""
        inputs = self.pad([encoded[index] for index in batch])
        try:
            with torch.inference_mode():
                result = forward({name: tensor.to(self.device) for name, tensor in inputs.items()})
        except torch.OutOfMemoryError as error:
            if len(batch) == 1:
                raise AdapterError(
                    f"The GPU has too little memory for one sequence of {len(encoded[batch[0]])} pieces.",
                    hint="Pass a smaller -o max_length, or -o device=cpu.",
                ) from error
            result = None
        if result is not None:
            yield batch, result
            return
        torch.cuda.empty_cache()
        half = len(batch) // 2
        yield from self._run_batch(encoded, batch[:half], forward)
        yield from self._run_batch(encoded, batch[half:], forward)


class EncoderSession(ModelSession):
    """Owns the tokenizer and the network of an encoder, with a head or without."""

    options: EncoderOptions

    def __init__(self, *, ref: str, folder: Path, options: EncoderOptions, head: Head | None) -> None:
        self.head = head
        tokenizer = load_tokenizer(folder, ref, options)
        dtype = choose_dtype(options.dtype, choose_device(options.device))
        network, has_pooler = load_network(folder, ref, head, options, dtype=dtype)
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
            "dtype": self.dtype,
            **folder_identity(self.folder),
            **library_versions(),
            **chosen,
        }


def choose_device(name: str) -> torch.device:
    """Return the device of the option; raises `AdapterError` for a GPU that is not there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cuda" and not torch.cuda.is_available():
        raise AdapterError("The option device is 'cuda', but torch sees no GPU.", hint="Pass -o device=cpu.")
    return torch.device(name)


def choose_dtype(name: str, device: torch.device) -> torch.dtype | None:
    """Return the precision of inference; None is the checkpoint's own."""
    if name == "auto":
        return torch.float32 if device.type == "cpu" else None
    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype)
    return dtype


def _input_names(network: Any, tokenizer: Any) -> tuple[str, ...]:
    """Return the inputs that both sides know; segments only where the network tells them apart."""
    accepted = inspect.signature(network.forward).parameters
    segments = int(getattr(network.config, "type_vocab_size", 2) or 0) > 1
    return tuple(
        name
        for name in ("input_ids", "attention_mask", "token_type_ids")
        if name in accepted
        and (name != "token_type_ids" or (segments and name in tokenizer.model_input_names))
    )
