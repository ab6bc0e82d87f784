"""Checks of fitting: seeded, saved without pickle, read back alike, and refused without examples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.errors import TrainingError
from harness.models.capabilities import HEAD_CAPABILITY, Adapter, FitOptions, Fits, Head
from harness.testing.contract_setting import ContractSetting
from harness.testing.declaration_check import implemented
from harness.testing.probe import PROBES, agree
from harness.testing.workshop import Lesson, Workshop

__all__ = ["FitChecks"]

_PICKLES = frozenset({".bin", ".ckpt", ".joblib", ".pickle", ".pkl", ".pt", ".pth"})

every_head = pytest.mark.parametrize("head", list(Head), ids=lambda head: head.value)


class FitChecks(ContractSetting):
    """What `fit` and `load_fit` return."""

    @every_head
    def test_fitting_twice_gives_the_same(self, workshop: Workshop, head: Head) -> None:
        """Two fits on the same examples with the same seed give the same answers."""
        lesson = _lesson(workshop, head)
        one, other = workshop.fitted(head)[0], workshop.fit(head)[0]
        _check_alike(workshop.name, lesson, one, other, "is fitted twice with one seed")

    @every_head
    def test_saved_fit_answers_alike(self, workshop: Workshop, head: Head) -> None:
        """A newly opened model reads the fit back, gives the same answers and has the same identity."""
        lesson = _lesson(workshop, head)
        fitted, loaded = workshop.fitted(head)[0], workshop.load(head)
        _check_alike(workshop.name, lesson, fitted, loaded, "is saved and read back")
        assert dict(loaded.identity()) == dict(fitted.identity()), (
            f"{workshop.name} fitted with {head.value} has another identity when it is read back."
        )

    @every_head
    def test_saved_fit_holds_no_pickle(self, workshop: Workshop, head: Head) -> None:
        """The folder of the fit holds files, and none of a format that runs code when it is read."""
        _lesson(workshop, head)
        files = [path for path in workshop.fitted(head)[1].rglob("*") if path.is_file()]
        assert files, f"{workshop.name} fitted with {head.value} saves nothing."
        pickles = sorted(path.name for path in files if path.suffix in _PICKLES)
        assert not pickles, f"{workshop.name} fitted with {head.value} saves {', '.join(pickles)}."

    @every_head
    def test_fitting_changes_the_identity(self, workshop: Workshop, head: Head) -> None:
        """A fitted model is not taken for the one that it came from."""
        _lesson(workshop, head)
        fitted = workshop.fitted(head)[0].identity()
        assert dict(fitted) != dict(workshop.bare.identity()), (
            f"{workshop.name} keeps its identity when it is fitted with {head.value}."
        )

    @every_head
    def test_fitting_leaves_the_model_alone(self, workshop: Workshop, head: Head) -> None:
        """The model that `fit` was called on still answers as before."""
        _lesson(workshop, head)
        declared = sorted(workshop.description.offers & implemented(workshop.bare))
        offers = [PROBES[capability] for capability in declared if capability in PROBES]
        if not offers:
            pytest.skip(f"{workshop.name} answers nothing as it stands")
        model, labels = workshop.open(), workshop.description.labels
        before = [probe.ask(model, probe.requests, labels) for probe in offers]
        workshop.fit(head, model)
        for probe, answers in zip(offers, before, strict=True):
            again = probe.ask(model, probe.requests, labels)
            assert all(agree(one, other) for one, other in zip(answers, again, strict=True)), (
                f"{workshop.name} changes its {probe.capability.value} answers when {head.value} is fitted."
            )

    @every_head
    def test_fitting_on_nothing_is_refused(self, workshop: Workshop, head: Head, tmp_path: Path) -> None:
        """Without a training example, `fit` raises `TrainingError`."""
        lesson = _lesson(workshop, head)
        model = workshop.open()
        assert isinstance(model, Fits)
        options = FitOptions(directory=tmp_path, settings=lesson.settings, seed=0)
        try:
            model.fit([], [], lesson.spec, options)
        except TrainingError:
            return
        except Exception as error:
            pytest.fail(f"{workshop.name} fitted with {head.value} on nothing raises {error!r}.")
        pytest.fail(f"{workshop.name} lets itself be fitted with {head.value} on no example.")


def _lesson(workshop: Workshop, head: Head) -> Lesson:
    lesson = workshop.lesson(head)
    if lesson is None:
        pytest.skip(f"{workshop.name} is not fitted with {head.value}")
    return lesson


def _check_alike(name: str, lesson: Lesson, one: Adapter, other: Adapter, when: str) -> None:
    probe = PROBES[HEAD_CAPABILITY[lesson.spec.head]]
    labels = lesson.spec.labels
    asks = [probe.ask]
    if lesson.spec.head is Head.DUAL_ENCODER:
        asks.append(_embed_passages)
    for ask in asks:
        first: Any = ask(one, probe.requests, labels)
        second: Any = ask(other, probe.requests, labels)
        for request, before, after in zip(probe.requests, first, second, strict=True):
            assert agree(before, after), (
                f"{name} fitted with {lesson.spec.head.value} answers {request!r} differently when it {when}."
            )


def _embed_passages(model: Any, requests: Sequence[Any], labels: Sequence[str]) -> Any:
    return model.embed(requests, side="passage")
