"""The labels of the four tasks of Vyakarana (Patil et al., MRL 2021, section 4, and its released notebooks).

With counts of them: what a treebank holds, and which of the tasks it supports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.data import Sentence, Token

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
    return max(sentence.arcs_to_root(word) for word in range(1, len(sentence.words) + 1)) - 1


def case_labels(sentence: Sentence) -> list[str | None]:
    """Return the case of every word, None for words without: the sorted values of Case, ``Acc,Gen``."""
    cases = (word.feature("Case") for word in sentence.words)
    return [None if case is None else ",".join(sorted(case.split(","))) for case in cases]


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
    verb_agreement = _agreement(sentence.words[verb])
    for position, (word, head) in enumerate(zip(sentence.words, sentence.heads, strict=False)):
        is_subject = head == verb + 1 and word.deprel.partition(":")[0] == "nsubj"
        if is_subject and word.feature("Case") == "Nom" and _agreement(word) == verb_agreement:
            return position
    return None


def _agreement(word: Token) -> tuple[str | None, str | None]:
    return word.feature("Gender"), word.feature("Number")


def _attractors(words: Sequence[Token], subject: int, verb: int) -> int:
    between = words[min(subject, verb) + 1 : max(subject, verb)]
    subject_agreement = _agreement(words[subject])
    return sum(
        1
        for word in between
        if word.upos in NOMINALS and None not in _agreement(word) and _agreement(word) != subject_agreement
    )


# What a treebank holds ---------------------------------------------------------------------------------

FEATURES = ("Gender", "Number", "Case", "Person", "Tense")
COVERED = 0.20
"""A task is supported if more than this share of the words has its features."""
NO_TAG = "_"


@dataclass(slots=True, kw_only=True)
class Stats:
    """Counts of one treebank file."""

    sentences: int = 0
    words: int = 0
    trees: int = 0
    tagged: int = 0
    """Words with a UPOS."""
    covered: Counter[str] = field(default_factory=Counter)
    """Words with a feature, by its name."""
    genders: Counter[str] = field(default_factory=Counter)
    cases: Counter[str] = field(default_factory=Counter)
    """Items of grammatical case marking by label."""
    depths: Counter[int] = field(default_factory=Counter)
    agreement: Counter[str] = field(default_factory=Counter)
    """Items of subject-verb agreement by label."""
    strict: int = 0
    """The number of verbs with an agreeing nominative subject."""

    def share(self, feature: str) -> float:
        """Return the share of the words that have a feature, in [0, 1]."""
        return self.covered[feature] / self.words if self.words else 0.0

    def tasks(self) -> list[tuple[str, int, str]]:
        """Return (task, items, reason why the treebank does not support it), the reason empty if it does."""
        tagged = self.tagged / self.words if self.words else 0.0
        untagged = f"{tagged:.0%} of the words have a UPOS; more than {COVERED:.0%} are needed"
        cases = self._rare("Case") or _uniform(self.cases, "no item")
        verbs = self._rare("Gender", "Number") or _uniform(self.agreement, "no VERB has Gender and Number")
        return [
            ("pos", self.tagged, "" if tagged > COVERED else untagged),
            ("stdp", self.trees, "" if self.trees else "no sentence has a tree"),
            ("gcm", self.cases.total(), cases),
            ("sva", self.agreement.total(), verbs),
        ]

    def _rare(self, *features: str) -> str:
        rare = [f"{name} on {self.share(name):.0%}" for name in features if self.share(name) <= COVERED]
        return f"{' and '.join(rare)} of the words; more than {COVERED:.0%} are needed" if rare else ""

    def row(self, name: str) -> dict[str, Any]:
        """Return the counts as a plain object; shares in [0, 1]."""
        return {
            "treebank": name,
            "sentences": self.sentences,
            "words": self.words,
            "coverage": {feature: self.share(feature) for feature in FEATURES},
            "genders": dict(self.genders.most_common()),
            "depths": {str(depth): self.depths[depth] for depth in sorted(self.depths)},
            "gcm": dict(self.cases.most_common()),
            "sva": dict(self.agreement.most_common()),
            "sva_strict": self.strict,
            "tasks": {
                task: {"offered": not reason, "items": items, "reason": reason}
                for task, items, reason in self.tasks()
            },
        }


def _uniform(labels: Counter[str], none: str) -> str:
    if not labels:
        return none
    return f"all {labels.total()} items have the label {next(iter(labels))!r}" if len(labels) == 1 else ""


def stats_of(sentences: Iterable[Sentence]) -> Stats:
    """Return the counts of a treebank, which is read once."""
    stats = Stats()
    for sentence in sentences:
        stats.sentences += 1
        stats.words += len(sentence.words)
        if sentence.heads:
            stats.trees += 1
            stats.depths[depth_label(sentence)] += 1
            stats.strict += len(strict_agreement_items(sentence))
        for word in sentence.words:
            features = word.features
            stats.tagged += word.upos != NO_TAG
            stats.covered.update(name for name in FEATURES if name in features)
            if "Gender" in features:
                stats.genders[features["Gender"]] += 1
        stats.cases.update(label for label in case_labels(sentence) if label is not None)
        stats.agreement.update(item.label for item in agreement_items(sentence))
    return stats
