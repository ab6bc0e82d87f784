"""The summary of a run in a terminal: rows of tasks, what changes how they are read, and the headline last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from statistics import fmean

from harness.metrics.naming import metric_name
from harness.reporting.blocks.heat import levels
from harness.reporting.blocks.model import BLANK, Block, Field, Note, Notes, Table, rows_of
from harness.reporting.blocks.number import percent, score_field, uncertainty
from harness.reporting.blocks.remark import counted, leading
from harness.reporting.blocks.score import Score
from harness.reporting.overview.column import (
    OWN_HEAD,
    PROTOCOL_SHORT,
    PROTOCOL_WORDS,
    conditions_of,
    short_protocol,
)
from harness.reporting.overview.glance import WEAKEST, Glance, LanguageGlance, TaskGlance, glance
from harness.reporting.overview.missing import missing
from harness.reporting.overview.summary import Summary
from harness.reporting.overview.summary_blocks import matrix_table
from harness.reporting.overview.unreadable import UNREADABLE
from harness.reporting.render.console import SAMPLE_WARNING, SHADES, needed_width
from harness.storage.results import SuiteScore
from harness.storage.run_folder import Run

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
INTERVALS = "±, (a–b): 95 % interval."
GAP = "gap: source minus others."
HEAD = "languages"
"""Over or left of their codes."""
ALL_EQUAL = "all equal"
FORMS = (("names", "values", "weakest"), ("wide strip", "strip"))
"""Columns that show the same, the longest first."""
FAILED = "!"
UNREAD = "?"
BETWEEN = " "
"""Between two families of a strip."""
SIGNS = {FAILED: "failed", UNREAD: "unreadable"}
"""Characters of a strip that are no shade, and what they mean."""


def glance_blocks(runs: Sequence[Run], summary: Summary, *, width: int, alone: bool = True) -> list[Block]:
    """Return the summary of the first run; the further ones are its baselines.

    Args:
        runs: The main run first.
        summary: That of the same runs.
        width: Columns of the terminal.
        alone: Whether no tables by language are before it, which have the matrices and the sections of plugins.
    """
    headline = glance(runs, summary)
    title = ", ".join(filter(None, [summary.title, _shared_conditions(headline.tasks)]))
    top = [*([Note(title, "heading")] if alone or headline.tasks else []), *_task_blocks(headline, width)]
    middle = [
        *((*_matrices(summary, headline), *_sections(summary)) if alone else ()),
        *_remarks(summary),
        *_failed(summary),
        *_skipped(summary),
        *_published(headline, summary, width),
    ]
    end = [
        *_warnings(runs[0], summary, headline),
        Note(_completeness(headline)),
        *_headline(runs[0], headline),
    ]
    groups = [group for group in (top, middle, end) if group]
    return [block for group in groups for block in (*group, Note(""))][:-1]


def _matrices(summary: Summary, own: Glance) -> Iterator[Block]:
    covered = {task for task, _, _ in summary.covered}
    for matrix in summary.matrices:
        if matrix.is_small and len(own.tasks) <= FEW_TASKS and matrix.task not in covered:
            yield replace(matrix_table(matrix), tight=True)
        elif matrix.task and matrix.task not in covered:  # the others belong to a row of their own
            yield Note(": ".join([matrix.title, *matrix.notes[:1]]))


def _sections(summary: Summary) -> Iterator[Block]:
    """Yield the blocks of plugins' sections, as far as there is space, and where the others are."""
    for section, report in summary.extra.items():
        budget = SECTION_LINES
        for index, block in enumerate(() if report.page_only or report.details_only else report.brief_blocks):
            budget -= _lines(block)
            if budget < 0 and index and isinstance(block, Table):
                yield Note(f"{section.title}, all of it: harness report RUN")
                break
            yield block


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
    lines = [group.line for group in missing(summary.skipped_cells)]
    title = f"Skipped: {counted(len(summary.skipped_cells), 'cell')}"
    if len(lines) == 1:
        yield Note(f"{title}, {lines[0]}")
    elif lines:
        yield from (Note(title), Notes(lines))


