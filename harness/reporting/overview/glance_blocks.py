"""The summary of a run in a terminal: rows of tasks, what changes how they are read, and the headline last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from statistics import fmean

from harness.metrics.metric import metric_name
from harness.reporting.blocks.model import BLANK, Block, Field, Note, Notes, Table, make_table
from harness.reporting.blocks.number import Score, levels, mean_score, percent, score_field, uncertainty
from harness.reporting.blocks.words import counted, leading
from harness.reporting.overview.column import (
    OWN_HEAD,
    PROTOCOLS,
    Column,
    conditions_of,
    group_pairs,
    short_protocol,
)
from harness.reporting.overview.glance import WEAKEST, Glance, LanguageGlance, TaskGlance, glance
from harness.reporting.overview.means import PUBLISHED, UNREADABLE
from harness.reporting.overview.missing import missing
from harness.reporting.overview.summary import Summary
from harness.reporting.overview.summary_blocks import matrix_table
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
    groups = (
        [*([Note(title, "heading")] if alone or headline.tasks else []), *_task_blocks(headline, width)],
        [
            *((*_matrices(summary, headline), *_sections(summary)) if alone else ()),
            *_remarks(summary),
            *_failed(summary),
            *_skipped(runs[0]),
            *_published(headline, summary, width),
        ],
        [
            *_warnings(runs[0], summary, headline),
            Note(_completeness(headline)),
            *_headline(runs[0], headline),
        ],
    )
    return [block for group in groups if group for block in (*group, Note(""))][:-1]


def _matrices(summary: Summary, headline: Glance) -> Iterator[Block]:
    covered = {task for task, _, _ in summary.covered}
    for matrix in summary.matrices:
        if matrix.is_small and len(headline.tasks) <= FEW_TASKS and matrix.name not in covered:
            yield replace(matrix_table(matrix), tight=True)
        elif matrix.name and matrix.name not in covered:  # the others belong to a row of their own
            yield Note(": ".join([matrix.title, *matrix.notes[:1]]))


def _sections(summary: Summary) -> Iterator[Block]:
    """Yield the blocks of plugins' sections, as far as there is space, and where the others are."""
    for section, report in summary.extra.items():
        budget = SECTION_LINES
        for index, block in enumerate(() if report.page_only or report.details_only else report.brief_blocks):
            lines = len(block.texts) if isinstance(block, Notes) else 1
            if isinstance(block, Table):
                lines = len(block.rows) + len(block.notes) + TABLE_LINES
            budget -= lines
            if budget < 0 and index and isinstance(block, Table):
                yield Note(f"{section.title}, all of it: harness report RUN")
                break
            yield block


def _remarks(summary: Summary) -> Iterator[Block]:
    failed = sum(group.status == "failed" for group in summary.skipped)
    lines, more = leading(summary.remarks, NOTES - min(failed, FAILURES))
    if more:
        lines[-1:] = [f"and {more + 1} more: harness report RUN --notes"]
    if lines:
        yield Notes(lines)


def _failed(summary: Summary) -> Iterator[Block]:
    groups = [group for group in summary.skipped if group.status == "failed"]
    if groups:
        yield Note(f"FAILED: {counted(sum(group.cells for group in groups), 'cell')}", "warning")
        texts = [f"{group.task} {group.line}" for group in groups[:FAILURES]]
        more = counted(sum(group.cells for group in groups[FAILURES:]), "cell")
        yield Notes(
            [*texts, *([f"and {more} more: harness report RUN --notes"] if groups[FAILURES:] else [])]
        )


