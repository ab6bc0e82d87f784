from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from harness.models.requests import FloatArray
from harness_probing.fitting import SplitTargets
from harness_probing.problem import ProbeProblem, Targets
from tests.probing.made_up import MemoryStates, SentenceTargets, TestSentence, gather

CLASSES = ("NOUN", "VERB", "ADJ", "ADP")
LAYERS = (0, 1, 2)
DIMENSION = 12
SEPARATION = (0.2, 1.6, 0.8)
"""How far apart the classes are in each layer: layer 1 knows them best."""


@dataclass(frozen=True, kw_only=True)
class Split:
    """Made-up sentences with their states and targets."""

    states: MemoryStates
    targets: Targets
    sentences: list[TestSentence]


MakeSplit = Callable[..., Split]


def _states(classes: npt.NDArray[np.int64], means: FloatArray, rng: np.random.Generator) -> FloatArray:
    noise = rng.normal(size=(len(LAYERS), len(classes), DIMENSION))
    scaled = np.array(SEPARATION)[:, None, None] * means[classes] + noise
    # Features of very different size and place, as hidden states have them.
    return (scaled * np.linspace(0.05, 20, DIMENSION) + np.linspace(-30, 40, DIMENSION)).astype(np.float32)


def build_split(
    sentences: int, *, seed: int, classes: tuple[str, ...] = CLASSES, used: int = 4, per_sentence: int = 6
) -> Split:
    """Return sentences of words of `used` classes; types are words of their own numbers."""
    means = np.random.default_rng(99).normal(size=(8, DIMENSION)).astype(np.float32)
    rng = np.random.default_rng(seed)
    problem = ProbeProblem(name="pos", classes=classes)
    targets, tests, states = [], [], []
    for number in range(sentences):
        own = rng.integers(0, used, size=per_sentence)
        types = tuple(f"w{own_class}-{rng.integers(0, 30)}" for own_class in own)
        vectors = _states(own, means, rng)
        target = SentenceTargets(vectors=range(per_sentence), classes=own.tolist(), types=types)
        targets.append(target)
        states.append(vectors)
        by_problem: Mapping[str, SentenceTargets] = {"pos": target}
        tests.append(
            TestSentence(id=f"s{number}", cluster=f"c{number // 4}", states=vectors, targets=by_problem)
        )
    counts = (per_sentence,) * sentences
    whole = np.concatenate(states, axis=1)
    return Split(
        states=MemoryStates(layers=LAYERS, array=whole),
        targets=gather(problem, targets, counts),
        sentences=tests,
    )


@pytest.fixture
def make_split() -> MakeSplit:
    return build_split


@pytest.fixture(scope="session")
def train() -> Split:
    return build_split(150, seed=1)


@pytest.fixture(scope="session")
def dev() -> Split:
    return build_split(60, seed=2)


@pytest.fixture(scope="session")
def held_out() -> Split:
    return build_split(80, seed=3)


@pytest.fixture(scope="session")
def split_targets(train: Split, dev: Split) -> SplitTargets:
    return SplitTargets(train=train.targets, dev=dev.targets)