# Rows of tasks: as many columns as a terminal has space for ------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    head: str
    make: Callable[[TaskGlance], str | Field]
    is_words: bool = False


def _task_blocks(headline: Glance, width: int) -> list[Block]:
    """Return a row per task, the shades of its languages in the row or below the rows, and the legend."""
    if not headline.tasks:
        return []
    groups = language_groups(headline.tasks)
    has_strips = sum(map(len, groups)) > WEAKEST
    strips = [_strip(groups, wide=wide) for wide in (True, False)] if has_strips else []
    columns = _fitting(headline, strips, width)
    table = _table(headline.tasks, columns, headline.tasks)
    blocks: list[Block] = [table]
    strip = next((column for column in columns if column in strips), None)
    if strips and strip is None:
        striped = [task for task in headline.tasks if strip_of(task, groups).strip()]
        for strip in strips:
            bare = replace(strip, head=strip.head.removeprefix(f"{HEAD}\n"))
            below = replace(_table(striped, [bare], headline.tasks), corner=HEAD)
            if needed_width(below) <= width:
                break
        blocks.append(below)
    texts = [str(field) for row in table.rows for field in row.fields]
    legend = [INTERVALS] if any("±" in text or "–" in text for text in texts) else []
    legend += [GAP] if any(column.name == "gap" for column in columns) else []
    shades = [] if strip is None else [_shade_legend(headline.tasks, groups, wide=strip is strips[0])]
    lines = [" ".join(legend), " ".join([*shades, *_protocol_legend(headline.tasks)])]
    lines = lines if len(" ".join(lines)) <= 2 * width else [" ".join(lines)]
    return [*blocks, *(Note(line.strip(), "note") for line in lines if line.strip())]


def _strip(groups: Sequence[Sequence[str]], *, wide: bool) -> _Column:
    def field(task: TaskGlance) -> Field:
        return Field(text=strip_of(task, groups, wide=wide), style="strip")

    head = strip_head(groups, wide=wide)
    above = f"{HEAD}\n" if max(map(len, head.split("\n"))) >= len(HEAD) else ""
    return _Column("wide strip" if wide else "strip", above + head, field, True)


def _shade_legend(tasks: Sequence[TaskGlance], groups: Sequence[Sequence[str]], *, wide: bool) -> str:
    """Return the meanings of the shades and of the signs between them, as far as a strip has them."""
    characters = set("".join(strip_of(task, groups) for task in tasks))
    low = "chance or 0" if any(task.chance for task in tasks) else "0"
    signs = [f" {sign}: {meaning}." for sign, meaning in SIGNS.items() if sign in characters]
    down = "" if wide else ", codes read down"
    return f"One shade per language, by family{down}: {SHADES[0]} {low}, {SHADES[-1]} 100.{''.join(signs)}"


def _protocol_legend(tasks: Sequence[TaskGlance]) -> list[str]:
    """Return the legend of the rows of one task, where it has several protocols."""
    protocols: dict[str, dict[str, str]] = {}
    for task in tasks:
        short = short_protocol(task.column.protocol, task.column.method)
        protocols.setdefault(task.column.task, {})[task.column.protocol] = short
    several = {name: shorts for name, shorts in protocols.items() if len(shorts) > 1}
    words = {
        short or " and ".join(several): PROTOCOL_WORDS[protocol]
        for shorts in several.values()
        for protocol, short in shorts.items()
        if protocol in PROTOCOL_WORDS and short != OWN_HEAD
    }
    return [f"{'; '.join(f'{name}: {meaning}' for name, meaning in words.items())}."] if words else []


def _shared_conditions(tasks: Sequence[TaskGlance]) -> str:
    """Return the protocol and view that all rows have, where they are not the usual ones."""
    conditions = {" ".join(task.column.title.split("\n")[1:-1]) for task in tasks}
    return conditions.pop() if len(conditions) == 1 else ""


