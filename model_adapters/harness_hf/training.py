"""Train a network with transformers' Trainer, accelerate underneath."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PrinterCallback, Trainer, TrainingArguments
from transformers.trainer_pt_utils import LengthGroupedSampler

from harness.capabilities import FitOptions, TrainingSettings
from harness.errors import TrainingError
from harness_hf.head_training import HeadTraining
from harness_hf.loading import quiet_transformers
from harness_hf.options import EncoderOptions
from harness_hf.progress import TrainingProgress

__all__ = ["Outcome", "batch_shape", "freeze_embeddings", "is_main_process", "train_network", "wait_for_all"]

SCHEDULES: Mapping[str, str] = {"linear": "linear", "constant": "constant_with_warmup"}
OPTIMIZERS: Mapping[str, str] = {"adamw": "adamw_torch", "adafactor": "adafactor"}
"""Adafactor runs at the learning rate of the settings, neither relative to the step nor to the weights' size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A trained network and how training ended."""

    network: Any
    steps: int
    best_score: float | None


class CheckedTrainer(Trainer):
    """A Trainer that stops at the first loss that is not finite, instead of leaving it out of its log.

    Its loss is the mean over a step's sequences, and accumulated steps are averaged, as in the public
    scripts of XTREME. By default Trainer hands the number of items of the whole batch to every model that
    takes keywords, trusts it to divide by that, and no longer divides by the steps itself; the classes with
    heads ignore the number, so their gradients come out as many times too large as there are steps.
    """

    def __init__(self, *, lengths: list[int] | None = None, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.model_accepts_loss_kwargs = False
        self._lengths = lengths
        """Pieces of every training example, where batches are to hold examples of like length."""

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        if self._lengths is None:
            return super()._get_train_sampler(train_dataset)
        generator = torch.Generator().manual_seed(self.args.data_seed or self.args.seed)
        size = self.args.train_batch_size * self.args.gradient_accumulation_steps
        return LengthGroupedSampler(size, lengths=self._lengths, generator=generator)

    def training_step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Return the loss of one step; raises `TrainingError` where it is NaN or infinite."""
        loss: torch.Tensor = super().training_step(*args, **kwargs)
        if not bool(torch.isfinite(loss)):
            raise TrainingError(
                f"The loss became {float(loss)} at step {self.state.global_step + 1} "
                f"with learning rate {self.args.learning_rate:g}.",
                hint="Try a smaller learning rate or a longer warm-up.",
            )
        return loss


def train_network(
    network: Any,
    data: HeadTraining,
    options: FitOptions,
    *,
    encoder_options: EncoderOptions,
    device: torch.device,
    what: str,
) -> Outcome:
    """Train `network` in place with the optimiser and learning-rate schedule of the settings, and return it.

    With `select_best` and a dev set, the checkpoint with the best score is kept, the earliest at ties;
    otherwise the last one. Checkpoints lie below ``options.directory`` while training runs, and are gone
    afterwards.
    """
    checkpoints = options.directory / "checkpoints"
    arguments = _arguments(data, options, encoder_options, device, checkpoints)
    # Order does not matter to the score, and like lengths need less padding.
    validation = sorted(data.validation, key=len)
    try:
        with quiet_transformers(), TrainingProgress(what, data.metric) as progress:
            trainer = CheckedTrainer(
                model=network,
                args=arguments,
                data_collator=data.collate,
                train_dataset=list(data.train),
                eval_dataset=validation or None,
                lengths=[len(example) for example in data.train]
                if options.settings.group_by_length
                else None,
                compute_loss_func=data.loss,
                compute_metrics=lambda result: {"score": data.score(result.predictions, result.label_ids)},
                preprocess_logits_for_metrics=data.decide,
                callbacks=[progress],
            )
            trainer.remove_callback(PrinterCallback)
            trainer.train()
    finally:
        shutil.rmtree(checkpoints, ignore_errors=True)
    _require_finite_weights(network, options.settings)
    state = trainer.state
    selected = arguments.load_best_model_at_end and state.best_metric is not None
    return Outcome(
        network=network,
        steps=int(state.global_step),
        best_score=state.best_metric if selected else None,
    )


def batch_shape(batch_size: int, pieces: int, budget: int, processes: int) -> tuple[int, int]:
    """Return (examples a process takes at once, accumulation steps).

    An example has up to `pieces` pieces, and a process takes at most `budget` of them at once.

    Raises `TrainingError` where the batch cannot be shared evenly by the processes.
    """
    if batch_size % processes:
        raise TrainingError(
            f"The batch size {batch_size} cannot be shared by {processes} processes.",
            hint=f"Choose a multiple of {processes}.",
        )
    share = batch_size // processes
    fitting = max(1, budget // pieces)
    size = max(size for size in range(1, share + 1) if share % size == 0 and size <= fitting)
    return size, share // size


def _require_one_process(processes: int) -> None:
    if processes > 1:
        raise TrainingError(
            "The answers of a dual encoder's batch are compared with each other, so one device takes all of "
            f"them; {processes} processes or GPUs would each see a share.",
            hint="Start one process and show it one GPU: CUDA_VISIBLE_DEVICES=0",
        )


def freeze_embeddings(network: Any) -> None:
    """Exclude the embedding layer from training."""
    backbone = network.base_model
    layer = getattr(backbone, "embeddings", None) or backbone.get_input_embeddings()
    for parameter in layer.parameters():
        parameter.requires_grad = False


def is_main_process() -> bool:
    """Return whether this process is the one that writes."""
    return int(os.environ.get("RANK", "0")) == 0


def wait_for_all() -> None:
    """Wait until all processes of a distributed run are here."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.barrier()


def _arguments(
    data: HeadTraining,
    options: FitOptions,
    encoder_options: EncoderOptions,
    device: torch.device,
    checkpoints: Path,
) -> TrainingArguments:
    settings = options.settings
    # Trainer spreads a step over all visible GPUs of a process.
    devices = (
        max(1, torch.cuda.device_count()) if device.type == "cuda" and "WORLD_SIZE" not in os.environ else 1
    )
    pieces = settings.max_length * len(data.train[0].sequences) + data.target_pieces
    processes = int(os.environ.get("WORLD_SIZE", "1")) * devices
    if data.whole_batches:
        _require_one_process(processes)
        size, accumulation = settings.batch_size, 1
    else:
        size, accumulation = batch_shape(
            settings.batch_size, pieces, encoder_options.train_batch_tokens, processes
        )
    an_epoch = math.ceil(math.ceil(len(data.train) / (size * processes)) / accumulation)
    total = settings.max_steps or math.ceil(settings.epochs * an_epoch)
    return TrainingArguments(
        output_dir=str(checkpoints),
        learning_rate=settings.learning_rate,
        num_train_epochs=settings.epochs,
        max_steps=settings.max_steps or -1,
        per_device_train_batch_size=size,
        gradient_accumulation_steps=accumulation,
        per_device_eval_batch_size=data.evaluation_batch,
        warmup_steps=max(settings.warmup_steps, math.ceil(settings.warmup_share * total)),
        weight_decay=settings.weight_decay,
        adam_epsilon=settings.adam_epsilon,
        max_grad_norm=settings.max_grad_norm,
        lr_scheduler_type=SCHEDULES[settings.lr_schedule],
        optim=OPTIMIZERS[settings.optimizer],
        seed=options.seed,
        data_seed=options.seed,
        bf16=encoder_options.mixed_precision == "bf16",
        fp16=encoder_options.mixed_precision == "fp16",
        use_cpu=device.type == "cpu",
        dataloader_pin_memory=device.type == "cuda",
        remove_unused_columns=False,
        label_names=list(data.label_names),
        logging_strategy="no",
        logging_nan_inf_filter=False,
        disable_tqdm=True,
        report_to=[],
        **_selection(settings, bool(data.validation), total),
    )


def _selection(settings: TrainingSettings, has_validation: bool, total_steps: int) -> Mapping[str, Any]:
    """Return the arguments that say when to evaluate and which checkpoint to keep."""
    if not (settings.select_best and has_validation):
        return {"eval_strategy": "no", "save_strategy": "no"}
    rhythm: dict[str, Any] = {"eval_strategy": "epoch", "save_strategy": "epoch"}
    if settings.eval_steps is not None:
        # At least one evaluation: a short run is measured at its end.
        steps = max(1, min(settings.eval_steps, total_steps))
        rhythm = {
            "eval_strategy": "steps",
            "save_strategy": "steps",
            "eval_steps": steps,
            "save_steps": steps,
        }
    return {
        **rhythm,
        "load_best_model_at_end": True,
        "metric_for_best_model": "eval_score",
        "greater_is_better": True,
        "save_total_limit": 1,
        "save_only_model": True,
    }


def _require_finite_weights(network: Any, settings: TrainingSettings) -> None:
    for name, parameter in network.named_parameters():
        if not bool(torch.isfinite(parameter).all()):
            raise TrainingError(
                f"The weight {name!r} is not finite after training "
                f"with learning rate {settings.learning_rate:g}.",
                hint="Try a smaller learning rate or a longer warm-up.",
            )
