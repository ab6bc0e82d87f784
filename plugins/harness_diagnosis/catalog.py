"""The features that this package declares."""

from __future__ import annotations

from typing import Final

from harness import Feature
from harness_diagnosis import bleu, label, length, script, span, vocabulary
from harness_diagnosis.paper import printed_edges

__all__ = ["FEATURES"]

_PAPER: Final = "Ruder et al. (2021), XTREME-R, appendix K"
_OURS: Final = (
    "Ours: XTREME-R (Ruder et al., 2021, section 5) promises such attributes and does not define them."
)
_QUESTIONS: Final = frozenset({"span_extraction"})
_TAGGED: Final = frozenset({"token_tagging", "text_marking"})
_ENTITIES: Final = _TAGGED
_CLASSIFIED: Final = frozenset({"sequence_classification"})
_CHOICES: Final = frozenset({"multiple_choice"})
_RANKED: Final = frozenset({"ranked_retrieval"})
_BITEXT: Final = frozenset({"bitext_retrieval"})
QUESTION_TYPES: Final = 5

_question, _context = length.length("question"), length.length("context")
_first, _second = length.input_length(0), length.input_length(1)

FEATURES: Final = (
    Feature(
        name="aLen",
        title="words of the answer",
        compute=length.answer_length,
        kinds=_QUESTIONS,
        description="Words of the first gold answer.",
        source=_PAPER,
        published=printed_edges("aLen"),
    ),
    Feature(
        name="qLen",
        title="words of the question",
        compute=_question,
        kinds=_QUESTIONS,
        source=_PAPER,
        published=printed_edges("qLen"),
    ),
    Feature(
        name="cLen",
        title="words of the context",
        compute=_context,
        kinds=_QUESTIONS,
        source=_PAPER,
        published=printed_edges("cLen"),
    ),
    Feature(
        name="aLen/cLen",
        title="answer length over context length",
        compute=length.ratio(length.answer_length, _context),
        kinds=_QUESTIONS,
        source=_PAPER,
    ),
    Feature(
        name="aLen/qLen",
        title="answer length over question length",
        compute=length.ratio(length.answer_length, _question),
        kinds=_QUESTIONS,
        source=_PAPER,
    ),
    Feature(
        name="qLen/cLen",
        title="question length over context length",
        compute=length.ratio(_question, _context),
        kinds=_QUESTIONS,
        source=_PAPER,
    ),
    Feature(
        name="BLEU_AQ",
        title="BLEU(answer, question)",
        compute=bleu.answer_question,
        kinds=_QUESTIONS,
        description="Sentence BLEU of the first gold answer against the question, add-one smoothing.",
        source=_PAPER,
        published=printed_edges("BLEU_AQ"),
    ),
    Feature(
        name="BLEU_QC",
        title="BLEU(question, context)",
        compute=bleu.question_context,
        kinds=_QUESTIONS,
        description="Sentence BLEU of the question against the context, add-one smoothing.",
        source=_PAPER,
        published=printed_edges("BLEU_QC"),
    ),
    Feature(
        name="qType",
        title="first word of the question",
        compute=label.question_type,
        kinds=_QUESTIONS,
        continuous=False,
        words=QUESTION_TYPES,
        description="The five most frequent first words of the language; the others are 'other'.",
        source=_PAPER,
    ),
    Feature(
        name="sLen",
        title="tokens of the sentence",
        compute=span.sentence_length,
        kinds=_TAGGED,
        source=_PAPER,
        published=printed_edges("sLen"),
    ),
    Feature(
        name="eDen",
        title="share of tokens in entities",
        compute=span.density,
        kinds=_ENTITIES,
        source=f"{_PAPER}, Tables 26 to 28, which do not define it",
        published=printed_edges("eDen"),
    ),
    Feature(
        name="tag",
        title="tag of the span",
        compute=span.tag,
        kinds=_TAGGED,
        level="span",
        continuous=False,
        words=20,
        source=_PAPER,
    ),
    Feature(
        name="eLen",
        title="tokens of the span",
        compute=span.span_length,
        kinds=_TAGGED,
        level="span",
        source=_PAPER,
        published=printed_edges("eLen"),
    ),
    Feature(
        name="tLen",
        title="characters of the span",
        compute=span.characters,
        kinds=_TAGGED,
        level="span",
        source=_PAPER,
    ),
    Feature(
        name="rPos",
        title="relative position of the span",
        compute=span.position,
        kinds=_TAGGED,
        level="span",
        source=_PAPER,
        published=printed_edges("rPos"),
    ),
    Feature(name="len1", title="words of the first text", compute=_first, kinds=_CLASSIFIED, source=_OURS),
    Feature(name="len2", title="words of the second text", compute=_second, kinds=_CLASSIFIED, source=_OURS),
    Feature(
        name="len1/len2",
        title="first length over second length",
        compute=length.ratio(_first, _second),
        kinds=_CLASSIFIED,
        source=_OURS,
    ),
    Feature(
        name="overlap",
        title="shared words",
        compute=length.overlap,
        kinds=_CLASSIFIED,
        description="Jaccard index of the sets of words of the two texts, in lower case.",
        source=_OURS,
    ),
    Feature(
        name="label",
        title="gold label",
        compute=label.gold_label,
        kinds=_CLASSIFIED | _CHOICES,
        continuous=False,
        source=_OURS,
    ),
    Feature(
        name="genre",
        title="genre",
        compute=label.tag_of("genre"),
        kinds=_CLASSIFIED,
        continuous=False,
        source="Conneau et al. (2018), XNLI",
    ),
    Feature(
        name="latin_side",
        title="a text all in Latin letters",
        compute=script.latin_side,
        kinds=_CLASSIFIED,
        continuous=False,
        description="Whether one of the texts is in Latin letters only, though its language is not.",
        source=_OURS,
    ),
    Feature(
        name="ask",
        title="cause or effect",
        compute=label.cause_or_effect,
        kinds=_CHOICES,
        continuous=False,
        source="Ponti et al. (2020), XCOPA",
    ),
    Feature(
        name="pLen",
        title="words of the context",
        compute=_context,
        kinds=_CHOICES,
        source=_OURS,
    ),
    Feature(
        name="choiceLen",
        title="mean words of the choices",
        compute=length.choice_lengths,
        kinds=_CHOICES,
        source=_OURS,
    ),
    Feature(
        name="queryLen",
        title="words of the query",
        compute=length.length("query"),
        kinds=_RANKED | _BITEXT,
        source=_OURS,
    ),
    Feature(
        name="targetLen",
        title="words of the translation",
        compute=length.length("target"),
        kinds=_BITEXT,
        source=_OURS,
    ),
    Feature(
        name="target_language",
        title="language of the target",
        compute=label.target_language,
        kinds=_RANKED,
        continuous=False,
        source=_OURS,
    ),
    Feature(
        name="query_to_target",
        title="same or another language",
        compute=label.query_to_target,
        kinds=_RANKED,
        continuous=False,
        source=_OURS,
    ),
    Feature(
        name="entity_frequency",
        title="how frequent the entity is",
        compute=label.entity_frequency,
        kinds=_RANKED,
        continuous=False,
        source="Ruder et al. (2021), XTREME-R, section 3 (Mewsli-X); skipped where records do not have it",
    ),
    Feature(
        name="rank",
        title="rank of the first right candidate",
        compute=label.rank_of_gold,
        kinds=_RANKED | _BITEXT,
        continuous=False,
        of="prediction",
        source=_OURS,
    ),
    Feature(
        name="language",
        title="language",
        compute=label.language_field("code"),
        continuous=False,
        words=100,
        source=_PAPER,
    ),
    Feature(
        name="family",
        title="language family",
        compute=label.language_field("family"),
        continuous=False,
        source=_OURS,
    ),
    Feature(
        name="script",
        title="script of the language",
        compute=label.language_field("script"),
        continuous=False,
        source=_OURS,
    ),
    Feature(
        name="item_script",
        title="script of the item",
        compute=script.item_script,
        continuous=False,
        description="Script of most letters of each text of the item.",
        source=_OURS,
    ),
    Feature(
        name="resource",
        title="resource class of the language",
        compute=label.resource,
        continuous=False,
        description="high: a million Wikipedia articles or more; medium: 100,000 or more; low: fewer.",
        source=f"{_OURS} Articles: its Table 7.",
    ),
    Feature(
        name="fertility",
        title="tokens a word",
        compute=vocabulary.fertility,
        of="model",
        source="Rust et al. (2021), arXiv 2012.15613",
    ),
    Feature(
        name="oov",
        title="share of words not in training",
        compute=vocabulary.unknown_words,
        source=_OURS,
    ),
)
