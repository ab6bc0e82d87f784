"""A plugin with a model that ranks: ``ranks:it`` gives every byte of a continuation the same log-probability.

By sums the shortest continuation wins, by bytes all are equal and the first one wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.hookspecs import hookimpl
from harness.models.adapters import AdapterEntry
from harness.models.capabilities import Capability, ModelDescription
from harness.models.options import AdapterOptions
from harness.models.requests import LikelihoodAnswer, LikelihoodRequest


def describe(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return a description."""
    return ModelDescription(adapter="ranks", ref=ref, offers=frozenset({Capability.SCORES_CONTINUATIONS}))


def open_model(description: ModelDescription, options: AdapterOptions) -> Ranks:
    """Return the model."""
    return Ranks()


class Ranks:
    """A model whose tokens are bytes, each of log-probability -1."""

    def identity(self) -> Mapping[str, str]:
        """Return its name."""
        return {"adapter": "ranks"}

    def close(self) -> None:
        """Do nothing."""

    def loglikelihood(self, requests: Sequence[LikelihoodRequest]) -> list[LikelihoodAnswer]:
        """Return one answer per request."""
        lengths = [len(request.continuation.encode()) for request in requests]
        return [
            LikelihoodAnswer(token_logprobs=(-1.0,) * length, is_greedy=False, byte_length=length)
            for length in lengths
        ]


@hookimpl
def harness_register_adapters() -> list[AdapterEntry]:
    """Return the adapter ``ranks``."""
    return [
        AdapterEntry(
            name="ranks",
            target="ranking_adapter:open_model",
            describe="ranking_adapter:describe",
            options="harness.models.options:AdapterOptions",
            summary="It ranks by length.",
        )
    ]
