"""Vectors of words, and of their sentences, from a network's hidden states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import torch

from harness import CapabilityError, UsageError
from harness.models import FloatArray, WordCoverage
from harness_hf.inference.pieces import Encoded, SpecialTokens
from harness_hf.inference.session import AnswerStream, Inputs, Parts
from harness_hf.model_folder import Pooling

SENTENCE_CHUNK = 1024
"""Sentences whose words are split and sorted together; bounds the hidden states that wait for re-joining."""

PROBE = ("a", "b")
"""Two words of letters that every vocabulary has."""

Words = Sequence[str | None]


class WordVectors(AnswerStream):
    """Base of adapters with `hidden_states`, `word_coverage` and `untrained`."""

    reads_left_to_right = False

    def layer_count(self) -> int:
        """Return how many layers there are, the embedding layer included."""
        return int(self._session.depth) + 1

    def hidden_states(
        self, sentences: Sequence[Words], layers: Sequence[int], *, sentence_vector: bool = False
    ) -> Iterator[tuple[int, FloatArray]]:
        """Yield (index of the sentence, vectors of shape (layers, words, dimension)), in any order.

        A word's vector is that of its first piece, a masked word's (None) that of the mask token; a word without a
        piece gets zeros. Sentences longer than the model's limit are split between words and re-joined. With
        `sentence_vector` one more vector comes first: of the first special token (that of T5 is at the end of
        the first part), or of the last piece in decoders; zeros where there is none.

        Raises `UsageError` for a layer that is not there, `CapabilityError` for a masked word without a mask token.
        """
        chosen = [resolve_layer(layer, self._session.depth) for layer in layers]
        for start in range(0, len(sentences), SENTENCE_CHUNK):
            chunk = sentences[start : start + SENTENCE_CHUNK]
            yield from self._states_of_chunk(chunk, chosen, start, sentence_vector)

    def word_coverage(self, sentences: Sequence[Words]) -> list[WordCoverage]:
        """Return which words have no piece or are cut, and in how many parts each sentence is read."""
        coverages: list[WordCoverage] = []
        for start in range(0, len(sentences), SENTENCE_CHUNK):
            chunk = sentences[start : start + SENTENCE_CHUNK]
            windows: list[list[WordWindow]] = [[] for _ in chunk]
            for window in self._windows(chunk, sentence_vector=False):
                windows[window.sentence].append(window)
            coverages += [
                _coverage(words, sentence_windows)
                for words, sentence_windows in zip(chunk, windows, strict=True)
            ]
        return coverages

    def untrained(self, seed: int) -> Self:
        """Return this model with weights that are drawn anew, as its architecture initialises them.

        Raises `CapabilityError` for a model that is divided over several devices.
        """
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._session = self._session.untrained(seed)
        return twin

    def _windows(self, sentences: Sequence[Words], *, sentence_vector: bool) -> list[WordWindow]:
        session = self._session
        with session.tokenizing:
            windows = split_sentences(
                sentences,
                tokenizer=session.tokenizer,
                template=session.single,
                limit=session.length_limit(),
                unknown_for_empty=False,
                keep_empty=sentence_vector,
            )
        # A network reads at least one piece.
        return [window for window in windows if len(window.encoded)]

    def _states_of_chunk(
        self, sentences: Sequence[Words], layers: list[int], offset: int, sentence_vector: bool
    ) -> Iterator[tuple[int, FloatArray]]:
        session = self._session
        windows = self._windows(sentences, sentence_vector=sentence_vector)
        extra = int(sentence_vector)
        waiting: dict[int, FloatArray] = {}
        pending = Parts([window.sentence for window in windows], len(sentences))

        def empty(number: int) -> FloatArray:
            return np.zeros((len(layers), extra + len(sentences[number]), session.width), np.float32)

        def forward(inputs: Inputs) -> list[torch.Tensor]:
            states = session.backbone(**inputs, output_hidden_states=True).hidden_states
            return [states[layer] for layer in layers]

        for number in pending.idle():
            yield offset + number, empty(number)
        sentence_positions = self._sentence_places(windows, session.single) if sentence_vector else {}
        for rows, tensors in session.run(
            [window.encoded for window in windows], forward, ability="hidden_states"
        ):
            # One copy per layer and batch: from an accelerator, copies of single words would cost far more.
            states = [tensor.float().cpu().numpy() for tensor in tensors]
            for row, index in enumerate(rows):
                number = windows[index].sentence
                target = waiting.setdefault(number, empty(number))
                for layer, state in enumerate(states):
                    _copy_words(target[layer, extra:], state[row], windows[index])
                    if index in sentence_positions:
                        target[layer, 0] = state[row, sentence_positions[index]]
            for number in pending.finish(rows):
                yield offset + number, waiting.pop(number)

    def _sentence_places(self, windows: Sequence[WordWindow], template: SpecialTokens) -> dict[int, int]:
        """Return window -> piece whose vector represents the sentence, one per sentence."""
        if self.reads_left_to_right:
            last = {window.sentence: index for index, window in enumerate(windows)}
            return {index: len(windows[index].encoded) - 1 for index in last.values()}
        first = {window.sentence: index for index, window in reversed(list(enumerate(windows)))}
        after = 0 if template.before else max(1, len(template.after))
        return {index: (len(windows[index].encoded) - after if after else 0) for index in first.values()}


def _coverage(words: Words, windows: Sequence[WordWindow]) -> WordCoverage:
    held = {
        window.first_word + word
        for window in windows
        for word, position in enumerate(window.positions)
        if position >= 0
    }
    return WordCoverage(
        empty=tuple(word for word in range(len(words)) if word not in held),
        cut=tuple(word for window in windows for word in window.cut),
        windows=max(1, len(windows)),
    )


def _copy_words(target: FloatArray, states: FloatArray, window: WordWindow) -> None:
    """Copy the first-piece vectors of a window's words into one layer of the sentence's words."""
    words = [word for word, position in enumerate(window.positions) if position >= 0]
    pieces = [window.positions[word] for word in words]
    target[window.first_word + np.asarray(words, dtype=np.int64)] = states[pieces]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordWindow:
    """A run of a sentence's words that fits into the model."""

    sentence: int
    first_word: int
    encoded: Encoded
    positions: tuple[int, ...]
    """Index of the piece of each word that is read, its first or its last one; -1 for a word without pieces."""
    cut: tuple[int, ...] = ()
    """Numbers, in the sentence, of words that lost their last pieces."""


