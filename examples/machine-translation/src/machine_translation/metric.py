"""chrF++: n-grams of characters and of words that a translation shares with a reference.

Source: Popovic (2017), "chrF++: words helping character n-grams", WMT; computed by sacrebleu (Post, 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.metrics import Metric, MetricContext, MetricResult

Floats = npt.NDArray[np.float64]


def chrf_pp(predictions: Sequence[Any], references: Sequence[str], context: MetricContext) -> MetricResult:
    """Return corpus chrF++ as a fraction, with the statistics of every item, so that its interval is resampled.

    A prediction is a mapping with the key ``text``, a reference a text. Raises `ValueError` where the two do not fit
    together. The statistics are those of sacrebleu's own significance tests, which has no public name for them.
    """
    if len(predictions) != len(references):
        raise ValueError(
            f"expected one prediction a reference, found {len(predictions)} and {len(references)}"
        )
    texts = [_text(prediction, index) for index, prediction in enumerate(predictions)]
    counts = np.array(_scorer()._extract_corpus_statistics(texts, [list(references)]), dtype=np.float64)
    return MetricResult(value=chrf_pp_from_counts(counts.sum(axis=0)), counts=counts)


def chrf_pp_from_counts(totals: Floats) -> float:
    """Return chrF++ of summed statistics: n-grams of the translation, of the reference, and common ones, by order."""
    score = _scorer()._compute_score_from_stats([int(total) for total in totals]).score
    return min(1.0, float(score) / 100)  # a score of all right answers is 1 but for rounding


def _scorer() -> Any:
    from sacrebleu.metrics.chrf import CHRF

    return CHRF(word_order=2)


def _text(prediction: Any, index: int) -> str:
    text = prediction.get("text") if isinstance(prediction, dict) else None
    if not isinstance(text, str):
        raise ValueError(f"item {index}: expected a prediction with the key 'text', found {prediction!r}")
    return text


CHRF_PP = Metric(
    name="chrf_pp",
    compute=chrf_pp,
    kinds=frozenset({"machine_translation"}),
    description="Corpus chrF++ (characters to 6, words to 2), by sacrebleu.",
    source="Popovic (2017), chrF++; sacrebleu",
    from_counts=chrf_pp_from_counts,
    by_item=True,
)
