"""The kind of network that a ``config.json`` declares, and the heads that it can have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from harness import AdapterError
from harness.models import Head
from harness_hf.model_folder import ModelConfig

GENERIC_LABEL = "LABEL_"
"""How transformers names labels without a name: ``LABEL_0``."""

HEAD_ARCHITECTURE: Mapping[Head, str] = {
    Head.CLASSIFICATION: "ForSequenceClassification",
    Head.TAGGING: "ForTokenClassification",
    Head.SPAN_EXTRACTION: "ForQuestionAnswering",
    Head.MULTIPLE_CHOICE: "ForMultipleChoice",
}
"""How the names of `transformers` classes with that head end."""

# What transformers 5 has; a test compares these tables with its auto classes.
ENCODER_TYPES = frozenset(
    "albert bert camembert convbert data2vec-text deberta deberta-v2 distilbert electra ernie eurobert "
    "flaubert gte jina_embeddings_v3 megatron-bert mobilebert modernbert mpnet nomic_bert rembert roberta "
    "roberta-prelayernorm roformer squeezebert xlm xlm-roberta xlm-roberta-xl".split()
)
TEXT_ENCODERS = frozenset("mt5 t5 umt5".split())
"""Encoder-decoders whose encoder transformers opens alone, as ``T5EncoderModel``."""
SEQ2SEQ_TYPES = frozenset(
    "bart bigbird_pegasus blenderbot blenderbot-small encoder-decoder fsmt led longt5 m2m_100 marian "
    "mbart mt5 mvp nllb-moe pegasus pegasus_x plbart prophetnet seamless_m4t seamless_m4t_v2 "
    "switch_transformers t5 t5gemma umt5".split()
)
CAUSAL_TYPES = frozenset(
    "apertus biogpt bloom codegen cohere cohere2 ctrl deepseek_v2 deepseek_v3 exaone4 falcon falcon_h1 "
    "falcon_mamba gemma gemma2 gemma3 gemma3_text glm glm4 gpt-sw3 gpt2 gpt_bigcode gpt_neo gpt_neox "
    "gpt_oss gptj granite internlm3 jamba llama llama4 llama4_text mamba mamba2 minicpm3 ministral "
    "mistral mixtral modernbert-decoder mpt nemotron olmo olmo2 olmo3 olmoe openai-gpt opt persimmon "
    "phi phi3 qwen2 qwen2_moe qwen3 qwen3_moe qwen3_next rwkv smollm3 stablelm starcoder2 xglm".split()
)


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
