"""Cases that no system can pass: no examples, an answer that is not in its context, two answers to one question.

These are the defects that templates force on every case, whatever the model: the floor under an error rate. They are
lower bounds: a case without a defect may still be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal

from harness_checklist.generation.case import CaseExample
from harness_checklist.suites.suite import Profile

Defect = Literal["empty", "unanswerable", "contradictory"]
DEFECTS: tuple[Defect, ...] = ("empty", "contradictory", "unanswerable")


def case_defect(examples: Sequence[CaseExample], profile: Profile) -> Defect | None:
    """Return why no extractive system can pass a case with these examples, or None where one can.

    ``empty``: it has no examples. ``contradictory``: one context and question has two answers that stay different
    after `profile` (no system can pass). ``unanswerable``: no span of a context equals the answer after `profile` (a
    system that copies cannot pass). A case with both of the latter two is contradictory.
    """
    defects = set(example_defects(examples, profile)) if examples else {"empty"}
    return next((defect for defect in DEFECTS if defect in defects), None)


def example_defects(examples: Sequence[CaseExample], profile: Profile) -> list[Defect | None]:
    """Return the defect of each example of one case, in their order; all sides of a contradiction have it."""
    first: dict[tuple[str, str], str] = {}
    contradicted: set[tuple[str, str]] = set()
    for example in examples:
        key = (example.context, example.question)
        answer = first.setdefault(key, example.answer)
        if answer != example.answer and profile.clean(answer) != profile.clean(example.answer):
            contradicted.add(key)
    return [
        "contradictory"
        if (example.context, example.question) in contradicted
        else None
        if answerable(example.context, example.answer, profile)
        else "unanswerable"
        for example in examples
    ]


def answerable(context: str, answer: str, profile: Profile) -> bool:
    """Return whether some span of the context equals the answer after `profile`, the empty span among them."""
    return answer in context or _cleaned_span(context, answer, profile)


@lru_cache(maxsize=1 << 16)
def _cleaned_span(context: str, answer: str, profile: Profile) -> bool:
    cleaned = profile.clean(answer)
    if cleaned == "" or (cleaned in context and profile.clean(cleaned) == cleaned):
        return True
    return any(
        profile.clean(context[start:end]) == cleaned
        for starts, ends in _windows(context, cleaned, profile)
        for start in starts
        for end in ends
        if start <= end
    )


def _windows(context: str, cleaned: str, profile: Profile) -> Iterator[tuple[range, range]]:
    """Yield ranges of starts and ends: only spans within them can clean to `cleaned`.

    `Profile.clean` takes away only characters of articles and of `strip`, and puts in only spaces. So each word of
    `cleaned` is in the context in one piece, and only removable characters surround the first and the last word of
    a span.
    """
    words = cleaned.split(" ")
    words = [word for word in words if word]
    if not words:  # nothing but spaces, where `strip` keeps them
        yield range(len(context) + 1), range(len(context) + 1)
        return
    removable = frozenset("".join(profile.articles) + profile.strip + " ")
    heads = _occurrences(context, words[0], profile)
    tails = heads if len(words) == 1 else _occurrences(context, words[-1], profile)
    for head, head_end in heads:
        low = head
        while low and context[low - 1] in removable:
            low -= 1
        for tail, tail_end in tails:
            if (tail == head) if len(words) == 1 else (tail >= head_end):
                high = tail_end
                while high < len(context) and context[high] in removable:
                    high += 1
                yield range(low, head + 1), range(tail_end, high + 1)


def _occurrences(context: str, word: str, profile: Profile) -> list[tuple[int, int]]:
    """Return start and end of each occurrence, also of those that overlap."""
    pieces = [character.casefold() if profile.casefold else character for character in context]
    text = "".join(pieces)
    at: dict[int, int] = {}  # offset in the folded text -> offset in the context
    offset = 0
    for index, piece in enumerate(pieces):
        at[offset] = index
        offset += len(piece)
    at[offset] = len(context)
    occurrences = []
    start = text.find(word)
    while start >= 0:
        if start in at and start + len(word) in at:
            occurrences.append((at[start], at[start + len(word)]))
        start = text.find(word, start + 1)
    return occurrences
