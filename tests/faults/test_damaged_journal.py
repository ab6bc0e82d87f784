"""Whatever happens to a log, only the records that it happened to are lost, and no body is ever a wrong one."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from harness.errors import DataError
from harness.storage import journal_log
from harness.storage.journal import Journal
from harness.storage.journal_log import HEADER, encode

pytestmark = pytest.mark.thorough

STEM = b"\x9f\xd5JRNL\xb7"
MARKER = STEM + b"\x01"
SOURCE = b"source-1"
FORGED = [b"forged key %04d " % number for number in range(3)]
LATER = b"what came after "
FORGERY = encode(FORGED[0], 1, SOURCE, b"forged body")
SPOILED = FORGERY[:12] + bytes([FORGERY[12] ^ 1]) + FORGERY[13:]
# As it would lie in the body of a record that did not escape it.
UNESCAPED = FORGERY + encode(FORGED[1], 2, SOURCE, MARKER * 3) + FORGERY
HOSTILE = (
    b"plain",
    b"",
    MARKER,
    MARKER + (25).to_bytes(4, "little") + b"1234" + b"x" * 25,
    FORGERY,
    UNESCAPED[: len(FORGERY) // 2],
    b"in front" + UNESCAPED + b"behind",
    STEM + b"\0" + STEM + STEM[:-1],
    STEM[:4],
    HEADER + b"\0" * 20,
)
KEYS = [b"key %012d" % number for number in range(len(HOSTILE) - 2)] + [STEM + b"\0" * 9, MARKER * 2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A good log: its bytes, and where each record begins and ends."""

    data: bytes
    spans: Mapping[bytes, tuple[int, int]]
    bodies: Mapping[bytes, bytes]


@pytest.fixture(params=[40, 1 << 20], ids=["small blocks", "large blocks"])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_log, "BLOCK", request.param)


@contextmanager
def folder_of(data: bytes) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    try:
        (folder / "0.log").write_bytes(data)
        yield folder
    finally:
        shutil.rmtree(folder)


def write(bodies: Sequence[bytes], keys: Sequence[bytes]) -> Written:
    spans = {}
    with folder_of(b"") as folder:
        with Journal.open(folder) as journal:
            for key, body in zip(keys, bodies, strict=True):
                start = journal.path.stat().st_size
                journal.append(SOURCE, "generate", [key], [body])
                spans[key] = (start, journal.path.stat().st_size)
        data = (folder / "0.log").read_bytes()
    return Written(data=data, spans=spans, bodies=dict(zip(keys, bodies, strict=True)))


def check(log: Written, damaged: bytes, lost: set[bytes], dropped: range) -> None:
    """Open the damaged log, append to it, and open it again: all but the lost records are there each time."""
    kept = [key for key in log.spans if key not in lost]
    with folder_of(damaged) as folder:
        for known_later in (False, True):
            with Journal.open(folder) as journal:
                assert journal.dropped in dropped
                assert journal.known(list(log.spans)).tolist() == [key not in lost for key in log.spans]
                assert journal.read(kept) == [log.bodies[key] for key in kept]
                assert not journal.known(FORGED).any()
                assert journal.known([LATER]).tolist() == [known_later]
                if not known_later:
                    journal.append(SOURCE, "tag", [LATER], [UNESCAPED])
                assert journal.read([LATER]) == [UNESCAPED]
        assert (folder / "0.log").read_bytes().startswith(damaged), "nothing is changed in place"


@pytest.fixture(scope="module")
def hostile() -> Written:
    return write(HOSTILE, KEYS)


@pytest.mark.usefixtures("block")
def test_an_undamaged_log_has_no_bad_stretch(hostile: Written) -> None:
    check(hostile, hostile.data, set(), range(1))


@pytest.mark.usefixtures("block")
def test_a_log_cut_at_any_byte_keeps_what_lies_before(hostile: Written) -> None:
    borders = {0, len(HEADER), *(stop for _, stop in hostile.spans.values())}
    for size in range(len(hostile.data)):
        lost = {key for key, (_, stop) in hostile.spans.items() if stop > size}
        count = 0 if size in borders else 1
        check(hostile, hostile.data[:size], lost, range(count, count + 1))


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("mask", [0x01, 0xFF])
def test_any_flipped_byte_loses_only_its_record(hostile: Written, mask: int) -> None:
    for position in range(len(hostile.data)):
        damaged = bytearray(hostile.data)
        damaged[position] ^= mask
        lost = {key for key, (start, stop) in hostile.spans.items() if start <= position < stop}
        assert len(lost) == (position >= len(HEADER))
        check(hostile, bytes(damaged), lost, range(1, 2))


