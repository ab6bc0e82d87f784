"""The answer of a gap in words: whether the human translation costs the score, by language."""

from __future__ import annotations

from typing import Final

from harness.languages.table import recorded_name
from harness.reporting.model import Block, Note, Notes
from harness.reporting.number import interval_text, signed
from harness_translation.gap.formula import TITLES
from harness_translation.gap.measure import ALL, GapValue, SystemGaps

__all__ = ["answer_blocks"]

ASKED: Final = ("bt_tt", "te_zs", "delta")
"""Contrasts of machine-made with human-made text; the first one that was computed answers."""
_ORDER: Final = ("yes", "no evidence", "no", "undecided")


def answer_blocks(gaps: SystemGaps, *, k: float) -> list[Block]:
    """Return the question with its answer for every language, those that lose most first; nothing without a contrast.

    The answer is yes where the gap exceeds k standard errors for every translator and its interval is above 0, no
    where its interval is below 0, and undecided where only one of the two holds or there is no interval.
    """
    held = {value.quantity for value in gaps.values}
    quantity = next((name for name in ASKED if name in held), None)
    if quantity is None:
        return []
    found = []
    for code in gaps.languages:
        value = gaps.find(quantity, code, ALL)
        if value is not None:
            found.append((_ORDER.index(_answer(value)), -value.estimate.value, _sentence(value, code)))
    question = f"Does the human translation cost {gaps.system.model_name} its score on {gaps.system.task}?"
    translators = gaps.system.translators
    whose = f"by {translators[0]}" if len(translators) == 1 else f"by every one of {', '.join(translators)}"
    how = (
        f"{TITLES[quantity]}: the score on machine translations ({whose}) minus that on the human one. Yes: more than "
        f"{k:g} standard errors, interval above 0; each language by itself, without a correction for their number."
    )
    texts = [text for *_, text in sorted(found)]
    return [Note(question, "heading"), Notes(texts, "findings"), Note(how, "note")] if texts else []


def _answer(value: GapValue) -> str:
    low, high = value.estimate.interval.low, value.estimate.interval.high
    if low is None or high is None or value.flagged != (low > 0):
        return "undecided"
    return "yes" if value.flagged else "no" if high < 0 else "no evidence"


def _sentence(value: GapValue, code: str) -> str:
    low, high = value.estimate.interval.low, value.estimate.interval.high
    name = recorded_name(code, ())
    answer = _answer(value)
    points = f"{signed(value.estimate.value)} points"
    if low is None or high is None:
        return f"{name}: {answer}, {points} without an interval."
    ends = interval_text((low, high))
    why = ", the human text scores higher" if answer == "no" else ""
    unfair = "; the two sides differ in more than their translation" if value.unfair else ""
    return f"{name}: {answer}{why}, {points} ({ends}){unfair}."
