"""Whether runs may be merged: the same model, the same data and specs, the same settings of what is compared."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from harness.analysis.pairing import item_view
from harness.data.translation.opening import translator_names
from harness.errors import UsageError
from harness.planning.resolution import Resolution, read_resolution
from harness.planning.run_config import settings
from harness.storage.results import CellResult
from harness.storage.run_folder import BY_LANGUAGE, Run

TOLERANCE = 1e-5
"""Two machines may sum in another order; the same model's scores differ by less than this."""


def check_compatible(runs: Sequence[Run]) -> None:
    """Raise `UsageError` for the first thing in which a run differs from an earlier one and must not."""
    first_values: dict[tuple[str, ...], tuple[str, Run]] = {}
    merged: Resolution | None = None
    owners: dict[tuple[str, ...], Run] = {}
    for run in runs:
        for title, key, value in _facts(run):
            text = json.dumps(value, ensure_ascii=False, sort_keys=True)
            before, first = first_values.setdefault((title, *key), (text, run))
            if before != text:
                detail = "" if len(before) + len(text) > 200 else f": {before} and {text}"
                raise _differs(first, run, f"{title}{detail}")
        if run.manifest.resolved:
            resolution = read_resolution(run.manifest.resolved)
            for here, there in [] if merged is None else resolution.diff(merged):
                if there is not None:
                    difference = f"the {here.subject}: {here.difference(there, 'the former')}"
                    raise _differs(owners[here.key], run, difference)
            merged = resolution if merged is None else merged.joined(resolution)
            owners = {entry.key: run for entry in resolution.entries} | owners


def _differs(first: Run, run: Run, difference: str) -> UsageError:
    return UsageError(
        f"The runs {str(first.path)!r} and {str(run.path)!r} cannot be merged: they differ in {difference}.",
        hint="Compare them instead: harness compare RUN RUN",
    )


def _facts(run: Run) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    """Yield a noun phrase for the message, a further key, and the value that all runs with this key must share."""
    yield from _model_facts(run)
    config = run.manifest.config
    yield "the place of the data (--data)", (), run.results.run.data
    for name, setting in settings().items():
        if setting.merged in {"same", "task"}:
            # How many items a cell has must agree only between runs that share a task.
            for task in [""] if setting.merged == "same" else run.manifest.tasks:
                yield f"the setting {name!r}", (task,), config.get(name)
    for name, code in run.manifest.code.items():
        yield f"the {name}", (), code
    for task, summary in run.manifest.tasks.items():
        for name, value in summary.to_json().items():
            if name not in BY_LANGUAGE:
                yield f"{name!r} of the task {task!r}", (), value
    for name, reference in translator_names(config.get("translators") or ()).items():
        yield f"what the translator {name!r} is", (), reference
    for name, engine in run.manifest.translators.items():
        yield f"the model of the translator {name!r}", (), engine["fingerprint"]
    for cell in run.cells:
        cell_name = f"{cell.task!r} in {cell.language!r}"
        if cell.data:
            yield f"the test data of {cell_name}", (item_view(run, cell),), cell.data["digest"]
        if cell.status == "ok":
            key = (
                json.dumps(cell.view, sort_keys=True),
                str(cell.protocol),
                str(cell.method),
                str(cell.seed),
            )
            yield f"the training or prompt of {cell_name}", key, cell.digest


def _model_facts(run: Run) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    model = run.results.model
    yield "the adapter", (), model.adapter
    metadata = model.metadata
    if not any(cell.status == "ok" for cell in run.cells):
        # Nothing is known of a model that was never opened; what it would have answered is not there either.
        return
    yield "what is known of the model", (), sorted(metadata)
    for name, value in metadata.items():
        yield f"the model ({name})", (), value


def same_scores(first: CellResult, second: CellResult) -> bool:
    """Whether two finished cells have the same number of items and the same metrics, within 1e-5."""
    first_metrics, second_metrics = first.metrics, second.metrics
    return (
        first.n == second.n
        and first_metrics.keys() == second_metrics.keys()
        and all(
            math.isclose(first_metrics[name].value, second_metrics[name].value, rel_tol=0, abs_tol=TOLERANCE)
            for name in first_metrics
        )
    )
