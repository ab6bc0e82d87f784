"""The fixtures that all checks of the adapter contract share: the model under test, opened and fitted once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.models.adapters import AdapterEntry
from harness.models.capabilities import (
    Adapter,
    Capability,
    FitOptions,
    Fits,
    Head,
    HeadSpec,
    ModelDescription,
    TrainingSettings,
    capability_protocols,
)
from harness.models.options import AdapterOptions, parse_options
from harness.testing.examples import head_spec, training_examples

_SEED = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSet:
    """Examples, head and settings of one training."""

    examples: Sequence[Any]
    spec: HeadSpec
    settings: TrainingSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUnderTest:
    """A model that has the capability a check asks for."""

    name: str
    """For messages: ``baseline:majority fitted with tagging``."""
    model: Any
    labels: tuple[str, ...]
    """The labels that it knows."""


class ModelFixture:
    """The model under test, as it stands and fitted with each head; each fit is made once."""

    def __init__(
        self,
        *,
        entry: AdapterEntry,
        description: ModelDescription,
        options: AdapterOptions,
        training_sets: dict[Head, TrainingSet],
        make_folder: Callable[[str], Path],
    ) -> None:
        self.name = f"{entry.name}:{description.ref}"
        self.description = description
        self._entry = entry
        self._options = options
        self._lessons = training_sets
        self._make_folder = make_folder
        self._opened = ExitStack()
        self._bare: Adapter | None = None
        self._fitted: dict[Head, tuple[Adapter, Path]] = {}

    def open(self) -> Adapter:
        """Return a newly opened model."""
        model = self._entry.open(self.description, self._options)
        self._opened.callback(model.close)
        return model

    @property
    def bare(self) -> Adapter:
        """The model as it stands, opened once."""
        if self._bare is None:
            self._bare = self.open()
        return self._bare

    def training_set(self, head: Head) -> TrainingSet | None:
        """Return the training set of the head, or None where the contract does not train it."""
        return self._lessons.get(head)

    def fit(self, head: Head, model: Adapter | None = None) -> tuple[Adapter, Path]:
        """Return a new fit and the folder it was saved into."""
        trainable = model or self.open()
        assert isinstance(trainable, Fits), f"The adapter {self.name!r} offers heads, but has no fit()."
        training_set = self._lessons[head]
        folder = self._make_folder(head.value)
        options = FitOptions(
            directory=folder, settings=training_set.settings, seed=_SEED, describe=head.value
        )
        fitted = trainable.fit(training_set.examples, [], training_set.spec, options)
        self._opened.callback(fitted.close)
        return fitted, folder

    def fitted(self, head: Head) -> tuple[Adapter, Path]:
        """Return the model fitted with `head`, and the folder it was saved into; fitted once."""
        if head not in self._fitted:
            self._fitted[head] = self.fit(head)
        return self._fitted[head]

    def load(self, head: Head) -> Adapter:
        """Return the fit of `fitted`, read back by a newly opened model."""
        model = self.open()
        assert isinstance(model, Fits)
        loaded = model.load_fit(self.fitted(head)[1], self._lessons[head].spec)
        self._opened.callback(loaded.close)
        return loaded

    def models_under_test(self, capability: Capability) -> list[ModelUnderTest]:
        """Return the models that declare and have the capability, as they stand, then by head.

        Skips the check where there is none.
        """
        models: list[ModelUnderTest] = []
        if capability in self.description.offers:
            models.append(ModelUnderTest(name=self.name, model=self.bare, labels=self.description.labels))
        for head, training_set in self._lessons.items():
            if capability in self.description.after_fit.get(head, frozenset()):
                name = f"{self.name} fitted with {head.value}"
                models.append(
                    ModelUnderTest(name=name, model=self.fitted(head)[0], labels=training_set.spec.labels)
                )
        protocol = capability_protocols()[capability]
        models = [under_test for under_test in models if isinstance(under_test.model, protocol)]
        if not models:
            pytest.skip(f"{self.name} does not offer {capability.value}")
        return models

    def close(self) -> None:
        """Close everything that was opened."""
        self._opened.close()


def implemented(model: Any) -> frozenset[Capability]:
    """Return the capabilities whose protocol the model satisfies."""
    protocols = capability_protocols()
    return frozenset(capability for capability, protocol in protocols.items() if isinstance(model, protocol))


class ContractSetting:
    """Setting of a contract class: the author's fixtures `entry` and `ref`, and these defaults."""

    @pytest.fixture(scope="class")
    @classmethod
    def options(cls) -> Mapping[str, str]:
        """Return the adapter's options as the command line gives them."""
        return {}

    @pytest.fixture(scope="class")
    @classmethod
    def heads(cls, description: ModelDescription) -> Sequence[Head]:
        """Return the heads to fit: all that the description declares."""
        return tuple(description.after_fit)

    @classmethod
    def training_settings(cls, head: Head) -> TrainingSettings:
        """Return how a head is trained; override it where the defaults are too slow or too wild."""
        return TrainingSettings(
            learning_rate=1e-3, epochs=1, batch_size=4, max_length=64, max_query_length=16
        )

    @classmethod
    def training_examples(cls, head: Head) -> Sequence[Any]:
        """Return the examples that a head is trained on; a head without examples is not checked."""
        return training_examples(head)

    @classmethod
    def head_spec(cls, head: Head) -> HeadSpec:
        """Return the specification of a head."""
        return head_spec(head)

    @pytest.fixture(scope="class")
    @classmethod
    def parsed_options(cls, entry: AdapterEntry, options: Mapping[str, str]) -> AdapterOptions:
        """Return the validated options."""
        return parse_options(entry, options)

    @pytest.fixture(scope="class")
    @classmethod
    def description(cls, entry: AdapterEntry, ref: str, parsed_options: AdapterOptions) -> ModelDescription:
        """Return the adapter's description of the model."""
        return entry.describe_model(ref, parsed_options)

    @pytest.fixture(scope="class")
    @classmethod
    def model_fixture(
        cls,
        entry: AdapterEntry,
        description: ModelDescription,
        parsed_options: AdapterOptions,
        heads: Sequence[Head],
        tmp_path_factory: pytest.TempPathFactory,
    ) -> Iterator[ModelFixture]:
        """Open and fit the model on demand; close it after the last check."""
        training_sets = {
            head: TrainingSet(
                examples=examples, spec=cls.head_spec(head), settings=cls.training_settings(head)
            )
            for head in heads
            if (examples := cls.training_examples(head))
        }
        model_fixture = ModelFixture(
            entry=entry,
            description=description,
            options=parsed_options,
            training_sets=training_sets,
            make_folder=tmp_path_factory.mktemp,
        )
        yield model_fixture
        model_fixture.close()
