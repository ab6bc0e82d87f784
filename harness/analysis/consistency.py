"""Whether a model answers the same questions alike, and right, in different languages, from the records of a run.

The items of a parallel task with one id are one question. For every two languages: the share of equal answers, that
share corrected for chance (Cohen, 1960), the share of items that are right in both or wrong in both, and RankC (Qi et
al., 2023, "Cross-Lingual Consistency of Factual Knowledge in Multilingual Language Models", section 3) where items
have candidates that are ranked. A task's value is the mean over its pairs of languages.

A model that has a piece of knowledge only in English answers its question in English and loses it elsewhere; accuracy
alone does not show this, since the model may answer other questions in the other language. The measures of knowledge
are conditional shares of the same items, and Cohen's kappa of right and wrong, which is 0 where the same accuracies
would come from independent answers.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from harness.analysis.items import read_items
from harness.data.features import Items
from harness.statistics import NORMAL
from harness.statistics.interval import (
    Booleans,
    Floats,
    Integers,
    Interval,
    draw_codes,
    mean_of_codes,
    paired_difference,
    stratified_mean,
)
from harness.storage.records import is_correct
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

MEASURES: Final = ("same", "kappa", "correct", "rank")
"""Equal answers, Cohen's kappa of the answers, right in both or wrong in both, RankC."""
MISSING: Final = -2
UNREAD: Final = -1
_LABELLED: Final = frozenset({"sequence_classification", "multiple_choice"})
SOURCE: Final = "en"
"""The language whose knowledge is looked for in the others."""
LEAST_LANGUAGES: Final = 5
"""Languages besides English that a correlation needs."""
_Sample = tuple[Floats, Integers]
"""Values of items, and the number of each item's draw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A mean over items, with its 95 % interval; items of one cluster, and those of one id, are one draw."""

    value: float
    interval: Interval
    n: int
    """Items; of several languages, the most that any two share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two languages, with the measures that their items allow, by name."""

    languages: tuple[str, str]
    measures: Mapping[str, Measure]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelTask:
    """A task in several languages of one protocol, method, view and seed."""

    task: str
    protocol: str
    method: str
    view: Mapping[str, str]
    seed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Consistency(ParallelTask):
    """How alike the answers of languages are."""

    languages: tuple[str, ...]
    pairs: tuple[Pair, ...]
    means: Mapping[str, Measure]
    """By measure: the mean over the pairs that have it."""
    rank_chance: float | None = None
    """RankC of two random rankings, as the mean over the items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ParallelItems:
    """The items of a parallel task in all languages, brought to the same columns: one per id."""

    ids: tuple[str, ...]
    answers: Integers
    """Shape (languages, ids): a number per answer, `UNREAD`, or `MISSING` where a language does not have the item."""
    correct: Integers
    """Shape (languages, ids): 1 or 0; `MISSING` where it is not known."""
    ranks: Integers | None
    """Shape (languages, ids, candidates): every candidate's place in the ranking, from 1; 0 where there is none."""
    codes: Integers
    """Shape (ids,): the number of the draw of every id."""
    comparable: bool
    """Whether answers are the same in all languages: labels and choices, not words."""
    labelled: bool


def consistencies(run: Run, *, most: int | None = None) -> list[Consistency]:
    """Return the consistency of every parallel task that a run has in two or more languages.

    Raises what `harness.analysis.items.read_items` does where the records are missing or broken.

    Args:
        run: A finished run.
        most: Tasks with more languages are skipped: their pairs take long. None computes all.
    """
    computed = (_consistency(run, cells) for cells in _parallel_groups(run, most))
    return [consistency for consistency in computed if consistency.pairs]


def wide_tasks(run: Run, most: int) -> dict[str, int]:
    """Return the tasks that `consistencies` skips, with the number of their languages."""
    return {cells[0].task: len(cells) for cells in _parallel_groups(run) if len(cells) > most}


def _parallel_groups(run: Run, most: int | None = None) -> list[list[CellResult]]:
    """Return the cells of parallel tasks that differ in nothing but the language, two to `most` together."""
    groups: dict[str, list[CellResult]] = {}
    for cell in run.cells:
        task = run.manifest.tasks.get(cell.task)
        if task is not None and task.parallel and cell.is_scored and cell.language not in task.unpaired:
            key = json.dumps([cell.task, cell.protocol, cell.method, cell.view, cell.seed], sort_keys=True)
            groups.setdefault(key, []).append(cell)
    return [cells for cells in groups.values() if 1 < len(cells) <= (most or len(cells))]


