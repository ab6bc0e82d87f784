"""The systems that runs hold: a model with its protocol, seed and prompt, answering the same items as another one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from harness.errors import DataError, UnknownNameError, UsageError
from harness.specs.selection import named_and_excluded
from harness.storage.model_name import folder_names
from harness.storage.results import CellResult, TaskSummary
from harness.storage.run_folder import Run

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
    """The task's summary in the run's manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemGroup:
    """The systems that finished a task under the same view of its items."""

    task: str
    view: Mapping[str, str]
    """The variant and the axes of the spec."""
    protocols: tuple[str, ...] = ()
    """Those of its systems, where the task was finished under others too."""
    systems: tuple[System, ...]

    @property
    def title(self) -> str:
        """``xcopa (variant=translated)``, ``tatoeba (frozen)``."""
        view = [f"{name}={value}" for name, value in self.view.items()]
        view += [" and ".join(self.protocols)] if self.protocols else []
        return f"{self.task} ({', '.join(view)})" if view else self.task


def group_systems(
    runs: Sequence[Run],
    *,
    tasks: Sequence[str] = (),
    languages: Sequence[str] = (),
    least: int = 2,
    alike: bool = False,
) -> list[SystemGroup]:
    """Return the finished tasks, systems in the order of the runs and their cells.

    Args:
        runs: The runs.
        tasks: Names or globs to restrict it to; none takes all.
        languages: Codes to restrict it to, or to exclude (``!en``); none takes all.
        least: So many systems must have finished at least one of the tasks.
        alike: Whether systems of different protocols are groups of their own, as `_alike` says.

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
    included, excluded = named_and_excluded(languages)
    _check_names([cell for _, cell in finished], tasks, [*included, *excluded])
    selected = [
        (number, cell)
        for number, cell in finished
        if (not tasks or any(fnmatchcase(cell.task, pattern) for pattern in tasks))
        and (not included or cell.language in included)
        and cell.language not in excluded
    ]
    groups = _grouped(runs, selected, alike=alike)
    if all(len(group.systems) < least for group in groups):
        held = [sorted({cell.task for owner, cell in selected if owner == at}) for at in range(len(runs))]
        holdings = [
            f"{str(run.path)!r} has {', '.join(names) or 'none'}"
            for run, names in zip(runs, held, strict=True)
        ]
        many = "two systems" if least == 2 else "a system"
        raise UsageError(f"No task was finished by {many}: {'; '.join(holdings)}.")
    return groups


def _check_names(cells: Sequence[CellResult], tasks: Sequence[str], languages: Sequence[str]) -> None:
    names, codes = {cell.task for cell in cells}, {cell.language for cell in cells}
    for pattern in tasks:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise UnknownNameError("finished task of these runs", pattern, names)
    for code in languages:
        if code not in codes:
            raise UnknownNameError("finished language of these runs", code, codes)


def _grouped(
    runs: Sequence[Run], cells: Sequence[tuple[int, CellResult]], *, alike: bool
) -> list[SystemGroup]:
    groups: dict[tuple[str, str], dict[Key, dict[str, CellResult]]] = {}
    for number, cell in cells:
        item_axes = {"variant", "split", *runs[number].manifest.tasks[cell.task].axes}
        view = {name: value for name, value in cell.view.items() if name in item_axes}
        conditions = {name: value for name, value in cell.view.items() if name not in item_axes}
        key = (number, cell.protocol, cell.method, cell.seed, json.dumps(conditions, sort_keys=True))
        group = groups.setdefault((cell.task, json.dumps(view, sort_keys=True)), {})
        by_language = group.setdefault(key, {})
        if cell.language in by_language:
            raise DataError(
                f"The run {str(runs[number].path)!r} has two cells of {cell.task!r} in "
                f"{cell.language!r} that nothing distinguishes."
            )
        by_language[cell.language] = cell
    return [
        SystemGroup(
            task=task,
            view=json.loads(view),
            protocols=tuple(dict.fromkeys(str(key[1]) for key in keys)) if len(keys) < len(group) else (),
            systems=tuple(
                System(run=run, name=name, cells=group[key], spec=run.manifest.tasks[task])
                for key, name in _names(runs, list(group)).items()
                for run in [runs[key[0]]]
                if key in keys
            ),
        )
        for (task, view), group in groups.items()
        for keys in (_alike(runs, list(group)) if alike else [list(group)])
    ]


def _alike(runs: Sequence[Run], keys: Sequence[Key]) -> list[list[Key]]:
    """Return the systems of a task that are compared with each other, like with like.

    Those of one protocol are a group, and those of one model and its conditions that differ only in their protocol
    are another one. All systems are one group where there is one protocol, or no such group has several runs although
    there are several.
    """
    by_protocol: dict[str, list[Key]] = {}
    by_model: dict[str, list[Key]] = {}
    for key in keys:
        by_protocol.setdefault(str(key[1]), []).append(key)
        by_model.setdefault(f"{runs[key[0]].manifest.model} {key[4]}", []).append(key)
    crossing = [group for group in by_model.values() if len({key[1] for key in group}) > 1]
    paired = {key for group in crossing for key in group}
    groups = [group for group in by_protocol.values() if len(group) > 1 or group[0] not in paired] + crossing
    several = len({key[0] for key in keys}) > 1
    is_compared = any(len({key[0] for key in group}) > 1 or not several for group in groups)
    return groups if len(by_protocol) > 1 and is_compared else [list(keys)]


def _names(runs: Sequence[Run], keys: Sequence[Key]) -> dict[Key, str]:
    """Return the model of every system, with what differs among the systems of that model.

    The folder is named only where nothing else distinguishes two of them.
    """
    folders = folder_names([run.path for run in runs])
    descriptions = {}
    for key in keys:
        _, protocol, method, seed, conditions = key
        view = ", ".join(f"{name}={value}" for name, value in json.loads(conditions).items())
        descriptions[key] = (str(protocol), str(method), view, f"seed={seed}")
    names = {}
    for key, description in descriptions.items():
        model = runs[key[0]].manifest.model_name
        peers = [descriptions[peer] for peer in keys if runs[peer[0]].manifest.model_name == model]
        distinguishing = [
            condition
            for condition, each in zip(description, zip(*peers, strict=True), strict=True)
            if condition and len(set(each)) > 1
        ]
        distinguishing += [folders[key[0]]] if peers.count(description) > 1 else []
        names[key] = f"{model} ({', '.join(distinguishing)})" if distinguishing else model
    return names
