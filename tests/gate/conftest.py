from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from harness.registry.registry import Registry
from harness.storage.records import ItemRecord
from harness.storage.run_folder import Run
from harness_gate.verdict import Check, Decision, Policy, decide
from tests.comparison.conftest import labelled, make_run  # noqa: F401  # make_run is a fixture

Decide = Callable[..., Decision]


def answers(right: int, wrong: int, *, seed: int = 0, **given: Any) -> list[ItemRecord]:
    """Return so many right and wrong answers, in an order that the seed makes."""
    letters = ["a"] * right + ["b"] * wrong
    np.random.default_rng(seed).shuffle(letters)
    return labelled("".join(letters), "a" * (right + wrong), **given)


def by_language(decision: Decision) -> Mapping[str | None, Check]:
    return {check.language: check for check in decision.checks}


@pytest.fixture
def gate(registry: Registry) -> Decide:
    """Decide on a run against a base run, with the keys of a policy."""

    def run(new: Run, base: Run, **policy: Any) -> Decision:
        return decide(new, base, registry.metrics, Policy.model_validate(policy))

    return run
