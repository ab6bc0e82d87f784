"""A run in the formats of other tools: Every Eval Ever, the Hub's model cards and leaderboards, MTEB, LaTeX.

``harness export`` writes them; all of them are report formats too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.registry import ReportFormat


@hookimpl
def harness_register_reports() -> Iterable[ReportFormat]:
    """Return the formats of other tools."""
    from harness_export.catalog import FORMATS

    return FORMATS