def _skipped(run: Run) -> Iterator[Block]:
    cells = [cell for cell in run.cells if cell.status == "skipped" and not cell.is_stopped]
    lines = [group.line for group in missing((cell.task, cell.language, cell.reason) for cell in cells)]
    title = f"Skipped: {counted(len(cells), 'cell')}"
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
    if not (tasks := headline.tasks):
        return []
    groups = language_groups(tasks)
    strips = [_strip(groups, wide=wide) for wide in (True, False)] if sum(map(len, groups)) > WEAKEST else []
    columns = _fitting(headline, strips, width)
    table = _table(tasks, columns, tasks)
    blocks: list[Block] = [table]
    strip = next((column for column in columns if column in strips), None)
    if strips and strip is None:
        striped = [task for task in tasks if strip_of(task, groups).strip()]
        for strip in strips:
            bare = replace(strip, head=strip.head.removeprefix(f"{HEAD}\n"))
            below = replace(_table(striped, [bare], tasks), corner=HEAD)
            if needed_width(below) <= width:
                break
        blocks.append(below)
    texts = "".join(str(field) for row in table.rows for field in row.fields)
    legend = [INTERVALS] if "±" in texts or "–" in texts else []
    legend += [GAP] if any(column.name == "gap" for column in columns) else []
    shades = [] if strip is None else [_shade_legend(tasks, groups, wide=strip is strips[0])]
    lines = [" ".join(legend), " ".join([*shades, *_protocol_legend(tasks)])]
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
    protocols = group_pairs((task.column.task, (task.column.protocol, task.column.method)) for task in tasks)
    several = {name: dict(pairs) for name, pairs in protocols.items() if len(dict(pairs)) > 1}
    words = {}
    for protocol, method in (pair for methods in several.values() for pair in methods.items()):
        short = short_protocol(protocol, method)
        if protocol in PROTOCOLS and short != OWN_HEAD:
            words[short or " and ".join(several)] = PROTOCOLS[protocol][1]
    return [f"{'; '.join(f'{name}: {meaning}' for name, meaning in words.items())}."] if words else []


def _shared_conditions(tasks: Sequence[TaskGlance]) -> str:
    """Return the protocol and view that all rows have, where they are not the usual ones."""
    conditions = {" ".join(task.column.title.split("\n")[1:-1]) for task in tasks}
    return conditions.pop() if len(conditions) == 1 else ""


def _fitting(headline: Glance, strips: Sequence[_Column], width: int) -> list[_Column]:
    """Return the columns that fit, in the order of a row; what matters most is taken first."""
    tasks = headline.tasks
    columns = list(_columns(tasks, strips))
    names = {column.name for column in columns}
    further = [column.name for column in columns if column.name.startswith("mean ")]
    chosen = {"score"}
    added = ["also"] * headline.adds_metrics
    order = ["gap", "weakest", "items", "time", "values", *further, "strip", "chance", "wide strip", "names"]
    for name in [*added, *order, "also"]:
        tried = chosen | {name}
        if name in names and needed_width(_table(tasks, _shown(columns, tried), tasks)) <= width:
            chosen = tried
    return _shown(columns, chosen)


def _shown(columns: Sequence[_Column], names: set[str]) -> list[_Column]:
    """Return the columns of these names; of several forms of the same the longest one alone."""
    shorter = {name for forms in FORMS for name in [form for form in forms if form in names][1:]}
    return [column for column in columns if column.name in names - shorter]


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
    for name, form, between in (
        ("weakest", "{0.code}", " "),
        ("values", "{0.code} {1}", ", "),
        ("names", "{0.name} {1}", ", "),
    ):
        yield _Column(name, head, partial(_weakest, form=form, between=between), True)
    yield from strips
    yield _Column("items", "items", lambda task: f"{task.items:,}")
    yield _Column("time", "time", lambda task: f"{task.seconds:,.0f} s")


def _baseline(label: str, task: TaskGlance) -> str:
    return percent(dict(task.baselines).get(label))


def _also(task: TaskGlance) -> str:
    return ", ".join(f"{metric_name(metric)} {percent(score.value)}" for metric, score in task.further)


def _weakest(task: TaskGlance, form: str, between: str) -> str:
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
    is_short = bool(_shared_conditions(every))

    def label(column: Column) -> str:
        return f"{column.task} {metric_name(column.metric)}" if is_short else column.plain_title

    return make_table(
        "",
        ("", *(column.head for column in columns)),
        ((label(task.column), *(column.make(task) for column in columns)) for task in tasks),
        words=(index for index, column in enumerate(columns) if column.is_words),
        label_width=max((len(label(task.column)) for task in every), default=0),
        untitled=True,
        tight=True,
    )


