"""What distinguishes one baseline from another: how it embeds, learns and answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from harness.models.capabilities import (
    Choice,
    FloatArray,
    HeadSpec,
    SpanAnswer,
    SpanQuestion,
    TextInput,
    TrainingSettings,
)
from harness_baseline.state import FitState

__all__ = ["Strategy", "no_span"]


class Strategy(Protocol):
    """The mathematics of one baseline; answers depend on the request and the state alone."""

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Return float32 unit rows of shape (texts, dimension)."""

    def learn(
        self,
        train: Sequence[Any],
        spec: HeadSpec,
        settings: TrainingSettings,
        seed: int,
        start: FitState | None,
    ) -> FitState:
        """Return what the examples teach; `start` is the state of the training stage before, if any."""

    def classify(self, state: FitState, inputs: Sequence[TextInput]) -> FloatArray:
        """Return scores of shape (inputs, labels of the state)."""

    def choose(self, state: FitState, items: Sequence[Choice]) -> list[tuple[float, ...]]:
        """Return one score a choice."""

    def tag(self, state: FitState, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return one tag of the state a token."""

    def extract_spans(self, state: FitState, items: Sequence[SpanQuestion]) -> list[SpanAnswer]:
        """Return one span a question."""


def no_span() -> SpanAnswer:
    """Return the answer to a question about a context without words."""
    return SpanAnswer(text="", start=-1, end=-1, score=0.0)
