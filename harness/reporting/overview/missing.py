"""What has no score and why: skipped cells in few lines, and the preview of a plan with what it skips."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.planning.plan import Cell, Plan, grouped_reason, reason_without_language
from harness.reporting.blocks.model import BLANK, Block, Note, Notes, Table, make_table
from harness.reporting.blocks.words import counted
from harness.reporting.overview.column import conditions_of, group_pairs, list_names, short_protocol

if TYPE_CHECKING:
    from harness.storage.results import CellResult
    from harness.storage.run_folder import Run

Skipped = tuple[str, str, str]
"""Task, language and reason of what was skipped."""
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
REMEDIES = (
    (re.compile(r"It is in .*: run with (--data .+)\.$"), r"run with \1"),
    (re.compile("--data hub or --data DIR"), r"run with \g<0>"),
    (re.compile("--data hub"), r"run with \g<0>"),
    (re.compile("'harness tasks show"), "harness tasks show TASK has the paths"),
)
"""The command that gets the data, as the reason itself says it."""
NAMED_CODES = 4
"""Languages of a task that are named rather than counted."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Cells that were skipped for one reason."""

    title: str
    """``no data``; the whole reason where it is neither that nor a language that the task does not have."""
    remedy: str = ""
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
        distinct = dict.fromkeys(codes)
        is_named = self.title != NOTHING_FOUND and len(distinct) <= NAMED_CODES
        return " ".join(distinct) if is_named else f"{len(codes):,}"


def is_missing(cell: CellResult) -> bool:
    """Return whether a cell has no score although its task has the language and the version of its items."""
    return not cell.is_scored and not (cell.status == "skipped" and NEVER_HAD.match(cell.reason))


def missing(skipped: Iterable[Skipped]) -> list[Missing]:
    """Return the skipped cells, one entry for all that have the same remedy."""
    groups: dict[str, Missing] = {}
    others: list[Skipped] = []
    for task, language, reason in skipped:
        if reason.startswith(NO_DATA) and (remedy := _remedy(reason)):
            group = groups.setdefault(remedy, Missing(NOTHING_FOUND, remedy))
        elif NO_LANGUAGE.match(reason):
            group = groups.setdefault(OTHER_LANGUAGE, Missing(OTHER_LANGUAGE))
        else:
            others.append((task, language, reason))
            continue
        group.cells.setdefault(task, []).append(language)
    for task, languages, reason in by_reason(others):
        same = groups.setdefault(reason, Missing(reason.rstrip("."), is_reason=True))
        same.cells.setdefault(task, []).extend(languages)
    return list(groups.values())


