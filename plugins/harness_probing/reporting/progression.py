"""Scores from the original treebank to the colorless-green and the code-switched one: of systems, and of two groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import comb
from statistics import fmean
from typing import Literal

from harness import Run, UsageError
from harness.reporting import (
    BLANK,
    INTERVAL_LEGEND,
    Contrast,
    Estimate,
    Field,
    Table,
    TableRow,
    contrast,
    p_text,
    percent,
    signed,
    signed_interval,
    uncertainty,
)
from harness_probing.reporting.probe import METRIC, TREEBANK_NAMES, Probe, ordered_treebanks, read_probes
from harness_probing.reporting.tables import probe_table, titled_rows

Which = Literal["last", "best"]
_WHICH: tuple[Which, ...] = ("last", "best")
HEADS = {**TREEBANK_NAMES, "original": "orig"}
"""Short enough for a terminal of 80 columns."""
_AVERAGE = "Average"
DIFFERENCE_NOTE = (
    "In brackets: the 95 % interval, which takes the two treebanks as independent (MOVER; Zou and Donner 2008). Where "
    "they share their source sentences, as CG and csCG do, it is rather too wide."
)

ROUNDING = 1e-12
PAPER_HEADS = ("Last Layer", "Best Layer")
DIGITS = len("0.1234")


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
        for which in _WHICH if having else ():
            scores[treebank, which] = _over_tasks(having, treebank, which)
        tasks[treebank] = len(_by_task(having))

    def both(earlier: str, later: str, which: Which) -> tuple[Estimate, Estimate] | None:
        having = [progression for progression in own if {earlier, later} <= progression.probes.keys()]
        if not having:
            return None
        return _over_tasks(having, earlier, which), _over_tasks(having, later, which)

    steps = _steps(treebanks, both)
    return Progression(model=model, title=_AVERAGE, probes={}, scores=scores, tasks=tasks, steps=steps)


def _over_tasks(own: Iterable[Progression], treebank: str, which: Which) -> Estimate:
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
        for which in _WHICH:
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
    heads = [f"{HEADS.get(name, name)}\n{which}".lstrip() for name in treebanks for which in _WHICH]
    models = list(dict.fromkeys(progression.model for progression in found))
    rows: list[TableRow] = []
    for model in models:
        model_rows = [
            TableRow(
                label=progression.title,
                fields=tuple(_score_text(progression, name, which) for name in treebanks for which in _WHICH),
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
                        fields=tuple(_step_text(progression.steps[later, which]) for which in _WHICH),
                        depth=1,
                    )
                )
        rows += titled_rows(model, model_rows, alone=len(models) == 1)
    if not rows:
        return None
    notes = [DIFFERENCE_NOTE]
    if any(progression.tasks for progression in found):
        notes.append("An average's difference is over the tasks that both treebanks have.")
    return probe_table(title, _WHICH, rows, notes)


def _step_text(step: ProgressionStep) -> str:
    text = signed(step.value)
    if step.interval is None:
        return text
    return f"{text} [{signed(step.interval.low)}, {signed(step.interval.high)}]"


def relabelling_p(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the exact two-sided p of the difference of means when models are exchanged between the groups.

    The share of all divisions into groups of these sizes whose difference is as large (Fisher 1935; Pitman 1937).
    """
    scores, total = [*first, *second], sum(first) + sum(second)

    def size(part: float) -> float:
        return abs(part / len(first) - (total - part) / len(second))

    observed = size(sum(first))
    divisions = [size(sum(own)) for own in combinations(scores, len(first))]
    return sum(own >= observed - ROUNDING for own in divisions) / len(divisions)


def group_tables(runs: Sequence[Run], against: Sequence[Run]) -> list[Table]:
    """Return a table per language and method: best layers of a group of models minus those of another group.

    Rows are the tasks and treebanks that all models have, and their averages. Raises `UsageError` where there are none,
    or a run is in both groups.
    """
    if both := {run.path.resolve() for run in runs} & {run.path.resolve() for run in against}:
        raise UsageError(f"The run {str(min(both))!r} is in both groups.", hint="Name it once.")
    groups = [read_probes(side)[0] for side in (runs, against)]
    tables = [
        _table(
            f"{language}, {method}",
            [[p for p in group if (p.language, p.method) == kind] for group in groups],
        )
        for kind in dict.fromkeys((probe.language, probe.method) for probe in groups[0])
        for language, method in [kind]
    ]
    filled = [table for table in tables if table.rows]
    if not filled:
        raise UsageError("No task and treebank was probed in all of these runs.", hint="Name other runs.")
    return filled


