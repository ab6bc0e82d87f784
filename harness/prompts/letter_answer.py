r"""The choice that a written answer names by its letter.

The rule: an unread answer is never worse than a guess.

1. Announced letters come first, and the last announcement wins: "The answer is C", "La risposta è la C", "C is right",
   ``\boxed{C}``, in the words of the item's language and of English (`harness.languages.answer_words`). What is
   negated is no announcement. A letter that is a word of the language counts before further words only after a copula.
   Two letters together ("A or C") are no answer.
2. Otherwise the letter at the beginning, where it is alone on its line, punctuated as a choice (``C.``, ``(C)``,
   ``C:``), or followed by that choice's text; the next line must not begin with another.
3. Otherwise the only letter that stands so at a line or sentence, in brackets, in bold, or after "option".

Capital letters are read, also full-width, circled, and their Cyrillic and Greek look-alikes; small ones where they are
announced or punctuated. A letter beyond the choices is none.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from harness.languages.answer_words import AnswerWords, answer_words, pattern
from harness.languages.character import fold, is_unspaced

_LOOKALIKES: Final = dict(
    zip(
        "\u0410\u0412\u0421\u0415\u041d\u0406\u0408\u041a\u041c\u041e\u0420\u0405\u0422\u0425\u0423"
        "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7",
        "ABCEHIJKMOPSTXY" + "ABEZHIKMNOPTYX",
        strict=True,
    )
)
_QUOTES: Final = "\u00ab\u00bb\u201c\u201d\u2018\u201e\u300c\u300d\u300e\u300f\u300a\u300b\u3010\u3011"
_MARKS: Final = rf"\"'*_()\[\]{{}}<>{_QUOTES}\-\u2013\u2014$\\#~|`="
_GAP: Final = rf"(?:\\(?:text|textbf|mathrm|mathbf)\{{|[\s:{_MARKS}])*"
_NEAR: Final = rf"[ \t{_MARKS}]*"
_ALPHABETIC: Final = r"A-Za-z0-9_\u00c0-\u052f"
"""Letters of the scripts that have a letter of their own where a choice's letter could stand, and digits."""
_BEFORE: Final = rf"(?<![{_ALPHABETIC}])(?<![A-Za-z]\.)"
_AFTER: Final = rf"(?![{_ALPHABETIC}+#]|'(?![dt][iu]r)\w|-\w|\.(?:\d|[A-Za-z]\b))"
_OTHER_SCRIPT: Final = rf"[^\W{_ALPHABETIC}]"
_CLAUSE: Final = r".;,:!?\n\u3001\u3002\u0964\u06d4\u060c\u061b"
_CLOSED: Final = (
    rf"(?=[ \t]*(?:\Z|[{_CLAUSE})\]}}>{_QUOTES}\"'*_`$\\/|])|[ \t]+[-\u2013\u2014]\s|{_OTHER_SCRIPT})"
)
_NEXT_ITEM: Final = re.compile(r"[^\n]*\n\s*[(*_]*([A-Z])[.):]")
_TWO_LINES: Final = re.compile(r"\s*[^\n]*(?:\n\s*[^\n]+)?")
_JOINT: Final = rf"[ \t,&+{_MARKS}]*(?:\w{{1,8}}[ \t{_MARKS}]+|{_OTHER_SCRIPT}{{1,5}})?[ \t{_MARKS}]*"
_PAIRED: Final = re.compile(rf"[)\]/]?[ \t]*/?{_JOINT}(?P<letter>[A-Z]){_AFTER}{_CLOSED}")
_PAIRED_BEFORE: Final = re.compile(rf"{_BEFORE}(?P<letter>[A-HJ-Z])[)\]]?{_JOINT}/?\Z")
"""Never "I": "I think C is right"."""
_LONGEST_CLAUSE: Final = 300
_NEGATED_WORDS: Final = 4
"""How many words may be between a negation and the announcement that it negates: "I do not think that the answer"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mention:
    letter: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Patterns:
    """The expressions for some languages and a number of choices."""

    words: AnswerWords
    strong: re.Pattern[str]
    announced: re.Pattern[str]
    confirmed: re.Pattern[str]
    punctuated: re.Pattern[str]
    enclosed: re.Pattern[str]
    alone: re.Pattern[str]
    negated_after: re.Pattern[str]
    negation: re.Pattern[str]
    copula: re.Pattern[str]
    reasoned: re.Pattern[str]


@cache
def _patterns(languages: tuple[str, ...], choices: int) -> _Patterns:
    words = answer_words(languages)
    upper = string.ascii_uppercase[:choices]
    similar = "".join(sign for sign, letter in _LOOKALIKES.items() if letter in upper)
    letter = rf"(?:(?P<upper>[{upper}])|(?P<other>[{similar}{upper.lower()}](?={_AFTER}{_CLOSED}))){_AFTER}"
    strong = pattern([*words.answer, *words.correct])
    glue = pattern([*words.answer, *words.correct, *words.option, *words.copula, *words.link])
    between = pattern([*words.copula, *words.link, *words.option])
    start = rf"(?:\A(?:[A-Z]:)?|\n|[.!?;]\s+|[\u3002\u0964\u06d4])[\s{_MARKS}]*"
    comma = rf"(?<=[{''.join(sorted({*upper} - {*words.letters})) or '.'}]),"
    item = rf"(?:{comma}|[ \t]*[.):\]}}\u3001\u3002\u0964\u06d4{_MARKS}]|[ \t]*(?:\n|\Z)|{_OTHER_SCRIPT})"
    small = rf"(?P<other>[{similar}]|[{upper.lower()}](?=[.):\]]))"
    return _Patterns(
        words=words,
        strong=re.compile(rf"(?i:{strong})"),
        announced=re.compile(
            rf"(?i:(?P<strong>{strong}|\\boxed(?={{))|{pattern(words.option)})"
            rf"(?P<lead>(?:{_GAP}(?i:{glue})){{0,6}})(?P<gap>{_GAP}){letter}"
        ),
        confirmed=re.compile(
            rf"{_BEFORE}(?P<upper>[{upper}]){_AFTER}(?P<lead>(?:{_NEAR}(?i:{between})){{0,6}}){_NEAR}(?i:{strong})"
        ),
        punctuated=re.compile(rf"{start}(?:(?P<upper>[{upper}])|{small}){_AFTER}(?={item})"),
        enclosed=re.compile(
            rf"(?<!\w)(?:[(\[]\s*|\*\*|[\"'\u201c\u300c\u300e])(?P<upper>[{upper}{similar}])"
            rf"(?=\s*[)\]]|\*\*|[\"'\u201d\u300d\u300f](?!\w))"
        ),
        alone=re.compile(rf"{_BEFORE}(?P<upper>[{upper}]){_AFTER}"),
        negated_after=re.compile(rf"(?i:(?:{_NEAR}{glue}){{0,4}}{_NEAR}{pattern(words.negation)})"),
        negation=re.compile(rf"(?i:{pattern(words.negation)})"),
        copula=re.compile(rf"(?i:{pattern(words.copula)})|[-\u2013\u2014=]"),
        reasoned=re.compile(rf"[ \t]+(?i:{pattern([*words.copula, *words.cause])})"),
    )


def read_letter(text: str, words: Sequence[str], languages: Sequence[str] = ()) -> int | None:
    """Return which choice a text names by its letter, by the rule of this module; None where it names none.

    Args:
        text: What the model wrote.
        words: The texts of the choices, or their names.
        languages: Of the item and of the prompt; none for all languages of the table.
    """
    plain = fold(unicodedata.normalize("NFKC", text)).strip()
    reader = _LetterReader(
        plain, words, _patterns(tuple(languages), min(len(words), len(string.ascii_uppercase)))
    )
    letter = reader.letter()
    return None if letter is None else string.ascii_uppercase.index(letter)


class _LetterReader:
    """Reads one answer: `text` is folded, and all offsets are of it."""

    def __init__(self, text: str, words: Sequence[str], patterns: _Patterns) -> None:
        self.text = text
        self.words = [fold(unicodedata.normalize("NFKC", word)).casefold().strip() for word in words]
        self.patterns = patterns

    def letter(self) -> str | None:
        """Return the letter, or None."""
        if announced := sorted([*self._announced(), *self._confirmed()], key=lambda mention: mention.start):
            return None if self._is_paired(announced[-1]) else announced[-1].letter
        punctuated = list(self._punctuated())
        two_lines = _TWO_LINES.match(self.text)
        if two_lines and punctuated and not re.search(r"\w", self.text[: punctuated[0].start]):
            pool = [mention for mention in punctuated if mention.start < two_lines.end()]
        else:
            pool = [*punctuated, *self._mentioned()]
        letters = {mention.letter for mention in pool}
        return letters.pop() if len(letters) == 1 else None

    def _mention(self, match: re.Match[str], group: str) -> _Mention:
        letter = match[group]
        return _Mention(
            letter=_LOOKALIKES.get(letter, letter).upper(), start=match.start(group), end=match.end(group)
        )

    def _announced(self, *, strong: bool = True) -> Iterator[_Mention]:
        """Yield the letters after words for an answer, or without `strong` after those for an option."""
        for match in self.patterns.announced.finditer(self.text):
            mention = self._mention(match, "upper" if match["upper"] else "other")
            if (match["strong"] is not None or self._has_strong(match["lead"])) is not strong:
                continue
            if self._is_negated(match.start(), mention.end) or self._begins_list(match["gap"], mention):
                continue
            after_copula = not re.search(r"[:\n]", match["gap"])
            if after_copula or self._is_closed(mention) or self._is_no_word(mention):
                yield mention

    def _has_strong(self, lead: str) -> bool:
        return self.patterns.strong.search(lead) is not None

    def _confirmed(self) -> Iterator[_Mention]:
        """Yield the letters before words for an answer: "C is right"."""
        for match in self.patterns.confirmed.finditer(self.text):
            mention = self._mention(match, "upper")
            clause = re.match(rf"[^{_CLAUSE}]*(.?)", self.text[match.end() :])
            assert clause is not None
            if clause[1] == "?" or self.patterns.negation.search(clause[0]):
                continue
            is_word = mention.letter in self.patterns.words.letters
            if not is_word or self.patterns.copula.search(match["lead"]):
                if not self._is_paired_before(mention):
                    yield mention

    def _punctuated(self) -> Iterator[_Mention]:
        """Yield the letters at the beginning of a line or sentence that are punctuated as a choice."""
        for match in self.patterns.punctuated.finditer(self.text):
            mention = self._mention(match, "upper" if match["upper"] else "other")
            if self._has_text(mention) or not (
                self._rejected(mention) or self._is_label(mention) or self._is_paired(mention)
            ):
                yield mention
        for match in self.patterns.alone.finditer(self.text):
            mention = self._mention(match, "upper")
            if self._has_text(mention):
                yield mention

    def _mentioned(self) -> Iterator[_Mention]:
        """Yield the letters in brackets, in bold, or after a word for an option, but negated ones."""
        enclosed = [self._mention(match, "upper") for match in self.patterns.enclosed.finditer(self.text)]
        for mention in [*enclosed, *self._announced(strong=False)]:
            clause = re.match(rf"[)\]*\"' ]*[^{_CLAUSE}]*", self.text[mention.end :])
            assert clause is not None
            if not self._is_negated(mention.start, mention.end) and not self.patterns.negation.search(
                clause[0]
            ):
                yield mention

    def _is_negated(self, start: int, end: int) -> bool:
        """Return whether a negation is shortly before `start` in its clause, or follows `end`."""
        if self._rejected_at(end):
            return True
        clause = re.split(rf"[{_CLAUSE}]", self.text[max(start - _LONGEST_CLAUSE, 0) : start])[-1]
        negations = list(self.patterns.negation.finditer(clause))
        if not negations or self.patterns.alone.search(clause[: negations[-1].start()]):
            return False
        between = clause[negations[-1].end() :]
        if is_unspaced(negations[-1].group()[-1]):
            return len(between) <= 1
        return len(between.split()) <= _NEGATED_WORDS

    def _rejected(self, mention: _Mention) -> bool:
        punctuation = re.match(r"[).:\]*\"' ]*", self.text[mention.end :])
        return self._rejected_at(mention.end + (punctuation.end() if punctuation else 0))

    def _rejected_at(self, end: int) -> bool:
        return self.patterns.negated_after.match(self.text, end) is not None

    def _is_closed(self, mention: _Mention) -> bool:
        return re.match(r"[ \t]+\w", self.text[mention.end :]) is None

    def _is_no_word(self, mention: _Mention) -> bool:
        """Return whether a letter before further words is no article: by its language, its text, or what follows."""
        if mention.letter not in self.patterns.words.letters or self._has_text(mention):
            return True
        return self.patterns.reasoned.match(self.text, mention.end) is not None

    def _is_label(self, mention: _Mention) -> bool:
        """Return whether a letter and a colon mean "Answer:": another letter or choice's text follows."""
        following = re.match(rf":[\s{_MARKS}]*", self.text[mention.end :])
        if following is None:
            return False
        tail = self.text[mention.end + following.end() :]
        return self.patterns.punctuated.match(tail) is not None or any(
            _begins_with(tail, word) for word in self.words
        )

    def _has_text(self, mention: _Mention) -> bool:
        """Return whether the text of the letter's choice follows it."""
        index = string.ascii_uppercase.index(mention.letter)
        following = re.match(rf"[\s.):,{_MARKS}]+", self.text[mention.end :])
        return following is not None and _begins_with(
            self.text[mention.end + following.end() :], self.words[index]
        )

    def _begins_list(self, gap: str, mention: _Mention) -> bool:
        """Return whether the choices are listed after the announcement, one per line."""
        following = _NEXT_ITEM.match(self.text, mention.end)
        return "\n" in gap and following is not None and following[1] != mention.letter

    def _is_paired(self, mention: _Mention) -> bool:
        """Return whether another letter follows with at most a word between: "A or C", "A/C"."""
        following = _PAIRED.match(self.text, mention.end)
        return following is not None and self._is_pair(following, mention)

    def _is_paired_before(self, mention: _Mention) -> bool:
        before = _PAIRED_BEFORE.search(self.text[: mention.start])
        return before is not None and self._is_pair(before, mention)

    def _is_pair(self, match: re.Match[str], mention: _Mention) -> bool:
        return match["letter"] != mention.letter and not self.patterns.negation.search(match.group())


def _begins_with(text: str, word: str) -> bool:
    """Return whether a text begins with a choice's folded text, which is longer than a letter."""
    folded = text[: 2 * len(word) + 1].casefold()
    if not folded.startswith(word) or (len(word) < 2 and word.isascii()):
        return False
    following = folded[len(word) : len(word) + 1]
    return not following.isalnum() or is_unspaced(following)