def split_sentences(
    sentences: Sequence[Sequence[str | None]],
    *,
    tokenizer: Any,
    template: SpecialTokens,
    limit: int,
    unknown_for_empty: bool,
    keep_empty: bool = False,
    read_last: bool = False,
) -> list[WordWindow]:
    """Return windows of at most `limit` pieces that together hold every word of every sentence once.

    As in XTREME's preprocessing, a new window starts before the word that no longer fits. A word that alone
    is longer than a window loses its last pieces, never its first. A word that the tokenizer leaves nothing
    of becomes the unknown piece where `unknown_for_empty`, and has no position otherwise. None becomes the mask
    piece; raises `CapabilityError` where the tokenizer has none. A sentence without words has a window, of special
    pieces only, where `keep_empty`. Positions are those of first pieces, of last ones where `read_last`.
    """
    unknown = [_unknown_of(tokenizer)] if unknown_for_empty else []
    room = max(1, limit - template.size)
    windows: list[WordWindow] = []
    for number, words in enumerate(_word_pieces(sentences, tokenizer)):
        first, size = 0, 0
        filled = [pieces[:room] or unknown for pieces in words]
        cut = [word for word, pieces in enumerate(words) if len(pieces) > room]
        for word, pieces in enumerate(filled):
            if size + len(pieces) > room:
                windows.append(_window(number, first, filled[first:word], template, cut, read_last))
                first, size = word, 0
            size += len(pieces)
        if filled or keep_empty:
            windows.append(_window(number, first, filled[first:], template, cut, read_last))
    return windows