def _table(title: str, groups: Sequence[Sequence[Probe]]) -> Table:
    group_progressions = [progressions(group) for group in groups]
    names = [list(dict.fromkeys(probe.model for probe in group)) for group in groups]
    rows: list[TableRow] = []
    for treebank in ordered_treebanks(groups[0]):
        models = [
            [
                [
                    progression
                    for progression in own
                    if progression.model == model and treebank in progression.probes
                ]
                for model in group_models
            ]
            for own, group_models in zip(group_progressions, names, strict=True)
        ]
        sets = [{progression.title for progression in model} for group in models for model in group]
        shared = (
            [
                progression.title
                for progression in models[0][0]
                if all(progression.title in own for own in sets)
            ]
            if all(names)
            else []
        )
        rows += [TableRow(label=TREEBANK_NAMES.get(treebank, treebank) or "test", style="head")] * bool(
            shared
        )
        for titles in [*([name] for name in shared), *([shared] if len(shared) > 1 else [])]:
            estimates = [
                [
                    _over_tasks(
                        [progression for progression in model if progression.title in titles],
                        treebank,
                        "best",
                    )
                    for model in group
                ]
                for group in models
            ]
            label = titles[0] if len(titles) == 1 else _AVERAGE
            rows.append(TableRow(label=label, fields=_fields(*estimates), depth=1))
    sizes = [len(group_models) for group_models in names]
    least = (1 + (sizes[0] == sizes[1])) / comb(sum(sizes), sizes[0])
    return probe_table(
        f"{title}: {' minus '.join(' and '.join(group_models) for group_models in names)}",
        ("first", "second", "difference", "95 % interval", "p"),
        rows,
        [
            "Mean weighted F1 x100 of each group, at the best layers. The interval is over test sentences, for these "
            "models (MOVER). p is exact, over all divisions of the models into such groups; it is at least "
            f"{least:.3f}."
        ],
    )


def _fields(first: Sequence[Estimate], second: Sequence[Estimate]) -> tuple[str, ...]:
    first_mean, second_mean = average(first), average(second)
    interval = contrast(first_mean, second_mean)
    return (
        percent(first_mean.value),
        percent(second_mean.value),
        signed(first_mean.value - second_mean.value),
        signed_interval(*((None, None) if interval is None else (interval.low, interval.high))),
        p_text(
            relabelling_p([estimate.value for estimate in first], [estimate.value for estimate in second])
        ),
    )


def paper_table(probes: Sequence[Probe], title: str) -> Table:
    """Return the last and the best layer of every model with the number of the best one, as fractions of four digits.

    Rows are treebanks with their tasks in the order of the runs and the average; of several models the best is bold.

    Args:
        probes: Those of one language and method.
        title: The caption without what the numbers are.
    """
    found = progressions(probes)
    models = list(dict.fromkeys(one.model for one in found))
    names = short_titles(probes)
    by_model = {model: {own.title: own for own in found if own.model == model} for model in models}
    titles = dict.fromkeys(own.title for own in found if own.title != _AVERAGE)
    rows: list[TableRow] = []
    for treebank in ordered_treebanks(probes):
        if rows:
            rows[-1] = TableRow(label=rows[-1].label, fields=rows[-1].fields, depth=1, ends=True)
        rows.append(TableRow(label=TREEBANK_NAMES.get(treebank, treebank) or "test", style="head"))
        for name in (*titles, _AVERAGE):
            own = [by_model[model].get(name) for model in models]
            if any(one is not None and (treebank, "last") in one.scores for one in own):
                rows.append(
                    TableRow(label=names.get(name, name), fields=_paper_fields(own, treebank), depth=1)
                )
    chosen = " or ".join(sorted({str(probe.best["chosen_on"]) for probe in probes}))
    return Table(
        title=f"{title}. Weighted F1; in brackets the best layer, chosen on {chosen}.",
        corner="Task",
        heads=PAPER_HEADS * len(models),
        groups=tuple((model, len(PAPER_HEADS)) for model in models),
        rows=tuple(rows),
        notes=("~ over fewer tasks than that of another model. * on another split than test.",),
    )


def _paper_fields(own: Sequence[Progression | None], treebank: str) -> tuple[Field, ...]:
    """Return the fields of a row; averages over unequally many tasks are marked with ~ and not compared."""
    counts = [0 if progression is None else progression.tasks.get(treebank, 0) for progression in own]
    texts = [
        _texts(progression, treebank, "~" if count < max(counts) else "")
        for progression, count in zip(own, counts, strict=True)
    ]
    compared = len({*counts} - {0}) < 2 and sum(text[0] != BLANK for text in texts) > 1
    tops = [max(text[column][:DIGITS] for text in texts) for column in range(len(PAPER_HEADS))]
    return tuple(
        Field(text=text, style="best" if compared and text[:DIGITS] == top != BLANK else "")
        for pair in texts
        for text, top in zip(pair, tops, strict=True)
    )


def _texts(one: Progression | None, treebank: str, mark: str) -> list[str]:
    """Return the last and the best score; of equal width, so that they sort as text."""
    texts = []
    for which in _WHICH:
        score = None if one is None else one.scores.get((treebank, which))
        if one is None or score is None:
            texts.append(BLANK)
            continue
        probe = one.probes.get(treebank)
        layer = f" ({probe.best['layer']})" if which == "best" and probe is not None else ""
        stands_in = "*" if probe is not None and probe.stands_in else ""
        texts.append(f"{score.value:.4f}{mark}{stands_in}{layer}")
    return texts


def short_titles(probes: Sequence[Probe]) -> dict[str, str]:
    """Return the tasks as the paper calls them, by title: without the word that all begin with, in capitals.

    ``vyakarana_pos`` next to ``vyakarana_stdp`` is ``POS``. Inputs that are not those of the suite are in brackets.
    """
    tasks = {probe.task for probe in probes}
    common = len({task.partition("_")[0] for task in tasks}) == 1 and all("_" in task for task in tasks)
    views: dict[str, set[str]] = {}
    for probe in probes:
        views.setdefault(probe.task, set()).add(probe.view)
    names = {}
    for probe in probes:
        name = probe.task.partition("_")[2].upper() if common else probe.task
        bare = len(views[probe.task]) == 1 or not probe.view
        names[probe.title] = name if bare else f"{name} ({probe.view.rpartition('=')[2]})"
    return names
