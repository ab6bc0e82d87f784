"""The rows of tasks in the summary: as many columns as a terminal has space for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.reporting.column import METRIC_SHORT
from harness.reporting.console import SHADES, needed_width
from harness.reporting.glance import WEAKEST, Glance, LanguageGlance, TaskGlance
from harness.reporting.model import BLANK, Block, Field, Note, Table, TableRow
from harness.reporting.number import percent, score_field
from harness.reporting.strips import language_groups, strip_head, strip_of

__all__ = ["shared_conditions", "task_blocks", "task_label"]

INTERVALS = "±, (a–b): 95 % interval."
GAP = "gap: source minus others."


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    head: str
    make: Callable[[TaskGlance], str | Field]
    is_words: bool = False


def task_blocks(own: Glance, width: int) -> list[Block]:
    """Return a row per task, the shades of its languages in the row or below the rows, and the legend."""
    if not own.tasks:
        return []
    groups = language_groups(own.tasks)
    strip = _Column(
        "strip", strip_head(groups), lambda task: Field(text=strip_of(task, groups), style="strip"), True
    )
    has_strips = sum(map(len, groups)) > WEAKEST
    columns = _fitting(own, strip if has_strips else None, width)
    table = _table(own.tasks, columns, own.tasks)
    blocks: list[Block] = [table]
    if has_strips and strip not in columns:
        shown = [task for task in own.tasks if strip_of(task, groups).strip()]
        blocks.append(_table(shown, [strip], own.tasks))
    texts = [str(field) for row in table.rows for field in row.fields]
    legend = [INTERVALS] if any("±" in text or "–" in text for text in texts) else []
    legend += [GAP] if any(column.name == "gap" for column in columns) else []
    legend += [f"{SHADES}: chance or 0 to 100."] if has_strips else []
    return [*blocks, *([Note(" ".join(legend), "note")] if legend else [])]


def shared_conditions(tasks: Sequence[TaskGlance]) -> str:
    """Return the protocol and view that all rows have, where they are not the usual ones."""
    found = {" ".join(task.column.title.split("\n")[1:-1]) for task in tasks}
    return found.pop() if len(found) == 1 else ""


def task_label(task: TaskGlance, shared: str = "") -> str:
    """Return the task with its metric; protocol and view too, where not all rows share them."""
    name, *middle, metric = task.column.title.split("\n")
    return " ".join([name, *([] if shared else middle), metric])


def _fitting(own: Glance, strip: _Column | None, width: int) -> list[_Column]:
    """Return the columns that fit, in the order of a row; what matters most is taken first."""
    columns = [*_columns(own), *([] if strip is None else [strip]), *_counts()]
    known = {column.name for column in columns}
    further = [column.name for column in columns if column.name.startswith("mean ")]
    chosen = {"score"}
    for name in ["gap", "weakest", "items", "time", "values", *further, "strip", "chance", "names", "also"]:
        tried = chosen | {name}
        if name in known and needed_width(_table(own.tasks, _shown(columns, tried), own.tasks)) <= width:
            chosen = tried
    return _shown(columns, chosen)


def _shown(columns: Sequence[_Column], names: set[str]) -> list[_Column]:
    """Return the columns of these names; of the forms of the weakest languages the longest one alone."""
    forms = [name for name in ("names", "values", "weakest") if name in names][1:]
    return [column for column in columns if column.name in names and column.name not in forms]


def _columns(own: Glance) -> list[_Column]:
    tasks = own.tasks
    found = [_Column("score", "score", lambda task: score_field(task.mean))]
    if any(task.transfer_gap is not None for task in tasks):
        found.append(_Column("gap", "gap", lambda task: percent(task.transfer_gap)))
    for label in dict.fromkeys(label for task in tasks for label, _ in task.baselines):
        found.append(_Column(f"mean {label}", label, _baseline(label)))
    if any(task.chance is not None for task in tasks):
        found.append(_Column("chance", "chance", lambda task: percent(task.chance)))
    if any(task.further for task in tasks):
        found.append(_Column("also", "also", _also, True))
    head = "weakest" if any(len(task.scored) > WEAKEST for task in tasks) else "languages"
    for name, show in (("weakest", _code), ("values", _value), ("names", _named)):
        found.append(_Column(name, head, _weakest(show), True))
    return found


def _counts() -> list[_Column]:
    return [
        _Column("items", "items", lambda task: f"{task.items:,}"),
        _Column("time", "time", lambda task: f"{task.seconds:,.0f} s"),
    ]


def _baseline(label: str) -> Callable[[TaskGlance], str]:
    return lambda task: percent(dict(task.baselines).get(label))


def _also(task: TaskGlance) -> str:
    return ", ".join(
        f"{METRIC_SHORT.get(metric, metric)} {percent(score.value)}" for metric, score in task.further
    )


def _weakest(show: Callable[[LanguageGlance], str]) -> Callable[[TaskGlance], str]:
    def text(task: TaskGlance) -> str:
        ranked = sorted(task.scored, key=lambda language: (language.score.value or 0.0, language.code))
        shown, others = ranked[:WEAKEST], ranked[WEAKEST:]
        tied = sum(percent(other.score.value) == percent(shown[-1].score.value) for other in others)
        texts = [show(language) for language in shown]
        between = " " if show is _code else ", "
        return f"{between.join(texts)}{f' +{tied}' if tied else ''}" if texts else BLANK

    return text


def _code(language: LanguageGlance) -> str:
    return language.code


def _value(language: LanguageGlance) -> str:
    return f"{language.code} {percent(language.score.value)}"


def _named(language: LanguageGlance) -> str:
    return f"{language.name} {percent(language.score.value)}"


def _table(tasks: Sequence[TaskGlance], columns: Sequence[_Column], every: Sequence[TaskGlance]) -> Table:
    shared = shared_conditions(every)
    labels = {id(task): task_label(task, shared) for task in every}
    return Table(
        title="",
        untitled=True,
        tight=True,
        heads=tuple(column.head for column in columns),
        rows=tuple(
            TableRow(label=labels[id(task)], fields=tuple(column.make(task) for column in columns))
            for task in tasks
        ),
        words=frozenset(place for place, column in enumerate(columns) if column.is_words),
        label_width=max(map(len, labels.values())),
    )
