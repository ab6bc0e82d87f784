"""A plugin with a model that ranks one choice after the other, slowly."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from harness.hookspecs import hookimpl
from harness.models.adapters import AdapterEntry
from harness.models.capabilities import Capability, ModelDescription
from harness.models.options import AdapterOptions
from harness.models.requests import LikelihoodAnswer, LikelihoodRequest


def describe(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return what the model offers."""
    return ModelDescription(adapter="slow", ref=ref, offers=frozenset({Capability.SCORES_CONTINUATIONS}))


def open_model(description: ModelDescription, options: AdapterOptions) -> Slow:
    """Return the model."""
    return Slow()


class Slow:
    """Takes a hundredth of a second for an answer, so that a run of it can be watched and stopped."""

    def identity(self) -> Mapping[str, str]:
        """Return its name."""
        return {"adapter": "slow"}

    def close(self) -> None:
        """Do nothing."""

    def loglikelihood(self, requests: Sequence[LikelihoodRequest]) -> list[LikelihoodAnswer]:
        """Return the same for every continuation."""
        time.sleep(0.01 * len(requests))
        return [LikelihoodAnswer(token_logprobs=(-1.0,), is_greedy=False, byte_length=1) for _ in requests]


@hookimpl
def harness_register_adapters() -> list[AdapterEntry]:
    """Return the adapter ``slow``."""
    return [
        AdapterEntry(
            name="slow",
            target="slow_adapter:open_model",
            describe="slow_adapter:describe",
            options="harness.models.options:AdapterOptions",
            summary="It takes its time.",
        )
    ]
