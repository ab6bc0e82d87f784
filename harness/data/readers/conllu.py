"""Universal Dependencies treebanks in CoNLL-U, as tagged sentences.

Two views of a sentence are offered. ``words`` gives the syntactic words unchanged. ``fused`` is the
preparation of XTREME (google-research/xtreme, ``third_party/ud-conversion-tools`` and
``utils_preprocess.py``): every multi-word token is one token with the tag of its head word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.data.readers.reader import Reader, choice
from harness.data.readers.text import numbered_lines
from harness.data.records import Row
from harness.errors import DataError

__all__ = ["CONLLU"]

_TAG_RANK = "VERB NOUN PROPN PRON ADJ NUM ADV INTJ AUX ADP DET PART CCONJ SCONJ X PUNCT".split()
_TAG_RANK_BY_LANGUAGE = {
    "es": "VERB AUX PRON ADP DET".split(),
    "fr": "VERB AUX PRON NOUN ADJ ADV ADP DET PART SCONJ CONJ".split(),
    "it": "VERB AUX ADV PRON ADP DET INTJ".split(),
}
_WORD_ID = re.compile(r"[1-9][0-9]*")
_SPAN_ID = re.compile(r"([1-9][0-9]*)-([1-9][0-9]*)")
_EMPTY_NODE_ID = re.compile(r"(0|[1-9][0-9]*)\.[1-9][0-9]*")
_ZERO_WIDTH_NON_JOINER = "\u200c"
_NO_SPACE_AFTER = "SpaceAfter=No"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Word:
    """A syntactic word."""

    line: int
    form: str
    tag: str
    head: int | None
    """Id of the head, 0 for the root, None where the treebank has no trees."""
    space_after: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fusion:
    """A multi-word token: the surface form of the words `first` to `last`."""

    line: int
    form: str
    first: int
    last: int
    space_after: bool


@dataclass(slots=True, kw_only=True)
class _Sentence:
    """One block of a file while it is read; word ids count from 1."""

    path: Path
    line: int
    sent_id: str | None = None
    text: str | None = None
    words: list[_Word] = field(default_factory=list)
    fusions: dict[int, _Fusion] = field(default_factory=dict)
    """By the id of their first word."""

    def fault(self, line: int, expected: str, found: str) -> DataError:
        name = f"sentence {self.sent_id!r}: " if self.sent_id is not None else ""
        return DataError(f"{self.path}:{line}: {name}expected {expected}, found {found}.")


def _read(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    fused = choice(options, "tokens", ("fused", "words")) == "fused"
    rank = _TAG_RANK_BY_LANGUAGE.get(options.get("language", ""), _TAG_RANK)
    for path in paths:
        for sentence in _sentences(path):
            if fused:
                tagged = _fused_tokens(sentence, rank)
                if _has_no_text([form for form, _ in tagged]):
                    continue
            else:
                tagged = [(word.form, word.tag) for word in sentence.words]
            yield _row(sentence, tagged)


def _row(sentence: _Sentence, tagged: Sequence[tuple[str, str]]) -> Row:
    tags = tuple(tag for _, tag in tagged)
    fields = {
        "tokens": tuple(form for form, _ in tagged),
        "tags": None if set(tags) == {"_"} else tags,
        "text": _text(sentence) if sentence.text is None else sentence.text,
        "sent_id": sentence.sent_id,
    }
    return Row(fields=fields, path=str(sentence.path), line=sentence.line)


def _text(sentence: _Sentence) -> str:
    """Return the text that the forms and ``SpaceAfter=No`` describe, for files without ``# text``.

    Source: universaldependencies.org/format.html, "Untokenized text": a space follows every surface token that
    does not say otherwise; words inside a multi-word token say nothing.
    """
    pieces = []
    position = 1
    while position <= len(sentence.words):
        fusion = sentence.fusions.get(position)
        surface = sentence.words[position - 1] if fusion is None else fusion
        pieces.append(surface.form + (" " if surface.space_after else ""))
        position = position + 1 if fusion is None else fusion.last + 1
    return "".join(pieces).strip()


# The preparation of XTREME ----------------------------------------------------------------------------


def _fused_tokens(sentence: _Sentence, rank: Sequence[str]) -> list[tuple[str, str]]:
    tokens = []
    position = 1
    while position <= len(sentence.words):
        fusion = sentence.fusions.get(position)
        if fusion is None:
            word = sentence.words[position - 1]
            line, form, tag = word.line, word.form, word.tag
            position += 1
        else:
            line, form, tag = fusion.line, fusion.form, _head_tag(sentence, fusion, rank)
            position = fusion.last + 1
        joined = form.replace(_ZERO_WIDTH_NON_JOINER, "").replace(" ", "")
        if not joined:
            raise sentence.fault(line, "a word with visible characters", repr(form))
        tokens.append((joined, tag))
    return tokens


def _head_tag(sentence: _Sentence, fusion: _Fusion, rank: Sequence[str]) -> str:
    """Return the tag of the word nearest the root; the better-ranked tag, then the first word, breaks a tie.

    A tag outside the list ranks last: upstream's converter stops with an error there.
    """
    span = range(fusion.first, fusion.last + 1)
    depths = {position: _depth(sentence, position, fusion.line) for position in span}
    nearest = [position for position in span if depths[position] == min(depths.values())]
    tags = [sentence.words[position - 1].tag for position in nearest]
    return min(tags, key=lambda tag: rank.index(tag) if tag in rank else len(rank))


def _depth(sentence: _Sentence, position: int, line: int) -> int:
    """Return the number of arcs between a word and the root of the basic tree."""
    depth = 0
    head: int | None = position
    while head != 0:
        if head is None or depth > len(sentence.words):
            found = "a word without a head" if head is None else "a cycle of heads"
            raise sentence.fault(line, "a tree for the words of a multi-word token", found)
        head = sentence.words[head - 1].head
        depth += 1
    return depth


def _has_no_text(forms: Sequence[str]) -> bool:
    """Return whether all words but at most one are ``_``, as in treebanks that are released without text.

    The rule is upstream's, ``num_empty < len(sent) - 1`` of `udpos_preprocess`.
    """
    empty = forms.count("_")
    return empty > 0 and empty >= len(forms) - 1


# The format -------------------------------------------------------------------------------------------


def _sentences(path: Path) -> Iterator[_Sentence]:
    sentence: _Sentence | None = None
    for line, text in numbered_lines(path):
        if text:
            sentence = sentence or _Sentence(path=path, line=line)
            _add_line(sentence, line, text)
        elif sentence is not None:
            yield _complete(sentence)
            sentence = None
    if sentence is not None:
        yield _complete(sentence)


def _add_line(sentence: _Sentence, line: int, text: str) -> None:
    if text.startswith("#"):
        _add_comment(sentence, line, text)
        return
    cells = text.split("\t")
    if len(cells) != 10:
        json = " (this looks like JSON)" if text.lstrip().startswith(("{", "[")) else ""
        raise sentence.fault(line, "ten columns", f"{len(cells)}{json}")
    identifier, form = cells[0], cells[1]
    if not form:
        raise sentence.fault(line, "a form", "an empty column")
    if _WORD_ID.fullmatch(identifier):
        _add_word(sentence, line, cells)
    elif span := _SPAN_ID.fullmatch(identifier):
        first, last = int(span[1]), int(span[2])
        fusion = _Fusion(line=line, form=form, first=first, last=last, space_after=_has_space_after(cells))
        _add_fusion(sentence, line, fusion)
    elif not _EMPTY_NODE_ID.fullmatch(identifier):
        raise sentence.fault(line, "an id such as '3', '3-4' or '3.1'", repr(identifier))


def _add_comment(sentence: _Sentence, line: int, text: str) -> None:
    if sentence.words or sentence.fusions:
        raise sentence.fault(line, "comments before the words of a sentence", repr(text))
    name, equals, value = text[1:].partition("=")
    if equals and name.strip() == "sent_id":
        sentence.sent_id = value.strip()
    elif equals and name.strip() == "text":
        sentence.text = value.strip()


def _add_word(sentence: _Sentence, line: int, cells: Sequence[str]) -> None:
    identifier, form, tag, head = cells[0], cells[1], cells[3], cells[6]
    expected = len(sentence.words) + 1
    if int(identifier) != expected:
        raise sentence.fault(line, f"the id {expected}", repr(identifier))
    if not tag:
        raise sentence.fault(line, "a part-of-speech tag or '_'", "an empty column")
    if head not in ("0", "_") and not _WORD_ID.fullmatch(head):
        raise sentence.fault(line, "a head that is the id of a word, 0 or '_'", repr(head))
    sentence.words.append(
        _Word(
            line=line,
            form=form,
            tag=tag,
            head=None if head == "_" else int(head),
            space_after=_has_space_after(cells),
        )
    )


def _has_space_after(cells: Sequence[str]) -> bool:
    return _NO_SPACE_AFTER not in cells[9].split("|")


def _add_fusion(sentence: _Sentence, line: int, fusion: _Fusion) -> None:
    expected = len(sentence.words) + 1
    inside = max((other.last for other in sentence.fusions.values()), default=0)
    if fusion.first != expected or fusion.first <= inside or fusion.last < fusion.first:
        raise sentence.fault(
            line,
            f"a multi-word token that begins at {max(expected, inside + 1)}",
            f"'{fusion.first}-{fusion.last}'",
        )
    sentence.fusions[fusion.first] = fusion


def _complete(sentence: _Sentence) -> _Sentence:
    count = len(sentence.words)
    if not count:
        raise sentence.fault(sentence.line, "the words of a sentence", "none")
    for fusion in sentence.fusions.values():
        if fusion.last > count:
            raise sentence.fault(
                fusion.line, f"{fusion.last} words for '{fusion.first}-{fusion.last}'", str(count)
            )
    for word in sentence.words:
        if word.head is not None and word.head > count:
            raise sentence.fault(word.line, f"a head from 0 to {count}", str(word.head))
    return sentence


CONLLU = Reader(
    name="conllu",
    read=_read,
    summary="Universal Dependencies treebanks in CoNLL-U, as tagged sentences.",
    options={
        "tokens": "'fused' (default: one token for a multi-word token, as XTREME prepares them) or 'words'",
        "language": "language code; es, fr and it have their own order of tags for heads that tie",
    },
)
