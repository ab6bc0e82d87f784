"""Train a network, resumed from the last checkpoint, and save it as a finished folder."""

from __future__ import annotations

import gc
import hashlib
import json
import math
import os
import shutil
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from accelerate.utils import set_seed

from harness import TrainingError, UsageError
from harness.models import FitOptions, HeadSpec
from harness_hf.fit_record import FitRecord, read_record, write_record
from harness_hf.heads import base_weights
from harness_hf.inference.pieces import is_shortage
from harness_hf.loading import choose_precision, first_line, quiet_transformers
from harness_hf.low_rank import require_packages
from harness_hf.options import EncoderOptions
from harness_hf.quantization import require_trainable
from harness_hf.training.batches import HeadTraining, StepBatches, default_parts, micro_batch_size
from harness_hf.training.checkpoint import CheckpointFolder, TrainingState
from harness_hf.training.engine import Engine, NotFiniteError, TrainingProcesses, local, training_device
from harness_hf.training.step import ContrastiveStep, DevSet, SummedStep

if TYPE_CHECKING:
    from harness_hf.inference.session import ModelSession

CHECKPOINTS = "checkpoints"
LOSS_WINDOW = 50
"""Most steps whose losses are averaged at the start and at the end of training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A trained network and how training ended."""

    network: Any
    weights: Mapping[str, torch.Tensor] | None
    """All weights of a sharded network, in the main process; None where the network has them."""
    state: TrainingState
    precision: str
    """Precision of the autocast, that of the end of training."""


