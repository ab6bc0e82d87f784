"""Script-mixed treebanks: a treebank in Latin letters, token by token (Patil et al., MRL 2021, section 3).

FORM, LEMMA and ``# text`` are rewritten; ids, tags, features, heads and everything else stay. The draw for a
token depends only on the seed, the sentence's id and the token's id, so neither order nor sharding matters.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from harness import ContractError, Transliterator, UsageError
from harness.storage.files import write_atomically
from harness_vyakarana.conllu import Sentence, Token, read_sentences, sentence_text
from harness_vyakarana.spelling import respell

__all__ = ["CodeSwitch", "SwitchCounts", "code_switch_file", "header", "switch_sentence"]

NONE = "_"
_BREAKS = frozenset("\t\n\r")


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
    switchable: int = 0
    """Tokens whose form is not ASCII."""
    switched: int = 0
    """Tokens whose form was changed."""
    respelt: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    """Chosen forms that still have letters of another script, with their counts."""

    def add(self, other: SwitchCounts) -> None:
        """Add the counts of another file."""
        self.sentences += other.sentences
        self.tokens += other.tokens
        self.switchable += other.switchable
        self.switched += other.switched
        self.respelt += other.respelt
        self.unknown += other.unknown


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
    parts: list[str] = []
    for sentence in read_sentences(source):
        switched = switch_sentence(sentence, switch, counts)
        if counts.sentences == 1 and switch.ratio > 0:
            ends = switched.endings and (switched.endings[0], *switched.endings)
            switched = replace(switched, comments=(header(switch), *switched.comments), endings=ends)
        parts.append(sentence_text(switched))
    write_atomically(target, "".join(parts))
    return counts


def switch_sentence(sentence: Sentence, switch: CodeSwitch, counts: SwitchCounts) -> Sentence:
    """Return a sentence with the chosen tokens in Latin letters, and add to the counts."""
    counts.sentences += 1
    counts.tokens += len(sentence.tokens)
    draws = _draws(sentence, switch)
    chosen = [place for place, draw in enumerate(draws) if draw is not None]
    if not chosen:
        counts.switchable += sum(not token.form.isascii() for token in sentence.tokens)
        return sentence
    latin = _latin([sentence.tokens[place] for place in chosen], switch)
    tokens = list(sentence.tokens)
    for place, (form, lemma) in zip(chosen, latin, strict=True):
        tokens[place] = _switched(tokens[place], form, lemma, draws[place] or 0.0, switch, counts)
    counts.switchable += sum(not token.form.isascii() for token in sentence.tokens)
    comments = _comments(sentence, tokens, paper=switch.paper)
    plain = len(sentence.words) == len(sentence.tokens)
    words = tokens if plain else [token for token in tokens if token.is_word]
    return replace(sentence, comments=comments, tokens=tuple(tokens), words=tuple(words))


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
    return Token(
        id=token.id,
        form=form,
        lemma=lemma,
        upos=token.upos,
        xpos=token.xpos,
        feats=token.feats,
        head=token.head,
        deprel=token.deprel,
        deps=token.deps,
        misc=token.misc if switch.paper else _add_original(token.misc, token.form, form),
    )


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


# Drawing ----------------------------------------------------------------------------------------------


def _draws(sentence: Sentence, switch: CodeSwitch) -> list[float | None]:
    """Return for every token None if it stays, or a number in [0, 1) that decides on noise."""
    if switch.ratio >= 1 and switch.noise <= 0:
        return [0.0] * len(sentence.tokens)
    if switch.ratio <= 0:
        return [None] * len(sentence.tokens)
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
    return original if misc == NONE else f"{misc}|{original}"


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
    places = _surface(before)
    parts: list[str] = []
    position = 0
    for place in places:
        form = before[place].form
        found = text.find(form, position)
        gap = text[position:found]
        if found < 0 or (gap and not gap.isspace()):
            return _spaced([after[place] for place in places])
        parts.append(gap)
        parts.append(after[place].form)
        position = found + len(form)
    return "".join(parts) + text[position:]


def _spaced(tokens: Sequence[Token]) -> str:
    forms = (token.form if "SpaceAfter=No" in token.misc.split("|") else token.form + " " for token in tokens)
    return " " + "".join(forms).rstrip(" ")


def _surface(tokens: Sequence[Token]) -> Sequence[int]:
    """Return the places of the tokens that form the text: ranges, and words outside of them."""
    if tokens[-1].id == str(len(tokens)):
        return range(len(tokens))
    inside = 0
    places = []
    for place, token in enumerate(tokens):
        if token.span is not None:
            inside = token.span[1]
            places.append(place)
        elif token.is_word and int(token.id) > inside:
            places.append(place)
    return places


# Counting ---------------------------------------------------------------------------------------------


@lru_cache(maxsize=65536)
def _has_other_script(form: str) -> bool:
    return any(letter.isalpha() and not _latin_letter(letter) for letter in form)


def _latin_letter(letter: str) -> bool:
    return letter.isascii() or "LATIN" in unicodedata.name(letter, "")
