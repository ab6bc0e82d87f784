r"""CoNLL-U files, read and written byte for byte (universaldependencies.org/format.html).

Why not a package: of 22 released files, conllu 6.0.0 changes 10 and pyconll 3.3.1 changes 20 in a round trip, and
neither reports all faults of a file at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from sys import intern
from types import MappingProxyType
from typing import NamedTuple

from harness import DataError, Problem
from harness_vyakarana.tree import tree_faults

__all__ = [
    "Sentence",
    "Token",
    "Treebank",
    "TreebankError",
    "feats_of",
    "features_of",
    "read_sentences",
    "read_treebank",
    "sentence_text",
    "values_of",
]

COLUMNS, FEATS = 10, 5
SHOWN_FAULTS = 50
NONE = "_"
_BYTE_ORDER_MARK = "\ufeff"
_SPAN_ID = re.compile(r"([1-9][0-9]*)-([1-9][0-9]*)")
_EMPTY_NODE_ID = re.compile(r"(?:0|[1-9][0-9]*)\.[1-9][0-9]*")
_HEAD = re.compile(r"0|[1-9][0-9]*")
_NUMBERS = tuple(map(str, range(1, 1001)))
_NUMBER_OF = {text: number for number, text in enumerate(("0", *_NUMBERS))}
"""The ids and heads of all but the longest sentences, so that none is parsed repeatedly."""


class TreebankError(DataError):
    """A treebank file has faults; all of them are reported at once."""

    def __init__(self, path: Path | str, problems: Sequence[Problem]) -> None:
        self.path, self.problems = str(path), tuple(problems)
        count = "1 fault" if len(self.problems) == 1 else f"{len(self.problems)} faults"
        lines = [f"\n  {problem}" for problem in self.problems[:SHOWN_FAULTS]]
        rest = len(self.problems) - SHOWN_FAULTS
        super().__init__(
            f"{path} has {count}:{''.join(lines)}" + (f"\n  and {rest} more" if rest > 0 else "")
        )


class Token(NamedTuple):
    """One line of a sentence: a word, the range of a multi-word token or an empty node; columns as in the file.

    A named tuple, since files have millions of tokens: a frozen dataclass takes seven times as long.
    """

    id: str
    """``3``, ``3-4`` or ``3.1``."""
    form: str
    lemma: str
    upos: str
    xpos: str
    feats: str
    head: str
    deprel: str
    deps: str
    misc: str

    @property
    def is_word(self) -> bool:
        """Return whether this is a syntactic word, neither a range nor an empty node."""
        return self.id.isdigit()

    @property
    def features(self) -> Mapping[str, str]:
        """Return FEATS by name; several values are one text, ``Acc,Gen``."""
        return features_of(self.feats)

    def feature(self, name: str) -> str | None:
        """Return the value of a feature, or None."""
        return features_of(self.feats).get(name)

    @property
    def span(self) -> tuple[int, int] | None:
        """Return the first and last word id of a range, None for other tokens."""
        found = _SPAN_ID.fullmatch(self.id) if "-" in self.id else None
        return (int(found[1]), int(found[2])) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence with everything that is needed to write it again."""

    sent_id: str | None
    comments: tuple[str, ...]
    """Whole lines, ``#`` included."""
    tokens: tuple[Token, ...]
    """All lines in the order of the file."""
    words: tuple[Token, ...]
    """The syntactic words; the word with id n is ``words[n - 1]``."""
    heads: tuple[int, ...]
    """Id of each word's head, 0 for the root; empty if the sentence has no tree."""
    line: int = 1
    """1-based line of the file on which the sentence begins."""
    before: str = ""
    """The bytes before the first sentence of a file: a byte order mark, blank lines."""
    endings: tuple[str, ...] = ()
    r"""Line ends, one per line, or empty if all are ``\n``."""
    after: str = "\n"
    """The blank lines that follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Treebank:
    """A whole file."""

    path: Path
    sentences: tuple[Sentence, ...]
    notices: tuple[Problem, ...]
    """Oddities that are no faults."""


@lru_cache(maxsize=65536)
def features_of(feats: str) -> Mapping[str, str]:
    """Return a FEATS column by name; entries that are not ``Name=Value`` are skipped (the reader adds a notice)."""
    if feats == NONE:
        return MappingProxyType({})
    pairs = (item.partition("=") for item in feats.split("|"))
    return MappingProxyType({name: value for name, equals, value in pairs if equals})


def feats_of(features: Mapping[str, str]) -> str:
    """Return the FEATS column of features: sorted by name without regard to case, ``_`` for none."""
    return "|".join(f"{name}={features[name]}" for name in sorted(features, key=str.lower)) or NONE


def values_of(value: str) -> tuple[str, ...]:
    """Return the values of a feature, sorted: ``Gen,Acc`` gives ``('Acc', 'Gen')``."""
    return tuple(sorted(value.split(",")))


def sentence_text(sentence: Sentence) -> str:
    """Return the lines of a sentence and the blank lines after it, as in the file it was read from."""
    lines = [*sentence.comments, *map("\t".join, sentence.tokens)]
    if not sentence.endings:
        return sentence.before + "\n".join(lines) + "\n" + sentence.after
    body = "".join(line + ending for line, ending in zip(lines, sentence.endings, strict=True))
    return sentence.before + body + sentence.after


def read_treebank(path: Path) -> Treebank:
    """Return all sentences of a file; raises `TreebankError` with all faults, `DataError` if it cannot be read."""
    notices: list[Problem] = []
    sentences = tuple(read_sentences(path, notices))
    return Treebank(path=path, sentences=sentences, notices=tuple(notices))


def read_sentences(
    path: Path, notices: list[Problem] | None = None, *, named: bool = False
) -> Iterator[Sentence]:
    """Yield the sentences of a file one by one, and add oddities to `notices`.

    With `named`, a sentence without a sent_id is a fault, not a notice.

    Raises `TreebankError` after the last sentence, with all faults; sentences with a fault are not yielded.
    """
    problems: list[Problem] = []
    seen: dict[str, int] = {}
    found = False
    for block in _blocks(path):
        found = True
        check = _Check(notices=notices if notices is not None else [])
        sentence = _sentence(block, check)
        identifier = check.sent_id
        if identifier is None and named:
            check.fault(block.line, "expected '# sent_id = ...', found none")
        elif identifier is None:
            check.notice(block.line, "the sentence has no sent_id")
        elif identifier in seen:
            check.fault(block.line, f"the sent_id is already used on line {seen[identifier]}")
        else:
            seen[identifier] = block.line
        problems += check.named_faults()
        if sentence is not None and not check.faults:
            yield sentence
    if not found:
        problems.append(Problem(message="expected sentences, found none"))
    if problems:
        raise TreebankError(path, problems)


# Lines ------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Block:
    """The lines of one sentence while the file is read."""

    line: int
    before: str
    raw: list[bytes]
    after: str = ""


def _blocks(path: Path) -> Iterator[_Block]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: expected a readable file, found: {error.strerror or error}.") from error
    block: _Block | None = None
    before = ""
    with file:
        for number, raw in enumerate(file, start=1):
            line = raw
            if number == 1 and raw.startswith(_BYTE_ORDER_MARK.encode()):
                before, line = _BYTE_ORDER_MARK, raw[3:]
            if line.isspace() or not line:
                if block is None:
                    before += line.decode()
                else:
                    block.after += line.decode()
                continue
            if block is None or block.after:
                if block is not None:
                    yield block
                block = _Block(line=number, before=before, raw=[])
                before = ""
            block.raw.append(line)
    if block is not None:
        yield block


@dataclass(slots=True, kw_only=True)
class _Check:
    """The faults and notices of one sentence."""

    notices: list[Problem]
    sent_id: str | None = None
    faults: list[tuple[int, str]] | None = None

    def fault(self, line: int, message: str) -> None:
        self.faults = [*(self.faults or []), (line, message)]

    def notice(self, line: int, message: str) -> None:
        self.notices.append(Problem(message=message, line=line, key=self._key()))

    def named_faults(self) -> list[Problem]:
        return [Problem(message=message, line=line, key=self._key()) for line, message in self.faults or []]

    def _key(self) -> str:
        return "" if self.sent_id is None else f"sentence {self.sent_id!r}"


def _sentence(block: _Block, check: _Check) -> Sentence | None:
    lines, endings = _decoded(block, check)
    count = sum(1 for _ in takewhile(lambda line: line.startswith("#"), lines))
    comments = tuple(lines[:count])
    check.sent_id = _sent_id(comments)
    tokens: list[Token] = []
    numbers: list[int] = []
    for number, line in enumerate(lines[count:], start=block.line + count):
        if line.startswith("#"):
            check.fault(number, "expected comments before the words only")
            continue
        token = _token(line, number, check)
        if token is not None:
            tokens.append(token)
            numbers.append(number)
    if check.faults:
        return None
    plain = tuple(token.id for token in tokens) == _NUMBERS[: len(tokens)]
    words = tuple(tokens) if plain else tuple(token for token in tokens if token.id.isdigit())
    if not plain:
        _check_ids(tokens, numbers, check)
    heads = _structure(tokens, numbers, words, block, check)
    return Sentence(
        sent_id=check.sent_id,
        comments=comments,
        tokens=tuple(tokens),
        words=words,
        heads=heads,
        line=block.line,
        before=block.before,
        endings=endings,
        after=block.after,
    )


def _decoded(block: _Block, check: _Check) -> tuple[list[str], tuple[str, ...]]:
    whole = b"".join(block.raw)
    if whole.endswith(b"\n") and b"\r" not in whole:
        try:
            return whole[:-1].decode().split("\n"), ()
        except UnicodeDecodeError:
            pass  # Reported below, by line.
    lines: list[str] = []
    endings: list[str] = []
    plain = True
    for number, raw in enumerate(block.raw, start=block.line):
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            check.fault(number, f"expected UTF-8, found the byte 0x{raw[error.start]:02x}")
            text = raw.decode(errors="replace")
        if text.endswith("\r\n"):
            lines.append(text[:-2])
            endings.append("\r\n")
            plain = False
        elif text.endswith("\n"):
            lines.append(text[:-1])
            endings.append("\n")
        else:
            lines.append(text)
            endings.append("")
            plain = False
    return lines, () if plain else tuple(endings)


def _sent_id(comments: Iterable[str]) -> str | None:
    for comment in comments:
        name, equals, value = comment[1:].partition("=")
        if equals and name.strip() == "sent_id":
            return value.strip()
    return None


def _token(line: str, number: int, check: _Check) -> Token | None:
    cells = line.split("\t")
    if len(cells) != COLUMNS:
        check.fault(number, f"expected {COLUMNS} columns, found {len(cells)}")
        return None
    if "" in cells:
        check.fault(number, f"column {cells.index('') + 1} is empty (write '_' for no value)")
        return None
    feats = cells[FEATS]
    if feats != NONE and feats.count("=") < feats.count("|") + 1:
        check.notice(number, f"FEATS are not Name=Value: {feats!r}")
    # These columns have few distinct values: keep one copy of each.
    cells[3], cells[4], cells[FEATS], cells[7] = (
        intern(cells[3]),
        intern(cells[4]),
        intern(feats),
        intern(cells[7]),
    )
    return Token._make(cells)


# Structure --------------------------------------------------------------------------------------------


def _structure(
    tokens: Sequence[Token], numbers: Sequence[int], words: Sequence[Token], block: _Block, check: _Check
) -> tuple[int, ...]:
    """Return the heads of the words after the checks of the whole sentence."""
    if not words:
        check.fault(block.line, "expected the words of a sentence, found none")
        return ()
    if check.faults:
        return ()
    given = [word.head for word in words]
    if all(head == NONE for head in given):
        check.notice(block.line, "the sentence has no tree")
        return ()
    lines = [number for token, number in zip(tokens, numbers, strict=True) if token.id.isdigit()]
    heads = [_NUMBER_OF.get(head, -1) for head in given]
    if min(heads) < 0 or max(heads) > len(words):
        heads = _parsed_heads(given, lines, check)
    if not check.faults:
        for position, message in tree_faults(heads):
            check.fault(lines[position], message)
    return tuple(heads)


def _parsed_heads(given: Sequence[str], lines: Sequence[int], check: _Check) -> list[int]:
    heads: list[int] = []
    for head, line in zip(given, lines, strict=True):
        if not _HEAD.fullmatch(head) or int(head) > len(given):
            check.fault(line, f"expected a head from 0 to {len(given)}, found {head!r}")
        else:
            heads.append(int(head))
    return heads


def _check_ids(tokens: Sequence[Token], numbers: Sequence[int], check: _Check) -> None:
    """Check that words count 1..n, that ranges begin before their words, and that empty nodes follow theirs."""
    expected, inside, last_line = 1, 0, 0
    for token, line in zip(tokens, numbers, strict=True):
        identifier = token.id
        if identifier == str(expected):
            expected += 1
            last_line = line
        elif span := _SPAN_ID.fullmatch(identifier):
            first, last = int(span[1]), int(span[2])
            if first != expected or first <= inside or last <= first:
                wanted = max(expected, inside + 1)
                check.fault(
                    line, f"expected a range of two or more words from {wanted}, found {identifier!r}"
                )
            else:
                inside = last
        elif _EMPTY_NODE_ID.fullmatch(identifier):
            if int(identifier.partition(".")[0]) != expected - 1:
                check.fault(line, f"expected an empty node after {expected - 1}, found {identifier!r}")
        else:
            check.fault(line, f"expected the id {expected}, found {identifier!r}")
            if identifier.isdecimal() and identifier.isascii():
                expected = int(identifier) + 1
    if inside >= expected:
        check.fault(
            last_line or numbers[-1], f"expected words up to {inside} for a range, found {expected - 1}"
        )
