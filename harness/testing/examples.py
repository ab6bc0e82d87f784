"""Small training sets and unusual texts in many scripts, written for the contract suites.

They show that the machinery of an adapter works, and say nothing about its quality.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from types import MappingProxyType

from harness.data.records import (
    Answer,
    ClassificationExample,
    Example,
    MultipleChoiceExample,
    RetrievalPair,
    SpanExample,
    TaggedSentence,
    TextPair,
)
from harness.models.capabilities import Head, HeadSpec

_DATA = tomllib.loads(
    resources.files("harness.testing").joinpath("examples.toml").read_text(encoding="utf-8")
)

SENTENCES: tuple[str, ...] = tuple(_DATA["sentences"])
"""Plain sentences of different lengths in seven scripts."""
UNUSUAL_TEXTS: Mapping[str, str] = MappingProxyType({**_DATA["unusual"], "very long": "word слово 词 " * 300})
"""Texts that break careless adapters, by what is unusual about them."""


def head_spec(head: Head) -> HeadSpec:
    """Return the specification of a head that fits `training_examples`."""
    if head is Head.CLASSIFICATION:
        return HeadSpec(head=head, labels=("no", "yes"), inputs=("premise", "hypothesis"))
    if head is Head.TAGGING:
        return HeadSpec(
            head=head, labels=tuple(sorted({tag for line in _DATA["tagged"] for tag in _tags(line)}))
        )
    return HeadSpec(head=head)


def training_examples(head: Head) -> Sequence[Example]:
    """Return labelled examples for a head."""
    match head:
        case Head.CLASSIFICATION:
            return [
                ClassificationExample(
                    id=f"pair-{number}", inputs={"premise": premise, "hypothesis": hypothesis}, label=label
                )
                for number, (premise, hypothesis, label) in enumerate(_DATA["pairs"])
            ]
        case Head.MULTIPLE_CHOICE:
            return [
                MultipleChoiceExample(
                    id=f"choice-{number}", context=context, choices=tuple(choices), label=label
                )
                for number, (context, choices, label) in enumerate(_DATA["choices"])
            ]
        case Head.TAGGING:
            return [
                TaggedSentence(id=f"sentence-{number}", tokens=_tokens(line), tags=_tags(line))
                for number, line in enumerate(_DATA["tagged"])
            ]
        case Head.SPAN_EXTRACTION:
            return [
                SpanExample(
                    id=f"question-{number}",
                    question=question,
                    context=context,
                    answers=(Answer(text=answer, start=context.index(answer)),),
                )
                for number, (question, context, answer) in enumerate(_DATA["questions"])
            ]
        case Head.DUAL_ENCODER:
            return [
                RetrievalPair(id=f"retrieval-{number}", query=question, passage=context)
                for number, (question, context, _) in enumerate(_DATA["questions"])
            ]
        case Head.TEXT_TO_TEXT:
            return [
                TextPair(
                    id=f"text-{number}", source=f"question: {question} context: {context}", target=answer
                )
                for number, (question, context, answer) in enumerate(_DATA["questions"])
            ]


def _tokens(line: str) -> tuple[str, ...]:
    return tuple(item.rpartition("/")[0] for item in line.split())


def _tags(line: str) -> tuple[str, ...]:
    return tuple(item.rpartition("/")[2] for item in line.split())
