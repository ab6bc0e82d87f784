"""What a sequence-to-sequence model can do, read from its configuration without loading it."""

from __future__ import annotations

from harness import AdapterError, AdapterOptions, Capability, CapabilityError, Head, ModelDescription
from harness_hf.architecture import (
    HEAD_ARCHITECTURE,
    SEQ2SEQ_TYPES,
    Architecture,
    Family,
    architecture_of,
)
from harness_hf.fit_record import read_record
from harness_hf.model_folder import ModelConfig, count_parameters, read_config
from harness_hf.seq2seq.options import Seq2SeqOptions

__all__ = ["SEQ2SEQ_OFFERS", "describe_seq2seq"]

SEQ2SEQ_OFFERS = frozenset(
    {
        Capability.FITS,
        Capability.GENERATES,
        Capability.SCORES_CONTINUATIONS,
        Capability.COUNTS_TOKENS,
        Capability.EMBEDS,
        Capability.EXPOSES_HIDDEN_STATES,
    }
)
RIGHT_ADAPTER = {Family.ENCODER: ("an encoder", "hf-encoder"), Family.CAUSAL: ("a decoder", "hf-causal")}


def describe_seq2seq(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return what the sequence-to-sequence model in a folder, or behind a hub id, offers.

    Reads small JSON files and the headers of weight files only. Raises `CapabilityError` for a model of
    another sort, `UsageError` or `AdapterError` for one that cannot be found or understood.
    """
    assert isinstance(options, Seq2SeqOptions)
    found = read_config(ref, options)
    architecture = require_seq2seq(found, options)
    record = read_record(found.folder) if found.folder is not None else None
    note = ""
    if record is not None:
        note = (
            f"fitted on text pairs: sources cut at {record.max_length} tokens, "
            f"targets at {record.settings.max_target_length}"
        )
    return ModelDescription(
        adapter="hf-seq2seq",
        ref=ref,
        offers=SEQ2SEQ_OFFERS,
        after_fit={Head.TEXT_TO_TEXT: SEQ2SEQ_OFFERS},
        revision=found.revision,
        parameters=count_parameters(found.folder) if found.folder else None,
        layers=architecture.layers or found.config.get("encoder_layers"),
        note=note,
        metadata={"model_type": architecture.model_type, "architecture": architecture.name},
    )


def require_seq2seq(found: ModelConfig, options: Seq2SeqOptions) -> Architecture:
    """Return the architecture of a text-to-text model; raises where the model is something else or unknown."""
    architecture = architecture_of(found)
    if architecture.family in RIGHT_ADAPTER:
        article, right = RIGHT_ADAPTER[architecture.family]
        raise CapabilityError(
            f"The model {found.ref!r} is {article} ({architecture.model_type}), "
            "not a sequence-to-sequence model.",
            hint=f"It is for the adapter '{right}'; run 'harness models' to see whether one is installed.",
        )
    if architecture.name.endswith(tuple(HEAD_ARCHITECTURE.values())):
        raise CapabilityError(
            f"The model {found.ref!r} is a {architecture.name}, which writes no text.",
            hint="Give a checkpoint whose architecture ends with ForConditionalGeneration.",
        )
    known = architecture.family is Family.SEQ2SEQ and architecture.model_type in SEQ2SEQ_TYPES
    if not known and not (architecture.remote_code and options.trust_remote_code):
        raise AdapterError(
            f"The config.json of {found.ref!r} has the model_type {architecture.model_type!r}, "
            "which is no text-to-text model that this adapter knows.",
            hint="Run 'harness models hf-seq2seq' to see what it opens.",
        )
    return architecture
