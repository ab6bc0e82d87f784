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
    return [module.KIND for module in _kind_modules()]


@hookimpl
def harness_register_methods() -> Iterable[Method]:
    """Return the methods of the core's kinds."""
    return [method for module in _kind_modules() for method in module.METHODS]


def _kind_modules() -> list[ModuleType]:
    from harness.kinds import (
        bitext_retrieval,
        form_preference,
        multiple_choice,
        numeric_answer,
        ranked_retrieval,
        sequence_classification,
        span_extraction,
        summary,
        text_marking,
        token_tagging,
        translation,
        word_labelling,
    )

    return [
        bitext_retrieval,
        form_preference,
        multiple_choice,
        numeric_answer,
        ranked_retrieval,
        sequence_classification,
        span_extraction,
        summary,
        text_marking,
        token_tagging,
        translation,
        word_labelling,
    ]


@hookimpl
def harness_register_readers() -> Iterable[Reader]:
    """Return the readers of published formats."""
    from harness.data.readers.catalog import READERS

    return READERS


@hookimpl
def harness_register_metrics() -> Iterable[Metric]:
    """Return the published metrics."""
    from harness.metrics.catalog import METRICS

    return METRICS


@hookimpl
def harness_register_reports() -> Iterable[ReportFormat | ReportSection]:
    """Return the report formats and sections of the core."""
    from harness.reporting.catalog import FORMATS, SECTIONS

    return [*FORMATS, *SECTIONS]