def _window(
    sentence: int,
    first_word: int,
    words: Sequence[list[int]],
    template: SpecialTokens,
    cut: Sequence[int],
    read_last: bool,
) -> WordWindow:
    positions: list[int] = []
    pieces: list[int] = []
    for word in words:
        position = len(pieces) + (len(word) - 1 if read_last else 0)
        positions.append(len(template.before) + position if word else -1)
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


def _unknown_of(tokenizer: Any) -> int:
    """Return the unknown piece, or the end-of-text token of a tokenizer that writes every text."""
    tokens = (tokenizer.unk_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id)
    return int(next(token for token in tokens if token is not None))


def _needs_space(tokenizer: Any) -> bool:
    """Return whether words must be given with the space before them, so that they become the pieces of running text.

    The tokenizer is asked: some mark the start of a word by its space and add none to a word that is alone
    (byte-level ones, those of Gemma).
    """

    def pieces(text: Any, **keywords: Any) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False, verbose=False, **keywords)["input_ids"])

    text = pieces(" ".join(PROBE))
    alone, spaced = (
        [pieces([space + word], is_split_into_words=True) for word in PROBE] for space in ("", " ")
    )
    if text in (alone[0] + alone[1], spaced[0] + alone[1]):
        return False
    return text in (alone[0] + spaced[1], spaced[0] + spaced[1])


def resolve_layer(layer: int | Literal["last", "xtreme_r"], depth: int) -> int:
    """Return the number of a layer of a network with `depth` transformer layers; 0 is the embedding layer.

    ``xtreme_r`` is ``depth / 2 + 2``, at most the last: the 8th layer of 12 and the 14th of 24, as in the
    public scripts and appendix C of XTREME-R (Ruder et al., 2021). Raises `UsageError` outside ``0..depth``.
    """
    if layer == "last":
        return depth
    if layer == "xtreme_r":
        return min(depth // 2 + 2, depth)
    if not 0 <= layer <= depth:
        raise UsageError(f"The model has layers 0 to {depth}; there is no layer {layer}.")
    return layer


def read_layer(backbone: Any, inputs: Any, layer: int, depth: int) -> torch.Tensor:
    """Return the hidden states of one layer, of shape (batch, pieces, dimension)."""
    output = backbone(**inputs, output_hidden_states=layer != depth)
    # The last state has gone through a final normalisation in networks that have one.
    states: torch.Tensor = output.last_hidden_state if layer == depth else output.hidden_states[layer]
    return states


def pool(states: torch.Tensor, mask: torch.Tensor, pooling: Pooling, skipped: int = 0) -> torch.Tensor:
    """Return one float32 vector per sequence from states of shape (batch, pieces, dimension), padded on the right.

    ``mean`` is over all positions that are not padding, the first and last special pieces included (XTREME-R,
    Tatoeba); ``cls`` is the first position, ``last`` the last one that is not padding, ``max`` the largest value,
    ``weightedmean`` weighs positions by their number from 1, ``mean_sqrt_len`` divides the sum by the root of the
    length. The first `skipped` positions, those of a prompt, are not read. Source: Pooling of sentence-transformers.
    """
    states = states.float()
    rows = torch.arange(states.shape[0], device=states.device)
    if pooling == "last":
        return states[rows, mask.sum(dim=1) - 1]
    if skipped:
        mask = mask.clone()
        mask[:, :skipped] = 0
    if pooling == "cls":
        return states[rows, mask.argmax(dim=1)]
    weights = mask.unsqueeze(-1).to(states.dtype)
    if pooling == "max":
        return states.masked_fill(weights == 0, float("-inf")).amax(dim=1)
    if pooling == "weightedmean":
        weights = weights * torch.arange(1, states.shape[1] + 1, device=states.device)[None, :, None]
    total = weights.sum(dim=1).clamp(min=1e-9)
    return (states * weights).sum(dim=1) / (total.sqrt() if pooling == "mean_sqrt_len" else total)
