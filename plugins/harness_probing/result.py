"""What probing found, as plain JSON: scores by layer, the best layer, intervals, controls, code lengths, baselines."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch

from harness import DataError
from harness.statistics import seed_of
from harness_probing.baselines import MODEL_BASELINES
from harness_probing.evaluation import Evaluator, TestCounts
from harness_probing.fitting import FittedProbes, best_layer
from harness_probing.mix import center_of_gravity
from harness_probing.scores import METRICS, Counts, confusion_scores
from harness_probing.settings import ProbeSettings

__all__ = ["Coverage", "ProbeResult", "library_versions", "probe_result", "problem_result"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What of a split did not reach the probes; the caller, who tokenises, counts it."""

    truncated_sentences: int = 0
    """Sentences of which the model did not read the end, or only a part of a labelled word."""
    split_sentences: int = 0
    """Sentences that the model read in several parts."""
    empty_words: int = 0
    """Words that the tokenizer turned into nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """The results of all problems; `to_json` returns what is written."""

    settings: ProbeSettings
    problems: Mapping[str, Mapping[str, Any]]
    coverage: Mapping[str, Coverage]
    """By split."""
    versions: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON: scores are fractions in [0, 1], code lengths bits."""
        return {
            "schema": 1,
            "settings": self.settings.to_json(),
            "versions": dict(self.versions),
            "coverage": {split: asdict(own) for split, own in self.coverage.items()},
            "model_baselines": list(MODEL_BASELINES),
            "problems": {name: dict(own) for name, own in self.problems.items()},
        }


def probe_result(evaluator: Evaluator, *, coverage: Mapping[str, Coverage] | None = None) -> ProbeResult:
    """Return the results of what an evaluator has counted; raises `DataError` for a problem without test items."""
    problems = {name: problem_result(own, evaluator.counts[name]) for name, own in evaluator.probes.items()}
    settings = next(iter(evaluator.probes.values())).settings
    return ProbeResult(
        settings=settings, problems=problems, coverage=coverage or {}, versions=library_versions()
    )


def library_versions() -> Mapping[str, str]:
    """Return the versions of what probes are trained with."""
    return {"torch": torch.__version__, "numpy": np.__version__, "harness": _own_version()}


def _own_version() -> str:
    try:
        return importlib.metadata.version("multilingual-harness")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def problem_result(own: FittedProbes, counts: TestCounts) -> dict[str, Any]:
    """Return the results of one problem as plain JSON; raises `DataError` where it has no test items."""
    gold = counts.confusion[0, 0, 0].sum(axis=1)
    if not gold.sum():
        raise DataError(f"The problem {own.problem.name!r} has no labelled items in test.")
    weighted = confusion_scores(counts.confusion[:, 0])["weighted_f1"].mean(axis=0)
    on_test = best_layer(own.layers, weighted)
    chosen = {"dev": own.best_layer, "test": on_test}[own.settings.choose_on]
    return {
        "classes": list(own.problem.classes),
        "level": own.problem.level,
        "items": _items(own, gold),
        "layers": [_layer(own, counts, index) for index in range(len(own.layers))],
        "headline": {"chosen_on": own.settings.choose_on, **_at(own, counts, chosen)},
        "best_on_dev": {"chosen_on": "dev", **_at(own, counts, own.best_layer)},
        "best_on_test": {"chosen_on": "test", **_at(own, counts, on_test)},
        "last": _at(own, counts, own.layers[-1]),
        "mix": _mix(own, counts),
        "baselines": {name: _plain(confusion) for name, confusion in counts.baselines.items()},
        "majority_class": own.problem.classes[own.baselines.majority],
    }


def _items(own: FittedProbes, gold: Counts) -> dict[str, Any]:
    """Return how many items the splits have, and which classes are not in train: those are never predicted."""
    names = np.array(own.problem.classes)
    missing = own.train_counts == 0
    return {
        "train": int(own.train_counts.sum()),
        "dev": int(own.dev_counts.sum()),
        "test": int(gold.sum()),
        "missing_in_train": names[missing].tolist(),
        "dev_items_of_missing_classes": int(own.dev_counts[missing].sum()),
        "test_items_of_missing_classes": int(gold[missing].sum()),
    }


def _layer(own: FittedProbes, counts: TestCounts, index: int) -> dict[str, Any]:
    """Return one point of the layer curve."""
    test, dev = (
        confusion_scores(counts.confusion[:, :, index]),
        confusion_scores(own.dev_confusion[:, :, index]),
    )
    row: dict[str, Any] = {
        "layer": own.layers[index],
        "test": {name: _over_seeds(test[name][:, 0]) for name in METRICS},
        "dev": {name: _over_seeds(dev[name][:, 0]) for name in METRICS},
        "epochs": own.epochs[:, 0, index].tolist(),
    }
    if own.controlled:
        row["control"] = {name: _over_seeds(test[name][:, 1]) for name in METRICS}
        row["selectivity"] = {name: _over_seeds(test[name][:, 0] - test[name][:, 1]) for name in METRICS}
    if own.code is not None:
        bits, compression = own.code.bits[:, index].tolist(), own.code.compression()[:, index].tolist()
        row["code"] = {"bits": bits[0], "compression": compression[0], "uniform_bits": own.code.uniform_bits}
        if own.controlled:
            row["code"] |= {"control_bits": bits[1], "control_compression": compression[1]}
    return row


def _at(own: FittedProbes, counts: TestCounts, layer: int) -> dict[str, Any]:
    """Return the scores of one layer, with intervals where its clusters were counted."""
    scores = confusion_scores(counts.confusion[:, 0, own.layers.index(layer)])
    found: dict[str, Any] = {"layer": layer, "clusters": len(counts.clusters)}
    intervals = {}
    if layer in counts.clusters.layers:
        seed = seed_of("probing", own.problem.name, str(layer))
        intervals = counts.clusters.intervals(layer, seed=seed)
    for name in METRICS:
        found[name] = _over_seeds(scores[name])
        if name in intervals:
            found[name] |= intervals[name].to_json()
    return found


def _mix(own: FittedProbes, counts: TestCounts) -> dict[str, Any] | None:
    if own.mix is None or counts.mix is None:
        return None
    return {
        "weights": {str(layer): share for layer, share in zip(own.layers, own.mix.shares, strict=True)},
        "gamma": own.mix.gamma,
        "center_of_gravity": center_of_gravity(own.layers, own.mix.shares),
        **_plain(counts.mix),
    }


def _plain(confusion: Counts) -> dict[str, float]:
    return {name: float(value) for name, value in confusion_scores(confusion).items()}


def _over_seeds(values: Sequence[float] | Any) -> dict[str, float | None]:
    """Return the mean over seeds, and their standard deviation where there are several."""
    found = np.asarray(values, dtype=np.float64)
    return {"value": float(found.mean()), "sd": float(found.std(ddof=1)) if len(found) > 1 else None}
