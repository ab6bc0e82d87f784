"""Answers batch by batch, while another thread tokenises the next block of requests."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from harness import CapabilityError
from harness.models import Ability, Answered, Call, DevScore, FloatArray
from harness_hf.fit_record import FitRecord

if TYPE_CHECKING:
    from harness_hf.inference.session import ModelSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """How the requests of one ability are answered, a block at a time."""

    prepare: Callable[[Sequence[Any]], Any]
    """Tokenises a block of requests; may be called in another thread, but never in two at once."""
    answer: Callable[[Any], Iterator[tuple[Sequence[int], Sequence[Any]]]]
    """Runs what `prepare` returned: yields (numbers within the block, their answers) after every batch."""


class AnswerStream:
    """Base of adapters: their methods use `stream`, and they add their abilities to `procedure`."""

    _session: ModelSession
    _record: FitRecord | None = None
    """How the model was fitted; None where it was not."""

    def identity(self) -> Mapping[str, str]:
        """Return the identity of the answers: weights digest, precision, versions, options."""
        return self._session.identity()

    def close(self) -> None:
        """Free the network; a second call does nothing."""
        self._session.close()

    def block_characters(self, ability: Ability) -> int | None:
        """Return how many characters of text make a block; it depends on options and device only."""
        return self._session.block_characters

    def stream(self, call: Call, blocks: Sequence[Sequence[Any]]) -> Iterator[Answered]:
        """Return the answers of all requests of all blocks, every one once, as batches are done.

        Errors that concern all requests are raised at once, as the method of the ability does.
        """
        return self._stream(self.procedure(call), call, [block for block in blocks if len(block)])

    def dev_score(self) -> DevScore | None:
        """Return the dev score of the fitted model; None where none was measured."""
        return None if self._record is None else self._record.dev_score()

    def training_loss(self) -> Mapping[str, float] | None:
        """Return the losses at both ends of its training; None where it was not fitted."""
        return None if self._record is None else self._record.training_loss()

    def notices(self) -> Sequence[str]:
        """Return sentences for the user about how the model was trained and asked, and the memory that it found."""
        trained = () if self._record is None else self._record.notices()
        return [*trained, *self._session.notices(), *self._session.budget.notices()]

    def procedure(self, call: Call) -> Procedure:
        """Return how the call's requests are answered; raises `CapabilityError` for another ability."""
        raise CapabilityError(f"The model {self._session.ref!r} has no ability {call.ability!r}.")

    def _stream(
        self, procedure: Procedure, call: Call, blocks: Sequence[Sequence[Any]]
    ) -> Iterator[Answered]:
        session = self._session

        def prepare(block: Sequence[Any]) -> Any:
            with session.tokenizing:
                return procedure.prepare(block)

        first = 0
        with closing(_one_ahead(prepare, blocks)) as prepared:
            for block in blocks:
                if call.stopping():
                    return
                for numbers, answers in procedure.answer(next(prepared)):
                    if len(numbers):
                        yield Answered(indices=[first + number for number in numbers], answers=answers)
                first += len(block)

    def _answers(self, call: Call, requests: Sequence[Any], size: int) -> list[Any]:
        """Return the answers in order; `size` requests are tokenised and sorted by length together."""
        result: list[Any] = [None] * len(requests)
        for answered in self.stream(call, _cut(requests, size)):
            for index, answer in zip(answered.indices, answered.answers, strict=True):
                result[index] = answer
        return result

    def _rows(self, call: Call, requests: Sequence[Any], size: int, width: int) -> FloatArray:
        """Return the answers as an array of shape (requests, width); see `_answers`."""
        result = np.empty((len(requests), width), dtype=np.float32)
        for answered in self.stream(call, _cut(requests, size)):
            result[list(answered.indices)] = answered.answers
        return result


class Parts:
    """Requests that are run in parts, and answered once the last of these is done."""

    def __init__(self, owners: Sequence[int], requests: int) -> None:
        self._owners = owners
        self._missing: list[int] = np.bincount(
            np.asarray(owners, dtype=np.int64), minlength=requests
        ).tolist()

    def idle(self) -> list[int]:
        """Return the requests without any part."""
        return [number for number, count in enumerate(self._missing) if count == 0]

    def finish(self, numbers: Iterable[int]) -> list[int]:
        """Return the requests that are complete now that these parts are done."""
        complete = []
        for number in numbers:
            owner = self._owners[number]
            self._missing[owner] -= 1
            if self._missing[owner] == 0:
                complete.append(owner)
        return complete


def _one_ahead(
    prepare: Callable[[Sequence[Any]], Any], blocks: Sequence[Sequence[Any]]
) -> Generator[Any, None, None]:
    """Yield the prepared blocks; while one is used, a thread prepares the next."""
    if len(blocks) < 2:
        yield from map(prepare, blocks)
        return
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="tokenise") as worker:
        coming = worker.submit(prepare, blocks[0])
        for block in blocks[1:]:
            prepared = coming.result()
            coming = worker.submit(prepare, block)
            yield prepared
            del prepared
        yield coming.result()


def _cut(requests: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [requests[start : start + size] for start in range(0, len(requests), size)]
