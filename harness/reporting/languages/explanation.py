"""The section of reports about what goes with the scores of languages: resources, word order, tokens, script, words."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from statistics import fmean
from typing import Any, Final

from harness.analysis.coverage import syntax_distances
from harness.analysis.explanation import LEAST_LANGUAGES, Effect, Explanation, explain
from harness.errors import DataError, HarnessError, MissingExtraError
from harness.languages.segmentation import words
from harness.languages.table import Language, known_languages
from harness.reporting.blocks.chart import ForestChart, ForestRow
from harness.reporting.blocks.model import BLANK, Charts, Field, Notes, Table, table_of
from harness.reporting.blocks.number import p_text, percent, signed
from harness.reporting.blocks.words import legend
from harness.reporting.cost.cost import equity_report
from harness.reporting.overview.column import system_names
from harness.reporting.sections import SectionReport
from harness.storage.records import read_batches
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

ENGLISH: Final = "en"
ITEMS: Final = 500
"""Items of a language whose words are compared with the English ones."""
MODEL: Final = "all tasks"
DRAWN: Final = 6
"""Models that have a chart; all have a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedScores:
    """Properties that go with the scores of one system in one task, or in all of its tasks."""

    system: str
    task: str
    found: Explanation

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for the model, then one per property; scores and effects are fractions."""
        head, model = {"system": self.system, "task": self.task}, asdict(self.found)
        effects = [{**head, "kind": "property", **effect} for effect in model.pop("effects")]
        return [{**head, "kind": "model", **model, "predicts": self.found.predicts}, *effects]


def read_explanation(runs: Sequence[Run]) -> SectionReport | None:
    """Return the properties that go with the scores of runs and of their published systems.

    None without a task in ten languages, and on the sample data.
    """
    regressions, notes = explained(runs)
    if not regressions:
        return None
    charts = Charts(charts=tuple(effect_chart(regression) for regression in regressions[:DRAWN]))
    return SectionReport(
        blocks=[*map(_table, regressions), charts, Notes((legend("explanation"), *notes))],
        rows=lambda: [row for regression in regressions for row in regression.rows()],
    )


def explained(runs: Sequence[Run]) -> tuple[list[ExplainedScores], list[str]]:
    """Return the regressions of runs and published systems, and notes on what they do not have.

    The main run has a model of all its tasks, then one of each task with enough languages; the others have the first.
    """
    regressions: list[ExplainedScores] = []
    notes: list[str] = []
    for index, (run, name) in enumerate(zip(runs, system_names(runs), strict=True)):
        if run.results.run.data != "sample":
            models = _models(name, _scores(run), run, notes)
            regressions += models if index == 0 else islice(models, 1)
    protocols = {row.protocol for row in runs[0].results.tasks}
    for document in runs[0].manifest.published if regressions else ():
        if document["protocol"] in protocols and not document.get("views"):
            label = f"published {document['label']}"
            regressions += islice(_models(label, _printed(document), None, notes), 1)
    return regressions, list(dict.fromkeys(notes))


def _models(
    system: str, scores: Mapping[str, Mapping[str, float]], run: Run | None, notes: list[str]
) -> Iterator[ExplainedScores]:
    """Yield the regressions of one system; without a run there are no texts, and so no words and tokens."""
    codes = sorted({code for by_code in scores.values() for code in by_code})
    table = known_languages()
    languages = [table.get(code) for code in codes if code in table]
    if len(languages) < LEAST_LANGUAGES:
        return
    unknown = [code for code in codes if code not in table]
    if unknown:
        notes.append(f"{system}: not in the language table, skipped: {' '.join(unknown)}")
    families = {language.code: language.family for language in languages}
    properties = language_properties(languages, run, notes)
    by_task = {
        task: {code: by_code[code] for code in by_code if code in families}
        for task, by_code in scores.items()
    }
    models = {MODEL: by_task} if len(by_task) > 1 else {}
    models |= {task: {task: by_code} for task, by_code in by_task.items()}
    for task, task_scores in models.items():
        model = explain(task_scores, properties, families)
        if model is not None:
            yield ExplainedScores(system=system, task=task, found=model)


def _scores(run: Run) -> dict[str, dict[str, float]]:
    """Return the first metric of every task by language, without English; the first protocol of a task counts."""
    by_task: dict[str, dict[str, float]] = {}
    for row in run.results.tasks:
        if row.metric == run.manifest.tasks[row.task].headline[0]:
            scores = {code: value for code, value in row.by_language.items() if code != ENGLISH}
            by_task.setdefault(row.task, scores)
    return by_task


def _printed(document: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return the first metric of every task of a published system, as fractions."""
    return {
        task: {code: value / 100 for code, value in next(iter(by_metric.values())).items() if code != ENGLISH}
        for task, by_metric in document["languages"].items()
    }


