"""Retrieval by embeddings: translations of sentences (Tatoeba), and candidates of a pool (LAReQA, Mewsli-X).

Bitext retrieval: the queries are the `query` sides in order, the candidates the `target` sides of the whole split;
similarity is the inner product of unit vectors (cosine), ties go to the candidate that stands first in the file.

Ranked retrieval: the candidates of a pool in many languages are ranked for every query, over the whole pool, whatever a
limit leaves of the queries. The ranking of `harness.kinds.search` decides ties: equal similarities (to 6 decimals) in
the order of the pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from pydantic import Field

from harness.data.records import (
    BitextExample,
    Candidate,
    CandidatePool,
    Prediction,
    RankedQuery,
    RetrievalPair,
    Row,
)
from harness.errors import DataError
from harness.kinds.kind import ReadContext, TaskKind, cluster_of, id_of, text_of
from harness.kinds.methods import FITTING_PROTOCOLS, Method, MethodContext
from harness.kinds.search import EmbeddingSpec, embed_options, embed_texts, search
from harness.metrics.ranking import CUT_OFF
from harness.models.capabilities import Capability, Embeds, Head
from harness.models.requests import FloatArray
from harness.specs.schema import ProtocolName, Source, TaskSpec

_PAIR_BLOCK = 1024
EMBED_CHUNK = 2048
"""Candidates that are embedded in one call: enough to sort by length, few enough for progress."""


class BitextRetrievalSpec(TaskSpec):
    """The spec of a bitext retrieval task."""

    kind: Literal["bitext_retrieval"]
    embedding: dict[ProtocolName, EmbeddingSpec] = Field(default_factory=dict)
    """By protocol."""


def _pair_example(row: Row, number: int, context: ReadContext) -> BitextExample:
    return BitextExample(
        id=id_of(row, number),
        cluster=cluster_of(row, context),
        query=text_of(row, "query", context),
        target=text_of(row, "target", context),
    )


def _pair_id(example: BitextExample) -> str:
    return example.id


def nearest(queries: FloatArray, candidates: FloatArray) -> tuple[np.ndarray, np.ndarray]:
    """Return the row of the most similar candidate of every query, and its cosine; ties go to the lower row."""
    best = np.empty(len(queries), dtype=np.int64)
    similarity = np.empty(len(queries), dtype=np.float32)
    for start in range(0, len(queries), _PAIR_BLOCK):
        block = queries[start : start + _PAIR_BLOCK] @ candidates.T
        rows = block.argmax(axis=1)
        best[start : start + len(block)] = rows
        similarity[start : start + len(block)] = block[np.arange(len(block)), rows]
    return best, similarity


def _tied(queries: FloatArray, candidates: FloatArray, similarity: np.ndarray) -> list[bool]:
    """Return for every query whether several candidates have the best cosine, to a millionth."""
    return [
        bool(tied)
        for start in range(0, len(queries), _PAIR_BLOCK)
        for block in [queries[start : start + _PAIR_BLOCK] @ candidates.T]
        for tied in (block > similarity[start : start + len(block), None] - 5e-7).sum(axis=1) > 1
    ]


def _find_translations(
    adapter: Embeds, examples: Sequence[BitextExample], context: MethodContext
) -> list[Prediction]:
    assert isinstance(context.spec, BitextRetrievalSpec)
    options = embed_options(context.spec.embedding, context.protocol)
    pool: Sequence[BitextExample] = context.pool or examples
    queries = embed_texts(adapter, [example.query for example in examples], options, "query")
    candidates = embed_texts(adapter, [example.target for example in pool], options, "target")
    best, similarity = nearest(queries, candidates)
    ties = _tied(queries, candidates, similarity)
    return [
        Prediction(id=example.id, output=_pair_output(pool[row], float(cosine)), tied=tied)
        for example, row, cosine, tied in zip(examples, best.tolist(), similarity, ties, strict=True)
    ]


def _pair_output(chosen: BitextExample, cosine: float) -> dict[str, Any]:
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


def _query_example(row: Row, number: int, context: ReadContext) -> RankedQuery | RetrievalPair:
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


def _right_candidates(example: RankedQuery | RetrievalPair) -> dict[str, list[str]] | None:
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
        chunk = embed_texts(adapter, texts, options, "candidate", side="passage")
        if vectors is None:
            vectors = np.empty((len(candidates), chunk.shape[1]), dtype=np.float32)
        vectors[start : start + len(texts)] = chunk
        context.progress.advance(len(texts))
    context.progress.finish()
    context.cache[key] = vectors


def _rank_candidates(
    adapter: Embeds, examples: Sequence[RankedQuery], context: MethodContext
) -> list[Prediction]:
    assert isinstance(context.spec, RankedRetrievalSpec)
    pool = context.candidates
    assert pool is not None
    options = embed_options(context.spec.embedding, context.protocol)
    queries = embed_texts(adapter, [example.query for example in examples], options, "query")
    # "Limit to one target" ranks each right candidate as if the others were not there: they may rank before it.
    # The number is that of all queries, not of the chunk: a limit must not change what is kept.
    further = max((len(example.targets) for example in context.pool), default=1) - 1
    further = max(further, 0)
    nearest = search(queries, context.cache[_pool_key(context)], CUT_OFF + further + 1)
    return [
        _ranking_prediction(example, rows, similarity, pool, further)
        for example, rows, similarity in zip(examples, nearest.rows, nearest.similarity, strict=True)
    ]


def _ranking_prediction(
    example: RankedQuery, rows: Any, similarity: Any, pool: CandidatePool, further: int
) -> Prediction:
    ranking = [pool.candidates[row].id for row in rows.tolist()[: CUT_OFF + further]]
    output: dict[str, Any] = {
        "candidates": ranking[:CUT_OFF],
        "texts": _ranking_texts(example, ranking, pool),
    }
    if further:
        output["further"] = ranking[CUT_OFF:]
    rounded = np.round(similarity[CUT_OFF - 1 : CUT_OFF + 1], 6)
    tied = len(rounded) == 2 and bool(rounded[0] == rounded[1])
    return Prediction(id=example.id, output=output, tied=tied)


def _ranking_texts(example: RankedQuery, ranking: Sequence[str], pool: CandidatePool) -> dict[str, str]:
    """Return the texts that a reader of the answer needs: of the first candidate, and of a right one."""
    names = [*ranking[:1], *(target for target in example.targets[:1] if target in pool.row_of)]
    return {name: pool.candidates[pool.row_of[name]].text for name in names}


METHODS = (
    Method(
        name="embed",
        kind="bitext_retrieval",
        requires=Capability.EMBEDS,
        protocols=FITTING_PROTOCOLS | {"frozen"},
        predict=_find_translations,
        needs_all=True,
    ),
    Method(
        name="embed",
        kind="ranked_retrieval",
        requires=Capability.EMBEDS,
        protocols=FITTING_PROTOCOLS | {"frozen"},
        predict=_rank_candidates,
        prepare=_embed_pool,
        needs_all=False,
    ),
)

BITEXT_RETRIEVAL = TaskKind(
    name="bitext_retrieval",
    spec_model=BitextRetrievalSpec,
    head=None,
    methods=("embed",),
    example=_pair_example,
    reference=_pair_id,
    summary="find the translation of every sentence",
    # The queries are English in every language's file.
    texts=lambda example, spec: (example.target,),
    sequences=lambda example: [(example.query,), (example.target,)],
    remark=_repeated_targets,
)

RANKED_RETRIEVAL = TaskKind(
    name="ranked_retrieval",
    spec_model=RankedRetrievalSpec,
    head=Head.DUAL_ENCODER,
    methods=("embed",),
    example=_query_example,
    reference=_right_candidates,
    candidate=_candidate,
    join=_join,
    summary="rank the candidates of a multilingual pool for every query",
    texts=lambda example, spec: (example.query,),
    sequences=lambda example: [(example.query,)],
)

KINDS = (BITEXT_RETRIEVAL, RANKED_RETRIEVAL)
