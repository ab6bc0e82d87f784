"""The adapter of encoders: embeddings, hidden states, and fine-tuning into an adapter with a head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.models.capabilities import (
    Adapter,
    Capability,
    EmbedOptions,
    FitOptions,
    Head,
    HeadSpec,
    ModelDescription,
)
from harness.models.options import AdapterOptions
from harness_hf.description import find_architecture
from harness_hf.fit_record import FitRecord, read_record
from harness_hf.model_folder import read_config, resolve_folder
from harness_hf.options import EncoderOptions
from harness_hf.session import EncoderSession
from harness_hf.text_vectors import EmbedPlan, TextVectors, require_finite

__all__ = ["EmbedPlan", "Encoder", "open_encoder", "require_finite"]


def open_encoder(description: ModelDescription, options: AdapterOptions) -> Adapter:
    """Load the described encoder, with its head where it has been fine-tuned; raises `AdapterError`."""
    assert isinstance(options, EncoderOptions)
    folder = resolve_folder(description.ref, options, description.revision)
    architecture = find_architecture(read_config(str(folder), options), options)
    head = None if architecture.regression else architecture.head
    record = read_record(folder)
    if record is not None and record.head is Head.DUAL_ENCODER:
        # Its config.json is that of a bare encoder; only the record tells.
        head = record.head
    session = EncoderSession(ref=description.ref, folder=folder, options=options, head=head)
    return _adapter_class(session, description)(session, record)


def _adapter_class(session: EncoderSession, description: ModelDescription) -> type[Encoder]:
    """Return the adapter that has the capability of the session's head, or of that of its pretraining."""
    from harness_hf.fitting import ADAPTERS
    from harness_hf.masked_lm import MaskFiller

    if session.head is not None:
        return ADAPTERS[session.head]
    return MaskFiller if Capability.FILLS_MASKS in description.offers else Encoder


class Encoder(TextVectors):
    """An encoder without a head: it embeds, exposes its hidden states, and can be fitted."""

    _session: EncoderSession
    fits_together = True

    def __init__(self, session: EncoderSession, record: FitRecord | None = None) -> None:
        self._session = session
        self._record = record

    def identity(self) -> Mapping[str, str]:
        """Return what makes the answers what they are: weights digest, precision, versions, options."""
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
        """Fine-tune a copy of this model with the head of `spec`; see `harness_hf.fitting.fit_head`."""
        from harness_hf.fitting import fit_head

        return fit_head(self._session, train, validation, spec, options)

    def load_fit(self, directory: Path, spec: HeadSpec) -> Adapter:
        """Return the fitted model that `fit` saved into `directory`; raises `AdapterError` for any other."""
        from harness_hf.fitting import load_fit

        return load_fit(directory, spec, self._session.options)
