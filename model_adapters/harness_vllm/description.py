"""What a model behind a server can do, read from its config.json or from the server's list of models."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from harness import (
    AdapterError,
    AdapterOptions,
    Capability,
    CapabilityError,
    HarnessError,
    ModelDescription,
    UsageError,
    near_names,
)
from harness_vllm.answers import ServedModel
from harness_vllm.client import Address, Client, StatusError, is_url, read_key
from harness_vllm.endpoints import check_same_model, parse_addresses
from harness_vllm.options import ChatOptions, ClientOptions, VllmOptions
from harness_vllm.served import choose_model, read_models

__all__ = ["describe_chat", "describe_vllm", "read_served"]

DESCRIBE_TIMEOUT = 5.0
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
RUNNER_OFFERS = {
    "generate": frozenset({Capability.SCORES_CONTINUATIONS, Capability.GENERATES, Capability.COUNTS_TOKENS}),
    "pooling": frozenset({Capability.EMBEDS}),
}
WRITES = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
"""Ends of the names of architectures that write; vLLM itself rejects sequence-to-sequence ones."""


def describe_vllm(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return what a model offers through vLLM, without starting a server.

    Reads the config.json of a folder, or ``/models`` of running servers; nothing for a hub id, which the server
    downloads. Raises `UsageError`, `CapabilityError` or `AdapterError`.
    """
    assert isinstance(options, VllmOptions)
    offers = RUNNER_OFFERS[options.runner]
    if is_url(ref):
        served = read_served(ref, options, options.key_env)[0]
        return ModelDescription(
            adapter="vllm",
            ref=ref,
            offers=offers,
            metadata={"model": served.name, "context_length": str(served.context_length or "unknown")},
        )
    if options.model is not None:
        raise UsageError(
            "The option model names a model at a running server: give its address, vllm:http://..."
        )
    path = Path(ref).expanduser()
    if not path.is_dir():
        if path.exists() or not HUB_ID.fullmatch(ref):
            raise UsageError(f"There is no model folder {ref!r}.", hint=_near_folders(path))
        note = "a hub id, which the server downloads where it may"
        return ModelDescription(adapter="vllm", ref=ref, offers=offers, revision=options.revision, note=note)
    config = _read_config(path, ref)
    architecture = _architecture(config)
    if options.runner == "generate" and architecture and not architecture.endswith(WRITES):
        raise CapabilityError(
            f"The model {ref!r} is a {architecture}, which writes no text and ranks nothing.",
            hint="Use it as an encoder with hf:MODEL, or embed with -o runner=pooling.",
        )
    layers = config.get("num_hidden_layers")
    return ModelDescription(
        adapter="vllm",
        ref=ref,
        offers=offers,
        layers=layers if type(layers) is int else None,
        metadata={"architecture": architecture or "unknown"},
    )


def describe_chat(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return what a chat endpoint offers: `Generates`; raises `UsageError` or `AdapterError`."""
    assert isinstance(options, ChatOptions)
    if not is_url(ref):
        raise UsageError(
            f"The model {ref!r} is no address of a chat endpoint.", hint="Give one: openai:https://HOST/v1"
        )
    served = read_served(ref, options, options.key_env)[0]
    offers = frozenset({Capability.GENERATES})
    return ModelDescription(adapter="openai", ref=ref, offers=offers, metadata={"model": served.name})


def read_served(ref: str, options: ClientOptions, key_env: str) -> list[ServedModel]:
    """Return the model that each of the running servers has; raises within seconds where one cannot be asked.

    Raises `UsageError` where their models have different names or context lengths.
    """
    addresses = parse_addresses(ref)
    found = [_read_one(address, options, key_env) for address in addresses]
    known = [
        {"model": model.name, "context_length": str(model.context_length or "unknown")} for model in found
    ]
    check_same_model(addresses, known)
    return found


def _read_one(address: Address, options: ClientOptions, key_env: str) -> ServedModel:
    client = Client(address, timeout=DESCRIBE_TIMEOUT, retries=0, key=read_key(key_env))
    try:
        return choose_model(read_models(client), options.model, str(address))
    except StatusError as error:
        raise _explain(str(address), error, key_env) from error
    finally:
        client.close()


def _explain(ref: str, error: StatusError, key_env: str) -> HarnessError:
    if error.status in (401, 403):
        return AdapterError(
            f"The server at {ref} needs a key: it answered {error.status} ({error.reason}).",
            hint=f"Put the key into the environment variable {key_env}, or name another with -o key_env=NAME.",
        )
    if error.status == 404:
        meant = "" if ref.rstrip("/").endswith("/v1") else f" Did you mean {ref.rstrip('/')}/v1?"
        return AdapterError(
            f"There is a server at {ref}, but it has no list of models there (404 for /models).{meant}"
        )
    return error


def _read_config(folder: Path, ref: str) -> dict[str, Any]:
    file = folder / "config.json"
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(
            f"The folder {ref!r} has no config.json, so it is not a model that vLLM can open.",
            hint="Give the folder that save_pretrained wrote.",
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise AdapterError(f"The file {str(file)!r} cannot be read: {error}.") from error
    except json.JSONDecodeError as error:
        raise AdapterError(f"The file {file}:{error.lineno} is not JSON: {error.msg}.") from error
    if not isinstance(config, dict):
        raise AdapterError(f"The file {str(file)!r} holds a {type(config).__name__}; expected a JSON object.")
    return config


def _architecture(config: dict[str, Any]) -> str | None:
    names = config.get("architectures")
    return names[0] if isinstance(names, list) and names and isinstance(names[0], str) else None


def _near_folders(path: Path) -> str | None:
    if not path.parent.is_dir():
        return None
    models = [child.name for child in path.parent.iterdir() if (child / "config.json").is_file()]
    near = near_names(path.name, models)
    return f"Did you mean {' or '.join(repr(str(path.parent / name)) for name in near)}?" if near else None
