"""MultiCheckList: behavioural tests from templates, in many languages (XTREME-R, sections 3.4 and 5.1, appendix F)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.data import Reader
    from harness.metrics import Metric
    from harness.registry import ReportSection

__all__ = ["harness_register_metrics", "harness_register_readers", "harness_register_reports"]


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


@hookimpl
def harness_register_reports() -> Iterable[ReportSection]:
    """Return the section of failing test cases."""
    from harness.registry import ReportSection

    return [
        ReportSection(
            name="cases",
            title="Failing test cases",
            target="harness_checklist.failures:read_cases",
            place="items",
        )
    ]
