"""The journal of a run: every answer is written at once, under a key made from the request and the model.

One writer a log, append-only; what a crash, a full disk or a flipped bit spoiled is asked again, the rest is used.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from harness.errors import DataError, StorageError, UsageError
from harness.storage.journal_log import (
    ABILITIES,
    BODY_AT,
    DESCRIPTION,
    HEADER,
    KEY_BYTES,
    SOURCE_BYTES,
    Log,
    decode,
    encode,
    log_paths,
)
from harness.storage.redaction import redact

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_MOST_OPEN = 64
"""Files of answers that are kept open at a time."""


MERGE_AT = 1 << 16
"""Keys that are kept in a dict before they are merged into the sorted arrays."""
_LARGE_SHARE = 16
"""In a large index the dict may hold this part of it, so that merging stays cheap for each key."""


class KeyIndex:
    """Keys of 16 bytes, and for each the number of a log, a position and a size; the first place of a key counts."""

    def __init__(self, *, merge_at: int = MERGE_AT) -> None:
        self._merge_at = merge_at
        # Of equal and full length, so that numpy's disregard of trailing zero bytes changes no comparison.
        self._keys: npt.NDArray[np.bytes_] = np.empty(0, "S16")
        self._logs = np.empty(0, np.uint16)
        self._positions = np.empty(0, np.uint64)
        self._sizes = np.empty(0, np.uint32)
        self._recent: dict[bytes, int] = {}

    def __len__(self) -> int:
        """Return the number of distinct keys."""
        self.merge()
        return len(self._keys)

    def add(self, key: bytes, log: int, position: int, size: int) -> None:
        """Enter a key; does nothing where it is already there."""
        recent = self._recent
        if key not in recent:
            # One integer, since a tuple a key would take three times the memory.
            recent[key] = position << 48 | size << 16 | log
            if len(recent) >= self._merge_at and len(recent) * _LARGE_SHARE >= len(self._keys):
                self.merge()

    def known(self, keys: Sequence[bytes]) -> npt.NDArray[np.bool_]:
        """Return, for each key, whether it is there; raises `ValueError` for a key that is not 16 bytes long."""
        present = self._find(keys)[1]
        if self._recent:
            present |= np.fromiter(map(self._recent.__contains__, keys), np.bool_, len(keys))
        return present

    def places(self, keys: Sequence[bytes]) -> list[tuple[int, int, int]]:
        """Return log, position and size of each key; raises `KeyError` with the first that is not there."""
        at, present = self._find(keys)
        at[~present] = 0
        empty = not len(self._keys)
        columns = (
            [0] * len(at) if empty else c[at].tolist() for c in (self._logs, self._positions, self._sizes)
        )
        rows = list(zip(*columns, strict=True))
        for number in np.flatnonzero(~present).tolist():
            packed = self._recent[keys[number]]
            rows[number] = (packed & 0xFFFF, packed >> 48, packed >> 16 & 0xFFFFFFFF)
        return rows

    def merge(self) -> None:
        """Move what was entered last into the sorted arrays."""
        if not self._recent:
            return
        recent = list(self._recent.values())
        keys = np.frombuffer(b"".join(self._recent), "S16")
        order = np.argsort(keys)
        keys = keys[order]
        at, old = self._find_array(keys)
        order, at, keys = order[~old], at[~old], keys[~old]
        self._recent.clear()
        # Column by column, so that never more than one of them is there twice.
        self._keys = np.insert(self._keys, at, keys)
        logs = np.array([packed & 0xFFFF for packed in recent], np.uint16)
        self._logs = np.insert(self._logs, at, logs[order])
        positions = np.array([packed >> 48 for packed in recent], np.uint64)
        self._positions = np.insert(self._positions, at, positions[order])
        sizes = np.array([packed >> 16 & 0xFFFFFFFF for packed in recent], np.uint32)
        self._sizes = np.insert(self._sizes, at, sizes[order])

    def _find(self, keys: Sequence[bytes]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
        if any(len(key) != 16 for key in keys):
            raise ValueError("A key of the journal has 16 bytes.")
        return self._find_array(np.frombuffer(b"".join(keys), "S16"))

    def _find_array(self, keys: npt.NDArray[np.bytes_]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
        """Return where each key belongs in the sorted arrays, and whether it is there."""
        at = np.searchsorted(self._keys, keys)
        if not len(self._keys):
            return at, np.zeros(len(keys), np.bool_)
        return at, self._keys[np.minimum(at, len(self._keys) - 1)] == keys


class Journal:
    """The answers of a run and of the runs it reuses; new ones go to the log of this process."""

    def __init__(self, folder: Path, rank: int, index: KeyIndex) -> None:
        self.path = folder / f"{rank}.log"
        self.dropped = 0
        """Bad stretches that were found while opening."""
        self._index = index
        self._logs: list[Path] = []
        self._own = 0
        self._readers: dict[int, int] = {}
        self._described: set[bytes] = set()
        self._writer: int | None = None

    @classmethod
    def open(
        cls, folder: Path, rank: int = 0, *, reuse: Sequence[Path] = (), merge_at: int = MERGE_AT
    ) -> Journal:
        """Read the logs of all ranks in `folder` (RUN/journal), which is made where it is missing, and of `reuse`.

        Of two answers under one key the first counts: those of `folder` by rank, then those of `reuse` in order.
        While it is read no other process may write into the folder, or what it is just writing counts as bad.
        Nothing is ever written below `reuse`.

        Raises:
            DataError: A log cannot be read or is of another version.
            StorageError: The folder or this rank's log cannot be made.
            UsageError: A folder of `reuse` is not there.
        """
        journal = cls(folder, rank, KeyIndex(merge_at=merge_at))
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise journal._unwritable(error) from error
        journal._read_logs([folder, *reuse])
        try:
            journal._start_writing()
        except OSError as error:
            journal.close()
            raise journal._unwritable(error) from error
        return journal

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def known(self, keys: Sequence[bytes]) -> npt.NDArray[np.bool_]:
        """Return, for each key of 16 bytes, whether its answer is there."""
        return self._index.known(keys)

    def read(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return the bodies of known keys, in order.

        Raises:
            KeyError: A key is not known.
            DataError: The record on disk is no longer the one that was found or written.
        """
        bodies = []
        for key, (log, position, size) in zip(keys, self._index.places(keys), strict=True):
            try:
                content = decode(os.pread(self._reader(log), size, position))
            except OSError as error:
                raise DataError(
                    f"The journal's log {str(self._logs[log])!r} cannot be read: {error.strerror}."
                ) from error
            if content is None or content[:KEY_BYTES] != key:
                raise DataError(
                    f"The journal's log {str(self._logs[log])!r} was changed while it was in use: "
                    f"byte {position:,} no longer begins the record that was there.",
                    hint=f"See what is left of it: harness journal verify {self._logs[log].parent.parent}",
                )
            bodies.append(content[BODY_AT:])
        return bodies

    def append(self, source: bytes, ability: str, keys: Sequence[bytes], bodies: Sequence[bytes]) -> None:
        """Write answers, which are known from then on, all in one write.

        Raises:
            StorageError: They cannot be written; those that were written whole are known nevertheless.
            ValueError: The ability has no number, or keys, source and bodies do not fit.
        """
        if ability not in ABILITIES:
            raise ValueError(f"The journal has no number for the ability {ability!r}; it knows {ABILITIES}.")
        if len(source) != SOURCE_BYTES or any(len(key) != KEY_BYTES for key in keys):
            raise ValueError(f"A source has {SOURCE_BYTES} bytes and a key {KEY_BYTES}.")
        number = ABILITIES.index(ability) + 1
        records = [encode(key, number, source, body) for key, body in zip(keys, bodies, strict=True)]
        self._write(records, keys)

    def describe(self, source: bytes, identity: Mapping[str, str]) -> None:
        """Write down what a source means, once for each source and log; raises `StorageError`."""
        if len(source) != SOURCE_BYTES:
            raise ValueError(f"A source has {SOURCE_BYTES} bytes.")
        if source in self._described:
            return
        body = redact(json.dumps(dict(identity), ensure_ascii=False, sort_keys=True)).encode()
        self._write([encode(bytes(KEY_BYTES), DESCRIPTION, source, body)], ())
        self._described.add(source)

    def sync(self) -> None:
        """Return once everything written is on the disk; raises `StorageError`."""
        try:
            os.fsync(self._open_writer())
        except OSError as error:
            raise self._unwritable(error) from error

    def close(self) -> None:
        """Close all files; a second call does nothing. Raises `StorageError` where a write fails only now."""
        for descriptor in self._readers.values():
            os.close(descriptor)
        self._readers.clear()
        writer, self._writer = self._writer, None
        if writer is not None:
            try:
                os.close(writer)
            except OSError as error:
                raise self._unwritable(error) from error

    def _read_logs(self, folders: Sequence[Path]) -> None:
        resolved = set()
        for folder in folders:
            if not folder.is_dir():
                raise UsageError(
                    f"The run {str(folder.parent)!r} has no answers to reuse: it has no folder {folder.name!r}."
                )
            if folder.resolve() not in resolved:
                resolved.add(folder.resolve())
                for path in log_paths(folder):
                    self._read_log(path)
        self._index.merge()
        if self.path not in self._logs:
            self._logs.append(self.path)
        self._own = self._logs.index(self.path)

    def _read_log(self, path: Path) -> None:
        log, number, add = Log(path), len(self._logs), self._index.add
        for position, size, content in log.records():
            if content[KEY_BYTES] != DESCRIPTION:
                add(content[:KEY_BYTES], number, position, size)
            elif path == self.path:
                self._described.add(content[KEY_BYTES + 1 : BODY_AT])
        self.dropped += len(log.bad)
        self._logs.append(path)

    def _start_writing(self) -> None:
        self._writer = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        # What is left of a broken header stays: a reader finds the records behind it without one.
        if not os.fstat(self._writer).st_size:
            written = 0
            while written < len(HEADER):
                written += os.write(self._writer, HEADER[written:])
            folder = os.open(self.path.parent, os.O_RDONLY)
            with suppress(OSError):  # not every network file system can
                os.fsync(folder)
            os.close(folder)

    def _write(self, records: Sequence[bytes], keys: Sequence[bytes]) -> None:
        """Write records and enter those that came whole to the disk under `keys`."""
        writer, data, written = self._open_writer(), b"".join(records), 0
        failure: OSError | None = None
        try:
            position = os.fstat(writer).st_size
            while written < len(data):
                written += os.write(writer, data[written:] if written else data)
        except OSError as error:
            failure = error
        for key, record in zip(keys, records, strict=False):
            written -= len(record)
            if written < 0:
                break
            self._index.add(key, self._own, position, len(record))
            position += len(record)
        if failure is not None:
            raise self._unwritable(failure) from failure

    def _open_writer(self) -> int:
        if self._writer is None:
            raise ValueError(f"The journal's log {str(self.path)!r} is closed.")
        return self._writer

    def _reader(self, log: int) -> int:
        if log not in self._readers:
            if len(self._readers) >= _MOST_OPEN:
                os.close(self._readers.pop(next(iter(self._readers))))
            self._readers[log] = os.open(self._logs[log], os.O_RDONLY)
        return self._readers[log]

    def _unwritable(self, error: OSError) -> StorageError:
        deed = "Free some space" if error.errno in _FULL else "Make it writable"
        return StorageError(
            f"The journal's log {str(self.path)!r} cannot be written: {error.strerror}.",
            hint=f"{deed} and continue with: harness eval --resume {self.path.parent.parent}",
        )
