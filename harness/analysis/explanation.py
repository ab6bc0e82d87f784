"""How far properties of languages explain their scores: a small regression, checked on families that it has not seen.

Scores of one task, or of several tasks with a level each, are regressed by least squares on a few standardised
properties. Languages of a family resemble each other, so that families are the units of all uncertainty: one family
after the other is left out, which gives the prediction error and, as a jackknife, the standard errors (CV3 of
MacKinnon, Nielsen and Webb 2023, Journal of Econometrics 232, section 2.2; t distribution with families - 1 degrees of
freedom). ``benchmarks/explanation.py`` measures the coverage, and why nothing is shuffled over languages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.statistics import mean_ranks
from harness.statistics.interval import Booleans, Floats, Integers
from harness.statistics.significance import noncentrality

LEAST_LANGUAGES = 10
LEAST_FAMILIES = 4
PER_PROPERTY, PER_PROPERTY_ELSEWHERE = 5, 4
"""Languages that a model needs for each of its properties: of all, and of those outside the largest family."""
ROUNDING = 1e-9
"""Scores that differ by less are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Effect of one property: alone, as correlations, and in the model with the others held equal."""

    name: str
    pearson: float
    """Over languages; of several tasks, of what remains without the levels of the tasks."""
    spearman: float
    value: float | None = None
    """Change of the score per standard deviation of the property; None where the model does not have it."""
    se: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    detectable: float | None = None
    """The smallest true effect that such data show with 80 % power."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The regression of scores on properties of languages."""

    languages: tuple[str, ...]
    families: int
    scores: int
    effects: tuple[Effect, ...]
    r2: float
    """Share of the variance between languages that the model fits."""
    mae: float
    """Mean absolute error for languages of a family that was left out."""
    mean_mae: float
    """The same of a prediction that knows the mean score alone."""
    unseen_r2: float
    """1 - squared error / squared error of the mean, for families that were left out; below 0: worse than the mean."""

    @property
    def predicts(self) -> bool:
        """Whether it predicts a new family better than the mean does, by both errors."""
        return self.mae < self.mean_mae and self.unseen_r2 > 0


