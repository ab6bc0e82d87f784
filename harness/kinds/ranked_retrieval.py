"""Ranked retrieval: the candidates of a pool in many languages are ranked for every query (LAReQA, Mewsli-X).

Similarity is the inner product of unit vectors, over the whole pool, whatever a limit leaves of the queries. The
ranking of `harness.kinds.search` decides ties: equal similarities (to 6 decimals) in the order of the pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from pydantic import Field

from harness.data.pool import CandidatePool
from harness.data.records import Candidate, Prediction, RankedQuery, RetrievalPair, Row
from harness.errors import DataError
from harness.kinds.embedding import EmbeddingSpec, checked_vectors, embed_options
from harness.kinds.kind import ReadContext, TaskKind, cluster_of, id_of, text_of
from harness.kinds.methods import FITTING_PROTOCOLS, Method, MethodContext
from harness.kinds.search import search
from harness.metrics.ranking import CUT_OFF
from harness.models.capabilities import Capability, Embeds, Head
from harness.models.requests import FloatArray
from harness.specs.schema import ProtocolName, Source, TaskSpec

EMBED_CHUNK = 2048
"""Candidates that are embedded in one call: enough to sort by length, few enough for progress."""


class RankedRetrievalSpec(TaskSpec):
    """The spec of a ranked retrieval task."""

    kind: Literal["ranked_retrieval"]
    candidates: Source
    """The pool; its rows have ``id``, ``text``, and may have ``language`` and ``answers`` (ids of queries)."""
    pool: Literal["one", "languages"] = "one"
    """``languages``: one file per language, joined into one pool; ``one``: one file for all."""
    embedding: dict[ProtocolName, EmbeddingSpec] = Field(default_factory=dict)
    """By protocol."""

    @property
    def pool_source(self) -> Source:
        """Where the candidates are."""
        return self.candidates

    @property
    def pools_languages(self) -> bool:
        """Whether every language adds its candidates."""
        return self.pool == "languages"


def _example(row: Row, number: int, context: ReadContext) -> RankedQuery | RetrievalPair:
    identifier = id_of(row, number)
    query = text_of(row, "query", context)
    if context.split != "test":
        passage = text_of(row, "passage", context)
        return RetrievalPair(id=identifier, cluster=cluster_of(row, context), query=query, passage=passage)
    target = row.fields.get("target")
    return RankedQuery(
        id=identifier,
        cluster=cluster_of(row, context),
        query=query,
        targets=() if target is None else (str(target),),
    )


def _reference(example: RankedQuery | RetrievalPair) -> dict[str, list[str]] | None:
    if isinstance(example, RetrievalPair):
        return {"targets": [example.id]}
    if not example.targets:
        return None
    return {"targets": list(example.targets), "languages": list(example.languages)}


def _candidate(row: Row, context: ReadContext) -> Candidate:
    identifier = row.fields.get("id")
    if not isinstance(identifier, str) or not identifier:
        raise DataError(
            f"{row.where}: expected a candidate of {context.owner!r} with a text id, found {identifier!r}."
        )
    return Candidate(
        id=identifier,
        text=text_of(row, "text", context),
        language=str(row.fields.get("language") or context.language),
        answers=tuple(str(query) for query in row.fields.get("answers") or ()),
    )


def _join(examples: Sequence[RankedQuery], pool: CandidatePool) -> list[RankedQuery]:
    """Return the queries with all right candidates of the pool and their languages.

    Raises `DataError` for a gold that is not in the pool, and for a query without a right candidate in a pool whose
    candidates say what they answer.
    """
    joined = []
    for example in examples:
        for target in example.targets:
            if target not in pool.row_of:
                raise DataError(
                    f"The gold {target!r} of query {example.id!r} of {pool.owner!r} is not among the "
                    f"{len(pool):,} candidates; the pool is of another release than the queries."
                )
        gold = [pool.candidates[pool.row_of[target]] for target in example.targets]
        answers = list(dict.fromkeys([*gold, *pool.answering.get(example.id, ())]))
        if not answers and pool.answering:
            raise DataError(
                f"The query {example.id!r} of {pool.owner!r} has no right candidate among the "
                f"{len(pool):,} of the pool."
            )
        joined.append(
            replace(
                example,
                targets=tuple(candidate.id for candidate in answers),
                languages=tuple(candidate.language for candidate in answers),
            )
        )
    return joined


def _pool_key(context: MethodContext) -> str:
    assert isinstance(context.spec, RankedRetrievalSpec)
    assert context.candidates is not None
    return f"{context.spec.task}:{context.protocol}:{context.candidates.digest}"


def _embed_pool(adapter: Embeds, context: MethodContext) -> None:
    """Embed the candidates once for all languages of the task."""
    assert isinstance(context.spec, RankedRetrievalSpec)
    assert context.candidates is not None
    key = _pool_key(context)
    if key in context.cache:
        return
    options = embed_options(context.spec.embedding, context.protocol)
    candidates = context.candidates.candidates
    context.progress.start(f"{context.spec.task}: the candidate pool", len(candidates), "texts")
    vectors: FloatArray | None = None
    for start in range(0, len(candidates), EMBED_CHUNK):
        texts = [candidate.text for candidate in candidates[start : start + EMBED_CHUNK]]
        chunk = checked_vectors(
            adapter.embed(texts, side="passage", options=options), len(texts), "candidate"
        )
        if vectors is None:
            vectors = np.empty((len(candidates), chunk.shape[1]), dtype=np.float32)
        vectors[start : start + len(texts)] = chunk
        context.progress.advance(len(texts))
    context.progress.finish()
    context.cache[key] = vectors


def _predict_by_embedding(
    adapter: Embeds, examples: Sequence[RankedQuery], context: MethodContext
) -> list[Prediction]:
    assert isinstance(context.spec, RankedRetrievalSpec)
    pool = context.candidates
    assert pool is not None
    options = embed_options(context.spec.embedding, context.protocol)
    queries = checked_vectors(
        adapter.embed([example.query for example in examples], side="query", options=options),
        len(examples),
        "query",
    )
    # "Limit to one target" ranks each right candidate as if the others were not there: they may rank before it.
    # The number is that of all queries, not of the chunk: a limit must not change what is kept.
    further = max((len(example.targets) for example in context.pool), default=1) - 1
    further = max(further, 0)
    nearest = search(queries, context.cache[_pool_key(context)], CUT_OFF + further + 1)
    return [
        _prediction(example, rows, similarity, pool, further)
        for example, rows, similarity in zip(examples, nearest.rows, nearest.similarity, strict=True)
    ]


def _prediction(
    example: RankedQuery, rows: Any, similarity: Any, pool: CandidatePool, further: int
) -> Prediction:
    ranking = [pool.candidates[row].id for row in rows.tolist()[: CUT_OFF + further]]
    output: dict[str, Any] = {"candidates": ranking[:CUT_OFF], "texts": _texts(example, ranking, pool)}
    if further:
        output["further"] = ranking[CUT_OFF:]
    rounded = np.round(similarity[CUT_OFF - 1 : CUT_OFF + 1], 6)
    tied = len(rounded) == 2 and bool(rounded[0] == rounded[1])
    return Prediction(id=example.id, output=output, tied=tied)


def _texts(example: RankedQuery, ranking: Sequence[str], pool: CandidatePool) -> dict[str, str]:
    """Return the texts that a reader of the answer needs: of the first candidate, and of a right one."""
    names = [*ranking[:1], *(target for target in example.targets[:1] if target in pool.row_of)]
    return {name: pool.candidates[pool.row_of[name]].text for name in names}


METHODS = (
    Method(
        name="embed",
        kind="ranked_retrieval",
        requires=Capability.EMBEDS,
        protocols=FITTING_PROTOCOLS | {"frozen"},
        predict=_predict_by_embedding,
        prepare=_embed_pool,
        needs_all=False,
    ),
)

KIND = TaskKind(
    name="ranked_retrieval",
    spec_model=RankedRetrievalSpec,
    head=Head.DUAL_ENCODER,
    methods=("embed",),
    example=_example,
    reference=_reference,
    candidate=_candidate,
    join=_join,
    summary="rank the candidates of a multilingual pool for every query",
    texts=lambda example, spec: (example.query,),
    sequences=lambda example: [(example.query,)],
)
