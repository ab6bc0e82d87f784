"""Faults of the wording: scripts, untranslated English words, spaces, characters that do not belong in text."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Final

from harness.languages.character import is_unspaced
from harness_checklist.lint.finding import Finding
from harness_checklist.lint.script import WordScripts, language_scripts
from harness_checklist.lint.template import TemplateText, TestView
from harness_checklist.suites.suite import LanguageSuite

__all__ = ["ARTICLES", "name_findings", "stray_character", "text_findings"]

SHORTEST_STRETCH: Final = 6
"""Letters of a stretch of text that is compared with others without its marks."""
ARTICLES: Final = frozenset({"a", "an", "the"})
_WORDS: Final = re.compile(r"[^\W\d_]+")
_FIRST_WORD: Final = re.compile(r"(\w+)\s+\w", re.IGNORECASE)
_CLOSED_UP: Final = frozenset({"Hani", "Hira", "Kana"})
"""Scripts that put spaces nowhere. (Thai and Burmese put them between phrases.)"""
_BAD_SPACE: Final = re.compile(r"\s{2,}|^\s|\s$|\s[.,]")
_STRAY: Final = frozenset("\\\ufeff\ufffd\u00ad\u00a0\u200b\u200e\u200f\u2028\u2029`´")
"""A backslash, a byte order mark, a replacement character, a soft hyphen, a no-break space, a zero-width space,
marks of direction, separators, and accents used as apostrophes."""
_RIGHT_TO_LEFT: Final = frozenset({"Arab", "Hebr"})
_KEPT_IN: Final = {
    "\u200b": frozenset({"Thai", "Mymr", "Khmr", "Laoo"}),
    "\u200e": _RIGHT_TO_LEFT,
    "\u200f": _RIGHT_TO_LEFT,
}
"""Stray characters that belong in the texts of some scripts."""
_TYPOGRAPHY: Final = re.compile("\u00a0(?=[?!:;»])|(?<=«)\u00a0")
"""No-break spaces of French punctuation."""
_DOUBLED: Final = re.compile(r"(?<![.])[.]{2}(?![.])|[।۔。၊။]{2}|,,")
_FULL_STOP: Final = re.compile(r"[.।۔。।৷။？?!]")


def text_findings(view: TestView, words: WordScripts) -> Iterator[Finding]:
    """Yield the faults in the wording of a test in one language."""
    scripts = language_scripts(view.language.language, (text.text for text in view.texts))
    yield from _template_scripts(view, words, scripts)
    yield from _fill_scripts(view, words, scripts)
    yield from _leaked_in_fills(view)
    yield from _leaked_in_templates(view, scripts)
    yield from _source_words(view)
    yield from _spaces(view, scripts)
    yield from _missing_spaces(view, scripts)
    yield from _full_stops(view)
    yield from _spelling(view)
    yield from _stray(view, scripts)


# Scripts --------------------------------------------------------------------------------------------------


def _script_fault(words: WordScripts, text: str, scripts: frozenset[str]) -> tuple[str, str] | None:
    """Return the kind of a text's fault and a clause that describes it."""
    foreign = words.foreign(text, scripts)
    if foreign:
        return "foreign-script", f"{foreign[0]!r} is not written in {' or '.join(sorted(scripts))}"
    mixed = words.mixed(text, scripts)
    if not mixed:
        return None
    strange = [letter for letter in mixed[0] if words.foreign(letter, scripts)]
    names = ", ".join(dict.fromkeys(unicodedata.name(letter, "?") for letter in strange))
    return "mixed-script", f"{mixed[0]!r} has letters of two scripts ({names})"


def _template_scripts(view: TestView, words: WordScripts, scripts: frozenset[str]) -> Iterator[Finding]:
    for text in view.texts:
        fault = _script_fault(words, " ".join(text.literals), scripts)
        if fault is not None:
            kind, what = fault
            yield view.finding(kind, f"In a {text.role}, {what}.", text.place, example=text.text)


def _fill_scripts(view: TestView, words: WordScripts, scripts: frozenset[str]) -> Iterator[Finding]:
    for slot, fill in view.listed.items():
        for entry in fill.entries:
            for form in entry.forms:
                fault = _script_fault(words, " ".join(form.texts), scripts)
                if fault is not None:
                    kind, what = fault
                    place = form.place or fill.place
                    example = ", ".join(form.texts)
                    yield view.finding(kind, f"{slot} {entry.id!r}: {what}.", place, example=example)


