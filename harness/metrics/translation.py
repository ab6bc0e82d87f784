"""BLEU and chrF of answers, through sacrebleu: set-level, with sufficient statistics per item.

Source: Papineni et al. (2002) and Post (2018) for BLEU; Popovic (2015) for chrF (characters to 6, beta 2) and Popovic
(2017) for chrF++ (with words to 2); Goyal et al. (2022), "The FLORES-101 Evaluation Benchmark", section 5, for spBLEU,
with the tokenizer of NLLB Team (2022). The package is an extra of the installation (``metrics``) and is imported when a
metric is computed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import MissingExtraError
from harness.languages.library_code import is_unspaced_language, library_code, writing_of
from harness.metrics.metric import Floats, MetricContext, MetricFunction
from harness.metrics.pairing import answer_text, reference_texts, set_metric

PACKAGE = "sacrebleu"
SPBLEU = "flores200"
"""The name of spBLEU's tokenizer in sacrebleu."""


def require_sacrebleu() -> None:
    """Raise `MissingExtraError` where sacrebleu is not installed."""
    if importlib.util.find_spec(PACKAGE) is None:
        raise MissingExtraError("Each of the metrics 'bleu', 'chrf' and 'chrf_plus'", "metrics", PACKAGE)


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


Scorer = Callable[[MetricContext], Any]
"""Makes a scorer of sacrebleu for a context."""


def _chrf(_: MetricContext | None = None) -> Any:
    require_sacrebleu()
    from sacrebleu.metrics.chrf import CHRF

    return CHRF()


def _chrf_plus(_: MetricContext | None = None) -> Any:
    require_sacrebleu()
    from sacrebleu.metrics.chrf import CHRF

    return CHRF(word_order=2)


def _plain_bleu() -> Any:
    require_sacrebleu()
    from sacrebleu.metrics.bleu import BLEU

    return BLEU()


def _bleu(context: MetricContext) -> Any:
    require_sacrebleu()
    from sacrebleu.metrics.bleu import BLEU

    tokenizer = context.options.get("bleu_tokenizer")
    if tokenizer is None:
        code = "zh" if writing_of(context.language) == "Hani" else context.language
        language = library_code(code, BLEU._TOKENIZER_MAP)
        if language is None and not is_unspaced_language(code):
            return BLEU(force=True)
        try:
            return BLEU(tokenize=BLEU._TOKENIZER_MAP.get(language or "", "char"), force=True)
        except (ImportError, RuntimeError):  # MeCab is not installed.
            return BLEU(tokenize="char", force=True)
    try:
        return BLEU(tokenize=tokenizer, force=True)
    except (ImportError, RuntimeError, AssertionError, KeyError) as error:
        raise ValueError(
            f"sacrebleu has no tokenizer {tokenizer!r} here ({str(error).strip()}); "
            "name another one with 'bleu_tokenizer' under 'metric_options'"
        ) from error


def _spbleu(_: MetricContext) -> Any:
    require_sacrebleu()
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize=SPBLEU, force=True)


def _signature(scorer: Any) -> str:
    # One reference per item, as all tasks here have.
    scorer.num_refs = 1
    return str(scorer.get_signature())


def bleu_signature(context: MetricContext) -> str:
    """Return sacrebleu's signature of `bleu`, with a note where its tokenizer is a substitute."""
    scorer = _bleu(context)
    is_substitute = "bleu_tokenizer" not in context.options and scorer.tokenizer_signature == "char"
    note = f"|note:sacrebleu has no tokenizer for {context.language} here" if is_substitute else ""
    return _signature(scorer) + note


def _from_counts(scorer: Callable[[], Any]) -> Callable[[Floats], float]:
    """Return the function from sums of sacrebleu's statistics to the score.

    Those of chrF are n-grams of hypothesis, of reference, and common ones, by order, those of chrF++ have the orders
    of words after them; those of BLEU are the lengths of both sides, then right and all n-grams by order.
    """

    def value(totals: Floats) -> float:
        score = scorer()._compute_score_from_stats([int(total) for total in totals]).score
        # A score of all right answers is 1 but for rounding.
        return min(1.0, float(score) / 100)

    return value


def _corpus_score(scorer: Scorer, from_counts: Callable[[Floats], float]) -> MetricFunction:
    """Return the corpus score with the statistics that sacrebleu's own significance tests resample.

    sacrebleu has no public name for them; the tests hold the value against its `corpus_score`.
    """

    def statistics(
        predictions: Sequence[Any], references: Sequence[Sequence[str]], context: MetricContext
    ) -> Floats:
        metric = scorer(context)
        texts = [reference_texts(reference, index) for index, reference in enumerate(references)]
        answers = [answer_text(prediction, index) or "" for index, prediction in enumerate(predictions)]
        streams = list(zip_longest(*texts))
        return np.array(metric._extract_corpus_statistics(answers, streams), dtype=np.float64)

    return set_metric(statistics, from_counts)


chrf_from_counts = _from_counts(_chrf)
chrf_plus_from_counts = _from_counts(_chrf_plus)
bleu_from_counts = _from_counts(_plain_bleu)
chrf = _corpus_score(_chrf, chrf_from_counts)
"""Corpus chrF as a fraction; an answer is compared with the reference that it matches best.

A prediction is a text or a mapping with the key ``text``, None for no answer (an empty text); a reference is a list of
texts. Raises `ValueError` when the two do not fit together, `MissingExtraError` without sacrebleu.
"""
chrf_plus = _corpus_score(_chrf_plus, chrf_plus_from_counts)
"""Corpus chrF++ as a fraction: chrF with word n-grams to 2; otherwise as `chrf`."""
bleu = _corpus_score(_bleu, bleu_from_counts)
"""Corpus BLEU as a fraction; predictions and references are those of `chrf`.

The tokenizer is that of the option ``bleu_tokenizer``, or the one that sacrebleu recommends for the language: ``zh``
for all in Chinese characters, MeCab's for Japanese and Korean, else ``13a``. It is ``char`` where the language has no
spaces between words and sacrebleu has no tokenizer for it, or MeCab is not installed; the signature says so. Raises
`ValueError` where sacrebleu has no tokenizer of the option's name.
"""
spbleu = _corpus_score(_spbleu, bleu_from_counts)
"""Corpus BLEU over the pieces of FLORES-200's sentencepiece model, as a fraction; otherwise as `chrf`."""


def chrf_signature(context: MetricContext) -> str:
    """Return sacrebleu's signature of `chrf`."""
    return _signature(_chrf())


def chrf_plus_signature(context: MetricContext) -> str:
    """Return sacrebleu's signature of `chrf_plus`."""
    return _signature(_chrf_plus())


def spbleu_signature(context: MetricContext) -> str:
    """Return sacrebleu's signature of `spbleu`."""
    return _signature(_spbleu(context))
