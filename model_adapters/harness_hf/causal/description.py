"""What a decoder can do, read from its configuration without loading it."""

from __future__ import annotations

from harness import AdapterError, AdapterOptions, Capability, CapabilityError, ModelDescription
from harness_hf.architecture import CAUSAL_TYPES, Architecture, Family, architecture_of
from harness_hf.causal.options import CausalOptions
from harness_hf.model_folder import ModelConfig, count_parameters, read_config

__all__ = ["describe_causal", "find_decoder"]

OFFERS = frozenset(
    {
        Capability.SCORES_CONTINUATIONS,
        Capability.GENERATES,
        Capability.COUNTS_TOKENS,
        Capability.EMBEDS,
        Capability.EXPOSES_HIDDEN_STATES,
    }
)
OTHER_FAMILIES = {
    Family.ENCODER: ("an encoder", "hf-encoder"),
    Family.SEQ2SEQ: ("a sequence-to-sequence model", "hf-seq2seq"),
}


def describe_causal(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return what the decoder in a local folder, or behind a hub id, offers.

    Reads small JSON files and the headers of weight files only. Raises `CapabilityError` for a model that is
    no decoder, `UsageError` or `AdapterError` for one that cannot be found or understood.
    """
    assert isinstance(options, CausalOptions)
    found = read_config(ref, options)
    architecture = find_decoder(found, options)
    return ModelDescription(
        adapter="hf-causal",
        ref=ref,
        offers=OFFERS,
        revision=found.revision,
        parameters=count_parameters(found.folder) if found.folder else None,
        layers=architecture.layers,
        note="it cannot be fine-tuned here: zero-shot and few-shot methods use it unchanged",
        metadata={"model_type": architecture.model_type, "architecture": architecture.name},
    )


def find_decoder(found: ModelConfig, options: CausalOptions) -> Architecture:
    """Return the architecture of a decoder; raises where the model is something else or unknown."""
    architecture = architecture_of(found)
    if architecture.family in OTHER_FAMILIES:
        kind, right = OTHER_FAMILIES[architecture.family]
        raise CapabilityError(
            f"The model {found.ref!r} is {kind} ({architecture.model_type}), not a decoder.",
            hint=f"It is for the adapter {right!r}: give it as '{right}:{found.ref}' or 'hf:{found.ref}'.",
        )
    if architecture.family is None:
        raise AdapterError(
            f"The config.json of {found.ref!r} has the model_type {architecture.model_type!r}, "
            "which is no decoder that this adapter knows.",
            hint="Run 'harness models hf-causal' to see what it opens.",
        )
    foreign = architecture.remote_code and architecture.model_type not in CAUSAL_TYPES
    if foreign and not options.trust_remote_code:
        raise AdapterError(
            f"The model {found.ref!r} ({architecture.model_type}) needs Python code from its own repository.",
            hint="Read that code, then allow it with: -o trust_remote_code=true",
        )
    return architecture
