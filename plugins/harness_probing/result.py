"""Outcome of probing for a problem: the predictions of every seed, and its record in the results as plain JSON.

Scores by layer, the best layer, intervals, controls, code lengths, baselines; scores are fractions in [0, 1], code
lengths bits.
"""

from __future__ import annotations

import importlib.metadata
import math
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from harness import ContractError, DataError
from harness.models import WordCoverage
from harness.statistics import seed_of
from harness_probing.evaluation import Evaluator, Predictions, TestCounts
from harness_probing.fitting import FittedProbes, best_layer
from harness_probing.problem import ProbeItem
from harness_probing.scores import METRICS, Counts, confusion_scores
from harness_probing.sentences import coverage_of

Covered = tuple[ProbeItem, WordCoverage]
SEEN, UNSEEN = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOutcome:
    """The predictions of all test items at the headline layer, and the details of the first seed's cell."""

    places: Mapping[str, tuple[int, int]] = field(repr=False)
    """Item -> where its classes begin and end."""
    predicted: Sequence[array[int]] = field(repr=False)
    """Class numbers, one array a seed."""
    details: Mapping[str, Any] | None
    """None where the test items have no labels."""

    def classes(self, identifier: str, seed: int) -> Sequence[int]:
        """Return the class numbers of one item by the probe of a seed (its number); raises `ContractError`."""
        if identifier not in self.places:
            raise ContractError(f"The item {identifier!r} was not among those that were probed.")
        start, stop = self.places[identifier]
        return self.predicted[seed][start:stop]


class OutcomeRecorder:
    """Takes what the probes of one problem say of the test items, item by item."""

    def __init__(
        self,
        *,
        probes: FittedProbes,
        train: Sequence[ProbeItem],
        coverage: Mapping[str, Sequence[Covered]],
        train_language: str,
    ) -> None:
        self._probes = probes
        self._level = probes.problem.level
        self._coverage = {split: coverage_of(self._level, covered) for split, covered in coverage.items()}
        self._coverage["test"] = Counter()
        self._train = {
            "language": train_language,
            "sentences": len({item.words for item in train}),
            "items": sum(len(item.positions) for item in train),
        }
        self._known = {word for item in train for word in item.types}
        self._types: set[str] = set()
        settings = probes.settings
        self._layers = probes.layers if settings.choose_on == "test" else (probes.best_layer,)
        self._predicted = {layer: [array("H") for _ in settings.seeds] for layer in self._layers}
        self._places: dict[str, tuple[int, int]] = {}
        size = len(probes.problem.classes)
        self._confusion = {
            layer: np.zeros((2, len(settings.seeds), size, size), np.int64) for layer in self._layers
        }
        self._labelled = True

    def cover(self, item: ProbeItem, own: WordCoverage) -> None:
        """Count what of a test item the states do not show."""
        self._coverage["test"].update(coverage_of(self._level, [(item, own)]))

    def add(self, item: ProbeItem, predictions: Predictions) -> None:
        """Keep the predictions of one test item; none for one without a vector."""
        self._labelled = self._labelled and item.classes is not None
        start = len(self._predicted[self._layers[0]][0])
        self._places[item.id] = (start, start + len(item.positions))
        if not predictions:
            return
        unseen = np.array([word not in self._known for word in item.types], dtype=np.int64)
        self._types.update(item.types)
        for layer in self._layers:
            for seed, classes in enumerate(predictions[layer]):
                self._predicted[layer][seed].extend(classes.tolist())
                if item.classes is not None:
                    np.add.at(self._confusion[layer][:, seed], (unseen, np.asarray(item.classes), classes), 1)

    def outcome(self, evaluator: Evaluator, random: Evaluator | None, note: str) -> ProbeOutcome:
        """Return the outcome, after the last item; raises `DataError` for a problem without test items."""
        probes, name = self._probes, self._probes.problem.name
        counts = evaluator.counts[name]
        layer = probes.best_layer
        details = None
        if self._labelled:
            result = problem_result(probes, counts)
            layer = result["headline"]["layer"]
            details = self._details(result, layer, random, note)
        elif probes.settings.choose_on == "test":
            # Without labels there is no best layer on test.
            layer = best_layer(
                probes.layers, confusion_scores(probes.dev_confusion[:, 0])["weighted_f1"].mean(axis=0)
            )
        return ProbeOutcome(places=self._places, predicted=self._predicted[layer], details=details)

    def _details(
        self, result: Mapping[str, Any], layer: int, random: Evaluator | None, note: str
    ) -> Mapping[str, Any]:
        settings = self._probes.settings
        details: Mapping[str, Any] = _plain(
            {
                "schema": 1,
                "preset": settings.name,
                "settings": settings.to_json(),
                "versions": {
                    "torch": torch.__version__,
                    "numpy": np.__version__,
                    "harness": importlib.metadata.version("multilingual-harness"),
                },
                "coverage": {split: dict(counts) for split, counts in self._coverage.items()},
                "train": self._train,
                "level": self._level,
                "problem": result,
                "random_encoder": self._random(random),
                "random_encoder_note": note,
                "unseen_types": self._unseen(layer) if self._level == "word" else None,
            }
        )
        return details

    def _random(self, random: Evaluator | None) -> dict[str, Any] | None:
        name = self._probes.problem.name
        if random is None or name not in random.probes:
            return None
        result = problem_result(random.probes[name], random.counts[name])
        layers = [{"layer": row["layer"], "test": row["test"]} for row in result["layers"]]
        seed = random.probes[name].settings.seeds[0]
        return {"seed": seed, "layers": layers, "headline": result["headline"]}

    def _unseen(self, layer: int) -> dict[str, Any]:
        confusion: Counts = self._confusion[layer]
        scores = [confusion_scores(confusion[subset])["weighted_f1"].mean() for subset in (SEEN, UNSEEN)]
        items = confusion[:, 0].sum(axis=(1, 2)).tolist()
        return {
            "types": len(self._types),
            "unseen": len(self._types - self._known),
            "items": sum(items),
            "unseen_items": items[UNSEEN],
            "weighted_f1_seen": float(scores[SEEN]),
            "weighted_f1_unseen": float(scores[UNSEEN]),
        }


