from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as nps

from harness.errors import ContractError, StorageError
from harness.models.requests import FloatArray
from harness_probing import states
from harness_probing.states import StateCache, halved, state_key, widened

LAYERS = (0, 3, 6)
COUNTS = (3, 0, 5, 2, 4, 1)
DIMENSION = 7


class Model:
    """Gives states that depend on the sentence alone, and remembers what it was asked."""

    def __init__(self, *, dies_before: int | None = None, factor: float = 1.0) -> None:
        self.asked: list[int] = []
        self.dies_before = dies_before
        self.factor = factor

    def one(self, number: int) -> FloatArray:
        rng = np.random.default_rng(number)
        return (self.factor * rng.normal(size=(len(LAYERS), COUNTS[number], DIMENSION))).astype(np.float32)

    def produce(self, sentences: Sequence[int]) -> Iterable[tuple[int, FloatArray]]:
        for number in reversed(sentences):
            if self.dies_before is not None and number >= self.dies_before:
                raise KeyboardInterrupt
            self.asked.append(number)
            yield number, self.one(number)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "CHUNK_VECTORS", 5)


def _whole(model: Model, layer: int) -> FloatArray:
    parts = [model.one(number)[LAYERS.index(layer)] for number in range(len(COUNTS))]
    return np.concatenate(parts)


def _ask(root: Path, model: Model, **changes: Any) -> states.CachedStates:
    given: dict[str, Any] = {"layers": LAYERS, "counts": COUNTS, "produce": model.produce} | changes
    return StateCache(root).states("k", **given)


def _check(found: states.CachedStates, model: Model) -> None:
    rows = np.arange(sum(COUNTS))
    for layer in LAYERS:
        halves = _whole(model, layer).astype(np.float16).astype(np.float32)
        np.testing.assert_array_equal(found.read(layer, rows), halves)
        np.testing.assert_array_equal(found.read(layer, rows[[4, 1, 1]]), halves[[4, 1, 1]])


def test_states_come_back_in_half_precision_and_are_asked_for_once(tmp_path: Path) -> None:
    model, again = Model(), Model()
    announced: list[str] = []
    cache = StateCache(tmp_path, announce=announced.append)
    _check(cache.states("k", layers=LAYERS, counts=COUNTS, produce=model.produce), model)
    assert sorted(model.asked) == list(range(len(COUNTS)))
    [message] = announced
    assert "15 vectors in 3 layers" in message
    _check(_ask(tmp_path, again), model)
    assert again.asked == []
    empty = StateCache(tmp_path).states("none", layers=LAYERS, counts=(), produce=model.produce)
    assert empty.read(3, np.empty(0, dtype=np.int64)).shape == (0, 0)


def test_an_interrupted_cache_is_gone_on_with(tmp_path: Path) -> None:
    dying, going_on = Model(dies_before=4), Model()
    with pytest.raises(KeyboardInterrupt):
        _ask(tmp_path, dying)
    assert sorted(path.name for path in (tmp_path / "k").iterdir()) == ["0.npy", "1.npy", "2.npy"]
    _check(_ask(tmp_path, going_on), Model())
    # The chunks are the sentences 0-1, 2, 3 and 4-5 by their sizes 3, 5, 2 + 4 > 5, and 4 + 1.
    assert sorted(going_on.asked) == [4, 5]


@pytest.mark.parametrize("size", [0, 1, 40, 200, None])
def test_a_truncated_lost_or_foreign_file_is_made_anew(tmp_path: Path, size: int | None) -> None:
    _ask(tmp_path, Model())
    path = tmp_path / "k" / "1.npy"
    if size is None:
        path.unlink()
        np.save(tmp_path / "k" / "0.npy", np.zeros((3, 8)))
    else:
        path.write_bytes(path.read_bytes()[:size])
    again = Model()
    _check(_ask(tmp_path, again), Model())
    assert sorted(again.asked) == ([0, 1, 2] if size is None else [2])


def test_states_beyond_half_precision_are_scaled(tmp_path: Path) -> None:
    model = Model(factor=3e6)
    found = _ask(tmp_path, model)
    for layer in LAYERS:
        read = found.read(layer, np.arange(sum(COUNTS)))
        np.testing.assert_allclose(read, _whole(model, layer), rtol=6e-4, atol=3e6 * 1e-6)


@settings(max_examples=60, deadline=None)
@given(nps.arrays(np.float32, (2, 3, 4), elements=st.floats(-(2.0**100), 2.0**100, width=32)))
def test_halves_with_exponents_are_close(values: FloatArray) -> None:
    halves = halved(values)
    back = widened(halves)
    largest = np.abs(values).max(axis=-1, keepdims=True)
    assert np.isfinite(halves["halves"]).all()
    assert (np.abs(back - values) <= 2.0**-11 * np.abs(values) + 2.0**-25 * np.maximum(1, largest)).all()
    is_small = (largest < 1).squeeze(-1)
    np.testing.assert_array_equal(halves["halves"][is_small], values[is_small].astype(np.float16))
    assert not halves["exponent"][is_small].any()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_states_that_are_not_finite_raise(tmp_path: Path, value: float) -> None:
    model = Model()

    def produce(sentences: Sequence[int]) -> Iterable[tuple[int, FloatArray]]:
        for number in sentences:
            own = model.one(number)
            if number == 2:
                own[1, 4, 0] = value
            yield number, own

    with pytest.raises(ContractError, match=r"sentence 2 .*vector 4 in layer number 1"):
        _ask(tmp_path, model, produce=produce)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"counts": (4, *COUNTS[1:])}, "3 layers of 4 vectors"),
        ({"produce": lambda _: []}, "sentence 0"),
        ({"produce": lambda _: [(5, Model().one(5))]}, "unasked or twice"),
    ],
)
def test_states_of_another_shape_raise(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ContractError, match=message):
        _ask(tmp_path, Model(), **changes)


def test_a_full_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(StorageError, match=r"need 0\.00 GB in .* where 0\.00 GB are free"):
        _ask(tmp_path, Model())


def test_a_disk_that_fills_up_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> NoReturn:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"cannot be written: No space left on device\. Make room"):
        _ask(tmp_path, Model())
    monkeypatch.undo()
    monkeypatch.setattr(states, "CHUNK_VECTORS", 5)
    _check(_ask(tmp_path, Model()), Model())


def test_the_key_follows_everything_that_makes_the_states() -> None:
    base: dict[str, Any] = {
        "identity": {"weights": "a", "version": "1"},
        "sentences": [["a", "b"], ["c"]],
        "layers": [0, 1],
        "vectors": "first piece",
    }
    changes: list[dict[str, Any]] = [
        {},
        {"identity": {"weights": "b", "version": "1"}},
        {"sentences": [["a"], ["b", "c"]]},
        {"sentences": [["a b"], ["c"]]},
        {"layers": [0, 2]},
        {"vectors": "mean"},
    ]
    assert len({state_key(**(base | change)) for change in changes}) == len(changes)
    assert state_key(**(base | {"identity": {"version": "1", "weights": "a"}})) == state_key(**base)


def test_a_reader_gives_pages_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "RESIDENT", 100)
    _check(_ask(tmp_path, Model()), Model())
