"""What the texts of some items cost a model, as sums, and the ratios that are made of them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from harness.storage.results import CellResult
from harness.storage.run_folder import Run

__all__ = ["Cost", "cost_of"]


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
        sums: dict[str, Any] = {}
        for name, own in asdict(self).items():
            added = getattr(other, name)
            sums[name] = None if own is None or added is None else own + added
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
        """Sub-words of the items' texts a second of the cell."""
        return self.tokens / self.seconds if self.seconds else None

    @property
    def seconds_per_item(self) -> float | None:
        """Seconds of the cell per item."""
        return self.seconds / self.items if self.items else None


def cost_of(run: Run, cell: CellResult) -> Cost | None:
    """Return what a finished cell cost; None where nothing was counted, as by older versions and by baselines."""
    ledger = cell.ledger or {}
    if "tokens" not in ledger:
        return None
    sums = {name: ledger[name] for name in ("items", "words", "unspaced", "characters", "bytes", "tokens")}
    truncated = ledger["truncated"]
    return Cost(
        **sums,
        unknown=ledger["unknown"],
        truncated=truncated or 0,
        truncated_of=0 if truncated is None else ledger["items"],
        prompts=ledger.get("prompt_tokens"),
        generated=cell.tokens,
        reasoned=cell.reasoning_tokens,
        seconds=cell.seconds,
        is_timed=_reused(run, cell) == 0,
    )


def _reused(run: Run, cell: CellResult) -> int | None:
    """Return how many requests of a cell were answered without asking the model; None where that is not known."""
    try:
        content = json.loads((run.path / "cells" / f"{cell.digest}.json").read_text(encoding="utf-8"))
        return int(content["cell"]["requests"]["reused"])
    except (OSError, ValueError, LookupError, TypeError):
        return None
