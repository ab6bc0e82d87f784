"""Skipped cells in few lines: counts by task, with the one command that gets the data."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.planning.plan import grouped_reason, reason_without_language

if TYPE_CHECKING:
    from harness.storage.results import CellResult

NOTHING_FOUND = "no data"
OTHER_LANGUAGE = "outside the task's languages"
NO_DATA = (
    "No data of ",
    "The embedded sample has no ",
    "No embedded sample of ",
    "No local file is known for ",
)
"""How `harness.data.resolve` begins where there are no files; reasons without a known remedy are shown as they are."""
NO_LANGUAGE = re.compile(r"task '.*' has no ")
NEVER_HAD = re.compile(r"task '.*?' (has no|does not say|is written in|crosses) |the language list of ")
"""How `harness.planning.planner` begins where neither files nor a model could make the cell."""
NEARBY = re.compile(r"It is in .*: run with (--data .+)\.$")
WAYS = ("--data hub or --data DIR", "--data hub")
NAMED_CODES = 4
"""Languages of a task that are named rather than counted."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Cells that were skipped for one reason."""

    title: str
    """``no data``; the whole reason where it is neither that nor a language that the task does not have."""
    remedy: str
    """Remedy, as words that follow a semicolon; empty where nothing can be done."""
    is_reason: bool = False
    """Whether the title is the whole reason."""
    cells: dict[str, list[str]] = field(default_factory=dict)
    """By task: the language of every cell."""

    @property
    def line(self) -> str:
        """The tasks with their counts, and the command."""
        tasks = ", ".join(f"{task} {self._shown(codes)}" for task, codes in self.cells.items())
        return f"{self.title}: {tasks}{f'; {self.remedy}' if self.remedy else ''}"

    def _shown(self, codes: list[str]) -> str:
        distinct = list(dict.fromkeys(codes))
        return (
            " ".join(distinct)
            if self.title != NOTHING_FOUND and len(distinct) <= NAMED_CODES
            else f"{len(codes):,}"
        )


def is_missing(cell: CellResult) -> bool:
    """Return whether a cell has no score although its task has the language and the version of its items."""
    return not cell.is_scored and not (cell.status == "skipped" and NEVER_HAD.match(cell.reason))


def missing(skipped: Iterable[tuple[str, str, str]]) -> list[Missing]:
    """Return the skipped cells, one entry for all that have the same remedy.

    Args:
        skipped: Task, language and reason of every cell.
    """
    groups: dict[tuple[str, str], Missing] = {}
    by_reason: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for task, language, reason in skipped:
        if reason.startswith(NO_DATA) and (remedy := _remedy(reason)):
            group = groups.setdefault((NOTHING_FOUND, remedy), Missing(NOTHING_FOUND, remedy))
        elif NO_LANGUAGE.match(reason):
            group = groups.setdefault((OTHER_LANGUAGE, ""), Missing(OTHER_LANGUAGE, ""))
        else:
            by_reason.setdefault((task, reason_without_language(reason, language)), []).append(
                (language, reason)
            )
            continue
        group.cells.setdefault(task, []).append(language)
    for (task, _), cells in by_reason.items():
        codes, reasons = zip(*cells, strict=True)
        reason = grouped_reason(reasons)
        same = groups.setdefault((reason, ""), Missing(reason.rstrip("."), "", is_reason=True))
        same.cells.setdefault(task, []).extend(codes)
    return list(groups.values())


def _remedy(reason: str) -> str:
    """Return the command that gets the data, as the reason itself says it."""
    nearby = NEARBY.search(reason)
    if nearby is not None:
        return f"run with {nearby[1]}"
    for way in WAYS:
        if way in reason:
            return f"run with {way}"
    return "harness tasks show TASK has the paths" if "'harness tasks show" in reason else ""
