"""The state of a fitted baseline, in memory and on disk.

A folder holds ``weights.safetensors``, where there are weights, and ``harness_fit.json``, which is written last:
a folder without it is an unfinished fit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from harness import AdapterError
from harness.models import FloatArray, Head, HeadSpec
from harness.storage import write_atomically

ALGORITHM = "2"
"""Version of the features and of the training; a fit of another version is not read."""

_JSON = "harness_fit.json"
_WEIGHTS = "weights.safetensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """A linear model."""

    coefficients: FloatArray
    """Shape (columns, outputs); most rows are zero."""
    intercepts: FloatArray
    """Shape (outputs,)."""


class FitState(BaseModel):
    """A fitted head: names and numbers, no code; all but the weights is the content of ``harness_fit.json``."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    algorithm: str = ALGORITHM
    ref: str
    head: Head
    labels: tuple[str, ...] = ()
    """Labels or tags in the order of the outputs."""
    seed: int
    shares: tuple[float, ...] = ()
    """Relative frequencies of the labels, or of the positions of right choices."""
    options: dict[str, int] = {}
    """Options of the adapter; only a saved state has them."""
    weights: str | None = None
    """SHA-256 of the file of weights."""
    kind: Literal["baseline"] = "baseline"
    linear: Weights | None = Field(default=None, exclude=True)

    @classmethod
    def of(cls, linear: Weights | None = None, **fields: Any) -> FitState:
        """Return a state with the digest of its weights."""
        digest = hashlib.sha256(_packed(linear)).hexdigest() if linear else None
        return cls(**fields, weights=digest, linear=linear)

    def digest(self) -> str:
        """Return the SHA-256 of everything that the answers depend on, next to the options."""
        content = self.model_copy(update={"options": {}})
        return hashlib.sha256(content.model_dump_json().encode()).hexdigest()


def save_state(state: FitState, directory: Path, options: Mapping[str, int]) -> None:
    """Write the fit into `directory`, ``harness_fit.json`` last; raises `AdapterError`."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if state.linear:
            (directory / _WEIGHTS).write_bytes(_packed(state.linear))
        content = state.model_copy(update={"options": dict(options)})
        write_atomically(directory / _JSON, content.model_dump_json(indent=2).encode())
    except OSError as error:
        raise AdapterError(
            f"The fit of the baseline cannot be written to {str(directory)!r}: {error}."
        ) from error


def load_state(directory: Path, ref: str, spec: HeadSpec, options: Mapping[str, int]) -> FitState:
    """Return the fit that `save_state` wrote; raises `AdapterError` when it is damaged or belongs to another model."""
    try:
        content = FitState.model_validate_json((directory / _JSON).read_text(encoding="utf-8"))
        packed = (directory / _WEIGHTS).read_bytes() if content.weights else b""
    except (OSError, ValueError) as error:
        raise _fit_error(directory, f"cannot be read: {str(error).splitlines()[0]}") from error
    requirements: dict[str, Any] = {
        "algorithm": ALGORITHM,
        "ref": ref,
        "head": spec.head,
        "options": dict(options),
    }
    if spec.labels:
        requirements["labels"] = spec.labels
    for name, expected in requirements.items():
        stored = getattr(content, name)
        if name == "labels" and spec.head is Head.TAGGING:
            if not set(stored) <= set(expected):
                raise _fit_error(directory, f"has the tags {stored!r}, but the task has {expected!r}")
        elif stored != expected:
            raise _fit_error(directory, f"has {name} {stored!r}, expected {expected!r}")
    if content.weights and hashlib.sha256(packed).hexdigest() != content.weights:
        raise _fit_error(directory, f"is damaged: {_WEIGHTS} is not what {_JSON} was written for")
    return content.model_copy(update={"linear": _unpacked(packed)}) if content.weights else content


def _packed(weights: Weights) -> bytes:
    """Return the content of the file of weights: the rows that are not zero, and which these are."""
    from safetensors.numpy import save

    rows = np.flatnonzero(weights.coefficients.any(axis=1))
    return save(
        {
            "columns": np.array([len(weights.coefficients)]),
            "rows": rows,
            "values": np.ascontiguousarray(weights.coefficients[rows]),
            "intercepts": weights.intercepts,
        }
    )


def _unpacked(content: bytes) -> Weights:
    from safetensors.numpy import load

    arrays = load(content)
    coefficients = np.zeros((int(arrays["columns"][0]), len(arrays["intercepts"])), dtype=np.float32)
    coefficients[arrays["rows"]] = arrays["values"]
    return Weights(coefficients=coefficients, intercepts=arrays["intercepts"])


def _fit_error(directory: Path, reason: str) -> AdapterError:
    return AdapterError(
        f"The saved fit in {str(directory)!r} {reason}.", hint="Delete that folder to have it fitted again."
    )
