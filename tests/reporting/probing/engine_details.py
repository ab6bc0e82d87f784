"""What the probing engine says of made-up states of made-up models, in the form that the method keeps.

The separation of a layer decides how well it distinguishes the classes; treebanks without lexical help have lower ones.
``probed.json`` holds these results, since training gives other last digits on other machines:
``HARNESS_UPDATE_GOLDEN=1 python -m pytest tests/reporting/probing/test_engine_details.py`` makes it anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
import torch

from harness_probing.evaluation import Evaluator
from harness_probing.fitting import SplitTargets, fit_probes
from harness_probing.problem import ProbeProblem, Targets
from harness_probing.settings import ProbeSettings
from tests.probing.made_up import MemoryStates, SentenceTargets, TestSentence, gather, results, stream

DIMENSION = 8
CLASSES: Mapping[str, tuple[str, ...]] = {
    "vyakarana_pos": ("NOUN", "VERB", "ADJ", "ADP"),
    "vyakarana_stdp": ("1", "2", "3"),
    "vyakarana_gcm": ("Nom", "Acc", "Erg"),
}
TREEBANKS = {"original": 1.0, "cg": 0.75, "cscg": 0.5}
"""How much of the separation a treebank leaves."""
VIEWS = (
    ("vyakarana_pos", ""),
    ("vyakarana_stdp", ""),
    ("vyakarana_gcm", "full"),
    ("vyakarana_gcm", "case_only"),
)
MODELS = {"hf:first": (0.2, 0.4, 0.7, 0.9, 0.75, 0.6, 0.5), "hf:second": (0.2, 0.8, 0.6, 0.3)}
"""How far apart the classes are in each layer."""
PER_SENTENCE = 5
SETTINGS = ProbeSettings(
    seeds=(0, 1), learning_rate=1e-2, max_epochs=3, steps_per_epoch=12, fractions=(0.2, 1.0)
)


def _split(
    task: str, count: int, separation: tuple[float, ...], seed: int
) -> tuple[MemoryStates, Targets, list[TestSentence]]:
    rng = np.random.default_rng([seed, *task.encode()])
    classes = CLASSES[task]
    means = np.random.default_rng(len(classes)).normal(size=(len(classes), DIMENSION))
    problem = ProbeProblem(name=task, classes=classes)
    states, targets, sentences = [], [], []
    for number in range(count):
        own = np.minimum(rng.geometric(0.45, size=PER_SENTENCE) - 1, len(classes) - 1)
        noise = rng.normal(size=(len(separation), PER_SENTENCE, DIMENSION))
        vectors = (np.array(separation)[:, None, None] * means[own] + noise).astype(np.float32)
        # Some words say their class, others do not.
        types = tuple(f"w{label if rng.random() < 0.5 else 9}-{rng.integers(0, 20)}" for label in own)
        target = SentenceTargets(vectors=range(PER_SENTENCE), classes=own.tolist(), types=types)
        states.append(vectors)
        targets.append(target)
        sentences.append(
            TestSentence(id=f"s{number}", cluster=f"c{number // 4}", states=vectors, targets={task: target})
        )
    counts = (PER_SENTENCE,) * count
    whole = MemoryStates(layers=tuple(range(len(separation))), array=np.concatenate(states, axis=1))
    return whole, gather(problem, targets, counts), sentences


@cache
def _engine(task: str, separation: tuple[float, ...], settings: ProbeSettings) -> dict[str, Any]:
    train, train_targets, _ = _split(task, 120, separation, 1)
    dev, dev_targets, _ = _split(task, 40, separation, 2)
    _, _, test = _split(task, 60, separation, 3)
    fitted = fit_probes(train, dev, SplitTargets(train=train_targets, dev=dev_targets), settings)
    evaluator = Evaluator([fitted], layers=train.layers)
    for _ in stream(evaluator, test):
        pass
    nothing = {"truncated_sentences": 0, "split_sentences": 0, "empty_words": 0}
    return {
        "settings": settings.to_json(),
        "versions": {
            "torch": torch.__version__,
            "numpy": np.__version__,
            "harness": version("multilingual-harness"),
        },
        "coverage": {"train": nothing, "test": {**nothing, "truncated_sentences": 2}},
        "problems": results(evaluator),
    }


def make_details(
    task: str,
    separation: Sequence[float],
    *,
    settings: ProbeSettings = SETTINGS,
    random: bool = True,
) -> dict[str, Any]:
    """Return ``details.probing`` of a cell: what the engine says, in the form that the method keeps."""
    found = _engine(task, tuple(separation), settings)
    plain = replace(settings, control=False, mix=False, fractions=())
    flat = _engine(task, (0.15,) * len(separation), plain)["problems"][task]
    encoder = {
        "layers": [{"layer": entry["layer"], "test": entry["test"]} for entry in flat["layers"]],
        "headline": flat["headline"],
    }
    return {
        "schema": 1,
        "preset": settings.name,
        **{name: found[name] for name in ("settings", "versions", "coverage")},
        "train": {"language": "hi", "sentences": 120, "items": 600},
        "level": "word",
        "problem": found["problems"][task],
        "random_encoder": encoder if random else None,
        "unseen_types": {
            "types": 61,
            "unseen": 7,
            "items": 300,
            "unseen_items": 12,
            "weighted_f1_seen": 0.7312,
            "weighted_f1_unseen": 0.58,
        },
    }


def all_details() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (model task view treebank, details) of two models: three tasks, one with two inputs, on three treebanks."""
    for model, separation in MODELS.items():
        for task, inputs in VIEWS if model == "hf:first" else VIEWS[:2]:
            for treebank, share in TREEBANKS.items():
                part = share * (0.9 if inputs == "case_only" else 1.0)
                details = make_details(task, [round(part * one, 6) for one in separation])
                yield f"{model} {task} {inputs} {treebank}", details
