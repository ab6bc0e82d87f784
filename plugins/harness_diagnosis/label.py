"""Attributes that are names: the gold label, the genre, languages and resources."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from harness.data import FeatureContext, Items

Names = Sequence[str | None]
_RESOURCES: Final = ((1.0, "high"), (0.1, "medium"), (0.0, "low"))
"""The least number of Wikipedia articles, in millions, for each class."""


def language_field(name: str) -> Callable[[Items, FeatureContext], Names | None]:
    """Return what gives every item the same field of its language."""

    def compute(items: Items, context: FeatureContext) -> Names | None:
        value = str(getattr(items.language, name))
        return [value] * len(items) if value else None

    return compute


def resource(items: Items, context: FeatureContext) -> Names | None:
    """Return the resource class of the language: high from a million Wikipedia articles on, medium from 100,000 on.

    Articles are those of XTREME-R's Table 7; the classes are ours. None for languages that are not in the table.
    """
    try:
        articles = float(items.language.wikipedia_articles)
    except ValueError:
        return None
    return [next(name for least, name in _RESOURCES if articles >= least)] * len(items)


def gold_label(items: Items, context: FeatureContext) -> Names:
    """Return the gold label."""
    return list(items.references)


def cause_or_effect(items: Items, context: FeatureContext) -> Names | None:
    """Return what a premise is asked for (XCOPA): its cause or its effect; None for tasks with other questions."""
    asked = items.texts("question")
    return asked if asked is not None and set(asked) <= {"cause", "effect"} else None


def tag_of(name: str) -> Callable[[Items, FeatureContext], Names | None]:
    """Return what gives a tag of every record, such as the genre; None where no item has it."""

    def compute(items: Items, context: FeatureContext) -> Names | None:
        values = [tags.get(name) for tags in items.tags]
        return None if all(value is None for value in values) else values

    return compute


entity_frequency = tag_of("bin_name")
"""Mewsli-X: how often the entity is in the training data: [0,1) [1,10) [10,100) [100,1000) [1000,inf)."""


def _languages(items: Items) -> list[set[str]] | None:
    rows: list[Any] = [
        gold.get("languages") if isinstance(gold, Mapping) else None for gold in items.references
    ]
    return None if any(not own for own in rows) else [set(own) for own in rows]


def target_language(items: Items, context: FeatureContext) -> Names | None:
    """Return the language of the right candidates; ``several`` where they are of several."""
    languages = _languages(items)
    if languages is None:
        return None
    return [next(iter(own)) if len(own) == 1 else "several" for own in languages]


def query_to_target(items: Items, context: FeatureContext) -> Names | None:
    """Return whether the right candidates are in the query's language: ``same``, ``cross``, or ``both``."""
    languages = _languages(items)
    if languages is None:
        return None
    code = items.language.code
    return ["cross" if code not in own else "same" if len(own) == 1 else "both" for own in languages]


def rank_of_gold(items: Items, context: FeatureContext) -> Names | None:
    """Return where the first right candidate stands: ``1``, ``2-5``, ``6-20``, or ``after 20``.

    For bitext retrieval, whose records keep the nearest candidate only, ``1`` or ``after 1``.
    """
    if items.kind == "bitext_retrieval":
        pairs = zip(items.predictions, items.references, strict=True)
        return ["1" if _bare(own, "candidate") == gold else "after 1" for own, gold in pairs]
    found = []
    for own, gold in zip(items.predictions, items.references, strict=True):
        wanted = set(_bare(gold, "targets"))
        ranking = _bare(own, "candidates") or ()
        ranks = (rank for rank, name in enumerate(ranking, start=1) if name in wanted)
        rank = next(ranks, np.inf)
        found.append("1" if rank == 1 else "2-5" if rank <= 5 else "6-20" if rank <= 20 else "after 20")
    return found


def _bare(value: Any, name: str) -> Any:
    """Return a field of a prediction or reference that is a mapping; files of predictions hold the bare value."""
    return value.get(name) if isinstance(value, Mapping) else value
