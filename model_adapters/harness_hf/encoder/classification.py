"""Heads that classify: one label for a text or a pair, one score for every choice of an item, one tag for every token.

A tag is read at the first piece of a token, or at its last in decoders.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import torch

from harness import CapabilityError, DataError, TrainingError
from harness.data import ClassificationExample, MultipleChoiceExample, TaggedSentence
from harness.models import AttentionOptions, Call, Choice, FloatArray, HeadSpec, TextAttention, TextInput
from harness_hf.encoder.adapter import Encoder, EncoderSession
from harness_hf.encoder.attention import stream_attentions
from harness_hf.inference.pieces import Encoded
from harness_hf.inference.session import CHUNK, Inputs, Parts, Procedure
from harness_hf.inference.text_vectors import row_procedure
from harness_hf.inference.word_vectors import SENTENCE_CHUNK, WordWindow, split_sentences
from harness_hf.training.batches import Feature, HeadTraining, collate_with

IGNORED = -100
"""Target of pieces that carry no tag; the loss skips it."""
OUTSIDE = "O"


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
        train=_choice_features(session, train, max_length),
        validation=_choice_features(session, validation, max_length),
        collate=collate,
    )


def _choice_features(
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


class Tagger(Encoder):
    """An encoder with a token classification head."""

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return one tag for every token of every sentence.

        Sentences longer than the limit are split between tokens and re-joined; a token that the tokenizer
        leaves nothing of is shown to the model as the unknown piece.
        """
        return self._answers(Call(ability="tag"), sentences, SENTENCE_CHUNK)

    def procedure(self, call: Call) -> Procedure:
        """Return how a call's requests are answered: a sentence once all its windows are."""
        if call.ability != "tag":
            return super().procedure(call)
        session = self._session
        names = session.network.config.id2label
        limit = self._limit

        def forward(batch: Inputs) -> Any:
            logits = session.network(**batch).logits
            session.require_finite(logits[batch["attention_mask"].bool().to(logits.device)], "scores")
            return logits.argmax(dim=-1).cpu().numpy()

        def prepare(
            sentences: Sequence[Sequence[str]],
        ) -> tuple[Sequence[Sequence[str]], list[WordWindow]]:
            return sentences, _split(session, sentences, limit)

        def answer(
            prepared: tuple[Sequence[Sequence[str]], list[WordWindow]],
        ) -> Iterator[tuple[list[int], list[list[str]]]]:
            sentences, windows = prepared
            tags = [[""] * len(sentence) for sentence in sentences]
            pending = Parts([window.sentence for window in windows], len(sentences))
            idle = pending.idle()
            yield idle, [tags[number] for number in idle]
            encoded = [window.encoded for window in windows]
            for rows, chosen in session.run(encoded, forward, ability=call.ability, stopping=call.stopping):
                for row, index in enumerate(rows):
                    window = windows[index]
                    for word, position in enumerate(window.positions, start=window.first_word):
                        tags[window.sentence][word] = str(names[int(chosen[row, position])])
                complete = pending.finish(rows)
                yield complete, [tags[number] for number in complete]

        return Procedure(prepare=prepare, answer=answer)


def prepare_tagging(
    session: EncoderSession,
    train: Sequence[TaggedSentence],
    validation: Sequence[TaggedSentence],
    labels: Sequence[str],
    max_length: int,
) -> HeadTraining:
    """Return features and the score of a tagging head; raises `TrainingError` or `DataError`.

    The score is the micro F1 of tokens outside of ``O``, which is plain token accuracy where no tag is ``O``.
    """
    if len(labels) < 2:
        raise TrainingError(f"A tagging head needs at least two labels; it got {tuple(labels)!r}.")
    index = {label: number for number, label in enumerate(labels)}
    outside = index.get(OUTSIDE, -1)

    def collate(features: list[Any]) -> dict[str, Any]:
        batch = dict(session.pad([feature.sequences[0] for feature in features]))
        targets = torch.full_like(batch["input_ids"], IGNORED)
        for row, feature in enumerate(features):
            targets[row, feature.targets["positions"]] = torch.tensor(
                feature.targets["labels"], dtype=torch.long
            )
        batch["labels"] = targets
        return batch

    return HeadTraining(
        train=_tag_features(session, train, index, max_length),
        validation=_tag_features(session, validation, index, max_length),
        collate=collate,
        score=lambda predicted, gold: token_f1(np.asarray(predicted), np.asarray(gold), outside),
        metric="token_f1" if outside >= 0 else "token_accuracy",
    )


def token_f1(predicted: Any, gold: Any, outside: int) -> float:
    """Return the micro F1 of tokens whose tag is not `outside`, ignoring positions without a target.

    With no outside tag every token counts once in prediction and reference, so that F1 is accuracy.
    """
    counted = gold != IGNORED
    predicted_tags = counted & (predicted != outside)
    gold_tags = counted & (gold != outside)
    hits = int((predicted_tags & gold_tags & (predicted == gold)).sum())
    total = int(predicted_tags.sum()) + int(gold_tags.sum())
    return 2 * hits / total if total else 1.0


def _tag_features(
    session: EncoderSession, examples: Sequence[TaggedSentence], index: Mapping[str, int], max_length: int
) -> list[Feature]:
    for example in examples:
        if example.tags is None or len(example.tags) != len(example.tokens):
            count = "none" if example.tags is None else str(len(example.tags))
            raise DataError(f"The sentence {example.id!r} has {len(example.tokens)} tokens and {count} tags.")
        unknown = [tag for tag in example.tags if tag not in index]
        if unknown:
            raise DataError(
                f"The sentence {example.id!r} has the tag {unknown[0]!r}; expected one of {list(index)}."
            )
    windows = _split(session, [example.tokens for example in examples], max_length)
    features = []
    for window in windows:
        tags = examples[window.sentence].tags or ()
        numbers = [index[tag] for tag in tags[window.first_word : window.first_word + len(window.positions)]]
        features.append(Feature((window.encoded,), {"positions": list(window.positions), "labels": numbers}))
    return features


def _split(session: EncoderSession, sentences: Sequence[Sequence[str]], limit: int) -> list[WordWindow]:
    return split_sentences(
        sentences,
        tokenizer=session.tokenizer,
        template=session.single,
        limit=limit,
        unknown_for_empty=True,
        # The last piece of a word alone has seen all of it where a model reads from left to right.
        read_last=session.reads_left_to_right,
    )
