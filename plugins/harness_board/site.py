"""A board as a folder of pages for any static host: an index, a page for each task and one for each language."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from harness import UsageError
from harness_board.document import Board
from harness_board.rendering import board_page

__all__ = ["site_pages", "write_site"]

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]*")


def site_pages(board: Board) -> dict[str, Callable[[], str]]:
    """Return what makes each page, by file name; raises `UsageError` for names that are no safe file names."""
    pages: dict[str, Callable[[], str]] = {"index.html": lambda: board_page(board, address=_address)}
    for task in board.tasks:
        part = board.only(tasks=[task.task])
        pages[_address("task", task.task)] = lambda part=part, name=task.task: board_page(  # type: ignore[misc]
            part, task=name, address=_address
        )
    for code in board.languages:
        pages[_address("language", code)] = lambda code=code: board_page(  # type: ignore[misc]
            board.only(languages=[code]), language=code, address=_address
        )
    return pages


def _address(kind: str, name: str) -> str:
    if not kind:
        return "index.html"
    if not _SAFE.fullmatch(name):
        raise UsageError(f"The {kind} {name!r} cannot be used in the name of a page.")
    return f"{kind}-{name}.html"


def write_site(board: Board, folder: Path) -> int:
    """Write the pages into a folder and return their number; raises `UsageError` where it cannot be written."""
    from harness.storage.files import write_atomically

    pages = site_pages(board)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, make in pages.items():
            write_atomically(folder / name, make())
    except OSError as error:
        raise UsageError(f"The folder {str(folder)!r} cannot be written: {error.strerror}.") from error
    return len(pages)
