"""The processes of one training: they exchange results, and none continues before all have them.

No process waits for one that has failed: every piece of work ends with `agree`, which all of them reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import distributed

from harness import TrainingError

__all__ = ["TrainingProcesses", "training_device"]

BUCKET = 2**24
"""Numbers that are summed over processes at once."""


def training_device(device: torch.device) -> torch.device:
    """Return the one device that this process trains on; `choose_device` has given each of several its own GPU."""
    return torch.device("cuda", 0) if device == torch.device("cuda") else device


class TrainingProcesses:
    """The processes that torchrun or accelerate started, or this one alone."""

    def __init__(self, device: torch.device) -> None:
        several = distributed.is_available() and distributed.is_initialized()
        self.rank = distributed.get_rank() if several else 0
        self.count = distributed.get_world_size() if several else 1
        self.device = device

    @property
    def is_main(self) -> bool:
        """Whether this process writes files."""
        return self.rank == 0

    def exchange(self, values: Sequence[float]) -> list[list[float]]:
        """Return the values of every process, by rank; all give equally many."""
        if self.count == 1:
            return [list(values)]
        own = torch.tensor(values, dtype=torch.float64, device=self.device)
        rows = [torch.empty_like(own) for _ in range(self.count)]
        distributed.all_gather(rows, own)
        found: list[list[float]] = torch.stack(rows).tolist()
        return found

    def agree(self, error: Exception | None, values: Sequence[float] = ()) -> list[list[float]]:
        """Return the values of every process, by rank, once all of them are here.

        Raises `error` where this process failed, and `TrainingError` where another one did.
        """
        rows = self.exchange([float(error is not None), *values])
        if error is not None:
            raise error
        failed = [rank for rank, row in enumerate(rows) if row[0]]
        if failed:
            raise TrainingError(
                f"Training stopped because process {failed[0]} failed; its own message says why."
            )
        return [row[1:] for row in rows]

    @contextmanager
    def together(self) -> Iterator[None]:
        """Hold a piece of work that only some processes do: all leave it together, or fail together."""
        try:
            yield
        except Exception as error:
            self.agree(error)
        else:
            self.agree(None)

    def sum_gradients(self, parameters: Sequence[torch.nn.Parameter], used: Sequence[bool]) -> None:
        """Put the sum over all processes into every gradient that is `used` in any of them."""
        if self.count == 1:
            return
        taking = [parameter for parameter, some in zip(parameters, used, strict=True) if some]
        for bucket in _buckets(taking):
            flat = torch.cat(
                [
                    (torch.zeros_like(one) if one.grad is None else one.grad).detach().flatten()
                    for one in bucket
                ]
            )
            distributed.all_reduce(flat)
            start = 0
            for one in bucket:
                one.grad = flat[start : start + one.numel()].view_as(one)
                start += one.numel()

    def gather_bytes(self, message: bytes) -> list[bytes]:
        """Return the messages of all processes, by rank; none is empty."""
        if self.count == 1:
            return [message]
        sizes = [int(row[0]) for row in self.exchange([float(len(message))])]
        own = torch.zeros(max(sizes), dtype=torch.uint8)
        own[: len(message)] = torch.frombuffer(bytearray(message), dtype=torch.uint8)
        own = own.to(self.device)
        rows = [torch.empty_like(own) for _ in sizes]
        distributed.all_gather(rows, own)
        return [row[:size].cpu().numpy().tobytes() for row, size in zip(rows, sizes, strict=True)]

    def gather_rows(self, rows: torch.Tensor, counts: Sequence[int]) -> list[torch.Tensor]:
        """Return the rows of every process, by rank, which has as many of them as `counts` says."""
        if self.count == 1:
            return [rows]
        own = rows.new_zeros((max(counts), *rows.shape[1:]))
        own[: len(rows)] = rows
        found = [torch.empty_like(own) for _ in counts]
        distributed.all_gather(found, own)
        return [one[:count] for one, count in zip(found, counts, strict=True)]


def _buckets(parameters: Sequence[torch.nn.Parameter]) -> Iterator[list[torch.nn.Parameter]]:
    bucket: list[torch.nn.Parameter] = []
    size = 0
    for parameter in parameters:
        if bucket and size + parameter.numel() > BUCKET:
            yield bucket
            bucket, size = [], 0
        bucket.append(parameter)
        size += parameter.numel()
    if bucket:
        yield bucket
