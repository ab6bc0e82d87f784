"""Prepares all cells that share sentences: finds them, fits their probes, and goes through their test items once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import torch

from harness import CapabilityError, StorageError
from harness.kinds import MethodContext
from harness.models import FloatArray
from harness_probing.evaluation import Evaluator, Items, OutcomeRecorder, ProbeOutcome
from harness_probing.fitting import FittedProbes, SplitTargets, fit_probes
from harness_probing.problem import SENTENCE, ProbeItem, ProbeProblem, item_maker, level_of
from harness_probing.settings import ProbeSettings
from harness_probing.states import Block, ModelReader, SentencePool, shared_blocks

SHARED = 0.5
"""Problems are prepared together where they share this part of the train sentences of the smaller one."""
BLOCK_VECTORS = 1_024
"""Test sentences are evaluated about so many vectors at a time."""


def outcome_of(adapter: Any, context: MethodContext, preset: str) -> ProbeOutcome:
    """Return the outcome of probing for a cell and those of its other seeds; prepares its companions too.

    Raises what made the preparation fail, again for every cell that it concerns.
    """
    cache, start = context.cache, f"probing {preset} {context.learning.data} "
    if start + _name(context) not in cache:
        for name, prepared in _Group(adapter, context, preset).prepared().items():
            cache[start + name] = prepared
    outcome = cache[start + _name(context)]
    if isinstance(outcome, Exception):
        raise outcome
    assert isinstance(outcome, ProbeOutcome)
    return outcome


def _name(context: MethodContext) -> str:
    """Return the name that cells share which differ in the seed alone."""
    view = "".join(f", {name} {value}" for name, value in sorted(context.learning.view.items()))
    return f"{context.spec.task}:{context.language.code}{view}"


@dataclass(slots=True, kw_only=True)
class _Task:
    """A problem with its items."""

    context: MethodContext
    problem: ProbeProblem
    train: Sequence[ProbeItem]
    dev: Sequence[ProbeItem]
    test: Any
    """Examples, as often as wanted."""


class _Group:
    """The problems that are prepared with a cell."""

    def __init__(self, adapter: Any, context: MethodContext, preset: str) -> None:
        self._adapter = adapter
        self._context = context
        self._settings = ProbeSettings.preset(preset, seeds=context.learning.seeds)
        same = [peer for peer in context.learning.peers() if peer.learning.data == context.learning.data]
        # One context a problem, that of its first cell.
        self._contexts = {_name(peer): peer for peer in [*reversed(same), context]}
        self._found: dict[str, ProbeOutcome | Exception] = {}

    def prepared(self) -> Mapping[str, ProbeOutcome | Exception]:
        """Return the outcomes by name of the problem, or the reason for a missing one."""
        tasks: dict[str, _Task] = {}
        for name in self._companions(_name(self._context)):
            with self._alone(name):
                tasks[name] = _read(name, self._contexts[name])
        try:
            if tasks:
                self._probe(tasks)
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001, RUF100  it is raised for every cell that it concerns
            self._found |= dict.fromkeys(tasks.keys() - self._found.keys(), error)
        return self._found

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """Hold work that concerns one problem: where it fails, the others go on."""
        try:
            yield
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001, RUF100  the cells of this problem will raise it
            self._found[name] = error

    def _companions(self, own: str) -> list[str]:
        """Return the problems that read the train sentences of `own`, itself included."""
        if len(self._contexts) < 2:
            return [own]
        digests: dict[str, frozenset[bytes]] = self._context.cache.setdefault("probing sentences", {})
        keys = {name: f"{self._context.learning.data} {name}" for name in self._contexts}
        for name, context in self._contexts.items():
            if keys[name] not in digests:
                digests[keys[name]] = _sentences(context)
        mine = digests[keys[own]]
        companions = [own]
        for name in keys.keys() - {own}:
            theirs = digests[keys[name]]
            smaller = min(len(mine), len(theirs))
            if smaller and len(mine & theirs) >= SHARED * smaller:
                companions.append(name)
        return sorted(companions)

    def _probe(self, tasks: dict[str, _Task]) -> None:
        """Fit the probes of all problems, and go through their test items with them."""
        sentence_vector = any(SENTENCE in item.positions for task in tasks.values() for item in task.train)
        reader = ModelReader(self._adapter, sentence_vector=sentence_vector)
        trained = self._fitted(reader, tasks, self._settings)
        tasks = {name: task for name, task in tasks.items() if name in trained.evaluator.probes}
        if not tasks:
            return
        twin, note = self._untrained()
        try:
            random = None
            if twin is not None:
                seeds = self._context.learning.seeds[:1]
                settings = replace(self._settings, seeds=seeds, control=False, fractions=(), mix=False)
                random = self._fitted(ModelReader(twin, sentence_vector=sentence_vector), tasks, settings)
            self._evaluate(tasks, trained, random)
        finally:
            if twin is not None:
                twin.close()
        for name in tasks:
            with self._alone(name):
                baseline = None if random is None else random.evaluator
                self._found[name] = trained.recorders[name].outcome(trained.evaluator, baseline, note)

    def _untrained(self) -> tuple[Any, str]:
        make = getattr(self._adapter, "untrained", None)
        if make is None:
            return None, "the adapter has no model with random weights"
        try:
            return make(self._context.learning.seeds[0]), ""
        except CapabilityError as error:
            return None, str(error)

    def _fitted(self, reader: ModelReader, tasks: Mapping[str, _Task], settings: ProbeSettings) -> _Pass:
        """Return the probes of the problems that can be fitted, and what records their test items."""
        context = self._context
        train = SentencePool({name: task.train for name, task in tasks.items()}, reader)
        dev = SentencePool({name: task.dev for name, task in tasks.items()}, reader)
        train_states, dev_states = train.states(reader, context, "train"), dev.states(reader, context, "dev")
        fitted: dict[str, FittedProbes] = {}
        recorders: dict[str, OutcomeRecorder] = {}
        for name, task in tasks.items():
            context.learning.check()
            with self._alone(name):
                targets = SplitTargets(
                    train=train.targets(task.problem, task.train), dev=dev.targets(task.problem, task.dev)
                )
                on_gpu = reader.identity().get("device") == "cuda" and torch.cuda.is_available()
                device = "cuda" if on_gpu else "cpu"
                probes = fit_probes(
                    train_states, dev_states, targets, settings, device=device, progress=context.progress
                )
                recorders[name] = OutcomeRecorder(
                    probes=probes,
                    train=task.train,
                    coverage={"train": train.covered(task.train), "dev": dev.covered(task.dev)},
                    train_language=task.context.learning.train_language or task.context.language.code,
                )
                fitted[name] = probes
        return _Pass(reader, fitted, recorders)

    def _evaluate(self, tasks: Mapping[str, _Task], own: _Pass, random: _Pass | None) -> None:
        progress = self._context.progress
        progress.start("probes on test", sum(len(task.test) for task in tasks.values()), "items")
        try:
            items = {name: map(item_maker(task.context), task.test) for name, task in tasks.items()}
            for block in shared_blocks(items):
                self._context.learning.check()
                own.add(block)
                own.cover(block)
                if random is not None:
                    random.add(block)
                progress.advance(sum(len(items) for _, items in block))
        finally:
            progress.finish()


class _Pass:
    """The probes of one model, and what it says of the test items of all problems."""

    def __init__(
        self,
        reader: ModelReader,
        fitted: Mapping[str, FittedProbes],
        recorders: Mapping[str, OutcomeRecorder],
    ) -> None:
        self.reader = reader
        self.recorders = recorders
        self.evaluator = Evaluator(list(fitted.values()), layers=reader.layers, shift=reader.shift)

    def add(self, block: Block) -> None:
        """Ask the model for the sentences of a block, and record what the probes say of their items."""
        waiting: list[tuple[FloatArray, Items]] = []
        for index, states in self.reader.states([words for words, _ in block]):
            waiting.append((states, block[index][1]))
            if sum(vectors.shape[1] for vectors, _ in waiting) >= BLOCK_VECTORS:
                self._record(waiting)
                waiting = []
        self._record(waiting)

    def _record(self, waiting: Sequence[tuple[FloatArray, Items]]) -> None:
        for name, item, predictions in self.evaluator.add(waiting):
            self.recorders[name].add(item, predictions)

    def cover(self, block: Block) -> None:
        """Count what of the items of a block the states do not show."""
        covered = self.reader.coverage([words for words, _ in block])
        for (_, items), coverage in zip(block, covered, strict=True):
            for name, item in items:
                self.recorders[name].cover(item, coverage)


def _read(name: str, context: MethodContext) -> _Task:
    make = item_maker(context)
    return _Task(
        context=context,
        problem=ProbeProblem(name=name, classes=context.spec.label_names, level=level_of(context.spec.kind)),
        train=[make(example) for example in context.learning.split("train")],
        dev=[make(example) for example in context.learning.split("validation")],
        test=context.learning.test(),
    )


def _sentences(context: MethodContext) -> frozenset[bytes]:
    """Return digests of the train sentences of a cell; nothing if they cannot be read, which the cell reports later."""
    make = item_maker(context)
    try:
        words = [make(example).words for example in context.learning.split("train")]
    except StorageError:
        raise
    except Exception:  # noqa: BLE001, RUF100  raised again when the cell itself is prepared
        return frozenset()
    return frozenset(blake2b(json.dumps(sentence).encode(), digest_size=8).digest() for sentence in words)