def headline_label(task: TaskGlance) -> str:
    """Return the task with its metric, and the number of its prompts in place of one of them."""
    if not task.by_prompt:
        return task.column.plain_title
    words = (word for word in task.column.plain_title.split(" ") if not word.startswith("prompt="))
    return f"{' '.join(words)}, mean of {len(task.by_prompt)} prompts"


def spread_text(task: TaskGlance) -> str:
    """Return ``40.1 to 51.0 by prompt``; empty for one prompt."""
    low, high = min(task.by_prompt, default=0.0), max(task.by_prompt, default=0.0)
    return f"{percent(low)} to {percent(high)} by prompt" if task.by_prompt else ""


def _fitting(own: Glance, strips: Sequence[_Column], width: int) -> list[_Column]:
    """Return the columns that fit, in the order of a row; what matters most is taken first."""
    columns = [*_columns(own.tasks, strips)]
    names = {column.name for column in columns}
    further = [column.name for column in columns if column.name.startswith("mean ")]
    chosen = {"score"}
    added = ["also"] * (own.adds_metrics or any(task.has_added for task in own.tasks))
    order = ["gap", "weakest", "items", "time", "values", *further, "strip", "chance", "wide strip", "names"]
    for name in [*added, *order, "also"]:
        tried = chosen | {name}
        if name in names and needed_width(_table(own.tasks, _shown(columns, tried), own.tasks)) <= width:
            chosen = tried
    return _shown(columns, chosen)


def _shown(columns: Sequence[_Column], names: set[str]) -> list[_Column]:
    """Return the columns of these names; of several forms of the same the longest one alone."""
    shorter = {name for forms in FORMS for name in [form for form in forms if form in names][1:]}
    return [column for column in columns if column.name in names - shorter]


def _baseline(label: str, task: TaskGlance) -> str:
    return percent(dict(task.baselines).get(label))


def _columns(tasks: Sequence[TaskGlance], strips: Sequence[_Column]) -> Iterator[_Column]:
    """Yield the columns that have something to show, in the order of a row."""
    yield _Column("score", "score", lambda task: score_field(task.mean))
    if any(task.transfer_gap is not None for task in tasks):
        yield _Column("gap", "gap", lambda task: percent(task.transfer_gap))
    for label in dict.fromkeys(label for task in tasks for label, _ in task.baselines):
        yield _Column(f"mean {label}", label, partial(_baseline, label))
    if any(task.chance is not None for task in tasks):
        yield _Column("chance", "chance", lambda task: percent(task.chance))
    if any(task.further for task in tasks):
        yield _Column("also", "also", _also, True)
    head = "weakest" if any(len(task.scored) > WEAKEST for task in tasks) else "languages"
    yield _Column("weakest", head, lambda task: _weakest(task, "{0.code}", " "), True)
    yield _Column("values", head, lambda task: _weakest(task, "{0.code} {1}"), True)
    yield _Column("names", head, lambda task: _weakest(task, "{0.name} {1}"), True)
    yield from strips
    yield _Column("items", "items", lambda task: f"{task.items:,}")
    yield _Column("time", "time", lambda task: f"{task.seconds:,.0f} s")


def _also(task: TaskGlance) -> str:
    return ", ".join(f"{metric_name(metric)} {percent(score.value)}" for metric, score in task.further)


def _weakest(task: TaskGlance, form: str, between: str = ", ") -> str:
    """Return the languages with the lowest scores in a form of a language and its score."""
    ranked = sorted(task.scored, key=lambda language: (language.score.value or 0.0, language.code))
    values = [percent(language.score.value) for language in ranked]
    if len(set(values)) == 1 < len(ranked):
        return ALL_EQUAL
    texts = [form.format(*pair) for pair in zip(ranked, values, strict=True)]
    tied = sum(value == values[WEAKEST - 1] for value in values[WEAKEST:])
    return f"{between.join(texts[:WEAKEST])}{f' +{tied}' if tied else ''}" or BLANK


