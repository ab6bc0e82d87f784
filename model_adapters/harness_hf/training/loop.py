"""Train a network: the loop over optimiser steps, resumed from the last checkpoint."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch

from harness import FitOptions, HeadSpec, TrainingError
from harness_hf.inference.batching import is_shortage
from harness_hf.loading import quiet_transformers
from harness_hf.options import EncoderOptions
from harness_hf.training.batches import HeadTraining, StepBatches, default_parts, micro_batch_size
from harness_hf.training.checkpoint import CheckpointFolder, TrainingState
from harness_hf.training.dev_score import DevSet
from harness_hf.training.optimization import Optimization
from harness_hf.training.processes import TrainingProcesses, training_device
from harness_hf.training.step import ContrastiveStep, OutOfMemory, Precision, SummedStep

__all__ = [
    "Outcome",
    "TrainingRun",
    "freeze_embeddings",
    "remove_checkpoints",
    "train_network",
    "training_digest",
]

CHECKPOINTS = "checkpoints"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A trained network and how training ended."""

    network: Any
    steps: int
    best_score: float | None
    micro_batch: int
    """Examples per micro-batch at the end of training."""
    ran_out_at: int | None
    """Examples at once for which memory was too small; None where it never was."""
    resumed_at: tuple[int, ...]
    """Steps at which an interrupted training was resumed."""


def train_network(
    network: Any,
    data: HeadTraining,
    options: FitOptions,
    *,
    encoder_options: EncoderOptions,
    device: torch.device,
    what: str,
    digest: str,
) -> Outcome:
    """Train `network` in place with the optimiser and learning-rate schedule of the settings, and return it.

    All processes of a run call it with the same arguments. With `select_best` and a dev set, the checkpoint with
    the best score is kept, the earliest at ties; otherwise the last one. Checkpoints lie below
    ``options.directory``, where a later call with the same `digest` resumes from the last one; after saving
    the network the caller removes them with `remove_checkpoints`.

    Raises `TrainingError` where a loss or weight is not finite, or memory is too small for one example; and
    `KeyboardInterrupt` where `options` ask to stop, after a checkpoint.
    """
    processes = TrainingProcesses(training_device(device))
    with quiet_transformers():
        with processes.together():
            run = TrainingRun(network, data, options, encoder_options, processes=processes, digest=digest)
        try:
            return run.finish(what)
        finally:
            options.progress.finish()


