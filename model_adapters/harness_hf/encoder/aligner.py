"""Words aligned by the hidden states of an encoder, without any training on parallel text.

The pieces of both sentences are run apart. Pieces i and j are linked where both softmaxes of their dot products, over
the target pieces and over the source pieces, are above 0.001; two words are linked where any of their pieces are. The
probability of a link is the largest 2ab / (a + b) of its pieces, where a and b are the softmaxes of the dot products
divided by the square root of the number of pieces that the softmax is over.

Source: Dou and Neubig (2021), Word alignment by fine-tuning embeddings on parallel corpora, section 2.1; the
probability is that of the public awesome-align (``BertGuideHead``). The layer there is the 8th of mBERT's 12.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch

from harness import CapabilityError, UsageError
from harness.data import Alignment, Link, WordPair
from harness.models import FloatArray, ModelReference
from harness_hf.description import describe
from harness_hf.encoder.adapter import Encoder, EncoderSession
from harness_hf.encoder.heads import open_encoder
from harness_hf.inference.session import Inputs
from harness_hf.inference.word_vectors import WordWindow, read_layer, resolve_layer, split_sentences
from harness_hf.options import EncoderOptions

THRESHOLD: Final = 0.001
PAIRS: Final = 128
"""Pairs whose hidden states are held together."""
SCHEMES = ("hf", "hf-encoder")


def open_aligner(reference: str) -> EncoderAligner:
    """Return the aligner of ``hf:MODEL`` or ``hf:MODEL@LAYER``; raises `UsageError` or `AdapterError`."""
    reference, _, layer = reference.partition("@")
    model = ModelReference.parse(reference)
    if model.scheme not in SCHEMES:
        raise UsageError(
            f"The aligner 'own' reads the hidden states of an encoder; {reference!r} belongs to another adapter.",
            hint="Give a model folder or hub id: --aligner own:hf:MODEL.",
        )
    if layer and not layer.isdecimal():
        raise UsageError(f"The layer {layer!r} of {reference!r} is not a number.")
    options = EncoderOptions()
    adapter = open_encoder(describe(model.ref, options), options)
    if not isinstance(adapter, Encoder):
        raise CapabilityError(f"The model {model.ref!r} is no encoder.")
    return EncoderAligner(adapter, layer=int(layer) if layer else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sentence:
    """The pieces of a sentence: their states, shape (pieces, dimension), and the number of each one's word."""

    states: FloatArray
    words: tuple[int, ...]


class EncoderAligner:
    """Aligns words with a layer of an encoder: by default that of ``xtreme_r``, the 8th of 12."""

    def __init__(self, adapter: Encoder, *, layer: int | None = None) -> None:
        self._adapter = adapter
        self._session: EncoderSession = adapter._session
        self.layer = resolve_layer("xtreme_r" if layer is None else layer, self._session.depth)

    def identity(self) -> dict[str, str]:
        """Return the identity of the links: model and layer."""
        return {**self._adapter.identity(), "aligner": "own", "aligner.layer": str(self.layer)}

    def close(self) -> None:
        """Free the network; a second call does nothing."""
        self._adapter.close()

    def align(self, pairs: Sequence[WordPair]) -> list[Alignment]:
        """Return one alignment per pair, in order.

        Sentences longer than the model's limit are run in windows, between words. Raises `AdapterError` where the
        model returns numbers that are not finite.
        """
        alignments: list[Alignment] = []
        for start in range(0, len(pairs), PAIRS):
            chunk = pairs[start : start + PAIRS]
            sentences = self._sentences([words for pair in chunk for words in (pair.source, pair.target)])
            alignments += [
                Alignment(links=tuple(link_words(source.states, target.states, source.words, target.words)))
                for source, target in zip(sentences[::2], sentences[1::2], strict=True)
            ]
        return alignments

    def _sentences(self, sentences: Sequence[Sequence[str]]) -> list[_Sentence]:
        session = self._session
        with session.tokenizing:
            windows = split_sentences(
                sentences,
                tokenizer=session.tokenizer,
                template=session.single,
                limit=session.length_limit(),
                unknown_for_empty=False,
            )
        before, after = len(session.single.before), len(session.single.after)
        states: list[Any] = [None] * len(windows)

        def forward(inputs: Inputs) -> torch.Tensor:
            return read_layer(session.backbone, inputs, self.layer, session.depth).float().cpu()

        for rows, batch in session.run(
            [window.encoded for window in windows], forward, ability="hidden_states"
        ):
            for row, number in enumerate(rows):
                # A copy, so that the batch with its padding is not kept.
                states[number] = batch[row, before : len(windows[number].encoded) - after].numpy().copy()
        return list(_joined(windows, states, len(sentences), session))


def _joined(
    windows: Sequence[WordWindow],
    states: Sequence[FloatArray],
    count: int,
    session: EncoderSession,
) -> Iterator[_Sentence]:
    """Yield the sentences that windows are parts of."""
    states_by_sentence: list[list[FloatArray]] = [[] for _ in range(count)]
    words_by_sentence: list[list[int]] = [[] for _ in range(count)]
    for window, window_states in zip(windows, states, strict=True):
        session.require_finite(window_states, "hidden states")
        states_by_sentence[window.sentence].append(window_states)
        words_by_sentence[window.sentence] += _piece_words(
            window, len(window_states), len(session.single.before)
        )
    for sentence_states, sentence_words in zip(states_by_sentence, words_by_sentence, strict=True):
        empty = np.zeros((0, session.width), np.float32)
        yield _Sentence(states=np.concatenate([empty, *sentence_states]), words=tuple(sentence_words))


def _piece_words(window: WordWindow, pieces: int, before: int) -> list[int]:
    """Return the number of every piece's word in its sentence."""
    starts = {
        position - before: window.first_word + word
        for word, position in enumerate(window.positions)
        if position >= 0
    }
    words: list[int] = []
    for piece in range(pieces):
        words.append(starts[piece] if piece in starts else words[-1])
    return words


def link_words(
    source: FloatArray,
    target: FloatArray,
    source_words: Sequence[int],
    target_words: Sequence[int],
    *,
    threshold: float = THRESHOLD,
) -> list[Link]:
    """Return the links between words in the order of their first linked pieces, source first.

    Args:
        source: Shape (m, dimension): one vector per piece.
        target: Shape (n, dimension).
        source_words: The number of each source piece's word, shape (m,).
        target_words: Shape (n,).
        threshold: Both softmaxes have to be above it.
    """
    if not len(source) or not len(target):
        return []
    products = source.astype(np.float64) @ target.astype(np.float64).T
    linked = (_softmax(products, 1) > threshold) & (_softmax(products, 0) > threshold)
    over_target = _softmax(products / np.sqrt(products.shape[1]), 1)
    over_source = _softmax(products / np.sqrt(products.shape[0]), 0)
    probability = 2 * over_target * over_source / (over_target + over_source + 1e-9)
    best: dict[tuple[int, int], float] = {}
    for i, j in np.argwhere(linked).tolist():
        words = (source_words[i], target_words[j])
        best[words] = max(best.get(words, 0.0), float(probability[i, j]))
    return [
        Link(source=source_word, target=target_word, probability=value)
        for (source_word, target_word), value in best.items()
    ]


def _softmax(products: Any, axis: int) -> Any:
    weights = np.exp(products - products.max(axis=axis, keepdims=True))
    return weights / weights.sum(axis=axis, keepdims=True)
