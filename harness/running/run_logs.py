"""Reports of a run while it works: its plan and results to the display of progress, and its logs in trackers.

The trackers are those of ``--log``, in the main process. Each gets copies. Once a run has begun, a tracker that fails
costs nothing but its own log: the fault is announced, and the run continues.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import PluginError
from harness.planning.plan import Cell, Plan, StagePlan
from harness.progress import CellOutcome, PlannedCell, PlannedFit
from harness.registry.declarations import LoggedResults, RunLog, TrackedRun
from harness.registry.discovery import RAISED
from harness.registry.guard import kept_streams
from harness.registry.plugin import describe_fault, installed_version
from harness.registry.registry import Registry
from harness.storage.redaction import clean_json, clean_text
from harness.storage.results import CellResult, RunResults, Value
from harness.storage.run_folder import RESULTS, Run

MEAN = "mean"
"""Takes the place of the language in the names of means."""


def planned_cells(cells: Sequence[Cell], limit: int | None) -> list[PlannedCell]:
    """Return the report on cells before they are run."""
    conditions = {cell.digest: _parts(cell) for cell in cells}
    of_task: dict[str, set[tuple[str, str]]] = {}
    for cell in cells:
        of_task.setdefault(cell.spec.task, set()).update(conditions[cell.digest].items())
    planned = []
    for cell in cells:
        labels, every = conditions[cell.digest], of_task[cell.spec.task]
        differs = [
            text
            for name, text in labels.items()
            if any(key == name and value != text for key, value in every)
        ]
        planned.append(
            PlannedCell(
                digest=cell.digest,
                task=cell.spec.task,
                language=cell.language.code,
                condition=", ".join(differs),
                items=_expected_items(cell, limit),
            )
        )
    return planned


def _parts(cell: Cell) -> dict[str, str]:
    return {
        "protocol": cell.pairing.protocol,
        "method": cell.pairing.method.name,
        "view": " ".join(f"{name}={value}" for name, value in sorted(cell.view.items())) or "plain",
    }


def _expected_items(cell: Cell, limit: int | None) -> int | None:
    """Return how many items a cell has by its task's published releases, after the limit."""
    counts = [release.count(cell.language.code) for release in cell.spec.releases.values()]
    totals = [count for count in counts if count is not None]
    if not totals or cell.test.files.origin == "sample" or (limit and cell.spec.draw == "clusters"):
        return None
    return max(totals) if limit is None else min(limit, max(totals))


def planned_fits(stages: Mapping[str, StagePlan]) -> list[PlannedFit]:
    """Return the report on training stages, by digest, before they begin.

    Their sizes are compared by what is known of all of them: steps, else limited examples, else bytes of the files.
    """
    measures: tuple[Callable[[StagePlan], float | None], ...] = (_steps, _limited, _bytes)
    for measure in measures:
        sizes = {digest: measure(stage) for digest, stage in stages.items()}
        measured = {digest: size for digest, size in sizes.items() if size}
        if len(measured) == len(stages):
            return [PlannedFit(digest=digest, size=size) for digest, size in measured.items()]
    return [PlannedFit(digest=digest, size=1.0) for digest in stages]


def _steps(stage: StagePlan) -> float | None:
    steps = stage.settings.max_steps
    return None if steps is None else float(steps * stage.settings.batch_size)


def _limited(stage: StagePlan) -> float | None:
    return None if stage.limit is None else stage.settings.epochs * stage.limit * len(stage.train)


def _bytes(stage: StagePlan) -> float | None:
    files = [path for _, split in stage.train for path in split.files.paths]
    try:
        return stage.settings.epochs * sum(path.stat().st_size for path in files)
    except OSError:
        return None


def outcome_of(result: CellResult, headline: Sequence[str]) -> CellOutcome:
    """Return the reported outcome of a cell: the first headline metric that it has."""
    name = next((name for name in headline if name in result.metrics), "")
    metric = result.metrics.get(name)
    return CellOutcome(
        digest=result.digest,
        metric=name,
        value=None if metric is None else metric.value,
        interval=None if metric is None else metric.ci,
        items=result.n,
        failure=(result.reason or "no reason was given") if result.status == "failed" else "",
    )


