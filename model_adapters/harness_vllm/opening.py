"""Open a model behind a server: start the server if needed, read its models, and connect."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from harness import UsageError
from harness.models import Adapter, AdapterOptions, ModelDescription
from harness_vllm.answers import ServedModel
from harness_vllm.client import Address, Client, is_url, read_key
from harness_vllm.description import (
    choose_model,
    folder_fingerprint,
    read_models,
    read_served,
    served_fingerprint,
    server_version,
    tokenizer_source,
)
from harness_vllm.model import ChatModel, EmbeddingModel, GeneratingModel
from harness_vllm.options import ChatOptions, ClientOptions, VllmOptions
from harness_vllm.ranking import Ranker
from harness_vllm.server import CACHES_PREFIXES, OwnServer, own_server
from harness_vllm.session import Endpoints, ServerSession, check_same_model, parse_addresses
from harness_vllm.tokenizing import Tokenizer, open_tokenizer

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
    """Return the model, with a server of its own unless the description names running ones.

    Raises `AdapterError`, and `UsageError` for a server of its own in a run of several processes and for running
    servers of different models.
    """
    assert isinstance(options, VllmOptions)
    ref = description.ref
    with ExitStack() as undo:
        server: OwnServer | None = None
        if is_url(ref):
            served = read_served(ref, options, options.key_env)
            endpoints = _endpoints(parse_addresses(ref), options, read_key(options.key_env))
            undo.callback(endpoints.close)
        else:
            _require_one_process(ref)
            server = own_server(ref, options)
            server.start()
            undo.callback(server.stop)
            endpoints = _endpoints([server.address], options, server.key, server)
            undo.callback(endpoints.close)
            served = [choose_model(read_models(endpoints.clients[0]), None, server.address.url("/v1"))]
        model = _connect(ref, endpoints, served, options, server)
        undo.pop_all()
    return model


def open_chat(description: ModelDescription, options: AdapterOptions) -> Adapter:
    """Return the model behind chat endpoints; raises `AdapterError`, and `UsageError` where theirs differ."""
    assert isinstance(options, ChatOptions)
    served = read_served(description.ref, options, options.key_env)
    addresses = parse_addresses(description.ref)
    local = all(address.is_local for address in addresses)
    identities = [
        {
            "adapter": "openai",
            "model": model.name,
            "host": address.host,
            **served_fingerprint(model, local=local),
            **({} if options.api == "chat" else {"option.api": options.api}),
            **options.reasoning_identity(),
        }
        for address, model in zip(addresses, served, strict=True)
    ]
    check_same_model(addresses, identities)
    session = ServerSession(
        _endpoints(addresses, options, read_key(options.key_env)),
        model=served[0].name,
        context_length=served[0].context_length,
        version="unknown",
        identity=identities[0],
    )
    return ChatModel(session, options)


def _require_one_process(ref: str) -> None:
    """Raise `UsageError` in a run of several processes; launchers put their number into WORLD_SIZE."""
    processes = os.environ.get("WORLD_SIZE", "1")
    if processes.isdecimal() and int(processes) > 1:
        raise UsageError(
            f"The model 'vllm:{ref}' would start a server in each of {processes} processes.",
            hint="Run one process with -o tensor_parallel_size=N, or start one server and give vllm:http://HOST:PORT/v1.",
        )


def _endpoints(
    addresses: Sequence[Address], options: ClientOptions, key: str | None, server: OwnServer | None = None
) -> Endpoints:
    clients = [
        Client(
            address,
            timeout=options.timeout,
            retries=options.retries,
            key=key,
            max_answer_mib=options.max_answer_mib,
            revive=None if server is None else server.revive,
        )
        for address in addresses
    ]
    return Endpoints(clients, concurrency=options.concurrency)


def _connect(
    ref: str,
    endpoints: Endpoints,
    served: Sequence[ServedModel],
    options: VllmOptions,
    server: OwnServer | None = None,
) -> Adapter:
    addresses = [client.address for client in endpoints.clients]
    versions = [server_version(client) for client in endpoints.clients]
    local = all(address.is_local for address in addresses)
    identities = [
        _identity(ref, model, options, version, local=local)
        for model, version in zip(served, versions, strict=True)
    ]
    check_same_model(addresses, identities)
    session = ServerSession(
        endpoints,
        model=served[0].name,
        context_length=_context_length(served[0], options),
        version=versions[0],
        identity=identities[0],
        server=server,
    )
    if options.runner == "pooling":
        prefixes: Mapping[str, str] = {"query": options.query_prefix, "passage": options.passage_prefix}
        pooling = options.pooling if server is not None else None
        return EmbeddingModel(session, prefixes=prefixes, pooling=pooling)  # type: ignore[arg-type]
    tokenizer = _tokenizer(ref, endpoints, served[0], options, local=local)
    ranker = Ranker(
        session,
        tokenizer,
        scoring=options.scoring,
        prompts_per_request=options.prompts_per_request,
        orderly=server is not None and CACHES_PREFIXES not in options.server_args,
    )
    return GeneratingModel(session, tokenizer, ranker=ranker, reasoning=options)


def _context_length(served: ServedModel, options: VllmOptions) -> int | None:
    lengths = [length for length in (options.max_model_len, served.context_length) if length is not None]
    return min(lengths, default=None)


def _tokenizer(
    ref: str, endpoints: Endpoints, served: ServedModel, options: VllmOptions, *, local: bool
) -> Tokenizer:
    """Return the tokenizer of the option, of the model folder where it is here, or of the server."""
    source = tokenizer_source(ref, served, options, local=local)
    return open_tokenizer(
        source,
        endpoints,
        served.name,
        trust_remote_code=options.trust_remote_code,
        revision=None if source is None or Path(source).expanduser().is_dir() else options.revision,
    )


def _identity(
    ref: str, served: ServedModel, options: VllmOptions, version: str, *, local: bool
) -> dict[str, str]:
    folder = Path(ref).expanduser()
    if is_url(ref):
        digest = served_fingerprint(served, local=local)
    else:
        digest = folder_fingerprint(folder) if folder.is_dir() else {}
    chosen = {f"option.{name}": str(getattr(options, name)) for name in ANSWER_OPTIONS}
    if options.scoring == "next_token":  # the other ways give the same numbers
        chosen["option.scoring"] = options.scoring
    return {
        "adapter": "vllm",
        "model": served.name,
        "vllm": version,
        "context_length": str(_context_length(served, options) or "unknown"),
        **digest,
        **chosen,
        **options.reasoning_identity(),
    }
