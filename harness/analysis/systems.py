"""The systems that runs hold: a model with its protocol, seed and prompt, answering the same items as another one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from harness.errors import DataError, UnknownNameError, UsageError
from harness.storage.results import CellResult, TaskSummary
from harness.storage.run_folder import Run

__all__ = ["System", "SystemGroup", "group_systems"]

Key = tuple[int, str | None, str | None, int | None, str]
"""Number of the run, protocol, method, seed, and the conditions that do not change the items, as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """The finished cells of one system in one task and view, by language."""

    run: Run
    name: str
    """The model, with what distinguishes it from other systems of that model."""
    cells: Mapping[str, CellResult]
    spec: TaskSummary
    """What the run's manifest says of the task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemGroup:
    """The systems that finished a task under the same view of its items."""

    task: str
    view: Mapping[str, str]
    """The variant and the axes of the spec."""
    systems: tuple[System, ...]

    @property
    def title(self) -> str:
        """``xcopa (variant=translated)``."""
        view = ", ".join(f"{name}={value}" for name, value in self.view.items())
        return f"{self.task} ({view})" if view else self.task


def group_systems(
    runs: Sequence[Run], *, tasks: Sequence[str] = (), languages: Sequence[str] = (), least: int = 2
) -> list[SystemGroup]:
    """Return the finished tasks, systems in the order of the runs and their cells.

    Args:
        runs: The runs.
        tasks: Names or globs to restrict it to; none takes all.
        languages: Codes to restrict it to; none takes all.
        least: So many systems must have finished at least one of the tasks.

    Raises:
        UsageError: For names that no run has, for a run named twice, and where no task was finished by so many
            systems.
        DataError: Where nothing distinguishes two cells of a run.
    """
    paths = [run.path.resolve() for run in runs]
    for run, path in zip(runs, paths, strict=True):
        if paths.count(path) > 1:
            raise UsageError(f"The run {str(run.path)!r} is named twice; its systems are compared as it is.")
    finished = [
        (number, cell) for number, run in enumerate(runs) for cell in run.cells if cell.status == "ok"
    ]
    _check_names([cell for _, cell in finished], tasks, languages)
    wanted = [
        (number, cell)
        for number, cell in finished
        if (not tasks or any(fnmatchcase(cell.task, pattern) for pattern in tasks))
        and (not languages or cell.language in languages)
    ]
    groups = _grouped(runs, wanted)
    if all(len(group.systems) < least for group in groups):
        holdings = "; ".join(_holding(run, number, wanted) for number, run in enumerate(runs))
        many = "two systems" if least == 2 else "a system"
        raise UsageError(f"No task was finished by {many}: {holdings}.")
    return groups


def _check_names(cells: Sequence[CellResult], tasks: Sequence[str], languages: Sequence[str]) -> None:
    names = {cell.task for cell in cells}
    for pattern in tasks:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise UnknownNameError("finished task of these runs", pattern, names)
    codes = {cell.language for cell in cells}
    for code in languages:
        if code not in codes:
            raise UnknownNameError("finished language of these runs", code, codes)


def _holding(run: Run, number: int, wanted: Sequence[tuple[int, CellResult]]) -> str:
    names = sorted({cell.task for owner, cell in wanted if owner == number})
    return f"{str(run.path)!r} has {', '.join(names) or 'none'}"


def _grouped(runs: Sequence[Run], cells: Sequence[tuple[int, CellResult]]) -> list[SystemGroup]:
    groups: dict[tuple[str, str], dict[Key, dict[str, CellResult]]] = {}
    for number, cell in cells:
        item_axes = {"variant", *runs[number].manifest.tasks[cell.task].axes}
        view = {name: value for name, value in cell.view.items() if name in item_axes}
        conditions = {name: value for name, value in cell.view.items() if name not in item_axes}
        key = (
            number,
            cell.protocol,
            cell.method,
            cell.seed,
            json.dumps(conditions, sort_keys=True),
        )
        group = groups.setdefault((cell.task, json.dumps(view, sort_keys=True)), {})
        by_language = group.setdefault(key, {})
        if cell.language in by_language:
            raise DataError(
                f"The run {str(runs[number].path)!r} has two cells of {cell.task!r} in "
                f"{cell.language!r} that nothing distinguishes."
            )
        by_language[cell.language] = cell
    return [
        SystemGroup(task=task, view=json.loads(view), systems=_systems(runs, task, group))
        for (task, view), group in groups.items()
    ]


def _systems(
    runs: Sequence[Run], task: str, group: Mapping[Key, Mapping[str, CellResult]]
) -> tuple[System, ...]:
    names = _names(runs, list(group))
    return tuple(
        System(run=runs[key[0]], name=names[key], cells=cells, spec=runs[key[0]].manifest.tasks[task])
        for key, cells in group.items()
    )


def _names(runs: Sequence[Run], keys: Sequence[Key]) -> dict[Key, str]:
    """Return the model of every system, with what differs among the systems of that model.

    The folder is named only where nothing else distinguishes two of them.
    """
    described = {key: _description(runs[key[0]], key) for key in keys}
    names = {}
    for key, (model, parts, folder) in described.items():
        others = [other for name, other, _ in described.values() if name == model]
        shown = [
            part for index, part in enumerate(parts) if len({other[index] for other in others}) > 1 and part
        ]
        shown += [folder] if others.count(parts) > 1 else []
        names[key] = f"{model} ({', '.join(shown)})" if shown else model
    return names


def _description(run: Run, key: Key) -> tuple[str, tuple[str, ...], str]:
    _, protocol, method, seed, conditions = key
    view = ", ".join(f"{name}={value}" for name, value in json.loads(conditions).items())
    return run.manifest.model, (str(protocol), str(method), view, f"seed={seed}"), str(run.path)
