"""Several processes: the same answers from any number of them, each request asked once, and all in step at a fault."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from harness.errors import StorageError, UsageError
from harness.models.capabilities import TextInput
from harness.models.requests import LikelihoodRequest
from harness.running.inference import CachedModel, Watch
from harness.running.processes import (
    Interrupted,
    Interruption,
    OneProcess,
    PeerError,
    PeerStorageError,
    ProcessGroup,
    launched,
)

MakeCachedModel = Callable[..., CachedModel]
Together = Callable[[int, Callable[[ProcessGroup], Any]], list[Any]]
LABELS = ("no", "yes")
LENGTHS = [3, 30, 1, 12, 7, 25, 0, 9, 14, 14, 22, 5, 3, 17, 8, 28, 2, 11]
CONTINUATIONS = [
    LikelihoodRequest(context="c" * length, continuation="w" * number)
    for length in (4, 9, 2, 7, 30)
    for number in (1, 3)
]


class Asked:
    """What one process did: its answers, its model, its counts."""

    def __init__(self, rows: Any, likelihoods: Any, model: Any, cached_model: CachedModel) -> None:
        self.answers = (rows.tobytes(), likelihoods)
        self.calls: list[Any] = model.calls
        self.counts = cached_model.counts.to_json()


def _asks(
    make_cached_model: MakeCachedModel, make: Callable[[], Any], folder: str
) -> Callable[[ProcessGroup], Asked]:
    def work(processes: ProcessGroup) -> Asked:
        model, cached_model = make(), make_cached_model(processes, folder)
        wrapped = cached_model.wrap(model, model.identity())
        with processes.collective():
            rows = wrapped.classify([TextInput(text="x" * length) for length in LENGTHS], LABELS)
            likelihoods = wrapped.loglikelihood(CONTINUATIONS)
        cached_model.journal.close()
        return Asked(rows, likelihoods, model, cached_model)

    return work


def _blocks(found: Sequence[Asked]) -> set[tuple[Any, ...]]:
    return {tuple(call) for one in found for call in one.calls}


@pytest.mark.parametrize("kind", ["plain", "streaming"])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_same_answers_from_any_number_of_processes(
    make_cached_model: MakeCachedModel,
    together: Together,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    count: int,
) -> None:
    monkeypatch.setattr("harness.running.inference.BLOCK_CHARACTERS", 40)
    make = request.getfixturevalue(kind)
    alone = _asks(make_cached_model, make, "alone")(ProcessGroup())
    found = together(count, _asks(make_cached_model, make, "several"))
    assert all(isinstance(one, Asked) for one in found), found
    assert {one.answers[0] for one in found} == {alone.answers[0]}
    assert all(one.answers[1] == alone.answers[1] for one in found)
    assert _blocks(found) == _blocks([alone]), "a block is the same whichever process works on it"
    requests = [request for one in found for call in one.calls for request in call]
    assert len(requests) == len(set(requests)) == len(set(LENGTHS)) + len(CONTINUATIONS)
    assert all(one.calls for one in found), "each has a share"
    assert [one.counts for one in found] == [alone.counts] * count


@pytest.mark.parametrize(("before", "after"), [(1, 3), (4, 1), (3, 2), (2, 4)])
def test_a_run_goes_on_with_another_number_of_processes(
    make_cached_model: MakeCachedModel, together: Together, plain: Any, before: int, after: int
) -> None:
    first = together(before, _asks(make_cached_model, plain, "run"))
    second = together(after, _asks(make_cached_model, plain, "run"))
    assert {one.answers[0] for one in first} == {one.answers[0] for one in second}
    assert all(one.answers[1] == first[0].answers[1] for one in second)
    assert [call for one in second for call in one.calls] == []
    planned = len(LENGTHS) + len(CONTINUATIONS)
    assert all(one.counts == {"planned": planned, "asked": 0, "reused": planned} for one in second)


def test_a_part_of_the_answers_is_found_and_the_rest_is_shared(
    make_cached_model: MakeCachedModel, together: Together, streaming: Any
) -> None:
    def part(processes: ProcessGroup) -> Any:
        model, cached_model = streaming(), make_cached_model(processes)
        cached_model.wrap(model, model.identity()).classify(
            [TextInput(text="x" * length) for length in LENGTHS[:7]], LABELS
        )
        cached_model.journal.close()

    assert together(3, part) == [None] * 3
    found = together(2, _asks(make_cached_model, streaming, "run"))
    asked = [item for one in found for call in one.calls for item in call if isinstance(item, TextInput)]
    assert sorted(len(item.text) for item in asked) == sorted(set(LENGTHS) - set(LENGTHS[:7]))


def test_an_adapter_that_takes_all_in_one_block_shares_it(
    make_cached_model: MakeCachedModel, together: Together, streaming: Any
) -> None:
    class Whole(streaming):  # type: ignore[misc]
        size = None

    found = together(2, _asks(make_cached_model, Whole, "run"))
    assert all(one.calls for one in found)
    assert len({one.answers[0] for one in found}) == 1


def test_an_answer_that_is_not_finite_reaches_all_processes(
    make_cached_model: MakeCachedModel, together: Together, plain: Any
) -> None:
    class Spoiled(plain):  # type: ignore[misc]
        def classify(self, inputs: Any, labels: Any) -> Any:
            return super().classify(inputs, labels) * np.float32(np.nan)

    def work(processes: ProcessGroup) -> Any:
        return make_cached_model(processes).wrap(Spoiled(), {}).classify([TextInput(text="x")], LABELS)

    assert all(np.isnan(rows).all() for rows in together(2, work))


# At a fault -------------------------------------------------------------------------------------------


def _stumbles(error: BaseException, at: int = 1) -> Callable[[ProcessGroup], list[str]]:
    """Three steps of two exchanges each; in the first, process `at` raises between them."""

    def work(processes: ProcessGroup) -> list[str]:
        seen = []
        for number in range(3):
            try:
                with processes.collective():
                    processes.share("plan")
                    if number == 0 and processes.rank == at:
                        raise error
                    seen.append("".join(sorted(processes.share([str(number)]))))
            except StorageError:
                raise
            except Exception as caught:
                seen.append(f"{type(caught).__name__}: {caught}")
        return seen

    return work


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize(
    ("error", "peer"),
    [
        (ValueError("no"), "ValueError: no"),
        (UsageError("It is wrong.", hint="Do this."), "It is wrong. Do this."),
    ],
)
def test_all_leave_the_step_in_which_one_fails_and_go_on(
    together: Together, at: int, error: Exception, peer: str
) -> None:
    expected = [[f"PeerError: Process {at} failed: {peer}", "1", "2"] for _ in range(3)]
    expected[at][0] = f"{type(error).__name__}: {error}"
    assert together(3, _stumbles(error, at)) == expected


@pytest.mark.parametrize(
    ("failing", "expected"),
    [
        ({0, 2}, [["0"], ["Process 0 failed: ValueError: 0"], ["2"]]),
        ({0}, [["0"], ["Process 0 failed: ValueError: 0"], ["Process 0 failed: ValueError: 0"]]),
    ],
)
@pytest.mark.parametrize("late", [False, True])
def test_several_fail_at_once_or_at_the_end_of_a_step(
    together: Together, failing: set[int], expected: list[list[str]], late: bool
) -> None:
    def work(processes: ProcessGroup) -> list[str]:
        seen = []
        for number in range(2):
            try:
                with processes.collective():
                    if late:
                        processes.wait()
                    if number == 0 and processes.rank in failing:
                        raise ValueError(str(processes.rank))
                    if not late:
                        processes.wait()
            except Exception as error:
                seen.append(str(error))
        return seen

    assert together(3, work) == expected


@pytest.mark.parametrize("at", [0, 1])
def test_what_cannot_be_kept_ends_all_processes(together: Together, at: int) -> None:
    found = together(2, _stumbles(StorageError("The disk is full.", hint="Free some space."), at))
    assert type(found[at]) is StorageError
    other = found[1 - at]
    assert type(other) is PeerStorageError
    assert str(other) == f"Process {at} failed: The disk is full. Free some space."
    assert other.hint == "Free some space."


def test_an_end_outranks_a_failure_in_the_same_step(together: Together) -> None:
    errors = [ValueError("no"), StorageError("full"), KeyError("nothing")]

    def work(processes: ProcessGroup) -> None:
        with processes.collective():
            raise errors[processes.rank]

    found = together(3, work)
    assert [type(error) for error in found] == [PeerStorageError, StorageError, PeerStorageError]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Interrupted("stop")])
def test_a_stop_in_one_is_a_stop_in_all(together: Together, error: KeyboardInterrupt) -> None:
    found = together(3, _stumbles(error))
    assert all(isinstance(one, KeyboardInterrupt) for one in found)
    assert found[1] is error


def test_steps_lie_within_steps(together: Together) -> None:
    """An error is reported once, whatever it passes through, and so is what fails after the end."""

    def work(processes: ProcessGroup, error: Exception) -> None:
        with processes.collective():
            try:
                with processes.collective():
                    if processes.rank == 1:
                        raise error
            finally:
                if isinstance(error, StorageError) and processes.rank == 1:
                    raise StorageError("The results cannot be written either.")

    def stopped(processes: ProcessGroup) -> None:
        with processes.collective():
            with processes.collective():
                pass
            if processes.is_main:
                raise Interrupted
            with processes.collective():
                pass

    found = together(2, lambda processes: work(processes, ValueError("no")))
    assert [type(error) for error in found] == [PeerError, ValueError]
    found = together(2, lambda processes: work(processes, StorageError("full")))
    assert [type(error) for error in found] == [PeerStorageError, StorageError]
    assert str(found[1]) == "The results cannot be written either."
    assert all(isinstance(error, KeyboardInterrupt) for error in together(2, stopped))


def test_a_fault_of_one_adapter_is_a_fault_of_the_step(
    make_cached_model: MakeCachedModel, together: Together, plain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.running.inference.BLOCK_CHARACTERS", 40)

    class Broken(plain):  # type: ignore[misc]
        rank = 0

        def classify(self, inputs: Any, labels: Any) -> Any:
            if self.rank == 1 and any(len(item.text) == 1 for item in inputs):
                raise RuntimeError("out of order")
            return super().classify(inputs, labels)

    def work(processes: ProcessGroup) -> list[Any]:
        model, cached_model = Broken(), make_cached_model(processes)
        model.rank = processes.rank
        wrapped = cached_model.wrap(model, model.identity())
        seen: list[Any] = []
        for lengths in ([41, 40, 1], [41, 40, 2]):  # a block each; the second process has the second
            try:
                with processes.collective():
                    texts = [TextInput(text="x" * length) for length in lengths]
                    model.rank = 1 - processes.rank if lengths[2] == 1 else 2
                    rows = wrapped.classify(texts, LABELS)
                    seen.append([round(float(row[0]) * 3) for row in rows])
            except Exception as error:
                seen.append(str(error))
        return [*seen, len(model.asked)]

    found = together(2, work)
    # The first process has the blocks of 41 and of 1 characters: what it answered before is not asked again.
    assert found[0] == ["out of order", [41, 40, 2], 2]
    assert found[1] == ["Process 0 failed: RuntimeError: out of order", [41, 40, 2], 1]


def test_a_wish_to_stop_that_only_one_process_got(
    make_cached_model: MakeCachedModel, together: Together, plain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.running.inference.BLOCK_CHARACTERS", 10)

    def work(processes: ProcessGroup) -> Any:
        interruption = Interruption()
        cached_model = make_cached_model(processes, interruption=interruption)

        class Stopping(Watch):
            def answered(self, done: int, total: int) -> None:
                if processes.rank == 1 and done == 1:
                    interruption._asked = 0.0

        with processes.collective():
            cached_model.wrap(plain(), {}, Stopping()).classify(
                [TextInput(text="x" * length) for length in LENGTHS], LABELS
            )

    assert all(isinstance(error, KeyboardInterrupt) for error in together(2, work))


def test_a_process_alone() -> None:
    processes = ProcessGroup()
    assert (processes.rank, processes.count, processes.is_main, processes.is_single) == (0, 1, True, True)
    assert processes.share({"a": 1}) == {"a": 1}
    assert processes.gather(b"x") == [b"x"]
    assert OneProcess().gather(b"x") == [b"x"]
    with pytest.raises(StorageError), processes.collective(), processes.collective():
        raise StorageError("full")
    processes.close()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, False),
        ({"WORLD_SIZE": "1"}, False),
        ({"WORLD_SIZE": "2"}, True),
        ({"ACCELERATE_MIXED_PRECISION": "no"}, True),
    ],
)
def test_who_started_this_process(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: bool
) -> None:
    for name in ("WORLD_SIZE", "ACCELERATE_MIXED_PRECISION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert launched() is expected
