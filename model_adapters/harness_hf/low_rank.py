"""Low-rank adapters (LoRA) through peft: made for training, and read from folders that hold nothing else.

Sources: Hu et al. (2021), LoRA: Low-Rank Adaptation of Large Language Models; Dettmers et al. (2023), QLoRA: Efficient
Finetuning of Quantized LLMs.
"""

from __future__ import annotations

import logging
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from transformers.pytorch_utils import Conv1D

from harness import AdapterError, TrainingError
from harness.models import TrainingSettings
from harness_hf.model_folder import ADAPTER_CONFIG, ADAPTER_WEIGHTS, read_json

# On import it warns that a kernel for CPUs, which is faster, is not installed; transformers imports it with peft.
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)

ALL_LINEAR = "all-linear"
PACKING = "support_avx512bf16_for_cpu"
MISFITS = (OSError, SafetensorError, RuntimeError, ValueError, TypeError, KeyError)
"""Errors of peft and safetensors for the weights of another model."""
UNTRAINED = r".*pooler.*"
"""Layers that no head reads."""


def require_packages(settings: TrainingSettings) -> None:
    """Raise `AdapterError` where a package that the settings need is not installed."""
    if settings.lora_rank is not None:
        _require_package("A recipe with lora_rank", "peft")
    if settings.quantize is not None:
        _require_package(f"A recipe with quantize: {settings.quantize}", "bitsandbytes")


def _require_package(feature: str, package: str) -> None:
    if find_spec(package) is None:
        raise AdapterError(
            f"{feature} needs the package {package!r}, which is not installed.",
            hint="Run: pip install 'multilingual-harness[peft]'",
        )


def is_adapted(network: Any) -> bool:
    """Return whether a network has low-rank matrices next to its weights."""
    return bool(getattr(network, "_hf_peft_config_loaded", False))


def quantization(name: str | None) -> dict[str, Any]:
    """Return the keywords of `from_pretrained` that store linear layers in 4 bits: NF4, its constants quantised too."""
    if name is None:
        return {}
    from transformers import BitsAndBytesConfig

    bf16 = torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    make: Any = BitsAndBytesConfig
    config = make(
        load_in_4bit=True,
        bnb_4bit_quant_type=name,
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16 if bf16 else torch.float32,
    )
    return {"quantization_config": config}


def add_low_rank(network: Any, settings: TrainingSettings, base: str, revision: str | None) -> None:
    """Add new low-rank matrices to a network; only these can be trained afterwards.

    `base` is the folder or hub id that the saved adapter names. Raises `TrainingError` for targets that the network
    does not have.
    """
    from peft import LoraConfig

    _use_plain_kernel(network)
    assert settings.lora_rank is not None
    targets = list(settings.lora_targets) or ALL_LINEAR
    config = LoraConfig(
        r=settings.lora_rank,
        lora_alpha=settings.lora_alpha,
        lora_dropout=settings.lora_dropout,
        target_modules=targets,
        # The linear layers of GPT-2 have their weights the other way round.
        fan_in_fan_out=any(isinstance(module, Conv1D) for module in network.modules()),
        exclude_modules=UNTRAINED if getattr(network, "pooler", None) is not None else None,
    )
    try:
        network.add_adapter(config)
    except ValueError as error:
        layers = ", ".join(settings.lora_targets) or "linear layers"
        raise TrainingError(
            f"The model {base!r} ({network.config.model_type}) has no layers that lora_targets names: {layers}.",
            hint="Omit lora_targets, which takes all linear layers.",
        ) from error
    config.base_model_name_or_path, config.revision = base, revision
    # A set, whose order would be another one in every process.
    config.target_modules = sorted(config.target_modules or ())