def explain(
    scores: Mapping[str, Mapping[str, float]],
    properties: Mapping[str, Mapping[str, float]],
    families: Mapping[str, str],
) -> Explanation | None:
    """Return the regression of scores; None for few languages or families, equal scores or properties.

    Args:
        scores: By task, then by language.
        properties: By name, then by language, the most important one first. One that some language does not have, or
            that is equal in all, is skipped. The model takes the first ones, one per five languages
            and per four outside the largest family.
        families: By language.
    """
    rows = [
        (task, code, value) for task, by_language in scores.items() for code, value in by_language.items()
    ]
    codes = sorted({code for _, code, _ in rows})
    groups = sorted({families[code] for code in codes})
    usable = {
        name: np.array([by_language[code] for code in codes])
        for name, by_language in properties.items()
        if all(code in by_language for code in codes) and len({by_language[code] for code in codes}) > 1
    }
    if len(codes) < LEAST_LANGUAGES or len(groups) < LEAST_FAMILIES or not usable:
        return None
    largest = max(sum(families[code] == group for code in codes) for group in groups)
    most = min(len(codes) // PER_PROPERTY, (len(codes) - largest) // PER_PROPERTY_ELSEWHERE)
    data = _Data(
        y=np.array([value for *_, value in rows]),
        table=np.stack([(column - column.mean()) / column.std(ddof=1) for column in usable.values()], axis=1),
        of_language=np.array([codes.index(code) for _, code, _ in rows]),
        task=np.unique([task for task, *_ in rows], return_inverse=True)[1],
        family=np.array([groups.index(families[code]) for _, code, _ in rows]),
    )
    if np.ptp(data.apart(data.y)) < ROUNDING:
        return None
    count = _estimable(data, min(len(usable), max(1, most)))
    return _explanation(data, list(usable), count, codes, len(groups))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Data:
    """Scores by row; properties by language."""

    y: Floats
    table: Floats
    of_language: Integers
    task: Integers
    family: Integers

    def x(self, count: int) -> Floats:
        """Return the first properties of every row."""
        return np.asarray(self.table[self.of_language, :count], dtype=np.float64)

    def means(self, values: Floats, mask: Booleans) -> Floats:
        """Return for every row the mean of the rows of its task in the mask; NaN where there are none."""
        number = int(self.task.max()) + 1
        sizes = np.bincount(self.task[mask], minlength=number)
        columns = values.reshape(len(values), -1).T
        sums = np.stack([np.bincount(self.task[mask], column[mask], number) for column in columns], axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = sums / sizes[:, None]
        return np.asarray(means[self.task].reshape(values.shape), dtype=np.float64)

    def apart(self, values: Floats) -> Floats:
        """Return the values minus the mean of their task."""
        return values - self.means(values, np.ones(len(self.y), dtype=np.bool_))


def _estimable(data: _Data, count: int) -> int:
    """Return how many of the first properties have effects of their own: none is a mixture of those before it."""
    x = data.apart(data.x(count))
    while count > 1 and np.linalg.matrix_rank(x[:, :count]) < count:
        count -= 1
    return count


def _explanation(
    data: _Data, names: Sequence[str], count: int, codes: Sequence[str], families: int
) -> Explanation:
    y, x = data.apart(data.y), data.apart(data.x(count))
    slopes = _slopes(x, y)
    jackknife, predicted, mean = _without_families(data, count)
    finite = np.isfinite(predicted)
    errors, mean_errors = (data.y - predicted)[finite], (data.y - mean)[finite]
    variance, total = float(y @ y), float((mean_errors**2).sum())
    se = np.sqrt((families - 1) / families * ((jackknife - slopes) ** 2).sum(axis=0))
    return Explanation(
        languages=tuple(codes),
        families=families,
        scores=len(data.y),
        effects=tuple(_effects(data, names, slopes, se, families - 1)),
        r2=float(y @ x @ slopes) / variance if variance else 0.0,
        mae=float(np.abs(errors).mean()),
        mean_mae=float(np.abs(mean_errors).mean()),
        unseen_r2=1 - float((errors**2).sum()) / total if total else 0.0,
    )


def _slopes(x: Floats, y: Floats) -> Floats:
    return np.asarray(np.linalg.lstsq(x, y, rcond=None)[0], dtype=np.float64)


def _without_families(data: _Data, count: int) -> tuple[Floats, Floats, Floats]:
    """Return the slopes without each family, and what the model and the mean predict for the family left out."""
    x = data.x(count)
    slopes, predicted, mean = [], np.full(len(data.y), np.nan), np.full(len(data.y), np.nan)
    for family in range(int(data.family.max()) + 1):
        outside = data.family != family
        level, apart = data.means(data.y, outside), x - data.means(x, outside)
        slopes.append(_slopes(apart[outside], (data.y - level)[outside]))
        mean[~outside] = level[~outside]
        predicted[~outside] = level[~outside] + apart[~outside] @ slopes[-1]
    return np.array(slopes).reshape(-1, count), predicted, mean


def _effects(
    data: _Data, names: Sequence[str], slopes: Floats, errors: Floats, freedom: int
) -> Iterator[Effect]:
    from scipy.special import stdtr, stdtrit

    y, reach = data.apart(data.y), float(stdtrit(freedom, 0.975))
    fitted = list(zip(slopes.tolist(), errors.tolist(), strict=True))
    for index, name in enumerate(names):
        deviations = data.apart(data.table[data.of_language, index])
        pearson = float(np.corrcoef(deviations, y)[0, 1])
        spearman = float(np.corrcoef(mean_ranks(deviations), mean_ranks(np.round(y, 12)))[0, 1])
        effect = Effect(name=name, pearson=pearson, spearman=spearman)
        value, se = fitted[index] if index < len(fitted) else (0.0, 0.0)
        if se > 0:
            effect = replace(
                effect,
                value=value,
                se=se,
                low=value - reach * se,
                high=value + reach * se,
                p=2 * float(stdtr(freedom, -abs(value) / se)),
                detectable=noncentrality(freedom) * se,
            )
        yield effect
