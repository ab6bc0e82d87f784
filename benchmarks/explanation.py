"""Coverage of the effects of `harness report --explain` by simulation: python -m benchmarks.explanation [--draws N].

Scores of the languages of WikiANN (47) and XNLI (14) are drawn, on which three properties have no effect. Languages of
a family share a part of their error. Each row counts how many 95 % intervals hold 0, of the jackknife over families
that the harness uses and of least squares with HC3 errors; how often the fit is better than 95 % of fits to shuffled
languages; and how often families that were left out are predicted better than by the mean. Nothing has an effect, so
that the last two are false.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from scipy.stats import t

from harness.analysis.explanation import explain
from harness.languages.table import Language, known_languages

Floats = npt.NDArray[np.float64]
XNLI = "ar bg de el es fr hi ru sw th tr ur vi zh".split()
WIKIANN = (
    "af ar az bg bn de el es et eu fa fi fr gu he hi hu id it ja jv ka kk ko lt ml mr ms my nl pa pl pt qu ro ru sw ta "
    "te th tl tr uk ur vi yo zh"
).split()
SHUFFLES = 99
SHARED = (0.0, 0.5)
"""Parts of the variance of the errors that a family shares."""


def main(argv: list[str] | None = None) -> None:
    """Print a table: the languages, the shared part, and the shares of draws."""
    parser = argparse.ArgumentParser(description="Coverage of effects of properties of languages.")
    parser.add_argument("--draws", type=int, default=2_000)
    given = parser.parse_args(argv)
    print(f"{given.draws} draws; nominal: coverage 95 %, false models by shuffling 5 %")
    print(f"{'languages':>10}{'shared':>8}{'jackknife':>12}{'HC3':>12}{'shuffling':>12}{'left out':>12}")
    for codes in (WIKIANN, XNLI):
        for shared in SHARED:
            found = _row(codes, shared, given.draws)
            print(f"{len(codes):>10}{shared:>8.1f}" + "".join(f"{own * 100:>12.1f}" for own in found))


def _row(codes: list[str], shared: float, draws: int) -> list[float]:
    """Return the coverage of the jackknife and of HC3, and the shares of false models and predictions."""
    random = np.random.default_rng(25)
    languages = [known_languages().get(code) for code in codes]
    families = {own.code: own.family for own in languages}
    properties = _properties(languages)
    table = np.stack([[own[code] for code in codes] for own in properties.values()], axis=1)
    table = (table - table.mean(axis=0)) / table.std(axis=0, ddof=1)
    held, robust, models, predictions = [], [], [], []
    for _ in range(draws):
        noise = _noise(random, [families[code] for code in codes], shared)
        found = explain({"task": dict(zip(codes, noise, strict=True))}, properties, families)
        assert found is not None
        effects = [own for own in found.effects if own.low is not None and own.high is not None]
        held += [own.low <= 0 <= own.high for own in effects if own.low is not None and own.high is not None]
        robust += _hc3_holds(table[:, : len(effects)], noise)
        models.append(_fits_better(random, table[:, : len(effects)], noise))
        predictions.append(found.predicts)
    return [float(np.mean(own)) for own in (held, robust, models, predictions)]


def _properties(languages: list[Language]) -> Mapping[str, Mapping[str, float]]:
    return {
        "articles": {own.code: float(np.log2(float(own.wikipedia_articles))) for own in languages},
        "Germanic or Romance": {own.code: float(own.branch in {"Germanic", "Romance"}) for own in languages},
        "Latin": {own.code: float(own.script == "Latn") for own in languages},
    }


def _noise(random: np.random.Generator, families: list[str], shared: float) -> Floats:
    names, place = np.unique(families, return_inverse=True)
    own: Floats = random.normal(size=len(families)) * np.sqrt(1 - shared)
    family: Floats = random.normal(size=len(names))[place] * np.sqrt(shared)
    return own + family


def _fits_better(random: np.random.Generator, x: Floats, y: Floats) -> bool:
    """Return whether at most 5 % of the shuffles of the languages fit as well."""
    centred = y - y.mean()
    base, _ = np.linalg.qr(x - x.mean(axis=0))
    shuffled = random.permuted(np.tile(centred, (SHUFFLES, 1)), axis=1)
    better = int((((shuffled @ base) ** 2).sum(axis=1) >= ((centred @ base) ** 2).sum()).sum())
    return (1 + better) / (1 + SHUFFLES) <= 0.05


def _hc3_holds(x: Floats, y: Floats) -> list[bool]:
    design = np.column_stack([np.ones(len(y)), x])
    inverse = np.linalg.inv(design.T @ design)
    slopes = inverse @ design.T @ y
    leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
    scaled = design * ((y - design @ slopes) / (1 - leverage))[:, None]
    se = np.sqrt(np.diag(inverse @ scaled.T @ scaled @ inverse))
    reach = t.ppf(0.975, len(y) - design.shape[1]) * se
    return [bool(abs(slope) <= own) for slope, own in zip(slopes[1:], reach[1:], strict=True)]


if __name__ == "__main__":
    main()
