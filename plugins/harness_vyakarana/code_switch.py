"""Script-mixed treebanks: a treebank in Latin letters, token by token (Patil et al., MRL 2021, section 3).

FORM, LEMMA and ``# text`` are rewritten; ids, tags, features, heads and everything else stay. The draw for a
token depends only on the seed, the sentence's id and the token's id, so neither order nor sharding matters.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from harness import ContractError, Transliterator, UsageError
from harness.data.readers.conllu import Sentence, Token, read_sentences, surface, text_of
from harness_vyakarana.treebank import write_sentences

__all__ = [
    "CodeSwitch",
    "SwitchCounts",
    "code_switch_file",
    "header",
    "respell",
    "spelling_variants",
    "switch_sentence",
]

_BREAKS = frozenset("\t\n\r")
VARIATIONS: tuple[tuple[str, str], ...] = (
    *(("aa", "a"), ("(?<!a)a(?!a)(?=[a-z])", "aa"), ("ee", "i"), ("(?<![aeiou])i(?![aeiou])", "ee")),
    *(("oo", "u"), ("(?<![aeiou])u(?![aeiou])", "oo"), ("ai", "ay"), ("au", "ow")),
    *(("(?<=[bdgjkpt])h", ""), ("(?<=[aeiou])h(?![aeiou])", ""), ("(?<=[aeiou])n$", "")),
    *(("v", "w"), ("w", "v"), ("ph", "f"), ("f", "ph"), ("z", "j"), ("(?<!s)sh", "s"), ("ksh", "x")),
    *(("q", "k"), ("y(?=[aeo])", ""), (r"([bcdfgklmnprstvz])\1", r"\1")),
)
"""Pattern and replacement: doubled and undoubled vowels, a dropped h or nasal, interchangeable letters."""

_COMPILED = tuple((re.compile(pattern), replacement) for pattern, replacement in VARIATIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSwitch:
    """The settings of a code-switched treebank."""

    engine: Transliterator
    language: str
    ratio: float = 1.0
    """Share of the tokens that are switched, in [0, 1]; a multi-word token is switched with all its words."""
    noise: float = 0.0
    """Share of the switched forms with a spelling variation, in [0, 1]; lemmas have none."""
    seed: int = 0
    paper: bool = False
    """Write as in the released treebanks: no original form in MISC, and the form of every line in ``# text``."""

    def __post_init__(self) -> None:
        """Raise `UsageError` for a share outside of [0, 1] or a language that the engine does not know."""
        for name, share in (("ratio", self.ratio), ("noise", self.noise)):
            if not 0 <= share <= 1:
                raise UsageError(f"The {name} must be a share from 0 to 1, got {share}.")
        known = self.engine.languages
        if known is not None and self.language not in known:
            raise UsageError(
                f"The transliterator {self.engine.name!r} does not know the language {self.language!r}; it knows "
                f"{', '.join(sorted(known))}.",
                hint="Choose another with --engine, or give the right --language.",
            )


