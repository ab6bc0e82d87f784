"""Checks of fitting: seeded, saved without pickle, read back alike, and rejected without examples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.errors import TrainingError
from harness.models.capabilities import HEAD_CAPABILITY, Adapter, FitOptions, Fits, Head
from harness.testing.contract_setting import ContractSetting, ModelFixture, TrainingSet
from harness.testing.declaration_check import implemented
from harness.testing.probe import PROBES, agree

_PICKLES = frozenset({".bin", ".ckpt", ".joblib", ".pickle", ".pkl", ".pt", ".pth"})

every_head = pytest.mark.parametrize("head", list(Head), ids=lambda head: head.value)


class FitChecks(ContractSetting):
    """Checks of the results of `fit` and `load_fit`."""

    @every_head
    def test_fitting_twice_gives_the_same(self, model_fixture: ModelFixture, head: Head) -> None:
        """Two fits on the same examples with the same seed give the same answers."""
        training_set = _training_set(model_fixture, head)
        first, second = model_fixture.fitted(head)[0], model_fixture.fit(head)[0]
        _check_alike(model_fixture.name, training_set, first, second, "is fitted twice with one seed")

    @every_head
    def test_saved_fit_answers_alike(self, model_fixture: ModelFixture, head: Head) -> None:
        """A newly opened model reads the fit back, gives the same answers and has the same identity."""
        training_set = _training_set(model_fixture, head)
        fitted, loaded = model_fixture.fitted(head)[0], model_fixture.load(head)
        _check_alike(model_fixture.name, training_set, fitted, loaded, "is saved and read back")
        assert dict(loaded.identity()) == dict(fitted.identity()), (
            f"{model_fixture.name} fitted with {head.value} has another identity when it is read back."
        )

    @every_head
    def test_saved_fit_holds_no_pickle(self, model_fixture: ModelFixture, head: Head) -> None:
        """The folder of the fit holds files, and none of a format that runs code when it is read."""
        _training_set(model_fixture, head)
        files = [path for path in model_fixture.fitted(head)[1].rglob("*") if path.is_file()]
        assert files, f"{model_fixture.name} fitted with {head.value} saves nothing."
        pickles = sorted(path.name for path in files if path.suffix in _PICKLES)
        assert not pickles, f"{model_fixture.name} fitted with {head.value} saves {', '.join(pickles)}."

    @every_head
    def test_fitting_changes_the_identity(self, model_fixture: ModelFixture, head: Head) -> None:
        """A fitted model is not taken for the one that it came from."""
        _training_set(model_fixture, head)
        fitted = model_fixture.fitted(head)[0].identity()
        assert dict(fitted) != dict(model_fixture.bare.identity()), (
            f"{model_fixture.name} keeps its identity when it is fitted with {head.value}."
        )

    @every_head
    def test_fitting_leaves_the_model_alone(self, model_fixture: ModelFixture, head: Head) -> None:
        """The model that `fit` was called on still answers as before."""
        _training_set(model_fixture, head)
        declared = sorted(model_fixture.description.offers & implemented(model_fixture.bare))
        offers = [PROBES[capability] for capability in declared if capability in PROBES]
        if not offers:
            pytest.skip(f"{model_fixture.name} answers nothing as it stands")
        model, labels = model_fixture.open(), model_fixture.description.labels
        before = [probe.ask(model, probe.requests, labels) for probe in offers]
        model_fixture.fit(head, model)
        for probe, answers in zip(offers, before, strict=True):
            again = probe.ask(model, probe.requests, labels)
            assert all(agree(earlier, later) for earlier, later in zip(answers, again, strict=True)), (
                f"{model_fixture.name} changes its {probe.capability.value} answers when {head.value} is fitted."
            )

    @every_head
    def test_fitting_on_nothing_is_rejected(
        self, model_fixture: ModelFixture, head: Head, tmp_path: Path
    ) -> None:
        """Without a training example, `fit` raises `TrainingError`."""
        training_set = _training_set(model_fixture, head)
        model = model_fixture.open()
        assert isinstance(model, Fits)
        options = FitOptions(directory=tmp_path, settings=training_set.settings, seed=0)
        try:
            model.fit([], [], training_set.spec, options)
        except TrainingError:
            return
        except Exception as error:
            pytest.fail(f"{model_fixture.name} fitted with {head.value} on nothing raises {error!r}.")
        pytest.fail(f"{model_fixture.name} lets itself be fitted with {head.value} on no example.")


def _training_set(model_fixture: ModelFixture, head: Head) -> TrainingSet:
    training_set = model_fixture.training_set(head)
    if training_set is None:
        pytest.skip(f"{model_fixture.name} is not fitted with {head.value}")
    return training_set


def _check_alike(name: str, training_set: TrainingSet, one: Adapter, other: Adapter, when: str) -> None:
    probe = PROBES[HEAD_CAPABILITY[training_set.spec.head]]
    labels = training_set.spec.labels
    asks = [probe.ask]
    if training_set.spec.head is Head.DUAL_ENCODER:
        asks.append(_embed_passages)
    for ask in asks:
        first: Any = ask(one, probe.requests, labels)
        second: Any = ask(other, probe.requests, labels)
        for request, before, after in zip(probe.requests, first, second, strict=True):
            assert agree(before, after), (
                f"{name} fitted with {training_set.spec.head.value} answers {request!r} differently when it {when}."
            )


def _embed_passages(model: Any, requests: Sequence[Any], labels: Sequence[str]) -> Any:
    return model.embed(requests, side="passage")
