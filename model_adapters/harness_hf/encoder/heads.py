"""All heads of encoders: open an encoder, fine-tune it with a head, and open the result."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import CapabilityError
from harness.models import (
    Adapter,
    AdapterOptions,
    Capability,
    FitOptions,
    Head,
    HeadSpec,
    ModelDescription,
    Side,
    TrainingSettings,
)
from harness_hf.description import Family, find_architecture
from harness_hf.encoder.adapter import Encoder, EncoderSession
from harness_hf.encoder.classification import (
    ChoiceScorer,
    Classifier,
    Tagger,
    prepare_classification,
    prepare_multiple_choice,
    prepare_tagging,
)
from harness_hf.encoder.dual_encoder import DualEncoder, load_dual_encoder, prepare_dual_encoder
from harness_hf.encoder.masked_lm import MaskFiller
from harness_hf.encoder.span_extraction import SpanExtractor, SpanLimits, prepare_span_extraction
from harness_hf.fit_record import HEAD_NAME, FitRecord, read_record, require_record
from harness_hf.heads import dual_pooling, load_trainable, name_labels
from harness_hf.model_folder import SENTENCE_FILES, read_config, resolve_folder, sentence_module_files
from harness_hf.options import EncoderOptions
from harness_hf.training.batches import HeadTraining

ADAPTERS: Mapping[Head, type[Encoder]] = {
    Head.CLASSIFICATION: Classifier,
    Head.MULTIPLE_CHOICE: ChoiceScorer,
    Head.TAGGING: Tagger,
    Head.SPAN_EXTRACTION: SpanExtractor,
    Head.DUAL_ENCODER: DualEncoder,
}


def open_encoder(description: ModelDescription, options: AdapterOptions) -> Adapter:
    """Load the described encoder, with its head where it has been fine-tuned; raises `AdapterError`."""
    assert isinstance(options, EncoderOptions)
    folder = resolve_folder(description.ref, options, description.revision)
    architecture = find_architecture(read_config(str(folder), options), options, Family.ENCODER)
    head = None if architecture.regression else architecture.head
    record = read_record(folder)
    if record is not None and (record.head is Head.DUAL_ENCODER or (folder / HEAD_NAME).is_file()):
        # Its config.json is that of a bare encoder; only the record names the head.
        head = record.head
    session = EncoderSession(ref=description.ref, folder=folder, options=options, head=head)
    name_labels(session.network.config, options.label_names)
    return _adapter_class(session, description)(session, record, HEADS)


def _adapter_class(session: EncoderSession, description: ModelDescription) -> type[Encoder]:
    """Return the adapter for the session's head, or for the head of its pretraining."""
    if session.head is not None:
        return ADAPTERS[session.head]
    return MaskFiller if Capability.FILLS_MASKS in description.offers else Encoder


