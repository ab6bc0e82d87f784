"""MultiCheckList: behavioural tests from templates, in many languages (XTREME-R, sections 3.4 and 5.1, appendix F)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness.hookspecs import hookimpl

if TYPE_CHECKING:
    from harness.data.readers.reader import Reader
    from harness.metrics.metric import Metric

__all__ = ["harness_register_metrics", "harness_register_readers"]


@hookimpl
def harness_register_readers() -> Iterable[Reader]:
    """Return the readers of generated cases and of the released templates."""
    from harness_checklist.readers import READERS

    return READERS


@hookimpl
def harness_register_metrics() -> Iterable[Metric]:
    """Return the scores of test cases."""
    from harness_checklist.metrics import METRICS

    return METRICS