def language_properties(
    languages: Sequence[Language], run: Run | None, notes: list[str]
) -> dict[str, dict[str, float]]:
    """Return the properties of languages by name and code, the most important one first; adds notes on missing ones.

    - resources: log2 of the Wikipedia articles (Ruder et al. 2021, Table 7) if known for all languages, else the class
      of Joshi et al. (2020).
    - word order: the share of URIEL's syntactic features that differ from English.
    - tokens: log2 of the tokens relative to English, or else per word, as `harness report --equity` has them.
    - script: 1 for the Latin one.
    - words: the share of word types that the run's English texts have too.
    """

    def values(value: Callable[[Language], float | None]) -> dict[str, float]:
        pairs = ((language.code, value(language)) for language in languages)
        return {code: number for code, number in pairs if number is not None}

    properties = resources(languages)
    try:
        far = syntax_distances([language.iso639_3 for language in languages if language.iso639_3], "eng")
        properties["syntax unlike English"] = values(lambda own: far.get(own.iso639_3))
    except (MissingExtraError, DataError) as error:
        notes.append(f"syntax unlike English: {error.message}")
    if run is not None:
        properties["tokens"] = token_costs(run)
    properties["Latin script"] = values(lambda own: float(own.script == "Latn"))
    if run is not None:
        try:
            properties["words shared with English"] = _shared_words(run)
        except HarnessError as error:
            notes.append(f"words shared with English: {error.message}")
    for name, by_code in properties.items():
        missing = sorted({language.code for language in languages} - set(by_code))
        if missing and by_code:
            notes.append(f"{name}: not known of {' '.join(missing)}")
    return {name: by_code for name, by_code in properties.items() if by_code}


def resources(languages: Sequence[Language]) -> dict[str, dict[str, float]]:
    """Return the resources of languages by name and code: log2 of their Wikipedia articles, or their resource class."""
    if all(language.wikipedia_articles for language in languages):
        articles = {
            language.code: math.log2(float(language.wikipedia_articles or 1)) for language in languages
        }
        return {"Wikipedia articles": articles}
    classes = ((language.code, language.resource_class) for language in languages)
    return {"resource class": {code: float(value) for code, value in classes if value}}


def token_costs(run: Run) -> dict[str, float]:
    """Return log2 of the tokens of the languages relative to English, or per word where more languages have that."""
    report = equity_report([run])
    rows = report.overall[0].rows if report else ()
    premiums = {row.code: row.premium.tokens for row in rows if row.premium.tokens}
    costs = {row.code: row.cost for row in rows if not row.cost.counts_letters}
    fertility = {code: cost.fertility for code, cost in costs.items() if cost.fertility}
    chosen = premiums if len(premiums) >= len(fertility) else fertility
    return {code: math.log2(value) for code, value in chosen.items()}


def _shared_words(run: Run) -> dict[str, float]:
    """Return the mean over tasks of the share of a language's word types that the English texts have too."""
    cells: dict[str, dict[str, CellResult]] = {}
    for cell in run.cells:
        if cell.status == "ok":
            cells.setdefault(cell.task, {}).setdefault(cell.language, cell)
    shares: dict[str, list[float]] = {}
    for by_language in cells.values():
        if ENGLISH in by_language and len(by_language) >= LEAST_LANGUAGES:
            english = _types(run, by_language[ENGLISH])
            for code, cell in by_language.items():
                types = _types(run, cell)
                if types:
                    shares.setdefault(code, []).append(len(types & english) / len(types))
    return {code: fmean(task_shares) for code, task_shares in shares.items()}


def _types(run: Run, cell: CellResult) -> set[str]:
    """Return the words of the first items of a cell, in lower case."""
    batches = read_batches(run.records_of(cell), ["inputs"])
    inputs = (encoded for batch in batches for encoded in batch.column("inputs").to_pylist())
    texts = [text for encoded in islice(inputs, ITEMS) for text in _strings(json.loads(encoded))]
    return {word for text_words in words([text.lower() for text in texts]) for word in text_words}


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, list) and value and all(isinstance(child, str) for child in value):
        yield " ".join(value)
    elif isinstance(value, Mapping | list):
        for child in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(child)
    elif isinstance(value, str):
        yield value


def _table(regression: ExplainedScores) -> Table:
    columns: dict[str, Callable[[Effect], str | Field]] = {
        "property": lambda effect: effect.name,
        "effect": _effect_field,
        "p": lambda effect: p_text(effect.p),
        "detectable": lambda effect: percent(effect.detectable),
        "r": lambda effect: f"{effect.pearson:+.2f}",
        "rho": lambda effect: f"{effect.spearman:+.2f}",
    }
    count, notes = len(regression.found.languages), tuple(_reading(regression.found))
    title = f"{regression.system}, {regression.task}: what goes with the scores of {count} languages"
    return table_of(title, regression.found.effects, columns, notes=notes, folding=True)


def _effect_field(effect: Effect) -> str | Field:
    if effect.value is None or effect.low is None or effect.high is None:
        return BLANK
    return Field(text=signed(effect.value), small=f"±{(effect.high - effect.low) * 50:.1f}")


def _reading(explanation: Explanation) -> Iterator[str]:
    """Yield the reading of a model: its fit, and whether it predicts families that it has not seen."""
    yield (
        f"{len(explanation.languages)} languages of {explanation.families} families, {explanation.scores} scores. "
        f"The model fits {explanation.r2 * 100:.0f} % of the variance between them."
    )
    verdict = "It predicts them better." if explanation.predicts else "So it does not predict a new family."
    yield (
        f"For families left out it errs by {explanation.mae * 100:.1f} points, the mean score by "
        f"{explanation.mean_mae * 100:.1f}; R2 {explanation.unseen_r2:.2f}. {verdict}"
    )


def effect_chart(regression: ExplainedScores) -> ForestChart:
    """Return the partial effects of a model, in points per standard deviation."""
    rows = []
    for effect in regression.found.effects:
        numbers = (effect.value, effect.low, effect.high)
        value, low, high = (None if number is None else number * 100 for number in numbers)
        if value is not None:
            rows.append(ForestRow(label=effect.name, value=value, low=low, high=high))
    title = f"{regression.system}, {regression.task}: effect of one standard deviation"
    return ForestChart(title=title, rows=tuple(rows), left="lower score", right="higher score")
