"""The adapter of encoders: embeddings, hidden states, and fine-tuning into an adapter with a head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from harness import Adapter, EmbedOptions, FitOptions, HeadSpec
from harness_hf.encoder.session import EncoderSession
from harness_hf.fit_record import FitRecord
from harness_hf.inference.text_vectors import TextVectors
from harness_hf.options import EncoderOptions

__all__ = ["Encoder", "HeadFitter"]


class HeadFitter(Protocol):
    """Fits an encoder with any head and opens what it saved; `harness_hf.encoder.heads` has the implementation."""

    def fit(
        self,
        session: EncoderSession,
        train: Sequence[Any],
        validation: Sequence[Any],
        spec: HeadSpec,
        options: FitOptions,
    ) -> Adapter:
        """Fine-tune a copy of the session's network with the head of `spec`."""

    def load(self, directory: Path, spec: HeadSpec, options: EncoderOptions) -> Adapter:
        """Return the adapter of a finished fit."""


class Encoder(TextVectors):
    """An encoder without a head: it embeds, exposes its hidden states, and can be fitted."""

    _session: EncoderSession
    fits_together = True

    def __init__(self, session: EncoderSession, record: FitRecord | None, fitter: HeadFitter) -> None:
        self._session = session
        self._record = record
        self._fitter = fitter

    def identity(self) -> Mapping[str, str]:
        """Return the identity of the answers: weights digest, precision, versions, options."""
        return self._session.identity()

    def notices(self) -> Sequence[str]:
        """Return what a user should know about how the model was trained and asked, in sentences."""
        trained = self._record.notices() if self._record is not None else ()
        return [*trained, *super().notices()]

    def text_room(self, texts: int, options: EmbedOptions | None = None) -> int | None:
        """Return how many pieces a sequence of one text or of a pair has room for; see `CutsTexts`."""
        if options is not None:
            return super().text_room(texts, options)
        session = self._session
        limit = session.length_limit(self._record.max_length if self._record else None)
        return limit - (session.single if texts == 1 else session.pair).size

    def close(self) -> None:
        """Free the network; a second call does nothing."""
        self._session.close()

    def fit(
        self, train: Sequence[Any], validation: Sequence[Any], spec: HeadSpec, options: FitOptions
    ) -> Adapter:
        """Fine-tune a copy of this model with the head of `spec`; see `harness_hf.encoder.heads.Heads.fit`."""
        return self._fitter.fit(self._session, train, validation, spec, options)

    def load_fit(self, directory: Path, spec: HeadSpec) -> Adapter:
        """Return the fitted model that `fit` saved into `directory`; raises `AdapterError` for any other."""
        return self._fitter.load(directory, spec, self._session.options)
