"""BLEU and chrF of answers, through sacrebleu: set-level, with sufficient statistics per item.

Source: Papineni et al. (2002) and Post (2018) for BLEU; Popovic (2015) for chrF (characters to 6, beta 2) and Popovic
(2017) for chrF++ (with words to 2); Goyal et al. (2022), "The FLORES-101 Evaluation Benchmark", section 5, for spBLEU,
with the tokenizer of NLLB Team (2022). The package is an extra of the installation (``metrics``) and is imported when a
metric is computed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import MissingExtraError
from harness.metrics.answer import answer_text
from harness.metrics.metric import Floats, MetricContext, MetricResult
from harness.metrics.pairing import check_pairs

__all__ = [
    "bleu",
    "bleu_from_counts",
    "bleu_signature",
    "chrf",
    "chrf_from_counts",
    "chrf_plus",
    "chrf_plus_from_counts",
    "chrf_plus_signature",
    "chrf_signature",
    "missing_spbleu",
    "require_sacrebleu",
    "spbleu",
    "spbleu_signature",
]

PACKAGE = "sacrebleu"
SPBLEU = "flores200"
"""The name of spBLEU's tokenizer in sacrebleu."""


def require_sacrebleu() -> None:
    """Raise `MissingExtraError` where sacrebleu is not installed."""
    if importlib.util.find_spec(PACKAGE) is None:
        raise MissingExtraError("Each of the metrics 'bleu', 'chrf' and 'chrf_plus'", "metrics", PACKAGE)


def chrf(
    predictions: Sequence[Any], references: Sequence[Sequence[str]], context: MetricContext
) -> MetricResult:
    """Return corpus chrF as a fraction; an answer is compared with the reference that it matches best.

    A prediction is a text or a mapping with the key ``text``, None for no answer (an empty text); a reference is a
    list of texts. Raises `ValueError` when the two do not fit together, `MissingExtraError` without sacrebleu.
    """
    return _scored(_chrf(), chrf_from_counts, predictions, references)


def chrf_plus(
    predictions: Sequence[Any], references: Sequence[Sequence[str]], context: MetricContext
) -> MetricResult:
    """Return corpus chrF++ as a fraction: chrF with word n-grams to 2; otherwise as `chrf`."""
    return _scored(_chrf(words=2), chrf_plus_from_counts, predictions, references)


def bleu(
    predictions: Sequence[Any], references: Sequence[Sequence[str]], context: MetricContext
) -> MetricResult:
    """Return corpus BLEU as a fraction; predictions and references are those of `chrf`.

    The tokenizer is the one that sacrebleu recommends for the language (``13a``, for Chinese ``zh``), or that of the
    option ``bleu_tokenizer``. Raises `ValueError` where sacrebleu has no such tokenizer: for Japanese and Korean,
    unless MeCab is installed.
    """
    return _scored(_bleu(context), bleu_from_counts, predictions, references)


def spbleu(
    predictions: Sequence[Any], references: Sequence[Sequence[str]], context: MetricContext
) -> MetricResult:
    """Return corpus BLEU over the pieces of FLORES-200's sentencepiece model, as a fraction; otherwise as `chrf`."""
    return _scored(_spbleu(), bleu_from_counts, predictions, references)


def missing_spbleu() -> str | None:
    """Return why spBLEU cannot be computed here: its tokenizer is a download of sacrebleu; None where it can."""
    if importlib.util.find_spec(PACKAGE) is None:
        return None  # The metrics next to it raise an error that says so.
    if importlib.util.find_spec("sentencepiece") is None:
        return (
            "The metric 'spbleu' is skipped: it needs the package sentencepiece "
            "(pip install 'multilingual-harness[metrics]')."
        )
    from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
    from sacrebleu.utils import SACREBLEU_DIR

    file = Path(SACREBLEU_DIR) / "models" / Path(SPM_MODELS[SPBLEU]["url"]).name
    download = f"'sacrebleu --tokenize {SPBLEU} REFERENCES -i ANSWERS' downloads it"
    if not file.is_file():
        return (
            f"The metric 'spbleu' is skipped: its tokenizer is missing at {file}; on a machine with network, "
            f"{download}."
        )
    if not _is_tokenizer(file, file.stat().st_mtime_ns):
        return (
            f"The metric 'spbleu' is skipped: {file} is not a sentencepiece model; delete it, and on a machine with "
            f"network {download} again."
        )
    return None


@lru_cache(maxsize=1)
def _is_tokenizer(file: Path, changed: int) -> bool:
    """Return whether sentencepiece can load a file: sacrebleu keeps what an interrupted download left."""
    from sentencepiece import SentencePieceProcessor

    try:
        SentencePieceProcessor().Load(str(file))
    except (OSError, RuntimeError):
        return False
    return True


def chrf_signature(context: MetricContext) -> str:
    """Return sacrebleu's signature of `chrf`."""
    return _signature(_chrf())


def chrf_plus_signature(context: MetricContext) -> str:
    """Return sacrebleu's signature of `chrf_plus`."""
    return _signature(_chrf(words=2))


def bleu_signature(context: MetricContext) -> str:
    """Return sacrebleu's signature of `bleu`, with the tokenizer of the language."""
    return _signature(_bleu(context))


def spbleu_signature(context: MetricContext) -> str:
    """Return sacrebleu's signature of `spbleu`."""
    return _signature(_spbleu())


def chrf_from_counts(totals: Floats) -> float:
    """Return chrF of summed statistics: n-grams of hypothesis, of reference, and common ones, by order."""
    return _value(_chrf(), totals)


def bleu_from_counts(totals: Floats) -> float:
    """Return BLEU of summed statistics: lengths of both sides, then right and all n-grams by order."""
    require_sacrebleu()
    from sacrebleu.metrics.bleu import BLEU

    return _value(BLEU(), totals)


def chrf_plus_from_counts(totals: Floats) -> float:
    """Return chrF++ of summed statistics, which are those of `chrf_from_counts` with the orders of words after them."""
    return _value(_chrf(words=2), totals)


def _chrf(words: int = 0) -> Any:
    require_sacrebleu()
    from sacrebleu.metrics.chrf import CHRF

    return CHRF(word_order=words)


def _bleu(context: MetricContext) -> Any:
    require_sacrebleu()
    from sacrebleu.metrics.bleu import BLEU

    tokenizer = context.options.get("bleu_tokenizer")
    try:
        return BLEU(tokenize=tokenizer, trg_lang=context.language, force=True)
    except (ImportError, RuntimeError, AssertionError, KeyError) as error:
        raise ValueError(
            f"sacrebleu has no tokenizer {tokenizer or context.language!r} here ({str(error).strip()}); "
            "name another one with 'bleu_tokenizer' under 'metric_options'"
        ) from error


def _spbleu() -> Any:
    require_sacrebleu()
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize=SPBLEU, force=True)


def _signature(scorer: Any) -> str:
    # One reference per item, as all tasks here have.
    scorer.num_refs = 1
    return str(scorer.get_signature())


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
