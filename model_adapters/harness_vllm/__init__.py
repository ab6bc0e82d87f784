"""Adapters for models behind an HTTP server: vLLM's, and any chat endpoint like OpenAI's; this module declares them."""

from __future__ import annotations

from harness import hookimpl
from harness.models import AdapterEntry

__all__ = ["harness_register_adapters"]


@hookimpl
def harness_register_adapters() -> list[AdapterEntry]:
    """Return the adapters of this package; the package vllm itself is never imported."""
    return [
        AdapterEntry(
            name="vllm",
            target="harness_vllm.opening:open_vllm",
            describe="harness_vllm.description:describe_vllm",
            options="harness_vllm.options:VllmOptions",
            fetch="harness_vllm.description:fetch_folder",
            tokenizer="harness_vllm.description:token_counter",
            summary="A vLLM server, started for a model folder or hub id, or running ones.",
            examples=(
                "vllm:models/smollm2",
                "vllm:http://127.0.0.1:8000/v1",
                "vllm:http://a:8000/v1,http://b:8000/v1",
            ),
            extra="vllm",
            serve="harness_vllm.server:serve",
        ),
        AdapterEntry(
            name="openai",
            target="harness_vllm.opening:open_chat",
            describe="harness_vllm.description:describe_chat",
            options="harness_vllm.options:ChatOptions",
            summary="A chat endpoint like OpenAI's: generates only; the key comes from the environment.",
            examples=("openai:https://api.openai.com/v1", "openai:http://127.0.0.1:8080/v1"),
            extra="endpoints",
        ),
    ]
