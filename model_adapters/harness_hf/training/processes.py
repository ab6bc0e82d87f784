"""The processes of one training: how they exchange results, and what happens where one of them fails."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from accelerate.utils import gather
from torch import distributed

from harness import TrainingError

ENDED = 1
"""Exit status of a process that failed where it cannot report it."""


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
        rows: list[list[float]] = gather(
            torch.tensor([values], dtype=torch.float64, device=self.device)
        ).tolist()
        return rows

    def anywhere(self, flag: bool) -> bool:
        """Return whether `flag` is true in any process."""
        return any(row[0] for row in self.exchange([float(flag)]))

    @contextmanager
    def together(self) -> Iterator[None]:
        """Hold a piece of work that waits for no other process: all leave it together, or fail together.

        Raises the error of this process, and `TrainingError` where only another one failed.
        """
        error: Exception | None = None
        try:
            yield
        except Exception as caught:
            error = caught
        failed = [rank for rank, row in enumerate(self.exchange([float(error is not None)])) if row[0]]
        if error is not None:
            raise error
        if failed:
            raise TrainingError(
                f"Training stopped because process {failed[0]} failed; its own message says why."
            )

    @contextmanager
    def inseparable(self, explain: Callable[[Exception], str | None] = lambda error: None) -> Iterator[None]:
        """Hold a piece of work in which processes wait for each other.

        Where one of several fails, the others wait for it in a collective call and cannot be reached: it prints what
        `explain` returns, or its traceback, and ends, and its launcher ends the others.
        """
        try:
            yield
        except Exception as error:
            if self.count == 1:
                raise
            sys.stderr.write((explain(error) or traceback.format_exc()) + "\n")
            sys.stderr.flush()
            os._exit(ENDED)
