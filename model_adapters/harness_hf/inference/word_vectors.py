"""Vectors of words, and of their sentences, from a network's hidden states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from harness import FloatArray
from harness.models.requests import WordCoverage
from harness_hf.inference.answer_stream import AnswerStream, Parts
from harness_hf.inference.batching import Encoded
from harness_hf.inference.pooling import resolve_layer
from harness_hf.inference.template import Template
from harness_hf.inference.words import WordWindow, split_sentences

__all__ = ["SENTENCE_CHUNK", "EncoderReading", "WordVectors"]

SENTENCE_CHUNK = 1024
"""Sentences whose words are split and sorted together; bounds the hidden states that wait for re-joining."""

Words = Sequence[str | None]
Read = Callable[[Sequence[Encoded], Sequence[int]], Iterator[tuple[Sequence[int], Sequence[torch.Tensor]]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderReading:
    """How sentences are given to a network, and its states are read."""

    template: Template
    limit: int
    """Pieces of a window at the most, special pieces included."""
    width: int
    read: Read
    """Pieces of windows and numbers of layers -> (numbers of windows, a tensor (windows, pieces, width) per layer)."""


class WordVectors(AnswerStream):
    """Base of adapters with `hidden_states`, `word_coverage` and `untrained`."""

    reads_left_to_right = False

    def _encoder_reading(self) -> EncoderReading:
        raise NotImplementedError

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
        found: list[WordCoverage] = []
        for start in range(0, len(sentences), SENTENCE_CHUNK):
            chunk = sentences[start : start + SENTENCE_CHUNK]
            windows: list[list[WordWindow]] = [[] for _ in chunk]
            for window in self._windows(chunk, self._encoder_reading(), sentence_vector=False):
                windows[window.sentence].append(window)
            found += [_coverage(words, own) for words, own in zip(chunk, windows, strict=True)]
        return found

    def untrained(self, seed: int) -> Self:
        """Return this model with weights that are drawn anew, as its architecture initialises them.

        Raises `CapabilityError` for a model that is divided over several devices.
        """
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._session = self._session.untrained(seed)
        return twin

    def _windows(
        self, sentences: Sequence[Words], reading: EncoderReading, *, sentence_vector: bool
    ) -> list[WordWindow]:
        with self._session.tokenizing:
            windows = split_sentences(
                sentences,
                tokenizer=self._session.tokenizer,
                template=reading.template,
                limit=reading.limit,
                unknown_for_empty=False,
                keep_empty=sentence_vector,
            )
        # A network reads at least one piece.
        return [window for window in windows if len(window.encoded)]

    def _states_of_chunk(
        self, sentences: Sequence[Words], layers: list[int], offset: int, sentence_vector: bool
    ) -> Iterator[tuple[int, FloatArray]]:
        reading = self._encoder_reading()
        windows = self._windows(sentences, reading, sentence_vector=sentence_vector)
        extra = int(sentence_vector)
        waiting: dict[int, FloatArray] = {}
        parts = Parts([window.sentence for window in windows], len(sentences))

        def empty(number: int) -> FloatArray:
            return np.zeros((len(layers), extra + len(sentences[number]), reading.width), np.float32)

        for number in parts.idle():
            yield offset + number, empty(number)
        places = self._sentence_places(windows, reading.template) if sentence_vector else {}
        for rows, tensors in reading.read([window.encoded for window in windows], layers):
            # One copy per layer and batch: from an accelerator, copies of single words would cost far more.
            states = [tensor.float().cpu().numpy() for tensor in tensors]
            for row, index in enumerate(rows):
                number = windows[index].sentence
                target = waiting.setdefault(number, empty(number))
                for layer, state in enumerate(states):
                    _copy_words(target[layer, extra:], state[row], windows[index])
                    if index in places:
                        target[layer, 0] = state[row, places[index]]
            for number in parts.finish(rows):
                yield offset + number, waiting.pop(number)

    def _sentence_places(self, windows: Sequence[WordWindow], template: Template) -> dict[int, int]:
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