@dataclass(slots=True, kw_only=True)
class SwitchCounts:
    """Counts of a file, in lines of tokens: words, ranges and empty nodes."""

    sentences: int = 0
    tokens: int = 0
    switched: int = 0
    """Tokens whose form was changed."""
    respelt: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    """Chosen forms that still have letters of another script, with their counts."""

    def add(self, other: SwitchCounts) -> None:
        """Add the counts of another file."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def header(switch: CodeSwitch) -> str:
    """Return the comment that describes how a file was made: engine, its version and licence, and every option."""
    engine = switch.engine
    return (
        f"# code_switch = engine={engine.name} version={engine.version} licence={engine.licence} "
        f"language={switch.language} ratio={switch.ratio} noise={switch.noise} seed={switch.seed}"
        + (" compat=paper" if switch.paper else "")
    )


def code_switch_file(source: Path, target: Path, switch: CodeSwitch) -> SwitchCounts:
    """Write the switched treebank, with its header above the first sentence; return the counts.

    With ratio 0 the file equals the source, byte for byte. The target is written completely or not at all. Raises
    `TreebankError` for a broken source and `StorageError` if the target cannot be written.
    """
    counts = SwitchCounts()
    switched = [switch_sentence(sentence, switch, counts) for sentence in read_sentences(source)]
    if switch.ratio > 0:
        first = switched[0]
        ends = first.endings and (first.endings[0], *first.endings)
        switched[0] = replace(first, comments=(header(switch), *first.comments), endings=ends)
    write_sentences(target, switched)
    return counts


def switch_sentence(sentence: Sentence, switch: CodeSwitch, counts: SwitchCounts) -> Sentence:
    """Return a sentence with the chosen tokens in Latin letters, and add to the counts."""
    counts.sentences += 1
    counts.tokens += len(sentence.tokens)
    draws = _draws(sentence, switch)
    chosen = [place for place, draw in enumerate(draws) if draw is not None]
    if not chosen:
        return sentence
    latin = _latin([sentence.tokens[place] for place in chosen], switch)
    tokens = list(sentence.tokens)
    for place, (form, lemma) in zip(chosen, latin, strict=True):
        tokens[place] = _switched(tokens[place], form, lemma, draws[place] or 0.0, switch, counts)
    comments = _comments(sentence, tokens, paper=switch.paper)
    words = tuple(token for token in tokens if token.is_word)
    return replace(sentence, comments=comments, tokens=tuple(tokens), words=words)


def _switched(
    token: Token, latin: str, lemma: str, draw: float, switch: CodeSwitch, counts: SwitchCounts
) -> Token:
    """Return a chosen token; its form is respelt if the draw is below the share of noise."""
    if not latin.isascii() and _has_other_script(latin):
        counts.unknown[latin] += 1
    form = latin
    if latin != token.form:
        counts.switched += 1
        if draw < switch.noise:
            form = respell(latin, draw / switch.noise)
            counts.respelt += form != latin
    elif lemma == token.lemma:
        return token
    misc = token.misc if switch.paper else _add_original(token.misc, token.form, form)
    return token._replace(form=form, lemma=lemma, misc=misc)


def _latin(tokens: Sequence[Token], switch: CodeSwitch) -> list[tuple[str, str]]:
    """Return form and lemma of tokens in Latin letters."""
    given = [token.form for token in tokens] + [token.lemma for token in tokens]
    latin = switch.engine.transliterate(given, switch.language)
    if len(latin) != len(given) or not all(latin):
        raise ContractError(
            f"The transliterator {switch.engine.name!r} was called with {len(given)} words and returned "
            f"{len(latin)}, of which {sum(not word for word in latin)} are empty."
        )
    if not _BREAKS.isdisjoint("".join(latin)):
        for before, after in zip(given, latin, strict=True):
            if before != after and not _BREAKS.isdisjoint(after):
                raise ContractError(
                    f"The transliterator {switch.engine.name!r} returned {after!r} for {before!r}."
                )
    return list(zip(latin[: len(tokens)], latin[len(tokens) :], strict=True))


# Spelling noise --------------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 16)
def spelling_variants(word: str) -> tuple[str, ...]:
    """Return the spellings with one variation at one place, in a fixed order, without the word itself."""
    found: dict[str, None] = {}
    for pattern, replacement in _COMPILED:
        for match in pattern.finditer(word):
            other = word[: match.start()] + match.expand(replacement) + word[match.end() :]
            if other and other != word:
                found[other] = None
    return tuple(found)


def respell(word: str, share: float) -> str:
    """Return the variant that a number in [0, 1) picks, all equally likely; the word itself if it has none."""
    others = spelling_variants(word)
    return others[int(share * len(others))] if others else word


# Drawing ----------------------------------------------------------------------------------------------


def _draws(sentence: Sentence, switch: CodeSwitch) -> list[float | None]:
    """Return for every token None if it stays, or a number in [0, 1) that decides on noise."""
    name = sentence.sent_id
    key = name if name is not None else " ".join(token.form for token in sentence.tokens)
    state = blake2b(f"{switch.seed}\t{key}\t".encode(), digest_size=16)
    draws: list[float | None] = []
    chosen, inside = False, 0
    for token in sentence.tokens:
        own = state.copy()
        own.update(token.id.encode())
        digest = own.digest()
        if not (token.is_word and int(token.id) <= inside):
            # The words of a multi-word token are switched with it: they share one part of the text.
            chosen = int.from_bytes(digest[:8], "big") < switch.ratio * 2**64
        if token.span is not None:
            inside = token.span[1]
        draws.append(int.from_bytes(digest[8:14], "big") / 2**48 if chosen else None)
    return draws


# Text and comments ------------------------------------------------------------------------------------


def _add_original(misc: str, before: str, after: str) -> str:
    if before == after or misc.startswith("Orig=") or "|Orig=" in misc:
        return misc
    # A bar separates the entries of MISC: it is escaped as in SpacesAfter.
    original = "Orig=" + before.replace("|", "\\p")
    return original if misc == "_" else f"{misc}|{original}"


def _comments(sentence: Sentence, tokens: Sequence[Token], *, paper: bool) -> tuple[str, ...]:
    """Return the comments with ``# text`` rewritten; a sentence without one gets none."""

    def rewritten(comment: str) -> str:
        name, equals, text = comment[1:].partition("=")
        if not equals or name.strip() != "text":
            return comment
        if paper:
            return "# text = " + " ".join(token.form for token in tokens)
        return f"#{name}={_text(text, sentence.tokens, tokens)}"

    return tuple(map(rewritten, sentence.comments))


def _text(text: str, before: Sequence[Token], after: Sequence[Token]) -> str:
    """Return the text with every surface form replaced in its place; spaces stay.

    A text that does not contain the forms in their order is rebuilt from the forms and ``SpaceAfter=No``.
    """
    parts: list[str] = []
    position = 0
    for place in surface(before):
        form = before[place].form
        found = text.find(form, position)
        gap = text[position:found]
        if found < 0 or (gap and not gap.isspace()):
            return " " + text_of(after)
        parts += [gap, after[place].form]
        position = found + len(form)
    return "".join(parts) + text[position:]


# Counting ---------------------------------------------------------------------------------------------


@lru_cache(maxsize=65536)
def _has_other_script(form: str) -> bool:
    return any(letter.isalpha() and "LATIN" not in unicodedata.name(letter, "") for letter in form)
