"""The suspects of a task, each as a card: the item in three languages, the answers to it, and why it is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from harness.languages import known_languages
from harness_suspects.answers import TaskAnswers
from harness_suspects.signs import LISTED, ItemSign, Signs
from harness_suspects.verdict import Judgement

Basis = Literal["answers", "text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """One item in one language."""

    rank: int
    language: str
    id: str
    basis: Basis
    """What it is listed for: the answers of systems, or its text alone."""
    established: bool
    """Whether the test finds it at its rate of false discoveries; never where suspects are only ranked."""
    chance_of_fault: float
    """As the model has it: 1 minus the local false discovery rate."""
    p: float | None
    q: float | None
    """The adjusted p of its cluster in the language."""
    right: int
    """Systems that are right."""
    asked: int
    """Systems that answered."""
    independent_right: int
    """Families of systems that are right."""
    expected: float
    """How many of the families should be right, by the other languages."""
    elsewhere: float | None
    """Share of right answers to it in the other languages."""
    gold: str
    answers: Mapping[str, str | None]
    texts: Mapping[str, Mapping[str, str]]
    """By language: the fields of the item in the source language, its own and a related one."""
    why: tuple[str, ...]
    cluster_mates: tuple[str, ...]
    """Other items of its cluster that are among the suspects in this language."""


def rank_suspects(answers: TaskAnswers, judgement: Judgement, signs: Signs, *, top: int) -> list[Suspect]:
    """Return the first suspects by answers, then those by their text alone, at most `top` of each."""
    posterior = judgement.deviation.posterior
    scores = np.where(np.isnan(judgement.deviation.p), -1.0, posterior)
    order = np.lexsort((np.nan_to_num(judgement.deviation.p, nan=1.0).ravel(), -scores.ravel()))
    order = order[np.argsort(~judgement.established.ravel()[order], kind="stable")][:top]
    by_answers = [(int(at) // posterior.shape[1], int(at) % posterior.shape[1]) for at in order]
    by_answers = [key for key in by_answers if scores[key] > 0]
    by_text = [
        key
        for key, item_signs in signs.items()
        if key not in by_answers and any(sign.name in LISTED for sign in item_signs)
    ]
    by_text.sort(key=lambda key: (-scores[key], key))
    # Of items with the same text one card is enough: that of the one that systems find most surprising.
    card_of_text = {(key[0], answers.items[key].text): key for key in reversed([*by_answers, *by_text])}
    by_text = [key for key in by_text if card_of_text[(key[0], answers.items[key].text)] == key]
    cards: list[tuple[tuple[int, int], Basis]] = [(key, "answers") for key in by_answers]
    cards += [(key, "text") for key in by_text[:top]]
    suspected = {key for key, _ in cards}
    return [
        _card(answers, judgement, key, basis, number, signs.get(key, ()), suspected)
        for number, (key, basis) in enumerate(cards, start=1)
    ]


def _card(
    answers: TaskAnswers,
    judgement: Judgement,
    key: tuple[int, int],
    basis: Basis,
    rank: int,
    item_signs: Sequence[ItemSign],
    suspected: set[tuple[int, int]],
) -> Suspect:
    language, item = key
    scores = answers.right[:, language, item]
    scores_elsewhere = np.delete(answers.right[:, :, item], language, axis=1)
    p, q = float(judgement.deviation.p[key]), float(judgement.q[key])
    right, asked = int(np.nansum(scores)), int((~np.isnan(scores)).sum())
    expected = float(np.nansum(judgement.expected.chances[:, language, item]))
    elsewhere = float(np.nanmean(scores_elsewhere)) if (~np.isnan(scores_elsewhere)).any() else None
    mates = [
        answers.ids[mate]
        for mate, cluster in enumerate(answers.clusters)
        if mate != item and cluster == answers.clusters[item] and (language, mate) in suspected
    ]
    why = [f"{right} of {asked} systems are right" + _elsewhere_text(elsewhere)] if asked else []
    codes = dict.fromkeys([answers.source, answers.languages[language], _related(answers, key) or ""])
    return Suspect(
        rank=rank,
        language=answers.languages[language],
        id=answers.ids[item],
        basis=basis,
        established=bool(judgement.established[key]),
        chance_of_fault=float(judgement.deviation.posterior[key]),
        p=None if np.isnan(p) else p,
        q=None if np.isnan(q) else q,
        right=right,
        asked=asked,
        independent_right=int(np.nansum(judgement.answers[:, language, item])),
        expected=expected,
        elsewhere=elsewhere,
        gold=answers.items[key].gold,
        answers={name: answers.said.get((at, *key)) for at, name in enumerate(answers.systems)},
        texts={
            code: dict(answers.items[(answers.languages.index(code), item)].fields)
            for code in codes
            if code and (answers.languages.index(code), item) in answers.items
        },
        why=(*why, *(sign.sentence for sign in item_signs)),
        cluster_mates=tuple(mates),
    )


def _elsewhere_text(share: float | None) -> str:
    return "" if share is None else f"; in the other languages {share:.0%} of the answers are"


def _related(answers: TaskAnswers, key: tuple[int, int]) -> str | None:
    """Return the language nearest to that of an item: of its branch, its family or its script, in this order."""
    table, code = known_languages(), answers.languages[key[0]]
    if code not in table:
        return None
    language, closeness, nearest = table.get(code), 0, None
    for number, name in enumerate(answers.languages):
        if name in {code, answers.source} or name not in table or (number, key[1]) not in answers.items:
            continue
        candidate = table.get(name)
        nearness = 4 * bool(language.branch and language.branch == candidate.branch) + 2 * (
            language.family == candidate.family
        )
        nearness += language.script == candidate.script
        if nearness > closeness:
            closeness, nearest = nearness, name
    return nearest


def suspect_rows(
    answers: TaskAnswers, judgement: Judgement, suspects: Sequence[Suspect]
) -> list[dict[str, Any]]:
    """Return one row for the task (its ``row`` is ``task``), then one per suspect; shares are fractions."""
    calibration = judgement.calibration
    head = {
        "row": "task",
        "task": answers.task,
        "title": answers.title,
        "prints": "test" if judgement.tested else "ranking",
        "systems": list(answers.systems),
        "families": [[answers.systems[at] for at in family] for family in judgement.families],
        "languages": list(answers.languages),
        "items": len(answers.ids),
        "power": {str(size): power for size, power in judgement.power.items()},
        "prevalence": judgement.deviation.prevalence,
        "deviation_sd": judgement.deviation.deviation_sd,
        "established": int(judgement.established.sum()),
        "calibration": {**asdict(calibration), "faults": list(calibration.faults)},
        "notes": list(answers.notes),
    }
    return [head, *({"row": "suspect", "task": answers.task, **asdict(suspect)} for suspect in suspects)]
