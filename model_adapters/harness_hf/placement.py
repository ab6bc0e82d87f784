"""The device and the precision of a network: one device, this process's own GPU, or several by a device map."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from harness import AdapterError, Head, UsageError
from harness_hf.loading import AUTO_CLASSES, load_network, open_network, require_weights
from harness_hf.options import ModelOptions

__all__ = ["choose_device", "choose_dtype", "load_placed", "place", "placing"]


def choose_device(name: str) -> torch.device:
    """Return the device of the option: of several processes on a machine each has the GPU of its own number.

    Raises `AdapterError` for a GPU that is not there.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise AdapterError("The option device is 'cuda', but torch sees no GPU.", hint="Pass -o device=cpu.")
    if name == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    given = os.environ.get("LOCAL_RANK")
    if given is None:
        return torch.device("cuda")
    if not given.isdecimal():
        raise AdapterError(f"The environment variable LOCAL_RANK is {given!r}; expected a number from 0.")
    if int(given) >= torch.cuda.device_count():
        raise AdapterError(
            f"Process {given} of this machine has no GPU of its own: torch sees {torch.cuda.device_count()}.",
            hint="Start as many processes as there are GPUs, or pass -o device=cpu.",
        )
    return torch.device("cuda", int(given))


def choose_dtype(name: str, device: torch.device) -> torch.dtype | None:
    """Return the precision of inference; None is the checkpoint's own."""
    if name == "auto":
        return torch.float32 if device.type == "cpu" else None
    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype)
    return dtype


def placing(options: ModelOptions) -> Mapping[str, Any]:
    """Return the keywords of `open_network`: precision, and the device map where the options name one.

    Raises `UsageError` for a device map in a run of several processes: each would put its copy on all devices.
    """
    dtype = choose_dtype(options.dtype, choose_device(options.device)) or "auto"
    if options.device_map is None:
        return {"dtype": dtype}
    processes = os.environ.get("WORLD_SIZE", "1")
    if processes != "1":
        raise UsageError(
            f"The option device_map is {options.device_map!r}, which divides one model over all devices, but "
            f"{processes} processes are running.",
            hint="Start one process, or omit -o device_map.",
        )
    return {"dtype": dtype, "device_map": options.device_map}


def load_placed(folder: Path, ref: str, head: Head | None, options: ModelOptions) -> tuple[Any, bool]:
    """Return the network and whether it has a trained pooler, as `load_network` does."""
    keywords = placing(options)
    if "device_map" not in keywords:
        dtype = choose_dtype(options.dtype, choose_device(options.device))
        return load_network(folder, ref, head, options, dtype=dtype)
    network, information = open_network(AUTO_CLASSES[head], folder, ref, options, keywords)
    missing = sorted(information["missing_keys"])
    poolers = [name for name in missing if "pooler" in name]
    if head in (None, Head.DUAL_ENCODER):
        missing = [name for name in missing if name not in poolers]
    require_weights(ref, missing)
    return network, getattr(network.base_model, "pooler", None) is not None and not poolers


def place(network: Any, options: ModelOptions) -> tuple[Any, torch.device]:
    """Return the network ready to answer, and the device that its inputs have to be on.

    A network with a device map stays where it was loaded; it reads its inputs where its embeddings are run,
    which need not be where their weights wait.
    """
    if options.device_map is None:
        device = choose_device(options.device)
        return network.to(device).eval(), device
    embeddings = network.get_input_embeddings()
    runs_on = getattr(getattr(embeddings, "_hf_hook", None), "execution_device", None)
    device = torch.device(embeddings.weight.device if runs_on is None else runs_on)
    return network.eval(), device
