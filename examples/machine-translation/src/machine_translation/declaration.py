"""What the baseline can do; it is not opened."""

from __future__ import annotations

from harness import UnknownNameError
from harness.models import AdapterOptions, Capability, ModelDescription


def describe(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return that it writes text; raises `UnknownNameError` for anything but ``prompt``."""
    if ref != "prompt":
        raise UnknownNameError("model of the adapter 'copy'", ref, ["prompt"])
    return ModelDescription(adapter="copy", ref=ref, offers=frozenset({Capability.GENERATES}), parameters=0)
