"""Capabilities and architecture of a model, read from its configuration without loading it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness import AdapterError, CapabilityError, UsageError
from harness.models import HEAD_CAPABILITY, AdapterOptions, Capability, Constraint, Head, ModelDescription
from harness_hf.fit_record import read_record
from harness_hf.model_folder import (
    ADAPTER_CONFIG,
    ModelConfig,
    count_parameters,
    folder_fault,
    read_config,
    read_json,
    read_sentence_files,
    tensor_names,
)
from harness_hf.options import CausalOptions, EncoderOptions, ModelOptions, Seq2SeqOptions
from harness_hf.quantization import TABLES, read_quantization, require_packages

GENERIC_LABEL = "LABEL_"
"""How transformers names labels without a name: ``LABEL_0``."""

HEAD_ARCHITECTURE: Mapping[Head, str] = {
    Head.CLASSIFICATION: "ForSequenceClassification",
    Head.TAGGING: "ForTokenClassification",
    Head.SPAN_EXTRACTION: "ForQuestionAnswering",
    Head.MULTIPLE_CHOICE: "ForMultipleChoice",
}
"""How the names of `transformers` classes with that head end."""

ENCODER_TYPES, SEQ2SEQ_TYPES, CAUSAL_TYPES, TEXT_ENCODERS, TRANSLATION_TYPES = (
    frozenset(TABLES["types"][name])
    for name in ("encoder", "seq2seq", "causal", "text_encoder", "translation")
)
"""Types of models by family; text encoders are encoder-decoders whose encoder transformers opens alone."""
OUTPUT_LAYERS, MASK_HEADS = (tuple(TABLES["weights"][name]) for name in ("output", "mask_head"))
"""First parts of the names of the weights that turn states into words, of decoders and of masked language models."""


class Family(StrEnum):
    """The three kinds of text models, by what reads what."""

    ENCODER = "encoder"
    SEQ2SEQ = "sequence-to-sequence model"
    CAUSAL = "decoder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """Network that a configuration describes."""

    model_type: str
    name: str
    """First of the configuration's ``architectures``, empty where it names none."""
    family: Family | None
    """None where the type is unknown."""
    head: Head | None
    """The head of an already fine-tuned encoder."""
    labels: tuple[str, ...]
    """Label names by index, where the head has labels."""
    layers: int | None
    remote_code: bool
    """Whether the repository ships Python code of its own for the model."""
    bare_decoder: bool
    """Whether the class is that of a decoder without the layer that writes text, such as ``Qwen3Model``."""
    regression: bool
    """Whether a sequence classifier gives one score, or several labels at once."""


def architecture_of(model: ModelConfig) -> Architecture:
    """Return the architecture in a model's configuration; raises `AdapterError` where transformers did not write it."""
    try:
        return read_architecture(model.config)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise AdapterError(
            f"The config.json of {model.ref!r} is not one that transformers wrote: {error}."
        ) from error


def read_architecture(config: Mapping[str, Any]) -> Architecture:
    """Return the architecture in the contents of a ``config.json``."""
    model_type = str(config.get("model_type") or "")
    names = config.get("architectures") or [""]
    name = str(names[0])
    family = _family(config, model_type, name)
    head = next((head for head, ending in HEAD_ARCHITECTURE.items() if name.endswith(ending)), None)
    with_labels = head in (Head.CLASSIFICATION, Head.TAGGING)
    labels = _labels(config) if with_labels else ()
    problem = config.get("problem_type")
    text = config.get("text_config") or config
    layers = next(
        (text[key] for key in ("num_hidden_layers", "n_layers", "n_layer", "num_layers") if key in text),
        None,
    )
    return Architecture(
        model_type=model_type,
        name=name,
        family=family,
        head=head if family is Family.ENCODER else None,
        labels=labels,
        layers=int(layers) if layers is not None else None,
        remote_code=bool(config.get("auto_map")),
        bare_decoder=family is Family.CAUSAL and _is_bare(name),
        regression=head is Head.CLASSIFICATION
        and (len(labels) < 2 or problem in ("regression", "multi_label_classification")),
    )


def _family(config: Mapping[str, Any], model_type: str, name: str) -> Family | None:
    if model_type in TEXT_ENCODERS and name.endswith("EncoderModel"):
        return Family.ENCODER
    # The classes of decoders that read images, too, end as those of encoder-decoders do.
    reads_images = model_type in CAUSAL_TYPES and "text_config" in config
    if config.get("is_encoder_decoder") or (name.endswith("ForConditionalGeneration") and not reads_images):
        return Family.SEQ2SEQ
    if name.endswith("ForCausalLM") or config.get("is_decoder") or name.endswith("BertLMHeadModel"):
        return Family.CAUSAL
    for family, types in (
        (Family.ENCODER, ENCODER_TYPES),
        (Family.SEQ2SEQ, SEQ2SEQ_TYPES),
        (Family.CAUSAL, CAUSAL_TYPES),
    ):
        if model_type in types:
            return family
    return Family.ENCODER if _is_remote_encoder(config, name) else None


