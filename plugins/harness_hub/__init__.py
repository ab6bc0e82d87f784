"""Data from the Hugging Face Hub, at one commit, without running code of the dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness import DataRef, ResolvedData


@hookimpl
def harness_resolve_data(ref: DataRef, cache: Path) -> ResolvedData | None:
    """Return the split as a Parquet file in the cache, downloaded if it is not there yet."""
    from importlib.util import find_spec

    from harness import MissingExtraError

    if ref.hub is None:
        return None
    missing = [name for name in ("datasets", "huggingface_hub") if find_spec(name) is None]
    if missing:
        raise MissingExtraError("Data from the Hugging Face Hub", "hf", missing[0])
    from harness_hub.snapshot import fetch

    return fetch(ref, cache)
