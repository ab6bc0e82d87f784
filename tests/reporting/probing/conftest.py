"""Runs with probes whose numbers come from the probing engine, on made-up states of made-up models.

Every layer tells the classes apart as well as its separation says; treebanks without lexical help have lower ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.aggregation import aggregate_tasks
from harness.results import Run, RunFolder
from harness_probing.evaluation import Evaluator, TestSentence
from harness_probing.fitting import SplitTargets, fit_probes
from harness_probing.problem import ProbeProblem, SentenceTargets, Targets
from harness_probing.result import Coverage, probe_result
from harness_probing.settings import ProbeSettings
from harness_probing.states import MemoryStates

WriteProbes = Callable[..., Run]

DIMENSION = 8
CLASSES: Mapping[str, tuple[str, ...]] = {
    "vyakarana_pos": ("NOUN", "VERB", "ADJ", "ADP"),
    "vyakarana_stdp": ("1", "2", "3"),
    "vyakarana_gcm": ("Nom", "Acc", "Erg"),
}
TREEBANKS = {"original": 1.0, "cg": 0.75, "cscg": 0.5}
"""How much of the separation a treebank leaves."""
MODELS = {"hf:first": (0.2, 0.4, 0.7, 0.9, 0.75, 0.6, 0.5), "hf:second": (0.2, 0.8, 0.6, 0.3)}
"""How far apart the classes are in each layer."""
VARIANTS = ("org1", "org2", "org3", "org4")
PER_SENTENCE = 5
SETTINGS = ProbeSettings(seeds=(0, 1), learning_rate=1e-2, max_epochs=4, fractions=(0.1, 0.5, 1.0))


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
    whole = MemoryStates(
        layers=tuple(range(len(separation))), counts=counts, array=np.concatenate(states, axis=1)
    )
    return whole, Targets.gather(problem, targets, counts), sentences


@cache
def _engine(task: str, separation: tuple[float, ...], settings: ProbeSettings) -> dict[str, Any]:
    train, train_targets, _ = _split(task, 120, separation, 1)
    dev, dev_targets, _ = _split(task, 40, separation, 2)
    _, _, test = _split(task, 60, separation, 3)
    fitted = fit_probes(train, dev, [SplitTargets(train=train_targets, dev=dev_targets)], settings)
    evaluator = Evaluator(fitted, layers=train.layers)
    for _ in evaluator.stream(test):
        pass
    coverage = {"train": Coverage(), "test": Coverage(truncated_sentences=2)}
    return probe_result(evaluator, coverage=coverage).to_json()


def make_details(
    task: str,
    separation: Sequence[float],
    *,
    settings: ProbeSettings = SETTINGS,
    random: bool = True,
) -> dict[str, Any]:
    """Return ``details.probing`` of a cell: what the engine says, in the form that the method keeps."""
    found = _engine(task, tuple(separation), settings)
    plain = ProbeSettings(**{**_plain(settings), "control": False, "mix": False, "fractions": ()})
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


def _plain(settings: ProbeSettings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in ProbeSettings.__dataclass_fields__}


def make_cells(
    task: str, view: Mapping[str, str], details: Mapping[str, Any], *, method: str = "probe", **fields: Any
) -> list[dict[str, Any]]:
    """Return the cells of all seeds; the first one holds the details."""
    best = details["problem"]["headline"]["weighted_f1"]
    cells = []
    for number, seed in enumerate(details["settings"]["seeds"]):
        score: dict[str, Any] = {"value": best["value"], "se": best["se"], "ci": best["ci"], "ci_method": "b"}
        if view.get("treebank", "original") != "original":
            score["groups"] = {
                name: {"value": best["value"] - 0.01 * place - 0.002 * number, "n": 75}
                for place, name in enumerate(VARIANTS)
            }
        cells.append(
            {
                "task": task,
                "version": 1,
                "language": "hi",
                "split": "test",
                "stands_in": False,
                "protocol": "frozen",
                "fit": "none",
                "method": method,
                "view": dict(view),
                "seed": seed,
                "prompt": None,
                "digest": f"{number:012d}",
                "data": {"origin": "local", "revision": None, "pinned": True, "note": "", "digest": "d" * 64,
                         "files": "test.conllu"},
                "n": 300,
                "size": 300,
                "status": "ok",
                "reason": "",
                "metrics": {"weighted_f1": score},
                "truncated": 0,
                "unparsed": 0,
                "seconds": 2.0,
                "details": {"probing": details} if number == 0 else {},
                **fields,
            }
        )  # fmt: skip
    return cells


def vyakarana_cells(model: str) -> list[dict[str, Any]]:
    """Return the cells of three tasks, one of them with two inputs, on three treebanks."""
    tasks = [("vyakarana_pos", {}), ("vyakarana_stdp", {})]
    tasks += [("vyakarana_gcm", {"inputs": inputs}) for inputs in ("full", "case_only")]
    cells: list[dict[str, Any]] = []
    for task, view in tasks:
        for treebank, share in TREEBANKS.items():
            part = share * (0.9 if view.get("inputs") == "case_only" else 1.0)
            details = make_details(task, [part * one for one in MODELS[model]])
            cells += make_cells(task, {**view, "treebank": treebank}, details)
    return cells


@pytest.fixture
def write_probes(tmp_path: Path) -> WriteProbes:
    """Return a function that writes a run of cells."""
    numbers = iter(range(100))

    def write(*cells: dict[str, Any], model: str = "hf:first", data: str = "local") -> Run:
        folder = RunFolder(tmp_path / f"run-{next(numbers)}")
        folder.create()
        specs = {
            task: {
                "kind": "token_tagging",
                "metrics": ["weighted_f1"],
                "headline": ["weighted_f1"],
                "metric_options": {},
                "labels": list(CLASSES.get(task, ())),
                "parallel": False,
                "source": "hi",
                "axes": sorted(next(cell["view"] for cell in cells if cell["task"] == task)),
                "chance": None,
                "languages": {code: ["Indo-European", "Deva"] for code in ("hi", "mr")},
            }
            for task in dict.fromkeys(cell["task"] for cell in cells)
        }
        folder.write_manifest(
            {"model": model, "tasks": specs, "suites": [], "published": [], "command": ["harness", "eval"]}
        )
        folder.write_results(
            {
                "schema": 1,
                "run": {"id": "r", "data": data, "created": "2026-01-01", "harness": "0.1.0", "seconds": 1.0},
                "model": {"adapter": "hf", "ref": model},
                "fits": {},
                "notes": [],
                "cells": list(cells),
                "tasks": aggregate_tasks(cells, specs),
                "suites": [],
            }
        )
        return Run(folder.path)

    return write


@pytest.fixture
def vyakarana(write_probes: WriteProbes) -> Run:
    """A run of the first model on the whole suite."""
    return write_probes(*vyakarana_cells("hf:first"))


@pytest.fixture
def other_vyakarana(write_probes: WriteProbes) -> Run:
    """A run of a model with half the layers."""
    return write_probes(*vyakarana_cells("hf:second"), model="hf:second")
