"""Segments are translated once, in batches that fit, and what was translated survives a failure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from harness.data.translation import store as translation_store
from harness.data.translation.services import Translation
from harness.data.translation.store import TranslationStore
from harness.errors import ContractError, StorageError, UsageError

from .conftest import Counting, Opened


def test_each_text_is_asked_for_once(tmp_path: Path, opened: Opened) -> None:
    engine = Counting()
    with TranslationStore(tmp_path) as store:
        texts = ["a premise", "one", "a premise", "two", "a premise"]
        fingerprint = engine.info().fingerprint
        assert store.missing(fingerprint, texts, "en", "sw") == ["a premise", "one", "two"]
        found = store.translate(opened(engine), texts, "en", "sw")
        assert [item.text for item in found] == [f"sw:{text.upper()}" for text in texts]
        assert sorted(engine.asked) == ["a premise", "one", "two"]
        store.translate(opened(engine), ["two", "three"], "en", "sw")
        assert engine.asked[3:] == ["three"]
        assert store.missing(fingerprint, texts, "en", "sw") == []


def test_pairs_and_translators_are_kept_apart(tmp_path: Path, opened: Opened) -> None:
    engine, other = (
        Counting(pairs=frozenset({("en", "sw"), ("en", "hi"), ("es", "sw")})),
        Counting(name="other"),
    )
    with TranslationStore(tmp_path) as store:
        for asked, source, target in (
            (engine, "en", "sw"), (engine, "en", "hi"), (engine, "es", "sw"), (other, "en", "sw"),
        ):  # fmt: skip
            [translation] = store.translate(opened(asked), ["x"], source, target)
            assert translation.text == f"{target}:X"
        with pytest.raises(UsageError, match=r"sw .*en"):
            store.translate(opened(engine), ["x"], "sw", "en")
    assert (engine.asked, other.asked) == (["x"] * 3, ["x"])


def test_batches_begin_with_the_longest_and_hold_so_many_padded_characters(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translation_store, "BATCH_CHARACTERS", 12)
    batches: list[list[str]] = []
    engine = Counting()
    answer = engine.translate

    def translate(segments: Sequence[str], source: str, target: str) -> list[Translation]:
        batches.append(list(segments))
        return answer(segments, source, target)

    monkeypatch.setattr(engine, "translate", translate)
    with TranslationStore(tmp_path) as store:
        store.translate(opened(engine), ["a", "bbbb", "cccccc", "dd", "ffffffffffffffff", "e"], "en", "sw")
    assert batches == [["ffffffffffffffff"], ["cccccc", "bbbb"], ["dd", "a", "e"]]


def test_after_a_failure_nothing_is_translated_twice(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translation_store, "BATCH_SEGMENTS", 3)
    texts = [f"text {number}" for number in range(10)]
    failing, going = Counting(until=2), Counting()
    with (
        TranslationStore(tmp_path) as store,
        pytest.raises(ContractError, match="the power is gone"),
    ):
        store.translate(opened(failing), texts, "en", "sw")
    with TranslationStore(tmp_path) as store:
        assert len(store.translate(opened(going), texts, "en", "sw")) == 10
    assert len(failing.asked) == 6
    assert sorted([*failing.asked, *going.asked]) == sorted(texts)


def test_two_processes_write_one_store(tmp_path: Path, opened: Opened) -> None:
    first, second = Counting(), Counting()
    with TranslationStore(tmp_path) as one, TranslationStore(tmp_path) as other:
        one.translate(opened(first), ["a", "b"], "en", "sw")
        other.translate(opened(second), ["b", "c"], "en", "sw")
    assert second.asked == ["c"]


def test_fewer_answers_than_segments(tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Counting()
    monkeypatch.setattr(
        engine, "translate", lambda segments, source, target: [Translation(text="x")], raising=False
    )
    with TranslationStore(tmp_path) as store, pytest.raises(ContractError, match="1 of 2"):
        store.translate(opened(engine), ["a", "b"], "en", "sw")


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "translations.sqlite").write_bytes(b"something else, long enough to be no database" * 40)
    with pytest.raises(StorageError):
        TranslationStore(tmp_path)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(max_size=12), max_size=30))
def test_order_and_number_are_kept_whatever_the_texts(
    tmp_path: Path, opened: Opened, texts: list[str]
) -> None:
    engine = Counting()
    with TranslationStore(tmp_path) as store:
        found = store.translate(opened(engine), texts, "en", "sw")
    assert all(text.strip() for text in engine.asked)
    assert [item.source for item in found] == texts
    assert [item.text for item in found] == [f"sw:{text.upper()}" if text.strip() else text for text in texts]
