"""A board as pages without a server: its table for readers without JavaScript, its data, and the script that shows it.

One page, or a folder for any static host: the board, and a page for each task and language that leads to it. The table
has scores alone, the best system first: ranks, rank intervals, colours, filters and sorting are those of
``static/compute.mjs`` and of nothing else. Overall scores are those of `harness.scores.aggregation.overall`, so that
board and command line never disagree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from statistics import fmean
from urllib.parse import quote

from harness import UsageError
from harness.reporting import INTERVAL_LEGEND, counted, page, template
from harness.scores import overall
from harness_board.document import LEGEND, Board, System, TaskColumn
from harness_board.gathering import equity_section

MODULES = ("compute.mjs", "text.mjs", "draw.mjs", "chart.mjs", "compare.mjs", "why.mjs", "main.mjs")
_IMPORT = re.compile(r"^import .*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=function|const|async|class)", re.MULTILINE)
_NEEDLESS = re.compile(r"^ *(?:(?://|/\*\*|\*).*\n|\n)?", re.MULTILINE)
"""Comments, empty lines and indents."""
_AROUND_MARKS = re.compile(r"\s*([{};])\s*")
"""Spaces that a style does not need; none is within a text."""
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]*")
Means = Mapping[str, tuple[float | None, str]]
"""Task -> a system's score, and its sign: `°` for one that is not comparable, `~` for one over fewer languages."""
Scorer = Callable[[TaskColumn, str | None], tuple[float | None, str]]


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
    scores = standing(board)
    texts = {
        "title": board.title,
        "chips": _chips(board, scores),
        "intervals": INTERVAL_LEGEND,
        "marks": ", ".join(f"{mark} {meaning}" for mark, meaning in LEGEND.items() if mark in marks),
    }
    below = list(filter(None, [board.extended, *checklists, equity_section(board.equity)]))
    main = template("board.html.j2", "harness_board", **texts, scores=scores, below=below, pages=pages)
    return page(
        board.title,
        main,
        modules=[script()],
        styles=[board_style()],
        data={"board-data": board.content()},
        description=f"{len(board.systems)} systems on {len(board.tasks)} tasks.",
    )


def _chips(board: Board, scores: Standing) -> list[str]:
    """Return the sizes of the board, in a few words each."""
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
    cost = equity_section(board.equity, task=task, language=language)
    below = list(filter(None, [*board.checklists.get(task or "", ()), cost]))
    scores = standing(board, task=task, language=language)
    address = f"index.html#/{kind}/{quote(name or '', safe='')}"
    texts = {"title": title, "board": board.title, "address": address}
    main = template("part.html.j2", "harness_board", **texts, scores=scores, below=below)
    return page(f"{title}: {board.title}", main, modules=[_static("part.mjs")], styles=[board_style()])


# A folder of pages --------------------------------------------------------------------------------------


def site_pages(board: Board) -> dict[str, Callable[[], str]]:
    """Return the function of each page, by file name; raises `UsageError` for names that are no safe file names.

    The data are in ``index.html`` alone: the other pages hold their own scores and lead there.
    """
    tasks = {_address("task", own.task): own.task for own in board.tasks}
    languages = {_address("language", code): code for code in board.languages}
    links = [*tasks.items(), *((path, board.languages[code]["name"]) for path, code in languages.items())]
    pages: dict[str, Callable[[], str]] = {"index.html": lambda: board_page(board, pages=links)}
    pages |= {path: partial(part_page, board, task=name) for path, name in tasks.items()}
    return pages | {path: partial(part_page, board, language=code) for path, code in languages.items()}


def _address(kind: str, name: str) -> str:
    name = name.replace(":", ".")  # a task that a source made, PREFIX:NAME, as in the names of records
    if not _SAFE.fullmatch(name):
        raise UsageError(f"The {kind} {name!r} cannot be used in the name of a page.")
    return f"{kind}-{name}.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Texts of a table; the first field of a row is the system, the second its setting, the others are its scores."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    complete: int
    """How many systems have a whole score in every task."""


def points(value: float | None, sign: str = "") -> str:
    """Return a score with one decimal and its sign, ``-`` for None."""
    if value is None:
        return "-"
    text = f"{round(value, 6):,.1f}"
    return ("0.0" if text == "-0.0" else text) + sign


