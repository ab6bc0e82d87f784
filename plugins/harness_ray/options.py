"""The options of the backend, ``--backend-option key=value``."""

from __future__ import annotations

from pydantic import Field

from harness.models import AdapterOptions


class RayOptions(AdapterOptions):
    """Options of ``--backend ray``."""

    address: str | None = None
    """Of a running cluster, HOST:PORT; else RAY_ADDRESS, else the Ray that runs on this machine, else a new one."""
    cpus: int | None = Field(default=None, ge=1)
    """CPUs that a new Ray on this machine lends to jobs; default all."""
    retries: int = Field(default=3, ge=0)
    """How often a job is started again whose process, worker or node died."""
    replicas: int = Field(default=0, ge=0)
    """Servers for each model that can be served, such as vllm:PATH; they take what --gpus and --memory give."""