def _consistency(run: Run, cells: Sequence[CellResult]) -> Consistency:
    table = _parallel_items(run, cells)
    languages = tuple(cell.language for cell in cells)
    pairs: list[Pair] = []
    samples: dict[str, list[tuple[Floats, Integers]]] = {name: [] for name in MEASURES}
    for first, second in itertools.combinations(range(len(cells)), 2):
        pair_samples = _pair_values(table, first, second)
        for name, sample in pair_samples.items():
            samples[name].append(sample)
        measures = {name: _mean_measure(name, [sample]) for name, sample in pair_samples.items()}
        if measures:
            pairs.append(Pair(languages=(languages[first], languages[second]), measures=measures))
    return Consistency(
        **_head(cells[0]),
        languages=languages,
        pairs=tuple(pairs),
        means={name: _mean_measure(name, collected) for name, collected in samples.items() if collected},
        rank_chance=None if table.ranks is None or not samples["rank"] else _chance(table.ranks),
    )


def _head(cell: CellResult) -> dict[str, Any]:
    """Return the fields of a `ParallelTask` from one of its cells."""
    names = {"protocol": cell.protocol or "", "method": cell.method or ""}
    return {"task": cell.task, **names, "view": cell.view, "seed": cell.seed}


def _mean_measure(name: str, samples: Sequence[tuple[Floats, Integers]]) -> Measure:
    """Return the mean over pairs of the mean over items; each sample has the values and the draws of a pair's items."""
    values = np.concatenate([scores for scores, _ in samples])
    strata = np.repeat(np.arange(len(samples)), [len(scores) for scores, _ in samples])
    _, codes = np.unique(np.concatenate([draws for _, draws in samples]), return_inverse=True)
    # Kappa may be below 0, which the interval of scores would cut off.
    estimate = paired_difference if name == "kappa" else stratified_mean
    value = float(np.mean([scores.mean() for scores, _ in samples]))
    interval = estimate(values, strata, codes.astype(np.int64))
    return Measure(value=value, interval=interval, n=max(len(scores) for scores, _ in samples))


# Values of items ----------------------------------------------------------------------------------------


def _pair_values(table: _ParallelItems, first: int, second: int) -> dict[str, tuple[Floats, Integers]]:
    """Return by measure the values of the items that both languages have, and their draws."""
    first_answers, second_answers = table.answers[[first, second]]
    first_correct, second_correct = table.correct[[first, second]]
    both = (first_answers != MISSING) & (second_answers != MISSING)
    graded = (first_correct != MISSING) & (second_correct != MISSING)
    measured: dict[str, tuple[Floats | None, Booleans]] = {}
    if table.comparable and both.any():
        measured["same"] = _equal(first_answers[both], second_answers[both]), both
    if table.labelled and both.any():
        measured["kappa"] = kappa_values(first_answers[both], second_answers[both]), both
    if graded.any():
        measured["correct"] = (first_correct[graded] == second_correct[graded]).astype(np.float64), graded
    if table.ranks is not None:
        first_ranks, second_ranks = table.ranks[[first, second]]
        sizes = (first_ranks > 0).sum(axis=1)
        ranked = (sizes > 1) & (sizes == (second_ranks > 0).sum(axis=1))
        if ranked.any():
            measured["rank"] = rank_consistency(first_ranks[ranked], second_ranks[ranked]), ranked
    pairs = {name: (values, table.codes[mask]) for name, (values, mask) in measured.items()}
    return {name: (values, codes) for name, (values, codes) in pairs.items() if values is not None}


def _equal(first: Integers, second: Integers) -> Floats:
    return np.asarray((first == second) & (first >= 0), dtype=np.float64)


