"""The features that this package declares: ``features.tsv`` says what they are, this module how they are computed.

The edges that XTREME-R prints in its Tables 25 (XQuAD) and 26 (WikiANN), by language and attribute.

Errata. On the real English XQuAD, whose 1,190 questions they are of, the edges give equal counts for the context length
only: with tokens split at spaces the buckets of questions hold 400, 399, 321 and 70, those of answers 727, 337, 109
and 17. The context edges of Chinese, [3, 8] to (17, 144], are of text split at spaces. Three cells cannot be used as
printed: BLEU_AQ of Hindi, where L ends at .19 and XL begins at .019; that of Arabic, whose XL (.293, .246] is empty;
and that of English, whose XS cannot be read in the copy at hand, where other languages have 0. ``printed.tsv``
gives them as they must be meant (.019; an XL up to 1; 0) and says so. The last bucket of each attribute is open above
and the first one below: values outside of the printed range have a bucket too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from harness import table_rows
from harness.data import Bucket, Feature
from harness_diagnosis import attributes

_SOURCES: Final = {
    "paper": "Ruder et al. (2021), XTREME-R, appendix K",
    "ours": "Ours: XTREME-R (Ruder et al., 2021, section 5) promises such attributes and does not define them.",
}
_question, _context = attributes.length("question"), attributes.length("context")
_first, _second = attributes.input_length(0), attributes.input_length(1)
_COMPUTE: Final[Mapping[str, Callable[..., Any]]] = {
    "aLen": attributes.answer_length,
    "qLen": _question,
    "cLen": _context,
    "aLen/cLen": attributes.ratio(attributes.answer_length, _context),
    "aLen/qLen": attributes.ratio(attributes.answer_length, _question),
    "qLen/cLen": attributes.ratio(_question, _context),
    "BLEU_AQ": attributes.answer_question,
    "BLEU_QC": attributes.question_context,
    "qType": attributes.question_type,
    "sLen": attributes.sentence_length,
    "eDen": attributes.density,
    "tag": attributes.tag,
    "eLen": attributes.span_length,
    "tLen": attributes.characters,
    "rPos": attributes.position,
    "len1": _first,
    "len2": _second,
    "len1/len2": attributes.ratio(_first, _second),
    "overlap": attributes.overlap,
    "label": attributes.gold_label,
    "genre": attributes.tag_of("genre"),
    "latin_side": attributes.latin_side,
    "ask": attributes.cause_or_effect,
    "pLen": _context,
    "choiceLen": attributes.choice_lengths,
    "queryLen": attributes.length("query"),
    "targetLen": attributes.length("target"),
    "target_language": attributes.target_language,
    "query_to_target": attributes.query_to_target,
    "entity_frequency": attributes.entity_frequency,
    "rank": attributes.rank_of_gold,
    "language": attributes.language_field("code"),
    "family": attributes.language_field("family"),
    "script": attributes.language_field("script"),
    "item_script": attributes.item_script,
    "resource": attributes.resource,
    "fertility": attributes.fertility,
    "oov": attributes.unknown_words,
}
TASKS: Final = {"xquad": "25", "wikiann": "26"}
"""The task of each table."""


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


def printed_edges(attribute: str) -> Callable[[str, str], Sequence[Bucket] | None]:
    """Return the function from task and language to the printed edges of an attribute, None where none are printed."""

    def edges(task: str, language: str) -> Sequence[Bucket] | None:
        return _table().get((TASKS.get(task, ""), language, attribute))

    return edges


@cache
def _table() -> dict[tuple[str, str, str], tuple[Bucket, ...]]:
    found: dict[tuple[str, str, str], tuple[Bucket, ...]] = {}
    for row in table_rows("harness_diagnosis", "printed.tsv"):
        key = (row["table"], row["language"], row["attribute"])
        bucket = Bucket(
            name=row["bucket"],
            low=float(row["low"]),
            high=float(row["high"]),
            low_closed=row["low_closed"] == "1",
        )
        found[key] = (*found.get(key, ()), bucket)
    return {key: _open(buckets) for key, buckets in found.items()}


def _open(buckets: tuple[Bucket, ...]) -> tuple[Bucket, ...]:
    """Return the buckets with the first one open below and the last one above."""
    first, last = buckets[0], buckets[-1]
    opened = Bucket(name=first.name, low=float("-inf"), high=first.high, low_closed=True)
    closed = Bucket(name=last.name, low=last.low, high=float("inf"), low_closed=last.low_closed)
    return (opened, *buckets[1:-1], closed)


FEATURES: Final = tuple(map(_feature, table_rows("harness_diagnosis", "features.tsv")))
