"""Tagging: one tag for every token of a sentence, read at the token's first piece, or at its last in decoders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from harness import DataError, TrainingError
from harness.data import TaggedSentence
from harness.models import Call
from harness_hf.encoder.adapter import Encoder, EncoderSession
from harness_hf.inference.answer_stream import Parts, Procedure
from harness_hf.inference.session import Inputs
from harness_hf.inference.word_vectors import SENTENCE_CHUNK, WordWindow, split_sentences
from harness_hf.training.batches import Feature, HeadTraining

IGNORED = -100
"""Target of pieces that carry no tag; the loss skips it."""
OUTSIDE = "O"


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
        train=_features(session, train, index, max_length),
        validation=_features(session, validation, index, max_length),
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


def _features(
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
