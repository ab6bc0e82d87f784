"""BLEU and chrF of answers, through sacrebleu: set-level, with sufficient statistics per item.

Source: Papineni et al. (2002) and Post (2018) for BLEU; Popovic (2015) for chrF (characters to 6, beta 2). The
package is an extra of the installation (``metrics``) and is imported when a metric is computed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.errors import MissingExtraError
from harness.metrics.answer import answer_text
from harness.metrics.metric import Floats, MetricContext, MetricResult
from harness.metrics.pairing import check_pairs

__all__ = ["bleu", "bleu_from_counts", "chrf", "chrf_from_counts", "require_sacrebleu"]

PACKAGE = "sacrebleu"


def require_sacrebleu() -> None:
    """Raise `MissingExtraError` where sacrebleu is not installed."""
    if importlib.util.find_spec(PACKAGE) is None:
        raise MissingExtraError("Each of the metrics 'bleu' and 'chrf'", "metrics", PACKAGE)


def chrf(
    predictions: Sequence[Any], references: Sequence[Sequence[str]], context: MetricContext
) -> MetricResult:
    """Return corpus chrF as a fraction; an answer is compared with the reference that it matches best.

    A prediction is a text or a mapping with the key ``text``, None for no answer (an empty text); a reference is a
    list of texts. Raises `ValueError` when the two do not fit together, `MissingExtraError` without sacrebleu.
    """
    return _scored(_chrf(), chrf_from_counts, predictions, references)


def bleu(
    predictions: Sequence[Any], references: Sequence[Sequence[str]], context: MetricContext
) -> MetricResult:
    """Return corpus BLEU as a fraction; predictions and references are those of `chrf`.

    The tokenizer is the one that sacrebleu recommends for the language (``13a``, for Chinese ``zh``), or that of the
    option ``bleu_tokenizer``. Raises `ValueError` where sacrebleu has no such tokenizer: for Japanese and Korean,
    unless MeCab is installed.
    """
    require_sacrebleu()
    from sacrebleu.metrics.bleu import BLEU

    tokenizer = context.options.get("bleu_tokenizer")
    try:
        scorer = BLEU(tokenize=tokenizer, trg_lang=context.language, force=True)
    except (ImportError, RuntimeError, AssertionError, KeyError) as error:
        raise ValueError(
            f"sacrebleu has no tokenizer {tokenizer or context.language!r} here ({str(error).strip()}); "
            "name another one with 'bleu_tokenizer' under 'metric_options'"
        ) from error
    return _scored(scorer, bleu_from_counts, predictions, references)


def chrf_from_counts(totals: Floats) -> float:
    """Return chrF of summed statistics: n-grams of hypothesis, of reference, and common ones, by order."""
    return _value(_chrf(), totals)


def bleu_from_counts(totals: Floats) -> float:
    """Return BLEU of summed statistics: lengths of both sides, then right and all n-grams by order."""
    require_sacrebleu()
    from sacrebleu.metrics.bleu import BLEU

    return _value(BLEU(), totals)


def _chrf() -> Any:
    require_sacrebleu()
    from sacrebleu.metrics.chrf import CHRF

    return CHRF()


def _value(scorer: Any, totals: Floats) -> float:
    # A score of all right answers is 1 but for rounding.
    return min(1.0, float(scorer._compute_score_from_stats([int(total) for total in totals]).score) / 100)


def _scored(
    scorer: Any, from_counts: Any, predictions: Sequence[Any], references: Sequence[Sequence[str]]
) -> MetricResult:
    """Return the corpus score with the statistics that sacrebleu's own significance tests resample.

    sacrebleu has no public name for them; the tests hold the value against its `corpus_score`.
    """
    check_pairs(predictions, references)
    for index, texts in enumerate(references):
        if isinstance(texts, str) or not texts:
            raise ValueError(
                f"Item {index}: expected a list of at least one reference text, found {texts!r}."
            )
    answers = [answer_text(prediction, index) or "" for index, prediction in enumerate(predictions)]
    most = max(len(texts) for texts in references)
    streams = [[texts[rank] if rank < len(texts) else None for texts in references] for rank in range(most)]
    counts = np.array(scorer._extract_corpus_statistics(answers, streams), dtype=np.float64)
    return MetricResult(value=from_counts(counts.sum(axis=0)), counts=counts)
