"""The part in which baselines differ: how they embed, learn and answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from harness import Choice, FloatArray, HeadSpec, SpanAnswer, SpanQuestion, TextInput, TrainingSettings
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
        """Return the state that is learnt from the examples; `start` is that of the earlier training stage, if any."""

    def classify(self, state: FitState, inputs: Sequence[TextInput]) -> FloatArray:
        """Return scores of shape (inputs, labels of the state)."""

    def choose(self, state: FitState, items: Sequence[Choice]) -> list[tuple[float, ...]]:
        """Return one score per choice."""

    def tag(self, state: FitState, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return one tag of the state per token."""

    def extract_spans(self, state: FitState, items: Sequence[SpanQuestion]) -> list[SpanAnswer]:
        """Return one span per question."""


def no_span() -> SpanAnswer:
    """Return the answer to a question about a context without words."""
    return SpanAnswer(text="", start=-1, end=-1, score=0.0)
