"""Which questions a model answers in which languages, item by item, from the records of a finished run.

The items of a parallel task with one id are one question. A model that has a piece of knowledge only in English answers
its question in English and loses it elsewhere; accuracy alone does not show this, since the model may answer other
questions in the other language. The measures are conditional shares of the same items, and Cohen's kappa of right and
wrong, which is 0 where the same accuracies would come from independent answers (Cohen, 1960).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from harness.analysis.consistency import (
    MISSING,
    Measure,
    ParallelItems,
    kappa_values,
    mean_measure,
    parallel_groups,
    parallel_items,
)
from harness.analysis.items import read_items
from harness.statistics.arrays import Booleans, Floats, Integers
from harness.statistics.interval import Interval, mean_of_codes
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

SOURCE: Final = "en"
"""The language whose knowledge is looked for in the others."""
LEAST_LANGUAGES: Final = 5
"""Languages besides English that a correlation needs."""
Z: Final = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""
_Sample = tuple[Floats, Integers]
"""Values of items, and the number of each item's draw."""


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
class Knowledge:
    """A parallel task in the languages of one protocol, method, view and seed."""

    task: str
    protocol: str
    method: str
    view: Mapping[str, str]
    seed: int | None
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
    groups = (cells for cells in parallel_groups(run) if most is None or len(cells) <= most)
    tasks = (_knowledge(run, cells) for cells in groups)
    return [task for task in tasks if task is not None]


def _knowledge(run: Run, cells: Sequence[CellResult]) -> Knowledge | None:
    """Return the knowledge of one task; None where no item has a verdict in all of its languages."""
    task = run.manifest.tasks[cells[0].task]
    items = parallel_items([read_items(run, cell, task, inputs=False) for cell in cells])
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
        task=cells[0].task,
        protocol=cells[0].protocol or "",
        method=cells[0].method or "",
        view=cells[0].view,
        seed=cells[0].seed,
        languages=languages,
        answered_in={
            items.ids[column]: tuple(np.array(codes)[items.correct[:, column] == 1].tolist())
            for column in np.flatnonzero(shared).tolist()
        },
        spread=tuple((np.bincount(right.sum(axis=0), minlength=len(codes) + 1) / right.shape[1]).tolist()),
        independent_spread=tuple(independent_spread(right.mean(axis=1)).tolist()),
        everywhere=mean_measure("share", [everywhere]),
        lost=_mean("lost", samples),
        lost_over_languages=mean_of_codes(losses, np.arange(len(losses))) if len(losses) > 1 else Interval(),
        kappa=_mean("kappa", samples),
    )


def _language(
    items: ParallelItems, codes: Sequence[str], row: int, samples: Mapping[str, list[_Sample]]
) -> LanguageKnowledge:
    """Return the knowledge in the language of a row; its items' losses and kappas are added to `samples`."""
    right = items.correct[row]
    answered = mean_measure("share", [_sample(right, right != MISSING, items.codes)])
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
        **{name: mean_measure(name, [sample]) for name, sample in measures.items()},
    )


def _sample(values: Integers, mask: Booleans, codes: Integers) -> _Sample:
    return values[mask].astype(np.float64), codes[mask]


def _mean(name: str, samples: Mapping[str, list[_Sample]]) -> Measure | None:
    return mean_measure(name, samples[name]) if samples[name] else None


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
    reach = Z * np.sqrt((1 + rho**2 / 2) / (len(codes) - 3))
    low, high = np.tanh([z - reach, z + reach]).tolist()
    return LossCorrelation(property=property_name, value=rho, low=low, high=high, languages=len(codes))
