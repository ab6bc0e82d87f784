"""Whether gaps grow as pre-training data shrink: Spearman's rank correlation over languages, with its intervals."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from harness.languages import known_languages
from harness.statistics import mean_ranks, seed_of

Unit = Literal["GiB", "M articles"]
Floats = npt.NDArray[np.float64]
LEAST: Final = 5
"""With fewer languages there is no interval of a rank correlation."""
SHUFFLES: Final = 9_999
NORMAL: Final = 1.959963984540054


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainingSize:
    """The size of the pre-training text in one language."""

    code: str
    value: float
    unit: Unit
    source: str

    @property
    def text(self) -> str:
        """``5.7 GiB``, ``0.02 M art.``."""
        return f"{self.value:g} {'GiB' if self.unit == 'GiB' else 'M art.'}"


def pretraining_size(code: str) -> PretrainingSize | None:
    """Return the size of a language, by its BCP-47 code, or None if it is unknown."""
    if code in _cc100():
        return _cc100()[code]
    table = known_languages()
    articles = table.get(code).wikipedia_articles if code in table else ""
    if not articles:
        return None
    return PretrainingSize(
        code=code, value=float(articles), unit="M articles", source="Ruder et al. 2021, Table 7"
    )


def by_size(codes: Iterable[str]) -> list[str]:
    """Return languages from the largest to the smallest; those of unknown size last, by code."""
    return sorted(codes, key=lambda code: (_rank(code), code))


def _rank(code: str) -> tuple[int, float]:
    size = pretraining_size(code)
    if size is None:
        return (2, 0.0)
    return (0 if size.unit == "GiB" else 1, -size.value)


def size_ranks(codes: Sequence[str]) -> list[float]:
    """Return the ranks of languages of known size, 1 for the smallest; equal sizes share the mean of theirs."""
    keys = [_rank(code) for code in codes]
    return [
        1 + sum(peer > key for peer in keys) + (sum(peer == key for peer in keys) - 1) / 2 for key in keys
    ]


@cache
def _cc100() -> dict[str, PretrainingSize]:
    text = resources.files("harness_translation.gap").joinpath("pretraining.tsv").read_text(encoding="utf-8")
    return {
        row["code"]: PretrainingSize(
            code=row["code"], value=float(row["gib"]), unit="GiB", source=row["source"]
        )
        for row in csv.DictReader(text.splitlines(), delimiter="\t")
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """Spearman's correlation of a gap with pre-training size; negative where small languages have large gaps."""

    quantity: str
    translator: str
    rho: float
    low: float
    high: float
    """95 %, over languages, as a sample of many (Bonett and Wright 2000)."""
    p: float
    """Two-sided, by random permutations of the languages."""
    item_low: float | None
    item_high: float | None
    """95 %, over resamples of the items with languages fixed; None without items."""
    languages: tuple[str, ...]


def correlation(
    quantity: str, translator: str, vectors: Mapping[str, Any], points: int
) -> Correlation | None:
    """Return the correlation of a quantity, or None for fewer than 5 languages of known size or equal gaps.

    Args:
        quantity: Its name.
        translator: Its translator.
        vectors: By language: the value, further values, and from place `points` on those of resamples.
        points: Entries of a vector before the resamples.
    """
    codes = [code for code in vectors if pretraining_size(code) is not None]
    if len(codes) < LEAST:
        return None
    sizes = np.array(size_ranks(codes))
    values = np.stack([np.asarray(vectors[code], dtype=np.float64) for code in codes], axis=1)
    rhos = rank_correlations(sizes, np.concatenate([values[:1], values[points:]]))
    rho, drawn = float(rhos[0]), rhos[1:]
    if math.isnan(rho):
        return None
    finite = len(drawn) > 0 and bool(np.isfinite(drawn).all())
    low, high = _interval(rho, len(codes))
    return Correlation(
        quantity=quantity,
        translator=translator,
        rho=rho,
        low=low,
        high=high,
        p=_permutation_p(sizes, values[0], rho, seed_of("rank correlation", quantity, translator, *codes)),
        item_low=float(np.quantile(drawn, 0.025)) if finite else None,
        item_high=float(np.quantile(drawn, 0.975)) if finite else None,
        languages=tuple(codes),
    )


def rank_correlations(sizes: Floats, values: Floats) -> Floats:
    """Return Spearman's rho of every row of values, shape (m, n), with sizes, shape (n,); ties share a mean rank.

    NaN if one side is constant or a value is not finite.
    """
    centred_sizes, centred_values = _centred(sizes[None]), _centred(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        rhos: Floats = (
            centred_values
            @ centred_sizes[0]
            / np.sqrt((centred_sizes @ centred_sizes.T)[0, 0] * np.square(centred_values).sum(axis=1))
        )
    rhos[~np.isfinite(values).all(axis=1)] = np.nan
    return rhos


def _centred(values: Floats) -> Floats:
    # Differences that are equal but for rounding are ties.
    ranks: Floats = mean_ranks(np.round(values, 12))
    centred: Floats = ranks - ranks.mean(axis=1, keepdims=True)
    return centred


def _interval(rho: float, n: int) -> tuple[float, float]:
    """Return the interval by Fisher's z with the variance (1 + rho^2 / 2) / (n - 3) of Bonett and Wright (2000)."""
    if abs(rho) >= 1:
        return rho, rho
    z, reach = math.atanh(rho), NORMAL * math.sqrt((1 + rho**2 / 2) / (n - 3))
    return math.tanh(z - reach), math.tanh(z + reach)


def _permutation_p(sizes: Floats, values: Floats, rho: float, seed: int) -> float:
    centred_sizes, centred_values = _centred(sizes[None])[0], _centred(values[None])[0]
    generator = np.random.default_rng(seed)
    shuffled = generator.permuted(np.tile(centred_values, (SHUFFLES, 1)), axis=1)
    rhos = (
        shuffled
        @ centred_sizes
        / math.sqrt(float(centred_sizes @ centred_sizes) * float(centred_values @ centred_values))
    )
    return (1 + int((np.abs(rhos) >= abs(rho) - 1e-9).sum())) / (1 + SHUFFLES)
