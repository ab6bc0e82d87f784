"""Facts that a server states: its models, their context length, its version."""

from __future__ import annotations

import hashlib
from pathlib import Path

from harness import AdapterError, UnknownNameError, UsageError
from harness.storage import WEIGHT_SUFFIXES, configuration_files, file_digest
from harness_vllm.answers import Models, ServedModel, read_answer
from harness_vllm.client import Client


def read_models(
    client: Client, *, timeout: float | None = None, retries: int | None = None
) -> list[ServedModel]:
    """Return the models that a server has; raises `AdapterError` where it has no such list."""
    answer = client.get("/models", timeout=timeout, retries=retries)
    url = client.address.url(client.address.base + "/models")
    hint = "The address of an OpenAI-compatible server mostly ends in /v1."
    return read_answer(Models, answer, url, hint=hint).data


def choose_model(models: list[ServedModel], name: str | None, url: str) -> ServedModel:
    """Return the model of that name, or the only one; raises `UsageError` with the names otherwise."""
    by_name = {model.name: model for model in models}
    if name is not None:
        if name not in by_name:
            raise UnknownNameError(f"model at the server {url}", name, by_name)
        return by_name[name]
    if len(by_name) != 1:
        names = ", ".join(sorted(by_name)[:12]) or "none"
        raise UsageError(
            f"The server at {url} has {len(by_name)} models: {names}.", hint="Name one with -o model=NAME."
        )
    return models[0]


def server_version(client: Client) -> str:
    """Return the version of a vLLM server, ``unknown`` for a server of another kind."""
    try:
        answer = client.get_root("/version")
    except AdapterError:
        return "unknown"
    version = answer.get("version") if isinstance(answer, dict) else None
    return version if isinstance(version, str) else "unknown"


def folder_fingerprint(folder: Path) -> dict[str, str]:
    """Return the SHA-256 digest of the names and contents of a model's files; raises `OSError`."""
    weights = [file.name for file in folder.iterdir() if file.suffix.lower() in WEIGHT_SUFFIXES]
    names = sorted({*configuration_files(folder), *weights})
    if not names:
        raise FileNotFoundError(str(folder))
    digest = hashlib.sha256()
    for name in names:
        digest.update(f"{name}={file_digest(folder / name)}\n".encode())
    return {"files": digest.hexdigest()}


def served_fingerprint(served: ServedModel, *, local: bool) -> dict[str, str]:
    """Return the digest of the folder that a server on this machine names, else what the server reports.

    A path on another machine gives no digest, but it distinguishes two models of one name.
    """
    reported = {"server.parent": served.parent, "server.root": served.root}
    fingerprint = {name: value for name, value in reported.items() if value is not None}
    if not local or served.root is None:
        return fingerprint
    try:
        folder = Path(served.root).expanduser()
        files = folder_fingerprint(folder) if folder.is_dir() else {}
    except (OSError, RuntimeError):
        return fingerprint
    if files:
        del fingerprint["server.root"]
    return {**fingerprint, **files}
