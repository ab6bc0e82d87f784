"""The journal by itself: answers written, looked up and read back per second, against sqlite3; opening and memory.

Small answers are written in batches of 32 under keys that are given. SQLite inserts each answer by itself in
transactions of 32, without waiting for the disk (synchronous=OFF), as the journal does. A million records are opened in
a process of its own, which measures its memory; the limits are 20,000 answers a second and 60 MB.
Run: make bench, or python -m benchmarks.journal [--answers N] [--records N] [--rounds N]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.lm_eval_peer import MEGABYTE, peak_memory, resident_memory
from benchmarks.measuring import alternate, record
from harness.storage.journal import Journal

BATCH = 32
SOURCE = b"source-1"
BODY = b'{"scores":[-1.25,-0.5,-3.75]}'
FASTEST = 20_000
MOST_MEGABYTES = 60


def batches(count: int) -> Iterator[list[bytes]]:
    """Return the keys of `count` answers, 32 at a time."""
    for start in range(0, count, BATCH):
        numbers = range(start, min(start + BATCH, count))
        yield [hashlib.blake2b(str(number).encode(), digest_size=16).digest() for number in numbers]


class OurJournal:
    """The journal, as a run uses it."""

    def __init__(self, folder: Path, keys: Sequence[list[bytes]]) -> None:
        self._folder, self._keys = folder, keys
        self._round = 0

    def write(self) -> None:
        """Write all answers into a new journal."""
        self._round += 1
        with Journal.open(self._folder / str(self._round)) as journal:
            for keys in self._keys:
                journal.append(SOURCE, "loglikelihood", keys, [BODY] * len(keys))

    def read(self) -> None:
        """Look all answers up and read them."""
        with Journal.open(self._folder / str(self._round)) as journal:
            for keys in self._keys:
                if not journal.known(keys).all() or journal.read(keys) != [BODY] * len(keys):
                    raise AssertionError("The journal lost an answer.")


class Sqlite:
    """A table with one row per answer."""

    def __init__(self, folder: Path, keys: Sequence[list[bytes]]) -> None:
        self._folder, self._keys = folder, keys
        self._round = 0

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._folder / f"{self._round}.sqlite", isolation_level=None)
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, source BLOB, body BLOB)"
        )
        return connection

    def write(self) -> None:
        """Write all answers into a new database."""
        self._round += 1
        connection = self._open()
        for keys in self._keys:
            connection.execute("BEGIN")
            for key in keys:
                connection.execute("INSERT INTO answers VALUES (?, ?, ?)", (key, SOURCE, BODY))
            connection.execute("COMMIT")
        connection.close()

    def read(self) -> None:
        """Look all answers up and read them."""
        connection = self._open()
        for keys in self._keys:
            for key in keys:
                if connection.execute("SELECT body FROM answers WHERE key = ?", (key,)).fetchone() != (BODY,):
                    raise AssertionError("SQLite lost an answer.")
        connection.close()


def opened(folder: Path) -> dict[str, float]:
    """Return the seconds that opening a journal takes, and the memory in MB that it adds after it and at most."""
    before = resident_memory()
    started = time.perf_counter()
    with Journal.open(folder):
        seconds = time.perf_counter() - started
        return {"seconds": seconds, "after": resident_memory() - before, "peak": peak_memory() - before}


def show_rates(count: int, rounds: int) -> None:
    """Print how many answers a second are written, and known and read, here and by SQLite."""
    keys = list(batches(count))
    table = Table(
        "",
        "journal",
        "sqlite3",
        "ratio",
        "limit",
        title="Answers a second, batches of 32",
        title_justify="left",
    )
    with tempfile.TemporaryDirectory() as temporary:
        ours, peer = OurJournal(Path(temporary), keys), Sqlite(Path(temporary), keys)
        rows: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
            "write": (ours.write, peer.write),
            "open, know and read": (ours.read, peer.read),
        }
        for name, (our_deed, peer_deed) in rows.items():
            seconds = alternate({"journal": our_deed, "sqlite3": peer_deed}, rounds=rounds)
            rates = [count / median(seconds[side]) for side in ("journal", "sqlite3")]
            limit = f"at least {FASTEST:,}"
            table.add_row(name, *(f"{rate:,.0f}" for rate in rates), f"{rates[0] / rates[1]:.1f}", limit)
            record(f"journal, {name}: answers/s", rates[0], FASTEST, least=True)
    Console(width=110).print(table)


def show_opening(count: int) -> None:
    """Print how long opening a journal takes and what it costs in memory."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "journal"
        with Journal.open(folder) as journal:
            for keys in batches(count):
                journal.append(SOURCE, "loglikelihood", keys, [BODY] * len(keys))
            size = journal.path.stat().st_size
        command = [sys.executable, "-m", "benchmarks.journal", "--opened", str(folder)]
        result = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(result.stdout)
    print(
        f"Opening {count:,} records ({size / MEGABYTE:,.0f} MB): {found['seconds']:.2f} s, "
        f"{count / found['seconds']:,.0f} records/s; {found['after']:.0f} MB of memory after it "
        f"(limit {MOST_MEGABYTES} MB for 1,000,000), {found['peak']:.0f} MB at most"
    )
    record(f"journal, opening {count:,} records: memory", found["after"], MOST_MEGABYTES, unit=" MB")


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--answers", type=int, default=100_000, help="for the rates")
    parser.add_argument("--records", type=int, default=1_000_000, help="for opening")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--opened", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.opened is not None:
        print(json.dumps(opened(given.opened)))
        return
    show_rates(given.answers, given.rounds)
    show_opening(given.records)


if __name__ == "__main__":
    main()
