"""Tasks of lm-evaluation-harness: its YAML files as specs and prompts of ours, its own tasks, its result files.

lm-eval is imported by the one module that runs its tasks, `harness_lm_eval.live_task`, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness.hookspecs import hookimpl

if TYPE_CHECKING:
    from pathlib import Path

    from harness.data.readers.reader import Reader
    from harness.data.resolve import DataRef, ResolvedData
    from harness.kinds.kind import TaskKind
    from harness.kinds.methods import Method
    from harness.reporting.formats import ReportFormat
    from harness.specs.importer import TaskImporter
    from harness.specs.task_source import TaskSource


@hookimpl
def harness_register_importers() -> Iterable[TaskImporter]:
    """Return the importer of lm-eval's task files."""
    from harness.specs.importer import TaskImporter

    return [
        TaskImporter(
            name="lm_eval",
            target="harness_lm_eval.conversion:import_task",
            summary="task YAML of lm-evaluation-harness: multiple_choice and generate_until",
        )
    ]


@hookimpl
def harness_register_readers() -> Iterable[Reader]:
    """Return the reader of questions whose answers are texts without a place."""
    from harness_lm_eval.answer_reader import READER

    return [READER]


@hookimpl
def harness_register_task_sources() -> Iterable[TaskSource]:
    """Return the source of ``lm_eval:NAME``."""
    from harness.specs.task_source import TaskSource

    return [
        TaskSource(
            name="lm_eval",
            target="harness_lm_eval.task_document:SOURCE",
            metric="harness_lm_eval.metric:make_metric",
            summary="tasks of the installed lm-evaluation-harness, asked and scored by it",
        )
    ]


@hookimpl
def harness_register_kinds() -> Iterable[TaskKind]:
    """Return the kinds of lm-eval's own tasks."""
    from harness_lm_eval.task_kind import KINDS

    return KINDS


@hookimpl
def harness_register_methods() -> Iterable[Method]:
    """Return how lm-eval's own tasks ask a model."""
    from harness_lm_eval.answering import METHODS

    return METHODS


@hookimpl
def harness_register_reports() -> Iterable[ReportFormat]:
    """Return the format of lm-eval's result files."""
    from harness.reporting.formats import ReportFormat
    from harness_lm_eval.result_file import render, write

    summary = "lm-eval's results JSON; with --output FOLDER its samples too"
    return [ReportFormat(name="lm_eval", suffix=".json", render=render, write=write, summary=summary)]


@hookimpl
def harness_resolve_data(ref: DataRef, cache: Path) -> ResolvedData | None:
    """Return what lm-eval asks in one of its tasks, as a file; None for data of others."""
    if ref.hub is None or not ref.hub.path.startswith("lm_eval:"):
        return None
    from harness_lm_eval.requests import resolve_requests

    return resolve_requests(ref.hub, cache)
