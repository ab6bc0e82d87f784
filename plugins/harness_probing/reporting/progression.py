"""The main table: every task from the original treebank to the colorless-green and the code-switched one.

As Tables 4 and 5 of Patil et al. (2021): the last layer, the best one with its number, and the average over the tasks
of a treebank; with intervals, and with the differences between treebanks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Literal

from harness.reporting import (
    BLANK,
    INTERVAL_LEGEND,
    Contrast,
    Estimate,
    Table,
    TableRow,
    contrast,
    percent,
    signed,
    uncertainty,
)
from harness_probing.reporting.probe import METRIC, TREEBANK_NAMES, Probe, ordered_treebanks
from harness_probing.reporting.tables import probe_table, titled_rows

Which = Literal["last", "best"]
WHICH: tuple[Which, ...] = ("last", "best")
HEADS = {**TREEBANK_NAMES, "original": "orig"}
"""Short enough for a terminal of 80 columns."""
AVERAGE = "Average"
DIFFERENCE_NOTE = (
    "In brackets: the 95 % interval, which takes the two treebanks as independent (MOVER; Zou and Donner 2008). Where "
    "they share their source sentences, as CG and csCG do, it is rather too wide."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressionStep:
    """The difference of one treebank to the one before it, in the last or the best layer."""

    earlier: str
    later: str
    value: float
    interval: Contrast | None
    """None where one of the scores has no interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progression:
    """The scores of one task (or the average over tasks) of one model on all treebanks."""

    model: str
    title: str
    """The task with its view, or ``Average``."""
    probes: Mapping[str, Probe]
    """By treebank; empty for an average."""
    scores: Mapping[tuple[str, Which], Estimate]
    """By treebank, and whether of the last layer or of the best one."""
    tasks: Mapping[str, int]
    """Over how many tasks the score of a treebank is an average; empty for a task."""
    steps: Mapping[tuple[str, Which], ProgressionStep]
    """By later treebank."""


def estimate_of(block: Mapping[str, Mapping[str, float]]) -> Estimate:
    """Return the score of a layer with its cluster interval."""
    entry: Mapping[str, object] = block[METRIC]
    value, se, ends = entry["value"], entry.get("se"), entry.get("ci")
    assert isinstance(value, float | int)
    return Estimate(
        value=float(value),
        se=se if isinstance(se, float) else None,
        interval=(ends[0], ends[1]) if isinstance(ends, list | tuple) else None,
    )


def average(estimates: Sequence[Estimate]) -> Estimate:
    """Return the unweighted mean, as the rows named Average in Tables 4 and 5 of Patil et al. (2021).

    The tasks of a treebank share its sentences, so that their errors go together: the interval is the mean of theirs,
    the widest that they can make. Raises `ValueError` for none.
    """
    if not estimates:
        raise ValueError("There is no average of no scores.")
    ends = [estimate.interval for estimate in estimates if estimate.interval is not None]
    errors = [estimate.se for estimate in estimates if estimate.se is not None]
    complete = len(ends) == len(errors) == len(estimates)
    return Estimate(
        value=fmean(estimate.value for estimate in estimates),
        se=fmean(errors) if complete else None,
        interval=(fmean(low for low, _ in ends), fmean(high for _, high in ends)) if complete else None,
    )


def progressions(probes: Sequence[Probe]) -> list[Progression]:
    """Return the tasks of every model in their order, each model's average after them where it has several tasks.

    Args:
        probes: Those of one language and method.
    """
    treebanks = ordered_treebanks(probes)
    all_progressions: list[Progression] = []
    for model in dict.fromkeys(probe.model for probe in probes):
        by_title: dict[str, dict[str, Probe]] = {}
        for probe in probes:
            if probe.model == model:
                by_title.setdefault(probe.title, {})[probe.treebank] = probe
        model_tasks = [_of_task(model, title, by, treebanks) for title, by in by_title.items()]
        tasks = {next(iter(progression.probes.values())).task for progression in model_tasks}
        all_progressions += model_tasks
        if len(tasks) > 1:
            all_progressions.append(_average_of(model, model_tasks, treebanks))
    return all_progressions


def _of_task(model: str, title: str, probes: Mapping[str, Probe], treebanks: Sequence[str]) -> Progression:
    scores: dict[tuple[str, Which], Estimate] = {}
    for treebank, probe in probes.items():
        scores[treebank, "last"] = estimate_of(probe.last)
        scores[treebank, "best"] = estimate_of(probe.best)

    def both(earlier: str, later: str, which: Which) -> tuple[Estimate, Estimate] | None:
        pair = scores.get((earlier, which)), scores.get((later, which))
        return None if pair[0] is None or pair[1] is None else (pair[0], pair[1])

    steps = _steps(treebanks, both)
    return Progression(model=model, title=title, probes=probes, scores=scores, tasks={}, steps=steps)


def _average_of(model: str, own: Sequence[Progression], treebanks: Sequence[str]) -> Progression:
    scores: dict[tuple[str, Which], Estimate] = {}
    tasks: dict[str, int] = {}
    for treebank in treebanks:
        having = [progression for progression in own if treebank in progression.probes]
        for which in WHICH if having else ():
            scores[treebank, which] = over_tasks(having, treebank, which)
        tasks[treebank] = len(_by_task(having))

    def both(earlier: str, later: str, which: Which) -> tuple[Estimate, Estimate] | None:
        having = [progression for progression in own if {earlier, later} <= progression.probes.keys()]
        if not having:
            return None
        return over_tasks(having, earlier, which), over_tasks(having, later, which)

    steps = _steps(treebanks, both)
    return Progression(model=model, title=AVERAGE, probes={}, scores=scores, tasks=tasks, steps=steps)


