"""``harness journal verify`` on good and damaged logs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.storage.journal import Journal

Cli = Callable[..., tuple[int, str, str]]
SOURCE, OTHER = bytes(range(8)), b"\xff" * 8
IDENTITY = {"adapter": "hf", "dtype": "float32", "ref": "hf:models/[x]", "weights": "0123456789abcdef" * 4}


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of two processes: process 1 asked one of process 0's requests again."""
    folder = tmp_path / "run"
    with Journal.open(folder / "journal") as journal:
        journal.describe(SOURCE, IDENTITY)
        journal.append(SOURCE, "classify", [key(n) for n in range(1200)], [b"x"] * 1200)
        journal.append(OTHER, "embed", [key(2000)], [b"y" * 100])
    with Journal.open(folder / "journal", 1) as journal:
        journal.append(SOURCE, "generate", [key(5), key(3000), key(3000)], [b"z"] * 3)
    return folder


def damage(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_a_good_journal_is_one_line(run: Path, cli: Cli) -> None:
    status, out, err = cli("journal", "verify", run, "--json", "rows.json")
    assert (status, out, err) == (0, "2 logs, 1,204 good answers, 0 bad stretches.\n", "")
    assert json.loads(Path("rows.json").read_text(encoding="utf-8")) == []


def test_verify_names_every_bad_stretch(run: Path, cli: Cli) -> None:
    log, other = run / "journal" / "0.log", run / "journal" / "1.log"
    size = log.stat().st_size
    damage(log, size - 50)
    damage(log, size - 142 - 43 * 10)
    other.write_bytes(other.read_bytes()[:-3])
    status, out, err = cli("journal", "verify", run, "--json", "rows.json")
    assert (status, err) == (1, "")
    end = other.stat().st_size
    # A record of a body of one byte has 16 + 16 + 1 + 8 + 1 + 1 bytes.
    spans = [
        (log, size - 142 - 43 * 10, size - 142 - 43 * 9),
        (log, size - 142, size),
        (other, end - 40, end),
    ]
    assert out.splitlines() == [
        *(f"{path}: bytes {start:,} to {stop - 1:,} are no good records." for path, start, stop in spans),
        "2 logs, 1,201 good answers, 3 bad stretches (225 bytes); a resumed run asks again what is missing.",
    ]
    assert json.loads(Path("rows.json").read_text(encoding="utf-8")) == [
        {"log": path.name, "from": start, "to": stop} for path, start, stop in spans
    ]


def test_a_folder_without_a_journal_is_named(tmp_path: Path, cli: Cli) -> None:
    folder = tmp_path / "some"
    steps: dict[str, Callable[[], object]] = {
        "does not exist": lambda: None,
        "is no run: it has no manifest.json": folder.mkdir,
        "has no journal: it has no folder 'journal'": lambda: (folder / "manifest.json").write_text("{}"),
    }
    for fault, step in steps.items():
        step()
        status, _, err = cli("journal", "verify", folder)
        assert status == 2
        assert f"{str(folder)!r} {fault}" in err


def test_a_file_that_cannot_be_written_is_reported_first(run: Path, cli: Cli) -> None:
    status, out, err = cli("journal", "verify", run, "--json", "absent/rows.json")
    assert (status, out) == (2, "")
    assert "The file 'absent/rows.json' cannot be written" in err
