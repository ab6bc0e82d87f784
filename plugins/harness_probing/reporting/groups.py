"""Two groups of models, such as Indic and multilingual ones: the difference of their mean scores with its test."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb

from harness import Run, UsageError
from harness.reporting import Estimate, Table, TableRow, contrast, p_text, percent, signed, signed_interval
from harness_probing.reporting.probe import TREEBANK_NAMES, Probe, ordered_treebanks, read_probes
from harness_probing.reporting.progression import AVERAGE, average, over_tasks, progressions
from harness_probing.reporting.tables import probe_table

ROUNDING = 1e-12


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
                    over_tasks(
                        [progression for progression in model if progression.title in titles],
                        treebank,
                        "best",
                    )
                    for model in group
                ]
                for group in models
            ]
            label = titles[0] if len(titles) == 1 else AVERAGE
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
