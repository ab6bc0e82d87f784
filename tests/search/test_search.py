from __future__ import annotations

import math
import os
import subprocess
import sys
import tracemalloc
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st

from harness.errors import ContractError, MissingExtraError
from harness.kinds import search as module
from harness.kinds.search import BACKENDS, Neighbours, search
from harness.models.requests import FloatArray


def unit(vectors: npt.NDArray[Any]) -> FloatArray:
    wide = vectors.astype(np.float64)
    scaled: FloatArray = (wide / np.linalg.norm(wide, axis=1, keepdims=True)).astype(np.float32)
    return scaled


def drawn(seed: int, count: int, dimension: int = 48) -> FloatArray:
    return unit(np.random.default_rng(seed).standard_normal((count, dimension)))


def with_repeats(seed: int, distinct: int, count: int, dimension: int = 48) -> FloatArray:
    """Return a pool in which some texts occur very often, as equal sentences do."""
    rng = np.random.default_rng(seed)
    return drawn(seed, distinct, dimension)[np.minimum(rng.geometric(0.2, count) - 1, distinct - 1)]


def brute_force(queries: FloatArray, candidates: FloatArray, k: int) -> tuple[Any, Any]:
    """Return rows and rounded products, from one sum at a time."""
    products = np.array(
        [
            [math.fsum((query.astype(np.float64) * candidate).tolist()) for candidate in candidates]
            for query in queries
        ]
    ).reshape(len(queries), len(candidates))
    rounded = np.round(products, 6)
    rows = np.argsort(-rounded, axis=1, kind="stable")
    return rows[:, :k], np.take_along_axis(rounded, rows, axis=1)


def assert_same(first: Neighbours, second: Neighbours) -> None:
    np.testing.assert_array_equal(first.rows, second.rows)
    np.testing.assert_array_equal(first.similarity, second.similarity)
    assert first.ties == second.ties


