r"""CoNLL-U (universaldependencies.org/format.html): the parser, and the reader of treebanks as tagged sentences.

The parser keeps all that is needed to write a file again byte for byte. Why not a package: of 22 released files, conllu
6.0.0 changes 10 and pyconll 3.3.1 changes 20 in a round trip, and neither reports all faults of a file at once.

The reader offers two views. ``words`` gives the syntactic words unchanged. ``fused`` is the preparation of XTREME
(google-research/xtreme, ``third_party/ud-conversion-tools`` and ``utils_preprocess.py``): every multi-word token is one
token with the tag of its head word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import takewhile
from pathlib import Path
from sys import intern
from types import MappingProxyType
from typing import NamedTuple

from harness.data.readers.reader import Reader, choice, count_blank_lines, is_blank_line, lines_with_ends
from harness.data.records import Row
from harness.errors import DataError, Problem

COLUMNS, FEATS = 10, 5
NONE = "_"
SHOWN_FAULTS = 50
_TAG_RANK = "VERB NOUN PROPN PRON ADJ NUM ADV INTJ AUX ADP DET PART CCONJ SCONJ X PUNCT".split()
_TAG_RANK_BY_LANGUAGE = {
    "es": "VERB AUX PRON ADP DET".split(),
    "fr": "VERB AUX PRON NOUN ADJ ADV ADP DET PART SCONJ CONJ".split(),
    "it": "VERB AUX ADV PRON ADP DET INTJ".split(),
}
_SPAN_ID = re.compile(r"([1-9][0-9]*)-([1-9][0-9]*)")
_EMPTY_NODE_ID = re.compile(r"(?:0|[1-9][0-9]*)\.[1-9][0-9]*")
_ZERO_WIDTH_NON_JOINER = "\u200c"
_NO_SPACE_AFTER = "SpaceAfter=No"


class TreebankError(DataError):
    """A treebank file has faults; all of them are reported at once."""

    def __init__(self, path: Path | str, problems: Sequence[Problem]) -> None:
        self.path, self.problems = str(path), tuple(problems)
        count = "1 fault" if len(self.problems) == 1 else f"{len(self.problems)} faults"
        lines = [f"\n  {problem}" for problem in self.problems[:SHOWN_FAULTS]]
        hidden = len(self.problems) - SHOWN_FAULTS
        super().__init__(
            f"{path} has {count}:{''.join(lines)}" + (f"\n  and {hidden} more" if hidden > 0 else "")
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
        """Return FEATS by name; several values are one text, ``Acc,Gen``. What is not ``Name=Value`` is skipped."""
        return _features(self.feats)

    def feature(self, name: str) -> str | None:
        """Return the value of a feature, or None."""
        return _features(self.feats).get(name)

    @property
    def span(self) -> tuple[int, int] | None:
        """Return the first and last word id of a range, None for other tokens."""
        match = _SPAN_ID.fullmatch(self.id) if "-" in self.id else None
        return (int(match[1]), int(match[2])) if match else None

    @property
    def space_after(self) -> bool:
        """Return whether a space follows in the text."""
        return _NO_SPACE_AFTER not in self.misc or _NO_SPACE_AFTER not in self.misc.split("|")


token_of: Callable[[Iterable[str]], Token] = partial(tuple.__new__, Token)
"""Return the token of ten cells; unlike ``Token._make``, without a call in Python for each."""


@lru_cache(maxsize=65536)
def _features(feats: str) -> Mapping[str, str]:
    if feats == NONE:
        return MappingProxyType({})
    pairs = (item.partition("=") for item in feats.split("|"))
    return MappingProxyType({name: value for name, equals, value in pairs if equals})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence with everything that is needed to write it again."""

    comments: tuple[str, ...]
    """Whole lines, ``#`` included."""
    tokens: tuple[Token, ...]
    """All lines in the order of the file."""
    words: tuple[Token, ...]
    """The syntactic words; the word with id n is ``words[n - 1]``."""
    heads: tuple[int, ...]
    """Id of each word's head, 0 for the root, -1 for none; empty if no word has a head."""
    sent_id: str | None = None
    line: int = 1
    """1-based line of the file on which the sentence begins."""
    before: str = ""
    """The text before the first sentence of a file: a byte order mark, blank lines."""
    endings: tuple[str, ...] = ()
    r"""Line ends, one per line, or empty if all are ``\n``."""
    after: str = "\n"
    """The blank lines that follow."""

    def comment(self, name: str) -> str | None:
        """Return the value of a comment ``# name = value``, or None."""
        return _comment(self.comments, name)

    def arcs_to_root(self, word: int) -> int:
        """Return the number of arcs between the word with this id and the root; raises `ValueError` for no tree."""
        arcs = 0
        while word:
            if not self.heads or word < 0:
                raise ValueError("a word without a head")
            if arcs > len(self.heads):
                raise ValueError("a cycle of heads")
            word = self.heads[word - 1]
            arcs += 1
        return arcs


