"""The fixtures that all checks of the adapter contract share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from harness.models.adapters import AdapterEntry
from harness.models.capabilities import Head, HeadSpec, ModelDescription, TrainingSettings
from harness.models.options import AdapterOptions, parse_options
from harness.testing.examples import head_spec, training_examples
from harness.testing.model_fixture import ModelFixture, TrainingSet


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