def name_findings(language: LanguageSuite, words: WordScripts) -> Iterator[Finding]:
    """Yield one finding for all faults of the names of one language."""
    names = language.names
    every = list(dict.fromkeys((*names.male, *names.female, *names.last)))
    code, place = language.language, str(language.place or "")
    scripts = language_scripts(code, every)
    words.learn(every)
    foreign = [name for name in every if words.foreign(name, scripts) or words.mixed(name, scripts)]
    strange = f"{len(foreign)} of {len(every)} names have letters outside of {'/'.join(sorted(scripts))}"
    if names.borrowed and names.borrowed != code:
        message = f"The language has no names of its own; it borrows those of {names.borrowed!r}."
        message += f" {strange}." if foreign else ""
        kind, shown = "borrowed-names", every
    elif foreign:
        message, kind, shown = f"{strange}.", "foreign-names", foreign
    else:
        return
    yield Finding(
        kind=kind,
        language=code,
        test="",
        message=message,
        place=place,
        count=len(shown),
        example=", ".join(shown[:3]),
    )


# Words of the source language -----------------------------------------------------------------------------


def _leaked_in_fills(view: TestView) -> Iterator[Finding]:
    """Yield fill-ins that begin with the article of the English form that they translate.

    The article must be that of the same form of the same fill-in: ``a`` alone is a word of many languages
    (Hungarian ``a kanapé`` is ``the sofa``).
    """
    if view.source is None:
        return
    for slot, fill in view.listed.items():
        source = view.source.listed.get(slot)
        english = (
            {entry.id: entry.forms[0].texts for entry in source.entries if entry.forms} if source else {}
        )
        for entry in fill.entries:
            for form in entry.forms:
                for text, original in zip(form.texts, english.get(entry.id, ()), strict=False):
                    article = _article(text)
                    if article is not None and article == _article(original):
                        message = f"{slot} {entry.id!r} begins with the English article {article!r}."
                        yield view.finding("leaked-article", message, form.place or fill.place, example=text)


def _article(text: str) -> str | None:
    match = _FIRST_WORD.match(text)
    return match[1].lower() if match and match[1].lower() in ARTICLES else None


def _leaked_in_templates(view: TestView, scripts: frozenset[str]) -> Iterator[Finding]:
    """Yield texts with an English article; in languages of Latin script only ``the`` and ``an`` before a slot."""
    if view.source is None:
        return
    for text in view.texts:
        for number, literal in enumerate(text.literals):
            found = [word for word in _WORDS.findall(literal) if word.lower() in ARTICLES]
            if "Latn" in scripts:
                before_slot = number < len(text.literals) - 1 and literal.endswith(" ")
                last = literal.split()[-1:] if before_slot else []
                found = [word for word in found if last == [word] and word.lower() == "the"]
            if found:
                message = f"A {text.role} has the English article {found[0]!r}."
                yield view.finding("leaked-article", message, text.place, example=text.text)


def _source_words(view: TestView) -> Iterator[Finding]:
    """Yield words of all contexts of the source language that are in fewer than half of the translated ones.

    A word that two languages share is in most contexts (``is`` in Afrikaans); an untranslated one is not. Tests with
    fewer than four contexts are not checked.
    """
    if view.source is None:
        return
    originals = [
        frozenset(word.lower() for literal in text.literals for word in _WORDS.findall(literal))
        for text in view.source.contexts
    ]
    everywhere = frozenset.intersection(*originals) if originals else frozenset()
    texts = view.contexts
    if len(texts) < 4:
        return
    holders: dict[str, list[TemplateText]] = {}
    for text in texts:
        for word in dict.fromkeys(_WORDS.findall(" ".join(text.literals))):
            if word in everywhere:
                holders.setdefault(word, []).append(text)
    for word, own in holders.items():
        for text in own if 2 * len(own) < len(texts) else ():
            message = f"A {text.role} has the word {word!r} of the source language; most contexts do not."
            yield view.finding("source-word", message, text.place, example=text.text)


# Spaces and characters ------------------------------------------------------------------------------------


def _spaces(view: TestView, scripts: frozenset[str]) -> Iterator[Finding]:
    closed_up = scripts <= _CLOSED_UP
    for text in view.texts:
        bad = _BAD_SPACE.search(text.text)
        if bad is not None:
            what = "begins or ends with a space" if bad.start() == 0 or bad.end() == len(text.text) else None
            what = what or ("has a space before punctuation" if bad[0][-1] in ".," else "has a doubled space")
            yield view.finding("stray-space", f"A {text.role} {what}.", text.place, example=text.text)
        elif closed_up and any(_letter_next_to_space(literal) for literal in text.literals):
            message = (
                f"A {text.role} has spaces, which {' and '.join(sorted(scripts))} do not put between words."
            )
            yield view.finding("stray-space", message, text.place, example=text.text)


def _letter_next_to_space(literal: str) -> bool:
    return any(
        character.isspace() and any(is_unspaced(near) for near in literal[max(0, at - 1) : at + 2])
        for at, character in enumerate(literal)
    )