def _table(tasks: Sequence[TaskGlance], columns: Sequence[_Column], every: Sequence[TaskGlance]) -> Table:
    """Return rows of tasks; their labels have protocol and view where not all rows share them."""
    labels = {id(task): task.column.plain_title for task in every}
    if _shared_conditions(every):
        labels = {id(task): f"{task.column.task} {metric_name(task.column.metric)}" for task in every}
    return Table(
        title="",
        untitled=True,
        tight=True,
        heads=tuple(column.head for column in columns),
        rows=rows_of((labels[id(task)], *(column.make(task) for column in columns)) for task in tasks),
        words=frozenset(index for index, column in enumerate(columns) if column.is_words),
        label_width=max(map(len, labels.values())),
    )


# Strips: one shaded character per language of a task, in the same order in every row ------------------------


def language_groups(tasks: Sequence[TaskGlance]) -> list[list[str]]:
    """Return the languages that have something to show in any task, by family; families of one language are together.

    The order is that of the tables by language: families with most languages first, then codes.
    """
    families: dict[str, dict[str, None]] = {}
    for task in tasks:
        for language in task.languages:
            codes = families.setdefault(language.family, {})
            if _sign(language):
                codes[language.code] = None
    ordered = sorted(families.items(), key=lambda item: (-len(item[1]), item[0]))
    groups = [sorted(codes) for _, codes in ordered if len(codes) > 1]
    single = [code for _, codes in ordered if len(codes) == 1 for code in codes]
    return [*groups, single] if single else groups


def strip_head(groups: Sequence[Sequence[str]], *, wide: bool = False) -> str:
    """Return the codes of languages: each over its shade where `wide`, else from top to bottom."""
    if wide:
        return (2 * BETWEEN).join(BETWEEN.join(group) for group in groups)
    columns = [code for group in groups for code in (*group, BETWEEN)][:-1]
    return "\n".join("".join(line).rstrip() for line in zip_longest(*columns, fillvalue=" "))


def strip_of(task: TaskGlance, groups: Sequence[Sequence[str]], *, wide: bool = False) -> str:
    """Return the characters of one task: a shade from chance (or 0) to 100, blank where it has no score.

    Where `wide`, each is as wide as the code of its language. Scores that do not differ measurably have the same shade,
    as in the page.
    """
    scores = [language.score for language in task.languages]
    smoothed = levels([score.value for score in scores], [score.reach for score in scores])
    signs = {
        language.code: _shade(level, task.chance or 0.0) if level is not None else _sign(language)
        for language, level in zip(task.languages, smoothed, strict=True)
    }
    if wide:
        padded = ([(signs.get(code) or " ").ljust(len(code)) for code in group] for group in groups)
        return (2 * BETWEEN).join(map(BETWEEN.join, padded)).rstrip()
    return BETWEEN.join("".join(signs.get(code) or " " for code in group) for group in groups)


def _shade(value: float, low: float) -> str:
    fraction = (value - low) / (1 - low) if low < 1 else 0.0
    return SHADES[min(len(SHADES) - 1, max(0, int(fraction * len(SHADES))))]


def _sign(language: LanguageGlance) -> str:
    """Return the character of a language without a level; empty where it has nothing to show."""
    if language.score.value is not None:
        return SHADES[0]
    return {FAILED: FAILED, UNREADABLE: UNREAD}.get(language.score.mark, "")


# Published systems -----------------------------------------------------------------------------------------