def over_tasks(own: Iterable[Progression], treebank: str, which: Which) -> Estimate:
    """Return the mean over tasks; one that was run with several inputs counts once, with those that its suite takes.

    Without a suite it counts by the mean over its inputs.
    """
    return average(
        [
            average([progression.scores[treebank, which] for progression in views])
            for views in _by_task(own).values()
        ]
    )


def _by_task(own: Iterable[Progression]) -> dict[str, list[Progression]]:
    by_task: dict[str, list[Progression]] = {}
    for progression in own:
        by_task.setdefault(next(iter(progression.probes.values())).task, []).append(progression)
    return {
        task: [progression for progression in views if _counts(progression)] or views
        for task, views in by_task.items()
    }


def _counts(one: Progression) -> bool:
    return all(probe.counts for probe in one.probes.values())


def _steps(
    treebanks: Sequence[str], both: Callable[[str, str, Which], tuple[Estimate, Estimate] | None]
) -> dict[tuple[str, Which], ProgressionStep]:
    """Return the differences of neighbouring treebanks that `both` has scores of."""
    steps: dict[tuple[str, Which], ProgressionStep] = {}
    for earlier, later in pairwise(treebanks):
        for which in WHICH:
            pair = both(earlier, later, which)
            if pair is not None:
                before, after = pair
                steps[later, which] = ProgressionStep(
                    earlier=earlier,
                    later=later,
                    value=after.value - before.value,
                    interval=contrast(after, before),
                )
    return steps


def score_table(found: Sequence[Progression], probes: Sequence[Probe], title: str) -> Table:
    """Return the scores: of every treebank the last layer, and the best one with its interval and number."""
    treebanks = ordered_treebanks(probes)
    heads = [f"{HEADS.get(name, name)}\n{which}".lstrip() for name in treebanks for which in WHICH]
    models = list(dict.fromkeys(progression.model for progression in found))
    rows: list[TableRow] = []
    for model in models:
        model_rows = [
            TableRow(
                label=progression.title,
                fields=tuple(_score_text(progression, name, which) for name in treebanks for which in WHICH),
            )
            for progression in found
            if progression.model == model
        ]
        rows += titled_rows(model, model_rows, alone=len(models) == 1)
    return probe_table(title, heads, rows, _notes(found, probes))


def _score_text(one: Progression, treebank: str, which: Which) -> str:
    score = one.scores.get((treebank, which))
    if score is None:
        return BLANK
    probe = one.probes.get(treebank)
    most = max(one.tasks.values(), default=0)
    mark = (
        "*" if probe is not None and probe.stands_in else "~" if one.tasks.get(treebank, most) < most else ""
    )
    text = percent(score.value) + mark
    if which == "last":
        return text
    if score.interval is not None:
        interval = uncertainty(score.value, score.interval)
        text += interval if interval.startswith("±") else f" {interval}"
    return text if probe is None else f"{text} ({probe.best['layer']})"


def _notes(found: Sequence[Progression], probes: Sequence[Probe]) -> Iterator[str]:
    chosen = sorted({str(probe.best["chosen_on"]) for probe in probes})
    seeds = sorted({len(probe.details["settings"]["seeds"]) for probe in probes})
    yield (
        f"Weighted F1 x100, mean over {' or '.join(map(str, seeds))} seed{'s' if seeds != [1] else ''} of the probes; "
        f"{INTERVAL_LEGEND} (bootstrap over source sentences); (n) the best layer, chosen on "
        f"{' or '.join(chosen)}."
    )
    if "test" in chosen:
        yield "A layer that is chosen on test flatters: it is the published view, for comparison with the paper only."
    if any(progression.tasks for progression in found):
        yield (
            "Average: unweighted over tasks, as in Tables 4 and 5 of Patil et al. (2021); a task that was run with "
            "several inputs counts once, with those of its suite. Its interval is the mean of the tasks', since they "
            "share sentences."
        )
    if any(len(set(progression.tasks.values()) - {0}) > 1 for progression in found):
        yield "~ an average over fewer tasks than that of another treebank."
    if any(probe.stands_in for probe in probes):
        yield "* scored on another split than test, which was not found."


def difference_table(found: Sequence[Progression], title: str) -> Table | None:
    """Return the differences between neighbouring treebanks with their intervals; None where there is one treebank."""
    models = list(dict.fromkeys(progression.model for progression in found))
    rows: list[TableRow] = []
    for model in models:
        model_rows: list[TableRow] = []
        for progression in found:
            laters = (
                dict.fromkeys(later for later, _ in progression.steps) if progression.model == model else {}
            )
            model_rows += [TableRow(label=progression.title)] if laters else []
            for later in laters:
                earlier = progression.steps[later, "last"].earlier
                name = f"{TREEBANK_NAMES.get(later, later)} - {TREEBANK_NAMES.get(earlier, earlier)}"
                model_rows.append(
                    TableRow(
                        label=name,
                        fields=tuple(_step_text(progression.steps[later, which]) for which in WHICH),
                        depth=1,
                    )
                )
        rows += titled_rows(model, model_rows, alone=len(models) == 1)
    if not rows:
        return None
    notes = [DIFFERENCE_NOTE]
    if any(progression.tasks for progression in found):
        notes.append("An average's difference is over the tasks that both treebanks have.")
    return probe_table(title, WHICH, rows, notes)


def _step_text(step: ProgressionStep) -> str:
    text = signed(step.value)
    if step.interval is None:
        return text
    return f"{text} [{signed(step.interval.low)}, {signed(step.interval.high)}]"