def _missing_spaces(view: TestView, scripts: frozenset[str]) -> Iterator[Finding]:
    """Yield texts in which placeholders touch each other, or a word that is separate elsewhere in the test.

    Suffixes and prefixes touch placeholders rightly (Quechua ``{first_name}qa``); they are never separate words.
    """
    if scripts <= _CLOSED_UP | {"Thai", "Mymr", "Khmr", "Laoo"}:
        return
    alone = frozenset(word for text in view.texts for word in _alone(text))
    for text in view.texts:
        touching = [word for word in _touching(text) if word in alone]
        if "" in text.literals[1:-1]:
            message = f"Two placeholders of a {text.role} touch each other."
            yield view.finding("missing-space", message, text.place, example=text.text)
        elif touching:
            message = f"{touching[0]!r} touches a placeholder, and is a word by itself elsewhere in the test."
            yield view.finding("missing-space", message, text.place, example=text.text)
        elif re.search(r"[.।۔؟?!](?=[{]|[^\W\d_]{2})", _joined(text)):
            message = f"A {text.role} has no space after a sentence."
            yield view.finding("missing-space", message, text.place, example=text.text)


def _joined(text: TemplateText) -> str:
    """Return the text with each placeholder as a brace, so that its attributes are not read as sentences."""
    return "{".join(text.literals)


def _alone(text: TemplateText) -> list[str]:
    """Return the words with a space, punctuation or an end of the text on both sides."""
    return [word for word in re.split(r"[\s.,?!।۔؟।]+", _joined(text)) if word and "{" not in word]


def _touching(text: TemplateText) -> list[str]:
    found = []
    for number, literal in enumerate(text.literals):
        before = re.search(r"(?:^|(?<=[\s.,]))([^\s.,?!।۔؟]{2,})$", literal)
        after = re.match(r"([^\s.,?!।۔؟]{2,})(?=[\s.,?!।۔؟]|$)", literal)
        if before is not None and number < len(text.literals) - 1 and before.start() + number:
            found.append(before[1])
        if after is not None and number:
            found.append(after[1])
    return found


def _full_stops(view: TestView) -> Iterator[Finding]:
    """Yield contexts with a full stop, but fewer than those of the source language with the same placeholders."""
    if view.source is None:
        return
    for text in view.contexts:
        wanted = [_stops(other) for other in view.source.contexts if other.keys == text.keys]
        if 0 < _stops(text) < min(wanted, default=0):
            message = (
                f"The context ends {_stops(text)} sentence; that of the source language ends {min(wanted)}."
            )
            yield view.finding("missing-full-stop", message, text.place, example=text.text)


def _stops(text: TemplateText) -> int:
    return len(_FULL_STOP.findall(_joined(text)))


def _spelling(view: TestView) -> Iterator[Finding]:
    """Yield texts in which a stretch between placeholders is elsewhere in the test spelt with other marks."""
    first: dict[str, tuple[str, int]] = {}
    counts = Counter(literal.strip() for text in view.texts for literal in text.literals)
    for literal, count in counts.most_common():
        bare = _bare(literal)
        if len(bare) >= SHORTEST_STRETCH:
            first.setdefault(bare, (literal, count))
    for text in view.texts:
        for literal in text.literals:
            usual, _ = first.get(_bare(literal.strip()), (literal.strip(), 0))
            if usual != literal.strip():
                message = f"A {text.role} has {literal.strip()!r}, which elsewhere in the test is {usual!r}."
                yield view.finding("spelling", message, text.place, example=text.text)


@cache
def _bare(text: str) -> str:
    """Return the text without marks on its letters."""
    return "".join(
        character
        for character in unicodedata.normalize("NFD", text)
        if unicodedata.category(character) not in {"Mn", "Cf"}
    )


def _stray(view: TestView, scripts: frozenset[str]) -> Iterator[Finding]:
    for text in view.texts:
        strange = stray_character(text.text, scripts)
        if strange is not None:
            message = f"A {text.role} has {strange}."
            yield view.finding("stray-character", message, text.place, example=text.text)
    for slot, fill in view.listed.items():
        for entry in fill.entries:
            for form in entry.forms:
                strange = stray_character(" ".join(form.texts), scripts)
                place = form.place or fill.place
                if strange is not None:
                    message = f"{slot} {entry.id!r} has {strange}."
                    yield view.finding("stray-character", message, place, example=", ".join(form.texts))
                elif any(_BAD_SPACE.search(each) for each in form.texts):
                    message = f"{slot} {entry.id!r} has a space too many."
                    yield view.finding("stray-space", message, place, example=", ".join(form.texts))


def stray_character(text: str, scripts: frozenset[str]) -> str | None:
    """Return the name of a character that does not belong in text of these scripts; None where there is none."""
    if _DOUBLED.search(text):
        return "a doubled full stop or comma"
    for character in _TYPOGRAPHY.sub(" ", text):
        if _is_stray(character) and not _KEPT_IN.get(character, frozenset()) & scripts:
            name = unicodedata.name(character, f"control character U+{ord(character):04X}")
            return "a backslash" if character == "\\" else f"a {name.lower()}"
    return None


@cache
def _is_stray(character: str) -> bool:
    return character in _STRAY or unicodedata.category(character) in {"Cc", "Co", "Cn"}
