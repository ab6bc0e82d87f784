"""The table that a board opens with, in Python: what the page shows before, or without, its script.

The same rules as ``static/compute.mjs``, which shows it again under filters; tests run both on the same boards.
Overall scores are those of `harness.metrics.suites.overall`, so that board and command line never disagree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from harness.metrics.suites import overall

__all__ = ["Column", "Field", "Row", "Standing", "amount", "points", "ranks", "standing"]

Z = 1.959964
"""Of a 95 % interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One score of the table, in points."""

    value: float | None
    se: float | None = None
    interval: tuple[float, float] | None = None
    """The ends of the 95 % interval that the results keep; None for what the board itself averages."""
    is_whole: bool = True
    title: str = ""
    """Why it is missing, or what must be known about it."""

    @property
    def error(self) -> float | None:
        """The standard error; of a score without spread the longer side of its interval over `Z`; None: unknown."""
        if self.value is None or self.se or self.interval is None:
            return self.se or None
        low, high = self.interval
        return max(self.value - low, high - self.value) / Z

    @property
    def text(self) -> str:
        """One decimal; ``~`` after a mean over fewer languages than the task has."""
        return "-" if self.value is None else f"{points(self.value)}{'' if self.is_whole else '~'}"

    @property
    def description(self) -> str:
        """The title and the interval."""
        if self.value is None or (self.se is None and self.interval is None):
            return self.title
        reach = Z * (self.se or 0.0)
        low, high = self.interval or (max(0.0, self.value - reach), min(100.0, self.value + reach))
        return "; ".join(
            part for part in (self.title, f"95 % interval {points(low)} to {points(high)}") if part
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of scores."""

    id: str
    head: str
    title: str
    low: float = 0.0
    """Where its colours start: chance, or 0 where that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One system with its scores."""

    index: int
    """Of the system in the page's content."""
    label: str
    facts: tuple[str, ...]
    total: Field
    fields: tuple[Field, ...]
    rank: str = ""
    range: str = ""
    group: str = ""

    @property
    def coverage(self) -> float:
        """Percent of the columns with a score."""
        return (
            100 * sum(field.value is not None for field in self.fields) / len(self.fields)
            if self.fields
            else 0.0
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The table."""

    columns: tuple[Column, ...]
    facts: tuple[str, ...]
    rows: tuple[Row, ...]
    has_errors: bool


class _Scores:
    """The scores of a page's content by system, task and metric."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._absences = [system.get("absences", {}) for system in content["systems"]]
        self._rows: dict[tuple[int, str, str], list[Any]] = {}
        for row in content["scores"]:
            filled = [*row, *[None] * (13 - len(row))]
            self._rows[row[0], row[1], row[2]] = filled

    def task(self, system: int, task: Mapping[str, Any]) -> Field:
        """Return a task's score: the mean of its headline metrics."""
        found = [self._rows.get((system, task["task"], metric)) for metric in task["headline"]]
        value = _mean([None if row is None else row[3] for row in found])
        if value is None:
            return Field(value=None, title=self._absence(system, task["task"], None))
        known = [row for row in found if row is not None]
        whole = all(row[7] != 0 for row in known)
        notes = [row[8] for row in known if row[8]]
        notes += [] if whole else ["over fewer languages than the task has"]
        return Field(
            value=value,
            se=_mean([row[4] for row in known]),
            interval=_ends([row[5] for row in known], [row[6] for row in known]),
            is_whole=whole,
            title=" ".join(dict.fromkeys(notes)),
        )

    def language(self, system: int, task: Mapping[str, Any], code: str) -> Field:
        """Return a task's score in one language."""
        place = shown_languages(task).index(code)
        found = [self._rows.get((system, task["task"], metric)) for metric in task["by_language"]]
        value = _mean([row[9][place] if row and row[9] else None for row in found])
        if value is None:
            return Field(value=None, title=self._absence(system, task["task"], code))
        known = [row for row in found if row is not None]
        return Field(
            value=value,
            se=_mean([row[10][place] if row[10] else None for row in known]),
            interval=_ends(*([row[at][place] if row[at] else None for row in known] for at in (11, 12))),
            title=" ".join(dict.fromkeys(row[8] for row in known if row[8])),
        )

    def _absence(self, system: int, task: str, code: str | None) -> str:
        known = self._absences[system]
        if code is not None:
            return str(known.get(f"{task}:{code}") or "no score in this language")
        first = next((reason for key, reason in known.items() if key.startswith(f"{task}:")), None)
        return str(known.get(task) or first or "no score of this system")


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _ends(lows: Sequence[float | None], highs: Sequence[float | None]) -> tuple[float, float] | None:
    """Return the interval of a mean of metrics of the same items: the mean of theirs, the widest that it can have."""
    low, high = _mean(lows), _mean(highs)
    return None if low is None or high is None else (low, high)


def points(value: float) -> str:
    """Return a score with one decimal."""
    text = f"{round(value, 6):,.1f}"
    return "0.0" if text == "-0.0" else text


def amount(value: float | None) -> str:
    """Return ``178M``, ``1.2B``, ``6.3T``; ``-`` for None."""
    if value is None:
        return "-"
    for size, mark in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{float(f'{value / size:.3g}'):g}{mark}"
    return f"{value:g}"


def shown_languages(task: Mapping[str, Any]) -> list[str]:
    """Return the languages of a task and those that others added to it."""
    return [*task["languages"], *task.get("added", ())]


def standing(content: Mapping[str, Any], *, task: str | None = None, language: str | None = None) -> Standing:
    """Return the table of a board, of one task (its languages as columns), or of one language (its tasks).

    Systems are ordered by their overall score. Those over fewer languages follow complete ones; those without a score
    come last.
    """
    scores = _Scores(content)
    tasks = [
        item
        for item in content["tasks"]
        if (task is None or item["task"] == task) and (language is None or language in shown_languages(item))
    ]
    facts = _facts(content["systems"])
    rows = []
    for index, system in enumerate(content["systems"]):
        by_task = {
            item["task"]: scores.task(index, item)
            if language is None
            else scores.language(index, item, language)
            for item in tasks
        }
        fields = (
            [scores.language(index, item, code) for item in tasks for code in shown_languages(item)]
            if task is not None
            else list(by_task.values())
        )
        total = _total(by_task, content["categories"])
        is_known = total.value is not None or any(field.value is not None for field in fields)
        if is_known or (task is None and language is None):
            own_facts = tuple(FACTS[name](system) for name in facts)
            rows.append(
                Row(index=index, label=system["label"], facts=own_facts, total=total, fields=tuple(fields))
            )
    places = ranks([row.total for row in rows])
    ranked = [
        Row(**{**{name: getattr(row, name) for name in Row.__slots__}, **place})
        for row, place in zip(rows, places, strict=True)
    ]
    ranked.sort(key=_order)
    return Standing(
        columns=tuple(_columns(content, tasks, task, language)),
        facts=facts,
        rows=tuple(ranked),
        has_errors=any(row.range for row in ranked),
    )


def _order(row: Row) -> tuple[bool, bool, float, int]:
    value = row.total.value
    return value is None, value is not None and not row.total.is_whole, -(value or 0.0), row.index


def _columns(
    content: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]], task: str | None, language: str | None
) -> list[Column]:
    if task is not None:
        names = {item["code"]: item["name"] for item in content["languages"]}
        return [
            Column(
                id=f"l:{code}",
                head=f"{code}{item.get('marks', {}).get(code, '')}",
                title=f"{names.get(code, code)}: {', '.join(item['by_language'])}",
                low=_low(item, item["by_language"]),
            )
            for item in tasks
            for code in shown_languages(item)
        ]
    key = "headline" if language is None else "by_language"
    return [
        Column(
            id=f"t:{item['task']}",
            head=f"{item['task']}{item.get('marks', {}).get(language, '')}",
            title=f"{', '.join(item[key])}: mean over its languages",
            low=_low(item, item[key]),
        )
        for item in tasks
    ]


