"""Layer-wise probing: linear classifiers on frozen hidden states, with controls, code lengths and intervals."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.kinds import Method
    from harness.registry import ReportFormat, ReportSection


@hookimpl
def harness_register_methods() -> Iterable[Method]:
    """Return ``probe`` and ``probe_paper``, for the kinds whose items are words or sentences with a label."""
    from harness_probing.method import METHODS

    return METHODS


@hookimpl
def harness_register_reports() -> Iterable[ReportFormat | ReportSection]:
    """Return the section of layer-wise probes, and its rows as CSV."""
    from harness_probing.reporting.catalog import REPORTS

    return REPORTS
