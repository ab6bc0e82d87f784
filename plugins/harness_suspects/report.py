"""What ``harness suspects`` prints: whether it tests or ranks, how far the model can be believed, and the cards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
from harness_suspects.suspect import Suspect
from harness_suspects.verdict import FAULTY, LEAST_POWER, RATE, Judgement

CARDS = 10
"""Cards of the terminal; the page and the JSON file have all."""
FEWEST = 3
"""Families below which harmless deviations look like faults."""
LEGEND = (
    "Right: independent systems that are right, and how many should be by the other languages. Fault: the model's "
    "chance that the item is faulty. p: of so few right answers to a harmless item; q: adjusted for their number."
)


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
