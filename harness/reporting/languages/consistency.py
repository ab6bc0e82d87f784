"""Sections of reports about parallel items: how alike the answers of languages are, and what is known in all."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

from harness.analysis.consistency import (
    MEASURES,
    SOURCE,
    Consistency,
    Knowledge,
    LossCorrelation,
    Measure,
    consistencies,
    knowledge,
    loss_correlation,
    wide_tasks,
)
from harness.errors import HarnessError
from harness.languages.table import known_languages
from harness.reporting.blocks.model import BLANK, Block, Field, Fold, Table, make_table, rows_of
from harness.reporting.blocks.number import Score, percent, score_field
from harness.reporting.blocks.words import legend
from harness.reporting.languages.explanation import resources, token_costs
from harness.reporting.sections import SectionReport
from harness.storage.run_folder import Run

_CONSISTENCY_HEADS: Final = {
    "same": "same answer",
    "kappa": "kappa",
    "correct": "both right or both wrong",
    "rank": "RankC",
}
_CONSISTENCY: Final = "Consistency between languages"
_WIDEST: Final = 30
"""Languages of a task that every report compares; ``--json`` has all."""
_KNOWLEDGE: Final = "The same knowledge in all languages"
_KNOWLEDGE_HEADS: Final = {
    "answered": "answered",
    "lost": "known in English, lost",
    "gained": "unknown in English, answered",
    "kappa": "kappa with English",
}
Correlations = Sequence[LossCorrelation]


def read_consistency(runs: Sequence[Run]) -> SectionReport | None:
    """Return the consistency of the main run; None for a run without a parallel task in two languages."""
    try:
        by_task = consistencies(runs[0], most=_WIDEST)
    except HarnessError as error:
        return SectionReport(notes=(f"{_CONSISTENCY} is missing: {error.message}",), page_only=True)
    notes = tuple(
        f"{_CONSISTENCY}: {task} has {count} languages and is left out, since all pairs of more than {_WIDEST} take "
        "long; harness report RUN --consistency --json FILE computes them."
        for task, count in wide_tasks(runs[0], _WIDEST).items()
    )
    if not by_task and not notes:
        return None
    tables = [_consistency_table(by_task)] if by_task else []
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


def _consistency_table(found: Sequence[Consistency]) -> Table:
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
    heads = ("task", "languages", "items", *(_CONSISTENCY_HEADS[name] for name in names))
    return make_table(_CONSISTENCY, heads, rows, notes=(*legends, *dict.fromkeys(chances)), divided=True)


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
        yield Fold(title=f"{one.task}: {_CONSISTENCY_HEADS[name]}", blocks=[_matrix(one, name)], is_open=True)


def _matrix(one: Consistency, name: str) -> Table:
    values = {pair.languages: pair.measures.get(name) for pair in one.pairs}
    codes = one.languages
    # Both halves would say the same.
    rows: list[tuple[str | Field, ...]] = [
        (code, *(_field(values.get((other, code))) for other in codes[:row]), *[""] * (len(codes) - row))
        for row, code in enumerate(codes)
    ]
    title = f"{one.task}: {_CONSISTENCY_HEADS[name]}, by pairs of languages"
    return make_table(title, ("language", *codes), rows, ramp="share", terse=True, divided=True)


def read_knowledge(runs: Sequence[Run]) -> SectionReport | None:
    """Return the knowledge of the main run by language; None without parallel tasks with right and wrong answers."""
    try:
        tasks = knowledge(runs[0], most=_WIDEST)
    except HarnessError as error:
        return SectionReport(notes=(f"{_KNOWLEDGE} is missing: {error.message}",), page_only=True)
    notes = tuple(
        f"{_KNOWLEDGE}: {task} has {count} languages and is only in harness report RUN --knowledge --json FILE."
        for task, count in wide_tasks(runs[0], _WIDEST).items()
    )
    if not tasks:
        return (
            SectionReport(notes=notes, details_only=True, rows=lambda: knowledge_rows(runs[0]))
            if notes
            else None
        )
    correlations = _correlations(runs[0], tasks)
    blocks: list[Block] = [_knowledge_table(tasks)]
    for task, task_correlations in zip(tasks, correlations, strict=True):
        tables = [_language_table(task, task_correlations), _spread_table(task)]
        blocks.append(Fold(title=_knowledge_name(task, tasks), blocks=tables, is_open=len(tasks) == 1))
    return SectionReport(
        blocks=blocks,
        brief=(),
        notes=notes,
        details_only=True,
        rows=lambda: knowledge_rows(runs[0]),
    )


def knowledge_rows(run: Run) -> list[dict[str, Any]]:
    """Return one row per task and measure, language and measure, property, number of languages, and item; fractions.

    Raises what `harness.analysis.consistency.knowledge` does.
    """
    tasks = knowledge(run)
    return [
        {**{name: getattr(task, name) for name in ("task", "protocol", "method", "view", "seed")}, **row}
        for task, correlations in zip(tasks, _correlations(run, tasks), strict=True)
        for row in _plain_rows(task, correlations)
    ]


def _plain_rows(task: Knowledge, correlations: Correlations) -> Iterator[dict[str, Any]]:
    for name in ("everywhere", "lost", "kappa"):
        if (measure := getattr(task, name)) is not None:
            yield {"scope": "task", "measure": name, **_measure_row(measure)}
    if task.lost is not None:
        over_languages = {"value": task.lost.value, **task.lost_over_languages.to_json()}
        yield {"scope": "task", "measure": "lost, over languages", **over_languages}
    for language in task.languages:
        for name in _KNOWLEDGE_HEADS:
            if (measure := getattr(language, name)) is not None:
                row = {"scope": "language", "language": language.code, "measure": name}
                yield {**row, **_measure_row(measure)}
    for correlation in correlations:
        yield {
            "scope": "property",
            "measure": correlation.property,
            "value": correlation.value,
            "ci": [correlation.low, correlation.high],
            "n": correlation.languages,
        }
    for count, (share, independent) in enumerate(zip(task.spread, task.independent_spread, strict=True)):
        yield {"scope": "number of languages", "languages": count, "value": share, "independent": independent}
    codes = [language.code for language in task.languages]
    for identifier, answered in task.answered_in.items():
        missed = [code for code in codes if code not in answered]
        yield {"scope": "item", "item": identifier, "answered": list(answered), "missed": missed}


def _measure_row(measure: Measure) -> dict[str, Any]:
    return {"value": measure.value, "n": measure.n, **measure.interval.to_json()}


def _correlations(run: Run, tasks: Sequence[Knowledge]) -> list[Correlations]:
    """Return for every task how its losses go with the resources of languages and the tokens that they take."""
    tokens = token_costs(run)
    table = known_languages()
    correlations: list[Correlations] = []
    for task in tasks:
        losses = {row.code: row.lost.value for row in task.languages if row.lost is not None}
        properties = resources([table.get(code) for code in losses if code in table])
        properties["tokens"] = tokens
        computed = [loss_correlation(losses, name, values) for name, values in properties.items()]
        correlations.append([correlation for correlation in computed if correlation is not None])
    return correlations


def _knowledge_table(tasks: Sequence[Knowledge]) -> Table:
    rows = [
        (
            _knowledge_name(task, tasks),
            str(len(task.languages)),
            f"{len(task.answered_in):,}",
            _field(task.everywhere),
            percent(task.independent_spread[-1]),
            percent(task.spread[0]),
            _field(task.lost),
            _field(task.kappa),
        )
        for task in tasks
    ]
    return Table(
        title=_KNOWLEDGE,
        corner="task",
        heads=(
            "languages",
            "items",
            "in all",
            "in all, by chance",
            "in none",
            _KNOWLEDGE_HEADS["lost"],
            _KNOWLEDGE_HEADS["kappa"],
        ),
        rows=rows_of(rows),
        notes=(legend("knowledge"),),
        divided=True,
    )


def _language_table(task: Knowledge, correlations: Correlations) -> Table:
    """Return the languages, those that lose most first and English last, and what goes with the losses."""
    languages = sorted(
        task.languages, key=lambda row: (row.code == SOURCE, -(row.lost or row.answered).value)
    )
    names = [name for name in _KNOWLEDGE_HEADS if any(getattr(row, name) is not None for row in languages)]
    over_languages = task.lost_over_languages.ends
    notes = []
    if task.lost is not None and over_languages is not None:
        low, high = map(percent, over_languages)
        notes.append(
            f"Mean loss, with languages as a sample of many: {percent(task.lost.value)} [{low} to {high}]."
        )
    notes += [
        f"Losses and {each.property}, over {each.languages} languages: Spearman's rho {each.value:+.2f} "
        f"[{each.low:+.2f} to {each.high:+.2f}]."
        for each in correlations
    ]
    return Table(
        title=f"{task.task}: the same items by language",
        corner="language",
        heads=tuple(_KNOWLEDGE_HEADS[name] for name in names),
        rows=rows_of((row.code, *(_field(getattr(row, name)) for name in names)) for row in languages),
        notes=tuple(notes),
        divided=True,
    )


def _spread_table(task: Knowledge) -> Table:
    """Return the shares of items by the number of languages in which they are answered."""
    pairs = zip(task.spread, task.independent_spread, strict=True)
    return Table(
        title=f"{task.task}: items by the number of languages in which they are answered",
        corner="languages",
        heads=("items", "if languages were independent"),
        rows=rows_of(
            (str(count), percent(share), percent(independent))
            for count, (share, independent) in enumerate(pairs)
        ),
        folding=True,
    )


def _knowledge_name(task: Knowledge, tasks: Sequence[Knowledge]) -> str:
    """Return the task, with its setting where the run has it in several."""
    settings = [task.protocol, task.method, *(f"{name}={value}" for name, value in sorted(task.view.items()))]
    settings += [] if task.seed is None else [f"seed {task.seed}"]
    is_repeated = sum(other.task == task.task for other in tasks) > 1
    return f"{task.task} ({', '.join(filter(None, settings))})" if is_repeated else task.task
