"""Span extraction: the start and end of an answer in its context."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from harness import DataError
from harness.data import SpanExample
from harness.models import Call, FloatArray, SpanAnswer, SpanQuestion, TrainingSettings
from harness_hf.encoder.adapter import Encoder, EncoderSession
from harness_hf.inference.pieces import Encoded, piece_offsets, plain_pieces
from harness_hf.inference.session import Inputs, Parts, Procedure
from harness_hf.training.batches import Feature, HeadTraining, collate_with

ITEM_CHUNK = 2048
"""Questions whose windows are made and sorted together."""
TARGETS = ("start_positions", "end_positions")


class SpanExtractor(Encoder):
    """An encoder with a question answering head."""

    def extract_spans(self, items: Sequence[SpanQuestion]) -> list[SpanAnswer]:
        """Return the best span of every item, with offsets in Unicode code points.

        Each window proposes its best span by the sum of start and end logits, among the pairs of its `n_best`
        starts and ends; the best proposal of all windows wins, the first window at ties. Nothing else
        compares windows: a span that two windows hold counts where its score is higher. The answer is empty
        only where the context has no piece at all.
        """
        return self._answers(Call(ability="extract_spans"), items, ITEM_CHUNK)

    def procedure(self, call: Call) -> Procedure:
        """Return how a call's requests are answered: a question once all windows of its context are."""
        if call.ability != "extract_spans":
            return super().procedure(call)
        session, limits = self._session, self._limits()

        def prepare(items: Sequence[SpanQuestion]) -> tuple[Sequence[SpanQuestion], list[SpanWindow]]:
            return items, split_contexts(items, session, limits)

        def answer(
            prepared: tuple[Sequence[SpanQuestion], list[SpanWindow]],
        ) -> Iterator[tuple[list[int], list[SpanAnswer]]]:
            items, windows = prepared
            return self._spans(call, items, windows, limits)

        return Procedure(prepare=prepare, answer=answer)

    def _limits(self) -> SpanLimits:
        session = self._session
        if self._record is None:
            return SpanLimits(max_length=session.length_limit(session.options.max_length or 384))
        limits = SpanLimits.from_settings(self._record.settings)
        return replace(limits, max_length=session.length_limit(self._record.max_length))

    def _spans(
        self, call: Call, items: Sequence[SpanQuestion], windows: Sequence[SpanWindow], limits: SpanLimits
    ) -> Iterator[tuple[list[int], list[SpanAnswer]]]:
        session = self._session
        proposals: list[SpanAnswer | None] = [None] * len(windows)
        windows_of: list[list[int]] = [[] for _ in items]
        for index, window in enumerate(windows):
            windows_of[window.item].append(index)

        def forward(batch: Inputs) -> tuple[FloatArray, FloatArray]:
            output = session.network(**batch)
            return output.start_logits.float().cpu().numpy(), output.end_logits.float().cpu().numpy()

        pending = Parts([window.item for window in windows], len(items))
        idle = pending.idle()
        yield idle, [_best([]) for _ in idle]
        encoded = [window.encoded for window in windows]
        for rows, (starts, ends) in session.run(
            encoded, forward, ability=call.ability, stopping=call.stopping
        ):
            session.require_finite(starts, "scores")
            session.require_finite(ends, "scores")
            for row, index in enumerate(rows):
                context = items[windows[index].item].context
                proposals[index] = _propose(windows[index], context, starts[row], ends[row], limits)
            complete = pending.finish(rows)
            yield complete, [_best([proposals[index] for index in windows_of[item]]) for item in complete]


def _best(proposals: Sequence[SpanAnswer | None]) -> SpanAnswer:
    """Return the proposal with the highest score, the first one at ties; without any, that nothing was found."""
    best = SpanAnswer(text="", start=-1, end=-1, score=0.0)
    for proposal in proposals:
        if proposal is not None and (best.start < 0 or proposal.score > best.score):
            best = proposal
    return best