def by_reason(skipped: Iterable[Skipped]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Yield task, languages and one reason of cells whose reasons differ in the language alone."""
    groups = group_pairs(
        ((task, reason_without_language(reason, language)), (language, reason))
        for task, language, reason in skipped
    )
    for (task, _), cells in groups.items():
        languages, reasons = zip(*cells, strict=True)
        yield task, languages, grouped_reason(reasons)


def _remedy(reason: str) -> str:
    matches = ((pattern.search(reason), words) for pattern, words in REMEDIES)
    return next((match.expand(words) for match, words in matches if match), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedGroup:
    """Skipped or failed cells of one task with one reason."""

    task: str
    protocol: str | None
    status: str
    languages: tuple[str, ...]
    reason: str
    """One sentence for all of its languages."""
    cells: int
    """More than languages where a task has axes, variants or several seeds."""

    @property
    def line(self) -> str:
        """The languages of its task with the reason."""
        return f"{' '.join(self.languages)}: {self.reason}"


def skipped_groups(run: Run) -> tuple[SkippedGroup, ...]:
    """Return the cells of a run that were skipped or failed."""
    groups = group_pairs(
        ((cell.task, cell.protocol, cell.status, _reason_shape(cell)), cell)
        for cell in run.cells
        if cell.status != "ok"
    )
    return tuple(
        SkippedGroup(
            task=task,
            protocol=protocol,
            status=status,
            languages=tuple(dict.fromkeys(cell.language for cell in members)),
            reason=grouped_reason(cell.reason for cell in members),
            cells=len(members),
        )
        for (task, protocol, status, _), members in groups.items()
    )


def _reason_shape(cell: CellResult) -> str:
    return cell.reason if cell.status == "failed" else reason_without_language(cell.reason, cell.language)


def _by_status(groups: Iterable[SkippedGroup]) -> Iterator[tuple[str, list[SkippedGroup]]]:
    """Yield the failed cells and the skipped ones with their title."""
    by_status = group_pairs((group.status, group) for group in groups)
    for status in ("failed", "skipped"):
        if members := by_status.get(status):
            yield f"{status.title()}: {counted(sum(group.cells for group in members), 'cell')}", members


def skipped_blocks(groups: Iterable[SkippedGroup]) -> list[Block]:
    """Return the skipped and failed cells, with the reasons."""
    blocks: list[Block] = []
    for title, members in _by_status(groups):
        protocols = (f" ({group.protocol})" if group.protocol else "" for group in members)
        pairs = zip(members, protocols, strict=True)
        lines = [f"{group.task}{protocol} {group.line}" for group, protocol in pairs]
        blocks += [Note(title, "subheading"), Notes(lines)]
    return blocks


def missing_blocks(runs: Mapping[str, Run]) -> list[Block]:
    """Return the cells of named runs without a score, with the reasons; nothing where there are none."""
    blocks: list[Block] = []
    for name, run in runs.items():
        tables = [*_skipped_tables(run), *_unlabelled(run)]
        blocks += [Note(name, "heading")] if tables and len(runs) > 1 else []
        blocks += tables
    return blocks


def _skipped_tables(run: Run) -> Iterator[Table]:
    for title, members in _by_status(skipped_groups(run)):
        rows = [
            (group.task, group.protocol or BLANK, " ".join(group.languages), group.reason)
            for group in members
        ]
        yield make_table(title, ("task", "protocol", "languages", "reason"), rows, words={0, 1, 2})


def _unlabelled(run: Run) -> Iterator[Table]:
    """Yield the cells that were answered and could not be scored."""
    cells = [cell for cell in run.cells if cell.status == "ok" and not cell.is_scored]
    title = f"Answered, but the test file has no labels: {counted(len(cells), 'cell')}"
    codes = group_pairs((cell.task, cell.language) for cell in cells)
    rows = [(task, " ".join(dict.fromkeys(languages))) for task, languages in codes.items()]
    if cells:
        yield make_table(title, ("task", "languages"), rows, words={0})


# The preview of a plan ---------------------------------------------------------------------------------------


def plan_title(plan: Plan) -> str:
    """Return the model with the numbers of cells and fits."""
    fits = f"{counted(len(plan.fits), 'model')} to fit"
    tasks = counted(len({cell.spec.task for cell in plan.cells}), "task")
    languages = counted(len({cell.language.code for cell in plan.cells}), "language")
    name = f"{plan.model.name} ({plan.model.description.adapter})"
    return f"{name}: {counted(len(plan.cells), 'cell')}, {tasks}, {languages}, {fits}"


def announced_plan(plan: Plan) -> list[Block]:
    """Return the few lines that are shown before a run; its summary says the rest."""
    from harness.planning.unused_options import NO_EFFECT  # a report needs no settings of runs

    counts = Counter[str]()
    for group in missing(_skips(plan)):
        label = "for other reasons" if group.is_reason else group.title
        counts[f"{label}, {group.remedy}" if group.remedy else label] += sum(map(len, group.cells.values()))
    text = "; ".join(f"{count:,} {name}" for name, count in counts.items())
    return [
        Note(plan_title(plan)),
        Notes(_fits(plan)),
        *([Notes([f"skipped, harness plan lists them: {text}"])] if text else []),
        # What the summary does not say, since it changes no number.
        Notes([f"note: {note}" for note in plan.notes if NO_EFFECT in note]),
    ]


def planned_tasks(plan: Plan) -> Iterator[Block]:
    """Yield a row per task, the notes, and what is skipped with the command that gets it."""
    yield _table(plan)
    yield Notes([*_fits(plan), *(f"note: {note}" for note in plan.notes)])
    if plan.skipped:
        yield Note(f"Skipped: {counted(len(plan.skipped), 'cell')}")
        yield Notes([group.line for group in missing(_skips(plan))])


def planned_details(plan: Plan) -> list[str]:
    """Return a line for every fit, every note, and every reason for what is skipped."""
    fits = (f"  fit {fit.title}, recipe {fit.recipe}" for fit in plan.fits)
    return [*fits, *(f"  note: {note}" for note in plan.notes), *skipped_lines(plan)]


def skipped_lines(plan: Plan) -> list[str]:
    """Return a line for every reason for what is skipped, with the task and its languages."""
    return [
        f"  skipped {task} {' '.join(dict.fromkeys(languages))}: {reason}"
        for task, languages, reason in by_reason(_skips(plan))
    ]


def _skips(plan: Plan) -> Iterator[Skipped]:
    return ((skip.task, skip.language, skip.reason) for skip in plan.skipped)


def _fits(plan: Plan) -> list[str]:
    """Return one line on all fits; none where there are none."""
    recipes = list_names(fit.recipe for fit in plan.fits)
    numbers = list_names(str(fit.seed) for fit in plan.fits)
    seeds = f"{'seeds' if ',' in numbers else 'seed'} {numbers}"
    titles = list_names(fit.data_title for fit in plan.fits)
    return [f"to fit, recipe {recipes}, {seeds}: {titles}"] if plan.fits else []


def _table(plan: Plan) -> Table:
    groups: dict[tuple[str, str, str, str], list[Cell]] = group_pairs(
        (_row_key(cell), cell) for cell in plan.cells
    )
    skipped = Counter(skip.task for skip in plan.skipped)
    planned = {task for task, *_ in groups}
    groups |= {(task, task, BLANK, BLANK): [] for task in skipped if task not in planned}
    rows = []
    for (task, name, method, fit), cells in groups.items():
        languages = len({cell.language.code for cell in cells})
        # What is skipped of a task is in the first of its rows.
        count = skipped.pop(task, 0)
        rows.append(
            (name, f"{languages:,}", f"{len(cells):,}", f"{count:,}" if count else BLANK, method, fit)
        )
    heads = ("task", "languages", "cells", "skipped", "method", "fit")
    return make_table("", heads, rows, words={3, 4}, untitled=True, tight=True, folding=True)


def _row_key(cell: Cell) -> tuple[str, str, str, str]:
    """Return the task of a cell, and the name, method and fit of its row."""
    task, method = cell.spec.task, cell.pairing.method.name
    name = " ".join(
        filter(None, [task, short_protocol(cell.pairing.protocol, method), conditions_of(cell.view)])
    )
    return task, name, method, BLANK if cell.fit is None else cell.fit.data_title
