"""The options of the baselines, and what each of them offers; reads nothing and imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from types import MappingProxyType

from pydantic import Field

from harness import MissingExtraError, UnknownNameError, UsageError
from harness.models import HEAD_CAPABILITY, AdapterOptions, Capability, Head, ModelDescription

REFS: Mapping[str, str] = MappingProxyType(
    {
        "majority": "the most frequent training label; one constant vector",
        "random": "a uniform guess from a hash of the item; a random vector from a hash of the text",
        "char-ngram": "linear models over hashed character n-grams and overlaps; n-gram vectors",
    }
)
"""The models that the adapter opens, and what each of them answers."""

HEADS = (
    Head.CLASSIFICATION,
    Head.MULTIPLE_CHOICE,
    Head.TAGGING,
    Head.SPAN_EXTRACTION,
    Head.DUAL_ENCODER,
)
"""The heads that every baseline can be fitted with; fitting the dual encoder changes no vector."""


class BaselineOptions(AdapterOptions):
    """Options of ``baseline:*``."""

    dimension: int = Field(default=4096, ge=8, le=65536)
    """Length of the vectors that `embed` returns."""
    ngrams: int = Field(default=4, ge=1, le=8)
    """Longest character n-gram of ``char-ngram``."""
    seed: int = Field(default=0, ge=0)
    """Seed of the guesses of ``random``, next to the seed of the fit; the other baselines ignore it."""


def describe(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return the capabilities of the baseline `ref` before and after fitting.

    Raises `UnknownNameError`, and `MissingExtraError` for char-ngram without scikit-learn; imports nothing.
    """
    if not isinstance(options, BaselineOptions):
        raise UsageError(f"The adapter 'baseline' takes BaselineOptions, not {type(options).__name__!r}.")
    if ref not in REFS:
        raise UnknownNameError("baseline", ref, REFS, hint="Run 'harness models baseline' to see them.")
    if ref == "char-ngram":
        for package in ("sklearn", "safetensors"):
            if find_spec(package) is None:
                raise MissingExtraError("The baseline 'char-ngram'", "baselines", package)
    bare = frozenset({Capability.FITS, Capability.EMBEDS})
    return ModelDescription(
        adapter="baseline",
        ref=ref,
        offers=bare,
        after_fit=MappingProxyType({head: bare | {HEAD_CAPABILITY[head]} for head in HEADS}),
        parameters=0,
        note="A baseline classifies, chooses, tags and extracts spans only after it has been fitted.",
        metadata=MappingProxyType({"summary": REFS[ref]}),
    )