def _propose(
    window: SpanWindow,
    context: str,
    starts: FloatArray,
    ends: FloatArray,
    limits: SpanLimits,
) -> SpanAnswer | None:
    """Return the best span of a window; None where no piece of it is visible text."""
    inside = slice(window.context_start, window.context_start + len(window.offsets))
    visible = np.array([stop > begin for begin, stop in window.offsets])
    span = best_span(starts[inside], ends[inside], visible, limits.max_answer_length, limits.n_best)
    if span is None:
        return None
    first, last = span
    start, end = trim_span(context, window.offsets[first][0], window.offsets[last][1])
    score = float(starts[inside][first]) + float(ends[inside][last])
    return SpanAnswer(
        text=context[start:end], start=start, end=end, score=score, truncated=window.question_cut
    )


def best_span(
    starts: FloatArray, ends: FloatArray, visible: Any, max_length: int, n_best: int
) -> tuple[int, int] | None:
    """Return the first and last piece of the span with the highest sum of logits.

    Only pairs among the `n_best` starts and the `n_best` ends are looked at, as in SQuAD's scripts; where
    none of those pairs is a span of at most `max_length` pieces, all spans are. A span starts and ends at a
    visible piece. Ties go to the earlier start, then the earlier end. None where no piece is visible.
    """
    pieces = np.flatnonzero(visible)
    if not len(pieces):
        return None
    top_starts = pieces[np.argsort(-starts[pieces], kind="stable")[:n_best]]
    top_ends = pieces[np.argsort(-ends[pieces], kind="stable")[:n_best]]
    return _best_pair(starts, ends, top_starts, top_ends, max_length) or _best_pair(
        starts, ends, pieces, pieces, max_length
    )


def _best_pair(
    starts: FloatArray, ends: FloatArray, first: Any, last: Any, max_length: int
) -> tuple[int, int] | None:
    first, last = np.sort(first), np.sort(last)
    lengths = last[None, :] - first[:, None] + 1
    sums = starts[first][:, None].astype(np.float64) + ends[last][None, :]
    sums = np.where((lengths >= 1) & (lengths <= max_length), sums, -np.inf)
    row, column = np.unravel_index(int(np.argmax(sums)), sums.shape)
    return (int(first[row]), int(last[column])) if np.isfinite(sums[row, column]) else None


def prepare_span_extraction(
    session: EncoderSession,
    train: Sequence[SpanExample],
    validation: Sequence[SpanExample],
    limits: SpanLimits,
) -> HeadTraining:
    """Return the training inputs of a span head; raises `DataError` for an answer that is not in its context.

    The score is the mean over windows of the F1 between the pieces of the predicted and of the gold span;
    both are the first special piece where the window does not hold the answer.
    """
    return HeadTraining(
        train=_features(session, train, limits),
        validation=_features(session, validation, limits),
        collate=collate_with(session.pad, TARGETS),
        label_names=TARGETS,
        decide=lambda logits, _: torch.stack([logits[0].argmax(dim=-1), logits[1].argmax(dim=-1)], dim=-1),
        score=lambda predicted, gold: piece_f1(np.asarray(predicted), np.stack(gold, axis=-1)),
        metric="piece_f1",
    )


def piece_f1(predicted: Any, gold: Any) -> float:
    """Return the mean F1 of the pieces of spans; both of shape (windows, 2), first and last piece."""
    first = np.maximum(predicted[:, 0], gold[:, 0])
    last = np.minimum(predicted[:, 1], gold[:, 1])
    overlap = np.maximum(last - first + 1, 0) * (predicted[:, 1] >= predicted[:, 0])
    sizes = np.maximum(predicted[:, 1] - predicted[:, 0] + 1, 0) + gold[:, 1] - gold[:, 0] + 1
    return float(np.mean(2 * overlap / sizes))


def _features(session: EncoderSession, examples: Sequence[SpanExample], limits: SpanLimits) -> list[Feature]:
    for example in examples:
        _check_answer(example)
    items = [
        SpanQuestion(id=example.id, question=example.question, context=example.context)
        for example in examples
    ]
    features = []
    for window in split_contexts(items, session, limits):
        answer = examples[window.item].answers[0]
        # The first special piece means "the answer is not in this window".
        pieces = window.pieces_of(answer.start, answer.start + len(answer.text)) or (0, 0)
        features.append(Feature((window.encoded,), dict(zip(TARGETS, pieces, strict=True))))
    return features


