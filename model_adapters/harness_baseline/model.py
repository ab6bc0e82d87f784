"""An opened baseline: the capabilities of the harness on top of one strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from harness import CapabilityError, UnknownNameError
from harness.models import (
    AdapterOptions,
    Choice,
    EmbedOptions,
    FitOptions,
    FloatArray,
    Head,
    HeadSpec,
    ModelDescription,
    Side,
    SpanAnswer,
    SpanQuestion,
    TextInput,
)
from harness_baseline.description import HEADS, BaselineOptions
from harness_baseline.fit import ALGORITHM, FitState, load_state, save_state
from harness_baseline.guess import Guess, Majority

if TYPE_CHECKING:
    from harness_baseline.char_ngram import CharNgram

Strategy: TypeAlias = "Majority | Guess | CharNgram"
"""The mathematics of one baseline; answers depend on the request and the state alone."""


def open_baseline(description: ModelDescription, options: AdapterOptions) -> Baseline:
    """Return the unfitted baseline that `describe` described."""
    assert isinstance(options, BaselineOptions)
    return Baseline(ref=description.ref, options=options, strategy=_strategy(description.ref, options))


def _strategy(ref: str, options: BaselineOptions) -> Strategy:
    if ref == "char-ngram":
        from harness_baseline.char_ngram import CharNgram

        return CharNgram(options)
    return Majority(options) if ref == "majority" else Guess(options)


class Baseline:
    """A baseline without a fitted head: it embeds, and it can be fitted.

    Of the training settings, `majority` and `random` use none, and `char-ngram` uses `epochs`. All of them ignore the
    validation set: they keep the last state, and they have no settings to select.
    """

    def __init__(
        self, *, ref: str, options: BaselineOptions, strategy: Strategy, state: FitState | None = None
    ) -> None:
        self._ref = ref
        self._options = options
        self._strategy = strategy
        self._state = state
        self._digest = state.digest() if state else None

    def identity(self) -> Mapping[str, str]:
        """Return the baseline's name, options and version, and the digest of the fit if there is one."""
        options = {name: str(value) for name, value in self._options.model_dump().items()}
        fit = {"fit": self._digest} if self._digest else {}
        return {"adapter": "baseline", "ref": self._ref, "algorithm": ALGORITHM, **options, **fit}

    def close(self) -> None:
        """Do nothing: there is nothing to free."""

    def embed(self, texts: Sequence[str], *, side: Side, options: EmbedOptions | None = None) -> FloatArray:
        """Return float32 unit rows of shape (texts, dimension).

        Both sides are embedded alike. Pooling, layer, maximal length and prefixes have no meaning here and
        are ignored: a baseline has neither layers nor a limit.
        """
        return self._strategy.embed(texts)

    def fit(
        self, train: Sequence[Any], validation: Sequence[Any], spec: HeadSpec, options: FitOptions
    ) -> Baseline:
        """Learn from `train`, save the fit into ``options.directory`` and return the fitted baseline.

        A baseline that is already fitted with the same head and labels is trained further. Raises
        `TrainingError`.
        """
        self._check_head(spec)
        state = self._strategy.learn(train, spec, options.settings, options.seed, self._state)
        save_state(state, options.directory, self._options.model_dump())
        return self._fitted(state)

    def load_fit(self, directory: Path, spec: HeadSpec) -> Baseline:
        """Return the baseline whose fit is saved in `directory`; raises `AdapterError`."""
        self._check_head(spec)
        return self._fitted(load_state(directory, self._ref, spec, self._options.model_dump()))

    def _fitted(self, state: FitState) -> Baseline:
        kinds: dict[Head, type[_Fitted]] = {
            Head.CLASSIFICATION: Classifier,
            Head.MULTIPLE_CHOICE: Chooser,
            Head.TAGGING: Tagger,
            Head.SPAN_EXTRACTION: SpanExtractor,
        }
        kind = kinds.get(state.head, _Fitted)
        return kind(ref=self._ref, options=self._options, strategy=self._strategy, state=state)

    def _check_head(self, spec: HeadSpec) -> None:
        if spec.head not in HEADS:
            heads = ", ".join(sorted(head.value for head in HEADS))
            raise CapabilityError(
                f"The baseline {self._ref!r} has no head {spec.head.value!r}; it has {heads}."
            )


class _Fitted(Baseline):
    """A baseline with a fitted head."""

    @property
    def state(self) -> FitState:
        """Return the learnt arrays."""
        assert self._state is not None
        return self._state


class Classifier(_Fitted):
    """A baseline that was fitted with a classification head."""

    def classify(self, inputs: Sequence[TextInput], labels: Sequence[str]) -> FloatArray:
        """Return scores of shape (inputs, labels); raises `UnknownNameError` for an unknown label."""
        for label in labels:
            if label not in self.state.labels:
                raise UnknownNameError("label of the fitted baseline", label, self.state.labels)
        columns = [self.state.labels.index(label) for label in labels]
        return np.ascontiguousarray(self._strategy.classify(self.state, inputs)[:, columns])


class Chooser(_Fitted):
    """A baseline that was fitted with a multiple-choice head."""

    def choose(self, items: Sequence[Choice]) -> list[tuple[float, ...]]:
        """Return one tuple of scores per item, in the order of its choices."""
        return self._strategy.choose(self.state, items)


class Tagger(_Fitted):
    """A baseline that was fitted with a tagging head."""

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return one tag for every token of every sentence; only tags of the training data occur."""
        return self._strategy.tag(self.state, sentences)


class SpanExtractor(_Fitted):
    """A baseline that was fitted with a span-extraction head."""

    def extract_spans(self, items: Sequence[SpanQuestion]) -> list[SpanAnswer]:
        """Return the best span of every item, with offsets in Unicode code points."""
        return self._strategy.extract_spans(self.state, items)
