"""How retrieval tasks say in which way texts become vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

import numpy as np

from harness.errors import ContractError
from harness.models.capabilities import EmbedOptions
from harness.models.requests import FloatArray
from harness.specs.schema import ProtocolName, SpecModel


class EmbeddingSpec(SpecModel):
    """How texts are embedded under one protocol; the adapter chooses the values of missing keys."""

    pooling: Literal["mean", "cls", "last", "pooler"] | None = None
    """How the states of a text become one vector."""
    layer: int | Literal["last", "xtreme_r"] | None = None
    """Whose states: a number, ``last``, or ``xtreme_r``, the layer of the published baselines."""
    max_length: int | None = None
    """Tokens that a text is cut at."""
    prefixes: bool = True
    """Whether texts get the prefixes that a model was trained with, such as ``query:``."""


def embed_options(embedding: Mapping[ProtocolName, EmbeddingSpec], protocol: str) -> EmbedOptions:
    """Return the options of a protocol; those of the adapter where the spec has none for it."""
    spec = embedding.get(cast("ProtocolName", protocol), EmbeddingSpec())
    return EmbedOptions(
        pooling=spec.pooling, layer=spec.layer, max_length=spec.max_length, prefixes=spec.prefixes
    )


def checked_vectors(vectors: FloatArray, count: int, side: str) -> FloatArray:
    """Return the vectors; raises `ContractError` where their number is wrong or one is not finite."""
    if len(vectors) != count or not np.isfinite(vectors).all():
        raise ContractError(
            f"embed() returned {len(vectors)} vectors for {count} {side} texts, or NaN in them."
        )
    return vectors
