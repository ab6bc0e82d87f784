"""How far each language is from the others and from the source, as weighted sums of the scores of languages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.statistics import Contrast
from harness.storage.results import Difference, TaskScore, Value

__all__ = ["Contrasts", "language_differences"]

Floats = npt.NDArray[np.float64]
Contrasts = Callable[[Floats], Sequence[Contrast]]
"""From weights of shape (m, languages) to m contrasts."""


def language_differences(score: TaskScore, source: str | None, contrasts: Contrasts) -> dict[str, Any]:
    """Return the fields of a task's score that compare its languages; nothing for one language.

    Args:
        score: The mean over languages.
        source: The language that the others are transferred to.
        contrasts: Estimates weighted sums of the languages, in the order of ``by_language``.
    """
    codes = list(score.by_language)
    size = len(codes)
    unit: Floats = np.eye(size)
    found: dict[str, Any] = {}
    if score.seeds > 1:
        own = contrasts(unit)
        found["over_seeds"] = {code: _value(one) for code, one in zip(codes, own, strict=True)}
    if size < 2:
        return found
    others = contrasts(unit - (1 - unit) / (size - 1))
    found["from_others"] = {code: _difference(one) for code, one in zip(codes, others, strict=True)}
    if source in codes:
        found["transfer_gap_interval"] = found["from_others"][source]
        further = [code for code in codes if code != source]
        place = codes.index(source)
        kept = [codes.index(code) for code in further]
        against = contrasts(unit[kept] - unit[place])
        found["from_source"] = {code: _difference(one) for code, one in zip(further, against, strict=True)}
    return found


def _value(found: Contrast) -> Value:
    kept = found.interval.to_json()
    ends = kept["ci"] and (max(0.0, kept["ci"][0]), kept["ci"][1])
    return Value(value=found.value, **{**kept, "ci": ends})


def _difference(found: Contrast) -> Difference:
    return Difference(value=found.value, **found.interval.to_json(), p=found.p)
