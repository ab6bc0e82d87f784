"""What is appended is known and read back: over reopening, several logs, reused runs, and both parts of the index."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, strategies as st

from harness.errors import DataError, UsageError
from harness.models.requests import Ability
from harness.storage import journal_log
from harness.storage.journal import Journal, KeyIndex

SOURCE, OTHER = b"source-1", b"source-2"


def key(number: int) -> bytes:
    return hashlib.blake2b(str(number).encode(), digest_size=16).digest()


def written(folder: Path, numbers: Sequence[int], *, rank: int = 0, says: str = "") -> None:
    """Append answers in batches of three, and close."""
    with Journal.open(folder, rank) as journal:
        for start in range(0, len(numbers), 3):
            batch = numbers[start : start + 3]
            bodies = [f"{says}{number}".encode() for number in batch]
            journal.append(SOURCE, "classify", [key(number) for number in batch], bodies)


def test_answers_are_known_and_read_at_once_and_after_reopening(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "journal"
    keys = [key(number) for number in range(4)]
    bodies = [b"", b"\0", b"a" * 3_000_000, "ž".encode()]
    with Journal.open(folder) as journal:
        assert not journal.known(keys).any()
        journal.append(SOURCE, "tag", keys[:3], bodies[:3])
        assert journal.known(keys).tolist() == [True, True, True, False]
        assert journal.read(keys[2::-1]) == bodies[2::-1]
        journal.append(SOURCE, "tag", keys[3:], bodies[3:])
        journal.append(SOURCE, "tag", [], [])
        journal.sync()
    journal.close()
    with Journal.open(folder) as journal:
        assert journal.dropped == 0
        assert journal.known([key(9), *keys]).tolist() == [False, True, True, True, True]
        assert journal.read(keys) == bodies
        assert journal.known([]).tolist() == journal.read([]) == []


def test_an_unknown_key_is_a_key_error(tmp_path: Path) -> None:
    written(tmp_path, [1])
    with Journal.open(tmp_path) as journal, pytest.raises(KeyError):
        journal.read([key(1), key(2)])


def test_a_run_goes_on_with_another_number_of_processes(tmp_path: Path) -> None:
    for rank in range(3):
        written(tmp_path, range(10 * rank, 10 * rank + 7), rank=rank)
    expected = [number for number in range(30) if number % 10 < 7]
    for rank in (0, 11):
        with Journal.open(tmp_path, rank) as journal:
            assert journal.known([key(number) for number in range(30)]).nonzero()[0].tolist() == expected
            assert journal.read([key(n) for n in expected]) == [str(n).encode() for n in expected]
    names = [path.name for path in journal_log.log_paths(tmp_path)]
    assert names == ["0.log", "1.log", "2.log", "11.log"]


def test_more_logs_than_files_that_are_kept_open(tmp_path: Path) -> None:
    for rank in range(70):
        written(tmp_path, [rank], rank=rank)
    with Journal.open(tmp_path) as journal:
        for _ in range(2):
            assert journal.read([key(n) for n in range(70)]) == [str(n).encode() for n in range(70)]


def test_other_runs_are_reused_and_not_written(tmp_path: Path) -> None:
    own, first, second = (tmp_path / name / "journal" for name in ("own", "first", "second"))
    written(own, [0], says="own")
    written(first, [0, 1], says="first")
    written(second, [0, 1, 2], says="second")
    before = {path: path.read_bytes() for folder in (first, second) for path in folder.iterdir()}
    with Journal.open(own, reuse=[first, second, own, first]) as journal:
        assert journal.read([key(0), key(1), key(2)]) == [b"own0", b"first1", b"second2"]
        journal.append(OTHER, "embed", [key(3)], [b"new"])
        journal.describe(SOURCE, {"adapter": "x"})
    assert {path: path.read_bytes() for folder in (first, second) for path in folder.iterdir()} == before
    with Journal.open(own) as journal:
        assert journal.known([key(n) for n in range(4)]).tolist() == [True, False, False, True]


def test_a_run_without_answers_cannot_be_reused(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"The run '.*none' has no answers to reuse: it has no folder 'journal'"
    ):
        Journal.open(tmp_path / "own" / "journal", reuse=[tmp_path / "none" / "journal"])


@pytest.mark.parametrize("merge_at", [1, 4, 1000])
def test_the_first_answer_under_a_key_counts(tmp_path: Path, merge_at: int) -> None:
    with Journal.open(tmp_path, merge_at=merge_at) as journal:
        journal.append(SOURCE, "choose", [key(1), key(1)], [b"first", b"second"])
        journal.append(SOURCE, "choose", [key(2), key(1)], [b"other", b"third"])
        assert journal.read([key(1), key(2)]) == [b"first", b"other"]
    with Journal.open(tmp_path, merge_at=merge_at) as journal:
        journal.append(SOURCE, "choose", [key(1)], [b"fourth"])
        assert journal.read([key(1), key(2)]) == [b"first", b"other"]


def test_over_the_border_between_the_parts_of_the_index(tmp_path: Path) -> None:
    """At its real size, with batches that lie across it."""
    count, batch = 70_000, 100
    keys = [key(number) for number in range(count)]
    with Journal.open(tmp_path) as journal:
        for start in range(0, count, batch):
            numbers = range(start, start + batch)
            journal.append(SOURCE, "tag", keys[start : start + batch], [b"%d" % n for n in numbers])
        assert journal.known(keys).all()
        some = range(0, count, 7)
        assert journal.read([keys[n] for n in some]) == [b"%d" % n for n in some]
    with Journal.open(tmp_path) as journal:
        assert journal.known(keys).all()
        assert not journal.known([key(number) for number in range(count, 2 * count)]).any()
        assert journal.read(keys[65_530:65_540]) == [b"%d" % n for n in range(65_530, 65_540)]


# Few bytes, so that keys share their beginnings, and differ only in zeros at their ends.
KEYS = st.tuples(
    st.sampled_from([b"", b"\0", b"a", b"\xff", b"a\0"]), st.sampled_from([b"\0", b"b", b"\xff"])
).map(lambda parts: parts[0] + parts[1] * (16 - len(parts[0])))
PLACES = st.tuples(st.integers(0, 2**16 - 1), st.integers(0, 2**47), st.integers(0, 2**32 - 1))


@given(st.lists(st.tuples(KEYS, PLACES)), st.integers(1, 6), st.lists(KEYS), st.data())
def test_the_index_is_a_mapping(
    entries: list[tuple[bytes, tuple[int, int, int]]], merge_at: int, asked: list[bytes], data: st.DataObject
) -> None:
    index, model = KeyIndex(merge_at=merge_at), dict[bytes, tuple[int, int, int]]()
    for entered, place in entries:
        index.add(entered, *place)
        model.setdefault(entered, place)
        if data.draw(st.booleans()):
            assert index.known(asked).tolist() == [one in model for one in asked]
    assert index.known(asked).tolist() == [one in model for one in asked]
    assert index.places(list(model)) == list(model.values())
    for one in asked:
        if one not in model:
            with pytest.raises(KeyError):
                index.places([*model, one])
    assert len(index) == len(model)
    assert index.places(list(model)) == list(model.values())


def test_a_source_is_described_once_a_log(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:
        journal.describe(SOURCE, {"adapter": "hf", "ref": "x"})
        size = journal.path.stat().st_size
        journal.describe(SOURCE, {"adapter": "hf", "ref": "x"})
        assert not journal.known([bytes(16)]).any(), "a description is no answer"
    with Journal.open(tmp_path) as journal:
        journal.describe(SOURCE, {"adapter": "hf", "ref": "x"})
        assert journal.path.stat().st_size == size
        journal.describe(OTHER, {"adapter": "vllm"})
        assert journal.path.stat().st_size > size
    with Journal.open(tmp_path, 1) as journal:
        empty = journal.path.stat().st_size
        journal.describe(SOURCE, {"adapter": "hf", "ref": "x"})
        assert journal.path.stat().st_size > empty


def test_every_ability_has_a_number(tmp_path: Path) -> None:
    assert get_args(Ability) == journal_log.ABILITIES
    with Journal.open(tmp_path) as journal:
        for number, ability in enumerate(get_args(Ability)):
            journal.append(SOURCE, ability, [key(number)], [b"x"])
    contents = [content for _, _, content in journal_log.Log(tmp_path / "0.log").records()]
    assert tuple(journal_log.ability_name(content[16]) for content in contents) == get_args(Ability)
    assert {content[17:25] for content in contents} == {SOURCE}
    assert journal_log.ability_name(99) == "ability 99"


def test_wrong_calls_write_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal.open(tmp_path)
    size = journal.path.stat().st_size
    with pytest.raises(ValueError, match="no number for the ability 'rank'"):
        journal.append(SOURCE, "rank", [key(1)], [b"x"])
    with pytest.raises(ValueError, match="A source has 8 bytes and a key 16"):
        journal.append(b"short", "tag", [key(1)], [b"x"])
    with pytest.raises(ValueError, match="A source has 8 bytes and a key 16"):
        journal.append(SOURCE, "tag", [key(1), b"short"], [b"x", b"y"])
    with pytest.raises(ValueError, match="A source has 8 bytes"):
        journal.describe(b"", {})
    with pytest.raises(ValueError, match="zip"):
        journal.append(SOURCE, "tag", [key(1), key(2)], [b"x"])
    with pytest.raises(ValueError, match="A key of the journal has 16 bytes"):
        journal.known([key(1)[:8], key(2) + key(3)[:8]])
    monkeypatch.setattr(journal_log, "LONGEST", 100)
    with pytest.raises(ValueError, match="An answer has 200 bytes; a record holds at most 100"):
        journal.append(SOURCE, "tag", [key(1), key(2)], [b"x", b"x" * 200])
    assert journal.path.stat().st_size == size
    assert not journal.known([key(1), key(2)]).any()
    journal.close()
    with pytest.raises(ValueError, match="is closed"):
        journal.append(SOURCE, "tag", [key(1)], [b"x"])


def test_a_log_of_another_version_is_rejected_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(journal_log._header(7) + b"what version 7 wrote")
    before = path.read_bytes()
    with pytest.raises(DataError) as caught:
        Journal.open(tmp_path)
    assert str(path) in str(caught.value)
    assert "expected version 1 of its format, found version 7." in str(caught.value)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["0.log"]


def test_a_log_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "3.log").mkdir()
    with pytest.raises(DataError, match=r"The journal's log '.*3.log' cannot be read: Is a directory"):
        Journal.open(tmp_path)


def test_a_log_that_was_replaced_never_answers_for_another_request(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "a") as one, Journal.open(tmp_path / "b") as other:
        one.append(SOURCE, "tag", [key(1)], [b"one"])
        other.append(SOURCE, "tag", [key(2)], [b"two"])
        one.path.write_bytes(other.path.read_bytes())
        with pytest.raises(DataError):
            one.read([key(1)])
