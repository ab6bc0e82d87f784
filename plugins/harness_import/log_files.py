"""Finds the logs in files and folders, and which harness wrote each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from harness import HarnessError, UsageError, show_step
from harness_import import answer_table, euroeval_log, every_eval_log, inspect_log, lm_eval_log
from harness_import.logged import UNDETERMINED, LoggedCell

Read = Callable[[Path], Iterator[LoggedCell]]
SUFFIXES: Final = frozenset({".eval", ".json", *answer_table.READERS})
_BY_RECORD: Final[tuple[tuple[Callable[[Mapping[str, Any]], bool], Read], ...]] = (
    (lm_eval_log.is_samples, lm_eval_log.read_samples),
    (every_eval_log.is_instances, every_eval_log.read_instances),
    (euroeval_log.is_records, euroeval_log.read_results),
)


def read_logs(paths: Sequence[Path], undetermined: str = UNDETERMINED) -> list[LoggedCell]:
    """Return all cells of logs; `undetermined` is the language of those that name none.

    Raises `UsageError` for a file that no reader takes and where there is none, and `DataError` for a broken one.
    """
    cells: list[LoggedCell] = []
    for path, read in _readable(paths):
        show_step(f"Reading {path.name}")
        for cell in read(path):
            _check_ids(cell)
            language = undetermined if cell.language == UNDETERMINED else cell.language
            scored = [item for item in cell.items if item.scores]
            lost = len(cell.items) - len(scored)
            notes = (
                (*cell.notes, f"{cell.title}: {lost} items have no score: left out.") if lost else cell.notes
            )
            cells.append(replace(cell, language=language, items=scored, notes=notes))
    if not cells:
        raise UsageError(f"No log is in {', '.join(map(str, paths))}.", hint=_EXPECTED)
    return cells


_EXPECTED: Final = (
    "Expected lm-eval's samples_*.jsonl with results_*.json, logs of inspect_ai, EuroEval's results, instances of "
    f"Every Eval Ever, or a table with the columns {', '.join(answer_table.COLUMNS)}."
)


def _readable(paths: Sequence[Path]) -> Iterator[tuple[Path, Read]]:
    """Yield the logs with their readers: every file that is named must be one, of a folder those that are."""
    for path in paths:
        if path.is_dir():
            files = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
            yield from ((file, read) for file in files if (read := _reader(file, named=False)) is not None)
            continue
        if not path.is_file():
            raise UsageError(f"The log {str(path)!r} does not exist.")
        read = _reader(path, named=True)
        if read is not None:
            yield path, read
        elif not _is_results(path):
            raise UsageError(f"The file {str(path)!r} is no log that can be imported.", hint=_EXPECTED)


def _is_results(path: Path) -> bool:
    """Return whether a file is read with another one: lm-eval's results, which samples name."""
    return path.suffix == ".json" and path.name.startswith("results_")


def _reader(path: Path, *, named: bool) -> Read | None:
    if path.suffix in {".eval", ".json"}:
        return inspect_log.read_log if inspect_log.is_log(path) else None
    if path.suffix not in answer_table.READERS:
        return None
    try:
        first = next((row.fields for row in answer_table.read_rows(path)), {})
    except HarnessError:
        if named:
            raise
        return None
    readers = [read for fits, read in _BY_RECORD if fits(first)]
    is_table = named or set(answer_table.COLUMNS) <= first.keys()
    return readers[0] if readers else answer_table.read_table if is_table and first else None


def _check_ids(cell: LoggedCell) -> None:
    ids: set[str] = set()
    for item in cell.items:
        if item.id in ids:
            raise UsageError(
                f"The item {item.id!r} is twice in {cell.title} of {cell.model!r} ({cell.files[-1].name}).",
                hint="Give one run of a model and task at a time.",
            )
        ids.add(item.id)
