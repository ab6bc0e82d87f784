"""The features that this package declares: ``features.tsv`` says what they are, this module how they are computed."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any, Final

from harness.data import Feature
from harness_diagnosis import bleu, label, length, question, script, span, vocabulary
from harness_diagnosis.paper import printed_edges

_SOURCES: Final = {
    "paper": "Ruder et al. (2021), XTREME-R, appendix K",
    "ours": "Ours: XTREME-R (Ruder et al., 2021, section 5) promises such attributes and does not define them.",
}
_question, _context = length.length("question"), length.length("context")
_first, _second = length.input_length(0), length.input_length(1)
_COMPUTE: Final[Mapping[str, Callable[..., Any]]] = {
    "aLen": length.answer_length,
    "qLen": _question,
    "cLen": _context,
    "aLen/cLen": length.ratio(length.answer_length, _context),
    "aLen/qLen": length.ratio(length.answer_length, _question),
    "qLen/cLen": length.ratio(_question, _context),
    "BLEU_AQ": bleu.answer_question,
    "BLEU_QC": bleu.question_context,
    "qType": question.question_type,
    "sLen": span.sentence_length,
    "eDen": span.density,
    "tag": span.tag,
    "eLen": span.span_length,
    "tLen": span.characters,
    "rPos": span.position,
    "len1": _first,
    "len2": _second,
    "len1/len2": length.ratio(_first, _second),
    "overlap": length.overlap,
    "label": label.gold_label,
    "genre": label.tag_of("genre"),
    "latin_side": script.latin_side,
    "ask": label.cause_or_effect,
    "pLen": _context,
    "choiceLen": length.choice_lengths,
    "queryLen": length.length("query"),
    "targetLen": length.length("target"),
    "target_language": label.target_language,
    "query_to_target": label.query_to_target,
    "entity_frequency": label.entity_frequency,
    "rank": label.rank_of_gold,
    "language": label.language_field("code"),
    "family": label.language_field("family"),
    "script": label.language_field("script"),
    "item_script": script.item_script,
    "resource": label.resource,
    "fertility": vocabulary.fertility,
    "oov": vocabulary.unknown_words,
}


def _feature(row: Mapping[str, Any]) -> Feature:
    return Feature(
        name=row["name"],
        title=row["title"],
        compute=_COMPUTE[row["name"]],
        kinds=frozenset(row["kinds"].split()) or None,
        level=row["level"],
        continuous=bool(row["numbers"]),
        of=row["of"],
        description=row["description"],
        source=_SOURCES.get(row["source"], row["source"]),
        published=printed_edges(row["name"]) if row["printed"] else None,
        ends=(row["lowest"], row["highest"]) if row["lowest"] else None,
        words=int(row["words"]) if row["words"] else None,
    )


_TABLE = resources.files(__package__).joinpath("features.tsv").read_text(encoding="utf-8")
FEATURES: Final = tuple(
    map(_feature, csv.DictReader(_TABLE.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
)