def kappa_values(first: Integers, second: Integers) -> Floats | None:
    """Return a value per item whose mean is Cohen's kappa, and whose spread is that of its linear approximation.

    An answer that was not read equals none. None where chance alone makes all answers equal: kappa is not defined.
    """
    size = max(int(first.max(initial=0)), int(second.max(initial=0))) + 1
    shares = [
        np.bincount(answers[answers >= 0], minlength=size) / len(answers) for answers in (first, second)
    ]
    chance = float(shares[0] @ shares[1])
    if chance >= 1:
        return None
    same = _equal(first, second)
    observed = float(same.mean())
    met = np.where(first >= 0, shares[1][first], 0.0) + np.where(second >= 0, shares[0][second], 0.0)
    kappa = (observed - chance) / (1 - chance)
    spread = (same - observed) / (1 - chance) - (1 - observed) * (met - 2 * chance) / (1 - chance) ** 2
    return np.asarray(kappa + spread, dtype=np.float64)


def rank_weights(size: int) -> Floats:
    """Return the weight of the first 1, 2, ... `size` candidates: a softmax over size, size - 1, ... 1."""
    weights: Floats = np.exp(-np.arange(size, dtype=np.float64))
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def rank_consistency(ranks: Integers, others: Integers) -> Floats:
    """Return RankC of every item: sum over j of w_j |top j in one language and in the other| / j.

    A candidate is among the top j of both from the larger of its two ranks on, so that each adds the weights w_j / j
    from there. The authors' script, RankC.py of github.com/Betswish/Cross-Lingual-Consistency, counts the same.

    Args:
        ranks: Shape (items, candidates): places from 1, in the same order of candidates as in `others`; 0 after the
            last candidate of an item.
        others: Those of the other language, of the same shape.
    """
    sizes = (ranks > 0).sum(axis=1)
    last = np.maximum(ranks, others)
    values = np.zeros(len(ranks))
    for size in np.unique(sizes).tolist():
        of_size = sizes == size
        terms = rank_weights(size) / np.arange(1, size + 1)
        gains = np.append(0.0, np.cumsum(terms[::-1])[::-1])
        values[of_size] = gains[last[of_size]].sum(axis=1)
    return values


def _chance(ranks: Integers) -> float:
    """Return the mean over items of RankC of random rankings: their top j share j * j / size candidates."""
    sizes = (ranks > 0).sum(axis=2).max(axis=0)
    sizes = sizes[sizes > 1].tolist()
    return float(np.mean([float(rank_weights(size) @ np.arange(1, size + 1)) / size for size in sizes]))


# Reading --------------------------------------------------------------------------------------------------


def _parallel_items(run: Run, cells: Sequence[CellResult]) -> _ParallelItems:
    """Return the items of the cells of one parallel task, a row per cell, in their order."""
    task = run.manifest.tasks[cells[0].task]
    items_of_cells = [read_items(run, cell, task, inputs=False) for cell in cells]
    column_of: dict[str, int] = {}
    columns = [
        [column_of.setdefault(identifier, len(column_of)) for identifier in items.ids]
        for items in items_of_cells
    ]
    shape = (len(cells), len(column_of))
    answers, correct = np.full(shape, MISSING), np.full(shape, MISSING)
    numbers: dict[Any, int] = {None: UNREAD}
    for row, items in enumerate(items_of_cells):
        cell_answers = [_answer(task.kind, prediction) for prediction in items.predictions]
        answers[row, columns[row]] = [numbers.setdefault(answer, len(numbers) - 1) for answer in cell_answers]
        verdicts = map(is_correct, items.predictions, items.references, items.scores)
        correct[row, columns[row]] = [MISSING if verdict is None else int(verdict) for verdict in verdicts]
    draws = np.zeros(len(column_of), dtype=np.int64)
    draws[list(itertools.chain.from_iterable(columns))] = draw_codes(
        [(items.language.code, items.ids, items.clusters) for items in items_of_cells], linked=True
    )
    return _ParallelItems(
        ids=tuple(column_of),
        answers=answers,
        correct=correct,
        ranks=_ranks(items_of_cells, columns, len(column_of)) if task.kind == "form_preference" else None,
        codes=draws,
        comparable=task.kind in _COMPARED,
        labelled=task.kind in _LABELLED,
    )


def _chosen_form(prediction: Mapping[str, Any]) -> int | None:
    """Return which of an item's forms was chosen: the words differ between languages, the order does not."""
    label = prediction.get("label")
    return None if label is None else list(prediction["forms"]).index(label)


