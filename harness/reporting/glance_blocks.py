"""The summary of a run in a terminal: rows of tasks, what changes how they are read, and the headline last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from harness.reporting.column import PROTOCOL_SHORT, conditions_of
from harness.reporting.console import SAMPLE_WARNING, needed_width
from harness.reporting.glance import Glance, TaskGlance, glance
from harness.reporting.missing import missing
from harness.reporting.model import Block, Note, Notes, Table, rows_of
from harness.reporting.number import percent, score_field, uncertainty
from harness.reporting.remark import counted, leading
from harness.reporting.score import Score
from harness.reporting.summary import Summary
from harness.reporting.summary_blocks import matrix_table
from harness.reporting.task_rows import shared_conditions, task_blocks, task_label
from harness.storage.results import SuiteScore
from harness.storage.run_folder import Run

__all__ = ["glance_blocks"]

NOTES = 5
FAILURES = 3
"""Groups of failed cells whose reasons are shown."""
FEW_TASKS = 2
"""A run with so few rows has space for its small matrices."""
SECTION_LINES = 24
"""Of what sections of plugins show in the summary."""
TABLE_LINES = 4
"""Of a table besides its rows and notes."""
PUBLISHED = "published "


def glance_blocks(runs: Sequence[Run], summary: Summary, *, width: int, alone: bool = True) -> list[Block]:
    """Return the summary of the first run; the further ones are its baselines.

    Args:
        runs: The main run first.
        summary: That of the same runs.
        width: Columns of the terminal.
        alone: Whether no tables by language are before it, which have the matrices and the sections of plugins.
    """
    own = glance(runs, summary)
    title = ", ".join(filter(None, [summary.short_title, shared_conditions(own.tasks)]))
    what = [
        *([Note(title, "heading")] if alone or own.tasks else []),
        *task_blocks(own, width),
    ]
    how = [
        *(_matrices(summary, own) if alone else ()),
        *(_sections(summary) if alone else ()),
        *_remarks(summary),
        *_failed(summary),
        *_skipped(summary),
        *_published(own, summary, width),
    ]
    end = [*_warnings(runs[0], summary, own), Note(_completeness(own)), *_headline(runs[0], own)]
    parts = [part for part in (what, how, end) if part]
    return [block for part in parts for block in (*part, Note(""))][:-1]


def _matrices(summary: Summary, own: Glance) -> Iterator[Block]:
    covered = {task for task, _, _ in summary.covered}
    for matrix in summary.matrices:
        if matrix.is_small and len(own.tasks) <= FEW_TASKS and matrix.task not in covered:
            yield replace(matrix_table(matrix), tight=True)
        elif matrix.task and matrix.task not in covered:  # the others belong to a row of their own
            yield Note(": ".join([matrix.title, *matrix.notes[:1]]))


def _sections(summary: Summary) -> Iterator[Block]:
    """Yield what sections of plugins show, as far as there is space, and where the others are."""
    for section, report in summary.extra.items():
        if report.page_only or report.details_only:
            continue
        left, is_cut = SECTION_LINES, False
        for place, block in enumerate(report.brief_blocks):
            left -= _lines(block)
            if left < 0 and place and isinstance(block, Table):
                is_cut = True
                break
            yield block
        if is_cut:
            yield Note(f"{section.title}, all of it: harness report RUN")


def _lines(block: Block) -> int:
    if isinstance(block, Table):
        return len(block.rows) + len(block.notes) + TABLE_LINES
    return len(block.texts) if isinstance(block, Notes) else 1


def _remarks(summary: Summary) -> Iterator[Block]:
    failed = sum(group.status == "failed" for group in summary.skipped)
    lines, more = leading(summary.remarks, NOTES - min(failed, FAILURES))
    if more:
        lines[-1:] = [f"and {more + 1} more: harness report RUN --notes"]
    if lines:
        yield Notes(lines)


def _failed(summary: Summary) -> Iterator[Block]:
    groups = [group for group in summary.skipped if group.status == "failed"]
    if not groups:
        return
    yield Note(f"FAILED: {counted(sum(group.cells for group in groups), 'cell')}", "warning")
    texts = [f"{group.task} {' '.join(group.languages)}: {group.reason}" for group in groups[:FAILURES]]
    if more := sum(group.cells for group in groups[FAILURES:]):
        texts.append(f"and {counted(more, 'cell')} more: harness report RUN --notes")
    yield Notes(texts)


def _skipped(summary: Summary) -> Iterator[Block]:
    cells = summary.skipped_cells
    lines = [own.line for own in missing(cells)]
    title = f"Skipped: {counted(len(cells), 'cell')}"
    if len(lines) == 1:
        yield Note(f"{title}, {lines[0]}")
    elif lines:
        yield Note(title)
        yield Notes(lines)


# Published systems -----------------------------------------------------------------------------------------


def _published(own: Glance, summary: Summary, width: int) -> Iterator[Block]:
    """Yield the overall scores of published systems, and their means over the run's tasks; baselines after them."""
    systems = {
        label.removeprefix(PUBLISHED if label.startswith(PUBLISHED) else "mean "): scores
        for label, scores in summary.means
        if label.startswith(PUBLISHED) or (label.startswith("mean ") and "without" not in label)
    }
    labels = {label for label, _ in summary.means}
    if not any(label.startswith(PUBLISHED) for label in labels):
        return
    names = sorted(systems, key=lambda name: f"{PUBLISHED}{name}" not in labels)
    rows = [(f"{suite.name} overall", _overall(suite.rows, names)) for suite in summary.suites]
    if means := own.averaged:
        label = f"the same {len(means)} tasks" if len(means) > 1 else task_label(means[0])
        places = [summary.columns.index(task.column) for task in means]
        rows.append((label, [_mean([systems[name][place] for place in places]) for name in names]))
    while names:
        table = Table(
            title="",
            untitled=True,
            tight=True,
            corner="published, baselines" if f"{PUBLISHED}{names[-1]}" not in labels else "published",
            heads=tuple(names),
            rows=rows_of((label, *map(score_field, scores[: len(names)])) for label, scores in rows),
            terse=True,
        )
        if needed_width(table) <= width or len(names) == 1:
            yield table
            return
        names = names[:-1]


