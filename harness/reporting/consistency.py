"""The section of reports about how alike a model answers in different languages."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

from harness.analysis.consistency import MEASURES, Consistency, Measure, consistencies, wide_tasks
from harness.errors import HarnessError
from harness.reporting.formats import SectionReport
from harness.reporting.model import BLANK, Block, Field, Fold, Table, rows_of
from harness.reporting.number import percent, uncertainty
from harness.storage.run_folder import Run

__all__ = ["consistency_rows", "read_consistency"]

HEADS: Final = {
    "same": "same answer",
    "kappa": "kappa",
    "correct": "both right or both wrong",
    "rank": "RankC",
}
TITLE: Final = "Consistency between languages"
LEGEND: Final = (
    "Means over the pairs of languages, x100, on the same items; intervals respect items and clusters."
)
MEANING: Final = {
    "kappa": "Kappa is the share of same answers corrected for chance (Cohen, 1960).",
    "rank": "RankC compares rankings of candidates, the first ones most (Qi et al., 2023).",
}
WIDEST: Final = 30
"""Languages of a task whose pairs every report compares."""


def read_consistency(runs: Sequence[Run]) -> SectionReport | None:
    """Return the consistency of the main run; None for a run without a parallel task in two languages."""
    try:
        found = consistencies(runs[0], most=WIDEST)
    except HarnessError as error:
        return SectionReport(notes=(f"{TITLE} is missing: {error.message}",), page_only=True)
    notes = tuple(
        f"{TITLE}: {task} has {count} languages and is left out, since all pairs of more than {WIDEST} take long; "
        "harness report RUN --consistency --json FILE computes them."
        for task, count in wide_tasks(runs[0], WIDEST).items()
    )
    if not found:
        return (
            SectionReport(notes=notes, details_only=True, rows=lambda: consistency_rows(runs[0]))
            if notes
            else None
        )
    table = _summary(found)
    return SectionReport(
        notes=notes,
        blocks=[table, *itertools.chain.from_iterable(map(_matrices, found))],
        brief=[table],
        details_only=True,
        rows=lambda: consistency_rows(runs[0]),
    )


def consistency_rows(run: Run) -> list[dict[str, Any]]:
    """Return one row per task, pair of languages and measure, and one for the mean over pairs, as fractions.

    Raises what `harness.analysis.consistency.consistencies` does.
    """
    return _rows(consistencies(run))


def _summary(found: Sequence[Consistency]) -> Table:
    shown = [name for name in MEASURES if any(name in one.means for one in found)]
    rows = [
        (
            _name(one, found),
            str(len(one.languages)),
            _items(one),
            *(_field(one.means.get(name)) for name in shown),
        )
        for one in found
    ]
    chances = [
        f"RankC of random rankings of {one.task}: {percent(one.rank_chance)}."
        for one in found
        if one.rank_chance is not None
    ]
    return Table(
        title=TITLE,
        corner="task",
        heads=("languages", "items", *(HEADS[name] for name in shown)),
        rows=rows_of(rows),
        notes=(LEGEND, *(MEANING[name] for name in shown if name in MEANING), *dict.fromkeys(chances)),
        divided=True,
    )


def _items(one: Consistency) -> str:
    return f"{max(own.n for own in one.means.values()):,}"


def _name(one: Consistency, found: Sequence[Consistency]) -> str:
    """Return the task, with what differs from the other rows of the same task."""
    others = [own for own in found if own.task == one.task]
    parts = [f"{name}={value}" for name, value in sorted(one.view.items())]
    for name in ("protocol", "method", "seed"):
        if len({getattr(own, name) for own in others}) > 1:
            parts.append(f"seed {one.seed}" if name == "seed" else str(getattr(one, name)))
    return f"{one.task} ({', '.join(parts)})" if parts and len(others) > 1 else one.task


def _field(measure: Measure | None) -> str | Field:
    if measure is None:
        return BLANK
    ends = (measure.interval.low, measure.interval.high)
    interval = None if ends[0] is None or ends[1] is None else (ends[0], ends[1])
    return Field(text=percent(measure.value), small=uncertainty(measure.value, interval))


def _matrices(one: Consistency) -> Iterator[Block]:
    """Yield the matrix of languages of a task's last measure; the rows of ``--json`` have those of all measures."""
    name = next((name for name in reversed(MEASURES) if name in one.means), None)
    if name is not None and len(one.languages) > 2:
        yield Fold(title=f"{one.task}: {HEADS[name]}", blocks=[_matrix(one, name)], is_open=True)


def _matrix(one: Consistency, name: str) -> Table:
    values = {pair.languages: pair.measures.get(name) for pair in one.pairs}
    # Both halves would say the same.
    rows = [
        (
            code,
            *(_cell(values, other, code) if place < row else "" for place, other in enumerate(one.languages)),
        )
        for row, code in enumerate(one.languages)
    ]
    return Table(
        title=f"{one.task}: {HEADS[name]}, by pairs of languages",
        corner="language",
        heads=one.languages,
        rows=rows_of(rows),
        ramp="share",
        terse=True,
        divided=True,
    )


def _cell(values: dict[tuple[str, str], Measure | None], one: str, other: str) -> str | Field:
    return _field(values.get((one, other)))


def _rows(found: Sequence[Consistency]) -> list[dict[str, Any]]:
    rows = []
    for one in found:
        shared = {
            "task": one.task,
            "protocol": one.protocol,
            "method": one.method,
            "view": dict(one.view),
            "seed": one.seed,
        }
        parts = [(list(one.languages), "mean over pairs", one.means)]
        parts += [(list(pair.languages), "pair", pair.measures) for pair in one.pairs]
        for languages, scope, measures in parts:
            for name, own in measures.items():
                value = {"measure": name, "value": own.value, "n": own.n, **own.interval.to_json()}
                rows.append({**shared, "scope": scope, "languages": languages, **value})
    return rows
