"""Windows of a question and a part of its context, and the mapping from pieces back to characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from harness import SpanQuestion, TrainingSettings
from harness_hf.encoder.session import EncoderSession
from harness_hf.inference.batching import Encoded

__all__ = ["SpanLimits", "SpanWindow", "split_contexts", "trim_span"]


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
        inside = [i for i, (left, right) in enumerate(self.offsets) if left < end and right > start]
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
    questions = session.tokenizer(
        [item.question for item in items],
        add_special_tokens=False,
        return_attention_mask=False,
        verbose=False,
    )["input_ids"]
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
        asked = questions[number][: min(limits.max_query_length, limits.max_length // 2)]
        pieces = contexts["input_ids"][number]
        offsets = [_without_space(item.context, *pair) for pair in contexts["offset_mapping"][number]]
        room = max(1, limits.max_length - session.pair.size - len(asked))
        for start in _starts(len(pieces), room, limits.stride):
            stop = start + room
            windows.append(
                SpanWindow(
                    item=number,
                    encoded=session.pair.wrap(asked, pieces[start:stop]),
                    context_start=session.pair.second_start(len(asked)),
                    offsets=tuple(offsets[start:stop]),
                    seen_until=offsets[start - 1][1] if start else 0,
                    continues_at=offsets[stop][0] if stop < len(pieces) else len(item.context),
                    question_cut=len(asked) < len(questions[number]),
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


def _without_space(context: str, start: int, end: int) -> tuple[int, int]:
    """Return a piece's offsets without the space that sentencepiece counts to it."""
    while start < end and context[start].isspace():
        start += 1
    return start, end