# Strips: one shaded character per language of a task, in the same order in every row ------------------------


def language_groups(tasks: Sequence[TaskGlance]) -> list[list[str]]:
    """Return the languages that have something to show in any task, by family; families of one language are together.

    The order is that of the tables by language: families with most languages first, then codes.
    """
    languages = [language for task in tasks for language in task.languages if _sign(language)]
    pairs = group_pairs(dict.fromkeys((language.family, language.code) for language in languages))
    ordered = [
        sorted(pairs[family]) for family in sorted(pairs, key=lambda family: (-len(pairs[family]), family))
    ]
    groups = [codes for codes in ordered if len(codes) > 1]
    single = [code for codes in ordered if len(codes) == 1 for code in codes]
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
    smoothed = levels([language.score for language in task.languages])
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
    baselines = {
        label.removeprefix("mean "): tuple(mean.marked(mean.score) for mean in means)
        for label, means in summary.systems[1:]
    }
    # A baseline of the same name does not replace a paper's row.
    systems = published | baselines | published if published else {}
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
    whole = make_table(
        "",
        ("", *names),
        ([label, *(score_field(columns[name][at]) for name in names)] for at, label in enumerate(labels)),
        untitled=True,
        tight=True,
        terse=True,
    )
    for count in range(len(names), 0, -1):
        corner = "published" if names[count - 1] in published else "published, baselines"
        table = replace(whole.part(range(count)), corner=corner)
        if needed_width(table) <= width or count == 1:
            yield table
            return


def _mean(scores: Sequence[Score]) -> Score:
    """Return the mean over all tasks, with their marks; none where one is missing."""
    mean, marks = mean_score(scores), dict.fromkeys(mark for score in scores for mark in score.mark)
    is_whole = all(score.value is not None for score in scores)
    return replace(mean, mark="".join(marks)) if is_whole else Score()


# The end, where the eye is ---------------------------------------------------------------------------------


def _warnings(run: Run, summary: Summary, headline: Glance) -> Iterator[Block]:
    if summary.sample:
        yield Note(SAMPLE_WARNING, "warning")
    if stopped := headline.completeness.missing["not reached"]:
        text = f"STOPPED: {counted(stopped, 'cell')} not run. Continue: harness eval --resume {run.path}"
        yield Note(text, "warning")


def _completeness(headline: Glance) -> str:
    done = headline.completeness
    if done.is_whole:
        counts = (done.scored, "cell"), (done.tasks[1], "task"), (done.languages[1], "language")
        return f"Complete: {', '.join(counted(*pair) for pair in counts)}"
    return f"Partial: {done.scored:,} of {counted(done.cells, 'cell')} scored, {done.phrases}"


def _headline(run: Run, headline: Glance) -> Iterator[Block]:
    """Yield the overall scores, what counts most last."""
    suites = run.results.suites
    lines = [_suite_line(suite) for suite in suites]
    has_score = any(suite.flat.value is not None or suite.paper.value is not None for suite in suites)
    if not (mean := _mean_line(headline)):
        yield from (Note(line, "heading") for line in lines)
    elif has_score:
        yield from (Note(mean), *(Note(line, "heading") for line in lines))
    else:
        yield from (*map(Note, lines), Note(mean, "heading"))


def _suite_line(suite: SuiteScore) -> str:
    protocol = short_protocol(str(suite.protocol))
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
    name, mean, against = headline.mean_name(of), headline.mean, ["", ""]
    if len(tasks) == 1:
        name, mean, against = tasks[0].label, tasks[0].mean, [tasks[0].spread, tasks[0].chance_text]
    assert mean.value is not None
    score = " ".join([f"{percent(mean.value)}{mean.mark}", uncertainty(mean.value, mean.interval)]).rstrip()
    # Of baselines that have all of the tasks.
    values = group_pairs(pair for task in tasks for pair in task.baselines)
    against[1:1] = [
        f"{label} {percent(fmean(scores))}" for label, scores in values.items() if len(scores) == len(tasks)
    ]
    phrases = ", ".join(filter(None, against))
    return f"{name}: {score}" + (f" ({phrases})" if phrases else "")
