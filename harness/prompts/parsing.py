r"""Answers read from a model's text by one documented rule per parser; None where the text cannot be read.

A text that cannot be read counts as wrong and as unparsed; nothing is guessed. Letters of choices are read by
`harness.prompts.letter_answer`, tagged sentences by `harness.prompts.tagged`.

Numbers: in ``\boxed{}``, after words that announce an answer, or the last one. Source: Shi et al. (2022), "Language
Models are Multilingual Chain-of-Thought Reasoners", section 2, whose exemplars end with the phrase and the number;
``extract_last_num`` of MathOctopus takes the last number, lm-eval's strict filter the first one after the phrase.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, Final

from harness.languages.answer_words import answer_words, pattern
from harness.languages.character import fold
from harness.languages.number import WrittenNumber, plain_number, written_numbers

_CLAUSE: Final = re.compile(
    r"[.,:;!?\n\u060c\u061b\u06d4\u0964\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f\u2013\u2014]+"
)
_MOST_LINKS: Final = 7
_MARGIN: Final = 100
"""Characters that are looked at beyond twice the longest choice."""
_NOTHING: Final = -1
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
_LENGTHS = (4000, 2000, 1000, 500)
"""How many characters of a text are searched: the most that keep the search short."""
_MOST_STEPS = 3e8
"""A bound on the steps of one search in the worst text; the true number is a fraction of it."""
_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})


def read_choice(text: str, words: Sequence[str], languages: Sequence[str] = ()) -> int | None:
    """Return which of the words a text announces, or begins with; None where it is none, or more than one fits equally.

    Case, accents, spellings of one sound (`fold`), marks at both ends and spaces do not matter. The longest word
    wins, and what follows it must not continue the word: ``no`` is not read in ``nothing``. The last announcement
    comes first ("The answer is no", in the words of the languages, or of all), then a word at the beginning. Where
    more words follow it in its clause, a later clause that is one word is meant: "No doubt: yes". A text that begins
    with none is read behind the colon of its last line.

    Args:
        text: What the model wrote.
        words: What it may answer.
        languages: Of the item and of the prompt; none for all languages of the table.
    """
    announced = next(_announced(fold(unicodedata.normalize("NFKC", text)), words, tuple(languages)), _NOTHING)
    if announced != _NOTHING:
        return announced
    first = _begun(text, words)
    if first is None:
        _, colon, last = (text.strip().splitlines() or [""])[-1].replace("\uff1a", ":").rpartition(":")
        return _whole(last, words) if colon else None
    clauses = _CLAUSE.split(text.strip())
    if _whole(clauses[0], words) is None:
        later = {index for clause in clauses[1:] if (index := _whole(clause, words)) is not None}
        return first if not later else later.pop() if len(later) == 1 else None
    return first


def _announced(text: str, words: Sequence[str], languages: tuple[str, ...]) -> Iterator[int | None]:
    """Yield the choices after the words for an answer, the last ones first; None for two choices, "yes or no"."""
    noun, glue = _announcing(languages)
    length = 2 * max(map(len, words), default=0) + _MARGIN
    for match in reversed(list(noun.finditer(text))):
        end = match.end()
        for _ in range(_MOST_LINKS):
            window = text[end : end + length]
            if (index := _begun(window, words)) is not None:
                next_words = window.split(maxsplit=2)[1:]
                pair = {_begun(after, words) for after in (" ".join(next_words), *next_words[1:])} - {
                    None,
                    index,
                }
                yield None if pair else index
                break
            if (link := glue.match(text, end)) is None:
                break
            end = link.end()


@cache
def _announcing(languages: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    words = answer_words(languages)
    glue = pattern([*words.answer, *words.correct, *words.option, *words.copula, *words.link])
    return re.compile(f"(?i:{pattern(words.answer)})(?=[^.?!;,])"), re.compile(
        rf"[^\w.?!;,]*(?i:{glue})(?=[^.?!;,])"
    )


def _begun(text: str, words: Sequence[str]) -> int | None:
    """Return which of the words a text begins with, as they are written or in another spelling."""
    return _fitting(text, words, _begins)


def _whole(text: str, words: Sequence[str]) -> int | None:
    return _fitting(text, words, str.__eq__)


def _fitting(text: str, words: Sequence[str], fits: Callable[[str, str], bool]) -> int | None:
    for spelled in (_plain, _folded):
        written, plain = spelled(text), [spelled(word) for word in words]
        fitting = [index for index, word in enumerate(plain) if word and fits(written, word)]
        if fitting:
            longest = max(len(plain[index]) for index in fitting)
            best = [index for index in fitting if len(plain[index]) == longest]
            return best[0] if len(best) == 1 else None
    return None


def _folded(text: str) -> str:
    return _plain(fold(unicodedata.normalize("NFKC", text)))


def _plain(text: str) -> str:
    """Return the text in NFC, case-folded, with runs of spaces joined and marks at both ends removed."""
    folded = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    start, end = 0, len(folded)
    while start < end and unicodedata.category(folded[start])[0] in "PSZ":
        start += 1
    while end > start and unicodedata.category(folded[end - 1])[0] in "PSZ":
        end -= 1
    return folded[start:end]


def _begins(text: str, word: str) -> bool:
    if not text.startswith(word):
        return False
    following = text[len(word) : len(word) + 1]
    if not following:
        return True
    # In scripts without spaces a word may be followed by a letter; there the whole text must be the word.
    return unicodedata.category(following)[0] not in "LMN"


def read_answer(text: str) -> str | None:
    """Return the first line of a text without spaces around it, or None where nothing is left."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else None