def _plain(value: Any) -> Any:
    """Return plain JSON, in which what is not a number is null."""
    if isinstance(value, Mapping):
        return {key: _plain(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(child) for child in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# The result of a problem -------------------------------------------------------------------------------


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
        "baselines": {name: _scores(confusion) for name, confusion in counts.baselines.items()},
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
    row: dict[str, Any] = {"layer": layer, "clusters": len(counts.clusters)}
    intervals = {}
    if layer in counts.clusters.layers:
        seed = seed_of("probing", own.problem.name, str(layer))
        intervals = counts.clusters.intervals(layer, seed=seed)
    for name in METRICS:
        row[name] = _over_seeds(scores[name])
        if name in intervals:
            row[name] |= intervals[name].to_json()
    return row


def _mix(own: FittedProbes, counts: TestCounts) -> dict[str, Any] | None:
    if own.mix is None or counts.mix is None:
        return None
    return {
        "weights": {str(layer): share for layer, share in zip(own.layers, own.mix.shares, strict=True)},
        "gamma": own.mix.gamma,
        "center_of_gravity": own.mix.center_of_gravity,
        **_scores(counts.mix),
    }


def _scores(confusion: Counts) -> dict[str, float]:
    return {name: float(value) for name, value in confusion_scores(confusion).items()}


def _over_seeds(values: Sequence[float] | Any) -> dict[str, float | None]:
    """Return the mean over seeds, and their standard deviation where there are several."""
    scores = np.asarray(values, dtype=np.float64)
    return {"value": float(scores.mean()), "sd": float(scores.std(ddof=1)) if len(scores) > 1 else None}
