"""The labels of the four tasks of Vyakarana (Patil et al., MRL 2021, section 4, and its released notebooks)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness_vyakarana import tree
from harness_vyakarana.conllu import Sentence, Token, values_of

__all__ = [
    "AGREEMENT_LABELS",
    "AgreementItem",
    "agreement_items",
    "case_labels",
    "depth_label",
    "pos_labels",
    "strict_agreement_items",
]

AGREEMENT_LABELS = ("Sing-Masc", "Sing-Fem", "Plur-Masc", "other")
"""The classes 0 to 3 of the released notebook on subject-verb agreement."""
NOMINALS = frozenset({"NOUN", "PROPN", "PRON"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementItem:
    """A verb whose gender and number are to be predicted."""

    word: int
    """0-based position among the words."""
    label: str
    """One of `AGREEMENT_LABELS`."""
    subject: int | None = None
    """0-based position of the agreeing subject; only in strict items."""
    attractors: int = 0
    """Nominals between subject and verb with another gender or number than the subject."""


def pos_labels(sentence: Sentence) -> list[str]:
    """Return the UPOS of every syntactic word (the notebook also counts the ranges, as a class ``None``)."""
    return [word.upos for word in sentence.words]


def depth_label(sentence: Sentence) -> int:
    """Return the depth of the tree: edges of the longest path from the root word to a leaf, punctuation included.

    Raises `ValueError` for a sentence without a tree.
    """
    if not sentence.heads:
        raise ValueError(f"Sentence {sentence.sent_id!r} has no tree, so it has no depth.")
    return tree.depth(sentence.heads)


def case_labels(sentence: Sentence) -> list[str | None]:
    """Return the case of every word, None for words without: the sorted values of Case, ``Acc,Gen``."""
    cases = (word.feature("Case") for word in sentence.words)
    return [None if case is None else ",".join(values_of(case)) for case in cases]


def agreement_items(sentence: Sentence) -> list[AgreementItem]:
    """Return the items of subject-verb agreement as published: every VERB with both Gender and Number.

    A subject is not required; see `strict_agreement_items`.
    """
    return [
        AgreementItem(word=position, label=label)
        for position, word in enumerate(sentence.words)
        if (label := _agreement_label(word)) is not None
    ]


def strict_agreement_items(sentence: Sentence) -> list[AgreementItem]:
    """Return the items whose verb has a nominative subject (``nsubj``) that agrees in Gender and Number.

    Attractors are counted as by Linzen, Dupoux and Goldberg (TACL 2016), for both features.
    """
    return [
        AgreementItem(
            word=item.word,
            label=item.label,
            subject=subject,
            attractors=_attractors(sentence.words, subject, item.word),
        )
        for item in agreement_items(sentence)
        if (subject := _subject(sentence, item.word)) is not None
    ]


def _agreement_label(word: Token) -> str | None:
    if word.upos != "VERB":
        return None
    gender, number = word.feature("Gender"), word.feature("Number")
    if gender is None or number is None:
        return None
    label = f"{number}-{gender}"
    return label if label in AGREEMENT_LABELS else AGREEMENT_LABELS[-1]


def _subject(sentence: Sentence, verb: int) -> int | None:
    """Return the first nominative subject that agrees with the verb."""
    wanted = _agreement(sentence.words[verb])
    for position, (word, head) in enumerate(zip(sentence.words, sentence.heads, strict=False)):
        is_subject = head == verb + 1 and word.deprel.partition(":")[0] == "nsubj"
        if is_subject and word.feature("Case") == "Nom" and _agreement(word) == wanted:
            return position
    return None


def _agreement(word: Token) -> tuple[str | None, str | None]:
    return word.feature("Gender"), word.feature("Number")


def _attractors(words: Sequence[Token], subject: int, verb: int) -> int:
    between = words[min(subject, verb) + 1 : max(subject, verb)]
    wanted = _agreement(words[subject])
    return sum(
        1
        for word in between
        if word.upos in NOMINALS and None not in _agreement(word) and _agreement(word) != wanted
    )
