"""The answers of many systems to the items of one parallel task, read from run folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from harness import DataError, Run, UsageError
from harness.analysis import SystemGroup, group_systems
from harness.reporting import counted
from harness_suspects.deviation import Floats

if TYPE_CHECKING:
    from harness.storage import ItemRecord

LEAST_LANGUAGES = 3
"""With two, nothing says in which of them an item is wrong."""
RIGHT = 0.5
"""The least score of an answer that is taken for right, where items are more or less right."""
CHANCE = 0.1
"""Of a right answer to a faulty item, where the task has no chance level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What one item is in one language."""

    fields: Mapping[str, str]
    gold: str

    @property
    def text(self) -> str:
        """All its texts."""
        return " ".join(self.fields.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAnswers:
    """The answers of systems to the same items in several languages."""

    task: str
    title: str
    systems: tuple[str, ...]
    languages: tuple[str, ...]
    ids: tuple[str, ...]
    clusters: tuple[int, ...]
    """By item: the number of its cluster in the source language, or the first one that has the item."""
    source: str
    """The language that the others were translated from; the first one where the task names none."""
    chance: float
    """Of a right answer to a faulty item."""
    right: Floats
    """Shape (systems, languages, items): 1 right, 0 wrong, NaN not answered."""
    items: Mapping[tuple[int, int], Item]
    """By the numbers of language and item."""
    said: Mapping[tuple[int, int, int], str]
    """The answers by the numbers of system, language and item."""
    notes: tuple[str, ...] = ()
    sample: bool = False
    """Whether a run is of the sample data."""


@dataclass(slots=True)
class _Reading:
    items: dict[tuple[int, str], Item] = field(default_factory=dict)
    digests: dict[tuple[int, str], tuple[str, str]] = field(default_factory=dict)
    clusters: dict[str, str] = field(default_factory=dict)
    scores: dict[tuple[int, int, str], float] = field(default_factory=dict)
    said: dict[tuple[int, int, str], str] = field(default_factory=dict)
    differing: int = 0
    unread: int = 0

    def take(self, system: int, language: int, record: ItemRecord, metric: str) -> None:
        """Take the answer of a system; one to other inputs or with other gold than the first system's is counted."""
        key, identity = (language, record.id), (record.inputs_digest, str(record.gold))
        if self.digests.setdefault(key, identity) != identity:
            self.differing += 1
            return
        score = _score(record, metric)
        if key not in self.items:
            self.items[key] = Item(fields=_texts(record.fields), gold=record.gold or "")
            self.clusters.setdefault(record.id, record.cluster or f"\0{record.id}")
        answer = (record.answer or "").strip()
        if record.flags.get("unparsed") or score is None or not answer:
            self.unread += 1
            return
        self.scores[(system, language, record.id)] = float(score >= RIGHT)
        self.said[(system, language, record.id)] = answer


def read_answers(runs: Sequence[Run], *, task: str | None, languages: Sequence[str] = ()) -> TaskAnswers:
    """Return the answers of all systems of the runs to one task.

    Raises:
        UsageError: Where the runs have several tasks and none is named, and where nothing can be said of the task: it
            is not parallel, or was finished in too few languages.
        DataError: For broken records, and where answers have no score by item.
    """
    group = _one_group(runs, task, languages)
    summary = group.systems[0].spec
    source = summary.source or ""
    codes = list(dict.fromkeys(code for system in group.systems for code in system.cells))
    codes = [code for code in codes if code not in summary.unpaired]
    unpaired = [code for system in group.systems for code in system.cells if code in summary.unpaired]
    if not summary.parallel or len(codes) < LEAST_LANGUAGES:
        raise _unsaid(group.title, parallel=summary.parallel, languages=codes)
    codes.sort(key=lambda code: code != source)
    reading = _Reading()
    for number, system in enumerate(group.systems):
        for code, cell in system.cells.items():
            if code in codes:
                for record in system.run.records(cell):
                    reading.take(number, codes.index(code), record, summary.headline[0])
    if not reading.scores:
        raise DataError(
            f"The answers to {group.title!r} have no score by item ({summary.headline[0]}), so none is right or wrong.",
            hint="Suspects need a task whose items are right or wrong, such as labels, choices or spans.",
        )
    notes = [f"Not looked at, as their items are no translations: {' '.join(dict.fromkeys(unpaired))}."]
    counts = {
        "were given to other inputs or with other gold than the first system's": reading.differing,
        "are empty, could not be read, or have no gold": reading.unread,
    }
    left_out = [
        f"Left out: {counted(count, 'answer')} that {reason}." for reason, count in counts.items() if count
    ]
    return _assembled(group, codes, reading, (*(notes if unpaired else []), *left_out))