@st.composite
def problems(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, int, int]:
    """Draw queries, candidates with many duplicates, k and the cut-off; coarse vectors tie without being equal."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    dimension = draw(st.sampled_from([2, 3, 17, 64]))
    distinct = draw(st.integers(1, 80))
    if draw(st.booleans()):
        vectors = rng.integers(1, 3, (distinct + 5, dimension)) * rng.choice(
            [-1, 1], (distinct + 5, dimension)
        )
    else:
        vectors = rng.standard_normal((distinct + 5, dimension))
    vectors = unit(vectors)
    candidates = vectors[rng.integers(0, distinct, draw(st.integers(1, 160)))]
    queries = vectors[distinct - 1 :][: draw(st.integers(0, 6))]
    k = draw(st.integers(1, 24))
    return queries, candidates, k, draw(st.integers(1, k))


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=60)
@given(problem=problems())
def test_agrees_with_brute_force(backend: str, problem: tuple[FloatArray, FloatArray, int, int]) -> None:
    queries, candidates, k, cut_off = problem
    found = search(queries, candidates, k, cut_off=cut_off, backend=backend)
    rows, rounded = brute_force(queries, candidates, k)
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_array_equal(found.similarity, rounded[:, :k].astype(np.float32))
    ranked = [[*line, None] for line in rounded.tolist()]
    crossing = [line[cut_off - 1] == line[cut_off] for line in ranked if cut_off < len(line)]
    assert found.ties == sum(crossing)
    assert found.rows.dtype == np.int64
    assert found.similarity.dtype == np.float32


@settings(max_examples=60)
@given(
    problem=problems(),
    blocks=st.tuples(*(st.integers(1, 50) for _ in range(3)), st.integers(1, 2000), st.integers(0, 30)),
    split=st.integers(0, 6),
)
def test_blocks_and_backends_change_nothing(
    problem: tuple[FloatArray, FloatArray, int, int], blocks: tuple[int, int, int, int, int], split: int
) -> None:
    queries, candidates, k, cut_off = problem
    expected = search(queries, candidates, k, cut_off=cut_off, backend="numpy")
    names = ("QUERY_BLOCK", "CANDIDATE_BLOCK", "PAIR_BLOCK", "KEY_BLOCK", "SPARE")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in zip(names, blocks, strict=True):
            patch.setattr(module, name, value)
        for backend in BACKENDS:
            assert_same(search(queries, candidates, k, cut_off=cut_off, backend=backend), expected)
            parts = [
                search(part, candidates, k, cut_off=cut_off, backend=backend)
                for part in (queries[:split], queries[split:])
            ]
            np.testing.assert_array_equal(np.concatenate([part.rows for part in parts]), expected.rows)
            assert sum(part.ties for part in parts) == expected.ties


@pytest.mark.parametrize("backend", BACKENDS)
@given(problem=problems(), seed=st.integers(0, 1000))
def test_permuted_candidates_permute_the_rows(
    backend: str, problem: tuple[FloatArray, FloatArray, int, int], seed: int
) -> None:
    queries, candidates, k, _ = problem
    everything = search(queries, candidates, len(candidates), backend=backend)
    table = np.empty_like(everything.similarity)
    np.put_along_axis(table, everything.rows, everything.similarity, axis=1)
    order = np.random.default_rng(seed).permutation(len(candidates))
    found = search(queries, candidates[order], k, backend=backend)
    np.testing.assert_array_equal(found.similarity, everything.similarity[:, :k])
    np.testing.assert_array_equal(np.take_along_axis(table, order[found.rows], axis=1), found.similarity)
    falling = np.diff(found.similarity, axis=1)
    assert ((falling < 0) | ((falling == 0) & (np.diff(found.rows, axis=1) > 0))).all()


def test_agrees_with_the_flat_index_of_faiss() -> None:
    queries, candidates = drawn(1, 100, 384), drawn(2, 3000, 384)
    index = faiss.IndexFlatIP(384)
    index.add(candidates)
    similarity, rows = index.search(queries, 10)
    found = search(queries, candidates, 10)
    assert found.backend == f"faiss {faiss.__version__}"
    np.testing.assert_allclose(found.similarity, similarity, atol=2e-6)
    distinct = (np.diff(similarity, axis=1) < -5e-6).all(axis=1)
    assert distinct.sum() > 80
    np.testing.assert_array_equal(found.rows[distinct], rows[distinct])
    assert_same(found, search(queries, candidates, 10, backend="numpy"))


def test_a_tie_may_reach_beyond_any_shortlist() -> None:
    """A query's 500 equal candidates, spread over the pool, go by row, though faiss takes any of them."""
    queries = drawn(3, 8)
    candidates = drawn(4, 4000)
    copies = np.sort(np.random.default_rng(5).permutation(4000)[:500])
    candidates[copies] = queries[2]
    for backend in BACKENDS:
        found = search(queries, candidates, 20, backend=backend)
        np.testing.assert_array_equal(found.rows[2], copies[:20])
        assert (found.similarity[2] == 1).all()
        assert found.ties == 1
        assert search(queries, candidates, 20, cut_off=7, backend=backend).ties == 1
        assert search(queries[:2], candidates, 20, backend=backend).ties == 0


def test_only_doubtful_queries_are_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []
    exact = module._ranked_exactly

    def counted(queries: FloatArray, candidates: FloatArray, needed: int) -> module.Keys:
        searched.append(len(queries))
        return exact(queries, candidates, needed)

    queries, candidates = drawn(6, 50), drawn(7, 3000)
    candidates[100:200] = queries[3]
    monkeypatch.setattr(module, "_ranked_exactly", counted)
    search(queries, candidates, 5, backend="faiss")
    assert searched == [1]


