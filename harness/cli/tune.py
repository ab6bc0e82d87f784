"""``harness tune``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli import option as o
from harness.cli.output import (
    check_output_file,
    echo,
    reporting_broken_plugins,
    write_file,
    write_rows,
)
from harness.errors import StoppedError
from harness.planning.run_config import settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.planning.run_config import RunConfig
    from harness.running.session import Prepared
    from harness.running.tuning import Cost, Target
    from harness.specs.documents import RecipeSpec, TunedFit, Value

SETTINGS = (
    "tasks", "model", "options", "languages", "tasks_from", "data", "limit", "train_limit", "seeds", "recipe", "prompt"
)  # fmt: skip
"""Of eval: what decides which models are fitted, and on what."""
app = typer.Typer(add_completion=False)


@app.command()
@o.takes_settings(*SETTINGS)
def tune(
    grid: Annotated[
        list[str],
        typer.Option("--grid", metavar="SETTING=V,V", help="Values to try; give it once for each setting."),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "--out", metavar="FILE", help="The recipe; default tuned-MODEL.yaml."),
    ] = None,
    batch_tokens: o.BatchTokens = None,
    config: o.ConfigFile = None,
    json_file: o.JsonFile = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the cost and train nothing.")] = False,
    **given: Any,
) -> None:
    """Choose training settings from a grid on the English dev set, and write them as a recipe for eval.

    Example: harness tune --tasks xnli --model hf:xlm-roberta-base --grid learning_rate=1e-5,2e-5,3e-5
    """
    from harness.running.session import open_session, prepare
    from harness.running.tuning import find_targets, read_grid

    values = read_grid(grid)
    run_config = o.make_config({**given, "batch_tokens": batch_tokens}, config)
    file = output or Path(f"tuned-{_name(run_config.model)}.yaml")
    check_output_file(file, ".yaml", ".yml")
    session = open_session(run_config.tasks_from)
    with reporting_broken_plugins(session.registry.plugins, session.catalog):
        prepared = prepare(run_config, session)
    targets = find_targets(prepared.plan, values)
    for target in targets:
        if target.obstacle:
            echo(f"Note: {target.title} {target.obstacle}, so its settings stay those of the recipe.")
    recipe = _tuned(run_config, prepared, targets, values, _name(file.stem), dry_run=dry_run)
    if recipe is None:
        return
    rows = [row for fit in recipe.tuned.fits for row in _rows(fit)] if recipe.tuned else []
    _show(rows)
    write_file(file, _yaml(recipe))
    write_rows(json_file, rows)
    echo(f"Wrote {file}. Test the chosen models, which are not trained again, with:")
    echo(f"  {_command(run_config, file, recipe.recipe)}")


def _tuned(
    config: RunConfig,
    prepared: Prepared,
    targets: Sequence[Target],
    grid: Mapping[str, tuple[Value, ...]],
    name: str,
    *,
    dry_run: bool,
) -> RecipeSpec | None:
    """Return the recipe with what was chosen; None where only the cost was wanted."""
    from harness.cli.live import show_progress
    from harness.running.fit_store import FitStore
    from harness.running.processes import Interruption, ProcessGroup
    from harness.running.tuning import choose, cost, tuned_recipe
    from harness.specs.documents import Tuning
    from harness.storage.files import cache_folder

    plan = prepared.plan
    plan.model.entry.make_ready()
    with ExitStack() as stack:
        progress = stack.enter_context(show_progress())
        interruption = Interruption(progress.announce)
        adapter = plan.model.entry.open(plan.model.description, plan.model.options)
        stack.callback(adapter.close)
        store = FitStore(cache_folder(), prepared.finder, progress, ProcessGroup(), interruption)
        tried = [target for target in targets if target.trials]
        echo(_cost_text(tried, cost(tried, plan, adapter, store)))
        if dry_run or not tried:
            return None
        try:
            with interruption.listening():
                chosen = {target: choose(target, adapter, store) for target in tried}
        except KeyboardInterrupt as error:
            raise StoppedError(
                "Stopped. Finished fits are kept; the same command continues after the last one."
            ) from error
        base = prepared.session.catalog.recipe(plan.fits[0].recipe)
        tuning = Tuning(
            recipe=base.recipe,
            model=dict(adapter.identity()),
            grid=dict(grid),
            seeds=tuple(dict.fromkeys(fit.seed for fit in plan.fits)),
            fits=tuple(chosen.values()),
        )
        return tuned_recipe(base, name, plan.model.description, chosen, tuning)


def _cost_text(targets: Sequence[Target], found: Cost) -> str:
    from harness.cli.tally import duration
    from harness.reporting.blocks.words import counted

    trials = sum(len(target.trials) for target in targets)
    cached = f", {found.cached} more in the cache" if found.cached else ""
    steps = f"{'at least ' if found.is_least else ''}{counted(found.steps, 'step')}"
    text = f"{counted(trials, 'setting')} of {counted(len(targets), 'model')} to try: "
    text += f"{counted(found.stages, 'training')}{cached}"
    if not found.stages:
        return f"{text}."
    time = (
        f"about {duration(found.seconds)}, as earlier fits of this model on these data took"
        if found.seconds is not None
        else "the time is not known: not all of it was trained before"
    )
    return f"{text}, {steps} in all; {time}."


def _rows(fit: TunedFit) -> list[dict[str, Any]]:
    return [
        {
            "fit": " then ".join(fit.stages),
            "settings": dict(score.settings),
            "metric": fit.metric,
            "dev": score.dev,
            "by_seed": score.by_seed,
            "items": fit.items,
            "chosen": score.settings == fit.chosen,
            "failure": score.failure,
        }
        for score in fit.scores
    ]


def _show(rows: Sequence[Mapping[str, Any]]) -> None:

    from harness.cli.display import print_table

    lines = [
        [
            row["fit"],
            " ".join(
                f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
                for name, value in row["settings"].items()
            ),
            f"failed: {row['failure']}" if row["dev"] is None else f"{100 * row['dev']:.1f}",
            row["metric"],
            f"{row['items']:,}",
            "chosen" if row["chosen"] else "",
        ]
        for row in rows
    ]
    print_table(("fit", "settings", "dev (en)", "metric", "items", ""), lines)
    echo("The dev set is English and chose the settings: its scores are no results of the model.")


def _yaml(recipe: RecipeSpec) -> str:
    import yaml

    plain = recipe.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    tuned = plain.pop("tuned")
    return yaml.safe_dump({**plain, "tuned": tuned}, sort_keys=False, allow_unicode=True, width=110)


def _name(text: str) -> str:
    """Return the name of a recipe for a model or a file."""
    import re

    base_name = Path(text.rpartition(":")[2]).name.lower()
    return re.sub(r"[^a-z0-9_-]+", "-", base_name).strip("-_") or "model"


def _command(config: RunConfig, file: Path, recipe: str) -> str:
    """Return the command that evaluates with the recipe what was tuned."""
    import shlex

    words = ["harness", "eval"]
    for name in SETTINGS:
        setting, value = settings()[name], getattr(config, name)
        match name:
            case "recipe":
                value = recipe
            case "tasks_from":
                value = (*value, file)
            case "data":
                value = value.folders or (value.mode,)
            case "options":
                value = tuple(f"{key}={item}" for key, item in value.items())
        if value is None or value == ():
            continue
        if name in {"tasks", "languages", "seeds"}:
            value = ",".join(map(str, value))
        for item in value if isinstance(value, tuple) else (value,):
            words += [setting.long, str(item)]
    return shlex.join(words)