def _one_group(runs: Sequence[Run], task: str | None, languages: Sequence[str]) -> SystemGroup:
    groups = group_systems(runs, tasks=[task] if task else [], languages=languages, least=1)
    if len(groups) == 1:
        return groups[0]
    titles = ", ".join(repr(group.title) for group in groups)
    raise UsageError(
        f"Suspects are looked for in one task, and the runs have {titles}.",
        hint="Name one with --task, or give only the runs of one version of the items.",
    )


def _unsaid(title: str, *, parallel: bool, languages: Sequence[str]) -> UsageError:
    if not parallel:
        return UsageError(
            f"The items of {title!r} mean something else in every language, so a wrong one looks like a difficult "
            "one.",
            hint="For its data and texts: harness tasks validate TASK --data DIR.",
        )
    return UsageError(
        f"The runs have {title!r} in {len(languages)} parallel languages ({', '.join(languages) or 'none'}); what is "
        f"expected of an item takes at least {LEAST_LANGUAGES}.",
        hint="Give runs of more languages.",
    )


def _assembled(
    group: SystemGroup, codes: Sequence[str], reading: _Reading, notes: tuple[str, ...]
) -> TaskAnswers:
    summary = group.systems[0].spec
    ids = tuple(reading.clusters)
    numbers = {identifier: number for number, identifier in enumerate(ids)}
    clusters = {name: number for number, name in enumerate(dict.fromkeys(reading.clusters.values()))}
    right = np.full((len(group.systems), len(codes), len(ids)), np.nan)
    for (system, language, identifier), score in reading.scores.items():
        right[system, language, numbers[identifier]] = score
    chance = summary.chance or (1 / len(summary.labels) if summary.labels else CHANCE)
    return TaskAnswers(
        task=group.task,
        title=group.title,
        systems=tuple(system.name for system in group.systems),
        languages=tuple(codes),
        ids=ids,
        clusters=tuple(clusters[reading.clusters[identifier]] for identifier in ids),
        source=summary.source if summary.source and summary.source in codes else codes[0],
        chance=chance,
        right=right,
        items={(language, numbers[name]): item for (language, name), item in reading.items.items()},
        said={(*key, numbers[name]): answer for (*key, name), answer in reading.said.items()},  # type: ignore[misc]
        notes=notes,
        sample=any(system.run.results.run.data == "sample" for system in group.systems),
    )


def _score(record: ItemRecord, metric: str) -> float | None:
    """Return how right an answer is; None without gold, and for metrics that score no single item."""
    score = record.scores.get(metric)
    if isinstance(score, int | float) and record.reference is not None:
        return float(score)
    return None if record.correct is None else float(record.correct)


def _texts(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of an item by field; choices get the names of their answers."""
    texts: dict[str, str] = {}
    for name, value in fields.items():
        if isinstance(value, Mapping):
            texts |= {str(key): text for key, text in value.items() if isinstance(text, str)}
        elif name == "choices":
            texts |= dict(zip(fields.get("names", ()), value, strict=False))
        elif name not in {"id", "names"} and isinstance(value, str):
            texts[name] = value
    return texts