def _low(task: Mapping[str, Any], metrics: Sequence[str]) -> float:
    known = task.get("chance") if list(metrics) == list(task["headline"][:1]) else None
    return 0.0 if known is None else float(known)


def _total(fields: Mapping[str, Field], categories: Mapping[str, Sequence[str]]) -> Field:
    """Return the overall score: the mean of the categories that are shown, of the tasks where there are none."""
    kept = {name: [task for task in tasks if task in fields] for name, tasks in categories.items()}
    groups = {name: tasks for name, tasks in kept.items() if tasks}
    used = [task for tasks in groups.values() for task in tasks] if groups else list(fields)
    found = overall({task: fields[task].value for task in used}, used, groups)
    missing = [task for task in used if fields[task].value is None]
    whole = all(fields[task].is_whole for task in used)
    weights = {task: 1 / len(used) for task in used}
    for tasks in groups.values():
        weights |= {task: 1 / len(tasks) / len(groups) for task in tasks}
    errors = [(weights[task], fields[task].error) for task in used]
    title = "" if whole else "over fewer languages than the tasks have"
    return Field(
        value=found.paper if groups else found.flat,
        se=None if missing else _combined(errors),
        interval=fields[used[0]].interval if len(used) == 1 else None,
        is_whole=whole,
        title=f"no score for {', '.join(missing)}" if missing else title,
    )


