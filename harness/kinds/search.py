"""How retrieval tasks embed texts, and exact nearest neighbours by inner product.

The tie rule of the search is one that no backend, block size or thread can change.

The order of candidates. The inner product of two float32 vectors is rounded to six decimals; more is better, and of
candidates with equal rounded products the lower row comes first. Rounding goes by the product in double precision,
half to even. Equal texts have equal vectors, so ties are the rule in pools of sentences and not the exception; and
the float32 products of two matrix libraries, or of two block sizes of one library, differ in the seventh decimal.

How it is kept. With faiss, a shortlist a little longer than asked for is found in float32 and ordered by products
in double precision. The shortlist is complete if everything that it skips would, with the largest error that float32
can make, still be rounded below the last candidate needed; the queries for which that is not so (many equal
candidates, say) are searched again in double precision, against all candidates. Without faiss, all are.

The error of a float32 inner product of d terms is at most d u / (1 - d u) sum |x_i y_i| in any order of summation,
u = 2**-24 (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1); for unit vectors the sum
is at most 1.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from harness.errors import ContractError, MissingExtraError
from harness.models.capabilities import EmbedOptions, Embeds, Side
from harness.models.requests import FloatArray
from harness.specs.schema import ProtocolName, SpecModel

BACKENDS = ("faiss", "numpy")
DECIMALS = 6
LENGTH_TOLERANCE = 1e-3
"""As far from 1 as the length of a vector may be."""
SPARE = 4
"""How much longer than needed a shortlist is: float32 errors then seldom reach across its end."""
QUERY_BLOCK = 512
CANDIDATE_BLOCK = 2048
PAIR_BLOCK = 128
"""Pairs of vectors that are held in double precision at once, by each thread: so many stay in its caches."""
KEY_BLOCK = 2**22
"""Keys, or entries of shortlists, that are held at once."""

Keys = npt.NDArray[np.int64]
"""Candidates of queries as ``row - millionths * 2**32``: in ascending order the best comes first, ties by row."""
DoubleArray = npt.NDArray[np.float64]

_SCALE = 10.0**DECIMALS
_ROW_BITS = 32
_DOUBT = 1e-5
"""Nearer than this to the middle of two millionths, the order of summation could decide on the rounding."""


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


def embed_texts(
    adapter: Embeds, texts: Sequence[str], options: EmbedOptions, title: str, *, side: Side = "query"
) -> FloatArray:
    """Return the vectors of texts; raises `ContractError` where their number is wrong or one is not finite."""
    vectors = adapter.embed(texts, side=side, options=options)
    if len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise ContractError(
            f"embed() returned {len(vectors)} vectors for {len(texts)} {title} texts, or NaN in them."
        )
    return vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """The best candidates of every query."""

    rows: npt.NDArray[np.int64]
    """Rows of candidates, best first, of shape (queries, k)."""
    similarity: FloatArray
    """Their inner products as they were compared, that is rounded to six decimals, of shape (queries, k)."""
    ties: int
    """For how many queries the candidates at the ranks `cut_off` and `cut_off` + 1 are tied."""
    backend: str
    """``numpy``, or ``faiss`` and its version."""


def search(
    queries: FloatArray,
    candidates: FloatArray,
    k: int,
    *,
    cut_off: int | None = None,
    backend: str | None = None,
) -> Neighbours:
    """Return the `k` nearest candidates of every query, or all candidates where there are fewer.

    Args:
        queries: Unit vectors of shape (queries, dimension), float32.
        candidates: Unit vectors of shape (candidates, dimension), float32. They are not copied if contiguous.
        k: How many candidates a query gets.
        cut_off: The rank behind which a tie is counted, from 1 to `k`; `k` unless given.
        backend: One of `BACKENDS`; faiss if it is installed, unless given.

    Raises:
        ContractError: The vectors are not float32 of two dimensions, not of one width, or not of length 1.
        MissingExtraError: faiss is asked for and not installed.
        ValueError: `k`, `cut_off` or `backend` is out of range.
    """
    cut_off = k if cut_off is None else cut_off
    if not 1 <= cut_off <= k:
        raise ValueError(f"Expected 1 <= cut_off <= k, found k {k!r} and cut_off {cut_off!r}.")
    queries, candidates = _checked(queries, "query"), _checked(candidates, "candidate")
    if queries.shape[1] != candidates.shape[1]:
        raise ContractError(
            f"Query vectors have {queries.shape[1]} dimensions and candidate vectors {candidates.shape[1]}; "
            "expected the same number."
        )
    faiss = _faiss(backend)
    needed = min(max(k, cut_off + 1), len(candidates))
    if faiss is None or needed + SPARE >= len(candidates):
        keys = _ranked_exactly(queries, candidates, needed)
    else:
        keys = _ranked_by_shortlist(faiss, queries, candidates, needed)
    millionths = -(keys >> _ROW_BITS)
    tied = 0
    if needed > cut_off:
        tied = int(np.count_nonzero(millionths[:, cut_off - 1] == millionths[:, cut_off]))
    return Neighbours(
        rows=keys[:, :k] & (2**_ROW_BITS - 1),
        similarity=(millionths[:, :k] / _SCALE).astype(np.float32),
        ties=tied,
        backend="numpy" if faiss is None else f"faiss {faiss.__version__}",
    )


def _faiss(backend: str | None) -> Any | None:
    """Return the module faiss, or None if numpy shall do the work."""
    if backend not in (None, *BACKENDS):
        raise ValueError(f"No search backend named {backend!r}; known: {', '.join(BACKENDS)}.")
    if backend == "numpy":
        return None
    try:
        return importlib.import_module("faiss")
    except ModuleNotFoundError as error:
        if backend is None:
            return None
        raise MissingExtraError("Search with faiss", "retrieval", "faiss") from error


def _checked(vectors: FloatArray, side: str) -> FloatArray:
    """Return unit vectors in contiguous memory, or say what is wrong with them."""
    shape, dtype = np.shape(vectors), getattr(vectors, "dtype", type(vectors).__name__)
    if len(shape) != 2 or dtype != np.float32:
        raise ContractError(
            f"Expected {side} vectors as a float32 array of two dimensions, found {dtype} of shape {shape}."
        )
    vectors = np.ascontiguousarray(vectors)
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
    faulty = np.flatnonzero(~(np.abs(lengths - 1) <= LENGTH_TOLERANCE))
    if len(faulty):
        row = int(faulty[0])
        fault = f"length {lengths[row]:.4g}" if np.isfinite(vectors[row]).all() else "NaN or infinity in it"
        raise ContractError(f"Expected {side} vectors of length 1, found {fault} at row {row}.")
    return vectors


def _millionths(
    products: DoubleArray, queries: FloatArray, candidates: FloatArray, rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the `products` of queries and the candidates at `rows`, of the same shape, as whole millionths.

    Products of float32 numbers are exact in double precision, so that only the order in which they are added can
    matter; near the middle of two millionths they are added again in an order that depends on nothing else.
    """
    scaled = products * _SCALE
    rounded = np.rint(scaled)
    scaled -= rounded
    np.abs(scaled, out=scaled)
    of_query, of_candidate = np.nonzero(scaled > 0.5 - _DOUBT)
    for start in range(0, len(of_query), PAIR_BLOCK):
        pairs = of_query[start : start + PAIR_BLOCK], of_candidate[start : start + PAIR_BLOCK]
        terms = queries[pairs[0]].astype(np.float64) * candidates[rows[pairs]]
        rounded[pairs] = np.rint(terms.sum(axis=1) * _SCALE)
    return rounded.astype(np.int64)


