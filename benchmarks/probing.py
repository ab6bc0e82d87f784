"""Probes of all layers against one scikit-learn logistic regression per layer, and the memory of a streamed test.

140,000 vectors of 768 features in 13 layers with 17 classes, synthetic, in half precision on disk: at most a quarter
of the CPU time of scikit-learn, which is measured on a few hard layers and multiplied, at equal or better weighted F1
on those. With --memory: 1.1 million test vectors (the size of CG-HDTB's test) from a synthetic model, by all default
probes: under 4 GB, and independent of the number of vectors.

    python -m benchmarks.probing [--tokens N] [--peer-layers N] [--iterations N] [--memory]
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.preprocessing import StandardScaler

from benchmarks.measuring import record
from harness.models.requests import FloatArray
from harness_probing.evaluation import Evaluator, problem_result
from harness_probing.fitting import FittedProbes, SplitTargets, fit_probes
from harness_probing.problem import ProbeProblem, Targets
from harness_probing.settings import ProbeSettings
from harness_probing.states import StateCache, States
from tests.probing.made_up import MemoryStates, SentenceTargets, TestSentence, add_block, gather

LAYERS = tuple(range(13))
DIMENSION, CLASSES, RANK = 768, 17, 64
TOKENS, TEST_TOKENS = 140_000, 1_123_964
WORDS = 21
"""Of a sentence."""
PROBLEM = ProbeProblem(name="pos", classes=tuple(f"class {number}" for number in range(CLASSES)))
SHARES = 1 / np.arange(1, CLASSES + 1)
VOCABULARY = 20_000
LIMIT, MEMORY_LIMIT_GB = 0.25, 4.0
_KIB = 1024


class SyntheticModel:
    """States with a few strong directions, as encoders have, of which some separate the classes.

    They are the same for the same seed. The middle layers are the easiest.
    """

    def __init__(self, seed: int, tokens: int) -> None:
        self._seed = seed
        fixed = np.random.default_rng(0)
        self._means = fixed.normal(size=(CLASSES, RANK)).astype(np.float32)
        self._directions = fixed.normal(size=(len(LAYERS), RANK, DIMENSION)).astype(np.float32)
        self._offset = (3 * fixed.normal(size=DIMENSION)).astype(np.float32)
        rng = np.random.default_rng([seed, 1])
        self.counts = (WORDS,) * (tokens // WORDS)
        size = (len(self.counts), WORDS)
        self.classes = rng.choice(CLASSES, size=size, p=SHARES / SHARES.sum())
        self.types = rng.integers(0, VOCABULARY, size=size)

    def targets(self) -> Targets:
        """Return the classes and types of all words."""
        return gather(PROBLEM, [self.sentence_targets(n) for n in range(len(self.counts))], self.counts)

    def sentence_targets(self, number: int) -> SentenceTargets:
        """Return the classes and types of one sentence."""
        return SentenceTargets(
            vectors=range(WORDS),
            classes=self.classes[number].tolist(),
            types=[f"w{word}" for word in self.types[number].tolist()],
        )

    def produce(self, sentences: Sequence[int]) -> Iterator[tuple[int, FloatArray]]:
        """Yield the states of sentences."""
        for number in sentences:
            rng = np.random.default_rng([self._seed, 2, number])
            states = rng.standard_normal((len(LAYERS), WORDS, DIMENSION), dtype=np.float32)
            inner = rng.standard_normal((len(LAYERS), WORDS, RANK), dtype=np.float32)
            for layer in LAYERS:
                inner[layer] += (0.22 + 0.02 * (6 - abs(layer - 6))) * self._means[self.classes[number]]
            states += inner @ self._directions / 4 + self._offset
            yield number, states


def _split(model: SyntheticModel, cache: StateCache, name: str) -> tuple[States, Targets]:
    states = cache.states(name, layers=LAYERS, counts=model.counts, produce=model.produce)
    return states, model.targets()


def _weighted_f1(own: FittedProbes, layer: int, states: States, targets: Targets) -> float:
    x = states.read(layer, targets.vectors)
    index = own.layers.index(layer)
    logits = x @ own.weight[0, 0, index].numpy() + own.bias[0, 0, index].numpy()
    return float(f1_score(targets.classes, logits.argmax(axis=-1), average="weighted"))


def _peer(
    train: tuple[States, Targets], test: tuple[States, Targets], layer: int, iterations: int
) -> tuple[float, float]:
    """Return the CPU seconds of scikit-learn on one layer, reading and standardizing included, and its weighted F1."""
    started = time.process_time()
    scaler = StandardScaler()
    x = scaler.fit_transform(train[0].read(layer, train[1].vectors))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(max_iter=iterations).fit(x, train[1].classes)
    seconds = time.process_time() - started
    predicted = model.predict(scaler.transform(test[0].read(layer, test[1].vectors)))
    print(f"  scikit-learn, layer {layer}: {seconds:.1f} s, {int(model.n_iter_[0])} iterations")
    return seconds, float(f1_score(test[1].classes, predicted, average="weighted"))


def compare_with_scikit_learn(tokens: int, peer_layers: int, iterations: int) -> None:
    """Print both times and scores."""
    with tempfile.TemporaryDirectory() as folder:
        cache = StateCache(Path(folder), announce=print)
        train, dev, test = (
            _split(SyntheticModel(seed, max(tokens // share, 100 * WORDS)), cache, name)
            for seed, share, name in ((1, 1, "train"), (2, 10, "dev"), (3, 10, "test"))
        )
        targets = SplitTargets(train=train[1], dev=dev[1])
        plain = ProbeSettings(seeds=(0,), control=False, fractions=(), mix=False)
        seconds = {}
        for name, settings in (("one seed", plain), ("one seed, control task", replace(plain, control=True))):
            started = time.process_time()
            fitted = fit_probes(train[0], dev[0], targets, settings)
            seconds[name] = time.process_time() - started
            epochs = fitted.epochs[0, 0].tolist()
            print(
                f"  harness, {len(LAYERS)} layers, {name}: {seconds[name]:.1f} s, best epochs {epochs}",
                flush=True,
            )
        hard = sorted(LAYERS, key=lambda layer: -abs(layer - 6))[:peer_layers]
        peers = {layer: _peer(train, test, layer, iterations) for layer in hard}
        theirs = sum(took for took, _ in peers.values()) / len(peers) * len(LAYERS)
        gains = [_weighted_f1(fitted, layer, *test) - score for layer, (_, score) in peers.items()]
        for (layer, (_, score)), gain in zip(peers.items(), gains, strict=True):
            print(f"  weighted F1 of layer {layer}: harness {score + gain:.4f}, scikit-learn {score:.4f}")
        print(f"scikit-learn, {len(LAYERS)} layers: {theirs:.1f} s, from {len(peers)} layer(s) measured")
        record("probes of all layers / scikit-learn's CPU time", seconds["one seed"] / theirs, LIMIT)
        record("... with a control task", seconds["one seed, control task"] / theirs)
        record("... gain in weighted F1, the smallest", min(gains), 0, least=True)


def _test_sentences(tokens: int) -> Iterator[TestSentence]:
    """Yield sentences whose states are slices of a block of random numbers."""
    rng = np.random.default_rng(5)
    block = rng.standard_normal((len(LAYERS), 4_096, DIMENSION), dtype=np.float32)
    sizes = [WORDS] * (tokens // WORDS) + [tokens % WORDS] * (tokens % WORDS > 0)
    for number, size in enumerate(sizes):
        start = int(rng.integers(0, 4_096 - size))
        types = [f"w{word}" for word in rng.integers(0, VOCABULARY, size=size).tolist()]
        classes = rng.integers(0, CLASSES, size=size).tolist()
        own = SentenceTargets(vectors=range(size), classes=classes, types=types)
        yield TestSentence(
            id=str(number),
            cluster=str(number // 4),
            states=block[:, start : start + size],
            targets={PROBLEM.name: own},
        )


def stream_test(tokens: int) -> None:
    """Evaluate all default probes on a streamed test; print what it took."""
    rng = np.random.default_rng(4)
    counts = (WORDS,) * 20
    array = rng.standard_normal((len(LAYERS), sum(counts), DIMENSION), dtype=np.float32)
    own = [
        SentenceTargets(
            vectors=range(WORDS), classes=[n % CLASSES for n in range(WORDS)], types=["w"] * WORDS
        )
        for _ in counts
    ]
    targets = gather(PROBLEM, own, counts)
    states = MemoryStates(layers=LAYERS, array=array)
    settings = ProbeSettings(max_epochs=1, fractions=())
    fitted = fit_probes(states, states, SplitTargets(train=targets, dev=targets), settings)
    evaluator = Evaluator([fitted], layers=LAYERS)
    started = time.perf_counter()
    sentences = iter(_test_sentences(tokens))
    while block := list(itertools.islice(sentences, 50)):
        add_block(evaluator, block)
    result = problem_result(fitted, evaluator.counts[PROBLEM.name])
    seconds = time.perf_counter() - started
    assert result["items"]["test"] == tokens
    peak = (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else _KIB) / 1e9
    )
    print(f"{tokens} {peak:.3f} {seconds:.1f}")


def measure_memory(tokens: int) -> None:
    """Stream a tenth and all of the test in processes of their own."""
    peaks = []
    for size in (tokens // 10, tokens):
        command = [sys.executable, "-m", "benchmarks.probing", "--stream", str(size)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
        _, peak, seconds = done.stdout.split()
        peaks.append(float(peak))
        print(f"{size:>9,} test vectors: {peak} GB at the peak, {seconds} s", flush=True)
    record("probes: memory of a streamed test", peaks[1], MEMORY_LIMIT_GB, unit=" GB")
    record("... / a test of a tenth", peaks[1] / peaks[0], 1.25)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tokens", type=int, help="train vectors of the probes, test vectors of the stream")
    parser.add_argument("--peer-layers", type=int, default=2, help="layers that scikit-learn is measured on")
    parser.add_argument(
        "--iterations", type=int, default=100, help="of scikit-learn at the most: its default"
    )
    parser.add_argument("--stream", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.stream is not None:
        stream_test(given.stream)
        return
    measure_memory(given.tokens or TEST_TOKENS)
    compare_with_scikit_learn(given.tokens or TOKENS, given.peer_layers, given.iterations)


if __name__ == "__main__":
    main()