def _combined(parts: Sequence[tuple[float, float | None]]) -> float | None:
    """Return the error of a weighted sum of independent scores, or None where one is not known."""
    known = [(weight * se) ** 2 for weight, se in parts if se is not None]
    return math.sqrt(sum(known)) if known and len(known) == len(parts) else None


def ranks(totals: Sequence[Field]) -> list[dict[str, str]]:
    """Return rank, tie group and rank interval of every total; empty texts for incomplete ones.

    A tie group holds what an unpaired 95 % comparison cannot separate from its best; a rank interval counts the
    systems that are separably better and worse. A system whose error is not known is separable from none; where no
    error is known, there are only ranks. Items that systems share would separate more: ``harness compare``.
    """
    known = sorted(
        (
            (-field.value, place)
            for place, field in enumerate(totals)
            if field.value is not None and field.is_whole
        )
    )
    found = [{"rank": "", "range": "", "group": ""} for _ in totals]
    errors = [field.error for field in totals]
    has_errors = len(known) > 1 and any(errors[place] is not None for _, place in known)
    leader, letter = -1, -1
    for order, (low, place) in enumerate(known):
        before = known[order - 1]
        is_same = order > 0 and abs(before[0] - low) < 1e-9
        found[place]["rank"] = found[before[1]]["rank"] if is_same else str(order + 1)
        if not has_errors:
            continue
        if leader < 0 or _differ(totals[leader], totals[place]):
            leader, letter = place, letter + 1
        elif errors[leader] is None:  # nothing is separable from it: the next one that has an error leads
            leader = place
        others = [(value, other) for value, other in known if _differ(totals[other], totals[place])]
        better = sum(value < low for value, _ in others)
        worse = sum(value > low for value, _ in others)
        found[place]["group"] = chr(65 + letter) if letter < 26 else f"G{letter + 1}"
        found[place]["range"] = f"{better + 1}–{len(known) - worse}"
    return found


def _differ(one: Field, other: Field) -> bool:
    own, theirs = one.error, other.error
    if own is None or theirs is None:
        return False
    return abs((one.value or 0.0) - (other.value or 0.0)) > Z * math.hypot(own, theirs)


def _setting(system: Mapping[str, Any]) -> str:
    parts = (system.get("protocol", ""), system.get("view", ""))
    return " ".join(part for part in parts if part).replace("_", " ")


def _parameters(system: Mapping[str, Any]) -> str:
    return amount(system.get("parameters"))


FACTS: dict[str, Callable[[Mapping[str, Any]], str]] = {"setting": _setting, "parameters": _parameters}


def _facts(systems: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(name for name, read in FACTS.items() if len({read(system) for system in systems}) > 1)
