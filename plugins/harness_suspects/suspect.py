"""The suspects of a task as cards, an item in three languages with the answers to it, and the report on them.

The report says whether it tests or ranks, and how far the model can be believed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from harness.data import draw
from harness.languages import known_languages
from harness.reporting import (
    SAMPLE_WARNING,
    Block,
    Field,
    Note,
    Notes,
    Report,
    Section,
    Table,
    counted,
    item_text,
    p_text,
    percent,
    rows_of,
)
from harness_suspects.answers import TaskAnswers
from harness_suspects.signs import LISTED, ItemSign, Signs
from harness_suspects.verdict import FAULTY, LEAST_POWER, RATE, Judgement

Basis = Literal["answers", "text"]
CARDS = 10
"""Cards of the terminal; the page and the JSON file have all."""
FEWEST = 3
"""Families below which harmless deviations look like faults."""
LEGEND = (
    "Right: independent systems that are right, and how many should be by the other languages. Fault: the model's "
    "chance that the item is faulty. p: of so few right answers to a harmless item; q: adjusted for their number."
)


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


def sheet_items(
    answers: TaskAnswers, suspects: Sequence[Suspect], *, controls: int, seed: int
) -> Iterator[dict[str, Any]]:
    """Yield the rows that ``harness annotate export --items`` reads.

    In every language suspects are a stratum that is whole, and the others one of which some are drawn, so that the
    report on the labels has unbiased shares for all items of the language.

    Args:
        answers: All answers.
        suspects: The suspects.
        controls: Others per suspect; as many as there are, where there are fewer.
        seed: Of the draw.
    """
    for language, code in enumerate(answers.languages):
        suspected = [suspect.id for suspect in suspects if suspect.language == code]
        if not suspected:
            continue
        remaining = [
            name
            for number, name in enumerate(answers.ids)
            if (language, number) in answers.items and name not in suspected
        ]
        count = min(controls * len(suspected), len(remaining))
        drawn = draw(remaining, count, seed=seed, task=answers.task, language=code)
        row = {"task": answers.task, "language": code}
        yield from ({**row, "id": name, "stratum": "suspect", "weight": 1.0} for name in suspected)
        weight = len(remaining) / count if count else 0.0
        yield from ({**row, "id": remaining[index], "stratum": "other", "weight": weight} for index in drawn)


def suspect_report(
    answers: TaskAnswers, judgement: Judgement, suspects: Sequence[Suspect], remarks: Sequence[str]
) -> Report:
    """Return the page of all suspects."""
    title = f"Suspects of {answers.title}"
    cards = [block for suspect in suspects for block in card_blocks(suspect)]
    return Report(
        title=title,
        sections=[
            Section(name="suspects", title="Items", blocks=_summary(answers, judgement, suspects, remarks)),
            Section(name="cards", title="Cards", blocks=cards),
        ],
    )


def suspect_blocks(
    answers: TaskAnswers, judgement: Judgement, suspects: Sequence[Suspect], remarks: Sequence[str]
) -> list[Block]:
    """Return the blocks for a terminal: the summary, and the cards of the first suspects."""
    cards = suspects[:CARDS]
    hidden = len(suspects) - len(cards)
    more = [Note(f"{counted(hidden, 'more card')}: --html FILE or --json FILE.")] if hidden else []
    return [
        Note(f"Suspects of {answers.title}", "heading"),
        *_summary(answers, judgement, suspects, remarks),
        *(block for suspect in cards for block in card_blocks(suspect)),
        *more,
    ]


def _summary(
    answers: TaskAnswers, judgement: Judgement, suspects: Sequence[Suspect], remarks: Sequence[str]
) -> list[Block]:
    return [
        *([Note(SAMPLE_WARNING, "warning")] if answers.sample else []),
        Note(verdict_sentence(judgement), "lead"),
        *([_table(suspects)] if suspects else [Note("No item is suspect.")]),
        Notes([*_believed(answers, judgement), *answers.notes, *remarks]),
        Note(LEGEND, "note"),
    ]


def verdict_sentence(judgement: Judgement) -> str:
    """Return whether this is a test or a ranking, and why."""
    count, power = len(judgement.families), judgement.power[len(judgement.families)]
    faults = f"of faulty items, if {FAULTY:.0%} are"
    if judgement.tested:
        return (
            f"Test: {counted(int(judgement.established.sum()), 'item')} established with {RATE:.0%} false discoveries. "
            f"{_independent(count)} would find {power:.0%} {faults}; the others are ranked."
        )
    reasons = [
        f"{_independent(count)} would find {power:.0%} {faults}, in a test with {RATE:.0%} false discoveries"
    ]
    reasons = [] if power >= LEAST_POWER else reasons
    enough = next((size for size, share in judgement.power.items() if share >= LEAST_POWER), None)
    wanted = f"; {enough} would find {judgement.power[enough]:.0%}" if enough and power < LEAST_POWER else ""
    return f"Ranking, not a test: {'; '.join([*reasons, *judgement.calibration.faults])}{wanted}."


def _independent(count: int) -> str:
    return counted(count, "independent system")


def _believed(answers: TaskAnswers, judgement: Judgement) -> Iterator[str]:
    """Yield how far the model fits."""
    for family in judgement.families:
        if len(family) > 1:
            names = ", ".join(answers.systems[at] for at in family)
            yield f"These are wrong on the same items and count as one system: {names}."
    if len(judgement.families) < FEWEST:
        yield (
            "The chances of a fault are rough: with so few systems, what is harder to say in one language looks like a "
            "fault, and how common both are is assumed."
        )
    fit = judgement.calibration
    if fit.correlation is not None and fit.permuted_correlation is not None:
        yield (
            f"Wrong answers of two systems to the same item in the same language correlate at {fit.correlation:.2f} "
            f"beyond what is expected, and at {fit.permuted_correlation:.2f} with permuted answers."
        )
    yield (
        f"Fit: {percent(fit.share_below_half)} % of the p values are below 0.5 (50 if the model fits). With permuted "
        f"answers {percent(fit.permuted_below_005)} % are below 0.05 (at most 5), and "
        f"{counted(fit.permuted_established, 'item')} would be established."
    )
    yield (
        f"Estimated: {percent(judgement.deviation.prevalence)} % of the items are faulty; harmless ones deviate by "
        f"{judgement.deviation.deviation_sd:.1f} logits (standard deviation)."
    )


def _table(suspects: Sequence[Suspect]) -> Table:
    return Table(
        title="Suspects",
        untitled=True,
        corner="",
        heads=("item", "right", "elsewhere", "fault", "p", "q", "why"),
        rows=rows_of(
            (
                f"{suspect.rank}",
                f"{suspect.language} {suspect.id}",
                f"{suspect.independent_right} ({suspect.expected:.1f})",
                percent(suspect.elsewhere),
                percent(suspect.chance_of_fault),
                p_text(suspect.p),
                Field(text=p_text(suspect.q), style="good" if suspect.established else ""),
                _short(suspect),
            )
            for suspect in suspects
        ),
        words=frozenset({0, 6}),
        folding=True,
    )


def _short(suspect: Suspect) -> str:
    reasons = suspect.why[1:] if suspect.asked else suspect.why
    return "; ".join(reasons) or "answers alone"


def card_blocks(suspect: Suspect) -> list[Block]:
    """Return one suspect: the item in its languages, the gold answer, the answers to it, and why it is listed."""
    answers: dict[str, list[str]] = {}
    for system, answer in suspect.answers.items():
        if answer is not None:
            answers.setdefault(answer, []).append(system)
    texts = [
        (f"{code} {name}", Field(parts=item_text(text, code)))
        for code, fields in suspect.texts.items()
        for name, text in fields.items()
    ]
    answer_rows = [
        ("right answers" if answer == suspect.gold else "answer", f"{answer} ({', '.join(systems)})")
        for answer, systems in sorted(answers.items(), key=lambda pair: -len(pair[1]))
    ]
    mates = ", ".join(suspect.cluster_mates)
    why = [*suspect.why, *([f"of the same cluster are suspects too: {mates}"] if mates else [])]
    name = f"{suspect.language} {suspect.id}"
    return [
        Table(
            title=name,
            untitled=True,
            corner=f"{suspect.rank}.",
            heads=(name,),
            rows=rows_of([*texts, ("gold", suspect.gold), *answer_rows, ("why", "; ".join(why))]),
            words=frozenset({0}),
            folding=True,
        )
    ]
