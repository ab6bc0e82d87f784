"""The special pieces that a tokenizer puts around texts, counts of pieces, and their offsets checked against texts."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from harness import AdapterError
from harness.models import SubwordCount
from harness_hf.inference.batching import Encoded

if TYPE_CHECKING:
    from harness_hf.inference.session import ModelSession


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialTokens:
    """Special pieces before, between and after the texts, with the segment of each piece."""

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    before_types: tuple[int, ...]
    between_types: tuple[int, ...]
    after_types: tuple[int, ...]
    first_type: int
    second_type: int

    @classmethod
    def around(cls, before: Sequence[int], after: Sequence[int] = ()) -> SpecialTokens:
        """Return the template of one text, all of it of the first segment."""
        return cls(
            before=tuple(before),
            between=(),
            after=tuple(after),
            before_types=(0,) * len(before),
            between_types=(),
            after_types=(0,) * len(after),
            first_type=0,
            second_type=0,
        )

    def separated_by(self, pieces: Sequence[int]) -> SpecialTokens:
        """Return the template with these pieces between the texts, of the first segment."""
        return replace(self, between=tuple(pieces), between_types=(self.first_type,) * len(pieces))

    @property
    def size(self) -> int:
        """The number of special pieces."""
        return len(self.before) + len(self.between) + len(self.after)

    def wrap(self, first: list[int], second: list[int] | None = None) -> Encoded:
        """Return the pieces of the texts with the special pieces around them."""
        second = second if second is not None else []
        return Encoded(
            [*self.before, *first, *self.between, *second, *self.after],
            [
                *self.before_types,
                *[self.first_type] * len(first),
                *self.between_types,
                *[self.second_type] * len(second),
                *self.after_types,
            ],
        )

    def second_start(self, first_length: int) -> int:
        """Return the index of the second text's first piece."""
        return len(self.before) + first_length + len(self.between)


def read_affixes(tokenizer: Any, ref: str, side: str = "text") -> SpecialTokens:
    """Return the special pieces around an input (side ``text``) or an output (``text_target``), found by a probe."""
    plain = list(tokenizer(**{side: "a"}, add_special_tokens=False)["input_ids"])
    pieces = list(tokenizer(**{side: "a"})["input_ids"])
    for start in range(len(pieces) - len(plain) + 1):
        if plain and pieces[start : start + len(plain)] == plain:
            return SpecialTokens.around(pieces[:start], pieces[start + len(plain) :])
    raise AdapterError(
        f"The tokenizer of {ref!r} changes a text when special tokens are added, so it cannot be used here."
    )


def read_templates(tokenizer: Any) -> tuple[SpecialTokens, SpecialTokens]:
    """Return the templates of one text and of a pair, found by encoding a probe with and without them."""
    probe = tokenizer("a", add_special_tokens=False)["input_ids"] or [tokenizer.unk_token_id]
    single = tokenizer("a", return_token_type_ids=True)
    pair = tokenizer("a", "a", return_token_type_ids=True)
    return (
        _parse(single["input_ids"], single["token_type_ids"], probe, texts=1),
        _parse(pair["input_ids"], pair["token_type_ids"], probe, texts=2),
    )


def _parse(ids: list[int], types: list[int], probe: list[int], *, texts: int) -> SpecialTokens:
    """Split encoded texts at the pieces of the probe."""
    starts = [i for i in range(len(ids)) if ids[i : i + len(probe)] == probe]
    if len(starts) < texts:
        raise AdapterError(
            "The tokenizer changes a text when special pieces are added, so it cannot be used here."
        )
    first, second = starts[0], starts[-1] if texts == 2 else len(ids)
    first_end = first + len(probe)
    after = second + len(probe) if texts == 2 else first_end
    middle = slice(first_end, second if texts == 2 else first_end)
    return SpecialTokens(
        before=tuple(ids[:first]),
        between=tuple(ids[middle]),
        after=tuple(ids[after:]),
        before_types=tuple(types[:first]),
        between_types=tuple(types[middle]),
        after_types=tuple(types[after:]),
        first_type=types[first],
        second_type=types[second] if texts == 2 else types[first],
    )


class SubwordCounting:
    """`CountsSubwords` of an adapter whose session has a tokenizer."""

    _session: ModelSession

    def subword_counts(self, texts: Sequence[str]) -> list[SubwordCount]:
        """Return one count per text, without special tokens, prefixes and padding, before anything is cut."""
        session = self._session
        unknown = session.tokenizer.unk_token_id
        return [
            SubwordCount(tokens=len(ids), unknown=None if unknown is None else ids.count(unknown))
            for ids in subword_ids(session, texts)
        ]


def subword_ids(session: ModelSession, texts: Sequence[str]) -> list[list[int]]:
    """Return the pieces of texts without special ones, uncut; no piece for an empty text."""
    with session.tokenizing:
        return plain_pieces(session.tokenizer, texts)


def plain_pieces(tokenizer: Any, texts: Sequence[str], side: str = "text") -> list[list[int]]:
    """Return the pieces of inputs (side ``text``) or outputs (``text_target``) without special ones, uncut."""
    if not texts:
        return []
    encoded = tokenizer(
        **{side: list(texts)}, add_special_tokens=False, return_attention_mask=False, verbose=False
    )
    return list(encoded["input_ids"])


def piece_offsets(text: str, offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the offsets of a text's pieces, repaired, without blanks at their ends; shape (pieces, 2), code points.

    What a tokenizer reports is checked: neighbouring pieces leave no visible character out. Byte-level tokenizers trim
    one character off every piece that begins with a space sign, also where their pre-tokenizer has removed the space
    (RobBERT): a word then loses its first letter, and a word of one letter has no piece. A character without a piece
    belongs to the piece that follows without a blank, else to the piece before it; one between blanks to none. An
    empty piece right after a visible character is that character's, as an inserted space sign is its word's.
    """
    covered = bytearray(len(text))
    for start, end in offsets:
        covered[start:end] = b"\1" * (end - start)
    repaired = []
    for start, end in offsets:
        first = start - 1 if start == end and start and _is_visible(text[start - 1]) else start
        while first and not covered[first - 1] and not text[first - 1].isspace():
            first -= 1
        while first < start and not _is_visible(text[first]):
            first += 1
        covered[first:start] = b"\1" * (start - first)
        repaired.append((first, end))
    return [_without_blanks(text, *_extended(text, covered, *pair)) for pair in repaired]


def _extended(text: str, covered: bytearray, start: int, end: int) -> tuple[int, int]:
    """Return a piece with the visible characters after it that no piece has."""
    last = end
    while start < end and last < len(text) and not covered[last] and not text[last].isspace():
        last += 1
    while last > end and not _is_visible(text[last - 1]):
        last -= 1
    return start, last


def _is_visible(character: str) -> bool:
    """Return whether a character is a letter, number, punctuation or symbol: no space, mark or format character."""
    return not character.isspace() and unicodedata.category(character)[0] in "LNPS"


def _without_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a piece without the spaces that sentencepiece counts to it."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end
