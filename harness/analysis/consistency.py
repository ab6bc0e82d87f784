"""Whether a model answers the same questions alike in different languages, from the records of a finished run.

The items of a parallel task with one id are one question. For every two languages: the share of equal answers, that
share corrected for chance (Cohen, 1960), the share of items that are right in both or wrong in both, and RankC (Qi et
al., 2023, "Cross-Lingual Consistency of Factual Knowledge in Multilingual Language Models", section 3) where items
have candidates that are ranked. A task's value is the mean over its pairs of languages.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from harness.analysis.items import read_items
from harness.data.features import Items
from harness.statistics.cluster import draw_codes
from harness.statistics.interval import Interval
from harness.statistics.mean import paired_difference, stratified_mean
from harness.storage.records import is_correct
from harness.storage.results import CellResult, TaskSummary
from harness.storage.run_folder import Run

__all__ = [
    "MEASURES",
    "Consistency",
    "Measure",
    "Pair",
    "consistencies",
    "rank_consistency",
    "rank_weights",
    "wide_tasks",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
MEASURES: Final = ("same", "kappa", "correct", "rank")
"""Equal answers, Cohen's kappa of the answers, right in both or wrong in both, RankC."""
MISSING: Final = -2
UNREAD: Final = -1
_LABELLED: Final = frozenset({"sequence_classification", "multiple_choice"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A mean over items, with its 95 % interval; items of one cluster, and those of one id, are one draw."""

    value: float
    interval: Interval
    n: int
    """Items; of a task, questions that two languages have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two languages, with the measures that their items allow, by name."""

    languages: tuple[str, str]
    measures: Mapping[str, Measure]


@dataclass(frozen=True, slots=True, kw_only=True)
class Consistency:
    """A task in the languages of one protocol, method, view and seed."""

    task: str
    protocol: str
    method: str
    view: Mapping[str, str]
    seed: int | None
    languages: tuple[str, ...]
    pairs: tuple[Pair, ...]
    means: Mapping[str, Measure]
    """By measure: the mean over the pairs that have it."""
    rank_chance: float | None = None
    """RankC of two random rankings, as the mean over the items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """The items of all languages, brought to the same columns: one per id."""

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
    groups = (own for own in _groups(run) if most is None or len(own) <= most)
    found = (_consistency(run, own, run.manifest.tasks[own[0].task]) for own in groups)
    return [one for one in found if one.pairs]


def wide_tasks(run: Run, most: int) -> dict[str, int]:
    """Return the tasks that `consistencies` skips, with the number of their languages."""
    return {own[0].task: len(own) for own in _groups(run) if len(own) > most}


def _groups(run: Run) -> list[list[CellResult]]:
    """Return the cells of parallel tasks that differ in nothing but the language, two or more together."""
    groups: dict[str, list[CellResult]] = {}
    for cell in run.cells:
        task = run.manifest.tasks.get(cell.task)
        if task is not None and task.parallel and cell.is_scored and cell.language not in task.unpaired:
            key = json.dumps([cell.task, cell.protocol, cell.method, cell.view, cell.seed], sort_keys=True)
            groups.setdefault(key, []).append(cell)
    return [own for own in groups.values() if len(own) > 1]


def _consistency(run: Run, cells: Sequence[CellResult], task: TaskSummary) -> Consistency:
    table = _table([read_items(run, cell, task, inputs=False) for cell in cells])
    languages = tuple(cell.language for cell in cells)
    pairs: list[Pair] = []
    parts: dict[str, list[tuple[Floats, Integers]]] = {name: [] for name in MEASURES}
    for first, second in itertools.combinations(range(len(cells)), 2):
        found = _pair_values(table, first, second)
        for name, part in found.items():
            parts[name].append(part)
        measures = {name: _measure(name, [part]) for name, part in found.items()}
        if measures:
            pairs.append(Pair(languages=(languages[first], languages[second]), measures=measures))
    return Consistency(
        task=cells[0].task,
        protocol=cells[0].protocol or "",
        method=cells[0].method or "",
        view=cells[0].view,
        seed=cells[0].seed,
        languages=languages,
        pairs=tuple(pairs),
        means={name: _measure(name, own) for name, own in parts.items() if own},
        rank_chance=None if table.ranks is None or not parts["rank"] else _chance(table.ranks),
    )


def _measure(name: str, parts: Sequence[tuple[Floats, Integers]]) -> Measure:
    """Return the mean over pairs of the mean over items; each part has the values and the draws of a pair's items."""
    values = np.concatenate([part for part, _ in parts])
    strata = np.repeat(np.arange(len(parts)), [len(part) for part, _ in parts])
    _, codes = np.unique(np.concatenate([own for _, own in parts]), return_inverse=True)
    # Kappa may be below 0, which the interval of scores would cut off.
    interval = (paired_difference if name == "kappa" else stratified_mean)(
        values, strata, codes.astype(np.int64)
    )
    return Measure(
        value=float(np.mean([part.mean() for part, _ in parts])), interval=interval, n=int(codes.max()) + 1
    )


# Values of items ----------------------------------------------------------------------------------------


def _pair_values(table: _Table, first: int, second: int) -> dict[str, tuple[Floats, Integers]]:
    """Return by measure the values of the items that both languages have, and their draws."""
    (one, other), (right, also) = table.answers[[first, second]], table.correct[[first, second]]
    both = (one != MISSING) & (other != MISSING)
    known = (right != MISSING) & (also != MISSING)
    found: dict[str, tuple[Floats | None, npt.NDArray[np.bool_]]] = {}
    if table.comparable and both.any():
        found["same"] = _equal(one[both], other[both]), both
    if table.labelled and both.any():
        found["kappa"] = _kappa_values(one[both], other[both]), both
    if known.any():
        found["correct"] = (right[known] == also[known]).astype(np.float64), known
    if table.ranks is not None:
        ranks, others = table.ranks[[first, second]]
        sizes = (ranks > 0).sum(axis=1)
        ranked = (sizes > 1) & (sizes == (others > 0).sum(axis=1))
        found["rank"] = rank_consistency(ranks[ranked], others[ranked]) if ranked.any() else None, ranked
    pairs = {name: (values, table.codes[kept]) for name, (values, kept) in found.items()}
    return {name: (values, codes) for name, (values, codes) in pairs.items() if values is not None}


def _equal(one: Integers, other: Integers) -> Floats:
    return np.asarray((one == other) & (one >= 0), dtype=np.float64)


def _kappa_values(one: Integers, other: Integers) -> Floats | None:
    """Return a value per item whose mean is Cohen's kappa, and whose spread is that of its linear approximation.

    An answer that was not read equals none. None where chance alone makes all answers equal: kappa is not defined.
    """
    size = max(int(one.max(initial=0)), int(other.max(initial=0))) + 1
    shares = [np.bincount(own[own >= 0], minlength=size) / len(own) for own in (one, other)]
    chance = float(shares[0] @ shares[1])
    if chance >= 1:
        return None
    same = _equal(one, other)
    observed = float(same.mean())
    met = np.where(one >= 0, shares[1][one], 0.0) + np.where(other >= 0, shares[0][other], 0.0)
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
    found = np.zeros(len(ranks))
    for size in np.unique(sizes).tolist():
        own = sizes == size
        terms = rank_weights(size) / np.arange(1, size + 1)
        gains = np.append(0.0, np.cumsum(terms[::-1])[::-1])
        found[own] = gains[last[own]].sum(axis=1)
    return found


def _chance(ranks: Integers) -> float:
    """Return the mean over items of RankC of random rankings: their top j share j * j / size candidates."""
    sizes = (ranks > 0).sum(axis=2).max(axis=0)
    sizes = sizes[sizes > 1].tolist()
    return float(np.mean([float(rank_weights(size) @ np.arange(1, size + 1)) / size for size in sizes]))


# Reading --------------------------------------------------------------------------------------------------


def _table(parts: Sequence[Items]) -> _Table:
    kind = parts[0].kind
    place = {
        identifier: at for at, identifier in enumerate(dict.fromkeys(each for p in parts for each in p.ids))
    }
    shape = (len(parts), len(place))
    answers, correct = np.full(shape, MISSING), np.full(shape, MISSING)
    numbers: dict[Any, int] = {None: UNREAD}
    columns = [[place[identifier] for identifier in part.ids] for part in parts]
    for row, part in enumerate(parts):
        given = [_answer(kind, prediction) for prediction in part.predictions]
        answers[row, columns[row]] = [numbers.setdefault(answer, len(numbers) - 1) for answer in given]
        verdicts = map(is_correct, part.predictions, part.references, part.scores)
        correct[row, columns[row]] = [MISSING if verdict is None else int(verdict) for verdict in verdicts]
    draws = np.zeros(len(place), dtype=np.int64)
    draws[list(itertools.chain.from_iterable(columns))] = draw_codes(
        [(part.language.code, part.ids, part.clusters) for part in parts], linked=True
    )
    return _Table(
        answers=answers,
        correct=correct,
        ranks=_ranks(parts, columns, len(place)) if kind == "form_preference" else None,
        codes=draws,
        comparable=kind in _COMPARED,
        labelled=kind in _LABELLED,
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
    return [1 + sum(other > own for other in scores) for own in scores]


def _ranks(parts: Sequence[Items], columns: Sequence[Sequence[int]], ids: int) -> Integers | None:
    """Return the rankings as one array; None where no item has more than two candidates."""
    rankings = [list(map(_ranking, part.predictions)) for part in parts]
    most = max((len(places) for own in rankings for places in own), default=0)
    found = np.zeros((len(parts), ids, most), dtype=np.int64)
    for row, own in enumerate(rankings):
        for column, places in zip(columns[row], own, strict=True):
            found[row, column, : len(places)] = places
    return found if most > 2 else None
