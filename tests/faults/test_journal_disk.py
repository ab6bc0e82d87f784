"""A log that cannot be written stops the run with a sentence, and stays good for what is written later."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import StorageError
from harness.storage.journal import Journal

SOURCE = b"source-1"
KEYS = [b"key %012d" % number for number in range(60)]
BODIES = [b"body %d " % number * 5 for number in range(60)]

# The limit on the size of files is a full disk that needs no rights: the write that passes it is a short one.
FULL = """
import resource, sys
from pathlib import Path
from harness.errors import StorageError
from harness.storage.journal import Journal

folder, limit = Path(sys.argv[1]), int(sys.argv[2])
keys = [b"key %012d" % number for number in range(60)]
bodies = [b"body %d " % number * 5 for number in range(60)]
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
try:
    journal = Journal.open(folder)
except StorageError as error:
    print(error)
    sys.exit(0)
try:
    for start in range(0, 40, 8):
        journal.append(b"source-1", "tag", keys[start:start + 8], bodies[start:start + 8])
except StorageError as error:
    print(error)
known = journal.known(keys)
assert journal.path.stat().st_size == limit
assert journal.read([key for key, is_known in zip(keys, known) if is_known]) == bodies[:known.sum()]
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
journal.append(b"source-1", "tag", keys[40:], bodies[40:])
assert journal.read(keys[40:]) == bodies[40:]
print(known.sum())
"""


@pytest.mark.parametrize("limit", [10, 27, 28, 50, 1000, 1001, 2500])
def test_a_full_disk_loses_nothing_that_was_written_whole(tmp_path: Path, limit: int) -> None:
    folder = tmp_path / "run" / "journal"
    command = [sys.executable, "-c", FULL, str(folder), str(limit)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    message, *counts = result.stdout.splitlines()
    assert message.startswith(
        f"The journal's log {str(folder / '0.log')!r} cannot be written: File too large. "
    )
    assert message.endswith(f"harness eval --resume {tmp_path / 'run'}")
    assert bool(counts) == (limit >= 27), "without room for its header no log is opened"
    whole = int(counts[0]) if counts else 0
    with Journal.open(folder) as journal:
        expected = [number < whole or (number >= 40 and bool(counts)) for number in range(60)]
        assert journal.known(KEYS).tolist() == expected
        known = [number for number in range(60) if expected[number]]
        assert journal.read([KEYS[number] for number in known]) == [BODIES[number] for number in known]
        assert journal.dropped == (limit != 27), "the torn record, or the torn header"
        again = [number for number in range(60) if not expected[number]]
        journal.append(
            SOURCE, "tag", [KEYS[number] for number in again], [BODIES[number] for number in again]
        )
        assert journal.read(KEYS) == BODIES
    with Journal.open(folder) as journal:
        assert journal.read(KEYS) == BODIES


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_no_space_left(tmp_path: Path) -> None:
    (tmp_path / "0.log").symlink_to("/dev/full")
    with pytest.raises(StorageError, match="No space left on device") as caught:
        Journal.open(tmp_path)
    assert caught.value.hint is not None
    assert "harness eval --resume" in caught.value.hint


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_no_space_left_later(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:
        journal.append(SOURCE, "tag", KEYS[:2], BODIES[:2])
        full = os.open("/dev/full", os.O_WRONLY)
        assert journal._writer is not None
        kept = os.dup(journal._writer)
        os.dup2(full, journal._writer)
        with pytest.raises(StorageError, match="No space left on device"):
            journal.append(SOURCE, "tag", KEYS[2:4], BODIES[2:4])
        with pytest.raises(StorageError, match="No space left on device"):
            journal.describe(SOURCE, {"adapter": "x"})
        os.dup2(kept, journal._writer)
        os.close(full)
        os.close(kept)
        assert journal.known(KEYS[:4]).tolist() == [True, True, False, False]
        size = journal.path.stat().st_size
        journal.describe(SOURCE, {"adapter": "x"})
        assert journal.path.stat().st_size > size, "a description that failed is written the next time"
        journal.append(SOURCE, "tag", KEYS[2:4], BODIES[2:4])
        assert journal.read(KEYS[:4]) == BODIES[:4]


def test_a_short_write_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    with Journal.open(tmp_path) as journal:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:7]))
            journal.append(SOURCE, "tag", KEYS[:5], BODIES[:5])
        assert journal.read(KEYS[:5]) == BODIES[:5]
    with Journal.open(tmp_path) as journal:
        assert (journal.dropped, journal.read(KEYS[:5])) == (0, BODIES[:5])


def test_answers_of_a_batch_are_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    write = os.write

    def counting(descriptor: int, data: bytes) -> int:
        counts.append(len(data))
        return write(descriptor, data)

    with Journal.open(tmp_path) as journal, monkeypatch.context() as patch:
        patch.setattr(os, "write", counting)
        journal.append(SOURCE, "tag", KEYS, BODIES)
    assert len(counts) == 1


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    for folder, reason in (
        (tmp_path / "run", "File exists"),
        (tmp_path / "run" / "journal", "Not a directory"),
    ):
        with pytest.raises(StorageError, match=f"cannot be written: {reason}") as caught:
            Journal.open(folder)
        assert caught.value.hint is not None
        assert caught.value.hint.startswith("Make it writable")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser can write anywhere")
def test_a_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    with pytest.raises(StorageError, match=r"cannot be written: Permission denied\. Make it writable"):
        Journal.open(tmp_path)
