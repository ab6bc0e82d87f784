"""Bitext retrieval: for every sentence, find its translation among all sentences of the other side (Tatoeba).

The queries are the `query` sides in order, the candidates the `target` sides of the whole split; similarity is
the inner product of unit vectors (cosine), ties go to the candidate that stands first in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field

from harness.data.records import BitextExample, Prediction, Row
from harness.kinds.embedding import EmbeddingSpec, checked_vectors, embed_options
from harness.kinds.kind import ReadContext, TaskKind, cluster_of, id_of, text_of
from harness.kinds.methods import FITTING_PROTOCOLS, Method, MethodContext
from harness.models.capabilities import Capability, Embeds
from harness.models.requests import FloatArray
from harness.specs.schema import ProtocolName, TaskSpec

QUERY_BLOCK = 1024


class BitextRetrievalSpec(TaskSpec):
    """The spec of a bitext retrieval task."""

    kind: Literal["bitext_retrieval"]
    embedding: dict[ProtocolName, EmbeddingSpec] = Field(default_factory=dict)
    """By protocol."""


def _example(row: Row, number: int, context: ReadContext) -> BitextExample:
    return BitextExample(
        id=id_of(row, number),
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


def _tied(queries: FloatArray, candidates: FloatArray, similarity: np.ndarray) -> list[bool]:
    """Return for every query whether several candidates have the best cosine, to a millionth."""
    return [
        bool(tied)
        for start in range(0, len(queries), QUERY_BLOCK)
        for block in [queries[start : start + QUERY_BLOCK] @ candidates.T]
        for tied in (block > similarity[start : start + len(block), None] - 5e-7).sum(axis=1) > 1
    ]


def _predict_by_embedding(
    adapter: Embeds, examples: Sequence[BitextExample], context: MethodContext
) -> list[Prediction]:
    assert isinstance(context.spec, BitextRetrievalSpec)
    options = embed_options(context.spec.embedding, context.protocol)
    pool: Sequence[BitextExample] = context.pool or examples
    queries = checked_vectors(
        adapter.embed([example.query for example in examples], side="query", options=options),
        len(examples),
        "query",
    )
    candidates = checked_vectors(
        adapter.embed([example.target for example in pool], side="query", options=options),
        len(pool),
        "target",
    )
    best, similarity = nearest(queries, candidates)
    ties = _tied(queries, candidates, similarity)
    return [
        Prediction(id=example.id, output=_output(pool[row], float(cosine)), tied=tied)
        for example, row, cosine, tied in zip(examples, best.tolist(), similarity, ties, strict=True)
    ]


def _output(chosen: BitextExample, cosine: float) -> dict[str, Any]:
    return {"candidate": chosen.id, "similarity": round(cosine, 6), "texts": {chosen.id: chosen.target}}


def _repeated_targets(items: Sequence[BitextExample], pool: Sequence[BitextExample]) -> str | None:
    """Return how far identical targets limit the score: of equal candidates the first is chosen, one item is right."""
    first: dict[str, str] = {}
    for example in pool:
        first.setdefault(example.target, example.id)
    lost = sum(first[example.target] != example.id for example in items)
    if not lost:
        return None
    best = 100 * (len(items) - lost) / len(items)
    return f"{lost:,} of {len(items):,} targets are identical to an earlier one, so at most {best:.1f} % can be right"


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
    # The queries are English in every language's file.
    texts=lambda example, spec: (example.target,),
    sequences=lambda example: [(example.query,), (example.target,)],
    remark=_repeated_targets,
)
