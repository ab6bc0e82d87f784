"""Train a network and save it as a finished folder; encoders and sequence-to-sequence models share it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch

from harness import TrainingError
from harness.models import FitOptions, HeadSpec
from harness_hf.fit_record import FitRecord, read_record, write_record
from harness_hf.loading import quiet_transformers
from harness_hf.options import EncoderOptions
from harness_hf.training.batches import HeadTraining
from harness_hf.training.loop import CHECKPOINTS, Outcome, train_network, training_digest
from harness_hf.training.processes import TrainingProcesses, training_device


class Trainee(Protocol):
    """The session of the model that training starts from."""

    ref: str
    tokenizer: Any
    device: torch.device

    @property
    def options(self) -> EncoderOptions:
        """The options of its adapter."""

    def identity(self) -> Mapping[str, str]:
        """Return the identity of the model."""


RECORDED_STATE = {"best_score", "micro_batch", "ran_out_at", "fp32_from", "first_loss", "last_loss"}
"""What a record takes from the state at the end of training."""


def fit_and_save(
    session: Trainee,
    data: HeadTraining,
    load: Callable[[], Any],
    spec: HeadSpec,
    options: FitOptions,
    *,
    limits: Mapping[str, Any],
    examples: tuple[int, int],
    copy_files: Callable[[], None] = lambda: None,
) -> None:
    """Train what `load` returns, and save it with its tokenizer, `copy_files`, and last its record.

    Where the folder already holds this result, nothing is done. All processes call it; the main one writes.
    `limits` are the fields of the record about texts, `examples` the numbers of examples to train on and of the
    dev set. Raises `TrainingError` where the folder holds another fit, and where there is no example to train on.
    """
    base = dict(session.identity())
    digest = training_digest(spec, data, options, session.options, base)
    processes = TrainingProcesses(training_device(session.device))
    finished = read_record(options.directory)
    if finished is not None and finished.digest != digest:
        raise TrainingError(f"The folder {str(options.directory)!r} already holds a fitted model.")
    require_examples(data.train, spec, options, session.ref)
    outcome: Outcome | None = None
    if finished is None:
        outcome = train_network(
            lambda: _freeze_embeddings(load()) if options.settings.freeze_embeddings else load(),
            data,
            options,
            encoder_options=session.options,
            processes=processes,
            title=_title(spec, options, session.ref),
            digest=digest,
        )
    with processes.together():
        if processes.is_main:
            if outcome is not None:
                record = FitRecord(
                    head=spec.head,
                    labels=spec.labels,
                    inputs=spec.inputs,
                    settings=options.settings,
                    **limits,
                    seed=options.seed,
                    train_examples=examples[0],
                    validation_examples=examples[1],
                    metric=data.metric,
                    base=base,
                    digest=digest,
                    steps=outcome.state.step,
                    resumed_at=tuple(outcome.state.resumed_at),
                    **outcome.state.model_dump(include=RECORDED_STATE),
                )
                _save(outcome, session, options, record, copy_files)
            shutil.rmtree(options.directory / CHECKPOINTS, ignore_errors=True)


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
    outcome: Outcome, session: Trainee, options: FitOptions, record: FitRecord, copy_files: Callable[[], None]
) -> None:
    options.directory.mkdir(parents=True, exist_ok=True)
    weights = {} if outcome.weights is None else {"state_dict": outcome.weights}
    with quiet_transformers():
        outcome.network.save_pretrained(options.directory, **weights)
        session.tokenizer.save_pretrained(options.directory)
    copy_files()
    write_record(options.directory, record)
