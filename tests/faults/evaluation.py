"""The evaluations that faults are put into, and what of their runs must be the same in the end."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.storage.journal_log import DESCRIPTION, KEY_BYTES, Log, log_paths
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

from .command import Attempt, Commands

TOLERANCE = 1e-5
UNSTEADY = {"seconds", "digest", "traceback"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A command line, and how its undisturbed run ended."""

    name: str
    arguments: tuple[str, ...]
    pace: float
    """Seconds by which every use of the model is made slower, so that there is something to disturb."""
    reference: Path
    seconds: float
    """How long a warm command took, undisturbed at this pace."""

    def start(self, commands: Commands, output: Path, *further: object, **settings: Any) -> Attempt:
        """Start it, or resume it where it was started."""
        given: tuple[object, ...] = ("--output", output, *self.arguments)
        if (output / "manifest.json").is_file():
            given = ("--resume", output)
        settings = {"faults": {"pace": self.pace}, **settings}
        return commands.start("eval", *given, *further, **settings)

    def finish(self, commands: Commands, output: Path, *further: object, **settings: Any) -> Attempt:
        """Start or resume it, and check that it ends well; nothing slows it down."""
        attempt = self.start(commands, output, *further, **{"faults": {}, **settings})
        assert attempt.wait() == 0, attempt.err
        return attempt


def keys(run: Path) -> Iterator[bytes]:
    """Yield the key of every whole answer in the journals of a run, as often as it is there."""
    folder = run / "journal"
    for path in log_paths(folder) if folder.is_dir() else []:
        yield from _keys(path)


def _keys(log: Path) -> Iterator[bytes]:
    for _, _, content in Log(log).records():
        if content[KEY_BYTES] != DESCRIPTION:
            yield content[:KEY_BYTES]


def answers(run: Path) -> int:
    """Return how many answers a run has written down."""
    return sum(1 for _ in keys(run))


def repeated(run: Path) -> int:
    """Return how many answers were asked for again although they were written down."""
    every = list(keys(run))
    return len(every) - len(set(every))


def answers_by_log(run: Path) -> list[int]:
    """Return how many answers each process of a run has written down."""
    folder = run / "journal"
    return [len(list(_keys(path))) for path in log_paths(folder)] if folder.is_dir() else []


def read_results(run: Path) -> dict[str, Any]:
    """Return what a run wrote, as it is on disk."""
    content: dict[str, Any] = json.loads((run / "results.json").read_text(encoding="utf-8"))
    return content


def plain_cells(run: Path) -> list[dict[str, Any]]:
    """Return the cells of a run without their times."""
    return [
        {name: value for name, value in cell.to_json().items() if name != "seconds"}
        for cell in Run(run).cells
    ]


def requests(run: Path) -> dict[str, int]:
    """Return what the results say of the requests."""
    counts: dict[str, int] = read_results(run)["run"]["requests"]
    return counts


def assert_whole(run: Path, reference: Path) -> None:
    """The run is the undisturbed one, its answers are all there, and none was asked for again."""
    assert_same(run, reference)
    own, others = set(keys(run)), set(keys(reference))
    # What a fit went through is part of the name of the model that it made, so that names may differ there.
    assert own == others if _has_no_fit(reference) else len(own) == len(others)
    assert repeated(run) == 0
    counts, wanted = requests(run), requests(reference)
    assert counts["planned"] == wanted["planned"] == counts["asked"] + counts["reused"]


def _has_no_fit(run: Path) -> bool:
    return not Run(run).results.fits


def assert_same(run: Path, reference: Path, *, tolerance: float = TOLERANCE) -> None:
    """Predictions and metrics are the same, item by item, and so is the list of cells."""
    one, other = Run(run), Run(reference)
    assert len(one.cells) == len(other.cells)
    for own, wanted in zip(one.cells, other.cells, strict=True):
        assert_close(_steady(own), _steady(wanted), tolerance, own.task)
        if wanted.status == "ok":
            records = zip(one.records(own), other.records(wanted), strict=True)
            for record, expected in records:
                assert_close(_plain(record), _plain(expected), tolerance, f"{own.task} {expected.id}")
    assert_close(one.results.tasks, other.results.tasks, tolerance, "tasks")


def _steady(cell: CellResult) -> dict[str, Any]:
    return {name: value for name, value in cell.to_json().items() if name not in UNSTEADY}


def _plain(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__slots__}


def assert_close(one: Any, other: Any, tolerance: float, where: str) -> None:
    """Two plain values are equal, numbers within a tolerance."""
    if isinstance(other, float) and isinstance(one, float):
        assert math.isclose(one, other, abs_tol=tolerance, rel_tol=tolerance) or one == other, where
    elif isinstance(other, dict):
        assert one.keys() == other.keys(), f"{where}: {one.keys() ^ other.keys()}"
        for name, value in other.items():
            assert_close(one[name], value, tolerance, f"{where}.{name}")
    elif isinstance(other, (list, tuple)):
        assert len(one) == len(other), where
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            assert_close(left, right, tolerance, f"{where}[{number}]")
    else:
        assert one == other, f"{where}: {one!r} is not {other!r}"
