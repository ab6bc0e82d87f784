"""Items of parallel tasks that one system has right in one language and wrong in another one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.analysis.systems import System, SystemGroup, group_systems
from harness.errors import UsageError
from harness.progress import show_step
from harness.statistics import draw_codes, mcnemar, paired_contrasts, seed_of, sign_flip_p
from harness.storage.records import ItemRecord
from harness.storage.run_folder import Run

__all__ = ["LanguagePair", "SplitItem", "language_pairs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitItem:
    """An item that is right in one of the two languages only."""

    language: ItemRecord
    against: ItemRecord
    is_lost: bool
    """Whether it is the language that has it wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguagePair:
    """The items of one task that a system answered in both languages."""

    task: str
    """With its view."""
    kind: str
    system: str
    language: str
    against: str
    both: int
    """Right in both."""
    lost: int
    """Right in the other language only."""
    gained: int
    """Right in the language only."""
    neither: int
    difference: float
    """The share that is right in the language minus that in the other one."""
    ci: tuple[float, float] | None
    ci_method: str | None
    p: float
    test: str
    """McNemar's exact test; where items share clusters, random signs of whole clusters."""
    items: tuple[SplitItem, ...]
    """In the order of the language's records."""

    def rows(self) -> list[dict[str, Any]]:
        """Return one row with the counts, then one for every item that is right in one language only."""
        head = {"task": self.task, "system": self.system, "language": self.language, "against": self.against}
        counts = {name: getattr(self, name) for name in ("both", "lost", "gained", "neither")}
        tested = {name: getattr(self, name) for name in ("difference", "ci", "ci_method", "p", "test")}
        found: list[dict[str, Any]] = [{"kind": "language_pair", **head, **counts, **tested}]
        for item in self.items:
            sides = {"language": item.language, "against": item.against}
            found.append(
                {
                    "kind": "split_item",
                    **head,
                    "id": item.language.id,
                    "right_in": self.against if item.is_lost else self.language,
                    "inputs": {name: dict(record.fields) for name, record in sides.items()},
                    "gold": {name: record.gold for name, record in sides.items()},
                    "answer": {name: record.answer for name, record in sides.items()},
                }
            )
        return found


def language_pairs(
    runs: Sequence[Run], languages: Sequence[str], against: str, *, tasks: Sequence[str] = ()
) -> tuple[list[LanguagePair], list[str]]:
    """Return the languages of every system against another one, and notes on what was skipped.

    Items count where both languages have the id and it is known whether the answer is right: a full score, or the gold
    answer for set-level metrics.

    Args:
        runs: The runs.
        languages: Codes; none takes all that a task has.
        against: The code of the other language, such as ``en``.
        tasks: Names or globs to restrict it to; none takes all.

    Raises:
        UsageError: For unknown names, and where no parallel task has both languages.
    """
    named = [*languages, against] if languages else []
    found: list[LanguagePair] = []
    notes: list[str] = []
    for group in group_systems(runs, tasks=tasks, languages=named, least=1):
        for system in group.systems:
            codes = [code for code in system.cells if code != against]
            reason = _reason(system, codes, against)
            if reason is not None:
                notes.append(f"{group.title}, {system.name}: {reason}.")
                continue
            show_step(f"Languages: {group.title}, {system.name}")
            other = {record.id: record for record in system.run.records(system.cells[against])}
            for code in codes:
                own = _pair(group, system, code, against, other)
                if own is None:
                    notes.append(
                        f"{group.title} {code}: no item that is right or wrong has its id in {against} too."
                    )
                else:
                    found.append(own)
    if not found:
        raise UsageError(
            f"No parallel task has items in {' or '.join(languages) or 'a language'} and {against}. "
            f"{' '.join(notes)}".strip(),
            hint="Evaluate the task in both languages in one run.",
        )
    return found, notes


def _reason(system: System, codes: Sequence[str], against: str) -> str | None:
    """Return why the languages of a system cannot be paired."""
    if not system.spec.parallel or against in system.spec.unpaired:
        return "not parallel, so an id is another item in every language"
    if against not in system.cells:
        return f"not finished in {against}"
    return None if codes else f"finished in {against} only"


def _pair(
    group: SystemGroup, system: System, code: str, against: str, other: dict[str, ItemRecord]
) -> LanguagePair | None:
    if code in system.spec.unpaired:
        return None
    both = list(_known_items(system.run.records(system.cells[code]), other))
    if not both:
        return None
    marks = np.array([[own.correct, pair.correct] for own, pair in both], dtype=np.float64).T
    count, rights = len(both), [int(np.sum(marks.sum(axis=0) == right)) for right in (0, 2)]
    lost, gained = (int(np.sum(marks[0] - marks[1] == sign)) for sign in (-1, 1))
    ids = [own.id for own, _ in both]
    parts = [
        (language, ids, [pair[side].cluster for pair in both])
        for side, language in enumerate((code, against))
    ]
    codes = draw_codes(parts, linked=True)
    strata = np.repeat(np.arange(2), count)
    [found] = paired_contrasts(marks.reshape(1, -1), strata, codes, np.array([[1.0, -1.0]]))
    ends = found.interval
    is_clustered = int(codes.max()) + 1 < count
    seed = seed_of(group.title, code, against)
    p = sign_flip_p(marks[0] - marks[1], codes[:count], seed=seed) if is_clustered else mcnemar(lost, gained)
    return LanguagePair(
        task=group.title,
        kind=system.spec.kind,
        system=system.name,
        language=code,
        against=against,
        both=rights[1],
        lost=lost,
        gained=gained,
        neither=rights[0],
        difference=found.value,
        ci=None if ends.low is None or ends.high is None else (ends.low, ends.high),
        ci_method=ends.method,
        p=p,
        test="random signs of clusters" if is_clustered else "McNemar, exact",
        items=tuple(
            SplitItem(language=own, against=pair, is_lost=bool(pair.correct))
            for own, pair in both
            if own.correct != pair.correct
        ),
    )


def _known_items(
    records: Iterator[ItemRecord], other: dict[str, ItemRecord]
) -> Iterator[tuple[ItemRecord, ItemRecord]]:
    for record in records:
        pair = other.get(record.id)
        if pair is not None and record.correct is not None and pair.correct is not None:
            yield record, pair
