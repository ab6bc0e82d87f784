"""Data from the Hugging Face Hub, at one commit, without running code of the dataset; and from the web, checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.data import DataRef, ResolvedData, SourceState


@hookimpl
def harness_resolve_data(ref: DataRef, cache: Path) -> ResolvedData | None:
    """Return the split in files of the cache, downloaded if they are not there yet; None for another plugin's."""
    if ref.web is not None:
        from harness_hub.web import fetch_from_web

        return fetch_from_web(ref, cache)
    if ref.hub is None or ":" in ref.hub.path:
        return None
    _require_packages()
    from harness_hub.dataset import fetch

    return fetch(ref, cache)


@hookimpl
def harness_inspect_data(refs: Sequence[DataRef], cache: Path, footers: bool) -> Sequence[SourceState]:
    """Return the states of splits on the Hub, asked without their data."""
    _require_packages()
    from harness_hub.inspection import inspect

    return inspect(refs, cache, footers=footers)


def _require_packages() -> None:
    from importlib.util import find_spec

    from harness import MissingExtraError

    missing = [name for name in ("datasets", "huggingface_hub") if find_spec(name) is None]
    if missing:
        raise MissingExtraError("Data from the Hugging Face Hub", "hf", missing[0])
