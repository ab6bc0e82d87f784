"""Layer-wise probing: linear classifiers on frozen hidden states, with controls, code lengths and intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness import Run
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
    from harness.registry import ReportFormat, ReportSection

    return [
        ReportFormat(
            name="probing-csv", suffix=".csv", render=_render_csv, summary="one row per probed layer"
        ),
        ReportSection(
            name="probing",
            title="Probes of layers",
            target="harness_probing.reporting.section:read_probing",
            empty="This run has no probes.",
        ),
    ]


def _render_csv(runs: Sequence[Run]) -> str:
    from harness_probing.reporting.section import render_probe_csv

    return render_probe_csv(runs)