def _comment(comments: Sequence[str], wanted: str) -> str | None:
    for comment in comments:
        name, equals, value = comment[1:].partition("=")
        if equals and name.strip() == wanted:
            return value.strip()
    return None


def surface(tokens: Sequence[Token]) -> list[int]:
    """Return the 0-based places of the tokens that form the text: ranges, and words outside of them."""
    if "".join([token.id for token in tokens]).isdigit():  # Words alone.
        return list(range(len(tokens)))
    positions, inside = [], 0
    for position, token in enumerate(tokens):
        span = token.span
        if span is not None:
            inside = span[1]
        elif not token.is_word or int(token.id) <= inside:
            continue
        positions.append(position)
    return positions


def text_of(tokens: Sequence[Token], *, spaced: bool = False) -> str:
    """Return the text of a sentence by ``SpaceAfter=No``, or with a space after every token."""
    surface_tokens = (tokens[position] for position in surface(tokens))
    return "".join(
        token.form + " " if spaced or token.space_after else token.form for token in surface_tokens
    ).rstrip(" ")


# The parser ---------------------------------------------------------------------------------------------


def read_sentences(path: Path, *, named: bool = False, loose: bool = False) -> Iterator[Sentence]:
    """Yield the sentences of a file one by one.

    Args:
        path: The file.
        named: Whether a sentence without a sent_id is a fault.
        loose: Whether sent_ids may repeat and heads need not form a tree: for tags alone.

    Raises:
        TreebankError: After the last sentence, with all faults; sentences with a fault are not yielded. If `loose`, a
            `DataError` at the first fault.
        DataError: The file cannot be read, or is no UTF-8 text.
    """
    problems: list[Problem] = []
    lines: dict[str, int] = {}
    has_sentences = False
    for block in _blocks(path):
        has_sentences = True
        faults, sentence = _sentence(block, loose=loose)
        name = sentence.sent_id
        if not loose:
            if name is None and named:
                faults.append((block.line, "expected '# sent_id = ...', found none"))
            elif name in lines:
                faults.append((block.line, f"the sent_id is already used on line {lines[name]}"))
            elif name is not None:
                lines[name] = block.line
        key = "" if name is None else f"sentence {name!r}"
        if faults and loose:
            line, message = faults[0]
            raise DataError(f"{path}:{line}: {key and f'{key}: '}{message}.")
        problems += [Problem(message=message, line=line, key=key) for line, message in faults]
        if not faults:
            yield sentence
    if not has_sentences and not loose:
        problems.append(Problem(message="expected sentences, found none"))
    if problems:
        raise TreebankError(path, problems)


@dataclass(slots=True, kw_only=True)
class _Block:
    """The lines of one sentence while the file is read."""

    line: int
    before: str
    lines: list[str] = field(default_factory=list)
    endings: list[str] = field(default_factory=list)
    after: str = ""


def _blocks(path: Path) -> Iterator[_Block]:
    block: _Block | None = None
    before = ""
    extra = waiting = 0
    for number, line, ending in lines_with_ends(path):
        text = line.removeprefix("\ufeff") if number == 1 else line
        if block is None:
            before += line[: len(line) - len(text)]
        if is_blank_line(text):
            waiting += block is None or bool(block.after)
            if block is None:
                before += text + ending
            else:
                block.after += text + ending
            continue
        if block is None or block.after:
            if block is not None:
                yield block
            block, before = _Block(line=number, before=before), ""
        block.lines.append(text)
        block.endings.append(ending)
        if waiting:
            extra, waiting = extra + waiting, 0
    if block is not None:
        yield block
    count_blank_lines(path, extra)


