"""A plugin with a model that ranks by a hash: ``noise:it`` gives each continuation a log-probability of its own."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

from harness.hookspecs import hookimpl
from harness.models.adapters import AdapterEntry
from harness.models.capabilities import Capability, ModelDescription
from harness.models.options import AdapterOptions
from harness.models.requests import LikelihoodAnswer, LikelihoodRequest


def describe(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return a description."""
    return ModelDescription(adapter="noise", ref=ref, offers=frozenset({Capability.SCORES_CONTINUATIONS}))


def open_model(description: ModelDescription, options: AdapterOptions) -> Noise:
    """Return the model."""
    return Noise()


class Noise:
    """A model whose answers have one token of a log-probability that follows from the text."""

    def identity(self) -> Mapping[str, str]:
        """Return its name."""
        return {"adapter": "noise"}

    def close(self) -> None:
        """Do nothing."""

    def loglikelihood(self, requests: Sequence[LikelihoodRequest]) -> list[LikelihoodAnswer]:
        """Return one answer per request."""
        return [
            LikelihoodAnswer(
                token_logprobs=(
                    -zlib.crc32(f"{request.context}{request.continuation}".encode()) / 2**32 * 50,
                ),
                is_greedy=False,
                byte_length=len(request.continuation.encode()),
            )
            for request in requests
        ]


@hookimpl
def harness_register_adapters() -> list[AdapterEntry]:
    """Return the adapter ``noise``."""
    return [
        AdapterEntry(
            name="noise",
            target="noise_adapter:open_model",
            describe="noise_adapter:describe",
            options="harness.models.options:AdapterOptions",
            summary="It ranks by a hash.",
        )
    ]
