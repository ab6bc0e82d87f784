"""The plugin of the core itself: its kinds, methods, readers, metrics and reports, through the hooks of everyone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness.hookspecs import hookimpl

if TYPE_CHECKING:
    from types import ModuleType

    from harness.data.readers.reader import Reader
    from harness.kinds.kind import TaskKind
    from harness.kinds.methods import Method
    from harness.metrics.metric import Metric
    from harness.registry.declarations import ReportFormat, ReportSection


@hookimpl
def harness_register_kinds() -> Iterable[TaskKind]:
    """Return the kinds of the core."""
    return [kind for module in _kind_modules() for kind in module.KINDS]


@hookimpl
def harness_register_methods() -> Iterable[Method]:
    """Return the methods of the core's kinds."""
    return [method for module in _kind_modules() for method in module.METHODS]


def _kind_modules() -> tuple[ModuleType, ...]:
    from harness.kinds import choices, form_preference, questions, retrieval, source_text, tagging

    return (choices, form_preference, questions, retrieval, source_text, tagging)


@hookimpl
def harness_register_readers() -> Iterable[Reader]:
    """Return the readers of published formats."""
    from harness.data.readers.bitext import BITEXT
    from harness.data.readers.conllu import CONLLU
    from harness.data.readers.squad import SQUAD, SQUAD_RECORDS
    from harness.data.readers.tabular import CSV, JSON, JSONL, PARQUET, TSV
    from harness.data.readers.tagged import BRACKETED, TAGGED

    return (BITEXT, BRACKETED, CONLLU, CSV, JSON, JSONL, PARQUET, SQUAD, SQUAD_RECORDS, TAGGED, TSV)


@hookimpl
def harness_register_metrics() -> Iterable[Metric]:
    """Return the published metrics."""
    from harness.metrics.catalog import METRICS

    return METRICS


@hookimpl
def harness_register_reports() -> Iterable[ReportFormat | ReportSection]:
    """Return the report formats and sections of the core."""
    from harness.reporting.formats import FORMATS, SECTIONS

    return [*FORMATS, *SECTIONS]
