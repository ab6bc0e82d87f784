"""Label words that are not those of other prompts for the same English word: most mistranslations are.

No dictionary is needed: what other presets of any task have for ``No`` in Arabic shows that the noun *number* is wrong.
Presets that take the words of another one do not count.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness import Finding, Note
from harness.specs.prompt import ALL_LANGUAGES, Literals, PromptSpec

__all__ = ["WordTable", "word_results"]

AGREEING = 2
"""Other prompts that must have one word, for another one to be a fault and not a note."""
STANDARD = "default"
"""The preset that the others are compared with."""
_SLOT = re.compile(r"\{[^{}]*\}")
_WORD = re.compile(r"[^\W\d_]{2,}")
LEAST_LANGUAGES = 2
"""Languages with words of their own that a prompt has, for its template to be looked at."""
SHOWN = 3
"""Languages whose words a note names."""


@dataclass(frozen=True, slots=True)
class _Use:
    """One word of one preset."""

    prompt: str
    word: str


class WordTable:
    """The label words of all presets, by their English word and language."""

    def __init__(self, presets: Sequence[tuple[PromptSpec, PromptSpec | None]]) -> None:
        self._uses: dict[tuple[str, str], list[_Use]] = {}
        for spec, inherited in presets:
            if spec.literals_from is not None:
                # It has the words of another preset; its own words may be wrong on purpose.
                continue
            for english, code, word in _label_words(spec, inherited):
                self._uses.setdefault((english, code), []).append(_Use(spec.prompt, word))

    def others(self, spec: PromptSpec, english: str, language: str) -> list[str]:
        """Return the words of other presets, the most frequent first."""
        uses = self._uses.get((english, language), ())
        words = [use.word for use in uses if use.prompt != spec.prompt]
        counts = Counter(map(plain_word, words))
        return sorted(words, key=lambda word: -counts[plain_word(word)])


def word_results(
    task: str, spec: PromptSpec, inherited: PromptSpec | None, table: WordTable
) -> Iterator[Finding | Note]:
    """Yield label words of a preset that other presets do not have for the same English word.

    A fault where several others agree on another word; a note where they do not, and in presets that are copied to the
    character from elsewhere.
    """
    yield from _english_words(task, spec, inherited)
    yield from _fixed_words(task, spec)
    sentence: dict[str, list[tuple[str, str, str]]] = {}
    for english, code, word in _label_words(spec, inherited):
        others = table.others(spec, english, code)
        known = {plain_word(other) for other in others}
        if not others or plain_word(word) in known:
            continue
        if len(known) == 1 and len(others) >= AGREEING and spec.literals[code].provenance != "copied":
            yield Finding(
                task=task,
                languages=(code,),
                check="word",
                expected=f"{others[0]!r} for {english!r} as in other prompts, in the prompt {spec.prompt!r}",
                found=repr(word),
            )
        elif spec.preset != STANDARD:
            sentence.setdefault(english, []).append((code, word, others[0]))
    for english, differing in sentence.items():
        named = ", ".join(f"{word!r}, not {other!r} ({code})" for code, word, other in differing[:SHOWN])
        more = f" and {len(differing) - SHOWN} more" if len(differing) > SHOWN else ""
        yield Note(
            task=task,
            languages=tuple(code for code, _, _ in differing),
            check="word",
            text=f"the prompt {spec.prompt!r} has other words for {english!r} than other prompts: {named}{more}",
        )


def _english_words(task: str, spec: PromptSpec, inherited: PromptSpec | None) -> Iterator[Note]:
    """Yield languages in which every label word is the English one; a single letter is a name of a choice."""
    pairs: dict[str, list[tuple[str, str]]] = {}
    for english, code, word in _label_words(spec, inherited):
        if len(plain_word(english)) > 1:
            pairs.setdefault(code, []).append((plain_word(english), plain_word(word)))
    codes = [
        code
        for code, own in pairs.items()
        if all(english == word for english, word in own) and spec.literals[code].provenance != "copied"
    ]
    if codes:
        words = ", ".join(repr(english) for english, _ in pairs[codes[0]])
        sentence = f"the prompt {spec.prompt!r} has the English label words ({words}), not translated"
        yield Note(task=task, languages=tuple(codes), check="word", text=sentence)


def _fixed_words(task: str, spec: PromptSpec) -> Iterator[Note]:
    """Yield the words in the template of a translated prompt, and so are the same in every language."""
    own = [code for code, literals in spec.literals.items() if literals.provenance != "copied"]
    if len({*own} - {ALL_LANGUAGES}) < LEAST_LANGUAGES:
        return
    texts = " ".join((spec.system, spec.item, spec.choice, spec.answer))
    words = dict.fromkeys(_WORD.findall(_SLOT.sub(" ", texts)))
    if words:
        shown = ", ".join(map(repr, list(words)[:SHOWN])) + (", ..." if len(words) > SHOWN else "")
        sentence = f"the template of the prompt {spec.prompt!r} has words that are the same in every language: {shown}"
        yield Note(task=task, languages=(), check="fixed words", text=sentence)


def plain_word(word: str) -> str:
    """Return a word without case, spaces and marks around and in it; combining marks are part of it."""
    text = unicodedata.normalize("NFKC", word).casefold()
    return "".join(character for character in text if unicodedata.category(character)[0] in "LMN")


def _label_words(spec: PromptSpec, inherited: PromptSpec | None) -> Iterator[tuple[str, str, str]]:
    """Yield (English word, language, word) of the labels that a preset itself has words for."""
    tables: Mapping[str, Literals] = {**({} if inherited is None else inherited.literals), **spec.literals}
    english = tables.get("en")
    if english is None:
        return
    for code, literals in spec.literals.items():
        if code in {"en", ALL_LANGUAGES}:
            continue
        for name, word in literals.words.items():
            if name.startswith("label.") and any(map(str.isalpha, english.words.get(name, ""))):
                yield english.words[name].strip().casefold(), code, word
