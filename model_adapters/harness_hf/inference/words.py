"""Pieces of tokenised sentences: split at the piece limit between words, and re-joined by word number."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness import CapabilityError
from harness_hf.inference.batching import Encoded
from harness_hf.inference.template import Template

__all__ = ["WordWindow", "split_sentences"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordWindow:
    """A run of a sentence's words that fits into the model."""

    sentence: int
    first_word: int
    encoded: Encoded
    positions: tuple[int, ...]
    """Index of each word's first piece in `encoded`; -1 for a word without pieces."""
    cut: tuple[int, ...] = ()
    """Numbers, in the sentence, of words that lost their last pieces."""


def split_sentences(
    sentences: Sequence[Sequence[str | None]],
    *,
    tokenizer: Any,
    template: Template,
    limit: int,
    unknown_for_empty: bool,
    keep_empty: bool = False,
) -> list[WordWindow]:
    """Return windows of at most `limit` pieces that together hold every word of every sentence once.

    As in XTREME's preprocessing, a new window starts before the word that no longer fits. A word that alone
    is longer than a window loses its last pieces, never its first. A word that the tokenizer leaves nothing
    of becomes the unknown piece where `unknown_for_empty`, and has no position otherwise. None becomes the mask
    piece; raises `CapabilityError` where the tokenizer has none. A sentence without words has a window, of special
    pieces only, where `keep_empty`.
    """
    unknown = [tokenizer.unk_token_id] if unknown_for_empty else []
    room = max(1, limit - template.size)
    windows: list[WordWindow] = []
    for number, words in enumerate(_word_pieces(sentences, tokenizer)):
        first, size = 0, 0
        filled = [pieces[:room] or unknown for pieces in words]
        cut = [word for word, pieces in enumerate(words) if len(pieces) > room]
        for word, pieces in enumerate(filled):
            if size + len(pieces) > room:
                windows.append(_window(number, first, filled[first:word], template, cut))
                first, size = word, 0
            size += len(pieces)
        if filled or keep_empty:
            windows.append(_window(number, first, filled[first:], template, cut))
    return windows


def _window(
    sentence: int, first_word: int, words: Sequence[list[int]], template: Template, cut: Sequence[int]
) -> WordWindow:
    positions: list[int] = []
    pieces: list[int] = []
    for word in words:
        positions.append(len(template.before) + len(pieces) if word else -1)
        pieces += word
    return WordWindow(
        sentence=sentence,
        first_word=first_word,
        encoded=template.wrap(pieces),
        positions=tuple(positions),
        cut=tuple(word for word in cut if first_word <= word < first_word + len(words)),
    )


def _word_pieces(sentences: Sequence[Sequence[str | None]], tokenizer: Any) -> list[list[list[int]]]:
    """Return the pieces of every word of every sentence."""
    space = " " if _needs_space(tokenizer) else ""
    filled = [number for number, words in enumerate(sentences) if words]
    result: list[list[list[int]]] = [
        [[] if word is not None else [_mask_of(tokenizer)] for word in words] for words in sentences
    ]
    if not filled:
        return result
    spaced = [[space + word if word else "" for word in sentences[number]] for number in filled]
    encoded = tokenizer(
        spaced, is_split_into_words=True, add_special_tokens=False, return_attention_mask=False, verbose=False
    )
    for row, number in enumerate(filled):
        for piece, word in zip(encoded["input_ids"][row], encoded.word_ids(row), strict=True):
            result[number][word].append(piece)
    return result


def _mask_of(tokenizer: Any) -> int:
    if tokenizer.mask_token_id is None:
        raise CapabilityError(
            "A word is masked, but the model's tokenizer has no mask token.",
            hint="Probe it with inputs that mask nothing.",
        )
    return int(tokenizer.mask_token_id)


def _needs_space(tokenizer: Any) -> bool:
    """Return whether words must be given with the space before them.

    Byte-level and some sentencepiece tokenizers mark the start of a word by its space, and add none
    themselves.
    """
    pre_tokenizer = tokenizer.backend_tokenizer.pre_tokenizer
    # The state of the step alone: the tokenizer's own would write out its whole vocabulary.
    declared = json.loads(pre_tokenizer.__getstate__()) if pre_tokenizer is not None else {}
    steps = declared.get("pretokenizers", [declared])
    return any(
        (step.get("type") == "ByteLevel" and not step.get("add_prefix_space"))
        or (step.get("type") == "Metaspace" and step.get("prepend_scheme") == "never")
        for step in steps
    )