def _check_answer(example: SpanExample) -> None:
    if not example.answers:
        raise DataError(f"The question {example.id!r} has no answer to train on.")
    answer = example.answers[0]
    span = example.context[answer.start : answer.start + len(answer.text)] if answer.start >= 0 else ""
    if not answer.text or span != answer.text:
        raise DataError(
            f"The question {example.id!r} has the answer {answer.text!r} at offset {answer.start}, "
            f"but its context has {span!r} there.",
            hint="Offsets count Unicode code points.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanLimits:
    """How contexts are cut into windows and spans are chosen; the defaults are those of SQuAD's scripts."""

    max_length: int = 384
    stride: int = 128
    """Pieces from the start of one window to the start of the next."""
    max_query_length: int = 64
    max_answer_length: int = 30
    n_best: int = 20

    @classmethod
    def from_settings(cls, settings: TrainingSettings) -> SpanLimits:
        """Return the limits that a fit was trained with."""
        return cls(
            max_length=settings.max_length,
            stride=settings.stride,
            max_query_length=settings.max_query_length,
            max_answer_length=settings.max_answer_length,
            n_best=settings.n_best,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanWindow:
    """One window."""

    item: int
    encoded: Encoded
    context_start: int
    """Index in `encoded` of the first piece of the context."""
    offsets: tuple[tuple[int, int], ...]
    """Start and end of each context piece, in code points of the whole context."""
    seen_until: int
    """End of the piece before the window, 0 for the first window."""
    continues_at: int
    """Start of the piece after the window, the length of the context for the last window."""
    question_cut: bool

    def pieces_of(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the indices in `encoded` of the first and last piece of ``context[start:end]``.

        None where the window does not hold all of it.
        """
        if start < self.seen_until or end > self.continues_at:
            return None
        inside = [i for i, (first, last) in enumerate(self.offsets) if first < end and last > start]
        if not inside:
            return None
        return self.context_start + inside[0], self.context_start + inside[-1]


def split_contexts(
    items: Sequence[SpanQuestion], session: EncoderSession, limits: SpanLimits
) -> list[SpanWindow]:
    """Return the windows of every item, in order; items whose context has no pieces have no windows.

    The question is cut at `max_query_length` pieces; every window then takes as many pieces of the context as
    fit, and the next one starts `stride` pieces later (Devlin et al., 2019, ``run_squad.py``).
    """
    if not items:
        return []
    questions = plain_pieces(session.tokenizer, [item.question for item in items])
    contexts = session.tokenizer(
        [item.context for item in items],
        add_special_tokens=False,
        return_attention_mask=False,
        verbose=False,
        return_offsets_mapping=True,
    )
    windows: list[SpanWindow] = []
    for number, item in enumerate(items):
        # Half of the window at most, so that a small model still sees some of the context.
        question = questions[number][: min(limits.max_query_length, limits.max_length // 2)]
        pieces = contexts["input_ids"][number]
        offsets = piece_offsets(item.context, contexts["offset_mapping"][number])
        room = max(1, limits.max_length - session.pair.size - len(question))
        for start in _starts(len(pieces), room, limits.stride):
            stop = start + room
            windows.append(
                SpanWindow(
                    item=number,
                    encoded=session.pair.wrap(question, pieces[start:stop]),
                    context_start=session.pair.second_start(len(question)),
                    offsets=tuple(offsets[start:stop]),
                    seen_until=offsets[start - 1][1] if start else 0,
                    continues_at=offsets[stop][0] if stop < len(pieces) else len(item.context),
                    question_cut=len(question) < len(questions[number]),
                )
            )
    return windows


def trim_span(context: str, start: int, end: int) -> tuple[int, int]:
    """Return the span without whitespace at its ends, with the combining marks of its last letter.

    A piece may end between a letter and its mark (an accent in NFD, a vowel sign); the mark belongs to the
    answer.
    """
    while end < len(context) and end > start and unicodedata.category(context[end]).startswith("M"):
        end += 1
    while start < end and context[start].isspace():
        start += 1
    while end > start and context[end - 1].isspace():
        end -= 1
    return start, end


def _starts(pieces: int, room: int, stride: int) -> list[int]:
    """Return where windows start: every `stride` pieces until one reaches the end."""
    starts: list[int] = []
    start = 0
    while pieces:
        starts.append(start)
        if start + room >= pieces:
            break
        start += min(room, stride)
    return starts