Faults = list[tuple[int, str]]
"""Lines and messages."""


def _sentence(block: _Block, *, loose: bool) -> tuple[Faults, Sentence]:
    comments = tuple(takewhile(lambda line: line.startswith("#"), block.lines))
    first = block.line + len(comments)
    rows = [line.split("\t") for line in block.lines[len(comments) :]]
    faults: Faults = [
        (number, _row_fault(cells))
        for number, cells in enumerate(rows, start=first)
        if len(cells) != COLUMNS or "" in cells or cells[0][0] == "#"
    ]
    tokens = () if faults else _tokens(rows)
    lines: Sequence[int] = range(first, first + len(tokens))
    # A sentence of words alone, numbered 1 to n, needs no search for ranges and empty nodes.
    numbered = [token.id for token in tokens] == list(_numbers(len(tokens)))[1:]
    words = tokens if numbered else tuple(token for token in tokens if token.is_word)
    heads: list[int] = []
    if not faults and not numbered:
        faults += _id_faults(tokens, lines)
    if not faults:
        if not numbered:
            lines = [line for token, line in zip(tokens, lines, strict=True) if token.is_word]
        heads = _heads(words, lines, faults, loose=loose)
        if not words:
            faults.append((block.line, "expected the words of a sentence, found none"))
    return faults, Sentence(
        sent_id=_comment(comments, "sent_id"),
        comments=comments,
        tokens=tokens,
        words=words,
        heads=tuple(heads),
        line=block.line,
        before=block.before,
        endings=() if set(block.endings) == {"\n"} else tuple(block.endings),
        after=block.after,
    )


def _row_fault(cells: Sequence[str]) -> str:
    line = "\t".join(cells)
    if line.startswith("#"):
        return f"expected comments before the words of a sentence, found {line!r}"
    if len(cells) != COLUMNS:
        json = " (this looks like JSON)" if line.lstrip().startswith(("{", "[")) else ""
        return f"expected {COLUMNS} columns, found {len(cells)}{json}"
    return f"column {cells.index('') + 1} is empty (write '_' for no value)"


def _tokens(rows: Sequence[Sequence[str]]) -> tuple[Token, ...]:
    """Return the tokens of rows of cells, column by column; the columns with few distinct values share their texts."""
    columns: list[Iterable[str]] = list(zip(*rows, strict=True))
    for column in (3, 4, FEATS, 7) if rows else ():
        columns[column] = map(intern, columns[column])
    return tuple(map(token_of, zip(*columns, strict=True)))


@lru_cache(maxsize=256)
def _numbers(count: int) -> Mapping[str, int]:
    """Return the numbers from 0 to a count by the text that a column has for them."""
    return MappingProxyType({str(number): number for number in range(count + 1)})


