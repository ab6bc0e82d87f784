"""Reasoning before an answer: the marks around it, and how a text is divided into reasoning and answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.models.requests import Generated


@dataclass(frozen=True, slots=True)
class Markers:
    """The marks before and after the reasoning."""

    start: str
    end: str


KNOWN_MARKERS = (
    Markers("<think>", "</think>"),
    Markers("[THINK]", "[/THINK]"),
    Markers("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
)
"""Of Qwen3, DeepSeek-R1, SmolLM3 and most others; of Magistral; of gpt-oss (OpenAI's harmony format)."""
_TURN = ("<|end|>", "<|start|>assistant")
"""Marks that harmony writes between its channels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitText:
    """A text in its two parts."""

    reasoning: str | None
    """None where the model did not reason."""
    answer: str
    closed: bool = True
    """Whether the reasoning ended; an open one has no answer."""


def split_reasoning(text: str, markers: Sequence[Markers], *, opened: bool = False) -> SplitText:
    """Return the reasoning and the answer of what a model wrote.

    The text begins with a start mark, or holds an end mark whose start the chat template wrote. Without either it is
    all answer, unless the prompt `opened` the reasoning and the text was cut before its end.
    """
    begun = text.lstrip()
    for marks in markers:
        if begun.startswith(marks.start):
            return _after_start(begun.removeprefix(marks.start), marks)
    for marks in markers:
        if marks.end in text:
            return _after_start(text.replace(marks.start, "", 1), marks)
    if opened:
        return SplitText(reasoning=text.strip(), answer="", closed=False)
    return SplitText(reasoning=None, answer=text)


def _after_start(text: str, markers: Markers) -> SplitText:
    """Return the parts of a text within the reasoning; a second block of reasoning directly after it belongs to it."""
    blocks = []
    while True:
        reasoning, end, text = text.partition(markers.end)
        blocks.append(_without_turn(reasoning))
        text = text.lstrip()
        if not end or not text.startswith(markers.start):
            break
        text = text.removeprefix(markers.start)
    return SplitText(reasoning="\n".join(filter(None, blocks)), answer=text, closed=bool(end))


def _without_turn(text: str) -> str:
    text = text.strip()
    for mark in reversed(_TURN):
        text = text.removesuffix(mark).rstrip()
    return text


def separate_reasoning(answer: Generated, own: tuple[str, str] | None) -> Generated:
    """Return an answer without reasoning in its text, where the adapter did not separate it itself.

    Args:
        answer: Of any adapter.
        own: The marks of the prompt, besides the known ones.
    """
    if answer.reasoning is not None:
        return answer
    markers = KNOWN_MARKERS if own is None else (Markers(*own), *KNOWN_MARKERS)
    split = split_reasoning(answer.text, markers)
    if split.reasoning is None:
        return answer
    return replace(answer, text=split.answer, reasoning=split.reasoning, reasoning_tokens=None)


def before_stop(text: str, stops: Sequence[str], *, blank_from: int = 0) -> tuple[str, bool]:
    """Return the text before the first stop string, and whether there is one; blank ones are sought from a place on."""
    starts = [text.find(stop, 0 if stop.strip() else blank_from) for stop in stops if stop]
    positions = [start for start in starts if start >= 0]
    return (text[: min(positions)], True) if positions else (text, False)


def within_stops(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """Return the answer in a text whose writer ignored its stop strings, and whether there is such a string.

    Line ends before the answer do not end it.
    """
    return before_stop(text, stops, blank_from=len(text) - len(text.lstrip()))
