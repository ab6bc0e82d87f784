"""How far each language is from the others and from the source, as weighted sums of the scores of languages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.statistics import Contrast
from harness.storage.results import Difference, TaskScore, Value

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
    fields: dict[str, Any] = {}
    if score.seeds > 1:
        per_language = contrasts(unit)
        fields["over_seeds"] = {
            code: _value(contrast) for code, contrast in zip(codes, per_language, strict=True)
        }
    if size < 2:
        return fields
    from_others = contrasts(unit - (1 - unit) / (size - 1))
    fields["from_others"] = {
        code: _difference(contrast) for code, contrast in zip(codes, from_others, strict=True)
    }
    if source in codes:
        fields["transfer_gap_interval"] = fields["from_others"][source]
        further = [code for code in codes if code != source]
        source_index = codes.index(source)
        indices = [codes.index(code) for code in further]
        against = contrasts(unit[indices] - unit[source_index])
        fields["from_source"] = {
            code: _difference(contrast) for code, contrast in zip(further, against, strict=True)
        }
    return fields


def _value(contrast: Contrast) -> Value:
    interval = contrast.interval.to_json()
    ends = interval["ci"] and (max(0.0, interval["ci"][0]), interval["ci"][1])
    return Value(value=contrast.value, **{**interval, "ci": ends})


def _difference(contrast: Contrast) -> Difference:
    return Difference(value=contrast.value, **contrast.interval.to_json(), p=contrast.p)
