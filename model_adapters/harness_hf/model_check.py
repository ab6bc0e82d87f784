"""Capabilities of a model's architecture, tried on a tiny random model of it with a tokenizer of bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from harness import AdapterError
from harness.models import (
    HEAD_CAPABILITY,
    AdapterOptions,
    Capability,
    FitOptions,
    Head,
    HeadSpec,
    TrainingSettings,
)
from harness.testing import PROBES, head_spec, is_finite, training_examples
from harness_hf.description import Family, architecture_of
from harness_hf.family import AnyFamilyOptions, describe_any, model_options, open_any
from harness_hf.loading import first_line, quiet_transformers
from harness_hf.model_folder import ModelConfig, read_config
from harness_hf.quantization import TABLES

SPECIAL = ("<pad>", "<s>", "</s>", "<unk>", "<mask>")
LAYERS, HEADS = 2, 2
SIZES = {name: int(size) for size, names in TABLES["sizes"].items() for name in names}
"""Sizes of the tiny model, by the names that transformers' configurations have for them."""
DEPTHS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers")
IDS = {"pad": 0, "bos": 1, "cls": 1, "eos": 2, "sep": 2, "unk": 3, "mask": 4, "decoder_start": 0}
AUTO_CLASSES = {
    Family.ENCODER: "AutoModel",
    Family.SEQ2SEQ: "AutoModelForSeq2SeqLM",
    Family.CAUSAL: "AutoModelForCausalLM",
}
"""For a config.json that names no class."""


def save_miniature(model: ModelConfig, folder: Path) -> None:
    """Save the tiny model and its tokenizer; raises `AdapterError` for what transformers has no class of."""
    architecture = architecture_of(model)
    kind = architecture.model_type
    if kind not in CONFIG_MAPPING or architecture.family is None:
        code = "it needs the code of its own repository" if architecture.remote_code else "it is unknown"
        raise AdapterError(
            f"No tiny model of {model.ref!r} can be made: transformers has no architecture {kind!r}, {code}."
        )
    tokenizer = _tokenizer(architecture.family)
    try:
        full_config = CONFIG_MAPPING[kind].from_dict(dict(model.config)).to_dict()
        config = CONFIG_MAPPING[kind].from_dict(_shrink(full_config, len(tokenizer)))
        auto = getattr(transformers, AUTO_CLASSES[architecture.family])
        architecture_class = getattr(transformers, architecture.name, None)
        torch.manual_seed(0)
        network = (auto.from_config if architecture_class is None else architecture_class._from_config)(
            config
        )
        with quiet_transformers():
            network.float().save_pretrained(folder)
    except Exception as error:
        raise AdapterError(f"No tiny model of {model.ref!r} can be made: {first_line(error)}") from error
    tokenizer.save_pretrained(folder)


def _shrink(config: Mapping[str, Any], vocabulary: int) -> dict[str, Any]:
    """Return a configuration with small sizes, nested ones too; a list with an entry per layer keeps each kind."""
    depth = next((config[name] for name in DEPTHS if config.get(name)), None)
    grouped = config.get("num_key_value_heads") != config.get("num_attention_heads")
    small: dict[str, Any] = {}
    for name, value in config.items():
        token = name.removesuffix("_token_id")
        if name in ("quantization_config", "auto_map", "torch_dtype", "dtype"):
            continue
        if isinstance(value, Mapping) and "model_type" in value:
            small[name] = _shrink(value, vocabulary)
        elif value is None:
            small[name] = None
        elif name != token:
            small[name] = IDS.get(token, 0)
        elif isinstance(value, list) and len(value) == depth:
            small[name] = (list(dict.fromkeys(value)) * LAYERS)[:LAYERS]
        elif name.startswith("vocab_size"):
            small[name] = vocabulary
        elif name == "num_key_value_heads":
            small[name] = 1 if grouped else HEADS
        else:
            small[name] = SIZES.get(name, value)
    return small


def _tokenizer(family: Family) -> Any:
    """Return a tokenizer of bytes: encoders have tokens around a text, text-to-text models one after it."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: number for number, piece in enumerate([*SPECIAL, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if family is Family.ENCODER:
        single, pair = "<s> $A </s>", "<s> $A </s> </s> $B </s>"
    else:
        single, pair = "$A </s>", "$A $B </s>"
    if family is not Family.CAUSAL:
        special = [("<s>", 1), ("</s>", 2)]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=single, pair=pair, special_tokens=special
        )
    marks = {f"{name}_token": SPECIAL[number] for name, number in IDS.items() if name != "decoder_start"}
    make: Any = transformers.PreTrainedTokenizerFast
    return make(tokenizer_object=tokenizer, model_max_length=128, **marks)


WORKS = "works"
ITEMS = 4
SETTINGS = TrainingSettings(
    learning_rate=1e-3, epochs=1, batch_size=ITEMS, max_length=64, max_query_length=16
)


def check_model(ref: str, options: AdapterOptions) -> dict[str, str]:
    """Return the adapter of a model and, for each thing that it offers, ``works`` or what went wrong.

    Only config.json is read: the tiny model has its architecture, small sizes and random weights. It answers a few
    texts with each capability, and is trained for a step with each head. Raises `AdapterError` where none can be made.
    """
    results: dict[str, str] = {}
    with TemporaryDirectory() as name:
        folder = Path(name) / "model"
        save_miniature(read_config(ref, model_options(options)), folder)
        cpu_options = AnyFamilyOptions.model_validate({"device": "cpu"})
        description = describe_any(str(folder), cpu_options)
        results["adapter"] = description.adapter
        model: Any = open_any(description, cpu_options)
        for capability in sorted(description.offers & PROBES.keys()):
            results[capability.value] = _ask(model, capability, description.labels)
        for head in sorted(description.after_fit):
            results[f"fitted: {head.value}"] = _fit(model, head, Path(name) / head.value)
        model.close()
    return results


def _ask(model: Any, capability: Capability, labels: tuple[str, ...]) -> str:
    probe = PROBES[capability]
    requests = probe.requests[:ITEMS]
    try:
        answers = list(probe.ask(model, requests, labels))
        if len(answers) != len(requests):
            return f"returned {len(answers)} answers to {len(requests)} requests"
        faults = [
            probe.fault(answer, request, labels) for answer, request in zip(answers, requests, strict=True)
        ]
    except Exception as error:
        return first_line(error)
    finite = "" if all(map(is_finite, answers)) else "returned a number that is not finite"
    return next((f"an answer {fault}" for fault in faults if fault), finite) or WORKS


def _fit(model: Any, head: Head, folder: Path) -> str:
    spec: HeadSpec = head_spec(head)
    folder.mkdir()
    try:
        options = FitOptions(directory=folder, settings=SETTINGS, seed=1)
        fitted = model.fit(training_examples(head)[:ITEMS], [], spec, options)
    except Exception as error:
        return first_line(error)
    result = _ask(fitted, HEAD_CAPABILITY[head], spec.labels)
    fitted.close()
    return result
