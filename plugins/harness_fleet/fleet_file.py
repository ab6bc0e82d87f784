"""The records of ``fleet.json``: models, jobs with their resources, and the backend."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]{0,99}$")]
"""A name that is a safe file name."""
LONGEST = 40
"""Characters of a model's name in the names of its jobs."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class FleetModel(_Part):
    """A model, and what its plan has."""

    name: Name
    model: str
    """As ``--model`` names it."""
    cells: int
    fits: int
    """Models to fine-tune."""
    skipped: int
    """Cells that were asked for and cannot be run."""
    shards: int
    """Jobs that its cells are divided into."""


class PlannedJob(_Part):
    """A job of a fleet; it comes after those that it needs."""

    name: Name
    model: Name
    """The ``name`` of its model."""
    cells: int
    """0 for a job that trains a model for others."""
    after: tuple[Name, ...] = ()
    """Jobs that must be done first."""

    @property
    def fits_only(self) -> bool:
        """Whether it trains a model for other jobs."""
        return not self.cells


class Resources(_Part):
    """Resources of every job of a fleet."""

    gpus: float = Field(default=0.0, ge=0)
    processes: int = 1
    memory_gib: float | None = None
    minutes: int | None = None


class FleetFile(_Part):
    """``fleet.json``; secrets are redacted in it."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    created: str
    harness: str | None
    """The version that planned it."""
    command: tuple[str, ...]
    backend: str
    backend_options: dict[str, str]
    resources: Resources
    models: tuple[FleetModel, ...]
    jobs: tuple[PlannedJob, ...]


def safe_name(number: int, text: str) -> str:
    """Return a name for a file from a number and a name from outside: ``003-e5-small``."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", text.rstrip("/").rsplit("/", 1)[-1]).strip("-").lower()
    return f"{number:03d}-{plain[:LONGEST].strip('-') or 'model'}"
