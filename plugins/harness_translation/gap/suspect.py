"""Items with a suspected human translation: models get them right in the source language, but wrong in it.

A system (a model with its training, over all translators) and a seed are one voter. Its vote for an item is the
score in the source language, times the mean score of the machine-made versions TE and BT, times 1 minus the score of
the human text ZS. For right and wrong answers it is the share of machine-made versions that are right if the
source is right and the human text wrong, else 0. The suspicion is the mean vote. Ties are ordered by how
often TT, the human text translated back, is wrong too, which speaks against the text and not against the model's
knowledge of the language. Compare Table 8 of "Translation Errors ..." (EACL 2024), which was found by hand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from harness import UsageError
from harness.analysis.agreement import answer_of
from harness_translation.gap.items import (
    LanguageItems,
    keyword_fields,
    read_chosen,
    read_languages,
    translated_texts,
)
from harness_translation.gap.system import ZS, Condition, GapSystem, command_for

__all__ = ["Suspect", "SuspectList", "Version", "find_suspects"]

Floats = npt.NDArray[np.float64]
MACHINE: Final = ("te", "bt")
SOURCE_TITLE: Final = "source"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """The texts and the answers of the models for one version of an item."""

    title: str
    """``source``, ``zs``, ``bt (nllb)``."""
    texts: tuple[str, ...]
    score: float
    """Mean score over the voters that read it, in [0, 1]."""
    answers: Mapping[str, int]
    """The number of voters by answer (as JSON); the most frequent first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """An item and its suspicion."""

    id: str
    gold: str
    """As JSON."""
    suspicion: float
    votes: int
    """The number of voters whose vote is above zero."""
    tt_wrong: float | None
    """1 minus the mean score of TT; None if no voter read it."""
    versions: tuple[Version, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspectList:
    """The suspects of one task and language, most suspicious first."""

    task: str
    language: str
    metric: str
    items: int
    """The number of ranked items."""
    suspected: int
    """The number of items with a suspicion above zero."""
    voters: tuple[str, ...]
    suspects: tuple[Suspect, ...]
    notes: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Ballot:
    """The votes on the items of one language, added up."""

    ids: Sequence[str]
    votes: list[Floats]
    tt: list[Floats]
    voters: list[str]
    systems: list[GapSystem]
    scores: dict[str, list[Floats]]
    """By title of a version: the score of every item by each voter."""
    machine: bool = True


def find_suspects(
    systems: Sequence[GapSystem], metric: str | None, *, top: int, common: bool = False
) -> list[SuspectList]:
    """Return the most suspicious items of every task and language.

    Args:
        systems: The systems of `harness_translation.gap.system.gap_systems`.
        metric: A metric with item scores; default: the first metric of the task.
        top: Items per task and language; items without suspicion are skipped.
        common: Whether items that some system does not have are skipped; else they are an error.

    Raises:
        UsageError: If no system has human text and its source, or items differ between systems.
        DataError: If records are missing or broken.
    """
    ballots: dict[tuple[str, str, str], _Ballot] = {}
    unusable = []
    for system in systems:
        name = metric or system.spec["headline"][0]
        reason = _unusable(system)
        if reason:
            unusable.append(reason)
            continue
        for part in read_languages(system, name, common=common):
            if part.language != system.source and part.source is not None and ZS in part.scores:
                _cast(ballots, system, part, name, common=common)
    if not ballots:
        advice = f" {unusable[0]}" if unusable else ""
        raise UsageError(
            f"No item can be suspected: no system has items in both human text and source.{advice}"
        )
    return [_listed(key, ballot, top) for key, ballot in ballots.items()]


def _unusable(system: GapSystem) -> str:
    if not system.spec.get("parallel"):
        return f"The items of {system.task!r} are not the same in different languages."
    if ZS not in system.cells.get(system.source, {}):
        return f"Make the source language's with: {command_for(system, [system.source], ['zs'], '')}"
    return ""


def _cast(
    ballots: dict[tuple[str, str, str], _Ballot],
    system: GapSystem,
    part: LanguageItems,
    metric: str,
    *,
    common: bool,
) -> None:
    """Add the votes of a system, one per seed."""
    key = (system.task, part.language, metric)
    ballot = ballots.get(key)
    if ballot is None:
        ballot = ballots[key] = _Ballot(ids=part.ids, votes=[], tt=[], voters=[], systems=[], scores={})
    rows = _aligned(ballot, part, key, common=common)
    assert part.source is not None
    human, source = part.scores[ZS], part.source
    machine = [scores for condition, scores in part.scores.items() if condition.variant in MACHINE]
    back = [scores for condition, scores in part.scores.items() if condition.variant == "tt"]
    ballot.machine &= bool(machine)
    made = np.mean(machine, axis=0) if machine else np.ones_like(human)
    ballot.votes += list((source * made * (1 - human))[:, rows])
    if back:
        ballot.tt += list((1 - np.mean(back, axis=0))[:, rows])
    ballot.voters += [f"{system.title}, seed {seed}" for seed in system.seeds]
    ballot.systems.append(system)
    for title, scores in {
        SOURCE_TITLE: source,
        **{each.title: own for each, own in part.scores.items()},
    }.items():
        ballot.scores.setdefault(title, []).extend(scores[:, rows])


def _aligned(ballot: _Ballot, part: LanguageItems, key: tuple[str, str, str], *, common: bool) -> list[int]:
    """Return the places of the ballot's items in a further system's; narrows the ballot where `common` allows it."""
    place = {name: row for row, name in enumerate(part.ids)}
    lost = [name for name in ballot.ids if name not in place]
    more = len(part.ids) - (len(ballot.ids) - len(lost))
    if (lost or more) and not common:
        raise UsageError(
            f"The items of {key[0]!r} in {key[1]!r} are not the same for all systems: {len(lost)} are missing, "
            f"{more} are new.",
            hint="Use the items that all systems have with --common.",
        )
    if lost:
        kept = [row for row, name in enumerate(ballot.ids) if name in place]
        ballot.ids = [ballot.ids[row] for row in kept]
        ballot.votes = [own[kept] for own in ballot.votes]
        ballot.tt = [own[kept] for own in ballot.tt]
        ballot.scores = {title: [own[kept] for own in rows] for title, rows in ballot.scores.items()}
    return [place[name] for name in ballot.ids]


def _listed(key: tuple[str, str, str], ballot: _Ballot, top: int) -> SuspectList:
    votes = np.array(ballot.votes)
    suspicion = votes.mean(axis=0)
    back = np.mean(ballot.tt, axis=0) if ballot.tt else None
    order = sorted(
        np.flatnonzero(suspicion > 0).tolist(),
        key=lambda row: (
            -round(float(suspicion[row]), 12),
            0.0 if back is None else -round(float(back[row]), 12),
            row,
        ),
    )
    chosen = order[:top]
    shown = _versions(key[1], ballot, [ballot.ids[row] for row in chosen])
    suspects = [
        Suspect(
            id=ballot.ids[row],
            gold=shown[ballot.ids[row]][0],
            suspicion=float(suspicion[row]),
            votes=int((votes[:, row] > 0).sum()),
            tt_wrong=None if back is None else float(back[row]),
            versions=tuple(
                Version(title=title, texts=texts, score=_score(ballot, title, row), answers=answers)
                for title, (texts, answers) in shown[ballot.ids[row]][1].items()
            ),
        )
        for row in chosen
    ]
    notes = (
        ()
        if ballot.machine
        else ("Some system has neither TE nor BT: for it the source language alone counts.",)
    )
    return SuspectList(
        task=key[0],
        language=key[1],
        metric=key[2],
        items=len(ballot.ids),
        suspected=len(order),
        voters=tuple(ballot.voters),
        suspects=tuple(suspects),
        notes=notes,
    )


def _score(ballot: _Ballot, title: str, row: int) -> float:
    return float(np.mean([scores[row] for scores in ballot.scores[title]]))


Shown = dict[str, tuple[tuple[str, ...], dict[str, int]]]


def _versions(language: str, ballot: _Ballot, ids: Sequence[str]) -> dict[str, tuple[str, Shown]]:
    """Return, by item, its gold answer and, by title of a version, its texts and the counts of answers."""
    wanted = set(ids)
    found: dict[str, tuple[str, Shown]] = {name: ("null", {}) for name in ids}
    for system in ballot.systems:
        cells: list[tuple[str, Mapping[int, Any]]] = [(SOURCE_TITLE, system.cells[system.source][ZS])]
        cells += [
            (condition.title, own) for condition, own in sorted(system.cells[language].items(), key=_order)
        ]
        for title, by_seed in cells:
            for seed in system.seeds:
                _gather(found, system, title, by_seed[seed], wanted)
    return found


def _order(pair: tuple[Condition, Any]) -> tuple[bool, Condition]:
    return (pair[0] != ZS, pair[0])


def _gather(
    found: dict[str, tuple[str, Shown]],
    system: GapSystem,
    title: str,
    place: tuple[Any, Mapping[str, Any]],
    wanted: set[str],
) -> None:
    run, cell = place
    words = keyword_fields(run, system.task)
    for record in read_chosen(run, cell, wanted):
        gold, shown = found[record.id]
        if title not in shown:
            shown[title] = (tuple(translated_texts(record.fields, system.spec["kind"], words)), {})
        answer = answer_of(record) or "unreadable"
        counts = shown[title][1]
        counts[answer] = counts.get(answer, 0) + 1
        if gold == "null" or title == "zs":
            found[record.id] = (_json(record.reference), shown)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
