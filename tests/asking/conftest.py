"""Several processes without processes: threads that meet at a barrier; and models that keep what they are asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.models.capabilities import TextInput
from harness.models.requests import Ability, Answered, Call, LikelihoodAnswer, LikelihoodRequest
from harness.running.inference import CachedModel
from harness.running.processes import Interruption, ProcessGroup
from harness.storage.journal import Journal

PATIENCE = 120.0
"""Seconds after which processes that are out of step break the barrier, so that the test fails rather than hangs."""


class ThreadProcesses:
    """One of several threads that exchange messages as processes do."""

    def __init__(self, rank: int, board: list[bytes], barrier: threading.Barrier) -> None:
        self.rank = rank
        self.count = len(board)
        self._board = board
        self._barrier = barrier

    def gather(self, message: bytes) -> list[bytes]:
        self._board[self.rank] = message
        self._barrier.wait(PATIENCE)
        messages = list(self._board)
        self._barrier.wait(PATIENCE)
        return messages

    def close(self) -> None:
        pass


Together = Callable[[int, Callable[[ProcessGroup], Any]], list[Any]]


@pytest.fixture
def together() -> Together:
    """Do some work in several processes and return what each returned or raised, by rank."""

    def run(count: int, work: Callable[[ProcessGroup], Any]) -> list[Any]:
        board, barrier = [b""] * count, threading.Barrier(count)

        def attempt(rank: int) -> Any:
            try:
                return work(ProcessGroup(ThreadProcesses(rank, board, barrier)))
            except BaseException as error:
                return error

        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(attempt, range(count)))

    return run


class Plain:
    """A model that says how long texts are, and keeps every block that it gets in `calls`."""

    def __init__(self, says: float = 1.0) -> None:
        self.calls: list[list[Any]] = []
        self._says = says

    @property
    def asked(self) -> list[Any]:
        """All requests that it got."""
        return [request for call in self.calls for request in call]

    def identity(self) -> Mapping[str, str]:
        return {"adapter": "plain", "says": str(self._says)}

    def close(self) -> None:
        pass

    def classify(self, inputs: Sequence[TextInput], labels: Sequence[str]) -> Any:
        self.calls.append(list(inputs))
        return np.array([[len(item.text) / 3] * len(labels) for item in inputs], dtype=np.float32)

    def loglikelihood(self, requests: Sequence[LikelihoodRequest]) -> list[LikelihoodAnswer]:
        self.calls.append(list(requests))
        return [
            LikelihoodAnswer(token_logprobs=(-len(request.continuation) / 7,), is_greedy=False, byte_length=1)
            for request in requests
        ]

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        self.calls.append(list(sentences))
        return [[token.upper() for token in tokens] for tokens in sentences]


class Streaming(Plain):
    """The same, two answers at a time, from the last to the first."""

    size: int | None = 40

    def block_characters(self, ability: Ability) -> int | None:
        return self.size

    def stream(self, call: Call, blocks: Sequence[Sequence[Any]]) -> Iterator[Answered]:
        method = getattr(super(), call.ability)
        numbers = iter(range(sum(map(len, blocks))))
        for block in blocks:
            places = [next(numbers) for _ in block]
            answers = method(block, **call.arguments)
            for start in reversed(range(0, len(block), 2)):
                if call.stopping():
                    return
                yield Answered(
                    indices=places[start : start + 2][::-1], answers=answers[start : start + 2][::-1]
                )


@pytest.fixture
def plain() -> type[Plain]:
    return Plain


@pytest.fixture
def streaming() -> type[Streaming]:
    return Streaming


@pytest.fixture
def make_cached_model(tmp_path: Path) -> Iterator[Callable[..., CachedModel]]:
    """Open a journal and return who asks through it; the folder is the same unless another one is named."""
    opened: list[Journal] = []

    def make(processes: ProcessGroup | None = None, folder: str = "run", **settings: Any) -> CachedModel:
        processes = processes or ProcessGroup()
        with processes.collective():
            journal = Journal.open(tmp_path / folder / "journal", processes.rank)
        opened.append(journal)
        return CachedModel(
            processes=processes, journal=journal, **{"interruption": Interruption(), **settings}
        )

    yield make
    for journal in opened:
        journal.close()
