"""Tasks of lm-evaluation-harness: its own tasks, and its result files.

lm-eval is imported by the one module that runs its tasks, `harness_lm_eval.live_task`, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from pathlib import Path

    from harness.data import DataRef, Reader, ResolvedData
    from harness.kinds import Method, TaskKind
    from harness.registry import ReportFormat
    from harness.specs import TaskSource


@hookimpl
def harness_register_readers() -> Iterable[Reader]:
    """Return the readers of questions whose answers are texts without an offset."""
    from harness_lm_eval.readers import ANSWER_TEXTS, COUNTRY_CHOICES, VOTED_ANSWERS

    return [ANSWER_TEXTS, VOTED_ANSWERS, COUNTRY_CHOICES]


@hookimpl
def harness_register_task_sources() -> Iterable[TaskSource]:
    """Return the source of ``lm_eval:NAME``."""
    from harness.specs import TaskSource

    return [
        TaskSource(
            name="lm_eval",
            target="harness_lm_eval.task_document:SOURCE",
            metric="harness_lm_eval.task_kind:make_metric",
            summary="tasks of the installed lm-evaluation-harness, with its requests and scores",
        )
    ]


@hookimpl
def harness_register_kinds() -> Iterable[TaskKind]:
    """Return the kinds of lm-eval's own tasks."""
    from harness_lm_eval.task_kind import KINDS

    return KINDS


@hookimpl
def harness_register_methods() -> Iterable[Method]:
    """Return the methods of lm-eval's own tasks."""
    from harness_lm_eval.task_kind import METHODS

    return METHODS


@hookimpl
def harness_register_reports() -> Iterable[ReportFormat]:
    """Return the format of lm-eval's result files."""
    from harness.registry import ReportFormat
    from harness_lm_eval.result_file import render, write

    summary = "lm-eval's results JSON; with --output FOLDER its samples too"
    return [ReportFormat(name="lm_eval", suffix=".json", render=render, write=write, summary=summary)]


@hookimpl
def harness_resolve_data(ref: DataRef, cache: Path) -> ResolvedData | None:
    """Return the requests of an lm-eval task as a file; None for other data."""
    if ref.hub is None or not ref.hub.path.startswith("lm_eval:"):
        return None
    from harness_lm_eval.live_task import resolve_requests

    return resolve_requests(ref.hub, cache)