@pytest.mark.parametrize("spread", [1e-7, 1e-6, 1e-5, 1e-4])
def test_similarities_closer_than_float32_distinguishes(spread: float) -> None:
    rng = np.random.default_rng(8)
    centre = rng.standard_normal(384) / math.sqrt(384)
    candidates = unit(centre + spread * rng.standard_normal((1500, 384)))
    queries = unit(centre + 0.05 * rng.standard_normal((12, 384)))
    found = search(queries, candidates, 20, backend="faiss")
    assert_same(found, search(queries, candidates, 20, backend="numpy"))
    rows, _ = brute_force(queries[:2], candidates, 20)
    np.testing.assert_array_equal(found.rows[:2], rows)


def test_any_error_that_float32_may_make_is_made_good(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library whose sums are as bad as the bound of the module's documentation allows gives the same ranks."""

    def knn(queries: FloatArray, candidates: FloatArray, k: int, metric: int) -> tuple[Any, Any]:
        exact = queries.astype(np.float64) @ candidates.T
        worst = queries.shape[1] * 2.0**-24
        products = exact + np.random.default_rng(27).uniform(-worst, worst, exact.shape)
        rows = np.argsort(-products, axis=1)[:, :k]
        return np.take_along_axis(products, rows, axis=1).astype(np.float32), rows

    bad = SimpleNamespace(
        knn=knn, METRIC_INNER_PRODUCT=0, omp_get_max_threads=lambda: 3, __version__="of the test"
    )
    rng = np.random.default_rng(28)
    centre = rng.standard_normal(384) / math.sqrt(384)
    candidates = unit(centre + 5e-4 * rng.standard_normal((1500, 384)))
    queries = unit(centre + 0.05 * rng.standard_normal((300, 384)))
    expected = search(queries, candidates, 20, backend="numpy")
    monkeypatch.setitem(sys.modules, "faiss", bad)
    assert_same(search(queries, candidates, 20), expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_halves_go_to_the_even_millionth(backend: str) -> None:
    """Products of these vectors are multiples of 1/128 = 0.0078125, exact in every precision and order."""
    signs = np.random.default_rng(9).choice([-1, 1], (300, 256))
    vectors = (signs / 16).astype(np.float32)
    found = search(vectors[:5], vectors, 40, backend=backend)
    whole = signs[:5] @ signs.T
    millionths = np.array([[round(Fraction(int(value) * 10**6, 256)) for value in line] for line in whole])
    rows = np.argsort(-millionths, axis=1, kind="stable")[:, :40]
    np.testing.assert_array_equal(found.rows, rows)
    expected = (np.take_along_axis(millionths, rows, axis=1) / 1e6).astype(np.float32)
    np.testing.assert_array_equal(found.similarity, expected)


@pytest.mark.parametrize("error", [-1e-12, 0.0, 1e-12])
def test_an_error_of_the_sum_does_not_decide_on_a_half(error: float) -> None:
    vectors = (np.random.default_rng(10).choice([-1, 1], (40, 256)) / 16).astype(np.float32)
    products = vectors.astype(np.float64) @ vectors.T
    rows = np.broadcast_to(np.arange(40), products.shape)
    assert (products * 1e6 % 1 == 0.5).any()
    rounded = module._millionths(products + error, vectors, vectors, rows)
    np.testing.assert_array_equal(rounded, np.rint(products * 1e6).astype(np.int64))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_pool_of_one_vector(backend: str) -> None:
    """What a model that embeds all texts alike gives: the first rows, and a tie for every query."""
    same = np.repeat(drawn(11, 1), 700, axis=0)
    found = search(same[:30], same, 20, backend=backend)
    np.testing.assert_array_equal(found.rows, np.tile(np.arange(20), (30, 1)))
    assert found.ties == 30


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("queries", "candidates"), [(0, 50), (4, 0), (0, 0), (3, 2), (3, 9)])
def test_small_and_empty_pools(backend: str, queries: int, candidates: int) -> None:
    found = search(drawn(12, queries), drawn(13, candidates), 9, backend=backend)
    assert found.rows.shape == found.similarity.shape == (queries, min(9, candidates))
    assert found.ties == 0
    for row in found.rows:
        assert len(set(row.tolist())) == len(row)


@pytest.mark.parametrize("backend", BACKENDS)
def test_strided_vectors_are_read_rightly(backend: str) -> None:
    wide = drawn(14, 600, 64)
    turned = np.asfortranarray(wide)
    assert_same(
        search(turned[::20], turned, 6, backend=backend), search(wide[::20], wide, 6, backend=backend)
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_memory_is_bounded(backend: str) -> None:
    """All products at once would take 200 MB in double precision, and their keys as much."""
    queries, candidates = drawn(15, 1500, 16), with_repeats(16, 15_000, 17_000, 16)
    tracemalloc.start()
    try:
        search(queries, candidates, 20, backend=backend)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 70e6


def _nan(vectors: FloatArray) -> FloatArray:
    vectors[4, 2] = np.nan
    return vectors


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_nan, "found NaN or infinity in it at row 4"),
        (lambda vectors: vectors * np.float32(1.01), r"of length 1, found length 1.01 at row 0"),
        (lambda vectors: vectors * np.float32(0), "found length 0 at row 0"),
        (lambda vectors: vectors.astype(np.float64), r"found float64 of shape \(10, 48\)"),
        (lambda vectors: vectors[0], r"found float32 of shape \(48,\)"),
        (lambda vectors: vectors.tolist(), "found list"),
    ],
)
@pytest.mark.parametrize("side", ["query", "candidate"])
def test_faulty_vectors_are_rejected(spoil: Any, said: str, side: str) -> None:
    vectors = {"query": drawn(17, 10), "candidate": drawn(18, 10)}
    vectors[side] = spoil(vectors[side])
    with pytest.raises(ContractError, match=f"{side} vectors.* {said}"):
        search(vectors["query"], vectors["candidate"], 3)


