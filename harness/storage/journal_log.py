"""The log of a journal: how records are written into one file, and found again after any damage.

A log is a header line, ``harness journal 1 CRC32``, and records one after another::

    marker    8 bytes    ends in the version of the format
    length    4 bytes    of the content; integers are little-endian
    checksum  4 bytes    CRC-32 of the content, started with the length
    content              key (16 bytes), ability (1 byte), source (8 bytes), body
    end       1 byte     a line feed

The content is escaped so that the marker never occurs within a record, and no marker has the end's byte, so that a
torn record is not completed by the beginning of the next. A reader that meets damage continues at the next marker,
and can neither skip a good record nor take a part of a body for one.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.errors import DataError

VERSION = 1
KEY_BYTES = 16
SOURCE_BYTES = 8
BODY_AT = KEY_BYTES + 1 + SOURCE_BYTES
"""Where the body begins in the content of a record."""
ABILITIES = (
    "classify",
    "choose",
    "tag",
    "extract_spans",
    "embed",
    "loglikelihood",
    "generate",
    "fill_masks",
)
"""In the order of their numbers in a record, from 1; a new one goes to the end."""
DESCRIPTION = 0
"""In place of an ability: the body is the JSON of what the source means, and the key is all zeros."""
LONGEST = 1 << 28
"""Most bytes of the content of a record."""
BLOCK = 1 << 20

# The stem's first byte occurs in it once, so that no two stems can overlap, and it has no zero byte: a zero after
# every stem of the content makes the marker impossible there, and can be taken out again.
_STEM = b"\x9f\xd5JRNL\xb7"
_ESCAPED = _STEM + b"\0"
_MARKER = _STEM + bytes([VERSION])
_HEAD = struct.Struct("<8sII")
_END = b"\n"
_HEADER_LINE = re.compile(rb"(harness journal ([0-9]{1,9})) ([0-9a-f]{8})\n")


def _header(version: int) -> bytes:
    line = f"harness journal {version}".encode()
    return line + f" {zlib.crc32(line):08x}\n".encode()


HEADER = _header(VERSION)


@dataclass(frozen=True, slots=True, kw_only=True)
class BadStretch:
    """Bytes of a log that are no record."""

    path: Path
    start: int
    stop: int
    """The first byte after it."""


def encode(key: bytes, ability: int, source: bytes, body: bytes) -> bytes:
    """Return a record; raises `ValueError` where the body is longer than a record can be."""
    content = b"%b%c%b%b" % (key, ability, source, body)
    if _STEM in content:
        content = content.replace(_STEM, _ESCAPED)
    length = len(content)
    if length > LONGEST:
        raise ValueError(f"An answer has {len(body):,} bytes; a record holds at most {LONGEST:,}.")
    return _HEAD.pack(_MARKER, length, zlib.crc32(content, length)) + content + _END


def decode(record: bytes) -> bytes | None:
    """Return the content of a whole record; None where it is damaged."""
    if len(record) < _HEAD.size + BODY_AT or record[-1:] != _END:
        return None
    marker, length, checksum = _HEAD.unpack_from(record)
    content = record[_HEAD.size : -1]
    if marker != _MARKER or length != len(content) or zlib.crc32(content, length) != checksum:
        return None
    return content.replace(_ESCAPED, _STEM)


def ability_name(number: int) -> str:
    """Return the name of an ability; a number that is not known here is named as such."""
    return ABILITIES[number - 1] if 0 < number <= len(ABILITIES) else f"ability {number}"


def log_paths(folder: Path) -> list[Path]:
    """Return the logs of a journal's folder, by rank; raises `DataError` where the folder cannot be read."""
    try:
        paths = [path for path in folder.iterdir() if path.suffix == ".log"]
    except OSError as error:
        raise DataError(f"The journal {str(folder)!r} cannot be read: {error.strerror}.") from error
    return sorted(paths, key=lambda path: (not path.stem.isdecimal(), len(path.stem), path.stem))


