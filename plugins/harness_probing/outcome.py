"""What probing found for one problem: the predictions of every seed, and what results keep of it."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from harness import ContractError
from harness.models.requests import WordCoverage
from harness_probing.conversion import ProbeItem
from harness_probing.evaluation import Evaluator, ProblemPredictions
from harness_probing.fitting import FittedProbes, best_layer
from harness_probing.result import Coverage, library_versions, problem_result
from harness_probing.scores import Counts, confusion_scores
from harness_probing.sentence_states import coverage_of

__all__ = ["Outcome", "OutcomeRecorder"]

Covered = tuple[ProbeItem, WordCoverage]
SEEN, UNSEEN = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
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
        self._coverage = {split: coverage_of(self._level, own) for split, own in coverage.items()}
        self._test_coverage = Coverage()
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
        added = coverage_of(self._level, [(item, own)])
        total = self._test_coverage
        self._test_coverage = Coverage(
            truncated_sentences=total.truncated_sentences + added.truncated_sentences,
            split_sentences=total.split_sentences + added.split_sentences,
            empty_words=total.empty_words + added.empty_words,
        )

    def add(self, item: ProbeItem, predictions: ProblemPredictions | None) -> None:
        """Keep the predictions of one test item; None for one without a labelled vector."""
        self._labelled = self._labelled and item.classes is not None
        start = len(self._predicted[self._layers[0]][0])
        self._places[item.id] = (start, start + len(item.positions))
        if predictions is None:
            return
        unseen = np.array([word not in self._known for word in item.types], dtype=np.int64)
        self._types.update(item.types)
        for layer in self._layers:
            for seed, own in enumerate(predictions.by_layer[layer]):
                self._predicted[layer][seed].extend(own.tolist())
                if item.classes is not None:
                    np.add.at(self._confusion[layer][:, seed], (unseen, np.asarray(item.classes), own), 1)

    def outcome(self, evaluator: Evaluator, random: Evaluator | None, note: str) -> Outcome:
        """Return what was found, after the last item; raises `DataError` for a problem without test items."""
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
        return Outcome(places=self._places, predicted=self._predicted[layer], details=details)

    def _details(
        self, result: Mapping[str, Any], layer: int, random: Evaluator | None, note: str
    ) -> Mapping[str, Any]:
        settings = self._probes.settings
        coverage = {**self._coverage, "test": self._test_coverage}
        found: Mapping[str, Any] = _plain(
            {
                "schema": 1,
                "preset": settings.name,
                "settings": settings.to_json(),
                "versions": dict(library_versions()),
                "coverage": {split: asdict(own) for split, own in coverage.items()},
                "train": self._train,
                "level": self._level,
                "problem": result,
                "random_encoder": self._random(random),
                "random_encoder_note": note,
                "unseen_types": self._unseen(layer) if self._level == "word" else None,
            }
        )
        return found

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
        scores = [confusion_scores(confusion[part])["weighted_f1"].mean() for part in (SEEN, UNSEEN)]
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
        return {key: _plain(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(own) for own in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
