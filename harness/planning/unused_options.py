"""Which options of a run change nothing of a plan; each is a note, so that no option is ignored silently."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.planning.plan import Cell, Plan, RunConfig

__all__ = ["unused_option_notes"]

Effect = Callable[[Cell, RunConfig], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """An option with what shows that it has an effect on a cell."""

    has_effect: Effect
    why: str
    """Why a cell does without it."""
    usual: object = None
    """The value that means the option was not given, apart from empty ones."""


def _is_prompted(cell: Cell, config: RunConfig) -> bool:
    return cell.prompt is not None or (
        cell.fit is not None and any(stage.prompt is not None for stage in cell.fit.stages)
    )


def _has_shots(cell: Cell, config: RunConfig) -> bool:
    # A source makes its tasks with their shots: PREFIX:NAME.
    return ":" in cell.spec.task or (cell.prompt is not None and cell.prompt.pool is not None)


def _is_generated(cell: Cell, config: RunConfig) -> bool:
    return cell.prompt is not None and cell.pairing.method.name == "generate"


def _is_fitted(cell: Cell, config: RunConfig) -> bool:
    return cell.fit is not None


def _learns(cell: Cell, config: RunConfig) -> bool:
    return cell.fit is not None or bool(cell.pairing.method.splits)


def _is_seeded(cell: Cell, config: RunConfig) -> bool:
    """Return whether all seeds count; without training only the first one does, where something is drawn."""
    if _learns(cell, config) or len(config.seeds) > 1:
        return _learns(cell, config)
    return cell.prompt is not None and (_has_shots(cell, config) or cell.prompt.spec.temperature > 0)


def _is_translated(cell: Cell, config: RunConfig) -> bool:
    parts = [] if cell.fit is None else [found for stage in cell.fit.stages for _, found in stage.train]
    return any(found.change is not None for found in (cell.test, *parts))


NO_PROMPT = "no prompt is used"
NO_SHOTS = "no prompt with examples is used"
NO_FIT = "no model is fine-tuned"
RULES: Mapping[str, _Rule] = {
    "prompt": _Rule(has_effect=_is_prompted, why=NO_PROMPT),
    "shots": _Rule(has_effect=_has_shots, why=NO_SHOTS),
    "shots_from": _Rule(has_effect=_has_shots, why=NO_SHOTS, usual="train"),
    "shots_language": _Rule(has_effect=_has_shots, why=NO_SHOTS, usual="source"),
    "instruction_language": _Rule(has_effect=_is_prompted, why=NO_PROMPT),
    "literals": _Rule(has_effect=_is_prompted, why=NO_PROMPT, usual="english"),
    "chat": _Rule(has_effect=_is_generated, why="no answer is generated from a prompt"),
    "constrained": _Rule(has_effect=_is_generated, why="no answer is generated from a prompt"),
    "seeds": _Rule(has_effect=_is_seeded, why="nothing is trained with them, so every cell is run once"),
    "train_limit": _Rule(has_effect=_learns, why="nothing is trained"),
    "recipe": _Rule(has_effect=_is_fitted, why=NO_FIT),
    "select_on": _Rule(has_effect=_is_fitted, why=NO_FIT),
    "train_languages": _Rule(
        has_effect=lambda cell, _: "train_languages" in cell.view, why=f"{NO_FIT} on chosen languages"
    ),
    "train_variant": _Rule(has_effect=_is_fitted, why=NO_FIT, usual="orig"),
    "train_pivot": _Rule(
        has_effect=lambda cell, _: "train_pivot" in cell.view,
        why="no training set goes through it",
        usual="es",
    ),
    "translators": _Rule(has_effect=_is_translated, why="nothing is translated"),
    "romanised": _Rule(
        has_effect=lambda cell, _: cell.view.get("variant") == "tt",
        why="no items are translated",
        usual="keep",
    ),
}
"""By field of `RunConfig`."""
SHOWN = {"translators": "translator"}
"""Options whose names are not those of their fields."""


def unused_option_notes(config: RunConfig, plan: Plan) -> list[str]:
    """Return a sentence for every option that was given and changes no cell of some task."""
    by_task: dict[str, list[Cell]] = {}
    for cell in plan.cells:
        by_task.setdefault(cell.spec.task, []).append(cell)
    notes = []
    for name, rule in RULES.items():
        value = getattr(config, name)
        if not value or value == rule.usual:
            continue
        without = [
            task
            for task, cells in by_task.items()
            if not any(rule.has_effect(cell, config) for cell in cells)
        ]
        if without:
            of = "" if len(without) == len(by_task) else f" on {', '.join(without)}"
            notes.append(f"{_given(name, value)} has no effect{of}: {rule.why}")
    return notes


def _given(name: str, value: object) -> str:
    """Return an option as it is written: ``--seeds 1,2``."""
    option = f"--{SHOWN.get(name, name).replace('_', '-')}"
    if value is True:
        return option
    return f"{option} {','.join(map(str, value)) if isinstance(value, tuple) else value}"