PARSERS: Final = ("choice", "letter", "answer", "tagged", "entities")
"""The names that a prompt may give; `harness.prompts.tagged` reads ``tagged`` and ``entities``."""


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
        if (number := _announced_number(plain[end:], language, is_phrase=is_phrase)) is not None:
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


def _announced_number(rest: str, language: str, *, is_phrase: bool) -> WrittenNumber | None:
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


class AnswerRegex:
    """A compiled expression, and how many characters at the end of a text it searches."""

    def __init__(self, pattern: re.Pattern[str], length: int) -> None:
        self._pattern = pattern
        self.length = length

    def find(self, text: str) -> str | None:
        """Return the first group of the last match, or the whole match without groups; None without a match."""
        matches = list(self._pattern.finditer(text[-self.length :]))
        if not matches:
            return None
        last = matches[-1]
        return next((group for group in last.groups() if group is not None), last.group())


@lru_cache(maxsize=64)
def answer_regex(pattern: str) -> AnswerRegex:
    """Return a compiled expression; raises `ValueError` for one that is not valid, or could take very long.

    The number of ways in which an expression can match is bounded from its parts, because Python's engine tries them
    all before it gives up: repeats within repeats, such as ``(a+)+``, have too many.
    """
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"it is not a regular expression: {error}") from error
    parsed = import_module("re._parser").parse(pattern)
    for length in _LENGTHS:
        if length * _match_ways(parsed, length) <= _MOST_STEPS:
            return AnswerRegex(compiled, length)
    raise ValueError(
        "it could take very long on some texts: use no repeat within a repeat, and at most two of '*' and '+'"
    )


def _match_ways(parts: Iterable[Any], length: int) -> float:
    """Return a bound on the ways in which parts can match within so many characters."""
    ways = 1.0
    for operation, argument in parts:
        name = str(operation)
        if name in _REPEATS:
            least, most, inner = argument
            most = min(int(most), length)
            each = _match_ways(inner, length)
            ways *= max(most - int(least) + 1, 1) * (each**most if each == 1 or most < 20 else float("inf"))
        elif name == "BRANCH":
            ways *= sum(_match_ways(branch, length) for branch in argument[1])
        elif name == "GROUPREF_EXISTS":
            ways *= sum(_match_ways(branch or (), length) for branch in argument[1:])
        elif name == "ATOMIC_GROUP":
            ways *= _match_ways(argument, length)
        elif name in {"SUBPATTERN", "ASSERT", "ASSERT_NOT"}:
            ways *= _match_ways(argument[-1], length)
    return ways