_COMPARED: Final[Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    **dict.fromkeys(_LABELLED, lambda prediction: prediction.get("label")),
    "bitext_retrieval": lambda prediction: prediction.get("candidate"),
    "numeric_answer": lambda prediction: prediction.get("value"),
    "form_preference": _chosen_form,
}
"""Kinds whose answers mean the same in all languages -> the answer of a prediction, None where it was not read."""


def _answer(kind: str, prediction: Any) -> Any:
    return _COMPARED[kind](prediction) if kind in _COMPARED and isinstance(prediction, Mapping) else None


def _ranking(prediction: Any) -> list[int]:
    """Return the place of every form of an item, from 1; nothing where two are equal or one has no score.

    An order of equal forms would be that of the file, the same in all languages: a model that knows nothing would seem
    consistent.
    """
    scores = prediction.get("scores") if isinstance(prediction, Mapping) else None
    if not scores or None in scores or len(set(scores)) < len(scores):
        return []
    return [1 + sum(candidate > score for candidate in scores) for score in scores]


def _ranks(cells: Sequence[Items], columns: Sequence[Sequence[int]], ids: int) -> Integers | None:
    """Return the rankings as one array; None where no item has more than two candidates."""
    rankings = [list(map(_ranking, items.predictions)) for items in cells]
    most = max((len(ranking) for cell_rankings in rankings for ranking in cell_rankings), default=0)
    ranks = np.zeros((len(cells), ids, most), dtype=np.int64)
    for row, cell_rankings in enumerate(rankings):
        for column, ranking in zip(columns[row], cell_rankings, strict=True):
            ranks[row, column, : len(ranking)] = ranking
    return ranks if most > 2 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageKnowledge:
    """The questions of a task that a model answers in one language; what compares is None in English itself."""

    code: str
    answered: Measure
    """Share of the items that are right: the accuracy of whole answers."""
    lost: Measure | None = None
    """Share of the items answered in English that are wrong in this language."""
    gained: Measure | None = None
    """Share of the items not answered in English that are right in this language."""
    kappa: Measure | None = None
    """Agreement with English in which items are right, beyond what both accuracies give."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge(ParallelTask):
    """What is known in the languages of a parallel task with right and wrong answers."""

    languages: tuple[LanguageKnowledge, ...]
    answered_in: Mapping[str, tuple[str, ...]]
    """By id of an item that has a verdict in all languages: the languages in which it is answered."""
    spread: tuple[float, ...]
    """Shares of these items that are answered in exactly 0, 1, ... all languages."""
    independent_spread: tuple[float, ...]
    """The same shares if answers of different languages were independent, with the same accuracies."""
    everywhere: Measure
    """Share of these items that are answered in all languages."""
    lost: Measure | None = None
    """Mean over the languages of `LanguageKnowledge.lost`; its interval is over items, for these languages."""
    lost_over_languages: Interval = field(default_factory=Interval)
    """The interval of the same mean over languages, as if they were drawn from many."""
    kappa: Measure | None = None
    """Mean over the languages of `LanguageKnowledge.kappa`."""


def knowledge(run: Run, *, most: int | None = None) -> list[Knowledge]:
    """Return the knowledge of every parallel task whose answers are right or wrong in two or more languages.

    Raises what `harness.analysis.items.read_items` does where the records are missing or broken.

    Args:
        run: A finished run.
        most: Tasks with more languages are skipped. None reads all.
    """
    tasks = (_knowledge(run, cells) for cells in _parallel_groups(run, most))
    return [task for task in tasks if task is not None]


def _knowledge(run: Run, cells: Sequence[CellResult]) -> Knowledge | None:
    """Return the knowledge of one task; None where no item has a verdict in all of its languages."""
    items = _parallel_items(run, cells)
    codes = tuple(cell.language for cell in cells)
    shared = (items.correct != MISSING).all(axis=0)
    if not shared.any():
        return None
    right = items.correct[:, shared]
    everywhere = np.asarray(right.all(axis=0), dtype=np.float64), items.codes[shared]
    samples: dict[str, list[_Sample]] = {"lost": [], "kappa": []}
    languages = tuple(_language(items, codes, row, samples) for row in range(len(codes)))
    losses = np.array([language.lost.value for language in languages if language.lost is not None])
    return Knowledge(
        **_head(cells[0]),
        languages=languages,
        answered_in={
            items.ids[column]: tuple(np.array(codes)[items.correct[:, column] == 1].tolist())
            for column in np.flatnonzero(shared).tolist()
        },
        spread=tuple((np.bincount(right.sum(axis=0), minlength=len(codes) + 1) / right.shape[1]).tolist()),
        independent_spread=tuple(independent_spread(right.mean(axis=1)).tolist()),
        everywhere=_mean_measure("share", [everywhere]),
        lost=_mean("lost", samples),
        lost_over_languages=mean_of_codes(losses, np.arange(len(losses))) if len(losses) > 1 else Interval(),
        kappa=_mean("kappa", samples),
    )


def _language(
    items: _ParallelItems, codes: Sequence[str], row: int, samples: Mapping[str, list[_Sample]]
) -> LanguageKnowledge:
    """Return the knowledge in the language of a row; its items' losses and kappas are added to `samples`."""
    right = items.correct[row]
    answered = _mean_measure("share", [_sample(right, right != MISSING, items.codes)])
    if SOURCE not in codes or codes[row] == SOURCE:
        return LanguageKnowledge(code=codes[row], answered=answered)
    source = items.correct[codes.index(SOURCE)]
    both = (right != MISSING) & (source != MISSING)
    measures: dict[str, _Sample] = {}
    if (answered_in_source := both & (source == 1)).any():
        measures["lost"] = _sample(1 - right, answered_in_source, items.codes)
    if (unanswered_in_source := both & (source == 0)).any():
        measures["gained"] = _sample(right, unanswered_in_source, items.codes)
    if both.any() and (values := kappa_values(right[both], source[both])) is not None:
        measures["kappa"] = values, items.codes[both]
    for name in samples.keys() & measures.keys():
        samples[name].append(measures[name])
    return LanguageKnowledge(
        code=codes[row],
        answered=answered,
        **{name: _mean_measure(name, [sample]) for name, sample in measures.items()},
    )


