"""Capabilities of a model behind a server, read from its config.json or from what the server states; its files."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness import AdapterError, CapabilityError, HarnessError, UnknownNameError, UsageError, near_names
from harness.models import AdapterOptions, Capability, ModelDescription, hub_is_unreachable
from harness.storage import WEIGHT_SUFFIXES, configuration_files, file_digest
from harness_vllm.answers import Models, ServedModel, read_answer
from harness_vllm.client import Address, Client, StatusError, is_url, read_key
from harness_vllm.options import ChatOptions, ClientOptions, VllmOptions
from harness_vllm.session import check_same_model, parse_addresses


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


SMALL_FILES = ["*.json", "*.model", "*.txt", "*.jinja", "*.py", "*.tiktoken"]
IGNORED = ["original/*", "onnx/*", "openvino/*", "coreml/*"]


def fetch_folder(description: ModelDescription, options: AdapterOptions) -> Path | None:
    """Return the folder of a model, downloaded where it is a hub id; None for a server that runs already.

    Other types of weights than safetensors are downloaded only where the repository has no others, as vLLM does.
    Raises `AdapterError`.
    """
    assert isinstance(options, VllmOptions)
    ref, path = description.ref, Path(description.ref).expanduser()
    if is_url(ref) or path.is_dir():
        return None if is_url(ref) else path
    from huggingface_hub import snapshot_download

    for weights in ("*.safetensors", "*.bin", "*.pt"):
        patterns = [*SMALL_FILES, weights]
        try:
            folder = Path(
                snapshot_download(
                    ref,
                    revision=options.revision,
                    allow_patterns=patterns,
                    ignore_patterns=IGNORED,
                    local_files_only=hub_is_unreachable(),
                )
            )
        except Exception as error:
            reason = str(error).strip().split("\n", maxsplit=1)[0]
            raise AdapterError(
                f"The hub model {ref!r} cannot be downloaded: {type(error).__name__}: {reason.rstrip('.')}.",
                hint="Check its name, the network (HF_HUB_OFFLINE), and for a private or gated one run: hf auth login",
            ) from error
        if any(folder.glob(weights)):
            return folder
    raise AdapterError(f"The hub model {ref!r} has no weights that vLLM opens, or the hub did not list them.")


DESCRIBE_TIMEOUT = 5.0
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
RUNNER_OFFERS = {
    "generate": frozenset({Capability.SCORES_CONTINUATIONS, Capability.GENERATES, Capability.COUNTS_TOKENS}),
    "pooling": frozenset({Capability.EMBEDS}),
}
TOKENIZER_FILES = ("tokenizer.", "vocab", "tekken", "spiece", "sentencepiece")
"""First parts of the names of files with the vocabulary of a decoder."""
WRITES = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
"""Ends of the names of architectures that write; vLLM itself rejects sequence-to-sequence ones."""


def describe_vllm(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return the capabilities of a model through vLLM, without starting a server.

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
            fault=_tokenizer_fault(ref, served, options),
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
        fault=_tokenizer_fault(ref, None, options),
        metadata={"architecture": architecture or "unknown"},
    )


def describe_chat(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return the capabilities of a chat endpoint: `Generates`; raises `UsageError` or `AdapterError`."""
    assert isinstance(options, ChatOptions)
    if not is_url(ref):
        raise UsageError(
            f"The model {ref!r} is no address of a chat endpoint.",
            hint="Give one, and the name of its model as an option: "
            f"--model openai:https://HOST/v1 -o model={shlex.quote(ref)}",
        )
    served = read_served(ref, options, options.key_env)[0]
    return ModelDescription(
        adapter="openai",
        ref=ref,
        offers=frozenset({Capability.GENERATES}),
        constraints=frozenset({"json_schema"}),
        metadata={"model": served.name},
    )


def tokenizer_source(ref: str, served: ServedModel, options: VllmOptions, *, local: bool) -> str | None:
    """Return the folder or hub id of the tokenizer that is read on this machine; None where the server tokenises."""
    if options.tokenizer is not None:
        return options.tokenizer
    # A folder of that name on another machine may hold another model.
    source = served.root if is_url(ref) and local else ref
    if source is None or is_url(source) or not (Path(source).expanduser() / "tokenizer.json").is_file():
        return None
    return str(Path(source).expanduser())


def _tokenizer_fault(ref: str, served: ServedModel | None, options: VllmOptions) -> str:
    """Return why there will be no tokenizer, known before a server is started; empty where there may be one.

    `served` is the model of a running server, which is asked to tokenise where nothing on this machine can.
    """
    if options.runner != "generate":
        return ""
    advice = "Name the folder of the model's tokenizer: -o tokenizer=FOLDER"
    if options.tokenizer is not None:
        folder = Path(options.tokenizer).expanduser()
        is_path = folder.is_absolute() or (folder.parent.is_dir() and folder.parent != Path())
        missing = (is_path or folder.is_dir()) and not _has_tokenizer(folder)
        return f"There is no tokenizer in {options.tokenizer!r}. {advice}" if missing else ""
    if served is None:
        missing = not _has_tokenizer(Path(ref).expanduser())
        return (
            f"The folder {ref!r} has no tokenizer files, such as 'tokenizer.json'. {advice}"
            if missing
            else ""
        )
    address = parse_addresses(ref)[0]
    if tokenizer_source(ref, served, options, local=address.is_local) is None and not _tokenises(
        address, served, options
    ):
        return f"The server at {address} does not tokenise text. {advice}"
    return ""


def _tokenises(address: Address, served: ServedModel, options: VllmOptions) -> bool:
    """Return whether a server has vLLM's ``/tokenize``, or does not answer now: opening the model reports that."""
    client = Client(address, timeout=DESCRIBE_TIMEOUT, retries=0, key=read_key(options.key_env))
    try:
        client.post_root("/tokenize", {"model": served.name, "prompt": "a"})
    except AdapterError as error:
        return not isinstance(error, StatusError) or error.status not in (404, 405)
    finally:
        client.close()
    return True


def token_counter(
    description: ModelDescription, options: AdapterOptions
) -> Callable[[Sequence[str]], list[int]] | None:
    """Return the token counter of a tokenizer.json on this machine; None where it is not here."""
    assert isinstance(options, VllmOptions)
    file = Path(options.tokenizer or description.ref).expanduser() / "tokenizer.json"
    if is_url(str(options.tokenizer or description.ref)) or not file.is_file():
        return None
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    return lambda texts: [len(encoded.ids) for encoded in tokenizer.encode_batch(list(texts))]


def _has_tokenizer(folder: Path) -> bool:
    return folder.is_dir() and any(file.name.startswith(TOKENIZER_FILES) for file in folder.iterdir())


def read_served(ref: str, options: ClientOptions, key_env: str) -> list[ServedModel]:
    """Return the model that each of the running servers has; raises within seconds where one cannot be asked.

    Raises `UsageError` where their models have different names or context lengths.
    """
    addresses = parse_addresses(ref)
    models = [_read_one(address, options, key_env) for address in addresses]
    identities = [
        {"model": model.name, "context_length": str(model.context_length or "unknown")} for model in models
    ]
    check_same_model(addresses, identities)
    return models


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
    if not file.is_file():
        raise UsageError(
            f"The folder {ref!r} has no config.json, so it is not a model that vLLM can open.",
            hint="Give the folder that save_pretrained wrote.",
        )
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise AdapterError(f"The file {file}:{error.lineno} is not JSON: {error.msg}.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise AdapterError(f"The file {str(file)!r} cannot be read: {error}.") from error
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
