"""A board as pages without a server: its table for readers without JavaScript, its data, and the script that shows it.

One page, or a folder for any static host: the board, and a page for each task and language that leads to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import resources
from pathlib import Path
from urllib.parse import quote

from harness import UsageError
from harness.reporting import INTERVAL_LEGEND, counted, page, template
from harness_board.document import Board
from harness_board.run_reading import LEGEND
from harness_board.sections import equity_section
from harness_board.standing import Standing, standing

MODULES = ("compute.mjs", "text.mjs", "draw.mjs", "chart.mjs", "compare.mjs", "why.mjs", "main.mjs")
_IMPORT = re.compile(r"^import .*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=function|const|async|class)", re.MULTILINE)
_NEEDLESS = re.compile(r"^ *(?:(?://|/\*\*|\*).*\n|\n)?", re.MULTILINE)
"""Comments, empty lines and indents."""
_AROUND_MARKS = re.compile(r"\s*([{};])\s*")
"""Spaces that a style does not need; none is within a text."""
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]*")


@cache
def script() -> str:
    """Return the modules of the page as one: an inline module cannot import another from a file."""
    folder = resources.files("harness_board") / "static"
    sources = [(folder / name).read_text(encoding="utf-8") for name in MODULES]
    return "\n".join(_NEEDLESS.sub("", _EXPORT.sub("", _IMPORT.sub("", source))) for source in sources)


@cache
def board_style() -> str:
    """Return the style of the page, which follows the one that all pages share."""
    return _AROUND_MARKS.sub(r"\1", _static("board.css"))


def _static(name: str) -> str:
    return resources.files("harness_board").joinpath("static", name).read_text(encoding="utf-8")


def board_page(board: Board, *, pages: Sequence[tuple[str, str]] = ()) -> str:
    """Return the board as one page: all its views, its data and the script that shows them.

    Args:
        board: What it holds.
        pages: Addresses and texts of further pages that it links to.
    """
    marks = {mark for own in board.tasks for shown in own.marks.values() for mark in shown}
    checklists = [section for own in board.checklists.values() for section in own]
    below = [board.extended, *checklists, equity_section(board.equity)]
    scores = standing(board)
    main = template(
        "board.html.j2",
        "harness_board",
        title=board.title,
        chips=_chips(board, scores),
        scores=scores,
        intervals=INTERVAL_LEGEND,
        marks=", ".join(f"{mark} {meaning}" for mark, meaning in LEGEND.items() if mark in marks),
        below=[part for part in below if part],
        pages=pages,
    )
    return page(
        board.title,
        main,
        modules=[script()],
        styles=[board_style()],
        data={"board-data": board.content()},
        description=f"{len(board.systems)} systems on {len(board.tasks)} tasks.",
    )


def _chips(board: Board, scores: Standing) -> list[str]:
    """Return what the board holds, in a few words each."""
    counts = [
        counted(len(board.tasks), "task"),
        counted(len(board.languages), "language"),
        f"{counted(len(board.systems), 'system')}, {scores.complete} complete",
    ]
    return [*counts, f"{board.date:%-d %b %Y}"] if board.date is not None else counts


def part_page(board: Board, *, task: str | None = None, language: str | None = None) -> str:
    """Return the page of one task or one language: its scores in order, and the way to the view that ranks them."""
    title = task or board.languages[language or ""]["name"]
    kind, name = ("task", task) if task else ("language", language)
    below = [
        *board.checklists.get(task or "", ()),
        equity_section(board.equity, task=task, language=language),
    ]
    main = template(
        "part.html.j2",
        "harness_board",
        title=title,
        board=board.title,
        address=f"index.html#/{kind}/{quote(name or '', safe='')}",
        scores=standing(board, task=task, language=language),
        below=[part for part in below if part],
    )
    return page(f"{title}: {board.title}", main, modules=[_static("part.mjs")], styles=[board_style()])


# A folder of pages --------------------------------------------------------------------------------------


def site_pages(board: Board) -> dict[str, Callable[[], str]]:
    """Return what makes each page, by file name; raises `UsageError` for names that are no safe file names.

    The data are in ``index.html`` alone: the other pages hold their own scores and lead there.
    """
    tasks = {_address("task", own.task): own.task for own in board.tasks}
    languages = {_address("language", code): code for code in board.languages}
    links = [*tasks.items(), *((path, board.languages[code]["name"]) for path, code in languages.items())]
    pages: dict[str, Callable[[], str]] = {"index.html": lambda: board_page(board, pages=links)}
    pages |= {path: partial(part_page, board, task=name) for path, name in tasks.items()}
    return pages | {path: partial(part_page, board, language=code) for path, code in languages.items()}


def _address(kind: str, name: str) -> str:
    if not _SAFE.fullmatch(name):
        raise UsageError(f"The {kind} {name!r} cannot be used in the name of a page.")
    return f"{kind}-{name}.html"


def write_site(board: Board, folder: Path) -> int:
    """Write the pages into a folder and return their number; raises `UsageError` where it cannot be written."""
    from harness.storage import write_atomically

    pages = site_pages(board)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, make in pages.items():
            write_atomically(folder / name, make())
    except OSError as error:
        raise UsageError(f"The folder {str(folder)!r} cannot be written: {error.strerror}.") from error
    return len(pages)
