"""Exact retrieval: our search against the flat index of faiss, on random unit vectors.

Up to 20,000 x 20,000, LAReQA's 13,090 questions by 13,014 sentences among them: at most 1.15 of the time that faiss
takes for building the index and searching it. One million candidates: at least 0.8 of its queries a second, and at
most the vectors and 500 MB of memory. Contenders run in processes of their own, which measure their memory. Run:
make bench, or python -m benchmarks.retrieval [--candidates N] [--queries N] [--threads N] [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys

import faiss
import numpy as np

from benchmarks.measuring import alternate, record, show
from harness.kinds.search import search
from harness.models.requests import FloatArray

DIMENSION = 384
FLAT = "faiss IndexFlatIP"
SIZES = [(5_000, 5_000), (13_090, 13_014), (20_000, 20_000)]
"""The second: the questions and the answer pool of LAReQA's XQuAD-R (Roy et al. 2020, https://arxiv.org/abs/2004.05484)."""
OURS, THEIRS = 31, 20
"""How many candidates each looks for: we more, since candidates may be skipped before rank 20."""
DRAWN_AT_ONCE = 10_000
MEGABYTE = 10**6


def unit_vectors(count: int, seed: int) -> FloatArray:
    """Return random unit vectors of shape (count, `DIMENSION`), drawn without a second array of that size."""
    rng = np.random.default_rng(seed)
    vectors = np.empty((count, DIMENSION), dtype=np.float32)
    for start in range(0, count, DRAWN_AT_ONCE):
        block = vectors[start : start + DRAWN_AT_ONCE]
        rng.standard_normal(out=block, dtype=np.float32)
        block /= np.linalg.norm(block, axis=1, keepdims=True)
    return vectors


def _flat_index(candidates: FloatArray) -> faiss.IndexFlatIP:
    index = faiss.IndexFlatIP(DIMENSION)
    index.add(candidates)
    return index


def compare(questions_count: int, sentence_count: int, rounds: int) -> None:
    """Time both sides in turns, and print the ratio of their medians."""
    questions, sentences = unit_vectors(questions_count, 1), unit_vectors(sentence_count, 2)

    def ours() -> None:
        search(questions, sentences, OURS, cut_off=THEIRS)

    def theirs() -> None:
        _flat_index(sentences).search(questions, THEIRS)

    seconds = alternate({"harness": ours, FLAT: theirs}, rounds=rounds)
    threads = faiss.omp_get_max_threads()
    title = f"{questions_count:,} x {sentence_count:,} x {DIMENSION}"
    show(f"{title}, {threads} thread(s)", seconds)
    ratio = statistics.median(seconds["harness"]) / statistics.median(seconds[FLAT])
    record(f"retrieval, {title} / faiss", ratio, 1.15)


def _peak() -> float:
    """Return the highest resident memory of this process so far, in megabytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MEGABYTE


def run_contender(name: str, candidate_count: int, query_count: int, rounds: int) -> None:
    """Search as one of the contenders (``harness BACKEND`` or `FLAT`), and print what it took as JSON."""
    queries, candidates = unit_vectors(query_count, 3), unit_vectors(candidate_count, 4)
    index = _flat_index(candidates) if name == FLAT else None

    def run() -> None:
        if index is None:
            search(queries, candidates, OURS, cut_off=THEIRS, backend=name.removeprefix("harness "))
        else:
            index.search(queries, THEIRS)

    seconds = alternate({name: run}, rounds=rounds)[name]
    vectors = (queries.nbytes + candidates.nbytes) / MEGABYTE
    print(json.dumps({"seconds": seconds, "peak": _peak(), "vectors": vectors}))


def compare_on_many_candidates(candidate_count: int, query_count: int, rounds: int) -> None:
    """Run every contender in a process of its own; print the ratio of their throughputs, and their memory."""
    measured = {}
    for name in ("harness numpy", "harness faiss", FLAT):
        command = [sys.executable, "-m", "benchmarks.retrieval", "--contender", name]
        sizes = [f"--candidates={candidate_count}", f"--queries={query_count}", f"--rounds={rounds}"]
        threads = f"--threads={faiss.omp_get_max_threads()}"
        done = subprocess.run([*command, *sizes, threads], check=True, stdout=subprocess.PIPE, text=True)
        measured[name] = json.loads(done.stdout)
    seconds = {name: found["seconds"] for name, found in measured.items()}
    show(f"{query_count:,} x {candidate_count:,} x {DIMENSION}, the index built before", seconds)
    for name, found in measured.items():
        rate = query_count / statistics.median(found["seconds"])
        print(
            f"{name}: {rate:.0f} queries/s; peak memory {found['peak']:.0f} MB, "
            f"{found['peak'] - found['vectors']:.0f} MB more than the vectors"
        )
    ratio = statistics.median(seconds[FLAT]) / statistics.median(seconds["harness faiss"])
    name = f"retrieval, {query_count:,} x {candidate_count:,}"
    record(f"{name}: queries/s of faiss", ratio, 0.8, least=True)
    own = measured["harness faiss"]
    record(f"{name}: memory above the vectors", own["peak"] - own["vectors"], 500, unit=" MB")


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--candidates", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--threads", type=int, default=int(os.environ.get("OMP_NUM_THREADS", "1")))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="*", default=[], help="of squares, in place of ours")
    parser.add_argument("--contender", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    faiss.omp_set_num_threads(given.threads)
    if given.contender is not None:
        run_contender(given.contender, given.candidates, given.queries, given.rounds)
        return
    for questions, sentences in [(size, size) for size in given.sizes] or SIZES:
        compare(questions, sentences, given.rounds)
    compare_on_many_candidates(given.candidates, given.queries, min(given.rounds, 3))


if __name__ == "__main__":
    main()