def _sample(values: Integers, mask: Booleans, codes: Integers) -> _Sample:
    return values[mask].astype(np.float64), codes[mask]


def _mean(name: str, samples: Mapping[str, list[_Sample]]) -> Measure | None:
    return _mean_measure(name, samples[name]) if samples[name] else None


def independent_spread(accuracies: Floats) -> Floats:
    """Return the probabilities that 0, 1, ... all of independent answers are right: the Poisson binomial distribution.

    Args:
        accuracies: Shape (languages,): the probability of a right answer in each.
    """
    probabilities = np.ones(1)
    for accuracy in accuracies.tolist():
        probabilities = np.convolve(probabilities, [1 - accuracy, accuracy])
    return probabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class LossCorrelation:
    """Spearman's rank correlation of the losses of languages with a property of theirs, with its 95 % interval."""

    property: str
    value: float
    low: float
    high: float
    languages: int


def loss_correlation(
    losses: Mapping[str, float], property_name: str, values: Mapping[str, float]
) -> LossCorrelation | None:
    """Return how the losses of languages go with a property; None for fewer than five languages, or equal values.

    The interval is that of Fisher's z with the variance (1 + rho^2 / 2) / (n - 3) (Bonett and Wright 2000).

    Args:
        losses: By language code, the share of what is known in English that is lost.
        property_name: Its name in tables.
        values: By language code; languages that are missing in one of both are skipped.
    """
    codes = sorted(losses.keys() & values.keys())
    x, y = [losses[code] for code in codes], [values[code] for code in codes]
    if len(codes) < LEAST_LANGUAGES or len(set(x)) < 2 or len(set(y)) < 2:
        return None
    from scipy.stats import spearmanr

    rho = float(spearmanr(x, y).statistic)
    # Fisher's z of a perfect correlation is infinite; its interval ends at the correlation itself.
    z = np.arctanh(np.clip(rho, -1 + 1e-12, 1 - 1e-12))
    reach = NORMAL * np.sqrt((1 + rho**2 / 2) / (len(codes) - 3))
    low, high = np.tanh([z - reach, z + reach]).tolist()
    return LossCorrelation(property=property_name, value=rho, low=low, high=high, languages=len(codes))
