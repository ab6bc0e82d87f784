r"""The number that a written answer gives: in ``\boxed{}``, after the language's answer phrase, or the last one.

Source: Shi et al. (2022), "Language Models are Multilingual Chain-of-Thought Reasoners", section 2, whose exemplars end
with the phrase and the number; ``extract_last_num`` of MathOctopus takes the last number, lm-eval's strict filter the
first one after the phrase.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from harness.languages.number import WrittenNumber, plain_number, written_numbers

__all__ = ["ENGLISH_PHRASES", "answer_number"]

ENGLISH_PHRASES = ("The answer is",)
"""Looked for in answers in every language: models fall back to English."""
_GSM8K = re.compile("####(.*)")
"""GSM8K's mark before an answer, and in Markdown that of a heading, which has letters."""
_BOX = "\\boxed{"


def answer_number(text: str, language: str, phrases: Sequence[str] = ()) -> WrittenNumber | None:
    r"""Return the number that an answer gives, or None where it has none.

    The last ``\boxed{}`` with a number wins. Otherwise it is the number in the rest of the line after the last of the
    phrases, or of GSM8K's ``####`` where no words follow: the first one, or the first after the last ``=``. Otherwise
    it is the last number of the text.

    Args:
        text: What the model wrote.
        language: Whose convention for separators holds.
        phrases: How the language introduces an answer.
    """
    plain = plain_number(unicodedata.normalize("NFC", text), language)
    for content in _boxed(plain):
        if numbers := written_numbers(content, language):
            return numbers[-1]
    folded = plain.casefold()
    names = [unicodedata.normalize("NFC", phrase).casefold() for phrase in (*phrases, *ENGLISH_PHRASES)]
    places = [(folded.rfind(name) + len(name)) for name in names if name in folded]
    marked = [match for match in _GSM8K.finditer(folded) if not any(map(str.isalpha, match[1]))]
    places += [match.start(1) for match in marked]
    if places and len(folded) == len(plain):
        line = plain[max(places) :].split("\n", maxsplit=1)[0]
        for part in (line.rpartition("=")[2], line):
            if numbers := written_numbers(part, language):
                return numbers[0]
    numbers = written_numbers(plain, language)
    return numbers[-1] if numbers else None


def _boxed(text: str) -> list[str]:
    """Return the contents of the boxes, the last one first."""
    found = []
    start = text.rfind(_BOX)
    while start >= 0:
        depth, begin = 1, start + len(_BOX)
        end = begin
        while end < len(text) and depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        found.append(text[begin : end - 1] if not depth else text[begin:end])
        start = text.rfind(_BOX, 0, start)
    return found
