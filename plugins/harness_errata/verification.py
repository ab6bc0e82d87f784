"""Errata against the items at hand, for pull requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness import Problem, Run, SpecError, open_session
from harness.data import DataFinder
from harness.planning import data_options
from harness.storage import cache_folder
from harness_errata.document import ITEM, Errata
from harness_errata.fitting import DataItems, FittedFile, RunItems, fit_file


def fit_data(
    errata: Errata, data: Sequence[str], tasks_from: Sequence[Path], *, allow_code: bool
) -> list[FittedFile]:
    """Return how the files fit the test items of data; raises `UnknownNameError`, and `DataError` for broken data."""
    session = open_session(tuple(tasks_from), allow_code=allow_code)
    finder = DataFinder(data_options(tuple(data)), session.registry, cache_folder() / "data")
    return [fit_file(file, DataItems(session, finder, file.document.errata)) for file in errata.files]


def fit_runs(errata: Errata, folders: Sequence[Path]) -> list[FittedFile]:
    """Return how the files fit the items of runs; raises `DataError` for broken records."""
    return [
        fit_file(file, RunItems(run, file.document.errata))
        for run in map(Run, folders)
        for file in errata.files
        if file.document.errata in run.manifest.tasks
    ]


def check_fits(fits: Sequence[FittedFile], *, complete: bool) -> None:
    """Raise `SpecError` with the first file that is wrong about the items at hand.

    Args:
        fits: How the files fit.
        complete: Whether all items are at hand, so that an entry of another one is a fault; those that take an item
            out are none, as a task may leave it out already.
    """
    for fitted in fits:
        problems = [Problem(message=message, line=line) for line, message in fitted.mismatches]
        problems += [
            Problem(message=f"{entry.language} has no item {entry.id!r}", line=line)
            for line, entry in fitted.absent
            if complete and entry.field != ITEM
        ]
        if problems:
            raise SpecError(fitted.file.path, sorted(problems, key=lambda problem: problem.line or 0))


def check_rows(errata: Errata, fits: Sequence[FittedFile]) -> Iterator[dict[str, Any]]:
    """Yield a row per file: its entries, and how many were verified; None where nothing was."""
    for file in errata.files:
        verified = [fitted for fitted in fits if fitted.file is file]
        applied = {(*entry.key, entry.field) for item in verified for entry in (*item.applied, *item.texts)}
        absent = {entry.key for item in verified for _, entry in item.absent}
        yield {
            "file": file.path.name,
            "task": file.document.errata,
            "revision": file.document.revision,
            "languages": len({entry.language for entry in file.document.entries}),
            "entries": len(file.document.entries),
            "verified": len(applied) if verified else None,
            "left out already": len(absent) if verified else None,
        }
