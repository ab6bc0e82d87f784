"""Bitext retrieval: for every sentence, find its translation among all sentences of the other side (Tatoeba).

The queries are the `query` sides in order, the candidates the `target` sides of the whole split; similarity is
the inner product of unit vectors (cosine), ties go to the candidate that stands first in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

import numpy as np
from pydantic import Field

from harness.capabilities import Capability, EmbedOptions, Embeds, FloatArray
from harness.data.records import BitextExample, Prediction, Row
from harness.errors import ContractError
from harness.kinds.kind import ReadContext, TaskKind, cluster_of, text_of
from harness.methods import FITTING_PROTOCOLS, Method, MethodContext
from harness.specs.schema import ProtocolName, SpecModel, TaskSpec

__all__ = ["KIND", "METHODS", "BitextRetrievalSpec", "EmbeddingSpec", "nearest"]

QUERY_BLOCK = 1024


class EmbeddingSpec(SpecModel):
    """How texts are embedded under one protocol; keys that are left out are the adapter's choice."""

    pooling: Literal["mean", "cls", "last", "pooler"] | None = None
    layer: int | Literal["last", "xtreme_r"] | None = None
    max_length: int | None = None
    prefixes: bool = True


class BitextRetrievalSpec(TaskSpec):
    """The spec of a bitext retrieval task."""

    kind: Literal["bitext_retrieval"]
    embedding: dict[ProtocolName, EmbeddingSpec] = Field(default_factory=dict)
    """By protocol."""


def _example(row: Row, number: int, context: ReadContext) -> BitextExample:
    return BitextExample(
        id=str(row.fields.get("id", number)),
        cluster=cluster_of(row, context),
        query=text_of(row, "query", context),
        target=text_of(row, "target", context),
    )


def _reference(example: BitextExample) -> str:
    return example.id


def nearest(queries: FloatArray, candidates: FloatArray) -> tuple[np.ndarray, np.ndarray]:
    """Return the row of the most similar candidate of every query, and its cosine; ties go to the lower row."""
    best = np.empty(len(queries), dtype=np.int64)
    similarity = np.empty(len(queries), dtype=np.float32)
    for start in range(0, len(queries), QUERY_BLOCK):
        block = queries[start : start + QUERY_BLOCK] @ candidates.T
        rows = block.argmax(axis=1)
        best[start : start + len(block)] = rows
        similarity[start : start + len(block)] = block[np.arange(len(block)), rows]
    return best, similarity


def _predict_by_embedding(
    adapter: Embeds, examples: Sequence[BitextExample], context: MethodContext
) -> list[Prediction]:
    assert isinstance(context.spec, BitextRetrievalSpec)
    given = context.spec.embedding.get(cast("ProtocolName", context.protocol), EmbeddingSpec())
    options = EmbedOptions(
        pooling=given.pooling, layer=given.layer, max_length=given.max_length, prefixes=given.prefixes
    )
    pool: Sequence[BitextExample] = context.pool or examples
    queries = adapter.embed([example.query for example in examples], side="query", options=options)
    candidates = adapter.embed([example.target for example in pool], side="query", options=options)
    for side, vectors, count in (("query", queries, len(examples)), ("target", candidates, len(pool))):
        if len(vectors) != count or not np.isfinite(vectors).all():
            raise ContractError(
                f"embed() returned {len(vectors)} vectors for {count} {side} texts, or NaN in them."
            )
    best, similarity = nearest(queries, candidates)
    return [
        Prediction(id=example.id, output={"candidate": pool[row].id, "similarity": round(float(cosine), 6)})
        for example, row, cosine in zip(examples, best.tolist(), similarity, strict=True)
    ]


METHODS = (
    Method(
        name="embed",
        kind="bitext_retrieval",
        requires=Capability.EMBEDS,
        protocols=FITTING_PROTOCOLS | {"frozen"},
        predict=_predict_by_embedding,
        needs_all=True,
    ),
)

KIND = TaskKind(
    name="bitext_retrieval",
    spec_model=BitextRetrievalSpec,
    head=None,
    methods=("embed",),
    example=_example,
    reference=_reference,
    summary="find the translation of every sentence",
)
