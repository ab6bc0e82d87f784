r"""The number that a written answer gives: in ``\boxed{}``, after words that announce an answer, or the last one.

Source: Shi et al. (2022), "Language Models are Multilingual Chain-of-Thought Reasoners", section 2, whose exemplars end
with the phrase and the number; ``extract_last_num`` of MathOctopus takes the last number, lm-eval's strict filter the
first one after the phrase.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from harness.languages.answer_words import answer_words, pattern
from harness.languages.number import WrittenNumber, plain_number, written_numbers
from harness.languages.spelling import fold

_GSM8K: Final = re.compile(r"#{4,}+(?=[^\n]*\d)(?![^\n]*[^\W\d_])")
"""GSM8K's mark before an answer, and in Markdown that of a heading, which has letters."""
_BOX: Final = "\\boxed{"
_GAP: Final = r"[^\w.!?;,\n]*"
_START: Final = r"(?:\A|[.,!?:;\n\u3001\u3002\u0964\u06d4\u060c])[^\w\n]*"
_MARK: Final = r"[^\w\n.!?,;]*(?:[:\uff1a=\u2013\u2014]|-(?!\d))|(?=[^\w\n]*\n)"
_DIRECT: Final = r"(?=[^\w\n.!?,;:=]*\d)"
_ASIDE: Final = re.compile(r"[(\uff08;\u060c\u3001]|,\s|[.!?]\s|[\u3002\u0964\u06d4]")
"""Ends what a line says about its first number: "12 (3 x 4)", "12 apples, 3 each"."""

_MOST_ANNOUNCEMENTS: Final = 8
"""How many announcements or boxes are tried, from the last one back: models repeat a sentence without end."""


def answer_number(
    text: str, language: str, phrases: Sequence[str] = (), *, languages: Sequence[str] = ()
) -> WrittenNumber | None:
    r"""Return the number that an answer gives, or None where it has none.

    The last ``\boxed{}`` with a number wins. Otherwise it is the number after the last announcement: "The answer is",
    in the words of the language or of English, one of the task's own phrases, GSM8K's ``####`` without words, or
    "Answer:" at the beginning of a sentence where one number follows at once. It is the first of its line, or of the
    next line where nothing follows in its own; after the last ``=``, but not beyond a bracket, comma or full stop.
    Otherwise it is the last number of the text.

    Args:
        text: What the model wrote.
        language: Whose convention for separators holds.
        phrases: How the task introduces an answer, in addition to the language's words.
        languages: Others whose words may announce the answer: that of the item, where the prompt has another.
    """
    plain = plain_number(fold(unicodedata.normalize("NFC", text)), language)
    for content in itertools.islice(_boxed(plain), _MOST_ANNOUNCEMENTS):
        if numbers := written_numbers(content, language):
            return numbers[-1]
    phrase, noun = _announcements((language, *languages), tuple(phrases))
    ends = [(match.end(), True) for match in (*phrase.finditer(plain), *_GSM8K.finditer(plain))]
    ends += [(match.end(), False) for match in noun.finditer(plain)]
    for end, is_phrase in sorted(ends, reverse=True)[:_MOST_ANNOUNCEMENTS]:
        if (number := _announced(plain[end:], language, is_phrase=is_phrase)) is not None:
            return number
    numbers = written_numbers(plain, language)
    return numbers[-1] if numbers else None


@cache
def _announcements(
    languages: tuple[str, ...], phrases: tuple[str, ...]
) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return expressions for whole phrases ("the answer is") and for nouns with a mark or a number ("Answer: 12")."""
    words = answer_words(languages)
    glue = pattern([*words.correct, *words.option, *words.link])
    noun, copula = pattern(words.answer), pattern(words.copula)
    foreign_noun = pattern(word for word in words.answer if word not in answer_words(("en",)).answer)
    task = "|".join(re.escape(fold(unicodedata.normalize("NFC", text))) for text in phrases) or "(?!)"
    led = rf"(?:{_GAP}{glue}){{0,4}}"
    return (
        re.compile(rf"{task}|{noun}{led}{_GAP}{copula}", re.IGNORECASE),
        re.compile(
            rf"{_START}(?:{glue}{_GAP}){{0,4}}{noun}{led}(?:{_MARK})|{foreign_noun}{led}{_DIRECT}",
            re.IGNORECASE,
        ),
    )


def _announced(rest: str, language: str, *, is_phrase: bool) -> WrittenNumber | None:
    """Return the number that the text after an announcement gives; after a noun alone only where it follows at once."""
    line, _, later = rest.partition("\n")
    if not re.search(r"\w", line):
        line = later.lstrip().partition("\n")[0]
    if not is_phrase and re.match(r"[^\w\n]*(?:[A-Z]{1,3}\s?)?[^\w\n]*\d", line) is None:
        return None
    numbers = written_numbers(line, language)
    if not numbers:
        return None
    aside = _ASIDE.search(line, numbers[0].start + len(numbers[0].text.lstrip("-")))
    said = line if aside is None else line[: aside.start()]
    if len(written_numbers(said, language)) != 1 or "=" in said:
        if not is_phrase and "=" not in said:
            return None
        said = line
    for candidate in (said.rpartition("=")[2], said):
        if numbers := written_numbers(candidate, language):
            return numbers[0]
    return None


def _boxed(text: str) -> Iterator[str]:
    """Yield the contents of the boxes, the last one first."""
    start = text.rfind(_BOX)
    while start >= 0:
        depth, begin = 1, start + len(_BOX)
        end = begin
        while end < len(text) and depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        yield text[begin : end - 1] if not depth else text[begin:end]
        start = text.rfind(_BOX, 0, start)
