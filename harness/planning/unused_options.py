"""Which options of a run change nothing of a plan; each is a note, so that no option is ignored silently."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.planning.plan import Cell, Plan
from harness.planning.run_config import RunConfig, settings
from harness.planning.sampling import can_be_sampled

NO_EFFECT = " has no effect"
"""In every note of `unused_option_notes`."""

Effect = Callable[[Cell, RunConfig], bool]


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
    training = [] if cell.fit is None else [split for stage in cell.fit.stages for _, split in stage.train]
    return any(split.change is not None for split in (cell.test, *training))


NO_PROMPT = "no prompt is used"
NO_FIT = "no model is fine-tuned"
RULES: Mapping[str, tuple[Effect, str]] = {
    "prompts": (_is_prompted, NO_PROMPT),
    "shots": (_has_shots, "no prompt with examples is used"),
    "generation": (_is_generated, "no answer is generated from a prompt"),
    "repeats": (_is_generated, "answers are ranked, not written (--method generate lets models write)"),
    "seeds": (_is_seeded, "nothing is trained with them, so every cell is run once"),
    "samples": (lambda cell, _: can_be_sampled(cell), "their cells are evaluated as a whole"),
    "learning": (_learns, "nothing is trained"),
    "fits": (_is_fitted, NO_FIT),
    "fits on chosen languages": (
        lambda cell, _: "train_languages" in cell.view,
        f"{NO_FIT} on chosen languages",
    ),
    "pivot": (lambda cell, _: "train_pivot" in cell.view, "no training set goes through it"),
    "translation": (_is_translated, "nothing is translated"),
    "tt": (lambda cell, _: cell.view.get("variant") == "tt", "no items are translated"),
}
"""By `Setting.affects`: whether the setting has an effect on a cell, and why a cell does without it."""


def unused_option_notes(config: RunConfig, plan: Plan) -> list[str]:
    """Return a sentence for every option that was given and changes no cell of some task."""
    by_task: dict[str, list[Cell]] = {}
    for cell in plan.cells:
        by_task.setdefault(cell.spec.task, []).append(cell)
    notes = []
    for name, setting in settings().items():
        value = getattr(config, name)
        if not setting.affects or not value or value == setting.default:
            continue
        has_effect, why = RULES[setting.affects]
        without = [
            task for task, cells in by_task.items() if not any(has_effect(cell, config) for cell in cells)
        ]
        if without:
            of = "" if len(without) == len(by_task) else f" on {', '.join(without)}"
            text = ",".join(map(str, value)) if isinstance(value, tuple) else value
            written = setting.long if value is True else f"{setting.long} {text}"
            notes.append(f"{written}{NO_EFFECT}{of}: {why}")
    return notes
