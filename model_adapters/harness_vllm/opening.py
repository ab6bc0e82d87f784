"""Open a model behind a server: start the server if needed, read its models, and connect."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from harness import Adapter, AdapterOptions, ModelDescription, UsageError
from harness_vllm.answers import ServedModel
from harness_vllm.client import Address, Client, is_url, read_key
from harness_vllm.description import read_served
from harness_vllm.embedder import EmbeddingModel
from harness_vllm.generator import ChatModel, GeneratingModel
from harness_vllm.options import ChatOptions, ClientOptions, VllmOptions
from harness_vllm.served import (
    choose_model,
    folder_fingerprint,
    read_models,
    served_fingerprint,
    server_version,
)
from harness_vllm.server import OwnServer
from harness_vllm.session import ServerSession
from harness_vllm.tokenizing import Tokenizer, open_tokenizer

__all__ = ["open_chat", "open_vllm"]

ANSWER_OPTIONS = (
    "runner",
    "dtype",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "revision",
    "trust_remote_code",
    "pooling",
    "query_prefix",
    "passage_prefix",
    "server_args",
)
"""Options that change answers, and so belong to the identity."""


def open_vllm(description: ModelDescription, options: AdapterOptions) -> Adapter:
    """Return the model, with a server of its own unless the description names a running one.

    Raises `AdapterError`, and `UsageError` for a server of its own in a run of several processes.
    """
    assert isinstance(options, VllmOptions)
    ref = description.ref
    with ExitStack() as undo:
        server: OwnServer | None = None
        if is_url(ref):
            served = read_served(ref, options, options.key_env)
            client = _client(Address.parse(ref), options, read_key(options.key_env))
            undo.callback(client.close)
        else:
            _require_one_process(ref)
            folder = Path(ref).expanduser()
            local = folder.is_dir()
            server = OwnServer(
                str(folder) if local else ref, folder.resolve().name if local else ref, options
            )
            server.start()
            undo.callback(server.stop)
            client = _client(server.address, options, server.key, server)
            undo.callback(client.close)
            served = choose_model(read_models(client), None, client.address.url("/v1"))
        model = _connect(ref, client, served, options, server)
        undo.pop_all()
    return model


def open_chat(description: ModelDescription, options: AdapterOptions) -> Adapter:
    """Return the model behind a chat endpoint; raises `AdapterError`."""
    assert isinstance(options, ChatOptions)
    served = read_served(description.ref, options, options.key_env)
    address = Address.parse(description.ref)
    client = _client(address, options, read_key(options.key_env))
    session = ServerSession(
        client,
        model=served.name,
        context_length=served.context_length,
        concurrency=options.concurrency,
        version="unknown",
        identity={
            "adapter": "openai",
            "model": served.name,
            "host": address.host,
            **served_fingerprint(served, local=address.is_local),
        },
    )
    return ChatModel(session, token_limit_field=options.token_limit_field)


def _require_one_process(ref: str) -> None:
    """Raise `UsageError` in a run of several processes; launchers put their number into WORLD_SIZE."""
    processes = os.environ.get("WORLD_SIZE", "1")
    if processes.isdecimal() and int(processes) > 1:
        raise UsageError(
            f"The model 'vllm:{ref}' would start a server in each of {processes} processes.",
            hint="Run one process with -o tensor_parallel_size=N, or start one server and give vllm:http://HOST:PORT/v1.",
        )


def _client(
    address: Address, options: ClientOptions, key: str | None, server: OwnServer | None = None
) -> Client:
    return Client(
        address,
        timeout=options.timeout,
        retries=options.retries,
        key=key,
        max_answer_mib=options.max_answer_mib,
        revive=None if server is None else server.revive,
    )


def _connect(
    ref: str, client: Client, served: ServedModel, options: VllmOptions, server: OwnServer | None = None
) -> Adapter:
    version = server_version(client)
    context = options.max_model_len or served.context_length
    if served.context_length is not None and context is not None:
        context = min(context, served.context_length)
    session = ServerSession(
        client,
        model=served.name,
        context_length=context,
        concurrency=options.concurrency,
        version=version,
        identity=_identity(ref, client, served, options, version, context),
        server=server,
    )
    if options.runner == "pooling":
        prefixes: Mapping[str, str] = {"query": options.query_prefix, "passage": options.passage_prefix}
        pooling = options.pooling if server is not None else None
        return EmbeddingModel(session, prefixes=prefixes, pooling=pooling)  # type: ignore[arg-type]
    form = options.scoring if options.scoring != "auto" else None
    return GeneratingModel(
        session,
        _tokenizer(ref, client, served, options),
        form="prompt_logprobs" if form is None and server is not None else form,
        prompts_per_request=options.prompts_per_request,
    )


def _tokenizer(ref: str, client: Client, served: ServedModel, options: VllmOptions) -> Tokenizer:
    """Return the tokenizer of the option, of the model folder where it is here, or of the server."""
    source = options.tokenizer
    if source is None:
        # A folder of that name on another machine may hold another model.
        known = served.root if is_url(ref) and client.address.is_local else ref
        folder = Path(known).expanduser() if known is not None else None
        if folder is not None and not is_url(str(known)) and (folder / "tokenizer.json").is_file():
            source = str(folder)
    return open_tokenizer(
        source,
        client,
        served.name,
        trust_remote_code=options.trust_remote_code,
        revision=None if source is None or Path(source).expanduser().is_dir() else options.revision,
    )


def _identity(
    ref: str,
    client: Client,
    served: ServedModel,
    options: VllmOptions,
    version: str,
    context: int | None,
) -> dict[str, str]:
    folder = Path(ref).expanduser()
    if is_url(ref):
        digest = served_fingerprint(served, local=client.address.is_local)
    else:
        digest = folder_fingerprint(folder) if folder.is_dir() else {}
    chosen = {f"option.{name}": str(getattr(options, name)) for name in ANSWER_OPTIONS}
    return {
        "adapter": "vllm",
        "model": served.name,
        "vllm": version,
        "context_length": str(context or "unknown"),
        **digest,
        **chosen,
    }