def standing(board: Board, *, task: str | None = None, language: str | None = None) -> Standing:
    """Return the table of a board, of one task (its languages as columns), or of one language (its tasks).

    Systems are ordered by their average over all tasks; where no system has all, over the languages that all systems
    with a task have, if more tasks count so; else over the tasks that all comparable systems have. The others follow,
    those with most tasks first. On the table of one task or language, systems without a score are skipped.
    """
    tasks = [column for column in board.tasks if task in {None, column.task}]
    tasks = [column for column in tasks if language is None or language in column.shown]
    codes = tasks[0].shown if task is not None and tasks else ()
    columns = [(tasks[0], code) for code in codes] if codes else [(column, language) for column in tasks]
    groups = _restricted(board.categories, [column.task for column in tasks])
    used = [name for names in groups.values() for name in names] or [column.task for column in tasks]
    metrics = {column.task: (column.headline, board.language_headline(column)) for column in tasks}
    entries: list[tuple[System, Scorer]] = []
    means: list[Means] = []
    for system in board.systems:
        score = _scorer(system, metrics)
        by_task = {column.task: score(column, language) for column in tasks}
        if not (task or language) or any(value is not None for value, _ in by_task.values()):
            entries.append((system, score))
            means.append(by_task)
    complete, common = _whole_count(means, used), _common(means, used)
    if language is None and common != used:
        over = _shared(entries, tasks)
        counted = [name for name in used if any(own[name][0] is not None for own in over)]
        basis = _common(over, counted)
        is_wider = not common or _whole_count(over, basis) >= _whole_count(means, common)
        if len(basis) > len(common) and is_wider:
            means, used, common, groups = over, counted, basis, _restricted(groups, counted)
    ordered = []
    for (system, score), own in zip(entries, means, strict=True):
        value, sign = _average(own, used, groups) if common in ([], used) else _average(own, common, {})
        is_ranked = bool(common) and value is not None and not sign
        scored = sum(mean is not None for mean, _ in own.values())
        texts = (points(*(own[at.task] if code is None else score(at, code))) for at, code in columns)
        conditions = f"{system.protocol} {system.view}".strip().replace("_", " ")
        setting = " · ".join(filter(None, (conditions, system.source)))
        row = (system.label, setting, points(value, sign), *texts)
        ordered.append(((not is_ranked, -(value or 0.0) if is_ranked else -scored), row))
    heads = [f"{code if codes else at.task}{at.marks.get(code or '', '')}" for at, code in columns]
    rows = tuple(row for _, row in sorted(ordered, key=lambda item: item[0]))
    return Standing(heads=("System", "Average", *heads), rows=rows, complete=complete)


def _restricted(groups: Mapping[str, Sequence[str]], tasks: Sequence[str]) -> dict[str, list[str]]:
    """Return groups with those of their tasks that are named; groups without any are left out."""
    kept = {name: [task for task in tasks if task in members] for name, members in groups.items()}
    return {name: members for name, members in kept.items() if members}


def _shared(entries: Sequence[tuple[System, Scorer]], tasks: Sequence[TaskColumn]) -> list[Means]:
    """Return the means of systems over the languages that all with a task have, as ``sharedTasks`` of the page."""
    every: list[dict[str, tuple[float | None, str]]] = [{} for _ in entries]
    for task in tasks:
        having = [score for system, score in entries if any(own.task == task.task for own in system.scores)]
        codes = [code for code in task.languages if all(score(task, code)[0] is not None for score in having)]
        for means, (_, score) in zip(every, entries, strict=True):
            values = [value for code in codes if (value := score(task, code)[0]) is not None]
            sign = "°" if score(task, None)[1] == "°" else ""
            means[task.task] = (fmean(values) if values else None), sign
    return list(every)


def _whole_count(means: Sequence[Means], basis: Sequence[str]) -> int:
    """Return how many systems have a whole score in every one of these tasks."""
    return sum(_whole(own, basis) == list(basis) for own in means)


def _whole(means: Means, used: Sequence[str]) -> list[str]:
    """Return the tasks that a system has a score of over all their languages."""
    return [name for name in used if means[name][0] is not None and not means[name][1]]


def _common(means: Sequence[Means], used: Sequence[str]) -> list[str]:
    """Return the tasks that systems are ordered by, as ``basis`` of ``compute.mjs``; empty for none."""
    having = [names for own in means if (names := _whole(own, used))]
    if any(len(names) == len(used) for names in having):
        return list(used)
    while having:
        common = [name for name in used if all(name in names for names in having)]
        if common:
            return common
        fewest = min(map(len, having))
        having = [names for names in having if len(names) > fewest]
    return []


def _average(
    means: Means, used: Sequence[str], groups: Mapping[str, Sequence[str]]
) -> tuple[float | None, str]:
    found = overall({name: means[name][0] for name in used}, used, groups)
    return (found.paper if groups else found.flat), _sign(means[name][1] for name in used)


def _sign(signs: Iterable[str]) -> str:
    """Return the sign of what is made of scores with these signs."""
    return max(signs, key=("", "~", "°").index, default="")


def _scorer(system: System, metrics: Mapping[str, tuple[Sequence[str], Sequence[str]]]) -> Scorer:
    """Return the function from a system to its score of a task, over its languages or in one, and its completeness."""
    known = {(one.task, one.metric): one for one in system.scores}

    def score(task: TaskColumn, code: str | None) -> tuple[float | None, str]:
        names = metrics[task.task][code is not None]
        found = [known[task.task, name] for name in names if (task.task, name) in known]
        values = [one.mean if code is None else one.by_language.get(code) for one in found]
        scored = [value for value in values if value is not None]
        sign = _sign("°" if one.is_starred else "" if code or one.is_whole else "~" for one in found)
        return (fmean(scored) if scored and len(scored) == len(names) else None), sign

    return score