def _overall(rows: Sequence[tuple[str, Sequence[Score]]], names: Sequence[str]) -> list[Score]:
    found = {label.removeprefix(PUBLISHED): scores[0] for label, scores in rows}
    return [found.get(name, Score()) for name in names]


def _mean(scores: Sequence[Score]) -> Score:
    """Return the mean over all tasks, with their marks; none where one is missing."""
    values = [score.value for score in scores if score.value is not None]
    if len(values) < len(scores):
        return Score()
    marks = dict.fromkeys(mark for score in scores for mark in score.mark)
    return Score(value=fmean(values), mark="".join(marks))


# The end, where the eye is ---------------------------------------------------------------------------------


def _warnings(run: Run, summary: Summary, own: Glance) -> Iterator[Block]:
    if summary.sample:
        yield Note(SAMPLE_WARNING, "warning")
    if stopped := own.completeness.stopped:
        yield Note(
            f"STOPPED: {counted(stopped, 'cell')} not run. Continue: harness eval --resume {run.path}",
            "warning",
        )


def _completeness(own: Glance) -> str:
    done = own.completeness
    if done.is_whole:
        parts = (done.scored, "cell"), (done.tasks[1], "task"), (done.languages[1], "language")
        return f"Complete: {', '.join(counted(*part) for part in parts)}"
    tasks, languages = (
        f"{part} of {counted(whole, name)}"
        for (part, whole), name in ((done.tasks, "task"), (done.languages, "language"))
    )
    return f"Partial: {done.scored:,} of {counted(done.cells, 'cell')} scored, {tasks}, {languages}"


def _headline(run: Run, own: Glance) -> Iterator[Block]:
    """Yield the overall scores, what counts most last."""
    suites = run.results.suites
    mean = _mean_line(own)
    if any(_value(suite) is not None for suite in suites) or not mean:
        yield from [Note(mean)] if mean else []
        yield from (Note(_suite_line(suite), "heading") for suite in suites)
    else:
        yield from (Note(_suite_line(suite)) for suite in suites)
        yield Note(mean, "heading")


def _value(suite: SuiteScore) -> float | None:
    return suite.flat.value if suite.paper.value is None else suite.paper.value


def _suite_line(suite: SuiteScore) -> str:
    protocol = PROTOCOL_SHORT.get(str(suite.protocol), str(suite.protocol))
    name = " ".join(filter(None, [suite.suite, protocol, conditions_of(suite.view)]))
    value = suite.flat if suite.paper.value is None else suite.paper
    if value.value is None:
        every = len({*suite.missing, *suite.tasks})
        return f"{name}: none, {len(suite.missing)} of {every} tasks missing ({', '.join(suite.missing)})"
    shown = " ".join([percent(value.value), uncertainty(value.value, value.ci)]).rstrip()
    return f"{name}: {shown}{'' if suite.complete else ', over fewer languages than the suite has'}"


def _mean_line(own: Glance) -> str:
    tasks = own.averaged
    if not tasks:
        return ""
    mean = own.mean if len(tasks) > 1 else tasks[0].mean
    every = own.completeness.tasks[0]
    of = f"{len(tasks)} of {every}" if len(tasks) < every else str(len(tasks))
    name = f"Mean of {of} tasks" if len(tasks) > 1 else task_label(tasks[0])
    assert mean.value is not None
    shown = " ".join([f"{percent(mean.value)}{mean.mark}", uncertainty(mean.value, mean.interval)]).rstrip()
    against = [f"{label} {percent(value)}" for label, value in _baselines(tasks).items()]
    if len(tasks) == 1 and tasks[0].chance is not None:
        against.append(f"chance {percent(tasks[0].chance)}")
    return f"{name}: {shown}" + (f" ({', '.join(against)})" if against else "")


def _baselines(tasks: Sequence[TaskGlance]) -> Mapping[str, float]:
    """Return the means over the same tasks, of baselines that have all of them."""
    found = [dict(task.baselines) for task in tasks]
    return {
        label: fmean(own[label] for own in found) for label in found[0] if all(label in own for own in found)
    }