def attach_low_rank(network: Any, folder: Path, *, trainable: bool = False) -> None:
    """Put the low-rank matrices in a folder next to the weights of the network; raises `AdapterError`."""
    _require_package(f"The adapter folder {str(folder)!r}", "peft")
    from peft import LoraConfig

    _use_plain_kernel(network)
    declared = read_json(folder / ADAPTER_CONFIG)
    if declared.get("peft_type") != "LORA" or declared.get("modules_to_save"):
        content = (
            f"modules_to_save {declared['modules_to_save']}" if declared.get("modules_to_save") else None
        )
        raise AdapterError(
            f"The folder {str(folder)!r} holds an adapter with {content or declared.get('peft_type')}; "
            "only plain LoRA is read.",
            hint="Load it with peft, call merge_and_unload, and save the merged model with save_pretrained.",
        )
    try:
        weights = load_file(folder / ADAPTER_WEIGHTS)
        report = network.load_adapter(
            peft_config=LoraConfig.from_pretrained(str(folder)),
            adapter_state_dict=weights,
            is_trainable=trainable,
        )
        faulty = {*report.missing_keys, *report.unexpected_keys, *(key for key, *_ in report.mismatched_keys)}
        _require_no_fault(folder, faulty)
    except MISFITS as error:
        raise _misfit_error(folder, f"{type(error).__name__}: {error}") from error


def merge_adapter(network: Any, folder: Path) -> tuple[Any, frozenset[str]]:
    """Return a network with an adapter of peft merged into its weights, and the names of the modules saved whole.

    Raises `AdapterError` where the folder's weights are not all those of such an adapter on this network.
    """
    _require_package(f"The adapter folder {str(folder)!r}", "peft")
    from peft import PeftModel, get_peft_model_state_dict

    kind = read_json(folder / ADAPTER_CONFIG).get("peft_type")
    if kind != "LORA":
        raise AdapterError(
            f"The folder {str(folder)!r} holds an adapter with {kind}; only LoRA is read.",
            hint="Load it with peft, call merge_and_unload, and save the merged model with save_pretrained.",
        )
    try:
        weights = load_file(folder / ADAPTER_WEIGHTS)
        with warnings.catch_warnings():  # what matters in them is checked below
            warnings.simplefilter("ignore")
            adapted = PeftModel.from_pretrained(network, str(folder))
        expected = set(get_peft_model_state_dict(adapted))
        _require_no_fault(folder, expected ^ set(weights))
        merged = adapted.merge_and_unload()
    except MISFITS as error:
        raise _misfit_error(folder, f"{type(error).__name__}: {error}") from error
    saved_modules = (name.removeprefix("base_model.model.") for name in weights if ".lora_" not in name)
    return merged, frozenset(saved_modules)


def _require_no_fault(folder: Path, weight_names: set[str]) -> None:
    if weight_names:
        raise _misfit_error(folder, f"see {min(weight_names)!r}")


def _misfit_error(folder: Path, reason: str) -> AdapterError:
    return AdapterError(f"The adapter in {str(folder)!r} does not fit its base: {reason}.")


def _use_plain_kernel(network: Any) -> None:
    """Keep bitsandbytes from packing 4-bit weights for a CPU's kernel at their first evaluation.

    Packed weights cannot be trained further, round to bfloat16, and need rows of a multiple of 64.
    """
    for module in network.modules():
        if hasattr(module, PACKING):
            setattr(module, PACKING, False)


def require_same_shape(folder: Path, settings: TrainingSettings) -> None:
    """Raise `TrainingError` where the adapter in a folder cannot be trained further with these settings."""
    declared = read_json(folder / ADAPTER_CONFIG)
    shape = (declared.get("r"), declared.get("lora_alpha"))
    if shape != (settings.lora_rank, settings.lora_alpha):
        recipe = (
            "no lora_rank"
            if settings.lora_rank is None
            else f"rank {settings.lora_rank}, alpha {settings.lora_alpha}"
        )
        raise TrainingError(
            f"The folder {str(folder)!r} holds an adapter with rank {shape[0]} and alpha {shape[1]}; "
            f"the recipe has {recipe}.",
            hint="Give both the same recipe, or merge the adapter into its base with peft first.",
        )
