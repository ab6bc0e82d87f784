"""Scores probes on a stream of test states: nothing of a sentence is kept but counts.

All probes of all problems read a block of sentences once. What stays are confusion counts of every probe, and for the
layers that are reported the counts of each cluster, from which the cluster bootstrap draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from harness import DataError, FloatArray
from harness_probing.fitting import FittedProbes, count_confusion
from harness_probing.problem import Numbers, SentenceTargets, check_targets
from harness_probing.scores import Counts
from harness_probing.states import checked_states
from harness_probing.tally import ClusterTally

__all__ = ["Evaluator", "ProblemPredictions", "TestCounts", "TestSentence"]

BLOCK_VECTORS = 1_024
"""Sentences are evaluated in blocks of about so many vectors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestSentence:
    """A test sentence with its states."""

    __test__ = False  # Not a test class, whatever its name.

    id: str
    cluster: str
    """What is drawn in the bootstrap: the source sentence, which the variants of a generated treebank share."""
    states: FloatArray = field(repr=False)
    """Shape (layers, vectors, dimension), of the layers that the train states have."""
    targets: Mapping[str, SentenceTargets]
    """By name of the problem; problems that have nothing here may be missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemPredictions:
    """What the probes of a problem say of the targets of one sentence."""

    by_layer: Mapping[int, Numbers]
    """Layer number to class numbers, shape (seeds, targets), for the layers that are reported."""
    baselines: Mapping[str, Numbers]
    """Baseline to class numbers, shape (targets,)."""
    mix: Numbers | None
    """Class numbers of the scalar mix, shape (targets,)."""


@dataclass(slots=True, kw_only=True)
class TestCounts:
    """The counts of the test items of one problem."""

    __test__ = False

    confusion: Counts
    """Shape (seeds, tasks, layers, gold, predicted)."""
    mix: Counts | None
    """Shape (gold, predicted)."""
    baselines: dict[str, Counts]
    """Shape (gold, predicted) each."""
    clusters: ClusterTally


class Evaluator:
    """Applies all probes to test sentences."""

    def __init__(self, probes: Sequence[FittedProbes], *, layers: Sequence[int]) -> None:
        """Take the probes of all problems, and the numbers of the layers in the states that will come.

        Raises `DataError` where a probed layer is not among them, or two problems share a name.
        """
        self.probes = {own.problem.name: own for own in probes}
        if len(self.probes) != len(probes):
            raise DataError("Two problems have the same name; results are kept by it.")
        self.layers = tuple(layers)
        missing = sorted({layer for own in probes for layer in own.layers} - set(layers))
        if missing:
            raise DataError(
                f"The probes read layer {missing[0]}, but the test states only have {list(layers)}."
            )
        self.counts = {name: _no_counts(own) for name, own in self.probes.items()}
        self._wide = {name: _wide(own) for name, own in self.probes.items()}

    def stream(
        self, sentences: Iterable[TestSentence]
    ) -> Iterator[tuple[str, Mapping[str, ProblemPredictions]]]:
        """Yield (id, predictions by problem) of every sentence, in order, as blocks of them are evaluated."""
        block: list[TestSentence] = []
        filled = 0
        for sentence in sentences:
            block.append(sentence)
            filled += sentence.states.shape[1]
            if filled >= BLOCK_VECTORS:
                yield from zip([own.id for own in block], self.add_block(block), strict=True)
                block, filled = [], 0
        yield from zip([own.id for own in block], self.add_block(block), strict=True)

    def add_block(self, sentences: Sequence[TestSentence]) -> list[Mapping[str, ProblemPredictions]]:
        """Count some sentences, and return the predictions of each by problem.

        Raises `ContractError` for states that are not finite or of the wrong shape, `DataError` for targets that do
        not fit them.
        """
        if not sentences:
            return []
        for sentence in sentences:
            self._check(sentence)
        states = np.concatenate([sentence.states for sentence in sentences], axis=1, dtype=np.float32)
        found: list[dict[str, ProblemPredictions]] = [{} for _ in sentences]
        for name, own in self.probes.items():
            self._add(own, torch.as_tensor(states, device=own.weight.device), sentences, found, name)
        return [dict(predictions) for predictions in found]

    def _check(self, sentence: TestSentence) -> None:
        where = f"test sentence {sentence.id!r}"
        checked_states(sentence.states, len(self.layers), sentence.states.shape[1], where)
        for name, targets in sentence.targets.items():
            if name not in self.probes:
                raise DataError(f"The {where} has targets of {name!r}, for which there are no probes.")
            own = self.probes[name]
            check_targets(own.problem, targets, sentence.states.shape[1], where)
            if len(targets.classes) and (own.controlled or own.baselines.by_type) and not targets.types:
                raise DataError(f"The {where} has no types for the problem {name!r}, but train has.")
            if sentence.states.shape[2] != own.weight.shape[3]:
                raise DataError(
                    f"The {where} has states of {sentence.states.shape[2]} features, the probes were fitted "
                    f"on {own.weight.shape[3]}."
                )

    def _add(
        self,
        own: FittedProbes,
        states: torch.Tensor,
        sentences: Sequence[TestSentence],
        found: list[dict[str, ProblemPredictions]],
        name: str,
    ) -> None:
        items = _BlockItems(sentences, name)
        if not len(items.gold):
            return
        counts = self.counts[name]
        chosen = states[:, torch.as_tensor(items.rows, device=states.device)]
        predicted = self._predict(own, chosen, items, counts)
        clusters = [sentences[number].cluster for number in items.sentences.tolist()]
        counts.clusters.add(clusters, items.gold, predicted)
        mixed = self._predict_mix(own, chosen, items, counts)
        classes = len(own.problem.classes)
        baselines = {}
        for baseline in own.baselines.names():
            baselines[baseline] = own.baselines.predict(baseline, items.types, len(items.gold))
            counts.baselines[baseline] += _confusion(items.gold, baselines[baseline], classes)
        for number, part in items.parts():
            found[number][name] = ProblemPredictions(
                by_layer={layer: values[:, part] for layer, values in predicted.items()},
                baselines={baseline: values[part] for baseline, values in baselines.items()},
                mix=None if mixed is None else mixed[part],
            )

    def _predict(
        self, own: FittedProbes, states: torch.Tensor, items: _BlockItems, counts: TestCounts
    ) -> dict[int, Numbers]:
        """Count the predictions of every probe; return those of the layers that are reported, by layer number."""
        seeds, tasks, _, _, classes = own.weight.shape
        gold = np.broadcast_to(items.gold, (seeds, len(items.gold)))
        every = [gold, own.controls(items.types)] if own.controlled else [gold]
        expected = torch.as_tensor(np.stack(every, axis=1), device=states.device)
        weight, bias = self._wide[own.problem.name]
        kept = {}
        for index, layer in enumerate(own.layers):
            logits = torch.addmm(bias[index], states[self.layers.index(layer)], weight[index])
            predicted = logits.view(-1, seeds, tasks, classes).argmax(dim=-1).permute(1, 2, 0)
            counts.confusion[:, :, index] += count_confusion(expected, predicted, classes)
            if layer in counts.clusters.layers:
                kept[layer] = predicted[:, 0].cpu().numpy()
        return kept

    def _predict_mix(
        self, own: FittedProbes, states: torch.Tensor, items: _BlockItems, counts: TestCounts
    ) -> Numbers | None:
        if own.mix is None or counts.mix is None:
            return None
        index = [self.layers.index(layer) for layer in own.layers]
        predicted: Numbers = own.mix.predict(states[index]).cpu().numpy()
        counts.mix += _confusion(items.gold, predicted, len(own.problem.classes))
        return predicted


class _BlockItems:
    """The targets of one problem in a block of sentences."""

    def __init__(self, sentences: Sequence[TestSentence], name: str) -> None:
        nothing = SentenceTargets(vectors=(), classes=())
        targets = [sentence.targets.get(name, nothing) for sentence in sentences]
        sizes = [len(own.classes) for own in targets]
        starts = np.cumsum([0, *(sentence.states.shape[1] for sentence in sentences)])
        self.sentences = np.repeat(np.arange(len(sentences)), sizes)
        own_rows = [np.asarray(own.vectors, dtype=np.int64) for own in targets]
        self.rows: Numbers = np.concatenate(own_rows) + starts[self.sentences]
        self.gold: Numbers = np.concatenate([np.asarray(own.classes, dtype=np.int64) for own in targets])
        self.types = [word for own in targets for word in own.types]
        self._ends = np.cumsum([0, *sizes]).tolist()

    def parts(self) -> Iterator[tuple[int, slice]]:
        """Yield the number of every sentence that has targets, and which of the items are its."""
        for number, (start, end) in enumerate(zip(self._ends, self._ends[1:], strict=False)):
            if end > start:
                yield number, slice(start, end)


def _no_counts(own: FittedProbes) -> TestCounts:
    seeds, tasks, layers, _, classes = own.weight.shape
    last = own.layers[-1]
    # The published view takes the layer that is best on test, which is not known before the end.
    kept = own.layers if own.settings.choose_on == "test" else tuple(sorted({own.best_layer, last}))
    return TestCounts(
        confusion=np.zeros((seeds, tasks, layers, classes, classes), dtype=np.int64),
        mix=None if own.mix is None else np.zeros((classes, classes), dtype=np.int64),
        baselines={name: np.zeros((classes, classes), dtype=np.int64) for name in own.baselines.names()},
        clusters=ClusterTally(layers=kept, seeds=seeds, classes=classes),
    )


def _wide(own: FittedProbes) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the weights and biases of all probes of a layer side by side: the last axis is probes times classes."""
    seeds, tasks, layers, dimension, classes = own.weight.shape
    columns = seeds * tasks * classes
    weight = own.weight.permute(2, 3, 0, 1, 4).reshape(layers, dimension, columns).contiguous()
    return weight, own.bias.permute(2, 0, 1, 3).reshape(layers, columns).contiguous()


def _confusion(gold: Numbers, predicted: Numbers, classes: int) -> Counts:
    codes = np.bincount(gold * classes + predicted, minlength=classes * classes)
    return codes.reshape(classes, classes)
