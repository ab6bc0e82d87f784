"""The contents of a treebank, and which of the four tasks it supports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from harness_vyakarana.conllu import Sentence
from harness_vyakarana.labels import agreement_items, case_labels, depth_label, strict_agreement_items

__all__ = ["COVERED", "FEATURES", "TASKS", "Stats", "TaskOffer", "offers", "stats_of", "stats_row"]

FEATURES = ("Gender", "Number", "Case", "Person", "Tense")
TASKS = ("pos", "stdp", "gcm", "sva")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOffer:
    """Whether a treebank supports a task."""

    task: str
    items: int
    offered: bool
    reason: str
    """Why not; empty if it is supported."""


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


def offers(stats: Stats) -> list[TaskOffer]:
    """Return for each task whether the treebank supports it (for languages beyond Hindi and Tamil)."""
    return [
        _offer("pos", stats.tagged, _untagged(stats)),
        _offer("stdp", stats.trees, "" if stats.trees else "no sentence has a tree"),
        _offer("gcm", sum(stats.cases.values()), _rare(stats, ("Case",)) or _uniform(stats.cases)),
        _offer(
            "sva",
            sum(stats.agreement.values()),
            _rare(stats, ("Gender", "Number")) or _uniform(stats.agreement, "no VERB has Gender and Number"),
        ),
    ]


def _offer(task: str, items: int, reason: str) -> TaskOffer:
    return TaskOffer(task=task, items=items, offered=not reason, reason=reason)


def _untagged(stats: Stats) -> str:
    share = stats.tagged / stats.words if stats.words else 0.0
    return (
        "" if share > COVERED else f"{share:.0%} of the words have a UPOS; more than {COVERED:.0%} are needed"
    )


def _rare(stats: Stats, features: Iterable[str]) -> str:
    rare = [f"{name} on {stats.share(name):.0%}" for name in features if stats.share(name) <= COVERED]
    return f"{' and '.join(rare)} of the words; more than {COVERED:.0%} are needed" if rare else ""


def _uniform(labels: Counter[str], none: str = "no item") -> str:
    if not labels:
        return none
    return f"all {labels.total()} items have the label {next(iter(labels))!r}" if len(labels) == 1 else ""


def stats_row(name: str, stats: Stats) -> dict[str, Any]:
    """Return the counts as a plain object; shares in [0, 1]."""
    return {
        "treebank": name,
        "sentences": stats.sentences,
        "words": stats.words,
        "coverage": {feature: stats.share(feature) for feature in FEATURES},
        "genders": dict(stats.genders.most_common()),
        "depths": {str(depth): stats.depths[depth] for depth in sorted(stats.depths)},
        "gcm": dict(stats.cases.most_common()),
        "sva": dict(stats.agreement.most_common()),
        "sva_strict": stats.strict,
        "tasks": {
            offer.task: {"offered": offer.offered, "items": offer.items, "reason": offer.reason}
            for offer in offers(stats)
        },
    }