def _id_faults(tokens: Sequence[Token], lines: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Yield faults unless words count 1..n, ranges begin before their words, and empty nodes follow theirs."""
    expected, inside, last_line = 1, 0, 0
    for token, line in zip(tokens, lines, strict=True):
        identifier = token.id
        if identifier == str(expected):
            expected += 1
            last_line = line
        elif span := _SPAN_ID.fullmatch(identifier):
            first, last = int(span[1]), int(span[2])
            if first != expected or first <= inside or last <= first:
                start = max(expected, inside + 1)
                yield line, f"expected a range of two or more words from {start}, found {identifier!r}"
            else:
                inside = last
        elif _EMPTY_NODE_ID.fullmatch(identifier):
            if int(identifier.partition(".")[0]) != expected - 1:
                yield line, f"expected an empty node after {expected - 1}, found {identifier!r}"
        else:
            yield line, f"expected the id {expected}, found {identifier!r}"
            if identifier.isdecimal() and identifier.isascii():
                expected = int(identifier) + 1
    if inside >= expected:
        yield last_line or lines[-1], f"expected words up to {inside} for a range, found {expected - 1}"


def _heads(words: Sequence[Token], lines: Sequence[int], faults: Faults, *, loose: bool) -> list[int]:
    """Return the heads of words, none if no word has one; unless `loose`, they must form a tree."""
    if all(word.head == NONE for word in words):
        return []
    numbers = _numbers(len(words))
    heads = [numbers.get(word.head, -1) for word in words]
    if -1 in heads:
        faults += [
            (line, f"expected a head from 0 to {len(words)}, found {word.head!r}")
            for word, line in zip(words, lines, strict=True)
            if word.head not in numbers and not (loose and word.head == NONE)
        ]
    if not faults and not loose:
        faults += [(lines[position], message) for position, message in _tree_faults(heads)]
    return heads


def _tree_faults(heads: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Yield (0-based position of a word, message) for faults of heads that are not one rooted tree."""
    if heads.count(0) != 1:
        roots = [position for position, head in enumerate(heads) if head == 0]
        if not roots:
            yield 0, "expected one root, found none"
        for position in roots[1:]:
            yield position, f"expected one root, found a second (the first is word {roots[0] + 1})"
    passed = {0}
    for start, head in enumerate(heads, start=1):
        if head in passed:
            passed.add(start)
            continue
        path: list[int] = []
        node = start
        while node not in passed and node not in path:
            path.append(node)
            node = heads[node - 1]
        if node not in passed:
            cycle = path[path.index(node) :]
            yield cycle[0] - 1, "the heads form a cycle: " + " -> ".join(map(str, [*cycle, cycle[0]]))
        passed.update(path)


# Tagged sentences ---------------------------------------------------------------------------------------


def _read(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    fused = choice(options, "tokens", ("fused", "words")) == "fused"
    rank = _TAG_RANK_BY_LANGUAGE.get(options.get("language", ""), _TAG_RANK)
    for path in paths:
        for sentence in read_sentences(path, loose=True):
            tagged = [(word.form, word.upos) for word in sentence.words]
            if fused:
                tagged = _fused_tokens(sentence, rank, path)
                if _has_no_text([form for form, _ in tagged]):
                    continue
            tags = tuple(tag for _, tag in tagged)
            text = sentence.comment("text")
            fields = {
                "tokens": tuple(form for form, _ in tagged),
                "tags": None if set(tags) == {NONE} else tags,
                "text": text_of(sentence.tokens) if text is None else text,
                "sent_id": sentence.sent_id,
            }
            yield Row(fields=fields, path=str(path), line=sentence.line)


def _fused_tokens(sentence: Sentence, rank: Sequence[str], path: Path) -> list[tuple[str, str]]:
    tokens = []
    for position in surface(sentence.tokens):
        token = sentence.tokens[position]
        joined = token.form.replace(_ZERO_WIDTH_NON_JOINER, "").replace(" ", "")
        try:
            if not joined:
                raise ValueError(f"a word with visible characters, found {token.form!r}")
            tag = token.upos if token.span is None else _head_tag(sentence, token.span, rank)
        except ValueError as error:
            name = "" if sentence.sent_id is None else f"sentence {sentence.sent_id!r}: "
            line = sentence.line + len(sentence.comments) + position
            raise DataError(f"{path}:{line}: {name}expected {error}.") from error
        tokens.append((joined, tag))
    return tokens


def _head_tag(sentence: Sentence, span: tuple[int, int], rank: Sequence[str]) -> str:
    """Return the tag of the word nearest the root; the better-ranked tag, then the first word, breaks a tie.

    A tag outside the list ranks last: upstream's converter stops with an error there.
    """
    try:
        arcs = {word: sentence.arcs_to_root(word) for word in range(span[0], span[1] + 1)}
    except ValueError as error:
        raise ValueError(f"a tree for the words of a multi-word token, found {error}") from error
    tags = [sentence.words[word - 1].upos for word, count in arcs.items() if count == min(arcs.values())]
    return min(tags, key=lambda tag: rank.index(tag) if tag in rank else len(rank))


def _has_no_text(forms: Sequence[str]) -> bool:
    """Return whether all words but at most one are ``_``, as in treebanks that are released without text.

    The rule is upstream's, ``num_empty < len(sent) - 1`` of `udpos_preprocess`.
    """
    empty = forms.count("_")
    return empty > 0 and empty >= len(forms) - 1


CONLLU = Reader(
    name="conllu",
    read=_read,
    summary="Universal Dependencies treebanks in CoNLL-U, as tagged sentences.",
    options={
        "tokens": "'fused' (default: one token for a multi-word token, as XTREME prepares them) or 'words'",
        "language": "language code; es, fr and it have their own order of tags for heads that tie",
    },
)
