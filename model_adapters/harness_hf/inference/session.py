"""An opened model: its tokenizer and its network, run over many texts."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch

from harness_hf.inference.batching import Encoded, pad_batch
from harness_hf.inference.network import HeldNetwork
from harness_hf.inference.template import Template
from harness_hf.inference.token_budget import BatchPlan, TokenBudget, by_length
from harness_hf.loading import piece_limit
from harness_hf.options import ModelOptions
from harness_hf.sentence_files import read_sentence_files

__all__ = ["CHUNK", "Inputs", "ModelSession", "batch_tokens", "drawn_weights"]

CHUNK = 16_384
"""Texts that are tokenised and sorted by length together; bounds the memory that pieces take."""

BATCH_TOKENS: Mapping[str, int] = {"cpu": 1024, "cuda": 16_384}
"""Pieces in a batch: on a CPU small batches stay in its caches (measured: 8,192 takes a third longer)."""

BLOCK_FACTOR = 8
"""Characters of a block of requests for every piece of a batch: a few batches, so that lengths can be sorted."""

Result = TypeVar("Result")
Inputs = Mapping[str, torch.Tensor]


class ModelSession(HeldNetwork):
    """Owns the tokenizer and the network of one model folder."""

    single: Template
    block_factor = BLOCK_FACTOR

    def __init__(
        self, *, ref: str, folder: Path, options: ModelOptions, tokenizer: Any, network: Any, has_pooler: bool
    ) -> None:
        super().__init__(network, ref=ref, options=options)
        self.folder = folder
        self.tokenizer = tokenizer
        self.tokenizing = threading.RLock()
        """Held during every use of the tokenizer, because other threads use it too."""
        self.has_pooler = has_pooler
        self.budget = TokenBudget(ref, batch_tokens(options, self.device))
        self.depth = int(network.config.num_hidden_layers)
        """The number of transformer layers."""
        self.limit = piece_limit(network.config, tokenizer)
        """The most pieces of a sequence, special pieces included."""
        self.sentence_files = read_sentence_files(folder)
        self._inputs = _input_names(network, tokenizer)

    @property
    def backbone(self) -> Any:
        """The network without its head."""
        return self.network.base_model

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

    @property
    def block_characters(self) -> int:
        """How many characters of text make a block of requests."""
        return self.block_factor * self.budget.initial

    def run(
        self,
        encoded: Sequence[Encoded],
        forward: Callable[[Inputs], Result],
        *,
        ability: str,
        stopping: Callable[[], bool] = lambda: False,
    ) -> Iterator[tuple[list[int], Result]]:
        """Yield (indices, what `forward` returned for them) for batches of similar length, the longest first.

        See `TokenBudget.run` for what happens where memory is short.
        """

        def run_batch(batch: list[int]) -> Result:
            inputs = self.pad([encoded[index] for index in batch])
            return forward({name: tensor.to(self.device) for name, tensor in inputs.items()})

        lengths = [len(one) for one in encoded]
        plan = BatchPlan(
            ability=ability, pack=by_length(lengths), size=lengths.__getitem__, stopping=stopping
        )
        return self.budget.run(range(len(encoded)), run_batch, plan)


def drawn_weights(seed: int | None) -> Mapping[str, str]:
    """Return what the identity of a model with random weights has in addition to that of the trained one."""
    return {} if seed is None else {"weights": f"random, seed {seed}"}


def batch_tokens(options: ModelOptions, device: torch.device) -> int:
    """Return how many pieces a batch has, padding included, as the option or else the device says."""
    return options.batch_tokens or BATCH_TOKENS["cpu" if device.type == "cpu" else "cuda"]


def _input_names(network: Any, tokenizer: Any) -> tuple[str, ...]:
    """Return the inputs that tokenizer and network both know; segments only where the network distinguishes them."""
    accepted = inspect.signature(network.forward).parameters
    segments = int(getattr(network.config, "type_vocab_size", 2) or 0) > 1
    return tuple(
        name
        for name in ("input_ids", "attention_mask", "token_type_ids")
        if name in accepted
        and (name != "token_type_ids" or (segments and name in tokenizer.model_input_names))
    )