def _published(headline: Glance, summary: Summary, width: int) -> Iterator[Block]:
    """Yield the overall scores of published systems, and their means over the run's tasks; baselines after them."""
    published = {
        label.removeprefix(PUBLISHED): scores
        for label, scores in summary.means
        if label.startswith(PUBLISHED)
    }
    if not published:
        return
    baselines = {
        label.removeprefix("mean "): scores
        for label, scores in summary.means
        if label.startswith("mean ") and "without" not in label
    }
    systems = published | baselines | published  # a baseline of the same name does not replace a paper's row
    suites = [
        {label.removeprefix(PUBLISHED): scores[0] for label, scores in suite.rows} for suite in summary.suites
    ]
    labels = [f"{suite.name} overall" for suite in summary.suites]
    columns = {name: [overall.get(name, Score()) for overall in suites] for name in systems}
    if means := headline.averaged:
        labels.append(f"the same {len(means)} tasks" if len(means) > 1 else means[0].column.plain_title)
        indices = [summary.columns.index(task.column) for task in means]
        for name, column in columns.items():
            column.append(_mean([systems[name][index] for index in indices]))
    names = [name for name, column in columns.items() if any(score.value is not None for score in column)]
    while names:
        table = Table(
            title="",
            untitled=True,
            tight=True,
            corner="published" if names[-1] in published else "published, baselines",
            heads=tuple(names),
            rows=rows_of(
                (label, *(score_field(columns[name][index]) for name in names))
                for index, label in enumerate(labels)
            ),
            terse=True,
        )
        if needed_width(table) <= width or len(names) == 1:
            yield table
            return
        names = names[:-1]


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
        text = f"STOPPED: {counted(stopped, 'cell')} not run. Continue: harness eval --resume {run.path}"
        yield Note(text, "warning")


def _completeness(headline: Glance) -> str:
    done = headline.completeness
    if done.is_whole:
        counts = (done.scored, "cell"), (done.tasks[1], "task"), (done.languages[1], "language")
        return f"Complete: {', '.join(counted(*pair) for pair in counts)}"
    tasks, languages = (
        f"{scored} of {counted(total, name)}"
        for (scored, total), name in ((done.tasks, "task"), (done.languages, "language"))
    )
    return f"Partial: {done.scored:,} of {counted(done.cells, 'cell')} scored, {tasks}, {languages}"


def _headline(run: Run, own: Glance) -> Iterator[Block]:
    """Yield the overall scores, what counts most last."""
    suites = run.results.suites
    lines = [_suite_line(suite) for suite in suites]
    has_score = any(suite.flat.value is not None or suite.paper.value is not None for suite in suites)
    if not (mean := _mean_line(own)):
        yield from (Note(line, "heading") for line in lines)
    elif has_score:
        yield from (Note(mean), *(Note(line, "heading") for line in lines))
    else:
        yield from (*map(Note, lines), Note(mean, "heading"))


def _suite_line(suite: SuiteScore) -> str:
    protocol = PROTOCOL_SHORT.get(str(suite.protocol), str(suite.protocol))
    name = " ".join(filter(None, [suite.suite, protocol, conditions_of(suite.view)]))
    value = suite.flat if suite.paper.value is None else suite.paper
    if value.value is None:
        every = len({*suite.missing, *suite.tasks})
        return f"{name}: none, {len(suite.missing)} of {every} tasks missing ({', '.join(suite.missing)})"
    score = " ".join([percent(value.value), uncertainty(value.value, value.ci)]).rstrip()
    return f"{name}: {score}{'' if suite.complete else ', over fewer languages than the suite has'}"


def _mean_line(headline: Glance) -> str:
    tasks = headline.averaged
    if not tasks:
        return ""
    every = headline.completeness.tasks[0]
    of = f"{len(tasks)} of {every}" if len(tasks) < every else str(len(tasks))
    name, mean = (
        (headline.mean_name(of), headline.mean)
        if len(tasks) > 1
        else (headline_label(tasks[0]), tasks[0].mean)
    )
    assert mean.value is not None
    score = " ".join([f"{percent(mean.value)}{mean.mark}", uncertainty(mean.value, mean.interval)]).rstrip()
    against = [spread_text(tasks[0])] if len(tasks) == 1 and tasks[0].by_prompt else []
    against += [f"{label} {percent(value)}" for label, value in _baselines(tasks).items()]
    if len(tasks) == 1 and tasks[0].chance is not None:
        against.append(f"chance {percent(tasks[0].chance)}")
    return f"{name}: {score}" + (f" ({', '.join(against)})" if against else "")


def _baselines(tasks: Sequence[TaskGlance]) -> Mapping[str, float]:
    """Return the means over the same tasks, of baselines that have all of them."""
    baselines = [dict(task.baselines) for task in tasks]
    return {
        label: fmean(values[label] for values in baselines)
        for label in baselines[0]
        if all(label in values for values in baselines)
    }
