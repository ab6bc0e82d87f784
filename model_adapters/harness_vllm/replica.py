"""A vLLM server that several processes share: one of the replicas that a fleet starts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from harness import AdapterError
from harness.models import AdapterOptions
from harness_vllm.options import VllmOptions
from harness_vllm.server import OwnServer, own_server

SECONDS_BETWEEN_CHECKS = 2.0


@contextmanager
def serve(ref: str, options: AdapterOptions, host: str, key: str) -> Iterator[str]:
    """Start a server at an address of this machine, and yield its URL; it is started again once if it dies.

    Args:
        ref: A model folder or hub id.
        options: Those of the adapter.
        host: The address.
        key: What its clients must send.

    Raises:
        AdapterError: Where the server does not start.
        UsageError: For options that a server cannot have.
    """
    assert isinstance(options, VllmOptions)
    server = own_server(ref, options, host=host, key=key)
    server.start()
    ending = threading.Event()
    thread = threading.Thread(target=_revive, args=(server, ending), name="harness-revive", daemon=True)
    thread.start()
    try:
        yield server.address.url("/v1")
    finally:
        ending.set()
        server.stop()
        thread.join()


def _revive(server: OwnServer, ending: threading.Event) -> None:
    while not ending.wait(SECONDS_BETWEEN_CHECKS):
        try:
            server.revive()
        except AdapterError:
            return  # it died twice; its clients drop it
