"""Multiple choice: one score for every (context, choice) pair of an item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import torch

from harness import DataError, TrainingError
from harness.data import MultipleChoiceExample
from harness.models import Call, Choice, FloatArray
from harness_hf.encoder.adapter import Encoder, EncoderSession
from harness_hf.inference.answer_stream import Parts, Procedure
from harness_hf.inference.batching import Encoded
from harness_hf.inference.session import CHUNK, Inputs
from harness_hf.training.batches import Feature, HeadTraining


class ChoiceScorer(Encoder):
    """An encoder with a multiple-choice head."""

    def choose(self, items: Sequence[Choice]) -> list[tuple[float, ...]]:
        """Return one tuple of logits per item, in the order of its choices; their number may vary."""
        return self._answers(Call(ability="choose"), items, CHUNK)

    def procedure(self, call: Call) -> Procedure:
        """Return how a call's requests are answered: each item once all its choices are."""
        if call.ability != "choose":
            return super().procedure(call)
        session = self._session
        limit = self._limit

        def forward(batch: Inputs) -> FloatArray:
            alone = {name: tensor.unsqueeze(1) for name, tensor in batch.items()}
            logits: FloatArray = session.network(**alone).logits.float().reshape(-1).cpu().numpy()
            return logits

        def prepare(items: Sequence[Choice]) -> tuple[Sequence[Choice], list[Encoded]]:
            contexts = [item.context for item in items for _ in item.choices]
            return items, session.encode(contexts, [text for item in items for text in item.choices], limit)

        def answer(
            prepared: tuple[Sequence[Choice], list[Encoded]],
        ) -> Iterator[tuple[list[int], list[tuple[float, ...]]]]:
            items, encoded = prepared
            owners = [number for number, item in enumerate(items) for _ in item.choices]
            ends = list(accumulate(len(item.choices) for item in items))
            scores = np.empty(len(owners), dtype=np.float32)
            pending = Parts(owners, len(items))
            idle = pending.idle()
            yield idle, [()] * len(idle)
            for rows, logits in session.run(encoded, forward, ability=call.ability, stopping=call.stopping):
                session.require_finite(logits, "scores")
                scores[rows] = logits
                complete = pending.finish(rows)
                yield (
                    complete,
                    [
                        tuple(scores[ends[number] - len(items[number].choices) : ends[number]].tolist())
                        for number in complete
                    ],
                )

        return Procedure(prepare=prepare, answer=answer)


def prepare_multiple_choice(
    session: EncoderSession,
    train: Sequence[MultipleChoiceExample],
    validation: Sequence[MultipleChoiceExample],
    max_length: int,
) -> HeadTraining:
    """Return the training inputs of a multiple-choice head; raises `TrainingError` or `DataError`."""
    for examples in (train, validation):
        counts = sorted({len(example.choices) for example in examples})
        if len(counts) > 1:
            raise TrainingError(
                f"All items of a training stage need the same number of choices; these have {counts}.",
                hint="Train them as separate stages.",
            )

    def collate(features: list[Any]) -> dict[str, Any]:
        flat = session.pad([sequence for feature in features for sequence in feature.sequences])
        batch = {name: tensor.reshape(len(features), -1, tensor.shape[-1]) for name, tensor in flat.items()}
        batch["labels"] = torch.tensor([feature.targets["labels"] for feature in features], dtype=torch.long)
        return batch

    return HeadTraining(
        train=_features(session, train, max_length),
        validation=_features(session, validation, max_length),
        collate=collate,
    )


def _features(
    session: EncoderSession, examples: Sequence[MultipleChoiceExample], max_length: int
) -> list[Feature]:
    for example in examples:
        if example.label is None or not 0 <= example.label < len(example.choices):
            raise DataError(
                f"The example {example.id!r} has the label {example.label!r}; "
                f"expected a number from 0 to {len(example.choices) - 1}."
            )
    contexts = [example.context for example in examples for _ in example.choices]
    encoded = iter(
        session.encode(contexts, [text for example in examples for text in example.choices], max_length)
    )
    return [
        Feature(tuple(next(encoded) for _ in example.choices), {"labels": example.label})
        for example in examples
    ]
