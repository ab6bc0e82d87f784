"""The state of a fitted baseline, in memory and on disk.

A folder holds ``weights.safetensors``, where there are weights, and ``harness_fit.json``, which is written last:
a folder without it is an unfinished fit.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from harness import AdapterError
from harness.models import FloatArray, Head, HeadSpec

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


class _FitFile(BaseModel):
    """The content of ``harness_fit.json``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    algorithm: str = ALGORITHM
    ref: str
    head: Head
    labels: tuple[str, ...]
    seed: int
    shares: tuple[float, ...]
    options: dict[str, int]
    weights: str | None
    """SHA-256 of the file of weights."""
    kind: Literal["baseline"] = "baseline"


@dataclass(frozen=True, slots=True, kw_only=True)
class FitState:
    """A fitted head: names and numbers, no code."""

    ref: str
    head: Head
    labels: tuple[str, ...] = ()
    """Labels or tags in the order of the outputs."""
    seed: int
    shares: tuple[float, ...] = ()
    """Relative frequencies of the labels, or of the positions of right choices."""
    weights: Weights | None = None

    def file(self, options: Mapping[str, int]) -> _FitFile:
        """Return the content of ``harness_fit.json``."""
        digest = hashlib.sha256(_packed(self.weights)).hexdigest() if self.weights else None
        return _FitFile(
            ref=self.ref,
            head=self.head,
            labels=self.labels,
            seed=self.seed,
            shares=self.shares,
            options=dict(options),
            weights=digest,
        )

    def digest(self) -> str:
        """Return the SHA-256 of everything that the answers depend on, next to the options."""
        return hashlib.sha256(self.file({}).model_dump_json().encode()).hexdigest()


def save_state(state: FitState, directory: Path, options: Mapping[str, int]) -> None:
    """Write the fit into `directory`, ``harness_fit.json`` last; raises `AdapterError`."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if state.weights:
            (directory / _WEIGHTS).write_bytes(_packed(state.weights))
        unfinished = directory / f"{_JSON}.tmp"
        unfinished.write_text(state.file(options).model_dump_json(indent=2), encoding="utf-8")
        os.replace(unfinished, directory / _JSON)  # noqa: PTH105  (atomic on every system)
    except OSError as error:
        raise AdapterError(
            f"The fit of the baseline cannot be written to {str(directory)!r}: {error}."
        ) from error


def load_state(directory: Path, ref: str, spec: HeadSpec, options: Mapping[str, int]) -> FitState:
    """Return the fit that `save_state` wrote; raises `AdapterError` when it is damaged or belongs to another model."""
    try:
        content = _FitFile.model_validate_json((directory / _JSON).read_text(encoding="utf-8"))
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
    return FitState(
        ref=content.ref,
        head=content.head,
        labels=content.labels,
        seed=content.seed,
        shares=content.shares,
        weights=_unpacked(packed) if content.weights else None,
    )


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
