"""Scores probes on a stream of test states, and records their outcome, the predictions of every seed, in the results.

Nothing of a sentence is kept but counts.
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
from harness.models import FloatArray, WordCoverage
from harness.statistics import seed_of
from harness_probing.fitting import FittedProbes, best_layer
from harness_probing.problem import Numbers, ProbeItem
from harness_probing.scores import METRICS, ClusterTally, Counts, confusion_counts, confusion_scores
from harness_probing.states import checked_states, coverage_of

Predictions = Mapping[int, Numbers]
"""Layer number to class numbers, shape (seeds, positions), for the layers that are reported."""
Items = Sequence[tuple[str, ProbeItem]]
"""With the names of their problems."""
Covered = tuple[ProbeItem, WordCoverage]
SEEN, UNSEEN = 0, 1


@dataclass(slots=True, kw_only=True)
class TestCounts:
    """The counts of the test items of one problem."""

    __test__ = False  # Not a test class, whatever its name.

    confusion: Counts
    """Shape (seeds, tasks, layers, gold, predicted)."""
    mix: Counts | None
    """Shape (gold, predicted)."""
    baselines: dict[str, Counts]
    """Shape (gold, predicted) each."""
    clusters: ClusterTally


class Evaluator:
    """Applies all probes to test sentences."""

    def __init__(self, probes: Sequence[FittedProbes], *, layers: Sequence[int], shift: int = 0) -> None:
        """Take the probes of all problems, the layers of the states that will come, and the first vector's position."""
        self.probes = {fitted.problem.name: fitted for fitted in probes}
        self.layers, self.shift = tuple(layers), shift
        self.counts = {name: _no_counts(fitted) for name, fitted in self.probes.items()}
        self._wide = {name: _wide(fitted) for name, fitted in self.probes.items()}

    def add(self, block: Sequence[tuple[FloatArray, Items]]) -> list[tuple[str, ProbeItem, Predictions]]:
        """Count the items of sentences, each given with its states of shape (layers, vectors, dimension).

        Returns the predictions of every item whose problem has probes; none for an item without positions. Raises
        `ContractError` for states that are not finite or of the wrong shape.
        """
        block = [(states, items) for states, items in block if items]
        if not block:
            return []
        for states, items in block:
            checked_states(states, len(self.layers), states.shape[1], f"test sentence {items[0][1].id!r}")
        stacked = np.concatenate([states for states, _ in block], axis=1, dtype=np.float32)
        starts = np.cumsum([0, *(states.shape[1] for states, _ in block)])
        outcomes: list[tuple[str, ProbeItem, Predictions]] = []
        for name, fitted in self.probes.items():
            placed = [
                (item, start - self.shift)
                for (_, items), start in zip(block, starts.tolist(), strict=False)
                for problem, item in items
                if problem == name
            ]
            rows = [start + position for item, start in placed for position in item.positions]
            predicted = self._counted(fitted, stacked, [item for item, _ in placed], rows) if rows else {}
            end = 0
            for item, _ in placed:
                span = slice(end, end := end + len(item.positions))
                outcomes.append((name, item, {layer: values[:, span] for layer, values in predicted.items()}))
        return outcomes

    def _counted(
        self, own: FittedProbes, states: FloatArray, items: Sequence[ProbeItem], rows: Sequence[int]
    ) -> Predictions:
        """Count the predictions of items whose vectors are in these rows; return those of layers that are reported."""
        counts, classes = self.counts[own.problem.name], len(own.problem.classes)
        gold: Numbers = np.concatenate([item.classes or (0,) * len(item.positions) for item in items]).astype(
            np.int64
        )
        types = [word for item in items for word in item.types]
        chosen = torch.as_tensor(states[:, rows], device=own.weight.device)
        predicted = self._predicted(own, chosen, gold, types)
        counts.clusters.add([item.cluster for item in items for _ in item.positions], gold, predicted)
        if own.mix is not None and counts.mix is not None:
            index = [self.layers.index(layer) for layer in own.layers]
            counts.mix += confusion_counts(gold, own.mix.predict(chosen[index]).cpu().numpy(), classes)
        for name, confusion in counts.baselines.items():
            guessed = own.baselines.predict(name, types, len(gold))
            np.add(confusion, confusion_counts(gold, guessed, classes), out=confusion)
        return predicted

    def _predicted(
        self, own: FittedProbes, states: torch.Tensor, gold: Numbers, types: Sequence[str]
    ) -> Predictions:
        counts = self.counts[own.problem.name]
        seeds, tasks, _, _, classes = own.weight.shape
        every = [np.broadcast_to(gold, (seeds, len(gold)))] + (
            [own.controls(types)] if own.controlled else []
        )
        expected = np.stack(every, axis=1)
        weight, bias = self._wide[own.problem.name]
        predictions = {}
        for index, layer in enumerate(own.layers):
            logits = torch.addmm(bias[index], states[self.layers.index(layer)], weight[index])
            predicted = logits.view(-1, seeds, tasks, classes).argmax(dim=-1).permute(1, 2, 0).cpu().numpy()
            counts.confusion[:, :, index] += confusion_counts(expected, predicted, classes)
            if layer in counts.clusters.layers:
                predictions[layer] = predicted[:, 0]
        return predictions


def _no_counts(own: FittedProbes) -> TestCounts:
    seeds, tasks, layers, _, classes = own.weight.shape
    last = own.layers[-1]
    # The published view takes the layer that is best on test, which is not known before the end.
    counted_layers = own.layers if own.settings.choose_on == "test" else tuple(sorted({own.best_layer, last}))
    return TestCounts(
        confusion=np.zeros((seeds, tasks, layers, classes, classes), dtype=np.int64),
        mix=None if own.mix is None else np.zeros((classes, classes), dtype=np.int64),
        baselines={name: np.zeros((classes, classes), dtype=np.int64) for name in own.baselines.names()},
        clusters=ClusterTally(layers=counted_layers, seeds=seeds, classes=classes),
    )


def _wide(own: FittedProbes) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the weights and biases of all probes of a layer side by side: the last axis is probes times classes."""
    seeds, tasks, layers, dimension, classes = own.weight.shape
    columns = seeds * tasks * classes
    weight = own.weight.permute(2, 3, 0, 1, 4).reshape(layers, dimension, columns).contiguous()
    return weight, own.bias.permute(2, 0, 1, 3).reshape(layers, columns).contiguous()


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