def _is_bare(name: str) -> bool:
    return name.endswith("Model") and not name.endswith(("HeadModel", "HeadsModel"))


def _is_remote_encoder(config: Mapping[str, Any], name: str) -> bool:
    """Return whether the repository's own code declares an encoder: bare, masked or with a head."""
    auto_map = config.get("auto_map") or {}
    endings = ("ForMaskedLM", "Model", *HEAD_ARCHITECTURE.values())
    return "AutoModel" in auto_map and "AutoModelForCausalLM" not in auto_map and name.endswith(endings)


def _labels(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the label names by index; transformers does not write two generic ones down."""
    table = config.get("id2label")
    if table:
        return tuple(str(table[index]) for index in sorted(table, key=int))
    return tuple(f"{GENERIC_LABEL}{index}" for index in range(int(config.get("num_labels") or 2)))


ENCODER_OFFERS = frozenset({Capability.FITS, Capability.EMBEDS, Capability.EXPOSES_HIDDEN_STATES})
FITTED_HEADS = (
    Head.CLASSIFICATION,
    Head.MULTIPLE_CHOICE,
    Head.TAGGING,
    Head.SPAN_EXTRACTION,
    Head.DUAL_ENCODER,
)
"""The heads of encoders and decoders: where transformers has no class with one, ours is put on the bare model."""
HEAD_OFFERS = {Head.CLASSIFICATION: frozenset({Capability.EXPOSES_ATTENTIONS})}
"""What a head of an encoder offers in addition to its own capability."""
CAUSAL_OFFERS = frozenset(
    {
        Capability.SCORES_CONTINUATIONS,
        Capability.GENERATES,
        Capability.COUNTS_TOKENS,
        Capability.EMBEDS,
        Capability.EXPOSES_HIDDEN_STATES,
        Capability.FITS,
    }
)
SEQ2SEQ_OFFERS = CAUSAL_OFFERS
WRITES_WITHIN: frozenset[Constraint] = frozenset({"choices"})
"""What `harness_hf.inference.text_vectors.check_writing` lets through."""
MASKED_ARCHITECTURE = "ForMaskedLM"
FLASH_PACKAGES = ("flash_attn", "kernels")
"""Either has the kernel; transformers downloads it with the latter."""
ADAPTERS = {
    Family.ENCODER: ("hf-encoder", "an encoder", ENCODER_TYPES),
    Family.SEQ2SEQ: ("hf-seq2seq", "a sequence-to-sequence model", SEQ2SEQ_TYPES),
    Family.CAUSAL: ("hf-causal", "a decoder", CAUSAL_TYPES),
}
"""The adapter of each family, what its models are called, and the types that transformers has of it."""

OWN_HEADS = ("ForSequenceClassification", "ForTokenClassification")
"""Ends of the names of decoders whose own head replaces the layer that writes text."""


def describe(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return the capabilities of the encoder in a local folder, or behind a hub id, before and after fitting.

    Reads small JSON files and the headers of weight files only. Raises `CapabilityError` for a model that is
    no encoder, `UsageError` or `AdapterError` for one that cannot be found or understood.
    """
    assert isinstance(options, EncoderOptions)
    model = read_config(ref, options)
    architecture = find_architecture(model, options, Family.ENCODER)
    labels = options.label_names or architecture.labels
    head, note = _usable_head(architecture, labels)
    notes = [note] if note else []
    record = read_record(model.folder) if model.folder is not None else None
    _require_matching_labels(ref, options, architecture)
    if record is not None and architecture.head is None and record.head is not Head.DUAL_ENCODER:
        head, labels = record.head, record.labels
    mask_capability: frozenset[Capability] = frozenset()
    if record is None and _has_mask_head(architecture, model.folder):
        mask_capability = frozenset({Capability.FILLS_MASKS})
    elif architecture.head is None and record is None:
        notes.append("its checkpoint has no head of a masked language model, so it fills no masks")
    notes += _adapter_note(model.folder)
    if record is not None and record.head is Head.DUAL_ENCODER:
        settings = record.settings
        notes.append(
            f"a fitted dual encoder: {record.pooling or settings.pooling} pooling, "
            f"queries cut at {settings.max_query_length} pieces, passages at {record.max_length}"
        )
    elif model.folder is not None:
        sentence = read_sentence_files(model.folder)
        if sentence.unsupported and options.pooling is None:
            notes.append(f"its folder asks for {sentence.unsupported} to embed: pass -o pooling=mean")
    return _description(
        model,
        architecture,
        adapter="hf-encoder",
        offers=(_offers_with(head) if head else ENCODER_OFFERS) | mask_capability,
        after_fit={fitted: _offers_with(fitted) for fitted in FITTED_HEADS},
        labels=labels if head else (),
        note="; ".join(notes),
    )


def describe_causal(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return the capabilities of the decoder in a local folder, or behind a hub id; raises as `describe` does."""
    assert isinstance(options, CausalOptions)
    model = read_config(ref, options)
    architecture = find_architecture(model, options, Family.CAUSAL)
    record = read_record(model.folder) if model.folder is not None else None
    after_fit = {head: ENCODER_OFFERS | {HEAD_CAPABILITY[head]} for head in FITTED_HEADS}
    embeds_only = record is None and writes_no_text(architecture, model.folder)
    notes = _adapter_note(model.folder)
    if embeds_only:
        notes.append("its checkpoint has no layer that writes text, so it only embeds and is fitted")
    unread = (
        {"unread_head": architecture.name} if record is None and architecture.name.endswith(OWN_HEADS) else {}
    )
    offers = ENCODER_OFFERS if embeds_only else CAUSAL_OFFERS
    return _description(
        model,
        architecture,
        adapter="hf-causal",
        constraints=WRITES_WITHIN,
        offers=offers if record is None else after_fit[record.head],
        after_fit=after_fit,
        fits_on_request=record is None and not embeds_only,
        labels=() if record is None else record.labels,
        note="; ".join(notes),
        metadata={**_metadata(model, architecture), **unread},
    )


def writes_no_text(architecture: Architecture, folder: Path | None) -> bool:
    """Return whether a decoder is an embedding model, whose checkpoint has no layer that writes text.

    Its class says so, as that of a classifier does; or its folder has the modules of sentence-transformers and no such
    weights: Qwen3-Embedding names a class that writes. Of a hub repository only config.json has been read.
    """
    if architecture.name.endswith(OWN_HEADS):
        return True
    if folder is None:
        return architecture.bare_decoder
    if not architecture.bare_decoder and not (folder / "modules.json").is_file():
        return False
    return not any(name.startswith(OUTPUT_LAYERS) for name in tensor_names(folder))


def describe_seq2seq(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return the capabilities of the sequence-to-sequence model `ref`; raises as `describe` does."""
    assert isinstance(options, Seq2SeqOptions)
    model = read_config(ref, options)
    architecture = find_architecture(model, options, Family.SEQ2SEQ)
    record = read_record(model.folder) if model.folder is not None else None
    note = ""
    if record is not None:
        note = (
            f"fitted on text pairs: sources cut at {record.max_length} tokens, "
            f"targets at {record.settings.max_target_length}"
        )
    translates = record is None and architecture.model_type in TRANSLATION_TYPES
    return _description(
        model,
        architecture,
        adapter="hf-seq2seq",
        constraints=WRITES_WITHIN,
        offers=SEQ2SEQ_OFFERS | ({Capability.TRANSLATES} if translates else set()),
        after_fit={Head.TEXT_TO_TEXT: SEQ2SEQ_OFFERS},
        layers=architecture.layers or model.config.get("encoder_layers"),
        note=note,
    )


def _description(model: ModelConfig, architecture: Architecture, **fields: Any) -> ModelDescription:
    """Return the description of a model: what the folder says of every family, and the `fields` of its own."""
    usual = {
        "revision": model.revision,
        "parameters": count_parameters(model.folder) if model.folder else None,
        "layers": architecture.layers,
        "metadata": _metadata(model, architecture),
        "fault": folder_fault(model),
    }
    return ModelDescription(ref=model.ref, **{**usual, **fields})


def find_architecture(model: ModelConfig, options: ModelOptions, family: Family) -> Architecture:
    """Return the architecture of a model of a family; raises where the model is something else or unknown."""
    require_packages(model.ref, read_quantization(model.config))
    _require_kernel(options)
    if family is not Family.ENCODER and isinstance(options, EncoderOptions) and options.labels is not None:
        raise UsageError(
            f"The option labels names the outputs of a fine-tuned encoder, and {model.ref!r} is {ADAPTERS[family][1]}.",
            hint="Omit -o labels.",
        )
    architecture = architecture_of(model)
    adapter, article, known_types = ADAPTERS[family]
    is_read_alone = family is Family.ENCODER and architecture.model_type in TEXT_ENCODERS
    if architecture.family not in (family, None) and not is_read_alone:
        scheme, kind, _ = ADAPTERS[architecture.family]
        raise CapabilityError(
            f"The model {model.ref!r} is {kind} ({architecture.model_type}), not {article}.",
            hint=f"It is for the adapter {scheme!r}: give it as '{scheme}:{model.ref}' or 'hf:{model.ref}'.",
        )
    if family is Family.SEQ2SEQ and architecture.name.endswith(tuple(HEAD_ARCHITECTURE.values())):
        raise CapabilityError(
            f"The model {model.ref!r} is a {architecture.name}, which writes no text.",
            hint="Give a checkpoint whose architecture ends with ForConditionalGeneration.",
        )
    is_supported = architecture.model_type in known_types or is_read_alone
    if architecture.family is None or (
        family is Family.SEQ2SEQ and not is_supported and not architecture.remote_code
    ):
        raise AdapterError(
            f"The config.json of {model.ref!r} has the model_type {architecture.model_type!r}, "
            f"which is not {article} that this adapter knows.",
            hint=f"Run 'harness models {adapter}' to see what it opens.",
        )
    if architecture.remote_code and not is_supported and not options.trust_remote_code:
        raise AdapterError(
            f"The model {model.ref!r} ({architecture.model_type}) needs Python code from its own repository.",
            hint="Read that code, then allow it with: -o trust_remote_code=true",
        )
    return architecture


def _require_kernel(options: ModelOptions) -> None:
    """Raise `AdapterError` where the attention kernel that the options name comes from no installed package."""
    if options.attn_implementation == "flash_attention_2" and not any(map(find_spec, FLASH_PACKAGES)):
        raise AdapterError(
            "The option attn_implementation is 'flash_attention_2', which needs the package flash-attn.",
            hint="Install flash-attn or kernels on a machine with a GPU, or omit -o attn_implementation.",
        )


def _metadata(model: ModelConfig, architecture: Architecture) -> dict[str, str]:
    quantization, base = read_quantization(model.config), _base(model.folder)
    return {
        "model_type": architecture.model_type,
        "architecture": architecture.name,
        **({} if quantization is None else {"quantised": quantization.title}),
        **({} if base is None else {"base": base}),
    }


def _base(folder: Path | None) -> str | None:
    """Return the base that the low-rank adapter in a folder names, None for any other folder."""
    if folder is None or not (folder / ADAPTER_CONFIG).is_file():
        return None
    return str(read_json(folder / ADAPTER_CONFIG).get("base_model_name_or_path"))


def _adapter_note(folder: Path | None) -> list[str]:
    base = _base(folder)
    return [] if base is None else [f"a LoRA adapter on {base}"]


def _offers_with(head: Head) -> frozenset[Capability]:
    return ENCODER_OFFERS | {HEAD_CAPABILITY[head]} | HEAD_OFFERS.get(head, frozenset())


def _require_matching_labels(ref: str, options: EncoderOptions, architecture: Architecture) -> None:
    """Raise `UsageError` where the option `labels` does not name every output of the head once."""
    names, outputs = options.label_names, len(architecture.labels)
    if not names:
        return
    if not outputs:
        raise UsageError(
            f"The option labels names {len(names)} labels, and {ref!r} has no head with labels.",
            hint="Omit -o labels: the model is fine-tuned by the harness first.",
        )
    if len(names) != outputs or len({name.casefold() for name in names}) != len(names) or "" in names:
        raise UsageError(
            f"The option labels is {options.labels!r}; expected {outputs} different names with commas between them, "
            f"one per output of the head of {ref!r}, in their order."
        )


def _usable_head(architecture: Architecture, labels: tuple[str, ...]) -> tuple[Head | None, str]:
    """Return the head that a checkpoint can be used with before fitting, and a note about it."""
    if architecture.head is None:
        return None, ""
    if architecture.regression:
        return None, (
            f"its {architecture.name} head gives {len(architecture.labels)} scores that are not exclusive "
            "labels, so it does not classify"
        )
    if labels and all(label.startswith(GENERIC_LABEL) for label in labels):
        return architecture.head, (
            f"its labels are unnamed ({', '.join(labels[:3])}): name them in their order with -o labels=NAME,NAME,... "
            "or in id2label of its config.json"
        )
    return architecture.head, ""


def _has_mask_head(architecture: Architecture, folder: Path | None) -> bool:
    """Return whether an encoder can fill masks before fitting.

    In a local folder the names of the weights decide, whatever class config.json names: the class of pretraining has
    the head, too. Of a hub repository only config.json has been read. A checkpoint with another head fills no masks.
    """
    if architecture.head is not None or architecture.model_type in TEXT_ENCODERS:
        return False
    if folder is None:
        return architecture.name.endswith(MASKED_ARCHITECTURE)
    try:
        return any(name.startswith(MASK_HEADS) for name in tensor_names(folder))
    except AdapterError:
        return False  # opening the model reports what is wrong with its weights
