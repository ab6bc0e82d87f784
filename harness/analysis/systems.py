"""The systems that runs hold, in what two of them differ, and the items that they have in common.

A system is a model with its protocol, seed and prompt, answering the same items as another one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from harness.data.features import Items
from harness.errors import DataError, UnknownNameError, UsageError
from harness.specs.selection import named_and_excluded
from harness.storage.model_name import folder_names
from harness.storage.results import CellResult, TaskSummary
from harness.storage.run_folder import Run
from harness.table import distinguishing, grouped

Key = tuple[int, str | None, str | None, int | None, str]
"""Number of the run, protocol, method, seed, and the conditions that do not change the items, as JSON."""
COLUMNS = ("ids", "digests", "fields", "predictions", "references", "clusters", "tags", "scores")
"""The columns of `Items`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """The finished cells of one system in one task and view, by language."""

    run: Run
    name: str
    """The model, with what distinguishes it from other systems of that model."""
    cells: Mapping[str, CellResult]
    spec: TaskSummary
    """The task's summary in the run's manifest."""

    @property
    def cell(self) -> CellResult:
        """One of its cells, for what all of them have in common."""
        return next(iter(self.cells.values()))


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
    by_protocol = grouped((str(key[1]), key) for key in keys)
    by_model = grouped((f"{runs[key[0]].manifest.model} {key[4]}", key) for key in keys)
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
        marks = list(filter(None, distinguishing(description, peers)))
        marks += [folders[key[0]]] if peers.count(description) > 1 else []
        names[key] = f"{model} ({', '.join(marks)})" if marks else model
    return names


def differences_of(first: System, second: System, task: str) -> list[str]:
    """Return in what two systems of a task differ so that their scores may not mean the same, as clauses."""
    sides = (first, second)
    clauses = {}
    for name in ("version", "protocol", "method"):
        values = [sorted({str(getattr(cell, name)) for cell in system.cells.values()}) for system in sides]
        if values[0] != values[1]:
            clauses[name] = f"{' and '.join(values[0])} and {' and '.join(values[1])}"
    data = [system.run.results.run.data for system in sides]
    texts = [f"they are of version {clauses.pop('version')} of {task!r}"] if "version" in clauses else []
    if "sample" in data and data[0] != data[1]:
        texts.append(f"they are on the data {data[0]!r} and {data[1]!r}")
    texts += [f"their {name}s are {values}" for name, values in clauses.items()]
    for system, counterpart in (sides, sides[::-1]):
        codes = sorted(set(system.cells) - set(counterpart.cells))
        texts += [f"only {system.name} has {' '.join(codes)}"] if codes else []
    return texts


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemMatch:
    """The items of one language that several systems have with the same id, inputs and gold answer."""

    ids: tuple[str, ...]
    """In the order of the first system."""
    missing: tuple[int, ...]
    """By system: items that it does not have and another one has."""
    differing: int
    """Items that all have, with inputs that are not the same."""
    regraded: int
    """Items that all have, with gold answers that are not the same."""
    unlabelled: int
    """Items that are the same, without a gold answer."""


def match_items(systems: Sequence[Mapping[str, tuple[str, Any]]]) -> ItemMatch:
    """Return the items that systems have in common; each is given by the digest of its inputs and its gold answer."""
    first, *others = systems
    shared = [name for name in first if all(name in items for items in others)]
    same = [name for name in shared if all(items[name][0] == first[name][0] for items in others)]
    graded = [name for name in same if all(items[name][1] == first[name][1] for items in others)]
    ids = tuple(name for name in graded if first[name][1] is not None)
    anywhere = len(set().union(*systems))
    return ItemMatch(
        ids=ids,
        missing=tuple(anywhere - len(items) for items in systems),
        differing=len(shared) - len(same),
        regraded=len(same) - len(graded),
        unlabelled=len(graded) - len(ids),
    )


def common_items(first: Items, second: Items, *, strict: bool) -> tuple[Items, Items, list[str]]:
    """Return the items of two systems that are the same, in the order of the first, and notes on what was skipped.

    Args:
        first: Those of the one system, all labelled.
        second: Those of the other.
        strict: Whether items that are not the same are an error; else they are skipped.

    Raises:
        UsageError: Where items differ and `strict` is true, and where no item is left.
    """
    match = match_items(
        [
            dict(zip(items.ids, zip(items.digests, items.references, strict=True), strict=True))
            for items in (first, second)
        ]
    )
    counts = {
        "only the first run has": match.missing[1],
        "only the second run has": match.missing[0],
        "were asked something else": match.differing,
        "have another gold answer": match.regraded,
    }
    differences = [f"{count} {reason}" for reason, count in counts.items() if count]
    where = f"{first.task!r} in {first.language.code!r}"
    if differences and strict:
        raise UsageError(
            f"The items of {where} are not the same: of {max(len(first), len(second))}, {', '.join(differences)}.",
            hint="Without --strict, the common ones are diagnosed.",
        )
    if not match.ids:
        raise UsageError(
            f"No item of {where} is common to the two runs: {', '.join(differences) or 'there are none'}."
        )
    skipped = f"{first.task} {first.language.code}: skipped items: {', '.join(differences)}."
    return _selected(first, match.ids), _selected(second, match.ids), [skipped] if differences else []


def _selected(items: Items, ids: Sequence[str]) -> Items:
    row_of = {identifier: row for row, identifier in enumerate(items.ids)}
    rows = [row_of[identifier] for identifier in ids]
    if rows == list(range(len(items))):
        return items
    columns: dict[str, Any] = {name: [getattr(items, name)[row] for row in rows] for name in COLUMNS}
    return replace(items, kept={}, **columns)


def run_difference_notes(runs: Sequence[Run]) -> list[str]:
    """Return a sentence for versions of the harness, and one for test data, that are not the same in all runs.

    Scores of the same items may differ by either, so a comparison names them also where it skips nothing.
    """
    versions = harness_versions(runs)
    digests: dict[tuple[str, str, str], set[str]] = {}
    for run in runs:
        for cell in run.cells:
            if cell.status == "ok" and "digest" in cell.data:
                key = (cell.task, cell.language, item_view(run, cell))
                digests.setdefault(key, set()).add(str(cell.data["digest"]))
    several = (key for key, cell_digests in digests.items() if len(cell_digests) > 1)
    changed = list(dict.fromkeys(f"{task}:{code}" for task, code, _ in several))
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    notes = []
    if len(versions) > 1:
        notes.append(f"The versions of the harness are not the same: {' and '.join(versions)}.")
    if changed:
        notes.append(f"The digests of the test data are not the same: {', '.join(changed[:3])}{more}.")
    return notes


def harness_versions(runs: Sequence[Run]) -> list[str]:
    """Return the versions of the harness that made runs, as their manifests and their results say."""
    versions = {run.results.run.harness for run in runs}
    versions |= {run.manifest.versions.get("multilingual-harness") for run in runs}
    return sorted(filter(None, versions))


def item_view(run: Run, cell: CellResult) -> str:
    """Return the conditions of a cell that change its items, as JSON: the variant, the translator and the axes."""
    axes = run.manifest.tasks[cell.task].axes if cell.task in run.manifest.tasks else ()
    names = {"variant", "translator", *axes}
    return json.dumps({name: value for name, value in cell.view.items() if name in names}, sort_keys=True)
