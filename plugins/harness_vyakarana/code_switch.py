"""Script-mixed treebanks: a treebank in Latin letters, token by token (Patil et al., MRL 2021, section 3).

FORM, LEMMA and ``# text`` are rewritten; ids, tags, features, heads and everything else stay. The draw for a
token depends only on the seed, the sentence's id and the token's id, so neither order nor sharding matters.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from operator import ne
from pathlib import Path

from harness import ContractError, UsageError
from harness.data import Sentence, Token, Transliterator, read_sentences, surface, text_of, token_of
from harness_vyakarana.treebank import licence_of, made_from, write_sentences

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
        languages = self.engine.languages
        if languages is not None and self.language not in languages:
            raise UsageError(
                f"The transliterator {self.engine.name!r} does not know the language {self.language!r}; it knows "
                f"{', '.join(sorted(languages))}.",
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


def header(switch: CodeSwitch, source: Path) -> str:
    """Return the comment that describes how a file was made: engine, its version and licence, and every option.

    The file that it was made from and its licence are in it where `source` does not record them in its own head.
    """
    engine = switch.engine
    origin = "" if made_from(source) else f"source={source.name} source_licence={licence_of(source)} "
    return (
        f"# code_switch = engine={engine.name} version={engine.version} licence={engine.licence} "
        f"language={switch.language} {origin}ratio={switch.ratio} noise={switch.noise} seed={switch.seed}"
        + (" compat=paper" if switch.paper else "")
    )


def code_switch_file(source: Path, target: Path, switch: CodeSwitch) -> SwitchCounts:
    """Write the switched treebank, with its header above the first sentence; return the counts.

    With ratio 0 the file equals the source, byte for byte. The target is written completely or not at all. Raises
    `TreebankError` for a broken source and `StorageError` if the target cannot be written.
    """
    counts = SwitchCounts()
    switched = (switch_sentence(sentence, switch, counts) for sentence in read_sentences(source))
    if switch.ratio > 0:
        first = next(switched)
        ends = first.endings and (first.endings[0], *first.endings)
        first = replace(first, comments=(header(switch, source), *first.comments), endings=ends)
        write_sentences(target, chain([first], switched))
    else:
        write_sentences(target, switched)
    return counts


def switch_sentence(sentence: Sentence, switch: CodeSwitch, counts: SwitchCounts) -> Sentence:
    """Return a sentence with the chosen tokens in Latin letters, and add to the counts."""
    counts.sentences += 1
    counts.tokens += len(sentence.tokens)
    draws = _draws(sentence, switch)
    chosen = [position for position, draw in enumerate(draws) if draw is not None]
    if not chosen:
        return sentence
    tokens = list(sentence.tokens)
    switched = _switched(
        [tokens[position] for position in chosen],
        [draws[position] or 0.0 for position in chosen],
        switch,
        counts,
    )
    for position, token in zip(chosen, switched, strict=True):
        tokens[position] = token
    lines = tuple(tokens)
    words = lines if len(sentence.words) == len(lines) else tuple(token for token in lines if token.is_word)
    comments = _comments(sentence, lines, paper=switch.paper)
    return replace(sentence, comments=comments, tokens=lines, words=words)


def _switched(
    tokens: Sequence[Token], draws: Sequence[float], switch: CodeSwitch, counts: SwitchCounts
) -> Iterator[Token]:
    """Return chosen tokens, column by column; a changed form is respelt if its draw is below the share of noise."""
    ids, originals, lemmas, *columns, miscs = zip(*tokens, strict=True)
    latin = _latin([*originals, *lemmas], switch)
    forms = latin[: len(tokens)]
    if not "".join(forms).isascii():
        counts.unknown.update(form for form in forms if not form.isascii() and _has_other_script(form))
    counts.switched += sum(map(ne, forms, originals))
    if switch.noise:
        plain = forms
        forms = [
            respell(form, draw / switch.noise) if draw < switch.noise and form != original else form
            for form, original, draw in zip(plain, originals, draws, strict=True)
        ]
        counts.respelt += sum(map(ne, forms, plain))
    marked = miscs if switch.paper else map(_add_original, miscs, originals, forms)
    return map(token_of, zip(ids, forms, latin[len(tokens) :], *columns, marked, strict=True))


def _latin(words: Sequence[str], switch: CodeSwitch) -> Sequence[str]:
    """Return words in Latin letters; raises `ContractError` if the engine does not return a word for each."""
    latin = switch.engine.transliterate(words, switch.language)
    if len(latin) != len(words) or not all(latin):
        raise ContractError(
            f"The transliterator {switch.engine.name!r} was called with {len(words)} words and returned "
            f"{len(latin)}, of which {sum(not word for word in latin)} are empty."
        )
    text = "".join(latin)
    if any(character in text for character in _BREAKS):
        for before, after in zip(words, latin, strict=True):
            if before != after and not _BREAKS.isdisjoint(after):
                raise ContractError(
                    f"The transliterator {switch.engine.name!r} returned {after!r} for {before!r}."
                )
    return latin


# Spelling noise --------------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 16)
def spelling_variants(word: str) -> tuple[str, ...]:
    """Return the spellings with one variation at one place, in a fixed order, without the word itself."""
    variants: dict[str, None] = {}
    for pattern, replacement in _COMPILED:
        for match in pattern.finditer(word):
            variant = word[: match.start()] + match.expand(replacement) + word[match.end() :]
            if variant and variant != word:
                variants[variant] = None
    return tuple(variants)


def respell(word: str, share: float) -> str:
    """Return the variant that a number in [0, 1) picks, all equally likely; the word itself if it has none."""
    variants = spelling_variants(word)
    return variants[int(share * len(variants))] if variants else word


# Drawing ----------------------------------------------------------------------------------------------


def _draws(sentence: Sentence, switch: CodeSwitch) -> list[float | None]:
    """Return for every token None if it stays, or a number in [0, 1) that decides on noise."""
    if switch.ratio == 1 and not switch.noise:
        return [0.0] * len(sentence.tokens)
    name = sentence.sent_id
    key = name if name is not None else " ".join(token.form for token in sentence.tokens)
    state = blake2b(f"{switch.seed}\t{key}\t".encode(), digest_size=16)
    draws: list[float | None] = []
    chosen, inside, limit = False, 0, switch.ratio * 2**64
    for token in sentence.tokens:
        token_state = state.copy()
        token_state.update(token.id.encode())
        digest = token_state.digest()
        if not (inside and token.is_word and int(token.id) <= inside):
            # The words of a multi-word token are switched with it: they share one part of the text.
            chosen = int.from_bytes(digest[:8], "big") < limit
        if (span := token.span) is not None:
            inside = span[1]
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
    pieces: list[str] = []
    position = 0
    for index in surface(before):
        form = before[index].form
        start = text.find(form, position)
        gap = text[position:start]
        if start < 0 or (gap and not gap.isspace()):
            return " " + text_of(after)
        pieces += [gap, after[index].form]
        position = start + len(form)
    return "".join(pieces) + text[position:]


# Counting ---------------------------------------------------------------------------------------------


@lru_cache(maxsize=65536)
def _has_other_script(form: str) -> bool:
    return any(letter.isalpha() and "LATIN" not in unicodedata.name(letter, "") for letter in form)
