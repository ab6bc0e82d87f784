"""The options of the adapters, as ``-o key=value`` gives them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from harness.models import ReasoningOptions


class ClientOptions(ReasoningOptions):
    """How requests are sent to a server, and how its model reasons."""

    model: str | None = None
    """Name of the model at the server; needed where it serves several."""
    concurrency: int = Field(default=16, ge=1, le=1024)
    """Requests under way at the same time, per server."""
    timeout: float = Field(default=300.0, gt=0)
    """Seconds that one request may take, up to the last byte of its answer."""
    max_answer_mib: int = Field(default=64, ge=1, le=4096)
    """Mebibytes that the answer to one request may have."""
    retries: int = Field(default=5, ge=0, le=20)
    """How often a request is repeated after 429, 5xx, a timeout or a closed connection."""


class VllmOptions(ClientOptions):
    """Options of ``vllm``; those of the server's command are for servers that the adapter starts."""

    runner: Literal["generate", "pooling"] = "generate"
    """What the server does: generate ranks and writes, pooling embeds."""
    key_env: str = "VLLM_API_KEY"
    """Environment variable with the key of a running server."""
    tokenizer: str | None = None
    """Folder of the model's tokenizer; by default the model folder where it is on this machine, else the server
    tokenises.
    """
    scoring: Literal["auto", "prompt_logprobs", "echo", "next_token"] = "auto"
    """How log-probabilities are requested: vLLM's prompt_logprobs, the older echo with logprobs, or choices of one
    token from the next token of their context; auto does so where a check gives the same.
    """
    prompts_per_request: int = Field(default=4, ge=1, le=256)
    """Prompts that are ranked in one request, at most."""
    query_prefix: str = ""
    """Text put before queries that are embedded."""
    passage_prefix: str = ""
    """Text put before passages that are embedded."""
    pooling: Literal["mean", "cls", "last"] | None = None
    """Pooling of a started pooling server; by default as the model folder says."""
    python: str | None = None
    """Python interpreter that has vllm; by default the one that runs the harness."""
    start_timeout: float = Field(default=1800.0, gt=0)
    """Seconds that a started server may take to load."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Precision; auto is the checkpoint's own."""
    max_model_len: int | None = Field(default=None, ge=2)
    """Tokens of prompt and answer together; by default what the server says."""
    tensor_parallel_size: int | None = Field(default=None, ge=1)
    """GPUs that share each layer."""
    pipeline_parallel_size: int | None = Field(default=None, ge=1)
    """Groups of layers on GPUs."""
    data_parallel_size: int | None = Field(default=None, ge=1)
    """Copies of the model, each on GPUs of its own."""
    gpu_memory_utilization: float | None = Field(default=None, gt=0, le=1)
    """Share of a GPU's memory that the server takes."""
    max_num_seqs: int | None = Field(default=None, ge=1)
    """Sequences that the server runs at once."""
    enforce_eager: bool = False
    """Whether compilation is skipped: starts sooner, runs a little slower."""
    revision: str | None = None
    """Branch, tag or commit of a hub model."""
    trust_remote_code: bool = False
    """Whether Python code that the model repository ships may run."""
    server_args: str = ""
    """Further arguments of the server's command, quoted as in a shell."""


class ChatOptions(ClientOptions):
    """Options of ``openai``."""

    key_env: str = "OPENAI_API_KEY"
    """Environment variable with the key."""
    token_limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"  # noqa: S105  # no secret
    """Name that the endpoint gives to the limit of written tokens."""
    api: Literal["chat", "responses"] = "chat"
    """Which of OpenAI's interfaces is used: Chat Completions or Responses."""