class Log:
    """One log that is read from its beginning to the end that it has when it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bad: list[BadStretch] = []
        """What was found so far, in order."""
        self.size = 0
        self._descriptor = -1

    def records(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield position, size and content of every good record; `bad` is complete after the last.

        Raises `DataError` where the file cannot be read, or is of another version.
        """
        with self._opened():
            yield from self._good_records(self._after_header())

    @contextmanager
    def _opened(self) -> Iterator[None]:
        try:
            self._descriptor = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise self._unreadable(error) from error
        try:
            self.size = os.fstat(self._descriptor).st_size
            yield
        finally:
            os.close(self._descriptor)

    def _unreadable(self, error: OSError) -> DataError:
        return DataError(f"The journal's log {str(self.path)!r} cannot be read: {error.strerror}.")

    def _after_header(self) -> int:
        """Return where the first record begins, or 0 where the header is damaged."""
        header = _HEADER_LINE.match(self._read(0, 64))
        if header is None or zlib.crc32(header[1]) != int(header[3], 16):
            return 0
        if int(header[2]) != VERSION:
            raise DataError(
                f"The journal's log {str(self.path)!r} cannot be read: expected version {VERSION} of its format, "
                f"found version {int(header[2])}.",
                hint="Use the version of the harness that wrote it, or start a new run.",
            )
        return header.end()

    def _good_records(self, start: int) -> Iterator[tuple[int, int, bytes]]:
        head, unpack, checksum_of, end = _HEAD.size, _HEAD.unpack_from, zlib.crc32, _END[0]
        position = base = good_until = start
        data = b""
        while position < self.size:
            at = position - base
            if at + head > len(data):
                data, base, at = self._read(position, BLOCK), position, 0
                if len(data) < head:
                    break
            marker, length, checksum = unpack(data, at)
            stop = at + head + length
            if stop >= len(data) and marker == _MARKER and self._may_reach(position, length):
                data = self._read(position, max(BLOCK, head + length + 1))
                base, at, stop = position, 0, head + length
            content = data[at + head : stop]
            if (
                marker != _MARKER
                or length < BODY_AT
                or stop >= len(data)
                or data[stop] != end
                or checksum_of(content, length) != checksum
            ):
                within = data.find(_MARKER, at + 1)
                unread = max(position + 1, base + len(data) - len(_MARKER) + 1)
                position = base + within if within >= 0 else self._find(unread, self.size)
                continue
            if position > good_until:
                self.bad.append(BadStretch(path=self.path, start=good_until, stop=position))
            yield position, stop + 1 - at, content.replace(_ESCAPED, _STEM) if _STEM in content else content
            position = good_until = base + stop + 1
        if good_until < self.size:
            self.bad.append(BadStretch(path=self.path, start=good_until, stop=self.size))

    def _may_reach(self, position: int, length: int) -> bool:
        """Return whether a record that ends outside of what was read can be as long as it says.

        A damaged length must not make us read the rest of a large file into memory.
        """
        stop = position + _HEAD.size + length + 1
        return length <= LONGEST and stop <= self.size and self._find(position + 1, stop) == stop

    def _find(self, start: int, stop: int) -> int:
        """Return where the next marker begins that lies before `stop`; `stop` without one."""
        while start + len(_MARKER) <= stop:
            data = self._read(start, min(BLOCK, stop - start))
            within = data.find(_MARKER)
            if within >= 0:
                return start + within
            start += max(len(data) - len(_MARKER) + 1, 1)
        return stop

    def _read(self, position: int, count: int) -> bytes:
        """Return bytes from `position` on: `count` of them, fewer only at the end of the log."""
        count = min(count, self.size - position)
        try:
            data = os.pread(self._descriptor, count, position)
            while 0 < len(data) < count and (
                more := os.pread(self._descriptor, count - len(data), position + len(data))
            ):
                data += more
        except OSError as error:
            raise self._unreadable(error) from error
        return data