def _keys(millionths: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]) -> Keys:
    return rows - (millionths << _ROW_BITS)


def _ranked_exactly(queries: FloatArray, candidates: FloatArray, needed: int) -> Keys:
    """Return the sorted keys of the `needed` best candidates, from all products in double precision."""
    ranked = np.empty((len(queries), needed), dtype=np.int64)
    step = max(1, min(QUERY_BLOCK, KEY_BLOCK // (needed + CANDIDATE_BLOCK)))
    for start in range(0, len(queries), step):
        block = queries[start : start + step]
        query_vectors = block.astype(np.float64)
        best = np.empty((len(block), 0), dtype=np.int64)
        for first in range(0, len(candidates), CANDIDATE_BLOCK):
            candidate_vectors = candidates[first : first + CANDIDATE_BLOCK].astype(np.float64)
            rows = np.broadcast_to(
                np.arange(first, first + len(candidate_vectors)), (len(query_vectors), len(candidate_vectors))
            )
            keys = _keys(_millionths(query_vectors @ candidate_vectors.T, block, candidates, rows), rows)
            best = np.concatenate([best, keys], axis=1)
            if best.shape[1] > needed:
                best.partition(needed - 1, axis=1)
                best = best[:, :needed]
        best.sort(axis=1)
        ranked[start : start + step] = best
    return ranked


def _ranked_by_shortlist(faiss: Any, queries: FloatArray, candidates: FloatArray, needed: int) -> Keys:
    """Return the sorted keys of the `needed` best candidates, from shortlists where those are complete."""
    length = needed + SPARE
    error = queries.shape[1] * 2.0**-23 * (1 + LENGTH_TOLERANCE) ** 2
    ranked = np.empty((len(queries), needed), dtype=np.int64)
    complete = np.empty(len(queries), dtype=np.bool_)
    step = max(1, KEY_BLOCK // length)
    for start in range(0, len(queries), step):
        block = queries[start : start + step]
        single, rows = faiss.knn(block, candidates, length, metric=faiss.METRIC_INNER_PRODUCT)
        products = _products(block, candidates, rows, threads=faiss.omp_get_max_threads())
        keys = _keys(_millionths(products, block, candidates, rows), rows)
        keys.sort(axis=1)
        ranked[start : start + step] = keys[:, :needed]
        left_out = np.rint((single[:, -1].astype(np.float64) + error) * _SCALE)
        complete[start : start + step] = left_out < -(keys[:, needed - 1] >> _ROW_BITS)
    again = np.flatnonzero(~complete)
    ranked[again] = _ranked_exactly(queries[again], candidates, needed)
    return ranked


def _products(
    queries: FloatArray, candidates: FloatArray, rows: npt.NDArray[np.int64], *, threads: int
) -> DoubleArray:
    """Return the inner products, in double precision, of every query and its own candidates at `rows`."""
    products = np.empty(rows.shape)
    width = min(rows.shape[1], PAIR_BLOCK)
    step = PAIR_BLOCK // width

    def fill(first: int, last: int) -> None:
        gathered = np.empty((step * width, queries.shape[1]), dtype=np.float32)
        double = np.empty(gathered.shape)
        for start in range(first, last, step):
            query_vectors = queries[start : min(start + step, last), :, None].astype(np.float64)
            for column in range(0, rows.shape[1], width):
                row_block = rows[start : start + len(query_vectors), column : column + width]
                # Without mode="clip", take() writes into a buffer of its own first.
                candidate_vectors = np.take(
                    candidates, row_block.ravel(), axis=0, out=gathered[: row_block.size], mode="clip"
                )
                double[: row_block.size] = candidate_vectors
                np.matmul(
                    double[: row_block.size].reshape(*row_block.shape, -1),
                    query_vectors,
                    out=products[start : start + len(query_vectors), column : column + width, None],
                )

    bounds = [len(queries) * thread // threads for thread in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(fill, bounds[:-1], bounds[1:]))
    return products
