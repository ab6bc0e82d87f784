"""Evaluate a training's checkpoints as they appear; the curve of every language."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from harness.cli import BatchTokens, ConfigFile, JsonFile, takes_settings
from harness.planning import OUTPUT, settings

INTERRUPTED = 130
ENDING = "When it ends"
OF_THE_WATCH = frozenset(
    {
        "model",
        "name",
        "output",
        "num_processes",
        "shard",
        "fits_only",
        "with_baselines",
        "with_published",
        "reuse",
    }
)
"""Settings that each checkpoint gets by itself, or that concern one run alone."""
app = typer.Typer(add_completion=False)


Until = Annotated[
    int | None,
    typer.Option("--until", min=1, metavar="STEP", help="End after this step.", rich_help_panel=ENDING),
]
Idle = Annotated[
    float | None,
    typer.Option(
        "--idle",
        min=0,
        metavar="SECONDS",
        help="End when no checkpoint has come for so long.",
        rich_help_panel=ENDING,
    ),
]


@app.command()
@takes_settings(*(name for name in settings() if name not in OF_THE_WATCH))
def watch(
    checkpoints: Annotated[
        Path, typer.Argument(metavar="CHECKPOINTS", help="The folder in which a Trainer saves checkpoint-*.")
    ],
    until: Until = None,
    idle: Idle = None,
    once: Annotated[
        bool,
        typer.Option("--once", help="End after the checkpoints that are there now.", rich_help_panel=ENDING),
    ] = False,
    batch_tokens: BatchTokens = None,
    config: ConfigFile = None,
    json_file: JsonFile = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "--out",
            metavar="DIR",
            help="The folder of runs and curve; default CHECKPOINTS/_watch.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    **fields: Any,
) -> int:
    """Evaluate the checkpoints of a training as they appear, each once, and draw the curve of every language.

    Example: harness watch out --tasks xnli:sw+hi --limit 200 --data hub --until 5000
    """
    # Imported here so that help stays fast.
    from harness.cli import check_output_file, make_config, reporting_broken_plugins
    from harness.running import open_session
    from harness.specs import select
    from harness_watch.checkpoint import CheckpointFolder, Evaluations
    from harness_watch.following import Following, show_curves

    check_output_file(json_file, ".json")
    folder = CheckpointFolder(checkpoints, must_exist=once)
    run_config = make_config({**fields, "batch_tokens": batch_tokens, "model": f"hf:{checkpoints}"}, config)
    session = open_session(run_config.tasks_from, allow_code=run_config.allow_code)
    with reporting_broken_plugins(session.registry.plugins, session.catalog):
        # A name that does not exist is reported now, not at the first checkpoint.
        select(session.catalog, run_config.tasks, run_config.languages, shots=run_config.shots)
        evaluations = Evaluations(output or checkpoints / "_watch", run_config, session)
    following = Following(folder, evaluations, session.registry.metrics)
    is_stopped = False
    try:
        following.follow(until=until, idle=idle, once=once)
    except KeyboardInterrupt:
        is_stopped = True  # which the caller says, from the status
    show_curves(evaluations.runs(), session.registry.metrics, json_file)
    return INTERRUPTED if is_stopped else int(bool(following.failed))
