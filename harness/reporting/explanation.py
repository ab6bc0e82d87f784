"""The section of reports about what goes with the scores of languages: resources, word order, tokens, script, words."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from statistics import fmean
from typing import Any, Final

from harness.analysis.explanation import LEAST_LANGUAGES, Effect, Explanation, explain
from harness.analysis.typology import syntax_distances
from harness.errors import DataError, HarnessError, MissingExtraError
from harness.languages.segmentation import words
from harness.languages.table import Language, known_languages
from harness.reporting.equity.report import equity_report
from harness.reporting.forest import ForestChart, ForestRow
from harness.reporting.formats import SectionReport
from harness.reporting.model import BLANK, Charts, Field, Notes, Table, rows_of
from harness.reporting.number import p_text, signed
from harness.reporting.system_name import system_names
from harness.storage.records import read_batches
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

__all__ = ["ExplainedScores", "effect_chart", "explained", "language_properties", "read_explanation"]

ENGLISH: Final = "en"
ITEMS: Final = 500
"""Items of a language whose words are compared with the English ones."""
MODEL: Final = "all tasks"
DRAWN: Final = 6
"""Models that have a chart; all have a table."""
LEGEND: Final = (
    "Effects are points of the score per standard deviation of a property, with the others held equal, ± half the 95 % "
    "interval over families (jackknife). detectable: the smallest true effect that such data show with 80 % power. r, "
    "rho: Pearson's and Spearman's correlation of the property alone. A property without an effect has only "
    "correlations: a model takes one per five languages, and per four outside the largest family. English is not among "
    "the languages. A property that goes with the scores need not be their cause."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedScores:
    """What goes with the scores of one system in one task, or in all of its tasks."""

    system: str
    task: str
    found: Explanation

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for the model, then one per property; scores and effects are fractions."""
        head = {"system": self.system, "task": self.task}
        model = {name: value for name, value in asdict(self.found).items() if name != "effects"}
        effects = [{**head, "kind": "property", **asdict(effect)} for effect in self.found.effects]
        return [{**head, "kind": "model", **model, "predicts": self.found.predicts}, *effects]


def read_explanation(runs: Sequence[Run]) -> SectionReport | None:
    """Return what goes with the scores of runs and of their published systems.

    None without a task in ten languages, and on the sample data.
    """
    found, notes = explained(runs)
    if not found:
        return None
    charts = Charts(charts=tuple(effect_chart(own) for own in found[:DRAWN]))
    return SectionReport(
        blocks=[*(_table(own) for own in found), charts, Notes((LEGEND, *notes))],
        rows=lambda: [row for own in found for row in own.rows()],
    )


def explained(runs: Sequence[Run]) -> tuple[list[ExplainedScores], list[str]]:
    """Return the regressions of runs and published systems, and notes on what they do not have.

    The main run has a model of all its tasks, then one of each task with enough languages; the others have the first.
    """
    found: list[ExplainedScores] = []
    notes: list[str] = []
    for place, (run, name) in enumerate(zip(runs, system_names(runs), strict=True)):
        if run.results.run.data != "sample":
            own = list(_models(name, _scores(run), run, notes))
            found += own if place == 0 else own[:1]
    protocols = {row.protocol for row in runs[0].results.tasks}
    for document in runs[0].manifest.published if found else ():
        if document["protocol"] in protocols:
            found += list(_models(f"published {document['label']}", _printed(document), None, notes))[:1]
    return found, list(dict.fromkeys(notes))


def _models(
    system: str, scores: Mapping[str, Mapping[str, float]], run: Run | None, notes: list[str]
) -> Iterator[ExplainedScores]:
    """Yield the regressions of one system; without a run there are no texts, and so no words and tokens."""
    codes = sorted({code for own in scores.values() for code in own})
    table = known_languages()
    known = [table.get(code) for code in codes if code in table]
    if len(known) < LEAST_LANGUAGES:
        return
    unknown = [code for code in codes if code not in table]
    if unknown:
        notes.append(f"{system}: not in the language table, skipped: {' '.join(unknown)}")
    names = {language.code for language in known}
    kept = {
        task: {code: value for code, value in own.items() if code in names} for task, own in scores.items()
    }
    properties = language_properties(known, run, notes)
    families = {language.code: language.family for language in known}
    parts = {MODEL: kept} if len(kept) > 1 else {}
    parts |= {task: {task: own} for task, own in kept.items()}
    for task, own in parts.items():
        model = explain(own, properties, families)
        if model is not None:
            yield ExplainedScores(system=system, task=task, found=model)


def _scores(run: Run) -> dict[str, dict[str, float]]:
    """Return the first metric of every task by language, without English; the first protocol of a task counts."""
    found: dict[str, dict[str, float]] = {}
    for row in run.results.tasks:
        if row.metric == run.manifest.tasks[row.task].headline[0]:
            found.setdefault(
                row.task, {code: value for code, value in row.by_language.items() if code != ENGLISH}
            )
    return found


