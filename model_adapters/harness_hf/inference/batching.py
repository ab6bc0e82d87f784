"""Pack pieces into batches of similar length, and batches into tensors without more padding than needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

__all__ = ["Encoded", "length_sorted_batches", "pad_batch"]


@dataclass(frozen=True, slots=True)
class Encoded:
    """The pieces of one sequence, special pieces included."""

    input_ids: Sequence[int]
    type_ids: Sequence[int] = field(default=())
    """Segment of every piece; empty where all are of the first."""

    def __len__(self) -> int:
        """Return the number of pieces."""
        return len(self.input_ids)


def length_sorted_batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Yield lists of indices, longest sequences first, with (size x longest) of each at most `budget`.

    A sequence longer than the budget is alone in its batch. The longest come first so that memory runs out at once, if
    at all. Ties keep their order, so the batches are the same every time.
    """
    batch: list[int] = []
    for index in np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable").tolist():
        if batch and (len(batch) + 1) * max(lengths[batch[0]], 1) > budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def pad_batch(batch: Sequence[Encoded], pad_id: int, names: Sequence[str]) -> Mapping[str, torch.Tensor]:
    """Return the named model inputs, each of shape (len(batch), longest), padded on the right."""
    width = max(1, *(len(encoded) for encoded in batch))
    shape = (len(batch), width)
    input_ids = np.full(shape, pad_id, dtype=np.int64)
    mask = np.zeros(shape, dtype=np.int64)
    types = np.zeros(shape, dtype=np.int64)
    for row, encoded in enumerate(batch):
        size = len(encoded)
        input_ids[row, :size] = encoded.input_ids
        mask[row, :size] = 1
        if encoded.type_ids:
            types[row, :size] = encoded.type_ids
    arrays = {"input_ids": input_ids, "attention_mask": mask}
    if "token_type_ids" in names:
        arrays["token_type_ids"] = types
    return {name: torch.from_numpy(array) for name, array in arrays.items()}
