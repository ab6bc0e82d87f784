"""The answer of a gap in words: whether the human translation costs the score, by language."""

from __future__ import annotations

from typing import Final

from harness.languages import recorded_name
from harness.reporting import Block, Note, Notes, interval_text, signed
from harness_translation.gap.formula import HEADS, TITLES
from harness_translation.gap.measure import ALL, GapValue, SystemGaps

ASKED: Final = ("bt_tt", "te_zs", "delta")
"""Contrasts of machine-made with human-made text; the first one that was computed answers."""
_ORDER: Final = ("yes", "no evidence", "no", "undecided")


def answer_blocks(gaps: SystemGaps, *, k: float) -> list[Block]:
    """Return the question with its answer for every language, those that lose most first; nothing without a contrast.

    The answer is yes where the gap exceeds k standard errors for every translator and its interval is above 0, no
    where its interval is below 0, and undecided where only one of the two holds or there is no interval. Where some
    translator has no such contrast, there is no verdict: the values of the others are given, each by its name.
    """
    complete = {value.quantity for value in gaps.values if value.translator == ALL}
    partial = {value.quantity for value in gaps.values}
    quantity = next((name for held in (complete, partial) for name in ASKED if name in held), None)
    if quantity is None:
        return []
    answers: list[tuple[int, float, str]] = []
    for code in gaps.languages:
        value = gaps.find(quantity, code, ALL)
        if value is not None:
            answers.append((_ORDER.index(_answer(value)), -value.estimate.value, _sentence(value, code)))
        elif gaps.translators_of(quantity, code):
            answers.append((len(_ORDER), 0.0, _partial_sentence(gaps, quantity, code)))
    question = f"Does the human translation cost {gaps.system.model_name} its score on {gaps.system.task}?"
    how = (
        f"{TITLES[quantity]}: the score on machine translations ({_whose(gaps, quantity)}) minus that on the human "
        f"one. Yes: more than {k:g} standard errors, interval above 0; each language by itself, without a correction "
        "for their number."
    )
    texts = [text for *_, text in sorted(answers)]
    return [Note(question, "heading"), Notes(texts, "findings"), Note(how, "note")] if texts else []


def _whose(gaps: SystemGaps, quantity: str) -> str:
    """Return the translators of a contrast, and those that have none."""
    every = gaps.system.translators
    by_code = [gaps.translators_of(quantity, code) for code in gaps.languages]
    if every in by_code:
        return f"by {every[0]}" if len(every) == 1 else f"by every one of {', '.join(every)}"
    names = [name for name in every if any(name in translators for translators in by_code)]
    missing = ", ".join(name for name in every if name not in names)
    remark = f"there is none by {missing}" if missing else "no language has it by all of them"
    return f"by {', '.join(names)}; {remark}"


def _partial_sentence(gaps: SystemGaps, quantity: str, code: str) -> str:
    names = gaps.translators_of(quantity, code)
    missing = ", ".join(name for name in gaps.system.translators if name not in names)
    values = [(name, gaps.find(quantity, code, name)) for name in names]
    listed = "; ".join(f"by {name} alone {_points(value)}" for name, value in values if value is not None)
    name = recorded_name(code, ())
    return f"{name}: no verdict on every translator, since {missing} has no {HEADS[quantity]}; {listed}."


def _answer(value: GapValue) -> str:
    low, high = value.estimate.interval.low, value.estimate.interval.high
    if low is None or high is None or value.flagged != (low > 0):
        return "undecided"
    return "yes" if value.flagged else "no" if high < 0 else "no evidence"


def _sentence(value: GapValue, code: str) -> str:
    answer = _answer(value)
    why = ", the human text scores higher" if answer == "no" else ""
    return f"{recorded_name(code, ())}: {answer}{why}, {_points(value)}."


def _points(value: GapValue) -> str:
    """Return the value with its interval: ``+16.7 points (4.2 to 33.3)``."""
    low, high = value.estimate.interval.low, value.estimate.interval.high
    points = f"{signed(value.estimate.value)} points"
    if low is None or high is None:
        return f"{points} without an interval"
    unfair = "; the two sides differ in more than their translation" if value.unfair else ""
    return f"{points} ({interval_text((low, high))}){unfair}"