class Heads:
    """Fits any head and opens fitted ones: for models whose sessions are of one class."""

    def __init__(self, open_session: type[EncoderSession], adapters: Mapping[Head, type[Encoder]]) -> None:
        self._open_session = open_session
        self._adapters = adapters

    def fit(
        self,
        session: EncoderSession,
        train: Sequence[Any],
        validation: Sequence[Any],
        spec: HeadSpec,
        options: FitOptions,
    ) -> Adapter:
        """Train a copy of the session's network with the head of `spec`; return the adapter of the saved result.

        The head's weights are kept where the model already has this head with the same labels (a second stage),
        and are new otherwise. Sequences are at most ``settings.max_length`` pieces, or the model's limit where
        that is smaller. With the same seed, data and settings the weights on a CPU are the same to the bit, and but for
        rounding also with another number of processes. The folder counts as finished once it has its
        ``harness_fit.json``, which is written last; an unfinished training is resumed.

        Raises `TrainingError` without training examples, when the loss is not finite, or when the folder already
        holds a fit; `DataError` for an example that does not fit the head; `CapabilityError` for a head that the
        model cannot have; `AdapterError` where the settings need a package that is not installed.
        """
        from harness_hf.training.loop import fit_and_save

        if spec.head not in self._adapters:
            raise CapabilityError(
                f"The model {session.ref!r} cannot be fitted with a {spec.head.value} head; it can with "
                f"{', '.join(self._adapters)}."
            )
        settings = replace(options.settings, max_length=min(options.settings.max_length, session.limit))
        pooling = dual_pooling(session, settings) if spec.head is Head.DUAL_ENCODER else None
        if pooling is not None:
            settings = replace(settings, pooling=pooling)
        fit_and_save(
            session,
            train,
            validation,
            spec,
            options,
            prepare=lambda: _prepare(session, train, validation, spec, settings),
            load=lambda: _load(session, spec, settings),
            limits={
                "max_length": settings.max_length,
                "pooling": pooling,
                "query_prefix": _prefix(session, spec, "query"),
                "passage_prefix": _prefix(session, spec, "passage"),
            },
            copy_files=lambda: _copy_sentence_files(session.folder, options.directory),
        )
        return self.load(options.directory, spec, session.options)

    def load(self, directory: Path, spec: HeadSpec, options: EncoderOptions) -> Adapter:
        """Return the adapter of a finished fit; raises `AdapterError` for any other head or labels."""
        record = require_record(directory, spec.head, spec.labels)
        return self.open(str(directory), directory, record, options)

    def open_bare(self, ref: str, folder: Path, options: EncoderOptions) -> Encoder:
        """Return the adapter of a model without a head; raises `AdapterError`."""
        return Encoder(self._open_session(ref=ref, folder=folder, options=options, head=None), None, self)

    def open(self, ref: str, folder: Path, record: FitRecord, options: EncoderOptions) -> Adapter:
        """Return the adapter of the finished fit in a folder; raises `AdapterError`."""
        session = self._open_session(ref=ref, folder=folder, options=options, head=record.head)
        return self._adapters[record.head](session, record, self)


HEADS = Heads(EncoderSession, ADAPTERS)


def _prepare(
    session: EncoderSession,
    train: Sequence[Any],
    validation: Sequence[Any],
    spec: HeadSpec,
    settings: TrainingSettings,
) -> HeadTraining:
    if spec.head is Head.CLASSIFICATION:
        return prepare_classification(session, train, validation, spec, settings.max_length)
    if spec.head is Head.MULTIPLE_CHOICE:
        return prepare_multiple_choice(session, train, validation, settings.max_length)
    if spec.head is Head.TAGGING:
        return prepare_tagging(session, train, validation, spec.labels, settings.max_length)
    if spec.head is Head.DUAL_ENCODER:
        return prepare_dual_encoder(session, train, validation, settings)
    return prepare_span_extraction(session, train, validation, SpanLimits.from_settings(settings))


def _load(session: EncoderSession, spec: HeadSpec, settings: TrainingSettings) -> Any:
    """Return a float32 copy of the session's network with the head of `spec`."""
    keep_head = _has_head(session, spec)
    if spec.head is Head.DUAL_ENCODER:
        return load_dual_encoder(session, settings, keep_head=keep_head)
    return load_trainable(session, spec, settings, keep_head=keep_head)


def _prefix(session: EncoderSession, spec: HeadSpec, side: Side) -> str:
    """Return the prefix that a dual encoder is trained with: that of the options, never that of the folder."""
    if spec.head is not Head.DUAL_ENCODER:
        return ""
    options = session.options
    return (options.query_prefix if side == "query" else options.passage_prefix) or ""


def _has_head(session: EncoderSession, spec: HeadSpec) -> bool:
    """Return whether the model already has this head, for the same labels in the same order."""
    if session.head is not spec.head:
        return False
    names = session.network.config.id2label
    return not spec.labels or spec.labels == tuple(str(names[index]) for index in range(len(names)))


def _copy_sentence_files(source: Path, target: Path) -> None:
    """Copy the files that sentence-transformers reads next to a model."""
    for name in (*SENTENCE_FILES, *sentence_module_files(source)):
        if (source / name).is_file():
            (target / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(source / name, target / name)