def test_widths_must_agree() -> None:
    with pytest.raises(ContractError, match="Query vectors have 48 dimensions and candidate vectors 47"):
        search(drawn(19, 3), drawn(20, 3, 47), 1)


@pytest.mark.parametrize(("k", "cut_off"), [(0, None), (-1, None), (3, 0), (3, 4)])
def test_ranks_out_of_range_are_rejected(k: int, cut_off: int | None) -> None:
    with pytest.raises(ValueError, match="Expected 1 <= cut_off <= k, found k"):
        search(drawn(21, 3), drawn(22, 3), k, cut_off=cut_off)


def test_unknown_backends_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"No search backend named 'annoy'; known: faiss, numpy\."):
        search(drawn(23, 3), drawn(24, 3), 1, backend="annoy")


def test_without_faiss_numpy_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    assert search(drawn(25, 3), drawn(26, 60), 2).backend == "numpy"
    with pytest.raises(MissingExtraError, match=r"'faiss', which is not installed.*\[retrieval\]"):
        search(drawn(25, 3), drawn(26, 60), 2, backend="faiss")


def test_the_module_imports_no_backend() -> None:
    code = (
        "import sys, harness.kinds.search; sys.exit(any(name in sys.modules for name in ('faiss', 'torch')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.thorough
@pytest.mark.parametrize(("first", "second"), [("faiss", "torch"), ("torch", "faiss")])
def test_faiss_and_torch_share_a_process(first: str, second: str) -> None:
    pytest.importorskip("torch")
    code = (
        f"import {first}, {second}, numpy, torch\n"
        "from harness.kinds.search import search\n"
        "vectors = torch.nn.functional.normalize(torch.randn(500, 32)) @ torch.eye(32)\n"
        "found = search(vectors.numpy(), vectors.numpy(), 2, backend='faiss')\n"
        "assert (found.rows[:, 0] == numpy.arange(500)).all()\n"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=120, env=environment)
