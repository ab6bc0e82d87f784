"""Sequence classification: one label for a text or a pair of texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from harness import CapabilityError, DataError, TrainingError
from harness.data import ClassificationExample
from harness.models import AttentionOptions, Call, FloatArray, HeadSpec, TextAttention, TextInput
from harness_hf.encoder.adapter import Encoder, EncoderSession
from harness_hf.encoder.attention import stream_attentions
from harness_hf.inference.answer_stream import Procedure
from harness_hf.inference.session import CHUNK, Inputs
from harness_hf.inference.text_vectors import row_procedure
from harness_hf.training.batches import Feature, HeadTraining, collate_with


class LabelScorer(Encoder):
    """A model with a sequence classification head."""

    def classify(self, inputs: Sequence[TextInput], labels: Sequence[str]) -> FloatArray:
        """Return log-probabilities of shape (inputs, labels).

        The head's outputs are found by the names of its labels, never by their position. Raises
        `CapabilityError` where the names are not those in `labels`. Pairs that are too long lose pieces of the
        longer text first.
        """
        call = Call(ability="classify", arguments={"labels": labels})
        return self._rows(call, inputs, CHUNK, len(labels))

    def procedure(self, call: Call) -> Procedure:
        """Return how a call's requests are answered."""
        if call.ability != "classify":
            return super().procedure(call)
        session = self._session
        columns = match_labels(call.arguments["labels"], _head_labels(session), session.ref)
        limit = self._limit

        def forward(batch: Inputs) -> FloatArray:
            logits = session.network(**batch).logits.float()
            scores: FloatArray = torch.log_softmax(logits, dim=-1)[:, columns].cpu().numpy()
            return scores

        return row_procedure(session, call, lambda block: _encode(session, block, limit), forward, "scores")


class Classifier(LabelScorer):
    """An encoder with a sequence classification head, whose first piece looks at all of a text."""

    def attentions(
        self, inputs: Sequence[TextInput], options: AttentionOptions | None = None
    ) -> Iterator[tuple[int, TextAttention]]:
        """Yield (index of the input, its pieces' scores); see `harness_hf.encoder.attention.stream_attentions`."""
        return stream_attentions(self._session, inputs, options or AttentionOptions())


def match_labels(task_labels: Sequence[str], model_labels: Sequence[str], ref: str) -> list[int]:
    """Return the index in `model_labels` of every label of the task, by name without regard to case.

    Raises `CapabilityError` that lists both unless the two are the same names.
    """
    by_name = {label.casefold(): index for index, label in enumerate(model_labels)}
    names = [label.casefold() for label in task_labels]
    if len(by_name) != len(model_labels) or len(set(names)) != len(names) or set(names) != set(by_name):
        raise CapabilityError(
            f"The model {ref!r} has the labels {', '.join(map(repr, model_labels))}; "
            f"the task asks for {', '.join(map(repr, task_labels))}.",
            hint="Name them in their order with -o labels=NAME,NAME,..., or fine-tune a bare encoder.",
        )
    return [by_name[label] for label in names]


def prepare_classification(
    session: EncoderSession,
    train: Sequence[ClassificationExample],
    validation: Sequence[ClassificationExample],
    spec: HeadSpec,
    max_length: int,
) -> HeadTraining:
    """Return the training inputs of a classification head; raises `TrainingError` or `DataError`."""
    if len(spec.labels) < 2 or len(spec.inputs) not in (1, 2):
        raise TrainingError(
            f"A classification head needs two labels and one or two input fields; "
            f"it got labels {spec.labels!r} and inputs {spec.inputs!r}."
        )
    return HeadTraining(
        train=_features(session, train, spec, max_length),
        validation=_features(session, validation, spec, max_length),
        collate=collate_with(session.pad, ["labels"]),
    )


def _features(
    session: EncoderSession, examples: Sequence[ClassificationExample], spec: HeadSpec, max_length: int
) -> list[Feature]:
    index = {label: number for number, label in enumerate(spec.labels)}
    inputs: list[TextInput] = []
    for example in examples:
        missing = [name for name in spec.inputs if name not in example.inputs]
        if missing:
            raise DataError(
                f"The example {example.id!r} has no field {missing[0]!r}; it has {list(example.inputs)}."
            )
        if example.label not in index:
            raise DataError(
                f"The example {example.id!r} has the label {example.label!r}; "
                f"expected one of {list(spec.labels)}."
            )
        texts = [example.inputs[name] for name in spec.inputs]
        inputs.append(TextInput(text=texts[0], text_pair=texts[1] if len(texts) > 1 else None))
    targets: list[dict[str, Any]] = [{"labels": index[str(example.label)]} for example in examples]
    encoded = _encode(session, inputs, max_length)
    return [Feature((pieces,), target) for pieces, target in zip(encoded, targets, strict=True)]


def _encode(session: EncoderSession, inputs: Sequence[TextInput], limit: int) -> list[Any]:
    """Return the pieces of texts and pairs; the two may be mixed."""
    single = [number for number, item in enumerate(inputs) if item.text_pair is None]
    paired = [number for number, item in enumerate(inputs) if item.text_pair is not None]
    result: list[Any] = [None] * len(inputs)
    texts = session.encode([inputs[number].text for number in single], None, limit)
    pairs = session.encode(
        [inputs[number].text for number in paired],
        [inputs[number].text_pair or "" for number in paired],
        limit,
    )
    for number, encoded in zip([*single, *paired], [*texts, *pairs], strict=True):
        result[number] = encoded
    return result


def _head_labels(session: EncoderSession) -> list[str]:
    names = session.network.config.id2label
    return [str(names[index]) for index in range(len(names))]
