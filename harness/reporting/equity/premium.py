"""The premium of languages: how much more a parallel text costs than its English version.

Petrov et al. 2023, "Language Model Tokenizers Introduce Unfairness Between Languages", section 3: the tokens of a text
divided by those of the same text in the reference language. Here it is the ratio of the sums over the items that
both languages have, so that a long item counts by its length and the English premium is 1 exactly.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.storage.records import ItemTokens

__all__ = ["REFERENCE", "ItemCost", "Premium", "by_id", "premium_of"]

REFERENCE = "en"
"""The language that costs 1."""

ItemCost = Mapping[str, tuple[int, Hashable]]
"""By item id: its sub-words, and what is resampled together with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Premium:
    """The cost relative to English, or why there is none."""

    tokens: float | None = None
    low: float | None = None
    high: float | None = None
    """Ends of the 95 % interval."""
    items: int = 0
    """Items that both languages have."""
    bytes: float | None = None
    seconds: float | None = None
    reason: str = ""
    """Why there is no premium."""


def by_id(found: ItemTokens) -> ItemCost:
    """Return the sub-words of the items that were counted."""
    rows = zip(found.ids, found.clusters, found.tokens, strict=True)
    return {
        name: (count, name if cluster is None else ("cluster", cluster))
        for name, cluster, count in rows
        if count is not None
    }


def premium_of(pairs: Sequence[tuple[ItemCost, ItemCost]]) -> Premium:
    """Return the premium over one or several parallel tests: of each, the language's items and the English ones.

    The interval is that of a ratio of means by linearisation, over clusters (Cochran 1977, section 6.4), with
    Student's t; there is none for one cluster, and none where both sides are equal item by item.
    """
    own: list[int] = []
    english: list[int] = []
    clusters: dict[Hashable, int] = {}
    rows: list[int] = []
    for test, (language, reference) in enumerate(pairs):
        for name in language.keys() & reference.keys():
            count, cluster = language[name]
            own.append(count)
            english.append(reference[name][0])
            rows.append(clusters.setdefault((test, cluster), len(clusters)))
    if not own:
        return Premium(reason="no item has an English version in the run")
    if not sum(english):
        return Premium(reason="the English items have no token")
    ratio = sum(own) / sum(english)
    residuals = np.asarray(own, dtype=np.float64) - ratio * np.asarray(english, dtype=np.float64)
    reach = _reach(np.bincount(rows, weights=residuals), sum(english))
    low, high = (None, None) if reach is None else (ratio - reach, ratio + reach)
    return Premium(tokens=ratio, low=low, high=high, items=len(own))


def _reach(residuals: np.ndarray, total: int) -> float | None:
    """Return half the width of the interval, of the sums of residuals by cluster."""
    count = len(residuals)
    if count < 2 or not residuals.any():
        return None
    from scipy.stats import t

    error = float(np.sqrt(count / (count - 1) * (residuals**2).sum())) / total
    return float(t.ppf(0.975, count - 1)) * error
