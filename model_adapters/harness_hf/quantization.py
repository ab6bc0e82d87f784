"""Quantised checkpoints: what config.json says of them, the packages that open them, how many weights they hold."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

from harness import AdapterError
from harness.models import TrainingSettings

TABLES = tomllib.loads(
    resources.files("harness_hf").joinpath("architectures.toml").read_text(encoding="utf-8")
)
"""Names of types, weights, packages and sizes."""
PACKAGES: Mapping[str, Mapping[str, str]] = TABLES["packages"]
"""By method: modules that transformers 5 imports, and their packages."""
COUNTED, PACKED, CONSTANTS = (tuple(TABLES["quantized"][name]) for name in ("counted", "packed", "constants"))
"""Methods whose layout of tensors is known; ends of the names of packed weights, and of what is added to weights."""
STATE = ".quant_state."
BITS = {"F64": 64, "I64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16, "BF16": 16, "I16": 16}
"""By safetensors' name of a type; all others are bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """How the weights of a checkpoint are stored."""

    method: str
    """As config.json and transformers name it: bitsandbytes, gptq, awq ..."""
    form: str
    """The type of a weight: ``nf4``, ``int8``, ``4 bit``."""
    bits: int | None

    @property
    def title(self) -> str:
        """``nf4 (bitsandbytes)``."""
        return f"{self.form} ({self.method})" if self.form else self.method


def read_quantization(config: Mapping[str, Any]) -> Quantization | None:
    """Return the quantisation in the config.json of a model; None for weights that are stored as they are."""
    fields = config.get("quantization_config")
    if not isinstance(fields, Mapping):
        return None
    method_name = fields.get("quant_method") or "bitsandbytes"
    method = str(
        getattr(method_name, "value", method_name)
    )  # transformers has an enumeration, a file has a text
    bits = fields.get("bits") if isinstance(fields.get("bits"), int) else None
    form = f"{bits} bit" if bits else str(fields.get("fmt") or fields.get("format") or "")
    if method == "bitsandbytes":
        bits = 4 if fields.get("load_in_4bit") else 8
        form = str(fields.get("bnb_4bit_quant_type") or "fp4") if bits == 4 else "int8"
    elif method == "compressed-tensors":
        bits = _group_bits(fields)
    return Quantization(method=method, form=form, bits=bits)


def _group_bits(fields: Mapping[str, Any]) -> int | None:
    """Return the bits that all groups of a compressed-tensors configuration share."""
    groups = fields.get("config_groups")
    weights = [group.get("weights") or {} for group in groups.values()] if isinstance(groups, Mapping) else []
    widths = {weight.get("num_bits") for weight in weights}
    only = widths.pop() if len(widths) == 1 else None
    return only if isinstance(only, int) else None


def require_packages(ref: str, quantization: Quantization | None) -> None:
    """Raise `AdapterError` where a package that opens a quantised checkpoint is not installed."""
    if quantization is None:
        return
    missing = [
        name for module, name in PACKAGES.get(quantization.method, {}).items() if find_spec(module) is None
    ]
    if missing:
        raise AdapterError(
            f"The model {ref!r} is quantised, {quantization.title}, and {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not installed.",
            hint=f"Run: pip install {' '.join(missing)}",
        )


def require_trainable(ref: str, config: Any, settings: TrainingSettings) -> None:
    """Raise `AdapterError` where all weights of a quantised checkpoint would be trained, which have no gradients.

    Args:
        ref: The model.
        config: Of the network, as transformers made it.
        settings: Of the training; one with a `lora_rank` trains other weights.
    """
    configuration = getattr(config, "quantization_config", None)
    if configuration is None or settings.lora_rank is not None:
        return
    content = configuration if isinstance(configuration, Mapping) else configuration.to_dict()
    quantization = read_quantization({"quantization_config": content})
    title = "" if quantization is None else f", {quantization.title}"
    raise AdapterError(
        f"The model {ref!r} is quantised{title}, so its weights cannot be trained.",
        hint="Train low-rank matrices next to them with --recipe qlora, or give the checkpoint it was made of.",
    )


def unpacked_size(files: Iterable[Path], quantization: Quantization) -> int | None:
    """Return how many weights a quantised checkpoint has, unpacked; None where the layout of its tensors is not known.

    Scales, zero points and the like do not count. Rows that were padded to whole numbers count with their padding.
    """
    from safetensors import safe_open

    tensors: dict[str, tuple[int, int]] = {}
    for file in files:
        with safe_open(file, framework="np") as opened:
            for name in opened.keys():  # noqa: SIM118, RUF100
                tensor = opened.get_slice(name)
                tensors[name] = (prod(tensor.get_shape()), BITS.get(tensor.get_dtype(), 8))
    if quantization.method not in COUNTED:
        return None
    total = 0
    for name, (numbers, width) in tensors.items():
        if name.endswith(CONSTANTS) or STATE in name:
            continue
        if name.endswith(PACKED) or f"{name}.absmax" in tensors:
            if quantization.bits is None:
                return None
            total += numbers * width // quantization.bits
        else:
            total += numbers
    return total
