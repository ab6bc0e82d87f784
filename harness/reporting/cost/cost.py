"""The cost of texts: sums over items, the ratios that are made of them, and the premium of languages over English."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from harness.storage.records import ItemTokens
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

REFERENCE = "en"
"""The language that costs 1."""

ItemCost = Mapping[str, tuple[int, Hashable]]
"""By item id: its sub-words, and what is resampled together with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Sums over items; those of several cells add up with ``+``. Ratios are None where they would divide by zero."""

    items: int = 0
    words: int = 0
    unspaced: int = 0
    """How many of the words are single letters of a script without spaces."""
    characters: int = 0
    bytes: int = 0
    tokens: int = 0
    unknown: int | None = 0
    truncated: int = 0
    truncated_of: int = 0
    """Items of which it is known whether the model saw all of them."""
    prompts: int | None = 0
    """Tokens of the prompts, with their instructions and shots; None where they were not counted."""
    generated: int = 0
    reasoned: int | None = 0
    """How many of the generated tokens are of the reasoning before answers; None where a server did not say."""
    seconds: float = 0.0
    is_timed: bool = True
    """Whether the seconds are those of all items: no answer was known before, or asked once for several items."""

    def __add__(self, other: Cost) -> Cost:
        """Return the sums of both."""
        pairs = {name: (value, getattr(other, name)) for name, value in asdict(self).items()}
        sums: dict[str, Any] = {name: None if None in pair else sum(pair) for name, pair in pairs.items()}
        return Cost(**{**sums, "is_timed": self.is_timed and other.is_timed})

    @property
    def fertility(self) -> float | None:
        """Sub-words a word (Ács 2019; Rust et al. 2021)."""
        return self.tokens / self.words if self.words else None

    @property
    def counts_letters(self) -> bool:
        """Whether most words are single letters, so that the fertility is not that of words."""
        return 2 * self.unspaced > self.words

    @property
    def tokens_per_character(self) -> float | None:
        """Sub-words a character, marks not counted as characters of their own."""
        return self.tokens / self.characters if self.characters else None

    @property
    def bytes_per_token(self) -> float | None:
        """UTF-8 bytes a sub-word."""
        return self.bytes / self.tokens if self.tokens else None

    @property
    def unknown_share(self) -> float | None:
        """Share of the sub-words that are the unknown token; None where the adapter does not report it."""
        return None if self.unknown is None or not self.tokens else self.unknown / self.tokens

    @property
    def truncated_share(self) -> float | None:
        """Share of the items that the model did not see all of."""
        return self.truncated / self.truncated_of if self.truncated_of else None

    @property
    def tokens_per_second(self) -> float | None:
        """Sub-words of the items' texts a second of the cell; None where not all items are timed."""
        return self.tokens / self.seconds if self.seconds and self.is_timed else None


def cost_of(run: Run, cell: CellResult) -> Cost | None:
    """Return the cost of a finished cell; None where nothing was counted, as by older versions and by baselines."""
    ledger = cell.ledger or {}
    if "tokens" not in ledger:
        return None
    counted = ("items", "words", "unspaced", "characters", "bytes", "tokens", "unknown")
    try:
        content = json.loads((run.path / "cells" / f"{cell.digest}.json").read_text(encoding="utf-8"))
        is_timed = int(content["cell"]["requests"]["reused"]) == 0
    except (OSError, ValueError, LookupError, TypeError):
        is_timed = False
    return Cost(
        **{name: ledger[name] for name in counted},
        truncated=ledger["truncated"] or 0,
        truncated_of=0 if ledger["truncated"] is None else ledger["items"],
        prompts=ledger.get("prompt_tokens"),
        generated=cell.tokens,
        reasoned=cell.reasoning_tokens,
        seconds=cell.seconds,
        is_timed=is_timed,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Premium:
    """The cost relative to English, or why there is none.

    Petrov et al. 2023, "Language Model Tokenizers Introduce Unfairness Between Languages", section 3: the tokens of a
    text divided by those of the same text in the reference language. Here it is the ratio of the sums over the items
    that both languages have, so that a long item counts by its length and the English premium is 1 exactly.
    """

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


def by_id(counts: ItemTokens) -> ItemCost:
    """Return the sub-words of the items that were counted."""
    return {
        name: (tokens, name if cluster is None else ("cluster", cluster))
        for name, cluster, tokens in zip(counts.ids, counts.clusters, counts.tokens, strict=True)
        if tokens is not None
    }


def premium_of(pairs: Sequence[tuple[ItemCost, ItemCost]]) -> Premium:
    """Return the premium over one or several parallel tests: of each, the language's items and the English ones.

    The interval is that of a ratio of means by linearisation, over clusters (Cochran 1977, section 6.4), with
    Student's t; there is none for one cluster, and none where both sides are equal item by item.
    """
    shared = [
        (count, reference[name][0], (test, cluster))
        for test, (language, reference) in enumerate(pairs)
        for name, (count, cluster) in language.items()
        if name in reference
    ]
    if not shared:
        return Premium(reason="no item has an English version in the run")
    total = sum(english for _, english, _ in shared)
    if not total:
        return Premium(reason="the English items have no token")
    ratio = sum(count for count, _, _ in shared) / total
    by_cluster: dict[Hashable, float] = defaultdict(float)
    for count, english, cluster in shared:
        by_cluster[cluster] += count - ratio * english
    residuals = np.array([*by_cluster.values()])
    size = len(residuals)
    if size < 2 or not residuals.any():
        return Premium(tokens=ratio, items=len(shared))
    from scipy.special import stdtrit

    error = float(np.sqrt(size / (size - 1) * (residuals**2).sum())) / total
    reach = float(stdtrit(size - 1, 0.975)) * error
    return Premium(tokens=ratio, low=ratio - reach, high=ratio + reach, items=len(shared))
