"""XTREME-R (Ruder et al., 2021): the parts that only this benchmark needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness import hookimpl
from harness.models import AdapterEntry

if TYPE_CHECKING:
    from harness.data import Reader
    from harness.kinds import Method

__all__ = ["SUBMISSION", "harness_register_adapters", "harness_register_methods", "harness_register_readers"]

SUBMISSION = AdapterEntry(
    name="submission",
    target="harness_xtreme_r.submission.exchange:open_submission",
    describe="harness_xtreme_r.submission.exchange:describe",
    options="harness_xtreme_r.submission.exchange:SubmissionOptions",
    summary="Predictions in the public XTREME-R layout, as if a model gave them.",
    examples=("submission:DIR",),
)


@hookimpl
def harness_register_adapters() -> list[AdapterEntry]:
    """Return the declaration of the adapter ``submission``."""
    return [SUBMISSION]


@hookimpl
def harness_register_methods() -> Iterable[Method]:
    """Return the method that reads predictions from a submission, for every kind that has a public format."""
    from harness_xtreme_r.submission.exchange import METHODS

    return METHODS


@hookimpl
def harness_register_readers() -> Iterable[Reader]:
    """Return the readers of LAReQA, Mewsli-X and of XCOPA's repaired questions."""
    from harness_xtreme_r.readers import MEWSLI_X_ENTITIES, MEWSLI_X_MENTIONS, MEWSLI_X_PAIRS, XCOPA_ALIGNED
    from harness_xtreme_r.xquad_r import SQUAD_SENTENCES, XQUAD_R_QUESTIONS, XQUAD_R_SENTENCES

    mewsli_x = (MEWSLI_X_ENTITIES, MEWSLI_X_MENTIONS, MEWSLI_X_PAIRS)
    return [*mewsli_x, SQUAD_SENTENCES, XCOPA_ALIGNED, XQUAD_R_QUESTIONS, XQUAD_R_SENTENCES]
