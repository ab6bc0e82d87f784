"""A board as pages without a server: its table for readers without JavaScript, its data, and the script that shows it.

One page, or a folder for any static host: an index, a page for each task and one for each language.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from importlib import resources
from pathlib import Path

from harness import UsageError
from harness.reporting.number import INTERVAL_LEGEND
from harness.reporting.page import page, template
from harness_board.document import Board
from harness_board.run_reading import LEGEND
from harness_board.sections import equity_section, extension_section
from harness_board.standing import standing

__all__ = ["board_page", "board_style", "script", "site_pages", "write_site"]

MODULES = ("compute.mjs", "draw.mjs", "drill.mjs", "controls.mjs", "main.mjs")
_IMPORT = re.compile(r"^import .*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=function|const|async|class)", re.MULTILINE)
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]*")
OVERALL = (
    "mean of the category means; a category is the mean of its tasks, a task the mean over its languages"
)
Address = Callable[[str, str], str]
"""("task" or "language" or "", name) -> where its page lies."""


@cache
def script() -> str:
    """Return the modules of the page as one: an inline module cannot import another from a file."""
    folder = resources.files("harness_board") / "static"
    sources = [(folder / name).read_text(encoding="utf-8") for name in MODULES]
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", source)) for source in sources)


@cache
def board_style() -> str:
    """Return the style of the page, which follows the one that all pages share."""
    return resources.files("harness_board").joinpath("static/board.css").read_text(encoding="utf-8")


def board_page(
    board: Board, *, task: str | None = None, language: str | None = None, address: Address | None = None
) -> str:
    """Return a page of the board.

    Args:
        board: What it holds.
        task: The task that the page is about; by default the address bar decides.
        language: The language that the page is about.
        address: Where pages lie; by default within this page.
    """
    route = {key: value for key, value in (("task", task), ("language", language)) if value is not None}
    place = f"Task {task}" if task else board.title
    place = f"Language {board.languages[language]['name']}" if language else place
    marks = {mark for own in board.tasks for shown in own.marks.values() for mark in shown}
    checklists = [section for own in board.checklists.values() for section in own]
    main = template(
        "board.html.j2",
        "harness_board",
        place=place,
        is_part=address is not None and bool(route),
        address=address or (lambda kind, name: f"#/{kind}/{name}" if kind else "#/"),
        formula=OVERALL if task is None else "the task's mean over its languages",
        scores=standing(board, task=task, language=language),
        intervals=INTERVAL_LEGEND,
        marks=", ".join(f"{mark} {meaning}" for mark, meaning in LEGEND.items() if mark in marks),
        above=[extension_section(board.extensions)],
        below=[*checklists, equity_section(board.equity, task=task, language=language)],
        tasks=[(own.task, own.task) for own in board.tasks],
        languages=[(code, f"{about['name']} ({code})") for code, about in board.languages.items()],
    )
    return page(
        place if place == board.title else f"{place}: {board.title}",
        main,
        modules=[script()],
        styles=[board_style()],
        data={"board-data": {**board.content(), "route": route}},
        description=f"{len(board.systems)} systems on {len(board.tasks)} tasks.",
    )


# A folder of pages --------------------------------------------------------------------------------------


def site_pages(board: Board) -> dict[str, Callable[[], str]]:
    """Return what makes each page, by file name; raises `UsageError` for names that are no safe file names."""

    def of_task(name: str) -> str:
        return board_page(board.only(tasks=[name]), task=name, address=_address)

    def of_language(code: str) -> str:
        return board_page(board.only(languages=[code]), language=code, address=_address)

    pages: dict[str, Callable[[], str]] = {"index.html": lambda: board_page(board, address=_address)}
    pages |= {_address("task", own.task): partial(of_task, own.task) for own in board.tasks}
    return pages | {_address("language", code): partial(of_language, code) for code in board.languages}


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