def train_network(
    load: Callable[[], Any],
    data: HeadTraining,
    options: FitOptions,
    *,
    encoder_options: EncoderOptions,
    processes: TrainingProcesses,
    title: str,
    digest: str,
) -> Outcome:
    """Train the network that `load` returns with the optimiser and schedule of the settings, and return it.

    All processes of a run call it with the same arguments. With `select_best` and a dev set, the checkpoint with
    the best score is kept, the earliest at ties; otherwise the last one. Checkpoints lie below
    ``options.directory``, where a later call with the same `digest` resumes from the last one; after saving
    the network the caller removes the folder `CHECKPOINTS`. Where a loss or gradient is not finite in less
    than float32, training continues in float32 from that step.

    Raises `TrainingError` where a loss or weight is not finite in float32, or memory is too small for one example;
    `UsageError` for settings of accelerate that are not supported; and `KeyboardInterrupt` where `options` ask to
    stop, after a checkpoint.
    """
    if encoder_options.accelerate is not None and "ACCELERATE_MIXED_PRECISION" not in os.environ:
        raise UsageError(
            "The option accelerate is read by 'harness eval', which starts the processes; this one was not started so.",
            hint="In a program, use: accelerate launch --config_file FILE program.py",
        )
    fp32_from: int | None = None
    while True:
        run: TrainingRun | None = None
        try:
            with quiet_transformers(), warnings.catch_warnings():
                # A warning of torch for those who change what a layer returned; no model that is trained here does.
                warnings.filterwarnings("ignore", message="FSDP2-wrapped module")
                with processes.together():
                    set_seed(options.seed)
                    network = load()
                run = TrainingRun(
                    network,
                    data,
                    options,
                    encoder_options,
                    processes=processes,
                    digest=digest,
                    fp32_from=fp32_from,
                )
                return run.finish(title)
        except NotFiniteError:
            if run is None or run.precision == "no":
                raise
            fp32_from = run.fall_back()
        finally:
            options.progress.finish()
        del run, network
        gc.collect()


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
        fp32_from: int | None = None,
    ) -> None:
        settings = options.settings
        self.network = network
        self._data, self._options, self._settings = data, options, settings
        self._encoder_options = encoder_options
        self._processes = processes
        self.batches = StepBatches(
            len(data.train),
            batch_size=settings.batch_size,
            seed=options.seed,
            lengths=[len(example) for example in data.train] if settings.group_by_length else None,
        )
        self.total = settings.max_steps or math.ceil(settings.epochs * self.batches.per_epoch)
        self._checkpoints = CheckpointFolder(options.directory / CHECKPOINTS, digest)
        last = self._last_state()
        micro_batch = self._first_micro_batch()
        self.state = last or TrainingState(digest=digest, micro_batch=micro_batch, fp32_from=fp32_from)
        reduced = self.state.fp32_from is None
        self.precision = (
            choose_precision(encoder_options.mixed_precision, processes.device) if reduced else "no"
        )
        self.engine = Engine(network, settings, self.total, processes, self.precision)
        if last is not None:
            with processes.together():
                self._checkpoints.restore(last.step, self.engine)
            if fp32_from is None:
                self.state.resumed_at.append(last.step)
        if self._shortage:
            self.state.ran_out_at = self.state.ran_out_at or self._shortage
            self.state.micro_batch = min(self.state.micro_batch, max(1, self._shortage // 2))
        make = SummedStep if data.contrast is None else ContrastiveStep
        self._step = make(self.engine, data, seed=options.seed)
        self._selects = settings.select_best and bool(data.validation)
        self._dev_set = DevSet(data, self.engine)
        self._saved_at = time.monotonic()

    def finish(self, title: str) -> Outcome:
        """Take all steps that are left, and return the network with the weights that are kept."""
        state, progress, first = self.state, self._options.progress, self.state.step
        progress.start(title, self.total, "steps", first)
        while True:
            if self._is_evaluation_due():
                self._evaluate()
            if state.step >= self.total:
                break
            if self._processes.count > 1 and state.step - first < 2:
                # Before the first step, and again when the optimiser has its state.
                self._rehearse()
            self.take_step()
            progress.advance(1)
            self._checkpoint_if_due()
        if state.best_step is not None:
            with self._processes.together():
                self._checkpoints.restore_best(state.best_step, self.engine)
        self._require_finite_weights()
        weights = self.engine.weights(trained=False) if self.engine.is_sharded else None
        return Outcome(
            network=self.engine.close().eval(), weights=weights, state=state, precision=self.precision
        )

    def fall_back(self) -> int:
        """Give up training in less than float32; return the step, counted from 1, to take in float32 instead."""
        self.engine.clear()
        if self.state.step:
            self.state.fp32_from = self.state.step + 1
            self._save()
        self.engine.close()
        return self.state.step + 1

    def take_step(self) -> float:
        """Take one optimiser step and return its loss.

        The weights change only when the whole gradient is there, so one process starts again with smaller
        micro-batches where memory is too small; several have rehearsed that, and end.
        """
        step, state = self.state.step, self.state
        examples = self.batches.examples(step)
        loss: float | None = None
        while loss is None:
            self.engine.clear()
            try:
                loss = self._gradient(step, examples)
            except Exception as error:
                if self._processes.count > 1 or not is_shortage(error):
                    raise
            if loss is None:
                self._shrink(examples)
        self._require_finite("loss", loss)
        self._note_loss(step, loss)
        with self._processes.inseparable() if self.engine.is_sharded else self._processes.together():
            self._update(step)
        state.step += 1
        return loss

    def _note_loss(self, step: int, loss: float) -> None:
        window = max(1, min(LOSS_WINDOW, self.total // 10))
        if step < window:
            self.state.first_loss += loss / window
        if step >= self.total - window:
            self.state.last_loss += loss / window

    def _gradient(self, step: int, examples: list[int]) -> float:
        with self._processes.together():
            micro, total = self._step.split(step, examples, self.state.micro_batch)
        loss = 0.0
        if micro:
            with self._processes.inseparable(self._explain):
                loss = self._step.compute(step, micro, total, frugal=self.state.ran_out_at is not None)
        return loss

    def _rehearse(self) -> None:
        """Halve the micro-batch of all processes until their longest examples fit into the memory of each."""
        processes, sharded, short = self._processes, self.engine.is_sharded, True
        while short:
            size, rounds, short = self.state.micro_batch, 1, False
            if self._data.contrast is not None and self.state.ran_out_at is None:
                rounds = math.ceil(self._settings.batch_size / size / processes.count)
            with processes.inseparable(self._explain) if sharded else processes.together():
                try:
                    self._step.rehearse(size, rounds)
                except Exception as error:
                    if sharded or not is_shortage(error):
                        raise
                    short = True
            short = processes.anywhere(short)
            if not short:
                self.engine.expect_unused()
            self.engine.free()
            if short:
                self._shrink(self._step.longest(size))

    def _explain(self, error: Exception) -> str | None:
        """Return why this process ends, where that is for want of memory, and note it for the one that resumes."""
        size = self.state.micro_batch
        if not is_shortage(error):
            return None
        self._checkpoints.note_shortage(size)
        further = f"--resume continues with {size // 2}" if size > 1 else "choose a smaller max_length"
        return (
            f"Process {self._processes.rank} ran out of memory at step {self.state.step + 1} with {size} examples at "
            f"once, and several processes cannot take a step again: {further}. ({first_line(error)})"
        )

    def _update(self, step: int) -> None:
        norm = self.engine.clip()
        if norm is not None:
            self._require_finite("gradient", norm)
        try:
            self.engine.update(step)
        except Exception as error:
            if not is_shortage(error):
                raise
            raise TrainingError(
                f"The memory is too small for the state of the optimiser {self._settings.optimizer!r}.",
                hint="Take a recipe with optimizer: adafactor or freeze_embeddings: true, or a smaller model.",
            ) from error

    def _require_finite(self, quantity: str, value: float) -> None:
        if not math.isfinite(value):
            raise NotFiniteError(
                f"The {quantity} became {value} at step {self.state.step + 1} "
                f"with learning rate {self._settings.learning_rate:g}.",
                hint="Try a smaller learning rate or a longer warm-up.",
            )

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
        weights, optimizer = self.engine.weights(), self.engine.optimizer_state()
        with self._processes.together():
            if self._processes.is_main:
                self._checkpoints.save(self.state, weights, optimizer)
        self._saved_at = time.monotonic()

    def _last_state(self) -> TrainingState | None:
        """Return the state of the last checkpoint as the main process finds it, None where there is none."""
        last, numbers = None, [-1.0, 0.0]
        with self._processes.together():
            if self._processes.is_main:
                last = self._checkpoints.last()
                numbers = [float(last.step if last else -1), float(self._checkpoints.shortage() or 0)]
        step, self._shortage = map(int, self._processes.exchange(numbers)[0])
        if step < 0:
            return None
        with self._processes.together():
            last = self._checkpoints.read(step)
            if last is None:
                raise TrainingError(
                    f"Process {self._processes.rank} does not see the checkpoint of step {step}."
                )
        return last

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
        score = self._dev_set.score()
        state.evaluated = state.step
        if state.best_score is None or score > state.best_score:
            state.best_score, state.best_step = score, state.step
            weights = self.engine.weights()
            with self._processes.together():
                if self._processes.is_main:
                    self._checkpoints.save_best(state.step, weights)
        self._save()
        self._options.progress.status(
            f"{self._data.metric} {100 * score:.1f} on the dev set after {state.step:,} steps"
        )

    def _first_micro_batch(self) -> int:
        settings, options = self._settings, self._encoder_options
        pieces = settings.max_length * len(self._data.train[0].sequences) + self._data.target_pieces
        count = options.train_parts or default_parts(
            settings.batch_size, self._processes.device, self._processes.count
        )
        # Where a loss compares all examples, their activations are kept together anyway.
        together = self._data.contrast is not None
        budget = settings.batch_size * pieces if together else options.train_batch_tokens
        return micro_batch_size(settings.batch_size, pieces, budget, count)

    def _shrink(self, examples: Sequence[int]) -> None:
        """Halve the micro-batch; raises `TrainingError` where it is one example already."""
        self.engine.free()
        state, compares = self.state, self._data.contrast is not None
        if state.micro_batch == 1 and (state.ran_out_at is not None or not compares):
            pieces = max(len(self._data.train[index]) for index in examples)
            raise TrainingError(
                f"The memory is too small to train on one example of {pieces} pieces at a time.",
                hint="Take a recipe with a smaller max_length, or pass -o mixed_precision=bf16.",
            )
        if state.ran_out_at is None:
            state.ran_out_at = self._settings.batch_size if compares else state.micro_batch
        state.micro_batch = max(1, state.micro_batch // 2)

    def _require_finite_weights(self) -> None:
        for name, parameter in self.network.named_parameters():
            weights = local(parameter.detach())
            # A finite sum has finite terms only; isfinite() makes arrays as large as the weight, in 15 times the time.
            if not (math.isfinite(weights.sum()) or bool(torch.isfinite(weights).all())):
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
        "settings": options.settings.identity(),
        "seed": options.seed,
        "parts": encoder_options.train_parts,
        "base": dict(base),
        "train": [len(example) for example in data.train],
        "validation": [len(example) for example in data.validation],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


RECORDED_STATE = {"best_score", "micro_batch", "ran_out_at", "fp32_from", "first_loss", "last_loss"}
"""What a record takes from the state at the end of training."""


def fit_and_save(
    session: ModelSession,
    train: Sequence[Any],
    validation: Sequence[Any],
    spec: HeadSpec,
    options: FitOptions,
    *,
    prepare: Callable[[], HeadTraining],
    load: Callable[[], Any],
    limits: Mapping[str, Any],
    copy_files: Callable[[], None],
) -> None:
    """Train what `load` returns, and save it with its tokenizer, `copy_files`, and last its record.

    Where the folder already holds this result, nothing is done. All processes call it; the main one writes.
    `prepare` returns the training inputs, `limits` are the fields of the record about texts. Raises `TrainingError`
    where the folder holds another fit, and where there is no example to train on.
    """
    require_packages(options.settings)
    require_examples(train, spec, options, session.ref)
    require_trainable(session.ref, session.network.config, options.settings)
    data = prepare()
    encoder_options = session.options
    assert isinstance(encoder_options, EncoderOptions)
    base = dict(session.identity())
    digest = training_digest(spec, data, options, encoder_options, base)
    processes = TrainingProcesses(training_device(session.device))
    finished = _finished_record(options.directory, digest)
    require_examples(data.train, spec, options, session.ref)
    outcome = finished or train_network(
        lambda: _freeze_embeddings(load()) if options.settings.freeze_embeddings else load(),
        data,
        options,
        encoder_options=encoder_options,
        processes=processes,
        title=_title(spec, options, session.ref),
        digest=digest,
    )
    with processes.together():
        if processes.is_main:
            if isinstance(outcome, Outcome):
                record = FitRecord(
                    head=spec.head,
                    labels=spec.labels,
                    inputs=spec.inputs,
                    settings=options.settings,
                    base_weights=base_weights(session.folder, options.settings),
                    **limits,
                    seed=options.seed,
                    train_examples=len(train),
                    validation_examples=len(validation),
                    metric=data.metric,
                    base=base,
                    digest=digest,
                    steps=outcome.state.step,
                    resumed_at=tuple(outcome.state.resumed_at),
                    **outcome.state.model_dump(include=RECORDED_STATE),
                )
                _save(outcome, session, options, record, copy_files)
            shutil.rmtree(options.directory / CHECKPOINTS, ignore_errors=True)


def _finished_record(folder: Path, digest: str) -> FitRecord | None:
    """Return the record of this very fit in a folder; raises `TrainingError` where the folder holds another one."""
    record = read_record(folder)
    if record is not None and record.digest != digest:
        raise TrainingError(f"The folder {str(folder)!r} already holds a fitted model.")
    return record


def require_examples(train: Sequence[Any], spec: HeadSpec, options: FitOptions, ref: str) -> None:
    """Raise `TrainingError` where there is nothing to train on."""
    if not train:
        raise TrainingError(
            f"There are no training examples for {_title(spec, options, ref)}.",
            hint="Check --train-limit and the data.",
        )


def _title(spec: HeadSpec, options: FitOptions, ref: str) -> str:
    return options.describe or f"{spec.head.value} on {ref}"


def _freeze_embeddings(network: Any) -> Any:
    """Exclude the embedding layer of a network from training, and return the network."""
    backbone = network.base_model
    layer = getattr(backbone, "embeddings", None) or backbone.get_input_embeddings()
    for parameter in layer.parameters():
        parameter.requires_grad = False
    return network


def _save(
    outcome: Outcome,
    session: ModelSession,
    options: FitOptions,
    record: FitRecord,
    copy_files: Callable[[], None],
) -> None:
    options.directory.mkdir(parents=True, exist_ok=True)
    weights = {} if outcome.weights is None else {"state_dict": outcome.weights}
    with quiet_transformers():
        outcome.network.save_pretrained(options.directory, **weights)
        session.tokenizer.save_pretrained(options.directory)
    copy_files()
    write_record(options.directory, record)
