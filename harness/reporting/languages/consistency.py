"""The section of reports about how alike a model answers in different languages."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

from harness.analysis.consistency import MEASURES, Consistency, Measure, consistencies, wide_tasks
from harness.errors import HarnessError
from harness.reporting.blocks.model import BLANK, Block, Field, Fold, Table, make_table
from harness.reporting.blocks.number import Score, percent, score_field
from harness.reporting.legends import legend
from harness.reporting.sections import SectionReport
from harness.storage.run_folder import Run

HEADS: Final = {
    "same": "same answer",
    "kappa": "kappa",
    "correct": "both right or both wrong",
    "rank": "RankC",
}
TITLE: Final = "Consistency between languages"
WIDEST: Final = 30
"""Languages of a task whose pairs every report compares."""


def read_consistency(runs: Sequence[Run]) -> SectionReport | None:
    """Return the consistency of the main run; None for a run without a parallel task in two languages."""
    try:
        by_task = consistencies(runs[0], most=WIDEST)
    except HarnessError as error:
        return SectionReport(notes=(f"{TITLE} is missing: {error.message}",), page_only=True)
    notes = tuple(
        f"{TITLE}: {task} has {count} languages and is left out, since all pairs of more than {WIDEST} take long; "
        "harness report RUN --consistency --json FILE computes them."
        for task, count in wide_tasks(runs[0], WIDEST).items()
    )
    if not by_task and not notes:
        return None
    tables = [_summary(by_task)] if by_task else []
    return SectionReport(
        notes=notes,
        blocks=(*tables, *itertools.chain.from_iterable(map(_matrices, by_task))),
        brief=tables or None,
        details_only=True,
        rows=lambda: consistency_rows(runs[0]),
    )


def consistency_rows(run: Run) -> list[dict[str, Any]]:
    """Return one row per task, pair of languages and measure, and one for the mean over pairs, as fractions.

    Raises what `harness.analysis.consistency.consistencies` does.
    """
    rows = []
    for consistency in consistencies(run):
        shared = {name: getattr(consistency, name) for name in ("task", "protocol", "method", "view", "seed")}
        scopes = [("mean over pairs", consistency.languages, consistency.means)]
        scopes += [("pair", pair.languages, pair.measures) for pair in consistency.pairs]
        for scope, languages, measures in scopes:
            for name, measure in measures.items():
                head = {**shared, "scope": scope, "languages": list(languages), "measure": name}
                rows.append({**head, "value": measure.value, "n": measure.n, **measure.interval.to_json()})
    return rows


def _summary(found: Sequence[Consistency]) -> Table:
    names = [name for name in MEASURES if any(name in consistency.means for consistency in found)]
    rows: list[tuple[str | Field, ...]] = []
    for consistency in found:
        items = max(measure.n for measure in consistency.means.values())
        fields = (_field(consistency.means.get(name)) for name in names)
        rows.append((_name(consistency, found), str(len(consistency.languages)), f"{items:,}", *fields))
    chances = [
        f"RankC of random rankings of {consistency.task}: {percent(consistency.rank_chance)}."
        for consistency in found
        if consistency.rank_chance is not None
    ]
    legends = [legend(name) for name in ("consistency", *names) if name in {"consistency", "kappa", "rank"}]
    heads = ("task", "languages", "items", *(HEADS[name] for name in names))
    return make_table(TITLE, heads, rows, notes=(*legends, *dict.fromkeys(chances)), divided=True)


def _name(one: Consistency, found: Sequence[Consistency]) -> str:
    """Return the task, with what differs from the other rows of the same task."""
    task_rows = [row for row in found if row.task == one.task]
    settings = [f"{name}={value}" for name, value in sorted(one.view.items())]
    for name, text in {"protocol": one.protocol, "method": one.method, "seed": f"seed {one.seed}"}.items():
        settings += [text] if len({getattr(row, name) for row in task_rows}) > 1 else []
    return f"{one.task} ({', '.join(settings)})" if settings and len(task_rows) > 1 else one.task


def _field(measure: Measure | None) -> str | Field:
    if measure is None:
        return BLANK
    return score_field(Score(value=measure.value, interval=measure.interval.ends))


def _matrices(one: Consistency) -> Iterator[Block]:
    """Yield the matrix of languages of a task's last measure; the rows of ``--json`` have those of all measures."""
    name = next((name for name in reversed(MEASURES) if name in one.means), None)
    if name is not None and len(one.languages) > 2:
        yield Fold(title=f"{one.task}: {HEADS[name]}", blocks=[_matrix(one, name)], is_open=True)


def _matrix(one: Consistency, name: str) -> Table:
    values = {pair.languages: pair.measures.get(name) for pair in one.pairs}
    codes = one.languages
    # Both halves would say the same.
    rows: list[tuple[str | Field, ...]] = [
        (code, *(_field(values.get((other, code))) for other in codes[:row]), *[""] * (len(codes) - row))
        for row, code in enumerate(codes)
    ]
    title = f"{one.task}: {HEADS[name]}, by pairs of languages"
    return make_table(title, ("language", *codes), rows, ramp="share", terse=True, divided=True)
