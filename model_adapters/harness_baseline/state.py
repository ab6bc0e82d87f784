"""The state of a fitted baseline, in memory and on disk.

A folder holds ``weights.npz`` (numpy arrays, never pickled objects) and ``harness_fit.json``, which is
written last: a folder without it is an unfinished fit.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from harness import AdapterError, Head, HeadSpec

__all__ = ["ALGORITHM", "FitState", "load_state", "save_state"]

ALGORITHM = "1"
"""Version of the features and of the training; a fit of another version is not read."""

_JSON = "harness_fit.json"
_ARRAYS = "weights.npz"


@dataclass(frozen=True, slots=True, kw_only=True)
class FitState:
    """A fitted head: names, numbers and arrays, no code."""

    ref: str
    head: Head
    labels: tuple[str, ...] = ()
    """Labels or tags in the order of the outputs."""
    seed: int
    numbers: Mapping[str, int] = field(default_factory=dict)
    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    """An array named ``weights`` has shape (buckets, outputs); most of its rows are zero."""

    def digest(self) -> str:
        """Return the SHA-256 of everything that the answers depend on."""
        digest = hashlib.sha256(
            json.dumps([self.ref, self.head, self.labels, self.seed, sorted(self.numbers.items())]).encode()
        )
        for name, array in sorted(_packed(self.arrays).items()):
            digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


class _FitFile(BaseModel):
    """The content of ``harness_fit.json``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    algorithm: str
    ref: str
    head: Head
    labels: tuple[str, ...]
    seed: int
    numbers: dict[str, int]
    options: dict[str, int]
    digest: str
    kind: Literal["baseline"] = "baseline"


def save_state(state: FitState, directory: Path, options: Mapping[str, int]) -> None:
    """Write the fit into `directory`, ``harness_fit.json`` last; raises `AdapterError`."""
    content = _FitFile(
        algorithm=ALGORITHM,
        ref=state.ref,
        head=state.head,
        labels=state.labels,
        seed=state.seed,
        numbers=dict(state.numbers),
        options=dict(options),
        digest=state.digest(),
    )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with (directory / _ARRAYS).open("wb") as file:
            np.savez(file, **cast("dict[str, Any]", _packed(state.arrays)))
        unfinished = directory / f"{_JSON}.tmp"
        unfinished.write_text(content.model_dump_json(indent=2), encoding="utf-8")
        os.replace(unfinished, directory / _JSON)  # noqa: PTH105  (atomic on every system)
    except OSError as error:
        raise AdapterError(
            f"The fit of the baseline cannot be written to {str(directory)!r}: {error}."
        ) from error


def load_state(directory: Path, ref: str, spec: HeadSpec, options: Mapping[str, int]) -> FitState:
    """Return the fit that `save_state` wrote; raises `AdapterError` when it is damaged or belongs to another model."""
    content, arrays = _read(directory)
    state = FitState(
        ref=content.ref,
        head=content.head,
        labels=content.labels,
        seed=content.seed,
        numbers=content.numbers,
        arrays=arrays,
    )
    wanted: dict[str, Any] = {"algorithm": ALGORITHM, "ref": ref, "head": spec.head, "options": dict(options)}
    if spec.labels:
        wanted["labels"] = spec.labels
    for name, expected in wanted.items():
        found = getattr(content, name)
        if name == "labels" and spec.head is Head.TAGGING:
            if not set(found) <= set(expected):
                raise _fit_error(directory, f"has the tags {found!r}, but the task has {expected!r}")
        elif found != expected:
            raise _fit_error(directory, f"has {name} {found!r}, expected {expected!r}")
    if state.digest() != content.digest:
        raise _fit_error(directory, f"is damaged: {_ARRAYS} is not what {_JSON} was written for")
    return state


def _packed(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays with ``weights`` reduced to its rows that are not zero."""
    packed = {name: array for name, array in arrays.items() if name != "weights"}
    if "weights" in arrays:
        weights = arrays["weights"]
        rows = np.flatnonzero(weights.any(axis=1))
        packed |= {"shape": np.array(weights.shape), "rows": rows, "values": weights[rows]}
    return packed


def _unpacked(packed: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    arrays = {name: array for name, array in packed.items() if name not in {"shape", "rows", "values"}}
    if "shape" in packed:
        height, width = (int(size) for size in packed["shape"])
        arrays["weights"] = np.zeros((height, width), dtype=np.float32)
        arrays["weights"][packed["rows"]] = packed["values"]
    return arrays


def _read(directory: Path) -> tuple[_FitFile, dict[str, npt.NDArray[Any]]]:
    try:
        content = _FitFile.model_validate_json((directory / _JSON).read_text(encoding="utf-8"))
        # Opened here: np.load leaves the file open when it is no zip file.
        with (directory / _ARRAYS).open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            return content, _unpacked({name: file[name] for name in file.files})
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        detail = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise _fit_error(directory, f"cannot be read: {detail}") from error


def _fit_error(directory: Path, reason: str) -> AdapterError:
    return AdapterError(
        f"The saved fit in {str(directory)!r} {reason}.", hint="Delete that folder to have it fitted again."
    )