def bodies_with(*pieces: bytes) -> st.SearchStrategy[list[bytes]]:
    piece = st.one_of(st.sampled_from(pieces), st.binary(max_size=12))
    return st.lists(st.lists(piece, max_size=5).map(b"".join), min_size=1, max_size=10)


FRAGMENTS = (STEM, MARKER, STEM + b"\0", STEM[:3], HEADER, SPOILED, b"\0", b"\x01", b"\n")


@given(bodies_with(*FRAGMENTS, FORGERY, UNESCAPED), st.data())
@settings(max_examples=100)
def test_several_changed_bytes(bodies: list[bytes], data: st.DataObject) -> None:
    log = write(bodies, [b"key %012d" % number for number in range(len(bodies))])
    start = data.draw(st.integers(0, len(log.data) - 1))
    stop = data.draw(st.integers(start + 1, len(log.data)))
    damaged = bytearray(log.data)
    if data.draw(st.booleans()):
        damaged[start:stop] = bytes(stop - start)
    else:
        damaged[start:stop] = bytes(byte ^ 0x55 for byte in damaged[start:stop])
    lost = {key for key, (first, last) in log.spans.items() if damaged[first:last] != log.data[first:last]}
    some = damaged != log.data
    check(log, bytes(damaged), lost, range(1, len(bodies) + 2) if some else range(1))


@given(bodies_with(*FRAGMENTS), st.data())
@settings(max_examples=100)
def test_bytes_put_in_and_cut_out(bodies: list[bytes], data: st.DataObject) -> None:
    """A record that was touched may come together again from what is left, but only with its own body.

    No piece is a good record but for its place: what would put such a one in could as well write one.
    """
    log = write(bodies, [b"key %012d" % number for number in range(len(bodies))])
    start = data.draw(st.integers(0, len(log.data)))
    stop = data.draw(st.integers(start, len(log.data)))
    put_in = data.draw(st.sampled_from([b"", MARKER, SPOILED, b"\n", MARKER * 9, HEADER]))
    damaged = log.data[:start] + put_in + log.data[stop:]
    untouched = {key for key, (first, last) in log.spans.items() if last <= start or first >= stop}
    with folder_of(damaged) as folder, Journal.open(folder) as journal:
        known = {key for key in log.spans if journal.known([key])[0]}
        assert untouched <= known
        assert journal.read(list(known)) == [log.bodies[key] for key in known]
        assert len(journal._index) == len(known), "no forged key"


def test_two_bad_stretches_are_named_with_their_borders(hostile: Written) -> None:
    spans = list(hostile.spans.values())
    damaged = bytearray(hostile.data)
    for first, last in (spans[2], spans[6]):
        damaged[(first + last) // 2] ^= 1
    with folder_of(bytes(damaged)) as folder:
        log = journal_log.Log(folder / "0.log")
        assert len(list(log.records())) == len(spans) - 2
        assert [(bad.start, bad.stop) for bad in log.bad] == [spans[2], spans[6]]
        assert {bad.path for bad in log.bad} == {folder / "0.log"}


def test_a_damaged_length_does_not_read_the_rest_of_a_large_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes that are taken into memory at once stay those of one block."""
    monkeypatch.setattr(journal_log, "BLOCK", 256)
    log = write([b"x" * 50] * 100, [b"key %012d" % number for number in range(100)])
    damaged = bytearray(log.data)
    first, _ = log.spans[b"key %012d" % 3]
    damaged[first + 9] ^= 0x10  # 4096 bytes longer
    read, counts = journal_log.Log._read, []

    def counting(self: journal_log.Log, position: int, count: int) -> bytes:
        counts.append(count)
        return read(self, position, count)

    monkeypatch.setattr(journal_log.Log, "_read", counting)
    with folder_of(bytes(damaged)) as folder:
        assert len(list(journal_log.Log(folder / "0.log").records())) == 99
    assert max(counts) <= 256


@pytest.mark.parametrize("deed", ["flip", "other record", "cut", "remove"])
def test_a_record_that_changed_after_opening_is_never_a_body(deed: str) -> None:
    keys = [b"key %012d" % number for number in range(3)]
    log = write([b"aaaa", b"bbbb", b"cccc"], keys)
    first, last = log.spans[keys[1]]
    with folder_of(log.data) as folder, Journal.open(folder) as journal:
        path = folder / "0.log"
        if deed == "flip":
            path.write_bytes(log.data[: last - 1] + b"x" + log.data[last:])
        elif deed == "other record":
            path.write_bytes(log.data[:first] + encode(keys[0], 7, SOURCE, b"bbbb") + log.data[last:])
        elif deed == "cut":
            path.write_bytes(log.data[: last - 1])
        else:
            path.unlink()
        with pytest.raises(DataError, match=r"0\.log' (was changed while it was in use|cannot be read)"):
            journal.read(keys[1:2])