class TrainingRun:
    """One training, in step with those of the other processes."""

    def __init__(
        self,
        network: Any,
        data: HeadTraining,
        options: FitOptions,
        encoder_options: EncoderOptions,
        *,
        processes: TrainingProcesses,
        digest: str,
    ) -> None:
        settings, device = options.settings, processes.device
        self.network = network.to(device).train()
        self._data, self._options, self._settings = data, options, settings
        self._encoder_options = encoder_options
        self._processes = processes
        precision = _precision(device, encoder_options)
        self.batches = StepBatches(
            len(data.train),
            batch_size=settings.batch_size,
            seed=options.seed,
            lengths=[len(example) for example in data.train] if settings.group_by_length else None,
        )
        self.total = settings.max_steps or math.ceil(settings.epochs * self.batches.per_epoch)
        scaled_on = device.type if precision.autocast == "fp16" else None
        self.optimization = Optimization(network, settings, self.total, scaled_on=scaled_on)
        make = ContrastiveStep if data.whole_batches else SummedStep
        self._step = make(
            network,
            data,
            self.optimization,
            processes=self._processes,
            precision=precision,
            seed=options.seed,
        )
        self._selects = settings.select_best and bool(data.validation)
        self._dev_set = DevSet(data, processes=self._processes, precision=precision)
        self._checkpoints = CheckpointFolder(options.directory / CHECKPOINTS, digest)
        self.state = TrainingState(digest=digest, micro_batch=self._first_micro_batch(device))
        self._saved_at = time.monotonic()

    def finish(self, what: str) -> Outcome:
        """Take all steps that are left, and return the network with the weights that are kept."""
        self._resume()
        progress = self._options.progress
        progress.start(what, self.total, "steps", self.state.step)
        while True:
            if self._is_evaluation_due():
                self._evaluate()
            if self.state.step >= self.total:
                break
            self.take_step()
            progress.advance(1)
            self._checkpoint_if_due()
        if self.state.best_step is not None:
            with self._processes.together():
                self._checkpoints.restore_best(self.state.best_step, self.network)
        self._require_finite_weights()
        return Outcome(
            network=self.network.eval(),
            steps=self.state.step,
            best_score=self.state.best_score,
            micro_batch=self.state.micro_batch,
            ran_out_at=self.state.ran_out_at,
            resumed_at=tuple(self.state.resumed_at),
        )

    def take_step(self) -> float:
        """Take one optimiser step, with smaller micro-batches where memory is too small, and return its loss.

        The weights change only when the whole gradient is there, so the step can start again.
        """
        step, state = self.state.step, self.state
        examples = self.batches.examples(step)
        while True:
            try:
                frugal = state.ran_out_at is not None
                loss = self._step.compute(step, examples, state.micro_batch, frugal=frugal)
                break
            except OutOfMemory as error:
                self._shrink(error)
        if not math.isfinite(loss):
            raise TrainingError(
                f"The loss became {loss} at step {step + 1} "
                f"with learning rate {self._settings.learning_rate:g}.",
                hint="Try a smaller learning rate or a longer warm-up.",
            )
        with self._processes.together():
            self._update(step)
        state.step += 1
        return loss

    def _update(self, step: int) -> None:
        try:
            self.optimization.update(step)
        except Exception as error:
            if not is_shortage(error):
                raise
            raise TrainingError(
                f"The memory is too small for the state of the optimiser {self._settings.optimizer!r}.",
                hint="Take a recipe with optimizer: adafactor or freeze_embeddings: true, or a smaller model.",
            ) from error

    def _checkpoint_if_due(self) -> None:
        """Write a checkpoint where it is time, and stop where the user asked for it, in all processes alike."""
        minutes = (time.monotonic() - self._saved_at) / 60
        due = minutes >= self._encoder_options.train_checkpoint_minutes
        rows = self._processes.exchange([float(self._options.stopping()), float(due)])
        stop = any(row[0] for row in rows)
        if stop or any(row[1] for row in rows):
            self._save()
        if stop:
            raise KeyboardInterrupt

    def _save(self) -> None:
        with self._processes.together():
            if self._processes.is_main:
                self._checkpoints.save(self.state, self.network, self.optimization)
        self._saved_at = time.monotonic()

    def _resume(self) -> None:
        """Resume from the last checkpoint, if there is one."""
        last: int | None = None
        with self._processes.together():
            last = self._checkpoints.last() if self._processes.is_main else None
        step = int(self._processes.exchange([-1.0 if last is None else float(last)])[0][0])
        if step < 0:
            return
        with self._processes.together():
            self.state = self._checkpoints.restore(step, self.network, self.optimization)
        self.state.resumed_at.append(step)

    def _is_evaluation_due(self) -> bool:
        """Return whether the dev set has to be measured: at the end of an epoch, or as `eval_steps` says.

        A short run is measured at its end.
        """
        step, every = self.state.step, self._settings.eval_steps
        if not self._selects or step <= self.state.evaluated:
            return False
        if every is not None:
            return step % max(1, min(every, self.total)) == 0
        return step % self.batches.per_epoch == 0 or step == self.total

    def _evaluate(self) -> None:
        """Measure the dev set, and write a checkpoint."""
        state = self.state
        score = self._dev_set.score(self.network)
        state.evaluated = state.step
        if state.best_score is None or score > state.best_score:
            state.best_score, state.best_step = score, state.step
            with self._processes.together():
                if self._processes.is_main:
                    self._checkpoints.save_best(state.step, self.network)
        self._save()
        self._options.progress.status(
            f"{self._data.metric} {100 * score:.1f} on the dev set after {state.step:,} steps"
        )

    def _first_micro_batch(self, device: torch.device) -> int:
        settings, given = self._settings, self._encoder_options
        pieces = settings.max_length * len(self._data.train[0].sequences) + self._data.target_pieces
        parts = given.train_parts or default_parts(settings.batch_size, device, self._processes.count)
        # Where a loss compares all examples, their activations are kept together anyway.
        budget = settings.batch_size * pieces if self._data.whole_batches else given.train_batch_tokens
        return micro_batch_size(settings.batch_size, pieces, budget, parts)

    def _shrink(self, error: OutOfMemory) -> None:
        """Halve the micro-batch; raises `TrainingError` where it is one example already."""
        state = self.state
        if state.micro_batch == 1 and (state.ran_out_at is not None or not self._data.whole_batches):
            raise TrainingError(
                f"The memory is too small to train on one example of {error.pieces} pieces at a time.",
                hint="Take a recipe with a smaller max_length, or pass -o mixed_precision=bf16.",
            ) from None
        if state.ran_out_at is None:
            state.ran_out_at = self._settings.batch_size if self._data.whole_batches else state.micro_batch
        state.micro_batch = max(1, state.micro_batch // 2)

    def _require_finite_weights(self) -> None:
        for name, parameter in self.network.named_parameters():
            if not bool(torch.isfinite(parameter).all()):
                raise TrainingError(
                    f"The weight {name!r} is not finite after training "
                    f"with learning rate {self._settings.learning_rate:g}.",
                    hint="Try a smaller learning rate or a longer warm-up.",
                )


def training_digest(
    spec: HeadSpec,
    data: HeadTraining,
    options: FitOptions,
    encoder_options: EncoderOptions,
    base: Mapping[str, str],
) -> str:
    """Return the digest of model, data and settings; a training resumes only from a checkpoint with the same one."""
    content = {
        "spec": asdict(spec),
        "settings": asdict(options.settings),
        "seed": options.seed,
        "parts": encoder_options.train_parts,
        "base": dict(base),
        "train": [len(example) for example in data.train],
        "validation": [len(example) for example in data.validation],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def remove_checkpoints(options: FitOptions) -> None:
    """Delete the checkpoints of a training whose result has been saved."""
    CheckpointFolder(options.directory / CHECKPOINTS, "").remove()


def freeze_embeddings(network: Any) -> None:
    """Exclude the embedding layer from training."""
    backbone = network.base_model
    layer = getattr(backbone, "embeddings", None) or backbone.get_input_embeddings()
    for parameter in layer.parameters():
        parameter.requires_grad = False


def _precision(device: torch.device, options: EncoderOptions) -> Precision:
    if options.mixed_precision == "fp16" and device.type == "cpu":
        raise TrainingError(
            "Training in fp16 needs a GPU, and this process trains on the CPU.",
            hint="Pass -o mixed_precision=bf16, or omit it.",
        )
    return Precision(device=device, autocast=options.mixed_precision)
