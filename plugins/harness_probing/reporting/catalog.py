"""The report format and the report section of probes."""

from __future__ import annotations

from collections.abc import Sequence

from harness import Run
from harness.registry import ReportFormat, ReportSection


def _render_csv(runs: Sequence[Run]) -> str:
    # Imported when used: listing formats needs none of it.
    from harness_probing.reporting.rows import render_probe_csv

    return render_probe_csv(runs)


REPORTS: tuple[ReportFormat | ReportSection, ...] = (
    ReportFormat(name="probing-csv", suffix=".csv", render=_render_csv, summary="one row per probed layer"),
    ReportSection(
        name="probing",
        title="Probes of layers",
        target="harness_probing.reporting.section:read_probing",
        empty="This run has no probes.",
    ),
)
