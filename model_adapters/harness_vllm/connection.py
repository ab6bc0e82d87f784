"""What a server says about itself: its models, their context length, its version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness import AdapterError, UnknownNameError, UsageError
from harness_vllm.client import Client

__all__ = ["ServedModel", "choose_model", "read_models", "server_version"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """One entry of ``/models``."""

    name: str
    context_length: int | None
    """Tokens of prompt and answer together; None where the server does not say."""
    root: str | None
    """Folder or hub id that vLLM loaded it from."""
    parent: str | None
    """Name of the model that a LoRA adapter changes."""


def read_models(
    client: Client, *, timeout: float | None = None, retries: int | None = None
) -> list[ServedModel]:
    """Return the models that a server has; raises `AdapterError` where it has no such list."""
    answer = client.get("/models", timeout=timeout, retries=retries)
    entries = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(entries, list):
        raise AdapterError(
            f"The server at {client.address.url(client.address.base + '/models')} answered without a list of models.",
            hint="The address of an OpenAI-compatible server mostly ends in /v1.",
        )
    return [
        _model(entry) for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)
    ]


def choose_model(models: list[ServedModel], wanted: str | None, url: str) -> ServedModel:
    """Return the model of that name, or the only one; raises `UsageError` with the names otherwise."""
    by_name = {model.name: model for model in models}
    if wanted is not None:
        if wanted not in by_name:
            raise UnknownNameError(f"model at the server {url}", wanted, by_name)
        return by_name[wanted]
    if len(by_name) != 1:
        names = ", ".join(sorted(by_name)[:12]) or "none"
        raise UsageError(
            f"The server at {url} has {len(by_name)} models: {names}.", hint="Name one with -o model=NAME."
        )
    return models[0]


def server_version(client: Client) -> str:
    """Return what a vLLM server says at ``/version``, ``unknown`` for a server of another kind."""
    try:
        answer = client.get_root("/version")
    except AdapterError:
        return "unknown"
    version = answer.get("version") if isinstance(answer, dict) else None
    return version if isinstance(version, str) else "unknown"


def _model(entry: Mapping[str, Any]) -> ServedModel:
    length, root, parent = (entry.get(name) for name in ("max_model_len", "root", "parent"))
    return ServedModel(
        name=entry["id"],
        context_length=length if type(length) is int else None,
        root=root if isinstance(root, str) else None,
        parent=parent if isinstance(parent, str) else None,
    )
