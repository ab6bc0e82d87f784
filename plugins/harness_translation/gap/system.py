"""The cells of runs, grouped into systems: the cells of a system differ only in the version of the test set.

Cells of several run folders are joined: task, model, protocol, method, train variant and all other conditions must be
equal, and in every language all versions must come from the same fit. Seeds of a system are its repetitions.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from harness import DataError, Run, UnknownNameError, UsageError
from harness.storage import CellResult, TaskSummary
from harness_translation.gap.formula import VARIANTS

ORIGINAL: Final = "ORIG"
"""The train variant of a cell without one in its view."""
_AXES: Final = ("variant", "translator", "train_variant")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Condition:
    """A version of the test set: ``zs``, or another variant with its translator."""

    variant: str
    translator: str = ""

    @property
    def title(self) -> str:
        """``bt (nllb)``."""
        return f"{self.variant} ({self.translator})" if self.translator else self.variant


ZS: Final = Condition(variant="zs")


@dataclass(frozen=True, slots=True, kw_only=True)
class GapSystem:
    """The finished cells of one system in one task, by version of the test set."""

    task: str
    model: str
    model_name: str
    train: str
    conditions: Mapping[str, str]
    """Protocol, method and the rest of its view."""
    source: str
    """The language that the test set was translated from."""
    spec: TaskSummary
    """The task in the manifest."""
    seeds: tuple[int, ...]
    """The seeds that all of its cells have."""
    cells: Mapping[str, Mapping[Condition, Mapping[int, tuple[Run, CellResult]]]]
    """By language, version and seed."""
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """``xnli, hf:xlm-r (train ORIG, protocol=zero_shot_transfer, method=head)``."""
        conditions = ", ".join(f"{name}={value}" for name, value in self.conditions.items())
        return f"{self.task}, {self.model_name} (train {self.train}, {conditions})"

    @property
    def translators(self) -> tuple[str, ...]:
        """The translators of any language, sorted."""
        names = {condition.translator for versions in self.cells.values() for condition in versions}
        return tuple(sorted(names - {""}))


def command_for(system: GapSystem, languages: Sequence[str], variants: Sequence[str], translator: str) -> str:
    """Return the command that makes missing cells."""
    translator_option = f" --translator {translator or 'NAME'}" if set(variants) - {"zs"} else ""
    train = "" if system.train == ORIGINAL else f" --train-variant {system.train}"
    if split := system.conditions.get("split"):
        train += f" --split {split}"
    codes = "+".join(languages)
    return (
        f"harness eval --tasks {system.task}:{codes} --model {system.model} --variants {','.join(variants)}"
        f"{translator_option}{train}"
    )


def gap_systems(
    runs: Sequence[Run], *, tasks: Sequence[str] = (), languages: Sequence[str] = ()
) -> list[GapSystem]:
    """Return the systems of runs.

    Args:
        runs: Run folders; the versions of a test set may be in several.
        tasks: Names or globs to restrict it to.
        languages: Codes to restrict it to; the source language stays.

    Raises:
        UsageError: If a run is named twice, a name is unknown, or no finished cell is left.
        DataError: If a cell occurs twice, or versions of a test set were answered by different fits.
    """
    paths = [run.path.resolve() for run in runs]
    for run, path in zip(runs, paths, strict=True):
        if paths.count(path) > 1:
            raise UsageError(f"The run {str(run.path)!r} is named twice; its cells would count twice.")
    finished = [(run, cell) for run in runs for cell in run.cells if cell.status == "ok"]
    names, codes = {cell.task for _, cell in finished}, {cell.language for _, cell in finished}
    for pattern in tasks:
        if not fnmatch.filter(names, pattern):
            raise UnknownNameError("finished task of these runs", pattern, names)
    for code in languages:
        if code not in codes:
            raise UnknownNameError("finished language of these runs", code, codes)
    groups: dict[str, list[tuple[Run, CellResult]]] = {}
    for run, cell in finished:
        selected = not tasks or any(fnmatch.fnmatchcase(cell.task, pattern) for pattern in tasks)
        if selected and (not languages or cell.language in {*languages, _source(run, cell)}):
            train, conditions = cell.view.get("train_variant", ORIGINAL), sorted(_others(cell).items())
            key = json.dumps([cell.task, run.manifest.model, run.manifest.model_name, train, conditions])
            groups.setdefault(key, []).append((run, cell))
    if not groups:
        raise UsageError(
            "There are no finished cells in these runs to compute gaps from.",
            hint="Make cells with: harness eval --tasks xnli --model MODEL --variants zs,tt,te,bt --translator NAME",
        )
    return [_system(members) for members in groups.values()]


def _source(run: Run, cell: CellResult) -> str:
    return run.manifest.tasks[cell.task].source or "en"


def _others(cell: CellResult) -> dict[str, str]:
    """Return the conditions that every version must share."""
    conditions = {name: value for name, value in cell.view.items() if name not in _AXES}
    variant = cell.view.get("variant")
    if variant not in {None, "original", *VARIANTS}:
        # A corrected or simplified test set of the task has no translated versions.
        conditions["variant"] = str(variant)
    return {"protocol": str(cell.protocol), "method": str(cell.method), **conditions}


def _condition(run: Run, cell: CellResult) -> Condition:
    variant = cell.view.get("variant")
    if variant not in VARIANTS or variant == "zs":
        return ZS
    translator = cell.view.get("translator")
    if not translator:
        raise DataError(
            f"The run {str(run.path)!r} has a cell of {cell.task!r} in {cell.language!r} of variant "
            f"{variant!r} without a translator in its view."
        )
    return Condition(variant=variant, translator=str(translator))


def _system(members: Sequence[tuple[Run, CellResult]]) -> GapSystem:
    run, first = members[0]
    cells: dict[str, dict[Condition, dict[int, tuple[Run, CellResult]]]] = {}
    fits: dict[tuple[str, int], tuple[str, str, Run]] = {}
    for cell_run, cell in members:
        code, seed, condition = cell.language, cell.seed or 0, _condition(cell_run, cell)
        by_seed = cells.setdefault(code, {}).setdefault(condition, {})
        if seed in by_seed:
            earlier_path = str(by_seed[seed][0].path)
            where = f"both {earlier_path!r} and" if earlier_path != str(cell_run.path) else "twice"
            raise DataError(
                f"{cell.task!r} in {code!r}, {condition.title}, seed {seed}, is in {where} {str(cell_run.path)!r}: "
                "the two cells cannot be distinguished.",
                hint="Give only one of the runs.",
            )
        by_seed[seed] = (cell_run, cell)
        fit = str(cell.fit)
        first_fit, title, elsewhere = fits.setdefault((code, seed), (fit, condition.title, cell_run))
        if first_fit != fit:
            raise DataError(
                f"{cell.task!r} in {code!r}, seed {seed}: {title} of {str(elsewhere.path)!r} was answered by the "
                f"fit {first_fit!r}, {condition.title} of {str(cell_run.path)!r} by {fit!r}, so their difference "
                "is not only due to the translation.",
                hint="Evaluate all variants with one fit: harness eval --variants zs,tt,te,bt --reuse RUN",
            )
    seeds = [set(by_seed) for versions in cells.values() for by_seed in versions.values()]
    common = seeds[0].intersection(*seeds)
    partial_seeds = seeds[0].union(*seeds) - common
    if not common:
        raise DataError(
            f"No seed is common to all versions of {first.task!r}: one or another does not have "
            f"{' '.join(map(str, sorted(partial_seeds)))}.",
            hint="Evaluate all versions with the same --seeds.",
        )
    skipped = f"Skipped seeds that some version does not have: {' '.join(map(str, sorted(partial_seeds)))}."
    return GapSystem(
        task=first.task,
        model=str(run.manifest.model),
        model_name=run.manifest.model_name,
        train=str(first.view.get("train_variant", ORIGINAL)),
        conditions=_others(first),
        source=_source(run, first),
        spec=run.manifest.tasks[first.task],
        seeds=tuple(sorted(common)),
        cells=cells,
        notes=(skipped,) if partial_seeds else (),
    )
