"""The section of reports about the same knowledge in all languages: items answered, and lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from harness.analysis.consistency import Measure, wide_tasks
from harness.analysis.knowledge import SOURCE, Knowledge, LossCorrelation, knowledge, loss_correlation
from harness.errors import HarnessError
from harness.languages.table import known_languages
from harness.reporting.blocks.model import BLANK, Block, Field, Fold, Table, rows_of
from harness.reporting.blocks.number import Score, percent, score_field
from harness.reporting.languages.explanation import resources, token_costs
from harness.reporting.legends import legend
from harness.reporting.sections import SectionReport
from harness.storage.run_folder import Run

TITLE: Final = "The same knowledge in all languages"
WIDEST: Final = 30
"""Languages of a task that every report reads; ``--knowledge --json`` reads all."""
HEADS: Final = {
    "answered": "answered",
    "lost": "known in English, lost",
    "gained": "unknown in English, answered",
    "kappa": "kappa with English",
}
Correlations = Sequence[LossCorrelation]


def read_knowledge(runs: Sequence[Run]) -> SectionReport | None:
    """Return the knowledge of the main run by language; None without parallel tasks with right and wrong answers."""
    try:
        tasks = knowledge(runs[0], most=WIDEST)
    except HarnessError as error:
        return SectionReport(notes=(f"{TITLE} is missing: {error.message}",), page_only=True)
    notes = tuple(
        f"{TITLE}: {task} has {count} languages and is only in harness report RUN --knowledge --json FILE."
        for task, count in wide_tasks(runs[0], WIDEST).items()
    )
    if not tasks:
        return (
            SectionReport(notes=notes, details_only=True, rows=lambda: knowledge_rows(runs[0]))
            if notes
            else None
        )
    correlations = _correlations(runs[0], tasks)
    blocks: list[Block] = [_summary(tasks)]
    for task, task_correlations in zip(tasks, correlations, strict=True):
        tables = [_language_table(task, task_correlations), _spread_table(task)]
        blocks.append(Fold(title=_name(task, tasks), blocks=tables, is_open=len(tasks) == 1))
    return SectionReport(
        blocks=blocks,
        brief=(),
        notes=notes,
        details_only=True,
        rows=lambda: knowledge_rows(runs[0]),
    )


def knowledge_rows(run: Run) -> list[dict[str, Any]]:
    """Return one row per task and measure, language and measure, property, number of languages, and item; fractions.

    Raises what `harness.analysis.knowledge.knowledge` does.
    """
    tasks = knowledge(run)
    return [
        {**{name: getattr(task, name) for name in ("task", "protocol", "method", "view", "seed")}, **row}
        for task, correlations in zip(tasks, _correlations(run, tasks), strict=True)
        for row in _rows(task, correlations)
    ]


def _rows(task: Knowledge, correlations: Correlations) -> Iterator[dict[str, Any]]:
    for name in ("everywhere", "lost", "kappa"):
        if (measure := getattr(task, name)) is not None:
            yield {"scope": "task", "measure": name, **_measure_row(measure)}
    if task.lost is not None:
        over_languages = {"value": task.lost.value, **task.lost_over_languages.to_json()}
        yield {"scope": "task", "measure": "lost, over languages", **over_languages}
    for language in task.languages:
        for name in HEADS:
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


def _summary(tasks: Sequence[Knowledge]) -> Table:
    rows = [
        (
            _name(task, tasks),
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
        title=TITLE,
        corner="task",
        heads=(
            "languages",
            "items",
            "in all",
            "in all, by chance",
            "in none",
            HEADS["lost"],
            HEADS["kappa"],
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
    names = [name for name in HEADS if any(getattr(row, name) is not None for row in languages)]
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
        heads=tuple(HEADS[name] for name in names),
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


def _name(task: Knowledge, tasks: Sequence[Knowledge]) -> str:
    """Return the task, with its setting where the run has it in several."""
    settings = [task.protocol, task.method, *(f"{name}={value}" for name, value in sorted(task.view.items()))]
    settings += [] if task.seed is None else [f"seed {task.seed}"]
    is_repeated = sum(other.task == task.task for other in tasks) > 1
    return f"{task.task} ({', '.join(filter(None, settings))})" if is_repeated else task.task


def _field(measure: Measure | None) -> str | Field:
    if measure is None:
        return BLANK
    return score_field(Score(value=measure.value, interval=measure.interval.ends))