@dataclass(slots=True)
class RunLogs:
    """The trackers that a run is logged to, which may be none; the methods return a sentence for each fault."""

    logs: dict[str, RunLog] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    """By tracker: under which id the run is found again."""
    known: frozenset[str] = frozenset()
    """Trackers that an earlier attempt logged its finished cells to."""
    suffixes: Mapping[str, str] = field(default_factory=dict)
    """By digest: what is added to the names of a cell's metrics, where a task has several cells in its language."""
    headlines: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By task."""

    def cells_taken(self, cells: Iterable[CellResult]) -> list[str]:
        """Log cells that an earlier attempt finished to the trackers that it did not log to."""
        new = self.logs.keys() - self.known
        return [message for cell in cells if new for message in self._log(cell, new)]

    def cell_finished(self, cell: CellResult) -> list[str]:
        """Log a finished cell."""
        return self._log(cell, self.logs.keys())

    def run_finished(self, path: Path) -> list[str]:
        """Log the results of a finished run."""
        if not self.logs:
            return []
        from harness.scores.table import read_scores  # polars, which only trackers need here

        run = Run(path)
        results = LoggedResults(
            values=_means(run.results), table=read_scores([run]).to_dicts(), file=path / RESULTS
        )
        return self._each(self.logs, lambda log: log.finish(deepcopy(results)))

    def close(self, *, finished: bool) -> list[str]:
        """End the run in every tracker."""
        return self._each(self.logs, lambda log: log.close(finished=finished))

    def _log(self, cell: CellResult, names: Iterable[str]) -> list[str]:
        suffix, values = self.suffixes.get(cell.digest, ""), dict[str, float]()
        for metric in self.headlines.get(cell.task, ()):
            if (value := cell.metrics.get(metric)) is not None:
                values |= _named(f"{cell.task}/{cell.language}/{metric}", suffix, value)
        return self._each(names, lambda log: log.log(dict(values))) if values else []

    def _each(self, names: Iterable[str], action: Callable[[RunLog], None]) -> list[str]:
        messages = []
        for name in sorted(names):
            try:
                with kept_streams():
                    action(self.logs[name])
            except RAISED as error:
                messages.append(_fault(name, "could not log this", error))
        return messages


@contextmanager
def open_logs(
    names: Sequence[str], registry: Registry, plan: Plan, path: Path, announce: Callable[[str], None]
) -> Iterator[RunLogs]:
    """Open the trackers of a run and close them after it.

    Args:
        names: Of the trackers; of none nothing is imported or opened.
        registry: Has them.
        plan: Of the run.
        path: The run folder; its manifest has the ids of an earlier attempt.
        announce: Shows where the run is logged, and faults.

    Raises:
        PluginError: A tracker of a new run cannot be opened. A resumed run continues without it.
    """
    before = dict(Run.read_manifest(path).trackers) if names and (path / "manifest.json").is_file() else None
    logs = RunLogs(
        known=frozenset(before or ()),
        suffixes=_suffixes(plan),
        headlines={cell.spec.task: cell.spec.headline for cell in plan.cells},
    )
    finished = False
    try:
        for name in names:
            tracked = TrackedRun(name=path.name, config=_config(plan), id=(before or {}).get(name))
            try:
                with kept_streams():
                    log = registry.trackers.get(name).load()(tracked)
                logs.ids[name], location = str(log.id), str(log.place)
            except RAISED as error:
                message = _fault(name, "cannot be opened", error)
                if before is None:
                    raise PluginError(message, hint="Repair this, or run without --log.") from error
                announce(f"{message} The run continues without it.")
            else:
                logs.logs[name] = log
                announce(clean_text(f"The run is logged to {name}: {location}"))
        yield logs
        finished = True
    finally:
        for message in logs.close(finished=finished):
            announce(message)


def _fault(name: str, what: str, error: BaseException) -> str:
    return clean_text(f"The tracker {name!r} {what}: {describe_fault(error)[0].rstrip('.')}.")


def _config(plan: Plan) -> dict[str, Any]:
    """Return the settings of a run for a tracker; secrets of this process are hidden."""
    described, cells = plan.model.description, plan.cells
    tasks: dict[str, dict[str, Any]] = {}
    for cell in cells:
        task = tasks.setdefault(cell.spec.task, {"version": cell.spec.version, "languages": [], "data": {}})
        if cell.language.code not in task["languages"]:
            task["languages"].append(cell.language.code)
        key = "/".join(
            [cell.language.code, *(f"{name}-{value}" for name, value in sorted(cell.view.items()))]
        )
        task["data"][key] = cell.test.digest()
    config = {
        "model": str(plan.model.reference),
        "adapter": described.adapter,
        "revision": described.revision,
        "parameters": described.parameters,
        "options": plan.model.options.model_dump(mode="json"),
        "tasks": tasks,
        "suites": [suite.suite for suite in plan.suites],
        "protocols": sorted({cell.pairing.protocol for cell in cells}),
        "seeds": sorted({cell.seed for cell in cells}),
        "harness": installed_version("multilingual-harness"),
    }
    cleaned: dict[str, Any] = clean_json(json.dumps(config).encode())
    return cleaned


def _suffixes(plan: Plan) -> dict[str, str]:
    """Return by digest how a cell differs from others of its task and language."""
    groups: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for cell in plan.cells:
        conditions = {
            "protocol": cell.pairing.protocol,
            "method": cell.pairing.method.name,
            "seed": str(cell.seed),
        }
        groups.setdefault((cell.spec.task, cell.language.code), {})[cell.digest] = conditions | dict(
            cell.view
        )
    return {
        digest: suffix
        for group in groups.values()
        for digest, suffix in zip(group, _differences(list(group.values())), strict=True)
    }


def _means(results: RunResults) -> dict[str, float]:
    """Return the means of tasks and suites by their names."""
    rows: dict[str, list[tuple[dict[str, str], Value]]] = {}
    for row in results.tasks:
        if row.headline:
            conditions = {"protocol": row.protocol, "method": row.method, **row.view}
            rows.setdefault(f"{row.task}/{MEAN}/{row.metric}", []).append((conditions, row))
    for suite in results.suites:
        conditions = {"protocol": str(suite.protocol), **suite.view}
        rows.setdefault(f"suite/{suite.suite}/{MEAN}", []).append((conditions, suite.paper))
    values: dict[str, float] = {}
    for name, group in rows.items():
        for (_, value), suffix in zip(
            group, _differences([conditions for conditions, _ in group]), strict=True
        ):
            values |= _named(name, suffix, value)
    return values


def _differences(group: Sequence[Mapping[str, str]]) -> list[str]:
    """Return for each of a group what differs from the others: ``/seed-2/variant-tt``; empty where nothing does."""
    names = sorted({name for conditions in group for name in conditions})
    differing = [name for name in names if len({conditions.get(name) for conditions in group}) > 1]
    return [
        "".join(f"/{name}-{conditions[name]}" for name in differing if name in conditions)
        for conditions in group
    ]


def _named(name: str, suffix: str, value: Value) -> dict[str, float]:
    """Return a value and the ends of its interval, as far as they are known, by their names."""
    low, high = value.ci or (None, None)
    values = {name + suffix: value.value, f"{name}_low{suffix}": low, f"{name}_high{suffix}": high}
    return {key: number for key, number in values.items() if number is not None}