def _printed(document: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return the first metric of every task of a published system, as fractions."""
    return {
        task: {code: value / 100 for code, value in next(iter(own.values())).items() if code != ENGLISH}
        for task, own in document["languages"].items()
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
    articles = {
        own.code: math.log2(float(own.wikipedia_articles)) for own in languages if own.wikipedia_articles
    }
    classes = {own.code: float(own.resource_class) for own in languages if own.resource_class}
    found = (
        {"Wikipedia articles": articles} if len(articles) == len(languages) else {"resource class": classes}
    )
    try:
        distances = syntax_distances([own.iso639_3 for own in languages if own.iso639_3], "eng")
        found["syntax unlike English"] = {
            own.code: distances[own.iso639_3] for own in languages if own.iso639_3 in distances
        }
    except (MissingExtraError, DataError) as error:
        notes.append(f"syntax unlike English: {error.message}")
    if run is not None:
        found["tokens"] = _tokens(run)
    found["Latin script"] = {own.code: float(own.script == "Latn") for own in languages}
    if run is not None:
        try:
            found["words shared with English"] = _shared_words(run)
        except HarnessError as error:
            notes.append(f"words shared with English: {error.message}")
    for name, own in found.items():
        missing = sorted({language.code for language in languages} - set(own))
        if missing and own:
            notes.append(f"{name}: not known of {' '.join(missing)}")
    return {name: own for name, own in found.items() if own}


def _tokens(run: Run) -> dict[str, float]:
    report = equity_report([run])
    rows = report.overall[0].rows if report else ()
    premiums = {row.code: row.premium.tokens for row in rows if row.premium.tokens}
    fertility = {
        row.code: row.cost.fertility for row in rows if row.cost.fertility and not row.cost.counts_letters
    }
    chosen = premiums if len(premiums) >= len(fertility) else fertility
    return {code: math.log2(value) for code, value in chosen.items()}


def _shared_words(run: Run) -> dict[str, float]:
    """Return the mean over tasks of the share of a language's word types that the English texts have too."""
    cells: dict[str, dict[str, CellResult]] = {}
    for cell in run.cells:
        if cell.status == "ok":
            cells.setdefault(cell.task, {}).setdefault(cell.language, cell)
    shares: dict[str, list[float]] = {}
    for own in cells.values():
        if ENGLISH in own and len(own) >= LEAST_LANGUAGES:
            english = _types(run, own[ENGLISH])
            for code, cell in own.items():
                types = _types(run, cell)
                if types:
                    shares.setdefault(code, []).append(len(types & english) / len(types))
    return {code: fmean(found) for code, found in shares.items()}


def _types(run: Run, cell: CellResult) -> set[str]:
    """Return the words of the first items of a cell, in lower case."""
    batches = read_batches(run.records_of(cell), ["inputs"])
    inputs = (own for batch in batches for own in batch.column("inputs").to_pylist())
    texts = [text for own in islice(inputs, ITEMS) for text in _strings(json.loads(own))]
    return {word for found in words([text.lower() for text in texts]) for word in found}


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for own in value.values():
            yield from _strings(own)
    elif isinstance(value, list):
        if value and all(isinstance(own, str) for own in value):
            yield " ".join(value)
        else:
            for own in value:
                yield from _strings(own)


def _table(own: ExplainedScores) -> Table:
    return Table(
        title=f"{own.system}, {own.task}: what goes with the scores of {len(own.found.languages)} languages",
        corner="property",
        heads=("effect", "p", "detectable", "r", "rho"),
        rows=rows_of((effect.name, *_fields(effect)) for effect in own.found.effects),
        notes=tuple(_reading(own.found)),
        folding=True,
    )


def _fields(effect: Effect) -> Iterator[str | Field]:
    if effect.value is None or effect.low is None or effect.high is None:
        yield BLANK
    else:
        yield Field(text=signed(effect.value), small=f"±{(effect.high - effect.low) * 50:.1f}")
    yield p_text(effect.p)
    yield BLANK if effect.detectable is None else f"{effect.detectable * 100:.1f}"
    yield f"{effect.pearson:+.2f}"
    yield f"{effect.spearman:+.2f}"


def _reading(found: Explanation) -> Iterator[str]:
    """Yield what the model fits, whether it predicts families that it has not seen, and what could be seen."""
    yield (
        f"{len(found.languages)} languages of {found.families} families, {found.scores} scores. The model fits "
        f"{found.r2 * 100:.0f} % of the variance between them."
    )
    verdict = "It predicts them better." if found.predicts else "So it does not predict a new family."
    yield (
        f"For families left out it errs by {found.mae * 100:.1f} points, the mean score by "
        f"{found.mean_mae * 100:.1f}; R2 {found.unseen_r2:.2f}. {verdict}"
    )


def effect_chart(own: ExplainedScores) -> ForestChart:
    """Return the partial effects of a model, in points per standard deviation."""
    rows = [
        ForestRow(
            label=effect.name,
            value=effect.value * 100,
            low=None if effect.low is None else effect.low * 100,
            high=None if effect.high is None else effect.high * 100,
        )
        for effect in own.found.effects
        if effect.value is not None
    ]
    title = f"{own.system}, {own.task}: effect of one standard deviation"
    return ForestChart(title=title, rows=tuple(rows), left="lower score", right="higher score")
